"""A bf16 layer norm in nvFuser: prints the kernel and its launch as JSON. Run by test_compiled_kernels.py."""

import json

import torch
from nvfuser_direct import DataType, FusionDefinition

from thunder import virtual_cuda

with FusionDefinition() as fd:
    x = fd.define_tensor(shape=[-1, -1], contiguity=True, dtype=DataType.BFloat16, is_cpu=False)
    x32 = fd.ops.cast(x, dtype=DataType.Float)
    variance, mean = fd.ops.var_mean(x32, [1], 0, True)
    epsilon = fd.define_scalar(1e-5, dtype=DataType.Double)
    normalized = fd.ops.mul(fd.ops.sub(x32, mean), fd.ops.rsqrt(fd.ops.add(variance, epsilon)))
    fd.add_output(fd.ops.cast(normalized, dtype=DataType.BFloat16))

inputs = [torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)]
(output,) = fd.execute(inputs)
assert output.is_cuda and output.shape == (4096, 4096) and output.dtype == torch.bfloat16
print(json.dumps({"code": fd.fec.get_cuda_kernel(inputs), "launch": virtual_cuda.launches()[-1]._asdict()}))
