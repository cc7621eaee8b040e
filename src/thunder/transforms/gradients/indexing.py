"""Gradients of indexing, gathering and scattering."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.transforms.gradients.elementwise import Grads, zeros_like
from thunder.transforms.gradients.table import augmented, gradient


@gradient(prims.select, prims.take)
def _take(g: TensorProxy, out: TensorProxy, a: TensorProxy, index: TensorProxy, dim: int) -> Grads:
    if index.ndim == 0:
        index, g = clang.unsqueeze(clang.convert(index, torch.int64), 0), clang.unsqueeze(g, dim)
    return (prims.index_put(zeros_like(a), (None,) * dim + (index,), g, True),)


@gradient(prims.index)
def _index(g: TensorProxy, out: TensorProxy, a: TensorProxy, indices: Sequence[TensorProxy | None]) -> Grads:
    return (prims.index_put(zeros_like(a), indices, g, True),)


@gradient(prims.gather)
def _gather(g: TensorProxy, out: TensorProxy, a: TensorProxy, dim: int, index: TensorProxy) -> Grads:
    return (prims.scatter_add(zeros_like(a), dim, index, g),)


def _gathered(g: TensorProxy, dim: int, index: TensorProxy, value: TensorProxy) -> TensorProxy:
    """The gradient of values that were scattered: `value` may be greater than `index`."""
    grad = prims.gather(g, dim, index)
    if grad.shape == value.shape:
        return grad
    behind = tuple(size - taken for size, taken in zip(value.shape, grad.shape))
    return prims.pad(grad, clang.convert(0, g.dtype), (0,) * g.ndim, behind)


@gradient(prims.scatter)
def _scatter(g: TensorProxy, out: TensorProxy, a: TensorProxy, dim: int, index: TensorProxy, value: Any) -> Grads:
    of_value = _gathered(g, dim, index, value) if isinstance(value, TensorProxy) else None
    return prims.scatter(g, dim, index, clang.convert(0, g.dtype)), None, None, of_value


@gradient(prims.scatter_add)
def _scatter_add(
    g: TensorProxy, out: TensorProxy, a: TensorProxy, dim: int, index: TensorProxy, value: TensorProxy
) -> Grads:
    return g, None, None, _gathered(g, dim, index, value)


@augmented(prims.index_put)
def _index_put(
    needs_gradient: Any, a: TensorProxy, indices: Sequence[TensorProxy | None], values: TensorProxy, accumulate: bool
) -> tuple[TensorProxy, Callable] | None:
    if any(x is not None and x.dtype is torch.bool for x in indices):
        return None

    def pullback(g: TensorProxy) -> Grads:
        of_a = g
        if not accumulate:
            zero = prims.full((), clang.convert(0, g.dtype), g.dtype, g.device)
            of_a = prims.index_put(g, indices, zero, False)
        of_values = prims.index(g, indices)
        return of_a, None, of_values if of_values.shape == values.shape else clang.sum_to(of_values, values.shape)

    return prims.index_put(a, indices, values, accumulate), pullback


@gradient(prims.slice_scatter)
def _slice_scatter(
    g: TensorProxy, out: TensorProxy, a: TensorProxy, value: TensorProxy, starts: Any, ends: Any, steps: Any
) -> Grads:
    zero = prims.full(value.shape, clang.convert(0, g.dtype), g.dtype, g.device)
    return prims.slice_scatter(g, zero, starts, ends, steps), prims.slice_prim(g, starts, ends, steps)


@gradient(prims.cumsum)
def _cumsum(g: TensorProxy, out: TensorProxy, a: TensorProxy, dim: int) -> Grads:
    if a.ndim == 0:
        return (g,)
    return (prims.flip(prims.cumsum(prims.flip(g, (dim,)), dim), (dim,)),)


@gradient(prims.topk)
def _topk(g: Any, out: Any, a: TensorProxy, k: int, dim: int, largest: bool, sorted: bool) -> Grads:
    return (prims.scatter_add(zeros_like(a), dim, out[1], g[0]),)


@gradient(prims.sort)
def _sort(g: Any, out: Any, a: TensorProxy, dim: int, descending: bool, stable: bool) -> Grads:
    return (g[0] if a.ndim == 0 else prims.scatter_add(zeros_like(a), dim, out[1], g[0]),)
