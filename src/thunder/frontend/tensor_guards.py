"""Checks that tensors have the metadata they had: torch's C++ guards where this torch has them, else plain Python.

This file is the only one that uses torch's guards.
"""

from collections.abc import Sequence
from typing import Any

import torch

from thunder.core.dtypes import short_name

try:
    from torch._C._dynamo.guards import TensorGuards
except ImportError:  # private to torch: may move
    TensorGuards = None


class PlainTensorGuards:
    """Same class, dtype, device, shape, strides and requires_grad as the example tensors."""

    def __init__(self, examples: Sequence[torch.Tensor]):
        self.expected = [_metadata(x) for x in examples]

    def check(self, *tensors: Any) -> bool:
        return all(isinstance(x, torch.Tensor) and _metadata(x) == e for x, e in zip(tensors, self.expected))


def _metadata(x: torch.Tensor) -> tuple[Any, ...]:
    return type(x), x.dtype, x.device, x.shape, x.stride(), x.requires_grad


def tensor_guards(examples: Sequence[torch.Tensor]) -> Any:
    """An object whose `check(*tensors)` says whether tensors have the metadata of the examples."""
    # torch's guards do not ask a subclass what it says of itself.
    plain = all(type(x) in (torch.Tensor, torch.nn.Parameter) for x in examples)
    if TensorGuards is None or not plain:
        return PlainTensorGuards(examples)
    sizes = [list(x.shape) for x in examples]
    strides = [list(x.stride()) for x in examples]
    return TensorGuards(*examples, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)


def share_no_memory(tensors: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Whether no two of `tensors` share memory, nor one of them and one of the others."""
    storages = {x.untyped_storage()._cdata for x in tensors}
    return len(storages) == len(tensors) and storages.isdisjoint(x.untyped_storage()._cdata for x in others)


def describe_tensor(x: Any) -> str:
    """Everything of a tensor that a guard looks at."""
    if not isinstance(x, torch.Tensor):
        return type(x).__name__
    text = f'"{x.device} {short_name(x.dtype)}[{", ".join(map(str, x.shape))}]"'
    kind = "" if type(x) in (torch.Tensor, torch.nn.Parameter) else f" {type(x).__name__}"
    strides = "" if x.is_contiguous() else f" strides {tuple(x.stride())}"
    return f"{text}{kind}{strides}{' requires grad' if x.requires_grad else ''}"
