"""Gradients of the reductions."""

import math
from collections.abc import Sequence
from typing import Any

import thunder.torch as ltorch
from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.transforms.gradients.elementwise import Grads
from thunder.transforms.gradients.table import gradient


def spread(x: TensorProxy, a: TensorProxy, dims: Sequence[int]) -> TensorProxy:
    """The result `x` of a reduction of `a` over `dims`, broadcast to the shape of `a`."""
    kept = tuple(d for d in range(a.ndim) if d not in dims)
    return x if not dims else prims.broadcast_in_dim(x, a.shape, kept)


@gradient(prims.sum_prim)
def _sum(g: TensorProxy, out: TensorProxy, a: TensorProxy, dims: Sequence[int]) -> Grads:
    return (spread(g, a, dims),)


@gradient(prims.amax, prims.amin)
def _extreme(g: TensorProxy, out: TensorProxy, a: TensorProxy, dims: Sequence[int]) -> Grads:
    """Each of several equal extremes gets its share."""
    chosen = clang.convert(clang.eq(a, spread(out, a, dims)), a.dtype)
    return (chosen * spread(g / prims.sum_prim(chosen, dims), a, dims),)


@gradient(ltorch.root)
def _root(g: TensorProxy, out: TensorProxy, a: TensorProxy, degree: float) -> Grads:
    slope = out * 2 if degree == 2 else clang.pow(out, degree - 1) * degree
    return (clang.where(clang.eq(out, 0), 0.0, g / slope),)


def _of_variance(g: TensorProxy, a: TensorProxy, mean: TensorProxy, dims: Sequence[int], correction: Any) -> Any:
    count = math.prod(a.shape[d] for d in dims)
    degrees = max(count - correction, 0)
    scale = 2.0 / degrees if degrees else math.nan if count else 0.0
    return spread(g * scale, a, dims) * (a - spread(mean, a, dims))


@gradient(prims.var)
def _var(g: TensorProxy, out: TensorProxy, a: TensorProxy, dims: Sequence[int], correction: Any) -> Grads:
    return (_of_variance(g, a, clang.mean(a, dims) if dims else a, dims, correction),)


@gradient(prims.var_mean)
def _var_mean(g: Any, out: Any, a: TensorProxy, dims: Sequence[int], correction: Any) -> Grads:
    of_variance, of_mean = g
    total = None if of_variance is None else _of_variance(of_variance, a, out[1], dims, correction)
    if of_mean is not None:
        count = max(math.prod(a.shape[d] for d in dims), 1)
        share = spread(of_mean / count, a, dims)
        total = share if total is None else total + share
    return (total,)
