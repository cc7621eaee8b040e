"""Gradients of the primitives that move elements."""

from collections.abc import Sequence
from typing import Any

from thunder import clang
from thunder.core import memory_prims, prims
from thunder.core.proxies import TensorProxy
from thunder.torch.memory import written_windows
from thunder.transforms.gradients.elementwise import Grads, zeros_like
from thunder.transforms.gradients.table import gradient


@gradient(prims.broadcast_in_dim)
def _broadcast(g: TensorProxy, out: TensorProxy, a: TensorProxy, shape: Any, dims: Sequence[int]) -> Grads:
    new = tuple(d for d in range(out.ndim) if d not in dims)
    repeated = tuple(d for i, d in enumerate(dims) if a.shape[i] != out.shape[d])
    if new and not repeated and all(out.shape[d] == 1 for d in new):
        return (prims.squeeze(g, new),)
    summed = tuple(sorted((*new, *repeated)))
    if not summed:
        return (g,)
    total = prims.sum_prim(g, summed)
    return (total if total.shape == a.shape else prims.reshape(total, a.shape),)


@gradient(prims.reshape, prims.squeeze)
def _reshape(g: TensorProxy, out: TensorProxy, a: TensorProxy, shape: Any) -> Grads:
    return (prims.reshape(g, a.shape),)


@gradient(prims.permute)
def _permute(g: TensorProxy, out: TensorProxy, a: TensorProxy, dims: Sequence[int]) -> Grads:
    return (prims.permute(g, tuple(list(dims).index(d) for d in range(len(dims)))),)


@gradient(prims.slice_prim)
def _slice(g: TensorProxy, out: TensorProxy, a: TensorProxy, starts: Any, ends: Any, steps: Any) -> Grads:
    if set(steps) <= {1}:
        behind = tuple(size - end for size, end in zip(a.shape, ends))
        return (prims.pad(g, clang.convert(0, g.dtype), tuple(starts), behind),)
    return (prims.slice_scatter(zeros_like(a), g, starts, ends, steps),)


@gradient(prims.cat)
def _cat(g: TensorProxy, out: TensorProxy, tensors: Sequence[TensorProxy], dim: int) -> tuple[list[TensorProxy]]:
    grads, start = [], 0
    for x in tensors:
        grads.append(clang.slice_dim(g, dim, start, start + x.shape[dim]))
        start += x.shape[dim]
    return (grads,)


@gradient(prims.flip)
def _flip(g: TensorProxy, out: TensorProxy, a: TensorProxy, dims: Any) -> Grads:
    return (prims.flip(g, dims),)


@gradient(prims.pad)
def _pad(g: TensorProxy, out: TensorProxy, a: TensorProxy, value: Any, low: Any, high: Any) -> Grads:
    return (prims.pad(g, clang.convert(0, g.dtype), tuple(-n for n in low), tuple(-n for n in high)),)


@gradient(memory_prims.unfold)
def _unfold(g: TensorProxy, out: TensorProxy, a: TensorProxy, dim: int, size: int, step: int) -> Grads:
    if a.ndim == 0:
        return (prims.reshape(g, ()) if size else zeros_like(a),)
    return (written_windows(zeros_like(a), g, dim, size, step, True),)
