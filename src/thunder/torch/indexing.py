"""Indexing, gathering and scattering of the PyTorch language."""

from collections.abc import Sequence
from typing import Any

import torch

from thunder import clang
from thunder.clang.indexing import Region
from thunder.core import dtypes, prims
from thunder.core.prims import preserved_strides
from thunder.core.proxies import TensorProxy
from thunder.torch.language import Number, is_number, torchsymbol


def _with_tensors(key: Any, device: torch.device) -> Any:
    """`key` with lists of integers made tensors; a list of slices and such is a tuple."""
    if isinstance(key, tuple):
        return tuple(_with_tensors(k, device) for k in key)
    if isinstance(key, list | range):
        if not all(isinstance(x, int) and not isinstance(x, bool) for x in key):
            raise NotImplementedError("indexing with a nested list")
        return prims.tensor_from_sequence(list(key), torch.int64, device)
    return key


@torchsymbol("Tensor.__getitem__")
def getitem(self: TensorProxy, index: Any) -> TensorProxy:
    """`self[index]`: a view where the index holds slices, None, Ellipsis and integers only, also those of tensors."""
    region = clang.parse_index(self.shape, _with_tensors(index, self.device))
    if not region.tensors:
        return clang.basic_index(self, region)
    whole = region.sizes == self.shape and set(region.steps) <= {1}
    base = self if whole and not region.dropped and not region.inserted else clang.basic_index(self, region)
    if any(x.ndim for x in region.tensors.values()):
        return clang.tensor_index(base, region.tensors)
    for dim in sorted(region.tensors, reverse=True):
        base = prims.select(base, region.tensors[dim], dim)
    return base


@torchsymbol("Tensor.__setitem__")
def setitem(self: TensorProxy, index: Any, value: TensorProxy | Number) -> TensorProxy:
    """What `self` holds after `self[index] = value`."""
    if isinstance(index, TensorProxy) and index.dtype is torch.bool:
        return _set_masked(self, index, value)
    keys, masks = _without_masks(self, _with_tensors(index, self.device))
    region = clang.parse_index(self.shape, keys)
    if not region.tensors:
        return _set_region(self, region, value)
    # The basic part of the index is a view; the elements of it that the tensors name are written, then the view is.
    whole = region.sizes == self.shape and not region.dropped and not region.inserted and set(region.steps) <= {1}
    base = self if whole else clang.basic_index(self, region)
    indices = list(clang.common_indices(base, region.tensors)) if not masks else _beside_masks(region.tensors, masks)
    written = prims.index_put(base, tuple(indices), _as_tensor(self, value), False)
    return written if whole else _set_region(self, region, written)


def _without_masks(self: TensorProxy, index: Any) -> tuple[tuple, dict[int, TensorProxy]]:
    """The index with masks of one dimension taken for tensors of indices, and these masks by their identity."""
    keys = index if isinstance(index, tuple) else (index,)
    masks = {id(k): k for k in keys if isinstance(k, TensorProxy) and k.dtype in (torch.bool, torch.uint8)}
    if any(k.ndim != 1 for k in masks.values()):
        raise NotImplementedError("assignment to an index with a mask of several dimensions beside others")
    if not masks:
        return keys, {}
    stand_ins = {name: prims.full((1,), 0, torch.int64, self.device) for name in masks}
    return tuple(stand_ins.get(id(k), k) for k in keys), {id(stand_ins[name]): k for name, k in masks.items()}


def _beside_masks(tensors: dict[int, TensorProxy], masks: dict[int, TensorProxy]) -> list[TensorProxy | None]:
    """The index tensors at their dimensions, and the masks at theirs: torch's kernel takes both."""
    chosen = {d: masks.get(id(x), x) for d, x in tensors.items()}
    return [chosen.get(d) for d in range(max(chosen) + 1)]


def _as_tensor(self: TensorProxy, value: TensorProxy | Number) -> TensorProxy:
    """`value` as a tensor of the dtype and on the device of `self`."""
    if is_number(value):
        return prims.full((), clang.convert(value, self.dtype), self.dtype, self.device)
    return clang.on_device(clang.convert(value, self.dtype), self.device)


def _set_masked(self: TensorProxy, mask: TensorProxy, value: TensorProxy | Number) -> TensorProxy:
    """Elements where `mask`, which covers the first dimensions of `self`, holds become `value`."""
    if mask.shape != self.shape[: mask.ndim]:
        raise IndexError(
            f"The shape of the mask {list(mask.shape)} does not match the shape of the indexed tensor "
            f"{list(self.shape)}"
        )
    if not is_number(value) and value.ndim > self.ndim - mask.ndim:
        return prims.index_put(self, (mask,), _as_tensor(self, value), False)
    spread = prims.broadcast_in_dim(mask, self.shape, tuple(range(mask.ndim))) if mask.ndim < self.ndim else mask
    value = clang.convert(value, self.dtype)
    if not is_number(value):
        value = clang.on_device(value, self.device)
    out = clang.where(spread, value, self)
    out.strides = preserved_strides(self)
    return out


