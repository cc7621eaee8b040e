"""Gradients of the elementwise primitives. Where one is not differentiable, the subgradient is torch's."""

import math
from collections.abc import Callable
from typing import Any

from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.torch import backward
from thunder.transforms.gradients.table import gradient

Operand = TensorProxy | bool | int | float | complex
Grads = tuple[TensorProxy | None, ...]


def zeros_like(a: TensorProxy) -> TensorProxy:
    return prims.full(a.shape, clang.convert(0, a.dtype), a.dtype, a.device)


def _unary(symbol: Symbol, rule: Callable[[TensorProxy, TensorProxy, TensorProxy], TensorProxy]) -> None:
    """The gradient of `symbol`, from that of the output, the output and the argument."""
    gradient(symbol)(lambda g, out, a: (rule(g, out, a),))


for _symbol, _rule in {
    prims.acos: lambda g, out, a: -g * clang.rsqrt(1 - a * a),
    prims.acosh: lambda g, out, a: g * clang.rsqrt(a * a - 1),
    prims.asin: lambda g, out, a: g * clang.rsqrt(1 - a * a),
    prims.asinh: lambda g, out, a: g * clang.rsqrt(a * a + 1),
    prims.atan: lambda g, out, a: g / (a * a + 1),
    prims.atanh: lambda g, out, a: g / (1 - a * a),
    prims.cos: lambda g, out, a: -g * clang.sin(a),
    prims.cosh: lambda g, out, a: g * clang.sinh(a),
    prims.erf: lambda g, out, a: g * (clang.exp(-(a * a)) * (2 / math.sqrt(math.pi))),
    prims.erfc: lambda g, out, a: g * (clang.exp(-(a * a)) * (-2 / math.sqrt(math.pi))),
    prims.erfinv: lambda g, out, a: g * (clang.exp(out * out) * (math.sqrt(math.pi) / 2)),
    prims.exp: lambda g, out, a: g * out,
    prims.exp2: lambda g, out, a: g * out * math.log(2),
    prims.expm1: lambda g, out, a: g * (out + 1),
    prims.log: lambda g, out, a: g / a,
    prims.log10: lambda g, out, a: g / (a * math.log(10)),
    prims.log1p: lambda g, out, a: g / (a + 1),
    prims.log2: lambda g, out, a: g / (a * math.log(2)),
    prims.neg: lambda g, out, a: -g,
    prims.reciprocal: lambda g, out, a: -g * (out * out),
    prims.rsqrt: lambda g, out, a: g * (out * out * out) * -0.5,
    prims.sigmoid: lambda g, out, a: backward.sigmoid_backward(g, out),
    prims.sin: lambda g, out, a: g * clang.cos(a),
    prims.sinh: lambda g, out, a: g * clang.cosh(a),
    prims.sqrt: lambda g, out, a: g / (out * 2),
    prims.tan: lambda g, out, a: g * (out * out + 1),
    prims.tanh: lambda g, out, a: backward.tanh_backward(g, out),
    prims.abs: lambda g, out, a: g * clang.sign(a),
}.items():
    _unary(_symbol, _rule)

for _symbol in (prims.ceil, prims.floor, prims.round, prims.sign, prims.trunc):
    _unary(_symbol, lambda g, out, a: zeros_like(a))


@gradient(prims.clone, prims.contiguous)
def _copy(g: TensorProxy, out: TensorProxy, a: TensorProxy) -> Grads:
    return (g,)


@gradient(prims.graft)
def _graft(g: TensorProxy, out: TensorProxy, a: TensorProxy, onto: TensorProxy) -> Grads:
    return None, g


@gradient(prims.overwrite)
def _overwrite(g: TensorProxy, out: TensorProxy, a: TensorProxy, old: TensorProxy) -> Grads:
    return g, zeros_like(old)


