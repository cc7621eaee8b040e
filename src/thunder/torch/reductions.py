"""Reductions, scans and sorting of the PyTorch language."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.torch.joining import cat
from thunder.torch.language import sizes_of, torchsymbol

Dims = int | Sequence[int] | None


@torchsymbol("sum", "Tensor.sum")
def sum_(
    input: TensorProxy, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> TensorProxy:
    return clang.sum(input, dim, keepdim, dtype)


@torchsymbol("Tensor.sum_to_size")
def sum_to_size(self: TensorProxy, *size: int | Sequence[int]) -> TensorProxy:
    """`self` summed over the dimensions that broadcasting `size` to its shape repeats."""
    shape = sizes_of(size)
    if len(shape) > self.ndim or clang.broadcast_shapes(shape, self.shape) != self.shape:
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(self.shape)}}}.")
    summed = len(shape) < self.ndim or any(a == 1 != b for a, b in zip(shape, self.shape))
    return clang.sum_to(clang.convert(self, torch.int64) if summed and dtypes.is_exact(self.dtype) else self, shape)


@torchsymbol("prod", "Tensor.prod")
def prod(
    input: TensorProxy, dim: int | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> TensorProxy:
    return clang.prod(input, dim, keepdim, dtype)


@torchsymbol("mean", "Tensor.mean")
def mean(
    input: TensorProxy, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> TensorProxy:
    if dtypes.is_exact(dtype or input.dtype):
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {dtype or input.dtype}"
        )
    return clang.mean(input, dim, keepdim, dtype)


def _spread_arguments(
    name: str, input: TensorProxy, dim: Any, unbiased: bool | None, correction: float | None
) -> tuple[Dims, float]:
    """The dimensions and the correction that the arguments of var and its relatives mean."""
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    if dtypes.is_exact(input.dtype):
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return dim, correction


@torchsymbol("var", "Tensor.var")
def var(
    input: TensorProxy,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> TensorProxy:
    """sum((input - mean(input))^2) / max(0, count - correction)"""
    dim, correction = _spread_arguments("var", input, dim, unbiased, correction)
    return clang.var(input, dim, keepdim, correction)


@torchsymbol("std", "Tensor.std")
def std(
    input: TensorProxy,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> TensorProxy:
    dim, correction = _spread_arguments("std", input, dim, unbiased, correction)
    wide = clang.convert(input, dtypes.compute_dtype(input.dtype))
    out = root(clang.var(wide, dim, keepdim, correction), 2)
    return clang.convert(out, dtypes.corresponding_real(input.dtype))


@torchsymbol("var_mean")
def var_mean(
    input: TensorProxy,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[TensorProxy, TensorProxy]:
    dim, correction = _spread_arguments("var_mean", input, dim, unbiased, correction)
    return clang.var_mean(input, dim, keepdim, correction)


@torchsymbol("std_mean")
def std_mean(
    input: TensorProxy,
    dim: Dims = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[TensorProxy, TensorProxy]:
    dim, correction = _spread_arguments("std_mean", input, dim, unbiased, correction)
    variance, mean = clang.var_mean(clang.convert(input, dtypes.compute_dtype(input.dtype)), dim, keepdim, correction)
    std = clang.convert(root(variance, 2), dtypes.corresponding_real(input.dtype))
    return std, clang.convert(mean, input.dtype)


def _refuse_empty(name: str, input: TensorProxy, dim: Dims) -> None:
    if name in ("amax", "amin") and dim in (None, ()) and input.numel == 0:
        specify = "Specify the reduction dim with the 'dim' argument."
        raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. {specify}")
    for d in clang.canonical_dims(dim, input.ndim):
        if input.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


@torchsymbol("amax", "Tensor.amax")
def amax(input: TensorProxy, dim: Dims = (), keepdim: bool = False) -> TensorProxy:
    _refuse_empty("amax", input, dim)
    return clang.amax(input, dim, keepdim)


@torchsymbol("amin", "Tensor.amin")
def amin(input: TensorProxy, dim: Dims = (), keepdim: bool = False) -> TensorProxy:
    _refuse_empty("amin", input, dim)
    return clang.amin(input, dim, keepdim)


@torchsymbol("max", "Tensor.max")
def max_(input: TensorProxy, dim: Any = None, keepdim: bool = False, *, other: TensorProxy | None = None) -> Any:
    """`max(input)`, `max(input, other)`, or (values, indices) of `max(input, dim, keepdim)`."""
    return _extreme("max", input, dim, keepdim, other)


@torchsymbol("min", "Tensor.min")
def min_(input: TensorProxy, dim: Any = None, keepdim: bool = False, *, other: TensorProxy | None = None) -> Any:
    """`min(input)`, `min(input, other)`, or (values, indices) of `min(input, dim, keepdim)`."""
    return _extreme("min", input, dim, keepdim, other)


def _extreme(name: str, input: TensorProxy, dim: Any, keepdim: bool, other: TensorProxy | None) -> Any:
    other = dim if isinstance(dim, TensorProxy) else other
    if other is not None:
        return (clang.maximum if name == "max" else clang.minimum)(input, other)
    _refuse_empty(name, input, dim)
    if dim is None:
        return (clang.amax if name == "max" else clang.amin)(input)
    if not isinstance(dim, int):
        raise NotImplementedError(f"{name} over dim={dim!r}")
    indices = (clang.argmax if name == "max" else clang.argmin)(input, dim, keepdim=True)
    if input.ndim == 0:
        values = input if input.ndim else prims.clone(input)
    else:
        d = clang.canonical_dim(dim, input.ndim)
        values = prims.gather(input, d, indices)
        if not keepdim:
            values, indices = prims.squeeze(values, (d,)), prims.squeeze(indices, (d,))
    return getattr(torch.return_types, name)((values, indices))


@torchsymbol("argmax", "Tensor.argmax")
def argmax(input: TensorProxy, dim: int | None = None, keepdim: bool = False) -> TensorProxy:
    _refuse_empty("argmax", input, dim)
    return clang.argmax(input, dim, keepdim)


@torchsymbol("argmin", "Tensor.argmin")
def argmin(input: TensorProxy, dim: int | None = None, keepdim: bool = False) -> TensorProxy:
    _refuse_empty("argmin", input, dim)
    return clang.argmin(input, dim, keepdim)


def _any_all(reduce: Any, input: TensorProxy, dim: Dims, keepdim: bool) -> TensorProxy:
    if isinstance(dim, tuple | list) and not dim:
        raise NotImplementedError("any or all over no dimensions")
    out = reduce(input, dim, keepdim)
    return clang.convert(out, torch.uint8) if input.dtype is torch.uint8 else out


@torchsymbol("any", "Tensor.any")
def any_(input: TensorProxy, dim: Dims = None, keepdim: bool = False) -> TensorProxy:
    return _any_all(clang.any, input, dim, keepdim)


@torchsymbol("all", "Tensor.all")
def all_(input: TensorProxy, dim: Dims = None, keepdim: bool = False) -> TensorProxy:
    return _any_all(clang.all, input, dim, keepdim)


@torchsymbol("linalg.vector_norm")
def vector_norm(
    x: TensorProxy, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> TensorProxy:
    """(sum |x|^ord)^(1/ord), with the limits for ord of 0 and infinity."""
    dtype = dtype or x.dtype
    if dtypes.is_exact(dtype) or dtypes.is_complex(dtype):
        raise NotImplementedError(f"vector_norm of {dtype}")
    a = clang.convert(x, dtypes.compute_dtype(dtype))
    if ord == math.inf:
        out = clang.amax(clang.abs(a), dim, keepdim)
    elif ord == -math.inf:
        out = clang.amin(clang.abs(a), dim, keepdim)
    elif ord == 0:
        out = clang.sum(clang.convert(clang.ne(a, 0), a.dtype), dim, keepdim)
    elif ord == 1:
        out = clang.sum(clang.abs(a), dim, keepdim)
    elif ord == 2:
        out = root(clang.sum(clang.mul(a, a), dim, keepdim), 2)
    else:
        powers = clang.pow(clang.abs(a), ord) if ord >= 1 else _powers_with_zeros(a, ord)
        out = root(clang.sum(powers, dim, keepdim), ord)
    return clang.convert(out, dtype)


def _powers_with_zeros(a: TensorProxy, exponent: float) -> TensorProxy:
    """|a|^exponent, whose slope at 0 is taken for 0 rather than infinite."""
    is_zero = clang.eq(a, 0)
    at_zero = 0.0 if exponent > 0 else math.inf
    return clang.where(is_zero, at_zero, clang.pow(clang.where(is_zero, 1.0, clang.abs(a)), exponent))


@torchsymbol("root")
def root(a: TensorProxy, degree: float) -> TensorProxy:
    """a^(1/degree), of norms and standard deviations: no function of torch's, which takes its slope at 0 for 0."""
    return clang.sqrt(a) if degree == 2 else clang.pow(a, 1 / degree)


