"""The operations of nvFuser 0.2.36 that no translation uses, and why: what fusions could hold and do not."""

_COMPOSITE = "made of several primitives, which are translated"
_CALLS_TORCH = "nvFuser makes no kernel of it, it calls torch"
_RANDOM = "random numbers: torch draws them, so that they are eager's"
_MATRIX_PRODUCT = "matrix product: torch calls cuBLAS"
_LOW_PRECISION = "for types of 4 and 8 bits, which have no primitives"
_OTHER_WORD = "another operation says the same"
_NO_OPERATION = "tells of a fusion, computes nothing"

UNUSED: dict[str, str] = {
    **dict.fromkeys(("addcmul", "clamp", "frac", "lerp", "relu", "sign", "silu", "threshold", "triu"), _COMPOSITE),
    **dict.fromkeys(("isneginf", "isposinf", "isreal", "var", "var_mean"), _COMPOSITE),
    **dict.fromkeys(("argsort", "cummax", "cummin", "cumprod", "cumsum", "embedding_fwd", "scatter"), _CALLS_TORCH),
    **dict.fromkeys(("sdpfa_bwd", "sdpfa_fwd", "topk"), _CALLS_TORCH),
    **dict.fromkeys(("normal", "rand_like", "randn_like", "uniform"), _RANDOM),
    **dict.fromkeys(("grouped_mm", "linear", "matmul"), _MATRIX_PRODUCT),
    **dict.fromkeys(("cutlass_nvfp4_grouped_mm", "nv_block_quantize", "nv_grouped_block_quantize"), _LOW_PRECISION),
    **dict.fromkeys(("preprocess_grouped_matmul_input_sf", "scaled_mm"), _LOW_PRECISION),
    **dict.fromkeys(("broadcast_in_dim", "gather", "mod", "set", "slice", "truediv"), _OTHER_WORD),
    **dict.fromkeys(("segment_set", "shape", "size"), _NO_OPERATION),
    "erfcinv": "torch has no such operation",
    "logical_right_shift": "torch's shift keeps the sign",
}