def _set_region(self: TensorProxy, region: Region, value: TensorProxy | Number) -> TensorProxy:
    if is_number(value):
        source = prims.full(region.sizes, clang.convert(value, self.dtype), self.dtype, self.device)
    else:
        source = clang.on_device(clang.convert(value, self.dtype), self.device)
        extra = source.ndim - len(region.shape)
        if extra > 0 and set(source.shape[:extra]) <= {1}:  # torch drops leading sizes of 1
            source = prims.squeeze(source, tuple(range(extra)))
        source = clang.expand_to(_fitting(source, region.shape), region.shape)
        if source.shape != region.sizes:
            source = prims.reshape(source, region.sizes)
    return prims.slice_scatter(self, source, tuple(region.starts), tuple(region.ends), tuple(region.steps))


def _fitting(a: TensorProxy, shape: Sequence[int]) -> TensorProxy:
    """`a`, if it broadcasts to `shape`."""
    new = len(shape) - a.ndim
    if new < 0 or any(size not in (1, shape[new + d]) for d, size in enumerate(a.shape)):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(a.shape)} cannot be broadcast to indexing result of shape "
            f"{list(shape)}"
        )
    return a


def _check_index(name: str, index: TensorProxy, allowed: tuple[torch.dtype, ...] = (torch.int64,)) -> None:
    if not dtypes.is_exact(index.dtype):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if index.dtype not in allowed:
        raise NotImplementedError(f"{name} with an index of {index.dtype}")


@torchsymbol("index_select", "Tensor.index_select")
def index_select(input: TensorProxy, dim: int, index: TensorProxy) -> TensorProxy:
    _check_index("index_select", index, (torch.int64, torch.int32))
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if input.ndim == 0:
        raise NotImplementedError("index_select of a tensor without dimensions")
    if index.ndim == 0:
        index = clang.unsqueeze(index, 0)
    return prims.take(input, index, clang.canonical_dim(dim, input.ndim))


@torchsymbol("gather", "Tensor.gather")
def gather(input: TensorProxy, dim: int, index: TensorProxy, *, sparse_grad: bool = False) -> TensorProxy:
    """out[i][j] = input[index[i][j]][j] for dim 0, and so on."""
    _check_index("gather", index)
    if input.ndim != index.ndim or input.ndim == 0:
        raise NotImplementedError("gather with tensors of different rank")
    dim = clang.canonical_dim(dim, input.ndim)
    for d in range(input.ndim):
        if d != dim and index.shape[d] > input.shape[d]:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than self "
                f"{list(input.shape)} apart from dimension {dim}"
            )
    return prims.gather(input, dim, index)


@torchsymbol("take_along_dim", "Tensor.take_along_dim")
def take_along_dim(input: TensorProxy, indices: TensorProxy, dim: int | None = None) -> TensorProxy:
    """`gather` with the other dimensions broadcast."""
    _check_index("take_along_dim", indices)
    if dim is None:
        input, indices, dim = (*(prims.reshape(x, (x.numel,)) for x in (input, indices)), 0)
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = clang.canonical_dim(dim, input.ndim)
    one = [1 if d == dim else size for d, size in enumerate(input.shape)]
    other = [1 if d == dim else size for d, size in enumerate(indices.shape)]
    common = list(clang.broadcast_shapes(one, other))
    source, chosen = list(common), list(common)
    source[dim], chosen[dim] = input.shape[dim], indices.shape[dim]
    wrapped = clang.where(indices < 0, indices + input.shape[dim], indices)
    return prims.gather(clang.expand_to(input, source), dim, clang.expand_to(wrapped, chosen))


@torchsymbol("scatter", "Tensor.scatter")
def scatter(
    input: TensorProxy,
    dim: int,
    index: TensorProxy,
    src: TensorProxy | Number | None = None,
    *,
    value: Number | None = None,
    reduce: str | None = None,
) -> TensorProxy:
    """A copy of `input` with out[index[i][j]][j] = src[i][j] for dim 0, and so on."""
    source = value if src is None else src
    if source is None or input.ndim == 0 or index.ndim != input.ndim:
        raise NotImplementedError("scatter of tensors of different rank")
    _check_index("scatter", index)
    if reduce is not None:
        return _scatter_reduced(input, dim, index, source, reduce)
    if not is_number(source) and source.dtype != input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    return prims.scatter(input, clang.canonical_dim(dim, input.ndim), index, clang.convert(source, input.dtype))


