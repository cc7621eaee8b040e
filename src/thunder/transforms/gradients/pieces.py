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
from thunder.torch import backward
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


def _of_sinc(x: TensorProxy) -> TensorProxy:
    t = x * math.pi
    return clang.where(clang.eq(x, 0), 0.0, (t * clang.cos(t) - clang.sin(t)) / (t * x))


def _of_logit(x: TensorProxy, eps: float | None) -> TensorProxy:
    low, high, outside = (0.0, 1.0, math.nan) if eps is None else (eps, 1 - eps, 0.0)
    is_outside = clang.bitwise_or(clang.lt(x, low), clang.gt(x, high))
    return clang.where(is_outside, outside, 1 / (x * (1 - x)))


_slope(ltorch.logsigmoid, lambda x: clang.sigmoid(-x))
_slope(ltorch.sinc, _of_sinc)
_slope(ltorch.logit, _of_logit, eps=None)
_slope(ltorch.entr, lambda x: -1 - clang.log(x))


def _kernel(symbol: Symbol, backward_of: Callable[..., TensorProxy], **defaults: Any) -> None:
    """The gradient of `symbol` by an operation that torch has a kernel for, of (gradient, input, *arguments)."""

    @gradient(symbol)
    def rule(g: TensorProxy, out: TensorProxy, input: TensorProxy, *args: Any, **kwargs: Any) -> Grads:
        named = defaults | dict(zip(defaults, args)) | {k: v for k, v in kwargs.items() if k in defaults}
        return (backward_of(g, input, **named),)


def _elu(g: TensorProxy, x: TensorProxy, alpha: float, scale: float = 1.0, input_scale: float = 1.0) -> TensorProxy:
    return backward.elu_backward(g, alpha, scale, input_scale, False, x)


_ALPHA, _SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

_kernel(ltorch.elu, _elu, alpha=1.0)
_kernel(ltorch.celu, lambda g, x, alpha: _elu(g, x, alpha, 1.0, 1 / alpha), alpha=1.0)
_kernel(ltorch.selu, lambda g, x: _elu(g, x, _ALPHA, _SCALE))
_kernel(
    ltorch.softplus,
    lambda g, x, beta, threshold: backward.softplus_backward(g, x, beta, threshold),
    beta=1,
    threshold=20,
)
_kernel(ltorch.mish, backward.mish_backward)
_kernel(ltorch.hardswish, backward.hardswish_backward)
_kernel(
    ltorch.hardtanh,
    lambda g, x, min_val, max_val: backward.hardtanh_backward(g, x, min_val, max_val),
    min_val=-1.0,
    max_val=1.0,
)
_kernel(ltorch.relu6, lambda g, x: backward.hardtanh_backward(g, x, 0, 6))
_kernel(ltorch.softshrink, lambda g, x, lambd: backward.softshrink_backward(g, x, lambd), lambd=0.5)


def _both(a: TensorProxy, b: TensorProxy, of_a: TensorProxy, of_b: TensorProxy) -> Grads:
    """The gradients of two operands that were broadcast and promoted, from those of what they became."""
    return tuple(clang.convert(clang.sum_to(grad, x.shape), x.dtype) for x, grad in ((a, of_a), (b, of_b)))


def _product_with_logarithm(symbol: Symbol, logarithm: Callable[[TensorProxy], TensorProxy], offset: int) -> None:
    """Of a * log(b + offset), which is 0 where `a` is 0."""

    @gradient(symbol)
    def rule(g: TensorProxy, out: TensorProxy, input: TensorProxy, other: TensorProxy) -> Grads:
        a, b = (clang.convert(x, out.dtype) for x in (input, other))
        is_zero = clang.bitwise_and(clang.eq(a, 0), clang.le(b, -offset))
        of_a = g * clang.where(is_zero, 0.0, logarithm(b))
        return _both(input, other, of_a, g * a / (b + offset if offset else b))


_product_with_logarithm(ltorch.xlogy, clang.log, 0)
_product_with_logarithm(ltorch.xlog1py, clang.log1p, 1)


def _greatest(symbol: Symbol, wins: Callable[[TensorProxy, TensorProxy], TensorProxy]) -> None:
    """Of fmax and fmin: the first of two equal operands takes all."""

    @gradient(symbol)
    def rule(g: TensorProxy, out: TensorProxy, input: TensorProxy, other: TensorProxy) -> Grads:
        first = clang.bitwise_or(wins(input, other), clang.isnan(other))
        return _both(input, other, clang.where(first, g, 0.0), clang.where(first, 0.0, g))


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


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _of_loss(
    backward_of: Callable[..., TensorProxy], g: TensorProxy, input: TensorProxy, target: TensorProxy, *args: Any
) -> Grads:
    """Of a loss of the difference of two tensors, which are broadcast and promoted."""
    dtype, shape = clang.result_type(input, target), clang.broadcast_shapes(input.shape, target.shape)
    a, b = (clang.expand_to(clang.convert(x, dtype), shape) for x in (input, target))
    of_input = backward_of(g, a, b, *args)
    return _both(input, target, of_input, -of_input)


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
    return _of_loss(backward.huber_loss_backward, g, input, target, _REDUCTIONS[reduction], delta)


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
        return _both(input, target, share * difference, -(share * difference))
    return _of_loss(backward.smooth_l1_loss_backward, g, input, target, _REDUCTIONS[reduction], beta)
