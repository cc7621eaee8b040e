"""Scans, order statistics, sums that pass over NaN, and statistics of rows in the PyTorch language."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.torch.language import Number, is_number, torchsymbol
from thunder.torch.reductions import amax, amin, vector_norm

Dims = int | Sequence[int] | None


@torchsymbol("cumprod", "Tensor.cumprod")
def cumprod(input: TensorProxy, dim: int, *, dtype: torch.dtype | None = None) -> TensorProxy:
    if dtype is None and dtypes.is_exact(input.dtype):
        dtype = torch.int64
    return prims.cumprod(clang.convert(input, dtype or input.dtype), clang.canonical_dim(dim, input.ndim))


@torchsymbol("logcumsumexp", "Tensor.logcumsumexp")
def logcumsumexp(input: TensorProxy, dim: int) -> TensorProxy:
    """log(cumsum(exp(input)))"""
    if dtypes.is_exact(input.dtype):
        raise NotImplementedError(f'"logcumsumexp_out_cpu" not implemented for {input.dtype}')
    return prims.logcumsumexp(input, clang.canonical_dim(dim, input.ndim))


def _running(name: str, prim: Symbol) -> None:
    def meta(input: TensorProxy, dim: int) -> Any:
        if dtypes.is_complex(input.dtype):
            raise NotImplementedError(f"{name} of complex numbers")
        return getattr(torch.return_types, name)(prim(input, clang.canonical_dim(dim, input.ndim)))

    meta.__name__ = name
    torchsymbol(name, f"Tensor.{name}")(meta)


_running("cummax", prims.cummax)
_running("cummin", prims.cummin)


def _selected(name: str, prim: Symbol, input: TensorProxy, args: tuple[int, ...], dim: int, keepdim: bool) -> Any:
    """(values, indices) of an order statistic along `dim`."""
    dim = clang.canonical_dim(dim, input.ndim)
    if dtypes.is_complex(input.dtype) or input.ndim == 0 or input.shape[dim] == 0:
        raise NotImplementedError(f"{name} of complex numbers, or of nothing")
    out = prim(input, *args, dim)
    if keepdim:
        out = tuple(clang.insert_dims(x, (dim,)) for x in out)
    return getattr(torch.return_types, name)(out)


@torchsymbol("kthvalue", "Tensor.kthvalue")
def kthvalue(input: TensorProxy, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The `k`th smallest element along `dim`, and where it is."""
    if not 1 <= k <= (input.shape[clang.canonical_dim(dim, input.ndim)] if input.ndim else 1):
        raise RuntimeError("kthvalue(): selected number k out of range for dimension")
    return _selected("kthvalue", prims.kthvalue, input, (k,), dim, keepdim)


