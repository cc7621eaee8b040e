"""Primitives over windows of the last dimensions of a tensor, as many as there are numbers in the window's sizes."""

from collections.abc import Sequence

import torch

from thunder.core.prims import prim
from thunder.core.proxies import TensorProxy, channels_last_order, strides_in_order
from thunder.core.symbol import Tag
from thunder.core.trace import tensor


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """How many windows there are along a dimension; with `ceil_mode` also one that begins in it and ends outside."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def _pooled(
    a: TensorProxy,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    dtype: torch.dtype | None = None,
) -> TensorProxy:
    sizes = zip(a.shape[-len(kernel) :], kernel, stride, padding, dilation)
    return _resized(a, tuple(pooled_size(*size, ceil_mode) for size in sizes), dtype)


def _resized(a: TensorProxy, sizes: Sequence[int], dtype: torch.dtype | None = None) -> TensorProxy:
    """`a` with other last sizes, channels_last where `a` is."""
    shape, order = (*a.shape[: -len(sizes)], *sizes), channels_last_order(a)
    return tensor(a, shape=shape, dtype=dtype, strides=order and strides_in_order(shape, order))


@prim(Tag.REDUCTION)
def max_pool(
    a: TensorProxy,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> tuple[TensorProxy, TensorProxy]:
    """The maximum of each window, and where it stands among the pooled dimensions made one."""
    windows = (kernel, stride, padding, dilation, ceil_mode)
    return _pooled(a, *windows), _pooled(a, *windows, torch.int64)


@prim(Tag.REDUCTION)
def avg_pool(
    a: TensorProxy,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> TensorProxy:
    """The mean of each window, or its sum over `divisor_override`."""
    return _pooled(a, kernel, stride, padding, (1,) * len(kernel), ceil_mode)


@prim(Tag.REDUCTION)
def adaptive_avg_pool(a: TensorProxy, sizes: Sequence[int]) -> TensorProxy:
    """The means of windows that share out the last dimensions into `sizes`."""
    return _resized(a, sizes)


@prim(Tag.REDUCTION)
def adaptive_max_pool(a: TensorProxy, sizes: Sequence[int]) -> tuple[TensorProxy, TensorProxy]:
    """The maxima of windows that share out the last dimensions into `sizes`, and where they stand."""
    return _resized(a, sizes), _resized(a, sizes, torch.int64)


@prim()
def grid_sample(a: TensorProxy, grid: TensorProxy, mode: str, padding_mode: str, align_corners: bool) -> TensorProxy:
    """`a` at the positions that the last dimension of `grid` gives, -1 to 1 along each of its spatial dimensions."""
    return tensor(a, shape=(*a.shape[:2], *grid.shape[1:-1]))
