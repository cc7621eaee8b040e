"""Values in a trace: a proxy has a name and what is known of the value without computing it."""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from thunder.core import dtypes


class Proxy:
    """A named value of a trace."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def type_string(self) -> str:
        """What trace comments say of the value."""
        return ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.type_string()}>"


class NumberProxy(Proxy):
    """A Python number of a trace.

    Attributes:
        kind: int, float or bool.
        size: where sizes of inputs tell what it is, the symbolic number that rules compute with; else None.
    """

    __slots__ = ("kind", "size")
    requires_grad = False

    def __init__(self, name: str, kind: type, size: Any = None):
        self.name, self.kind, self.size = name, kind, size

    def type_string(self) -> str:
        return self.kind.__name__ if self.size is None else f"{self.kind.__name__} {self.size.label}"


class TensorProxy(Proxy):
    """A tensor of a trace.

    Attributes:
        shape, strides: tuples of ints, in elements, as torch's.
        dtype, device: torch's own objects; the device has an index if it is a CUDA device.
        requires_grad: whether the value takes part in differentiation.
    """

    __slots__ = ("device", "dtype", "requires_grad", "shape", "strides")

    def __init__(
        self,
        name: str,
        *,
        shape: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        strides: Sequence[int] | None = None,
        requires_grad: bool = False,
    ):
        self.name = name
        self.shape = tuple(shape)
        self.strides = contiguous_strides(self.shape) if strides is None else tuple(strides)
        self.dtype = dtype
        self.device = device
        self.requires_grad = requires_grad

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        """The number of elements. (A property: torch's is a method.)"""
        return prod(self.shape)

    @property
    def is_contiguous(self) -> bool:
        return is_contiguous(self.shape, self.strides)

    def type_string(self) -> str:
        """`cuda:0 f32[2, 2]`"""
        return f"{self.device} {dtypes.short_name(self.dtype)}[{', '.join(map(_size_text, self.shape))}]"


def _size_text(size: Any) -> str:
    return str(size) if type(size) is int else size.label


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a row-major tensor of `shape`, by torch's convention for sizes of 0 and 1."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie row-major without gaps; dimensions of size 1 do not matter."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size == 0:
            return True
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in some order of dimensions."""
    if is_contiguous(shape, strides):
        return True
    order = sorted(range(len(shape)), key=lambda d: (strides[d], shape[d]))
    return is_contiguous([shape[d] for d in reversed(order)], [strides[d] for d in reversed(order)])


def channels_last_order(a: TensorProxy) -> tuple[int, ...] | None:
    """The order of dimensions of torch's channels_last formats if `a` is laid out so, and not row-major too."""
    if a.ndim not in (4, 5) or a.is_contiguous:
        return None
    order = (0, *range(2, a.ndim), 1)
    return order if is_contiguous([a.shape[d] for d in order], [a.strides[d] for d in order]) else None


def dimension_order(inputs: Sequence[TensorProxy], ndim: int) -> list[int]:
    """Dimensions from the slowest to the fastest varying, as an elementwise kernel of torch would lay out its output.

    Every input has `ndim` dimensions after broadcasting; a stride of 0 says nothing about the order.
    """
    order = list(range(ndim - 1, -1, -1))  # fastest first, then sorted by the first input that tells

    def compare(first: int, second: int) -> int:
        """1 if `first` varies slower than `second` (swap), -1 if faster, 0 if nothing tells."""
        for x in inputs:
            a, b = x.strides[first], x.strides[second]
            if a == 0 or b == 0:
                continue
            if a != b:
                return -1 if a < b else 1
            if x.shape[first] > x.shape[second]:
                return 1
        return 0

    for i in range(1, ndim):
        current = i
        for j in range(i - 1, -1, -1):
            outcome = compare(order[j], order[current])
            if outcome > 0:
                order[j], order[current] = order[current], order[j]
                current = j
            elif outcome < 0:
                break
    return order[::-1]


def elementwise_strides(inputs: Sequence[TensorProxy], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of the output of an elementwise operation on `inputs`, all of `shape` (after broadcasting)."""
    if all(x.is_contiguous for x in inputs):
        return contiguous_strides(shape)
    first = inputs[0]
    if is_dense(shape, first.strides) and all(x.strides == first.strides for x in inputs):
        return first.strides
    return strides_in_order(shape, dimension_order(inputs, len(shape)))


def strides_in_order(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Dense strides for `shape` where `order` lists dimensions from the slowest to the fastest varying."""
    dense = contiguous_strides([shape[d] for d in order])
    strides = [0] * len(shape)
    for d, stride in zip(order, dense):
        strides[d] = stride
    return tuple(strides)