@torchsymbol("mode", "Tensor.mode")
def mode(input: TensorProxy, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along `dim`, and where it is."""
    return _selected("mode", prims.mode, input, (), dim, keepdim)


def _median(name: str, prim: Symbol) -> None:
    def meta(input: TensorProxy, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is not None:
            return _selected(name, prim, input, (), dim, keepdim)
        if input.numel == 0 or dtypes.is_complex(input.dtype):
            raise NotImplementedError(f"{name} of nothing")
        return prim(prims.reshape(input, (input.numel,)), 0)[0]

    meta.__name__ = name
    torchsymbol(name, f"Tensor.{name}")(meta)


_median("median", prims.median)
_median("nanmedian", prims.nanmedian)


@torchsymbol("msort", "Tensor.msort")
def msort(input: TensorProxy) -> TensorProxy:
    if input.ndim == 0:
        raise NotImplementedError("msort of a number")
    return prims.sort(input, 0, False, False)[0]


@torchsymbol("aminmax", "Tensor.aminmax")
def aminmax(input: TensorProxy, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """(min, max) over `dim`, or over all."""
    if input.numel == 0 or input.ndim == 0:
        raise NotImplementedError("aminmax of a number, or of nothing")
    return torch.return_types.aminmax((amin.meta(input, dim, keepdim), amax.meta(input, dim, keepdim)))


@torchsymbol("count_nonzero", "Tensor.count_nonzero")
def count_nonzero(input: TensorProxy, dim: Dims = None) -> TensorProxy:
    if input.ndim == 0:
        return clang.convert(clang.ne(input, 0), torch.int64)
    return clang.sum(clang.ne(input, 0), dim)


def _without_nan(input: TensorProxy) -> TensorProxy:
    return clang.where(clang.isnan(input), clang.convert(0, input.dtype), input)


@torchsymbol("nansum", "Tensor.nansum")
def nansum(
    input: TensorProxy, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> TensorProxy:
    """The sum of what is no NaN."""
    if dtypes.is_complex(input.dtype):
        raise NotImplementedError("nansum of complex numbers")
    return clang.sum(input if dtypes.is_exact(input.dtype) else _without_nan(input), dim, keepdim, dtype)


@torchsymbol("nanmean", "Tensor.nanmean")
def nanmean(
    input: TensorProxy, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> TensorProxy:
    """The mean of what is no NaN."""
    if not dtypes.is_float(input.dtype):
        raise RuntimeError(f"nanmean(): expected input to have floating point dtype but got {input.dtype}")
    wide = clang.convert(input, dtypes.compute_dtype(dtype or input.dtype))
    count = clang.sum(clang.convert(clang.logical_not(clang.isnan(input)), wide.dtype), dim, keepdim)
    return clang.convert(clang.sum(_without_nan(wide), dim, keepdim) / count, dtype or input.dtype)


_ROUNDING = {
    "lower": lambda low, high, share: low,
    "higher": lambda low, high, share: high,
    "midpoint": lambda low, high, share: (low + high) * 0.5,
    "linear": lambda low, high, share: low + (high - low) * share,
}


@torchsymbol("quantile", "Tensor.quantile")
def quantile(
    input: TensorProxy, q: Number, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> TensorProxy:
    """The value below which the share `q` of the elements along `dim` lies; NaN where there is one."""
    if not is_number(q) or interpolation not in _ROUNDING or input.dtype not in (torch.float32, torch.float64):
        raise NotImplementedError("quantile at a tensor, to the nearest, or of another dtype")
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
    if input.numel == 0 or input.ndim == 0:
        raise NotImplementedError("quantile of a number, or of nothing")
    a = prims.reshape(input, (input.numel,)) if dim is None else input
    d = 0 if dim is None else clang.canonical_dim(dim, input.ndim)
    ordered = prims.sort(a, d, False, False)[0]
    rank = q * (a.shape[d] - 1)
    below, above = math.floor(rank), math.ceil(rank)
    low, high = (clang.slice_dim(ordered, d, i, i + 1) for i in (below, above))
    out = _ROUNDING[interpolation](low, high, rank - below)
    has_nan = clang.any(clang.isnan(a), d, keepdim=True)
    out = clang.where(has_nan, math.nan, out)
    if not keepdim:
        return prims.squeeze(out, (d,))
    return prims.reshape(out, (1,) * input.ndim) if dim is None else out


@torchsymbol("trapezoid", "trapz")
def trapezoid(y: TensorProxy, x: TensorProxy | None = None, *, dx: Number | None = None, dim: int = -1) -> TensorProxy:
    """The integral of `y` along `dim` by the trapezoidal rule."""
    areas, d = _trapezoids(y, x, dx, dim)
    return clang.sum(areas, d)


@torchsymbol("cumulative_trapezoid")
def cumulative_trapezoid(
    y: TensorProxy, x: TensorProxy | None = None, *, dx: Number | None = None, dim: int = -1
) -> TensorProxy:
    areas, d = _trapezoids(y, x, dx, dim)
    return prims.cumsum(areas, d)


def _trapezoids(y: TensorProxy, x: TensorProxy | None, dx: Number | None, dim: int) -> tuple[TensorProxy, int]:
    if x is not None or y.ndim == 0 or not dtypes.is_float(y.dtype) or (dx is not None and not is_number(dx)):
        raise NotImplementedError("trapezoid at given positions")
    d = clang.canonical_dim(dim, y.ndim)
    size = y.shape[d]
    if size < 2:
        raise NotImplementedError("trapezoid of less than two elements")
    left, right = clang.slice_dim(y, d, 0, size - 1), clang.slice_dim(y, d, 1, size)
    return (left + right) * ((1 if dx is None else dx) / 2), d


@torchsymbol("cov", "Tensor.cov")
def cov(
    input: TensorProxy,
    *,
    correction: int = 1,
    fweights: TensorProxy | None = None,
    aweights: TensorProxy | None = None,
) -> TensorProxy:
    """The covariances of the rows of `input`."""
    if fweights is not None or aweights is not None or input.ndim != 2 or not dtypes.is_float(input.dtype):
        raise NotImplementedError("cov with weights, or of other than a matrix of floats")
    if input.shape[0] < 2:
        raise NotImplementedError("cov of one variable")
    count = input.shape[1]
    if count - correction <= 0:
        raise NotImplementedError("cov without degrees of freedom")
    centered = input - clang.mean(input, 1, keepdim=True)
    return prims.matmul(centered, clang.transpose(centered, 0, 1)) / (count - correction)


@torchsymbol("corrcoef", "Tensor.corrcoef")
def corrcoef(input: TensorProxy) -> TensorProxy:
    """The correlations of the rows of `input`."""
    c = cov.meta(input)
    spread = clang.sqrt(prims.diagonal(c, 0, 0, 1))
    return clang.minimum(clang.maximum(c / clang.unsqueeze(spread, 1) / spread, -1.0), 1.0)


@torchsymbol("renorm", "Tensor.renorm")
def renorm(input: TensorProxy, p: float, dim: int, maxnorm: float) -> TensorProxy:
    """Slices along `dim` whose `p`-norm is above `maxnorm` scaled down to it."""
    if input.ndim < 2 or not dtypes.is_float(input.dtype) or p <= 0 or maxnorm < 0:
        raise NotImplementedError("renorm of a vector, or of no floats")
    d = clang.canonical_dim(dim, input.ndim)
    wide = clang.convert(input, dtypes.compute_dtype(input.dtype))
    norm = vector_norm.meta(wide, p, [i for i in range(input.ndim) if i != d], True)
    factor = clang.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return clang.convert(wide * factor, input.dtype)


@torchsymbol("searchsorted")
def searchsorted(
    sorted_sequence: TensorProxy,
    input: TensorProxy | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: TensorProxy | None = None,
) -> TensorProxy:
    """Where in the sorted last dimension each value would be inserted to keep it sorted."""
    if is_number(input) or side not in (None, "left", "right") or (side == "left" and right):
        raise NotImplementedError("searchsorted of a number")
    if sorted_sequence.dtype != input.dtype or sorted_sequence.ndim == 0 or sorter is not None:
        raise NotImplementedError("searchsorted of tensors of different dtypes, or with a sorter")
    if sorted_sequence.ndim > 1 and sorted_sequence.shape[:-1] != input.shape[:-1]:
        raise NotImplementedError("searchsorted of tensors that do not fit")
    dtype = torch.int32 if out_int32 else torch.int64
    return prims.searchsorted(sorted_sequence, input, right or side == "right", dtype, None)


@torchsymbol("bucketize")
def bucketize(
    input: TensorProxy | Number, boundaries: TensorProxy, *, out_int32: bool = False, right: bool = False
) -> TensorProxy:
    """Which of the intervals between sorted boundaries each value lies in."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted.meta(boundaries, input, out_int32=out_int32, right=right)


@torchsymbol("isin")
def isin(
    elements: TensorProxy | Number,
    test_elements: TensorProxy | Number,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> TensorProxy:
    """Whether each element is among `test_elements`."""
    if is_number(elements):
        raise NotImplementedError("isin of a number")
    if is_number(test_elements):
        found = clang.eq(elements, test_elements)
    else:
        flat = prims.reshape(test_elements, (test_elements.numel,))
        found = clang.any(clang.eq(clang.unsqueeze(elements, elements.ndim), flat), elements.ndim)
    return clang.logical_not(found) if invert else found