@gradient(prims.convert_element_type)
def _convert(g: TensorProxy, out: TensorProxy, a: TensorProxy, dtype: Any) -> Grads:
    if g.dtype.is_complex and not a.dtype.is_complex:
        g = prims.real(g)
    return (clang.convert(g, a.dtype),)


@gradient(prims.device_put)
def _device_put(g: TensorProxy, out: TensorProxy, a: TensorProxy, device: Any) -> Grads:
    return (clang.on_device(g, a.device),)


def conjugate(x: Operand) -> Operand:
    if isinstance(x, TensorProxy):
        return prims.conj_physical(x) if x.dtype.is_complex else x
    return x.conjugate() if isinstance(x, complex) else x


@gradient(prims.add)
def _add(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
    return g, g


@gradient(prims.sub)
def _sub(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
    return g, -g if isinstance(b, TensorProxy) else None


@gradient(prims.mul)
def _mul(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
    return (
        g * conjugate(b) if isinstance(a, TensorProxy) else None,
        g * conjugate(a) if isinstance(b, TensorProxy) else None,
    )


@gradient(prims.div)
def _div(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
    return g / conjugate(b), -g * conjugate(out / b) if isinstance(b, TensorProxy) else None


@gradient(prims.pow)
def _pow(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
    of_base = of_exponent = None
    if isinstance(a, TensorProxy) and isinstance(b, TensorProxy):
        of_base = clang.where(clang.eq(b, 0), 0.0, g * (b * clang.pow(a, b - 1)))
    elif isinstance(a, TensorProxy):
        of_base = zeros_like(a) if b == 0 else g * (clang.pow(a, b - 1) * b)
    if isinstance(a, TensorProxy) and isinstance(b, TensorProxy):
        at_zero = clang.bitwise_and(clang.eq(a, 0), b >= 0)
        of_exponent = g * clang.where(at_zero, 0.0, out * clang.log(a))
    elif isinstance(b, TensorProxy):
        of_exponent = g * clang.where(b >= 0, 0.0, out * -math.inf) if a == 0 else g * (out * math.log(a))
    return of_base, of_exponent


@gradient(prims.atan2)
def _atan2(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
    squares = a * a + b * b
    scale = g * clang.where(clang.eq(squares, 0), 0.0, 1 / squares)
    return scale * b, scale * -a


def _chosen(wins: Callable[[Operand, Operand], TensorProxy]) -> Callable[..., Grads]:
    """Of maximum or minimum: the gradient goes to the operand that wins, half to each where they are equal."""

    def rule(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
        if not (isinstance(a, TensorProxy) and isinstance(b, TensorProxy)):
            x, number = (a, b) if isinstance(a, TensorProxy) else (b, a)
            grad = clang.where(wins(x, number), g, 0.0)
            return (grad, None) if x is a else (None, grad)
        halved = clang.where(clang.eq(a, b), g * 0.5, g)
        return clang.where(wins(b, a), 0.0, halved), clang.where(wins(a, b), 0.0, halved)

    return rule


gradient(prims.maximum)(_chosen(clang.gt))
gradient(prims.minimum)(_chosen(clang.lt))


@gradient(prims.fmod)
def _fmod(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
    return g, -g * clang.trunc(clang.div(a, b)) if isinstance(b, TensorProxy) else None


@gradient(prims.remainder)
def _remainder(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
    return g, -g * clang.floor_divide(a, b) if isinstance(b, TensorProxy) else None


@gradient(prims.floor_divide)
def _floor_divide(g: TensorProxy, out: TensorProxy, a: Operand, b: Operand) -> Grads:
    return zeros_like(out), zeros_like(out)


@gradient(prims.where)
def _where(g: TensorProxy, out: TensorProxy, condition: TensorProxy, a: Operand, b: Operand) -> Grads:
    zero = clang.convert(0, out.dtype)
    return (
        None,
        clang.where(condition, g, zero) if isinstance(a, TensorProxy) else None,
        clang.where(condition, zero, g) if isinstance(b, TensorProxy) else None,
    )
