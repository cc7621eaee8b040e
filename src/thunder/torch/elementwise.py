"""Elementwise arithmetic of the PyTorch language."""

import math
from collections.abc import Callable

import torch

from thunder import clang
from thunder.core import dtypes
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.torch.language import Number, is_number, torchsymbol

Operand = TensorProxy | Number

_UNARY = """acos acosh asin asinh atan atanh ceil cos cosh erf erfc erfinv exp exp2 expm1 floor lgamma log log10
    log1p log2 reciprocal rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"""
_NAMES = {
    "abs": ("abs", "Tensor.abs", "absolute", "Tensor.absolute", "Tensor.__abs__"),
    "neg": ("neg", "Tensor.neg", "negative", "Tensor.negative", "Tensor.__neg__"),
    "acos": ("acos", "Tensor.acos", "arccos", "Tensor.arccos"),
    "asin": ("asin", "Tensor.asin", "arcsin", "Tensor.arcsin"),
    "atan": ("atan", "Tensor.atan", "arctan", "Tensor.arctan"),
    "acosh": ("acosh", "Tensor.acosh", "arccosh", "Tensor.arccosh"),
    "asinh": ("asinh", "Tensor.asinh", "arcsinh", "Tensor.arcsinh"),
    "atanh": ("atanh", "Tensor.atanh", "arctanh", "Tensor.arctanh"),
    "erf": ("erf", "Tensor.erf", "special.erf"),
    "erfc": ("erfc", "Tensor.erfc", "special.erfc"),
    "exp2": ("exp2", "Tensor.exp2", "special.exp2"),
    "expm1": ("expm1", "Tensor.expm1", "special.expm1"),
    "erfinv": ("erfinv", "Tensor.erfinv", "special.erfinv"),
    "log1p": ("log1p", "Tensor.log1p", "special.log1p"),
    "trunc": ("trunc", "Tensor.trunc", "fix", "Tensor.fix"),
    "sigmoid": ("sigmoid", "Tensor.sigmoid", "special.expit", "nn.functional.sigmoid"),
    "tanh": ("tanh", "Tensor.tanh", "nn.functional.tanh"),
}


def _unary(name: str) -> Symbol:
    compute = getattr(clang, name)

    def meta(input: TensorProxy) -> TensorProxy:
        return compute(input)

    meta.__name__ = name
    return torchsymbol(*_NAMES.get(name, ()))(meta)


for _name in _UNARY.split():
    _unary(_name)


@torchsymbol(*_NAMES["abs"])
def abs_(input: TensorProxy) -> TensorProxy:
    if input.dtype is torch.bool:
        raise NotImplementedError("abs of bool")
    return clang.abs(input)


@torchsymbol(*_NAMES["neg"])
def neg(input: TensorProxy) -> TensorProxy:
    if input.dtype is torch.bool:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. "
            "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return clang.neg(input)


@torchsymbol()
def positive(input: TensorProxy) -> TensorProxy:
    return input


@torchsymbol("round", "Tensor.round", "special.round")
def round_(input: TensorProxy, *, decimals: int = 0) -> TensorProxy:
    if decimals == 0 or dtypes.is_exact(input.dtype):
        return clang.round(input)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return clang.div(clang.round(clang.mul(input, scale)), scale)
    return clang.mul(clang.round(clang.div(input, scale)), scale)


@torchsymbol()
def frac(input: TensorProxy) -> TensorProxy:
    return clang.sub(input, clang.trunc(input))


@torchsymbol()
def square(input: TensorProxy) -> TensorProxy:
    return clang.mul(input, input) if input.dtype is not torch.bool else clang.pow(input, 2)


def _scaled(other: Operand, alpha: Number | None) -> Operand:
    """`alpha * other`, where alpha is given and not 1."""
    if alpha is None or alpha == 1:
        return other
    return other * alpha if is_number(other) else clang.mul(other, alpha)


