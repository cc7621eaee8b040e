"""Joining tensors in the PyTorch language."""

from collections.abc import Sequence

from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.torch.language import torchsymbol


@torchsymbol("cat", "concat", "concatenate")
def cat(tensors: Sequence[TensorProxy], dim: int = 0) -> TensorProxy:
    tensors = list(tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    dtype = clang.result_type(*tensors)
    kept = [x for x in tensors if x.shape != (0,)] or tensors[:1]  # torch passes over empty vectors
    dim = clang.canonical_dim(dim, kept[0].ndim)
    for i, x in enumerate(kept):
        if x.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        if x.ndim != kept[0].ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {kept[0].ndim} and {x.ndim}")
        for d in range(x.ndim):
            if d != dim and x.shape[d] != kept[0].shape[d]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {kept[0].shape[d]} but got "
                    f"size {x.shape[d]} for tensor number {i} in the list."
                )
    return prims.cat([clang.convert(x, dtype) for x in kept], dim)


@torchsymbol("stack")
def stack(tensors: Sequence[TensorProxy], dim: int = 0) -> TensorProxy:
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    for i, x in enumerate(tensors):
        if x.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                f"{list(x.shape)} at entry {i}"
            )
    dtype = clang.result_type(*tensors)
    dim = clang.canonical_dim(dim, tensors[0].ndim + 1)
    return prims.cat([clang.unsqueeze(clang.convert(x, dtype), dim) for x in tensors], dim)


def _at_least(a: TensorProxy, ndim: int) -> TensorProxy:
    """`a` with dimensions of size 1 so that it has `ndim`, as torch.atleast_1d and its relatives add them."""
    if a.ndim >= ndim:
        return a
    if ndim < 3:
        return prims.reshape(a, (1,) * (ndim - a.ndim) + a.shape)
    shapes = {0: (1, 1, 1), 1: (1, *a.shape, 1), 2: (*a.shape, 1)}
    return prims.reshape(a, shapes[a.ndim])


def _refuse_none(name: str, tensors: Sequence[TensorProxy]) -> None:
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")


@torchsymbol("hstack")
def hstack(tensors: Sequence[TensorProxy]) -> TensorProxy:
    _refuse_none("hstack", tensors)
    tensors = [_at_least(x, 1) for x in tensors]
    return cat.meta(tensors, 0 if tensors and tensors[0].ndim == 1 else 1)


@torchsymbol("vstack", "row_stack")
def vstack(tensors: Sequence[TensorProxy]) -> TensorProxy:
    _refuse_none("vstack", tensors)
    return cat.meta([_at_least(x, 2) for x in tensors], 0)


@torchsymbol("dstack")
def dstack(tensors: Sequence[TensorProxy]) -> TensorProxy:
    _refuse_none("dstack", tensors)
    return cat.meta([_at_least(x, 3) for x in tensors], 2)


@torchsymbol("column_stack")
def column_stack(tensors: Sequence[TensorProxy]) -> TensorProxy:
    _refuse_none("column_stack", tensors)
    return cat.meta([x if x.ndim > 1 else prims.reshape(x, (x.numel, 1)) for x in tensors], 1)