def _scatter_reduced(
    input: TensorProxy, dim: int, index: TensorProxy, source: TensorProxy | Number, reduce: str
) -> TensorProxy:
    """`scatter` with reduce="add" or "multiply"."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if is_number(source):
        source = prims.full(index.shape, clang.convert(source, input.dtype), input.dtype, input.device)
    if source.dtype != input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    kind = "sum" if reduce == "add" else "prod"
    return prims.scatter_reduce(input, clang.canonical_dim(dim, input.ndim), index, source, kind, True)


@torchsymbol("scatter_reduce", "Tensor.scatter_reduce")
def scatter_reduce(
    input: TensorProxy, dim: int, index: TensorProxy, src: TensorProxy, reduce: str, *, include_self: bool = True
) -> TensorProxy:
    """`scatter_add` with the elements that meet reduced by sum, prod, mean, amax or amin."""
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if input.ndim == 0 or not input.ndim == index.ndim == src.ndim or input.dtype.is_complex:
        raise NotImplementedError("scatter_reduce of tensors of different rank")
    _check_index("scatter_reduce", index)
    if src.dtype != input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    d = clang.canonical_dim(dim, input.ndim)
    for i, size in enumerate(index.shape):
        if size > src.shape[i] or (i != d and size > input.shape[i]):
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} apart from "
                f"dimension {d} and to be no larger size than src {list(src.shape)}"
            )
    return prims.scatter_reduce(input, d, index, src, reduce, include_self)


@torchsymbol("take", "Tensor.take")
def take(input: TensorProxy, index: TensorProxy) -> TensorProxy:
    """The elements that `index` names, counted as if `input` had one dimension."""
    if index.dtype is not torch.int64 or input.numel == 0:
        raise NotImplementedError(f"take with an index of {index.dtype}, or of nothing")
    flat = prims.take(prims.reshape(input, (input.numel,)), prims.reshape(index, (index.numel,)), 0)
    return prims.reshape(flat, index.shape)


@torchsymbol("put", "Tensor.put")
def put(input: TensorProxy, index: TensorProxy, source: TensorProxy, accumulate: bool = False) -> TensorProxy:
    """A copy of `input` with elements counted as if it had one dimension replaced by those of `source`, or added to."""
    if index.dtype is not torch.int64 or input.dtype != source.dtype or index.numel != source.numel:
        raise NotImplementedError("put of tensors that do not fit")
    if 0 in (input.numel, index.numel):
        raise NotImplementedError("put of nothing")
    flat, at, values = (prims.reshape(x, (x.numel,)) for x in (input, index, source))
    out = prims.reshape(prims.index_put(flat, (at,), values, accumulate), input.shape)
    out.strides = preserved_strides(input)
    return out


@torchsymbol("masked_scatter", "Tensor.masked_scatter")
def masked_scatter(input: TensorProxy, mask: TensorProxy, source: TensorProxy) -> TensorProxy:
    """`input` with the elements where `mask` holds replaced by the first ones of `source`, in order."""
    if mask.dtype is not torch.bool:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    if source.dtype != input.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes")
    shape = clang.broadcast_shapes(input.shape, mask.shape)
    return prims.masked_scatter(clang.expand_to(input, shape), clang.expand_to(mask, shape), source)


@torchsymbol("scatter_add", "Tensor.scatter_add")
def scatter_add(input: TensorProxy, dim: int, index: TensorProxy, src: TensorProxy) -> TensorProxy:
    """A copy of `input` with out[index[i][j]][j] += src[i][j] for dim 0, and so on."""
    _check_index("scatter_add", index)
    if input.ndim == 0 or index.ndim != input.ndim:
        raise NotImplementedError("scatter_add of tensors of different rank")
    if src.dtype != input.dtype:
        raise RuntimeError("scatter_add(): Expected self.dtype to be equal to src.dtype")
    return prims.scatter_add(input, clang.canonical_dim(dim, input.ndim), index, src)


@torchsymbol("index_put", "Tensor.index_put")
def index_put(
    input: TensorProxy, indices: Sequence[TensorProxy | None], values: TensorProxy, accumulate: bool = False
) -> TensorProxy:
    """A copy of `input` with out[indices] = values, or += if `accumulate`."""
    if values.dtype != input.dtype:
        raise RuntimeError("Index put requires the source and destination dtypes match")
    return prims.index_put(input, tuple(indices), clang.on_device(values, input.device), accumulate)


@torchsymbol("index_add", "Tensor.index_add")
def index_add(
    input: TensorProxy, dim: int, index: TensorProxy, source: TensorProxy, *, alpha: Number = 1
) -> TensorProxy:
    """A copy of `input` with the slices of `alpha * source` along `dim` added to those that `index` names."""
    if input.ndim == 0 or source.ndim != input.ndim or index.ndim != 1:
        raise NotImplementedError("index_add of tensors without dimensions")
    dim = clang.canonical_dim(dim, input.ndim)
    indices = (None,) * dim + (index,)
    added = source if alpha == 1 else clang.mul(source, alpha)
    return prims.index_put(input, indices, clang.convert(added, input.dtype), True)


@torchsymbol("index_reduce", "Tensor.index_reduce")
def index_reduce(
    input: TensorProxy, dim: int, index: TensorProxy, source: TensorProxy, reduce: str, *, include_self: bool = True
) -> TensorProxy:
    """A copy of `input` whose slices along `dim` are reduced with those of `source` that `index` sends there."""
    if input.ndim == 0 or source.ndim != input.ndim or index.ndim != 1 or source.dtype != input.dtype:
        raise NotImplementedError("index_reduce of tensors that do not fit")
    dim = clang.canonical_dim(dim, input.ndim)
    sizes = (*input.shape[:dim], index.numel, *input.shape[dim + 1 :])
    if reduce not in ("prod", "mean", "amax", "amin") or source.shape != sizes or input.dtype.is_complex:
        raise NotImplementedError(f"index_reduce with reduce={reduce!r}, or of tensors that do not fit")
    at = prims.broadcast_in_dim(clang.convert(index, torch.int64), sizes, (dim,))
    return prims.scatter_reduce(input, dim, at, source, reduce, include_self)


@torchsymbol("index_fill", "Tensor.index_fill")
def index_fill(input: TensorProxy, dim: int, index: TensorProxy, value: TensorProxy | Number) -> TensorProxy:
    """A copy of `input` in which the slices along `dim` that `index` names are `value`."""
    if input.ndim == 0 or index.ndim != 1 or (not is_number(value) and value.ndim):
        raise NotImplementedError("index_fill of tensors without dimensions")
    dim = clang.canonical_dim(dim, input.ndim)
    return prims.index_put(input, (None,) * dim + (index,), _as_tensor(input, value), False)


@torchsymbol("index_copy", "Tensor.index_copy")
def index_copy(input: TensorProxy, dim: int, index: TensorProxy, source: TensorProxy) -> TensorProxy:
    """A copy of `input` in which the slices along `dim` that `index` names are those of `source`."""
    if input.ndim == 0 or source.ndim != input.ndim or index.ndim != 1:
        raise NotImplementedError("index_copy of tensors without dimensions")
    if source.dtype != input.dtype:
        raise RuntimeError("index_copy_(): self and source expected to have the same dtype")
    dim = clang.canonical_dim(dim, input.ndim)
    return prims.index_put(input, (None,) * dim + (index,), source, False)


def _write_region(input: TensorProxy, src: TensorProxy, dim: int, start: int, end: int, step: int) -> TensorProxy:
    """A copy of `input` in which the region of dimension `dim` is `src`."""
    starts, ends, steps = [0] * input.ndim, list(input.shape), [1] * input.ndim
    starts[dim], ends[dim], steps[dim] = start, max(start, end), step
    source = clang.on_device(clang.convert(src, input.dtype), input.device)
    return prims.slice_scatter(input, source, tuple(starts), tuple(ends), tuple(steps))


@torchsymbol("select_scatter", "Tensor.select_scatter")
def select_scatter(input: TensorProxy, src: TensorProxy, dim: int, index: int) -> TensorProxy:
    """A copy of `input` in which `input.select(dim, index)` is `src`."""
    dim = clang.canonical_dim(dim, input.ndim)
    size = input.shape[dim]
    if not -size <= index < size or src.shape != input.shape[:dim] + input.shape[dim + 1 :]:
        raise RuntimeError(f"select_scatter: {list(src.shape)} does not fit index {index} of {list(input.shape)}")
    return _write_region(input, clang.unsqueeze(src, dim), dim, index % size, index % size + 1, 1)


@torchsymbol("slice_scatter", "Tensor.slice_scatter")
def slice_scatter(
    input: TensorProxy, src: TensorProxy, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> TensorProxy:
    """A copy of `input` in which the slice from `start` to `end` of dimension `dim` is `src`."""
    dim = clang.canonical_dim(dim, input.ndim)
    start, end, step = slice(start, end, step).indices(input.shape[dim])
    length = max(0, -(-(end - start) // step))
    if src.shape != (*input.shape[:dim], length, *input.shape[dim + 1 :]):
        raise RuntimeError(f"slice_scatter: {list(src.shape)} does not fit the slice of {list(input.shape)}")
    return _write_region(input, src, dim, start, end, step)
