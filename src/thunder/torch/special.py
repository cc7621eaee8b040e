"""Less common elementwise functions of the PyTorch language, each a formula over the core language."""

import math
from collections.abc import Callable

import torch

from thunder import clang
from thunder.core import dtypes
from thunder.core.proxies import TensorProxy
from thunder.torch.language import Number, torchsymbol

Operand = TensorProxy | Number


@torchsymbol()
def copysign(input: TensorProxy, other: Operand) -> TensorProxy:
    """The magnitude of `input` with the sign of `other`."""
    dtype = clang.promoted_dtype(input, other, kind=clang.Kind.INT_TO_FLOAT)
    magnitude = clang.abs(clang.convert(input, dtype))
    if isinstance(other, TensorProxy):
        other = clang.convert(other, dtype)
        return clang.where(clang.signbit(other), -magnitude, magnitude)
    return -magnitude if math.copysign(1.0, other) < 0 else magnitude


@torchsymbol()
def fmax(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The greater of the two; a number wins over NaN."""
    return _unless_nan(input, other, clang.maximum)


@torchsymbol()
def fmin(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The smaller of the two; a number wins over NaN."""
    return _unless_nan(input, other, clang.minimum)


def _unless_nan(a: TensorProxy, b: TensorProxy, choose: Callable) -> TensorProxy:
    dtype = clang.result_type(a, b)
    a, b = clang.convert(a, dtype), clang.convert(b, dtype)
    if dtypes.is_exact(dtype):
        return choose(a, b)
    return clang.where(clang.isnan(a), b, clang.where(clang.isnan(b), a, choose(a, b)))


@torchsymbol("xlogy", "Tensor.xlogy", "special.xlogy")
def xlogy(input: Operand, other: Operand) -> TensorProxy:
    """input * log(other), 0 where `input` is 0 and `other` no NaN"""
    dtype = clang.promoted_dtype(input, other, kind=clang.Kind.INT_TO_FLOAT)
    a, b = clang.operands(clang.convert(input, dtype), clang.convert(other, dtype))
    if not isinstance(a, TensorProxy) or not isinstance(b, TensorProxy):
        raise NotImplementedError("xlogy with a number")
    wide = dtypes.compute_dtype(dtype)
    product = clang.convert(a, wide) * clang.log(clang.convert(b, wide))
    out = clang.where(clang.eq(a, 0), 0.0, product)
    return clang.convert(clang.where(clang.isnan(b), math.nan, out), dtype)


@torchsymbol("logit", "Tensor.logit", "special.logit")
def logit(input: TensorProxy, eps: float | None = None) -> TensorProxy:
    """log(input / (1 - input)), of `input` kept within eps and 1 - eps if told"""
    dtype = clang.promoted_dtype(input, kind=clang.Kind.INT_TO_FLOAT)
    a = clang.convert(input, dtypes.compute_dtype(dtype))
    if eps is not None:
        a = clang.minimum(clang.maximum(a, eps), 1 - eps)
    return clang.convert(clang.log(a / (1 - a)), dtype)


@torchsymbol()
def nan_to_num(
    input: TensorProxy, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> TensorProxy:
    """NaN becomes `nan` (0), the infinities `posinf` and `neginf` (the greatest and the smallest number)."""
    if dtypes.is_exact(input.dtype):
        return clang.bitwise_or(input, input) if input.dtype is torch.bool else clang.add(input, 0)
    if dtypes.is_complex(input.dtype):
        raise NotImplementedError("nan_to_num of complex numbers")
    limits = torch.finfo(input.dtype)
    out = clang.where(clang.isnan(input), float(nan or 0.0), input)
    out = clang.where(clang.eq(input, math.inf), limits.max if posinf is None else posinf, out)
    return clang.where(clang.eq(input, -math.inf), limits.min if neginf is None else neginf, out)


@torchsymbol()
def sgn(input: TensorProxy) -> TensorProxy:
    if dtypes.is_complex(input.dtype):
        raise NotImplementedError("sgn of complex numbers")
    return clang.sign(input)


@torchsymbol()
def isposinf(input: TensorProxy) -> TensorProxy:
    return _is_infinity(input, math.inf)


@torchsymbol()
def isneginf(input: TensorProxy) -> TensorProxy:
    return _is_infinity(input, -math.inf)


def _is_infinity(a: TensorProxy, value: float) -> TensorProxy:
    if dtypes.is_complex(a.dtype):
        raise RuntimeError("isposinf and isneginf do not support complex inputs.")
    return clang.ne(a, a) if dtypes.is_exact(a.dtype) else clang.eq(a, value)


@torchsymbol("special.entr")
def entr(input: TensorProxy) -> TensorProxy:
    """-input * log(input); 0 at 0, minus infinity below"""
    dtype = clang.promoted_dtype(input, kind=clang.Kind.INT_TO_FLOAT)
    a = clang.convert(input, dtypes.compute_dtype(dtype))
    out = clang.where(a > 0, -a * clang.log(a), clang.where(a < 0, -math.inf, a))
    return clang.convert(out, dtype)


@torchsymbol("nn.functional.prelu", "prelu", "Tensor.prelu")
def prelu(input: TensorProxy, weight: TensorProxy) -> TensorProxy:
    """input where positive, else weight * input; one weight, or one for each channel"""
    if input.dtype != weight.dtype:
        raise RuntimeError("prelu: Type promoting not supported")
    if weight.numel == 1:
        spread = clang.reshape(weight, ())
    else:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.numel != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel} and "
                f"channel size = {channels}."
            )
        spread = clang.reshape(weight, (channels, *(1 for _ in input.shape[2:])))
    return clang.where(input > 0, input, spread * input)


@torchsymbol("nn.functional.celu", "celu", inplace=True)
def celu(input: TensorProxy, alpha: float = 1.0, inplace: bool = False) -> TensorProxy:
    """max(0, input) + min(0, alpha * (exp(input / alpha) - 1)), https://arxiv.org/abs/1704.07483"""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    a = clang.convert(input, dtypes.compute_dtype(input.dtype))
    return clang.convert(clang.where(a > 0, a, clang.expm1(a / alpha) * alpha), input.dtype)


@torchsymbol("nn.functional.hardshrink", "hardshrink", "Tensor.hardshrink")
def hardshrink(input: TensorProxy, lambd: float = 0.5) -> TensorProxy:
    """0 between -lambd and lambd, else input"""
    return clang.where((input >= -lambd) & (input <= lambd), 0.0, input)


@torchsymbol("nn.functional.softshrink")
def softshrink(input: TensorProxy, lambd: float = 0.5) -> TensorProxy:
    """input moved towards 0 by lambd, but not past it"""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return clang.where(input > lambd, input - lambd, clang.where(input < -lambd, input + lambd, input * 0.0))
