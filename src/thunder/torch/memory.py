"""Memory read in another way, and views that are copied, in the PyTorch language."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder import clang
from thunder.core import memory_prims, prims
from thunder.core.proxies import TensorProxy
from thunder.torch import complex_numbers, diagonals, shape  # noqa: F401  their views are copied here
from thunder.torch.language import operations, torchsymbol


def fits_in(a: TensorProxy, sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a view of the memory of `a` shows elements of `a` only, each of them once; `a` is row-major."""
    reach = 0
    for stride, size in sorted(zip(strides, sizes)):
        if size > 1 and stride <= reach:
            return False
        reach += (size - 1) * stride
    return a.is_contiguous and 0 not in sizes and reach < a.numel


@torchsymbol("as_strided", "Tensor.as_strided")
def as_strided(
    input: TensorProxy, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> TensorProxy:
    """The memory of `input` under another shape and other strides."""
    if len(size) != len(stride) or min((*size, *stride, storage_offset or 0), default=0) < 0:
        raise NotImplementedError("as_strided with sizes and strides that torch refuses")
    return memory_prims.as_strided(input, tuple(size), tuple(stride), storage_offset)


@torchsymbol("Tensor.unfold")
def unfold(self: TensorProxy, dimension: int, size: int, step: int) -> TensorProxy:
    """The windows of `size` elements along a dimension, one at every `step`, as a last dimension."""
    dim = clang.canonical_dim(dimension, self.ndim)
    if not 0 <= size <= (self.shape[dim] if self.ndim else 1) or step <= 0:
        raise NotImplementedError("unfold into windows that torch refuses")
    return memory_prims.unfold(self, dim, size, step)


def scattered(a: TensorProxy, value: TensorProxy, sizes: Sequence[int], strides: Sequence[int]) -> TensorProxy:
    """A row-major `a` with `value` where its memory has the view of these sizes and strides."""
    at = prims.full(tuple(sizes), 0, torch.int64, a.device)
    for d, (size, stride) in enumerate(zip(sizes, strides)):
        steps = prims.iota(size, 0, stride, torch.int64, a.device)
        at = at + prims.broadcast_in_dim(steps, tuple(sizes), (d,))
    flat, where, values = (prims.reshape(x, (x.numel,)) for x in (a, at, value))
    return prims.reshape(prims.index_put(flat, (where,), values, False), a.shape)


def written_windows(
    a: TensorProxy, value: TensorProxy, dim: int, size: int, step: int, accumulate: bool
) -> TensorProxy:
    """`a` with `value` in place of its windows `a.unfold(dim, size, step)`, or added to these if `accumulate`."""
    count = value.shape[dim]
    starts, inside = (prims.iota(n, 0, by, torch.int64, a.device) for n, by in ((count, step), (size, 1)))
    at = clang.unsqueeze(starts, 1) + clang.unsqueeze(inside, 0)
    moved = clang.move_dim(value, value.ndim - 1, dim + 1)
    return prims.index_put(a, (None,) * dim + (at,), moved, accumulate)


def _copying(name: str, view: Callable) -> None:
    def copy(*args: Any, **kwargs: Any) -> TensorProxy | list[TensorProxy] | tuple[TensorProxy, ...]:
        out = view(*args, **kwargs)
        return prims.contiguous(out) if isinstance(out, TensorProxy) else type(out)(map(prims.contiguous, out))

    copy.__name__ = name
    torchsymbol()(copy)


for _name in (
    *("as_strided", "diagonal", "expand", "permute", "select", "split", "squeeze", "t"),
    *("transpose", "unbind", "unfold", "unsqueeze", "view", "view_as_complex", "view_as_real"),
):
    _copying(f"{_name}_copy", operations[_name].meta)
_copying("split_with_sizes_copy", operations["split"].meta)


def _narrow(input: TensorProxy, dim: int, *rest: Any, **named: Any) -> TensorProxy:
    if not -input.ndim <= dim < input.ndim:
        raise NotImplementedError("torch has an error of its own for it")
    return operations["narrow"].meta(input, dim, *rest, **named)


_copying("narrow_copy", _narrow)
_copying("alias_copy", lambda input: input)
