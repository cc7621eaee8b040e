"""Diagonals, rotations and blocks of the PyTorch language."""

from collections.abc import Sequence
from itertools import pairwise

import torch

from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.torch.joining import cat
from thunder.torch.language import torchsymbol
from thunder.torch.shape import flip, tensor_split


def _two_dims(a: TensorProxy, dim1: int, dim2: int) -> tuple[int, int]:
    p, q = clang.canonical_dim(dim1, a.ndim), clang.canonical_dim(dim2, a.ndim)
    if p == q:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return p, q


@torchsymbol("diagonal", "Tensor.diagonal")
def diagonal(input: TensorProxy, offset: int = 0, dim1: int = 0, dim2: int = 1) -> TensorProxy:
    """A view of the elements at (i, i + offset) of two dimensions, which become the last one."""
    p, q = _two_dims(input, dim1, dim2)
    return prims.diagonal(_at_the_diagonal(input, offset, p, q), offset, p, q)


def _at_the_diagonal(a: TensorProxy, offset: int, p: int, q: int) -> TensorProxy:
    if offset <= -a.shape[p] or offset >= a.shape[q]:
        raise NotImplementedError("a diagonal outside of the matrix")
    return a


@torchsymbol("linalg.diagonal")
def linalg_diagonal(A: TensorProxy, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> TensorProxy:
    return diagonal.meta(A, offset, dim1, dim2)


@torchsymbol("diagonal_scatter", "Tensor.diagonal_scatter")
def diagonal_scatter(
    input: TensorProxy, src: TensorProxy, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> TensorProxy:
    """A copy of `input` in which `input.diagonal(offset, dim1, dim2)` is `src`."""
    p, q = _two_dims(input, dim1, dim2)
    _at_the_diagonal(input, offset, p, q)
    length = min(input.shape[p] - max(-offset, 0), input.shape[q] - max(offset, 0))
    shape = (*(size for d, size in enumerate(input.shape) if d not in (p, q)), length)
    if src.shape != shape:
        raise RuntimeError(f"expected src to have a size equal to {list(shape)}, but got {list(src.shape)}")
    out = clang.diagonal_scatter(input, clang.convert(src, input.dtype), offset, p, q)
    return prims.contiguous(out) if not out.is_contiguous else out


@torchsymbol("diag_embed", "Tensor.diag_embed")
def diag_embed(input: TensorProxy, offset: int = 0, dim1: int = -2, dim2: int = -1) -> TensorProxy:
    """Matrices in two new dimensions that have the last dimension of `input` as their diagonal, 0 elsewhere."""
    if input.ndim == 0:
        raise NotImplementedError("diag_embed of a number")
    p, q = (clang.canonical_dim(d, input.ndim + 1) for d in (dim1, dim2))
    if p == q:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = input.shape[-1] + abs(offset)
    row = prims.iota(size, 0, 1, torch.int64, input.device)
    column = prims.iota(size, -offset, 1, torch.int64, input.device)
    is_diagonal = clang.eq(column, clang.unsqueeze(row, 1))
    low = [0] * (input.ndim - 1)
    padded = input if not offset else prims.pad(input, _zero(input), (*low, max(offset, 0)), (*low, max(-offset, 0)))
    out = clang.where(is_diagonal, clang.unsqueeze(padded, input.ndim - 1), _zero(input))
    order = [d for d in range(out.ndim) if d not in (p, q)]
    at = {p: out.ndim - 2, q: out.ndim - 1}
    rest = iter(range(len(order)))
    dims = tuple(at[d] if d in at else next(rest) for d in range(out.ndim))
    return clang.laid_out(out) if dims == tuple(range(out.ndim)) else prims.contiguous(prims.permute(out, dims))


def _zero(a: TensorProxy) -> bool | float | complex:
    if a.dtype.is_complex:
        raise NotImplementedError("padding of complex numbers")
    return clang.convert(0, a.dtype)


@torchsymbol("diag", "Tensor.diag")
def diag(input: TensorProxy, diagonal: int = 0) -> TensorProxy:
    """The matrix with the diagonal `input`, or the diagonal of a matrix."""
    if input.ndim == 1:
        return diag_embed.meta(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    _at_the_diagonal(input, diagonal, 0, 1)
    return prims.contiguous(prims.diagonal(input, diagonal, 0, 1))


@torchsymbol("diagflat", "Tensor.diagflat")
def diagflat(input: TensorProxy, offset: int = 0) -> TensorProxy:
    return diag_embed.meta(prims.reshape(input, (input.numel,)), offset)


@torchsymbol("trace", "Tensor.trace")
def trace(input: TensorProxy) -> TensorProxy:
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise RuntimeError("trace: expected a matrix")
    if 0 in input.shape or input.dtype is torch.bool:
        raise NotImplementedError("trace of nothing, or of bool")
    return clang.sum(prims.diagonal(input, 0, 0, 1))


@torchsymbol("rot90", "Tensor.rot90")
def rot90(input: TensorProxy, k: int = 1, dims: Sequence[int] = (0, 1)) -> TensorProxy:
    """`input` turned `k` times by 90 degrees from the first of `dims` towards the second."""
    if len(dims) != 2 or input.ndim < 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {list(dims)}")
    p, q = (clang.canonical_dim(d, input.ndim) for d in dims)
    if p == q:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns = k % 4
    if turns == 0:
        return prims.contiguous(input)
    if turns == 2:
        return flip.meta(input, (p, q))
    flipped = prims.flip(input, (q if turns == 1 else p,))
    return clang.transpose(flipped, p, q)


@torchsymbol("fliplr", "Tensor.fliplr")
def fliplr(input: TensorProxy) -> TensorProxy:
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return prims.flip(input, (1,))


@torchsymbol("flipud", "Tensor.flipud")
def flipud(input: TensorProxy) -> TensorProxy:
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return prims.flip(input, (0,))


def _split_along(name: str, dim: int, least: int) -> None:
    def meta(input: TensorProxy, indices_or_sections: int | Sequence[int]) -> tuple[TensorProxy, ...]:
        if input.ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got {input.ndim}")
        at = 0 if input.ndim == 1 else dim
        sections = indices_or_sections
        if isinstance(sections, int) and (sections <= 0 or input.shape[at] % sections):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {at}, but {sections} does not divide")
        return tensor_split.meta(input, sections, at)

    meta.__name__ = name
    torchsymbol(name, f"Tensor.{name}")(meta)


for _name, _dim, _least in (("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)):
    _split_along(_name, _dim, _least)


def _at_least(n: int) -> None:
    def meta(*tensors: TensorProxy) -> TensorProxy | tuple[TensorProxy, ...]:
        if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
            return tuple(_with_dims(x, n) for x in tensors[0])
        out = tuple(_with_dims(x, n) for x in tensors)
        return out[0] if len(out) == 1 else out

    meta.__name__ = f"atleast_{n}d"
    torchsymbol(f"atleast_{n}d")(meta)


def _with_dims(a: TensorProxy, n: int) -> TensorProxy:
    if a.ndim >= n:
        return a
    if n < 3:
        return prims.reshape(a, (1,) * (n - a.ndim) + a.shape)
    return prims.reshape(a, {0: (1, 1, 1), 1: (1, *a.shape, 1), 2: (*a.shape, 1)}[a.ndim])


for _n in (1, 2, 3):
    _at_least(_n)


@torchsymbol("block_diag", "functional.block_diag")
def block_diag(*tensors: TensorProxy) -> TensorProxy:
    """The matrices (or numbers, or rows) along the diagonal of one, 0 elsewhere."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    if not tensors or any(x.ndim > 2 or x.dtype.is_complex for x in tensors):
        raise NotImplementedError("block_diag of tensors with more than two dimensions")
    dtype = clang.result_type(*tensors)
    blocks = [clang.convert(_with_dims(x, 2), dtype) for x in tensors]
    widths = [0]
    for x in blocks:
        widths.append(widths[-1] + x.shape[1])
    zero = clang.convert(0, dtype)
    rows = [
        prims.pad(x, zero, (0, before), (0, widths[-1] - behind))
        for x, (before, behind) in zip(blocks, pairwise(widths))
    ]
    return prims.cat(rows, 0) if len(rows) > 1 else rows[0]


@torchsymbol("cartesian_prod", "functional.cartesian_prod")
def cartesian_prod(*tensors: TensorProxy) -> TensorProxy:
    """Every choice of one element from each vector, as rows."""
    if any(x.ndim != 1 for x in tensors) or len({x.dtype for x in tensors}) != 1 or len(tensors) < 2:
        raise NotImplementedError("cartesian_prod of other than vectors of one dtype")
    shape = tuple(x.shape[0] for x in tensors)
    columns = [prims.broadcast_in_dim(x, shape, (d,)) for d, x in enumerate(tensors)]
    flat = [clang.unsqueeze(prims.reshape(x, (x.numel,)), 1) for x in columns]
    return cat.meta(flat, 1)
