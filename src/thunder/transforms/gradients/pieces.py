"""Gradients of functions that are made of pieces: torch's where the pieces meet, and finite where another overflows.

Differentiated piece by piece, the exponential that is not taken would give 0 times infinity.
"""

import math
from collections.abc import Callable
from typing import Any

import thunder.torch as ltorch
from thunder import clang
from thunder.core import dtypes
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.transforms.gradients.elementwise import Grads
from thunder.transforms.gradients.table import gradient


def _slope(symbol: Symbol, slope: Callable[..., TensorProxy], **defaults: Any) -> None:
    """The gradient of `symbol` is that of its output times `slope(input, *arguments)`, in the dtype computed in."""

    @gradient(symbol)
    def rule(g: TensorProxy, out: TensorProxy, input: TensorProxy, *args: Any, **kwargs: Any) -> Grads:
        named = defaults | dict(zip(defaults, args)) | {k: v for k, v in kwargs.items() if k in defaults}
        dtype = dtypes.compute_dtype(out.dtype)
        x = clang.convert(input, dtype)
        return (clang.convert(clang.convert(g, dtype) * slope(x, **named), input.dtype),)


def _of_elu(x: TensorProxy, alpha: float) -> TensorProxy:
    return clang.where(clang.le(x, 0), clang.exp(x) * alpha, 1.0)


def _of_selu(x: TensorProxy) -> TensorProxy:
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return clang.where(clang.le(x, 0), clang.exp(x) * (alpha * scale), scale)


def _of_softplus(x: TensorProxy, beta: float, threshold: float) -> TensorProxy:
    scaled = x * beta
    return clang.where(scaled > threshold, 1.0, clang.sigmoid(scaled))


def _of_mish(x: TensorProxy) -> TensorProxy:
    inner = clang.tanh(clang.maximum(x, 0.0) + clang.log1p(clang.exp(-clang.abs(x))))
    return inner + x * clang.sigmoid(x) * (1 - inner * inner)


def _of_sinc(x: TensorProxy) -> TensorProxy:
    t = x * math.pi
    return clang.where(clang.eq(x, 0), 0.0, (t * clang.cos(t) - clang.sin(t)) / (t * x))


def _of_logit(x: TensorProxy, eps: float | None) -> TensorProxy:
    low, high, outside = (0.0, 1.0, math.nan) if eps is None else (eps, 1 - eps, 0.0)
    is_outside = clang.bitwise_or(clang.lt(x, low), clang.gt(x, high))
    return clang.where(is_outside, outside, 1 / (x * (1 - x)))


def _of_hardswish(x: TensorProxy) -> TensorProxy:
    return clang.where(clang.le(x, -3), 0.0, clang.where(clang.lt(x, 3), x / 3 + 0.5, 1.0))


def _stop(symbol: Symbol, stops: Callable[..., TensorProxy], **defaults: Any) -> None:
    """The gradient of `symbol` passes, but where `stops(input, *arguments)` holds."""

    @gradient(symbol)
    def rule(g: TensorProxy, out: TensorProxy, input: TensorProxy, *args: Any, **kwargs: Any) -> Grads:
        named = defaults | dict(zip(defaults, args)) | {k: v for k, v in kwargs.items() if k in defaults}
        return (clang.where(stops(input, **named), clang.convert(0, g.dtype), g),)


def _reaches(x: TensorProxy, min_val: float, max_val: float) -> TensorProxy:
    return clang.bitwise_or(clang.le(x, min_val), clang.ge(x, max_val))


_slope(ltorch.elu, _of_elu, alpha=1.0)
_slope(ltorch.celu, lambda x, alpha: clang.where(clang.le(x, 0), clang.exp(x / alpha), 1.0), alpha=1.0)
_slope(ltorch.selu, _of_selu)
_slope(ltorch.softplus, _of_softplus, beta=1, threshold=20)
_slope(ltorch.logsigmoid, lambda x: clang.sigmoid(-x))
_slope(ltorch.mish, _of_mish)
_slope(ltorch.hardswish, _of_hardswish)
_slope(ltorch.sinc, _of_sinc)
_slope(ltorch.logit, _of_logit, eps=None)
_slope(ltorch.entr, lambda x: -1 - clang.log(x))
_stop(ltorch.hardtanh, _reaches, min_val=-1.0, max_val=1.0)
_stop(ltorch.relu6, lambda x: _reaches(x, 0, 6))
_stop(ltorch.softshrink, lambda x, lambd: clang.bitwise_and(clang.ge(x, -lambd), clang.le(x, lambd)), lambd=0.5)