@torchsymbol("linalg.matrix_norm")
def matrix_norm(
    A: TensorProxy,
    ord: float | str = "fro",
    dim: Dims = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> TensorProxy:
    """The root of the sum of squares, or the greatest or least sum of magnitudes along one dimension of two."""
    rows, columns = clang.canonical_dims(dim, A.ndim)
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim, dtype=dtype)
    if isinstance(ord, str) or abs(ord) not in (1, math.inf) or A.numel == 0:
        raise NotImplementedError(f"matrix_norm with ord={ord!r}")
    added, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = vector_norm(A, 1, added, True, dtype=dtype)
    out = (clang.amax if ord > 0 else clang.amin)(sums, compared, True)
    return out if keepdim else prims.squeeze(out, (rows, columns))


@torchsymbol("linalg.norm")
def linalg_norm(
    A: TensorProxy,
    ord: float | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> TensorProxy:
    """A vector's norm over one dimension, or all without `ord`; a matrix's over two."""
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    dims = clang.canonical_dims(dim, A.ndim)
    if len(dims) == 1 and not isinstance(ord, str):
        return vector_norm(A, ord, dims, keepdim, dtype=dtype)
    if len(dims) != 2:
        raise NotImplementedError(f"norm with ord={ord!r} over {len(dims)} dimensions")
    return matrix_norm.meta(A, ord, dims, keepdim, dtype=dtype)


@torchsymbol("norm", "Tensor.norm", "functional.norm")
def norm(
    input: TensorProxy,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> TensorProxy:
    if p is None or p == "fro":
        p = 2
    if not isinstance(p, int | float):
        raise NotImplementedError(f"norm with p={p!r}")
    return vector_norm(input, p, dim, keepdim, dtype=dtype)


@torchsymbol("logsumexp", "Tensor.logsumexp", "special.logsumexp")
def logsumexp(input: TensorProxy, dim: Dims, keepdim: bool = False) -> TensorProxy:
    """log(sum(exp(input))), with the greatest element taken out of the sum."""
    dtype = clang.promoted_dtype(input, kind=clang.Kind.INT_TO_FLOAT)
    a = clang.convert(input, dtypes.compute_dtype(dtype))
    if input.numel == 0 or dtypes.is_complex(dtype):
        raise NotImplementedError("logsumexp of nothing, or of complex numbers")
    greatest = clang.amax(a, dim, keepdim=True)
    finite = clang.where(clang.eq(clang.abs(greatest), math.inf), 0.0, greatest)
    total = clang.log(clang.sum(clang.exp(a - finite), dim, keepdim))
    if not keepdim:
        finite = prims.squeeze(finite, clang.canonical_dims(dim, input.ndim))
    return clang.convert(total + finite, dtype)


@torchsymbol("cumsum", "Tensor.cumsum")
def cumsum(input: TensorProxy, dim: int, *, dtype: torch.dtype | None = None) -> TensorProxy:
    if dtype is None and dtypes.is_exact(input.dtype):
        dtype = torch.int64
    return prims.cumsum(clang.convert(input, dtype or input.dtype), clang.canonical_dim(dim, input.ndim))


@torchsymbol("diff", "Tensor.diff")
def diff(
    input: TensorProxy,
    n: int = 1,
    dim: int = -1,
    prepend: TensorProxy | None = None,
    append: TensorProxy | None = None,
) -> TensorProxy:
    """The differences of neighbours along `dim`, `n` times over."""
    dim = clang.canonical_dim(dim, input.ndim)
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 1:
        raise NotImplementedError("diff of order 0")
    parts = [x for x in (prepend, input, append) if x is not None]
    out = input if len(parts) == 1 else cat.meta(parts, dim)
    subtract = clang.bitwise_xor if out.dtype is torch.bool else clang.sub
    for _ in range(min(n, out.shape[dim])):
        size = out.shape[dim]
        out = subtract(clang.slice_dim(out, dim, 1, size), clang.slice_dim(out, dim, 0, size - 1))
    return out


@torchsymbol("topk", "Tensor.topk")
def topk(input: TensorProxy, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    dim = clang.canonical_dim(dim, input.ndim)
    if not 0 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if input.ndim == 0:
        raise NotImplementedError("topk of a tensor without dimensions")
    return torch.return_types.topk(prims.topk(input, k, dim, largest, sorted))


@torchsymbol("sort", "Tensor.sort")
def sort(input: TensorProxy, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    dim = clang.canonical_dim(dim, input.ndim)
    return torch.return_types.sort(prims.sort(input, dim, descending, stable))


@torchsymbol("argsort", "Tensor.argsort")
def argsort(input: TensorProxy, dim: int = -1, descending: bool = False, stable: bool = False) -> TensorProxy:
    return prims.sort(input, clang.canonical_dim(dim, input.ndim), descending, stable)[1]
