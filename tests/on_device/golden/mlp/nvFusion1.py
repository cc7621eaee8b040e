def nvfuser_fusion(fd : FusionDefinition) -> None :
    tv0 = fd.define_tensor(shape=[-1, -1], contiguity=[True, True], dtype=DataType.Float, is_cpu=False)
    tv1 = fd.ops.mul(tv0, 0.500000)
    tv2 = fd.ops.mul(tv0, 0.707107)
    tv3 = fd.ops.erf(tv2)
    tv4 = fd.ops.add(1.00000, tv3)
    tv5 = fd.ops.mul(tv1, tv4)
    fd.add_output(tv5)
