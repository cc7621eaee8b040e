"""Primitives that read a tensor's memory in another way: with other strides, as another dtype, window by window."""

from collections.abc import Sequence

import torch

from thunder.core.prims import prim
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Tag
from thunder.core.trace import tensor


@prim(Tag.VIEW, Tag.SHAPE_ONLY)
def as_strided(a: TensorProxy, shape: Sequence[int], strides: Sequence[int], storage_offset: int | None) -> TensorProxy:
    """The memory of `a` under a shape and strides; it begins where `a` does if there is no offset."""
    return tensor(a, shape=shape, strides=strides)


@prim(Tag.VIEW)
def bitcast(a: TensorProxy, dtype: torch.dtype) -> TensorProxy:
    """The bits of `a` as another dtype; where its elements are longer or shorter, the last dimension is the other."""
    before, after = a.dtype.itemsize, dtype.itemsize
    if before == after:
        return tensor(a, dtype=dtype, strides=a.strides)
    shape = (*a.shape[:-1], a.shape[-1] * before // after)
    return tensor(a, shape=shape, dtype=dtype, strides=(*(s * before // after for s in a.strides[:-1]), 1))


@prim(Tag.VIEW, Tag.SHAPE_ONLY)
def unfold(a: TensorProxy, dim: int, size: int, step: int) -> TensorProxy:
    """The windows of `size` elements that begin at every `step`th one along `dim`, as a last dimension of the view."""
    if a.ndim == 0:
        return tensor(a, shape=(size,), strides=(1,))
    shape = (*a.shape[:dim], (a.shape[dim] - size) // step + 1, *a.shape[dim + 1 :], size)
    strides = (*a.strides[:dim], a.strides[dim] * step, *a.strides[dim + 1 :], a.strides[dim])
    return tensor(a, shape=shape, strides=strides)
