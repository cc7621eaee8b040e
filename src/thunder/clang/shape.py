"""Shapes: canonical dimensions, and the view operations that come down to view primitives."""

import math
from collections.abc import Sequence

import torch

from thunder.core import prims
from thunder.core.proxies import TensorProxy, channels_last_order, contiguous_strides, strides_in_order

__all__ = [
    "canonical_dim",
    "canonical_dims",
    "diagonal_scatter",
    "expand",
    "flatten",
    "infer_size",
    "insert_dims",
    "laid_out",
    "move_dim",
    "permute",
    "reshape",
    "select",
    "slice_dim",
    "squeeze",
    "sum_to",
    "transpose",
    "unsqueeze",
]


def canonical_dim(dim: int, ndim: int) -> int:
    """`dim` counted from the front; torch's IndexError if there is no such dimension."""
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")
    return dim + bound if dim < 0 else dim


def canonical_dims(dims: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The dimensions that a reduction's `dim` argument means: all for None or none."""
    if dims is None or (not isinstance(dims, int) and len(dims) == 0):
        return tuple(range(ndim))
    found = tuple(canonical_dim(d, ndim) for d in ((dims,) if isinstance(dims, int) else dims))
    if len(set(found)) != len(found):
        twice = next(d for d in found if found.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return found if ndim else ()


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """`shape` with its one -1, if any, computed from the number of elements."""
    shape = tuple(shape)
    error = RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    if -1 not in shape:
        if math.prod(shape) != numel:
            raise error
        return shape
    at = shape.index(-1)
    rest = math.prod(shape[:at] + shape[at + 1 :])
    if -1 in shape[at + 1 :]:
        raise RuntimeError("only one dimension can be inferred")
    if rest == 0 and numel == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    if rest <= 0 or numel % rest:
        raise error
    return (*shape[:at], numel // rest, *shape[at + 1 :])


def reshape(a: TensorProxy, shape: Sequence[int]) -> TensorProxy:
    """`a` under another shape; one size may be -1."""
    return prims.reshape(a, infer_size(shape, a.numel))


def expand(a: TensorProxy, shape: Sequence[int]) -> TensorProxy:
    """A view of `a` broadcast to `shape`, in which -1 keeps a size; new also where the shape is the same."""
    new = len(shape) - a.ndim
    if new < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(shape)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({a.ndim})"
        )
    sizes = list(shape)
    for d in range(len(shape)):
        size = a.shape[d - new] if d >= new else 1
        if sizes[d] == -1 and d >= new:
            sizes[d] = size
        elif sizes[d] < 0:
            raise RuntimeError(f"The expanded size of the tensor ({sizes[d]}) isn't allowed in a leading dimension {d}")
        elif size not in (1, sizes[d]):
            raise RuntimeError(
                f"The expanded size of the tensor ({sizes[d]}) must match the existing size ({size}) at "
                f"non-singleton dimension {d}.  Target sizes: {list(shape)}.  Tensor sizes: {list(a.shape)}"
            )
    return prims.broadcast_in_dim(a, tuple(sizes), tuple(range(new, len(shape))))


def permute(a: TensorProxy, dims: Sequence[int]) -> TensorProxy:
    return prims.permute(a, tuple(canonical_dim(d, a.ndim) for d in dims))


def move_dim(a: TensorProxy, source: int, destination: int) -> TensorProxy:
    """`a` with one dimension moved, the others in their order; `a` itself if nothing moves."""
    if source == destination:
        return a
    order = [d for d in range(a.ndim) if d != source]
    order.insert(destination, source)
    return prims.permute(a, tuple(order))


def transpose(a: TensorProxy, dim0: int, dim1: int) -> TensorProxy:
    p, q = canonical_dim(dim0, a.ndim), canonical_dim(dim1, a.ndim)
    order = list(range(a.ndim))
    if a.ndim:
        order[p], order[q] = q, p
    return prims.permute(a, tuple(order))


def diagonal_scatter(a: TensorProxy, value: TensorProxy, offset: int, dim1: int, dim2: int) -> TensorProxy:
    """`a` with `value` in place of what `prims.diagonal` gives; its other dimensions come first in `value`."""
    length = value.shape[-1]
    rows = prims.iota(length, max(-offset, 0), 1, torch.int64, a.device)
    columns = prims.iota(length, max(offset, 0), 1, torch.int64, a.device)
    order = (dim1, dim2, *(d for d in range(a.ndim) if d not in (dim1, dim2)))
    front = prims.permute(value, (value.ndim - 1, *range(value.ndim - 1)))
    written = prims.index_put(prims.permute(a, order), (rows, columns), front, False)
    return prims.permute(written, tuple(order.index(d) for d in range(a.ndim)))


def squeeze(a: TensorProxy, dims: Sequence[int]) -> TensorProxy:
    """`a` without those of `dims` whose size is 1."""
    return prims.squeeze(a, tuple(d for d in dims if a.shape[d] == 1) if a.ndim else ())


def unsqueeze(a: TensorProxy, dim: int) -> TensorProxy:
    return insert_dims(a, (canonical_dim(dim, a.ndim + 1),))


def insert_dims(a: TensorProxy, dims: Sequence[int]) -> TensorProxy:
    """`a` with dimensions of size 1 that are `dims` of the result; `a` itself if there are none."""
    if not dims:
        return a
    kept = tuple(d for d in range(a.ndim + len(dims)) if d not in dims)
    shape = [1] * (a.ndim + len(dims))
    for d, size in zip(kept, a.shape):
        shape[d] = size
    return prims.broadcast_in_dim(a, tuple(shape), kept)


def slice_dim(a: TensorProxy, dim: int, start: int, end: int, step: int = 1) -> TensorProxy:
    """The region from `start` to `end` of dimension `dim`, with 0 <= start <= end <= size."""
    starts, ends, steps = [0] * a.ndim, list(a.shape), [1] * a.ndim
    starts[dim], ends[dim], steps[dim] = start, end, step
    return prims.slice_prim(a, tuple(starts), tuple(ends), tuple(steps))


def select(a: TensorProxy, dim: int, index: int) -> TensorProxy:
    """The slice `index` (not negative) of `a` along `dim`, without that dimension."""
    return prims.squeeze(slice_dim(a, dim, index, index + 1), (dim,))


def flatten(a: TensorProxy, start: int = 0, end: int = -1) -> TensorProxy:
    """`a` with dimensions `start` to `end` made one; `a` itself if that is one already."""
    start, end = canonical_dim(start, a.ndim), canonical_dim(end, a.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if a.ndim == 0:
        return prims.reshape(a, (1,))
    if start == end:
        return a
    return prims.reshape(a, (*a.shape[:start], math.prod(a.shape[start : end + 1]), *a.shape[end + 1 :]))


def laid_out(a: TensorProxy, like: TensorProxy | None = None) -> TensorProxy:
    """`a`, a new tensor, said to lie as torch's kernel would leave it: row-major, or channels_last if `like` is.

    Programs may take views of it that this layout allows; a view of a value runs as a reshape, so whoever computes the
    value may lay it out otherwise.
    """
    order = None if like is None else channels_last_order(like)
    a.strides = contiguous_strides(a.shape) if order is None else strides_in_order(a.shape, order)
    return a


def sum_to(a: TensorProxy, shape: Sequence[int]) -> TensorProxy:
    """`a` summed over the dimensions that broadcasting `shape` to its shape repeats."""
    if a.shape == tuple(shape):
        return a
    new = a.ndim - len(shape)
    summed = [d for d in range(a.ndim) if d < new or shape[d - new] == 1 != a.shape[d]]
    total = prims.sum_prim(a, tuple(summed))
    return total if total.shape == tuple(shape) else prims.reshape(total, tuple(shape))
