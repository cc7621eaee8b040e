"""Attention of the PyTorch language."""

import math

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.torch.activations import softmax
from thunder.torch.language import torchsymbol
from thunder.torch.matrix import matmul
from thunder.torch.nn import dropout
from thunder.torch.shape import repeat_interleave


@torchsymbol("nn.functional.scaled_dot_product_attention")
def scaled_dot_product_attention(
    query: TensorProxy,
    key: TensorProxy,
    value: TensorProxy,
    attn_mask: TensorProxy | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> TensorProxy:
    """softmax(query @ key.mT * scale + mask) @ value; https://arxiv.org/abs/1706.03762"""
    _check(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        key, value = (_repeat_heads(x, query.shape[-3]) for x in (key, value))
    dtype = dtypes.compute_dtype(query.dtype)
    # The scale goes half to either side, as torch does it against overflow.
    root = math.sqrt(1 / math.sqrt(query.shape[-1]) if scale is None else abs(scale))
    sign = -1.0 if scale is not None and scale < 0 else 1.0
    q = clang.convert(query, dtype) * (root * sign)
    k = clang.convert(key, dtype) * root
    scores = matmul(q, clang.transpose(k, -2, -1))
    allowed, bias = _mask(query, key, attn_mask, is_causal)
    if allowed is not None:
        scores = clang.where(allowed, scores, -math.inf)
    if bias is not None:
        scores = clang.add(scores, clang.convert(bias, scores.dtype))
    weights = softmax(scores, -1)
    if attn_mask is not None:  # a row in which nothing is allowed is 0, not NaN
        empty = clang.eq(clang.amax(scores, -1, keepdim=True), -math.inf)
        weights = clang.where(empty, 0.0, weights)
    if dropout_p > 0.0:
        weights = dropout(weights, dropout_p, True)
    out = clang.convert(matmul(weights, clang.convert(value, dtype)), query.dtype)
    order = _order_of_dimensions(query, key, value, attn_mask, dropout_p)
    return out if order is None else _laid_out(out, order)


def _order_of_dimensions(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, attn_mask: TensorProxy | None, dropout_p: float
) -> tuple[int, ...] | None:
    """The result's dimensions from the slowest to the fastest varying, where torch takes a fused kernel; else None.

    Those of the CPU, and flash attention on CUDA, lay the result out as the query; CUDA's efficient attention does as
    (batch, length, heads, size).
    """
    tensors = (query, key, value)
    if any(x.ndim != 4 or not x.numel or x.strides[-1] != 1 or x.shape[-1] != query.shape[-1] for x in tensors):
        return None
    if attn_mask is not None and (attn_mask.requires_grad or attn_mask.ndim not in (2, 4)):
        return None
    if query.device.type == "cuda" and (attn_mask is not None or query.dtype not in (torch.float16, torch.bfloat16)):
        return 0, 2, 1, 3
    if query.device.type == "cpu" and (dropout_p > 0.0 or not torch.backends.cuda.flash_sdp_enabled()):
        return None
    strides = prims.preserved_strides(query)
    return tuple(sorted(range(4), key=lambda d: -strides[d]))


def _laid_out(a: TensorProxy, order: tuple[int, ...]) -> TensorProxy:
    if order == (0, 1, 2, 3):
        return a
    return prims.permute(prims.contiguous(prims.permute(a, order)), tuple(map(order.index, range(a.ndim))))


def _check(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, attn_mask: TensorProxy | None, is_causal: bool
) -> None:
    if not (query.dtype == key.dtype == value.dtype):
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise RuntimeError("Expected query, key, and value to all be  at least 2 dimensional")
    if is_causal and attn_mask is not None:
        raise RuntimeError("Explicit attn_mask should not be set when is_causal=True")
    if attn_mask is not None and attn_mask.dtype is not torch.bool and attn_mask.dtype != query.dtype:
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype} and  query.dtype: {query.dtype} instead."
        )


def _repeat_heads(a: TensorProxy, heads: int) -> TensorProxy:
    """The heads of `a`, each repeated so that there are as many as query heads."""
    if heads % a.shape[-3]:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in query")
    return a if heads == a.shape[-3] else repeat_interleave(a, heads // a.shape[-3], -3)


def _mask(
    query: TensorProxy, key: TensorProxy, attn_mask: TensorProxy | None, is_causal: bool
) -> tuple[TensorProxy | None, TensorProxy | None]:
    """What is allowed, as a bool tensor, and what is added to the scores; None for nothing of the kind."""
    if is_causal:
        rows = prims.iota(query.shape[-2], 0, 1, torch.int64, query.device)
        columns = prims.iota(key.shape[-2], 0, 1, torch.int64, query.device)
        return clang.ge(clang.unsqueeze(rows, 1), columns), None
    if attn_mask is None:
        return None, None
    return (attn_mask, None) if attn_mask.dtype is torch.bool else (None, attn_mask)
