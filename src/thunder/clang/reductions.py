"""Reductions: canonical dimensions, `keepdim`, and the dtypes that torch reduces in."""

import math
from collections.abc import Sequence

import torch

from thunder.clang.elementwise import div
from thunder.clang.promotion import convert
from thunder.clang.shape import canonical_dim, canonical_dims, insert_dims
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol

__all__ = ["all", "amax", "amin", "any", "argmax", "argmin", "mean", "prod", "sum", "var", "var_mean"]

Dims = int | Sequence[int] | None


def reduce(prim: Symbol, a: TensorProxy, dims: Dims, keepdim: bool) -> TensorProxy:
    """`prim` over `dims` (None or empty: all), which stay with size 1 if `keepdim`."""
    reduced = canonical_dims(dims, a.ndim)
    return _keep(prim(a, reduced), reduced, keepdim)


def _keep(a: TensorProxy, reduced: Sequence[int], keepdim: bool) -> TensorProxy:
    return insert_dims(a, reduced) if keepdim else a


def sum(a: TensorProxy, dims: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> TensorProxy:
    """The sum over `dims`; exact dtypes are summed in int64."""
    return reduce(prims.sum_prim, convert(a, dtype or _long_if_exact(a.dtype)), dims, keepdim)


def prod(a: TensorProxy, dims: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> TensorProxy:
    """The product over `dims`; exact dtypes are multiplied in int64."""
    return reduce(prims.prod_prim, convert(a, dtype or _long_if_exact(a.dtype)), dims, keepdim)


def _long_if_exact(dtype: torch.dtype) -> torch.dtype:
    return torch.int64 if dtypes.is_exact(dtype) else dtype


def mean(a: TensorProxy, dims: Dims = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> TensorProxy:
    """The mean over `dims`, summed in float32 where `a` is float16 or bfloat16."""
    dtype = dtype or a.dtype
    count = math.prod(a.shape[d] for d in canonical_dims(dims, a.ndim))
    total = reduce(prims.sum_prim, convert(a, dtypes.compute_dtype(dtype)), dims, keepdim)
    return convert(div(total, count if count else math.nan), dtype)


def amax(a: TensorProxy, dims: Dims = None, keepdim: bool = False) -> TensorProxy:
    return reduce(prims.amax, a, dims, keepdim)


def amin(a: TensorProxy, dims: Dims = None, keepdim: bool = False) -> TensorProxy:
    return reduce(prims.amin, a, dims, keepdim)


def all(a: TensorProxy, dims: Dims = None, keepdim: bool = False) -> TensorProxy:
    return reduce(prims.all_prim, convert(a, torch.bool), dims, keepdim)


def any(a: TensorProxy, dims: Dims = None, keepdim: bool = False) -> TensorProxy:
    return reduce(prims.any_prim, convert(a, torch.bool), dims, keepdim)


def argmax(a: TensorProxy, dim: int | None = None, keepdim: bool = False) -> TensorProxy:
    return _arg(prims.argmax, a, dim, keepdim)


def argmin(a: TensorProxy, dim: int | None = None, keepdim: bool = False) -> TensorProxy:
    return _arg(prims.argmin, a, dim, keepdim)


def _arg(prim: Symbol, a: TensorProxy, dim: int | None, keepdim: bool) -> TensorProxy:
    """`prim` over one dimension, or over all as if they were one."""
    a = convert(a, torch.uint8) if a.dtype is torch.bool else a  # torch's kernels do not take bool
    if dim is None:
        return _keep(prim(a, None), range(a.ndim), keepdim)
    dim = canonical_dim(dim, a.ndim)
    return prim(a, None) if a.ndim == 0 else _keep(prim(a, dim), (dim,), keepdim)


def var(a: TensorProxy, dims: Dims = None, keepdim: bool = False, correction: float = 1) -> TensorProxy:
    """The variance over `dims`: squared differences from the mean, summed, divided by count - `correction`."""
    reduced = canonical_dims(dims, a.ndim)
    wide = convert(a, dtypes.compute_dtype(a.dtype))
    return convert(_keep(prims.var(wide, reduced, correction), reduced, keepdim), dtypes.corresponding_real(a.dtype))


def var_mean(
    a: TensorProxy, dims: Dims = None, keepdim: bool = False, correction: float = 1
) -> tuple[TensorProxy, TensorProxy]:
    """The variance and the mean over `dims`."""
    reduced = canonical_dims(dims, a.ndim)
    v, m = prims.var_mean(convert(a, dtypes.compute_dtype(a.dtype)), reduced, correction)
    v, m = _keep(v, reduced, keepdim), _keep(m, reduced, keepdim)
    return convert(v, dtypes.corresponding_real(a.dtype)), convert(m, a.dtype)