def _both(g: TensorProxy, a: TensorProxy, b: TensorProxy, of_a: TensorProxy, of_b: TensorProxy) -> Grads:
    """The gradients of two operands that were broadcast and promoted, from those of what they became."""
    return tuple(clang.convert(clang.sum_to(grad, x.shape), x.dtype) for x, grad in ((a, of_a), (b, of_b)))


def _product_with_logarithm(symbol: Symbol, logarithm: Callable[[TensorProxy], TensorProxy], offset: int) -> None:
    """Of a * log(b + offset), which is 0 where `a` is 0."""

    @gradient(symbol)
    def rule(g: TensorProxy, out: TensorProxy, input: TensorProxy, other: TensorProxy) -> Grads:
        a, b = (clang.convert(x, out.dtype) for x in (input, other))
        is_zero = clang.bitwise_and(clang.eq(a, 0), clang.le(b, -offset))
        of_a = g * clang.where(is_zero, 0.0, logarithm(b))
        return _both(g, input, other, of_a, g * a / (b + offset if offset else b))


_product_with_logarithm(ltorch.xlogy, clang.log, 0)
_product_with_logarithm(ltorch.xlog1py, clang.log1p, 1)


def _greatest(symbol: Symbol, wins: Callable[[TensorProxy, TensorProxy], TensorProxy]) -> None:
    """Of fmax and fmin: the first of two equal operands takes all."""

    @gradient(symbol)
    def rule(g: TensorProxy, out: TensorProxy, input: TensorProxy, other: TensorProxy) -> Grads:
        first = clang.bitwise_or(wins(input, other), clang.isnan(other))
        return _both(g, input, other, clang.where(first, g, 0.0), clang.where(first, 0.0, g))


_greatest(ltorch.fmax, clang.ge)
_greatest(ltorch.fmin, clang.le)


@gradient(ltorch.binary_cross_entropy)
def _binary_cross_entropy(
    g: TensorProxy,
    out: TensorProxy,
    input: TensorProxy,
    target: TensorProxy,
    weight: TensorProxy | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Grads:
    dtype = dtypes.compute_dtype(input.dtype)
    g, x, t = (clang.convert(y, dtype) for y in (g, input, target))
    share = g / max(input.numel, 1) if reduction == "mean" else g
    if weight is not None:
        share = share * clang.convert(weight, dtype)
    of_input = share * (x - t) / clang.maximum((1 - x) * x, 1e-12)
    of_target = share * (clang.log1p(-x) - clang.log(x))
    return clang.convert(of_input, input.dtype), clang.convert(of_target, target.dtype), None


def _of_bounded(
    g: TensorProxy, input: TensorProxy, target: TensorProxy, reduction: str, bound: float, scale: float
) -> Grads:
    """Of a loss whose slope is `scale` times the difference, which counts up to `bound`."""
    dtype = dtypes.compute_dtype(clang.result_type(input, target))
    difference = clang.convert(input, dtype) - clang.convert(target, dtype)
    bounded = clang.where(clang.ge(difference, bound), bound, difference)
    bounded = clang.where(clang.le(difference, -bound), -bound, bounded)
    share = clang.convert(g, dtype)
    share = share / max(difference.numel, 1) if reduction == "mean" else share
    of_input = share * bounded * scale
    return _both(g, input, target, of_input, -of_input)


@gradient(ltorch.huber_loss)
def _huber_loss(
    g: TensorProxy,
    out: TensorProxy,
    input: TensorProxy,
    target: TensorProxy,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: None = None,
) -> Grads:
    return _of_bounded(g, input, target, reduction, delta, 1.0)


@gradient(ltorch.smooth_l1_loss)
def _smooth_l1_loss(
    g: TensorProxy,
    out: TensorProxy,
    input: TensorProxy,
    target: TensorProxy,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Grads:
    if beta == 0:
        difference = clang.sign(input - target)
        share = g / max(difference.numel, 1) if reduction == "mean" else g
        return _both(g, input, target, share * difference, -(share * difference))
    return _of_bounded(g, input, target, reduction, beta, 1.0 / beta)