@torchsymbol("add", "Tensor.add", "Tensor.__add__", reflects=("Tensor.__radd__",))
def add(input: Operand, other: Operand, *, alpha: Number | None = None) -> TensorProxy:
    """`input + alpha * other`"""
    return clang.add(input, _scaled(other, alpha))


def _refuse_bool(a: Operand, b: Operand) -> None:
    if all(dtypes.to_dtype(x) is torch.bool for x in (a, b)):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )


@torchsymbol(
    "sub",
    "Tensor.sub",
    "Tensor.__sub__",
    "subtract",
    "Tensor.subtract",
    reflects=("Tensor.__rsub__", "rsub"),
)
def sub(input: Operand, other: Operand, *, alpha: Number | None = None) -> TensorProxy:
    """`input - alpha * other`"""
    _refuse_bool(input, other)
    return clang.sub(input, _scaled(other, alpha))


@torchsymbol("mul", "Tensor.mul", "Tensor.__mul__", "multiply", "Tensor.multiply", reflects=("Tensor.__rmul__",))
def mul(input: Operand, other: Operand) -> TensorProxy:
    return clang.mul(input, other)


@torchsymbol(
    "div",
    "Tensor.div",
    "Tensor.__truediv__",
    "Tensor.__div__",
    "true_divide",
    "Tensor.true_divide",
    "divide",
    "Tensor.divide",
    reflects=("Tensor.__rtruediv__", "Tensor.__rdiv__"),
)
def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> TensorProxy:
    """`input / other`, rounded towards zero ("trunc") or minus infinity ("floor") if told."""
    if rounding_mode == "floor":
        return clang.floor_divide(input, other)
    if rounding_mode == "trunc":
        return _truncated_quotient(input, other)
    if rounding_mode is not None:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    if is_number(input):  # torch's `2 / x` is `x.reciprocal() * 2`, which rounds twice
        return clang.mul(clang.reciprocal(other), input)
    return clang.div(input, other)


def _truncated_quotient(a: Operand, b: Operand) -> TensorProxy:
    if dtypes.is_inexact(clang.result_type(a, b)):
        return clang.trunc(clang.div(a, b))
    # Exact: from the quotient rounded down, one more where that is negative and something remains.
    quotient, remainder = clang.floor_divide(a, b), clang.remainder(a, b)
    inexact_negative = clang.bitwise_and(clang.lt(quotient, 0), clang.ne(remainder, 0))
    return clang.add(quotient, clang.convert(inexact_negative, quotient.dtype))


@torchsymbol("floor_divide", "Tensor.floor_divide", "Tensor.__floordiv__", reflects=("Tensor.__rfloordiv__",))
def floor_divide(input: Operand, other: Operand) -> TensorProxy:
    return clang.floor_divide(input, other)


@torchsymbol("remainder", "Tensor.remainder", "Tensor.__mod__", reflects=("Tensor.__rmod__",))
def remainder(input: Operand, other: Operand) -> TensorProxy:
    """What is left of `input` after dividing by `other`, with the sign of `other`."""
    return clang.remainder(input, other)


@torchsymbol()
def fmod(input: TensorProxy, other: Operand) -> TensorProxy:
    """What is left of `input` after dividing by `other`, with the sign of `input`."""
    return clang.fmod(input, other)


@torchsymbol("pow", "Tensor.pow", "Tensor.__pow__", reflects=("Tensor.__rpow__",))
def pow_(input: Operand, exponent: Operand) -> TensorProxy:
    if is_number(exponent) and exponent == 2 and clang.result_type(input, exponent) == input.dtype:
        return clang.mul(input, input)
    if isinstance(exponent, int) and exponent < 0 and dtypes.is_exact(dtypes.to_dtype(input)):
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return clang.pow(input, exponent)


def _binary(name: str, *names: str) -> Symbol:
    compute: Callable = getattr(clang, name)

    def meta(input: TensorProxy, other: TensorProxy) -> TensorProxy:
        return compute(input, other)

    meta.__name__ = name
    return torchsymbol(*names)(meta)


