"""Checks that tensors have the metadata they had: torch's C++ guards where this torch has them, else plain Python.

This file is the only one that uses torch's guards.
"""

from collections.abc import Sequence
from typing import Any

import torch

from thunder.core.dtypes import short_name
from thunder.core.proxies import contiguous_strides

try:
    from torch._C._dynamo.guards import TensorGuards
except ImportError:  # private to torch: may move
    TensorGuards = None


class PlainTensorGuards:
    """Same class, dtype, device, shape, strides and requires_grad as the example tensors."""

    def __init__(self, examples: Sequence[torch.Tensor], varying: Sequence[tuple[bool, ...]]):
        self.expected = [(_metadata(x, sizes), sizes) for x, sizes in zip(examples, varying)]

    def check(self, *tensors: Any) -> bool:
        return all(
            isinstance(x, torch.Tensor) and _metadata(x, sizes) == expected
            for x, (expected, sizes) in zip(tensors, self.expected)
        )


def _metadata(x: torch.Tensor, varying: tuple[bool, ...]) -> tuple[Any, ...]:
    strides = None if any(varying) else x.stride()
    return type(x), x.dtype, x.device, _fixed(x.shape, varying), strides, x.requires_grad


def _fixed(sizes: Sequence[int], varying: tuple[bool, ...]) -> list[int | None]:
    """The sizes, None for those that may vary."""
    return [None if d < len(varying) and varying[d] else size for d, size in enumerate(sizes)]


def tensor_guards(examples: Sequence[torch.Tensor], varying: Sequence[tuple[bool, ...]]) -> Any:
    """An object whose `check(*tensors)` says whether tensors have the metadata of the examples.

    Args:
        varying: for each of the examples, which of its sizes may be others; its strides then too. None, if empty.
    """
    # torch's guards do not ask a subclass what it says of itself.
    plain = all(type(x) in (torch.Tensor, torch.nn.Parameter) for x in examples)
    if TensorGuards is None or not plain:
        return PlainTensorGuards(examples, varying)
    sizes = [_fixed(x.shape, which) for x, which in zip(examples, varying)]
    strides = [[None] * x.ndim if any(which) else list(x.stride()) for x, which in zip(examples, varying)]
    return TensorGuards(*examples, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)


def share_no_memory(tensors: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether no two of `tensors` share memory, nor one of them and one of the others."""
    storages = {x.untyped_storage()._cdata for x in tensors}
    return len(storages) == len(tensors) and storages.isdisjoint(x.untyped_storage()._cdata for x in others)


def is_row_major(x: torch.Tensor) -> bool:
    """Whether strides are those of a new tensor of the shape."""
    return x.stride() == contiguous_strides(x.shape)


def describe_tensor(x: Any, varying: tuple[bool, ...] = ()) -> str:
    """Everything of a tensor that a guard looks at."""
    if not isinstance(x, torch.Tensor):
        return type(x).__name__
    shape = ", ".join("*" if size is None else str(size) for size in _fixed(x.shape, varying))
    text = f'"{x.device} {short_name(x.dtype)}[{shape}]"'
    kind = "" if type(x) in (torch.Tensor, torch.nn.Parameter) else f" {type(x).__name__}"
    strides = "" if x.is_contiguous() else f" strides {tuple(x.stride())}"
    return f"{text}{kind}{strides}{' requires grad' if x.requires_grad else ''}"
