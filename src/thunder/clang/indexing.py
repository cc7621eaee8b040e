"""Indexing a tensor with integers, slices, None and Ellipsis, and what is left of it for index tensors."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder.clang.promotion import broadcast_shapes, expand_to
from thunder.clang.shape import insert_dims
from thunder.core import dtypes, prims
from thunder.core.numbers import SymbolicSize, as_size
from thunder.core.proxies import TensorProxy

__all__ = ["Region", "basic_index", "common_indices", "parse_index", "tensor_index"]


@dataclass(slots=True)
class Region:
    """What the basic part of an index means.

    Attributes:
        starts, ends, steps: the region of the tensor, for each of its dimensions.
        dropped: dimensions of the tensor that an integer removes.
        inserted: dimensions of the result that None adds.
        tensors: dimensions of the result that an index tensor replaces, each with that.
    """

    starts: list[int]
    ends: list[int]
    steps: list[int]
    dropped: list[int]
    inserted: list[int]
    tensors: dict[int, TensorProxy]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape of the region, before integers drop dimensions and None adds some."""
        return tuple(max(0, -(-(e - b) // s)) for b, e, s in zip(self.starts, self.ends, self.steps))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what basic indexing gives."""
        kept = [size for d, size in enumerate(self.sizes) if d not in self.dropped]
        for d in self.inserted:
            kept.insert(d, 1)
        return tuple(kept)


def parse_index(shape: Sequence[int], key: Any) -> Region:
    """The region that `key` (one index or a tuple) means for a tensor of `shape`; torch's errors if it means none."""
    keys = list(key) if isinstance(key, tuple) else [key]
    consumed = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if consumed > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    region = Region([0] * len(shape), list(shape), [1] * len(shape), [], [], {})
    dim = out = 0
    for k in keys:
        if k is Ellipsis:
            whole = len(shape) - consumed
            dim, out, consumed = dim + whole, out + whole, len(shape)
        elif k is None:
            region.inserted.append(out)
            out += 1
        else:
            out += _parse_one(region, shape[dim], dim, out, k)
            dim += 1
    return region


def _parse_one(region: Region, size: int, dim: int, out: int, k: Any) -> int:
    """Notes the index `k` of dimension `dim`; how many dimensions it leaves (0 or 1)."""
    if isinstance(k, bool):
        raise NotImplementedError("indexing with True or False")
    if isinstance(k, slice):
        if k.step is not None and k.step <= 0:
            raise ValueError("step must be greater than zero")
        start, end, region.steps[dim] = _indices(k, size)
        region.starts[dim], region.ends[dim] = start, max(start, end)
        return 1
    if isinstance(k, TensorProxy):
        if k.dtype in (torch.bool, torch.uint8):
            raise NotImplementedError("indexing with a mask: the result's shape depends on values")
        if not dtypes.is_exact(k.dtype):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        region.tensors[out] = k
        return 1
    if not hasattr(k, "__index__"):
        raise NotImplementedError(f"indexing with {type(k).__name__}")
    at = as_size(k)
    if not -size <= at < size:
        raise IndexError(f"index {at} is out of bounds for dimension {dim} with size {size}")
    at += size if at < 0 else 0
    region.starts[dim], region.ends[dim] = at, at + 1
    region.dropped.append(dim)
    return 0


def _indices(k: slice, size: int) -> tuple[int, int, int]:
    """`k.indices(size)`, where sizes need not be known; the step is positive."""
    if type(size) is int and not isinstance(k.start, SymbolicSize) and not isinstance(k.stop, SymbolicSize):
        return k.indices(size)
    return _bound(k.start, 0, size), _bound(k.stop, size, size), 1 if k.step is None else operator.index(k.step)


def _bound(at: Any, default: int, size: int) -> int:
    if at is None:
        return default
    at = as_size(at)
    at = at + size if at < 0 else at
    return 0 if at < 0 else size if at > size else at


def basic_index(a: TensorProxy, region: Region) -> TensorProxy:
    """The view of `a` that `region` is; a new view also where that is all of `a`."""
    out = a
    whole = region.sizes == a.shape and all(step == 1 for step in region.steps)
    if not whole or not (region.dropped or region.inserted):
        out = prims.slice_prim(a, tuple(region.starts), tuple(region.ends), tuple(region.steps))
    if region.dropped:
        out = prims.squeeze(out, tuple(region.dropped))
    return insert_dims(out, region.inserted)


def tensor_index(a: TensorProxy, tensors: dict[int, TensorProxy]) -> TensorProxy:
    """`a` indexed by integer tensors, each in the dimension that is its key."""
    if len(tensors) == 1:
        ((dim, index),) = tensors.items()
        if index.ndim <= 1:
            return prims.take(a, index, dim)
    return prims.index(a, common_indices(a, tensors))


def common_indices(a: TensorProxy, tensors: dict[int, TensorProxy]) -> tuple[TensorProxy | None, ...]:
    """The index tensors at their dimensions, None between them, all of one shape."""
    try:
        shape = broadcast_shapes(*(x.shape for x in tensors.values()))
    except RuntimeError:
        shapes = ", ".join(str(list(x.shape)) for x in tensors.values())
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    return tuple(expand_to(tensors[d], shape) if d in tensors else None for d in range(max(tensors) + 1))