atan2 = _binary("atan2", "atan2", "Tensor.atan2", "arctan2", "Tensor.arctan2")
maximum = _binary("maximum")
minimum = _binary("minimum")


@torchsymbol("clamp", "Tensor.clamp", "clip", "Tensor.clip")
def clamp(input: TensorProxy, min: Operand | None = None, max: Operand | None = None) -> TensorProxy:
    """`minimum(maximum(input, min), max)`, in the dtype that all promote to; NaN stays."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    dtype = clang.result_type(*(x for x in (input, min, max) if x is not None))
    out = clang.convert(input, dtype)
    if min is not None:
        out = clang.maximum(out, clang.convert(min, dtype))
    return out if max is None else clang.minimum(out, clang.convert(max, dtype))


@torchsymbol()
def clamp_min(input: TensorProxy, min: Operand) -> TensorProxy:
    return clang.maximum(input, min)


@torchsymbol()
def clamp_max(input: TensorProxy, max: Operand) -> TensorProxy:
    return clang.minimum(input, max)


@torchsymbol()
def lerp(input: TensorProxy, end: TensorProxy, weight: Operand) -> TensorProxy:
    """`input + weight * (end - input)`, from the nearer side, so that a weight of 1 gives `end` exactly."""
    dtype = clang.computation_dtype(input, end)
    a, b = clang.convert(input, dtype), clang.convert(end, dtype)
    if is_number(weight):
        near_start = abs(weight) < 0.5
        out = a + weight * (b - a) if near_start else b - (b - a) * (1 - weight)
    else:
        weight = clang.convert(weight, dtype)
        difference = b - a
        out = clang.where(clang.abs(weight) < 0.5, a + weight * difference, b - difference * (1 - weight))
    return clang.convert(out, input.dtype)


@torchsymbol()
def addcmul(input: TensorProxy, tensor1: TensorProxy, tensor2: TensorProxy, *, value: Number = 1) -> TensorProxy:
    """`input + value * tensor1 * tensor2`"""
    dtype = clang.result_type(input, tensor1, tensor2)
    a, b, c = (clang.convert(x, dtypes.compute_dtype(dtype)) for x in (input, tensor1, tensor2))
    product = clang.mul(b, c) if value == 1 else clang.mul(clang.mul(b, value), c)
    return clang.convert(clang.add(a, product), dtype)


@torchsymbol()
def addcdiv(input: TensorProxy, tensor1: TensorProxy, tensor2: TensorProxy, *, value: Number = 1) -> TensorProxy:
    """`input + value * tensor1 / tensor2`"""
    dtype = clang.result_type(input, tensor1, tensor2)
    if dtypes.is_exact(dtype):
        raise RuntimeError("Integer division with addcdiv is no longer supported")
    a, b, c = (clang.convert(x, dtypes.compute_dtype(dtype)) for x in (input, tensor1, tensor2))
    quotient = clang.div(b if value == 1 else clang.mul(b, value), c)
    return clang.convert(clang.add(a, quotient), dtype)


@torchsymbol("logaddexp", "Tensor.logaddexp")
def logaddexp(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """`log(exp(input) + exp(other))`, without overflow."""
    dtype = clang.promoted_dtype(input, other)
    if not dtypes.is_float(dtype):
        raise NotImplementedError(f"logaddexp of {dtype}")
    a, b = (clang.convert(x, dtypes.compute_dtype(dtype)) for x in (input, other))
    greater = clang.maximum(a, b)
    sum_ = greater + clang.log1p(clang.exp(-clang.abs(a - b)))
    same_infinity = clang.bitwise_and(clang.isinf(a), clang.eq(a, b))
    return clang.convert(clang.where(same_infinity, a, sum_), dtype)


@torchsymbol("deg2rad", "Tensor.deg2rad")
def deg2rad(input: TensorProxy) -> TensorProxy:
    return clang.mul(input, math.pi / 180)


@torchsymbol("rad2deg", "Tensor.rad2deg")
def rad2deg(input: TensorProxy) -> TensorProxy:
    return clang.mul(input, 180 / math.pi)
