"""torch.special and its relatives: formulas where these are exact enough, else primitives that torch's kernels run."""

import math
from collections.abc import Callable

import torch

from thunder import clang
from thunder.clang import Kind
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.torch.language import Number, find, in_place, is_number, torchsymbol

Operand = TensorProxy | Number

_NAMES = {
    "digamma": ("digamma", "Tensor.digamma", "special.digamma", "special.psi"),
    "i0": ("i0", "Tensor.i0", "special.i0"),
    "igamma": ("igamma", "Tensor.igamma", "special.gammainc"),
    "igammac": ("igammac", "Tensor.igammac", "special.gammaincc"),
}


def _function(name: str, prim: Symbol) -> None:
    """An operation that is a primitive after type promotion; exact dtypes become the default dtype."""

    def meta(*args: Operand) -> TensorProxy:
        tensors = [x for x in args if isinstance(x, TensorProxy)]
        if dtypes.is_complex(clang.result_type(*args)) or len(tensors) < len(args):
            raise NotImplementedError(f"{name} of complex numbers, or with a number")
        return prim(*clang.operands(*args, kind=Kind.INT_TO_FLOAT))

    def unary(input: TensorProxy) -> TensorProxy:
        return meta(input)

    def binary(input: Operand, other: Operand) -> TensorProxy:
        return meta(input, other)

    rule = unary if name in prims.special_unary else binary
    rule.__name__ = name
    names = _NAMES.get(name, (f"special.{name}",))
    torchsymbol(*(n for n in names if find(n) is not None))(rule)


for _name, _prim in prims.special_functions.items():
    _function(_name, _prim)


@torchsymbol("polygamma", "special.polygamma")
def polygamma(n: int, input: TensorProxy) -> TensorProxy:
    """The derivative of digamma of order `n`."""
    return _polygamma(n, input)


@torchsymbol("Tensor.polygamma")
def tensor_polygamma(self: TensorProxy, n: int) -> TensorProxy:
    return _polygamma(n, self)


def _polygamma(n: int, input: TensorProxy) -> TensorProxy:
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got {n}")
    return prims.polygamma(n, clang.convert(input, clang.promoted_dtype(input, kind=Kind.INT_TO_FLOAT)))


@torchsymbol("mvlgamma", "Tensor.mvlgamma", "special.multigammaln")
def mvlgamma(input: TensorProxy, p: int) -> TensorProxy:
    """The logarithm of the multivariate gamma function of dimension `p`."""
    dtype = clang.promoted_dtype(input, kind=Kind.INT_TO_FLOAT)
    if p < 1 or dtype not in (torch.float32, torch.float64):
        raise NotImplementedError(f"mvlgamma of {input.dtype} with p={p}")
    a = clang.convert(input, dtype)
    total = clang.lgamma(a)
    for j in range(1, p):
        total = total + clang.lgamma(a - j / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi)


def _in_float(compute: Callable[[TensorProxy], TensorProxy], input: TensorProxy) -> TensorProxy:
    """`compute` of `input` in the dtype that torch's kernels compute in."""
    dtype = clang.promoted_dtype(input, kind=Kind.INT_TO_FLOAT)
    if dtypes.is_complex(dtype):
        raise NotImplementedError("a special function of complex numbers")
    return clang.convert(compute(clang.convert(input, dtypes.compute_dtype(dtype))), dtype)


@torchsymbol("sinc", "Tensor.sinc", "special.sinc")
def sinc(input: TensorProxy) -> TensorProxy:
    """sin(pi * input) / (pi * input), 1 at 0"""
    return _in_float(lambda x: clang.where(clang.eq(x, 0), 1.0, clang.sin(x * math.pi) / (x * math.pi)), input)


@torchsymbol("special.ndtr")
def ndtr(input: TensorProxy) -> TensorProxy:
    """The standard normal distribution function."""

    def compute(x: TensorProxy) -> TensorProxy:
        t = x * math.sqrt(0.5)
        low = 0.5 * clang.erfc(clang.abs(t))
        return clang.where(clang.abs(t) < math.sqrt(0.5), 0.5 + 0.5 * clang.erf(t), clang.where(t > 0, 1.0 - low, low))

    return _in_float(compute, input)


@torchsymbol("special.xlog1py")
def xlog1py(input: Operand, other: Operand) -> TensorProxy:
    """input * log(1 + other), 0 where `input` is 0 and `other` no NaN"""
    if is_number(input) or is_number(other):
        raise NotImplementedError("xlog1py with a number")
    dtype = clang.promoted_dtype(input, other, kind=Kind.INT_TO_FLOAT)
    a, b = clang.operands(clang.convert(input, dtype), clang.convert(other, dtype))
    wide = dtypes.compute_dtype(dtype)
    product = clang.convert(a, wide) * clang.log1p(clang.convert(b, wide))
    out = clang.where(clang.eq(a, 0), 0.0, product)
    return clang.convert(clang.where(clang.isnan(b), math.nan, out), dtype)


@torchsymbol("hypot", "Tensor.hypot")
def hypot(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The square root of input^2 + other^2, without overflow."""
    return prims.hypot(*_floats("hypot", input, other))


@torchsymbol("nextafter", "Tensor.nextafter")
def nextafter(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The next number after `input` towards `other`."""
    return prims.nextafter(*_floats("nextafter", input, other))


def _floats(name: str, *values: TensorProxy) -> tuple[TensorProxy, ...]:
    if any(map(is_number, values)) or not dtypes.is_float(clang.result_type(*values)):
        raise NotImplementedError(f"{name} of {clang.result_type(*values)}")
    return clang.operands(*values)


@torchsymbol("gcd", "Tensor.gcd")
def gcd(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The greatest common divisor."""
    return prims.gcd(*_integers("gcd", input, other))


@torchsymbol("lcm", "Tensor.lcm")
def lcm(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The least common multiple; 0 where one of the two is 0."""
    a, b = _integers("lcm", input, other)
    divisor = prims.gcd(a, b)
    share = clang.floor_divide(a, clang.where(clang.eq(divisor, 0), 1, divisor))
    return clang.abs(clang.where(clang.eq(divisor, 0), 0, share * b))


def _integers(name: str, *values: TensorProxy) -> tuple[TensorProxy, ...]:
    dtype = clang.result_type(*values)
    if any(map(is_number, values)) or dtypes.is_inexact(dtype) or dtype in (torch.bool, torch.uint8):
        raise NotImplementedError(f"{name} of {dtype}")
    return clang.operands(*values)


@torchsymbol("heaviside", "Tensor.heaviside")
def heaviside(input: TensorProxy, values: TensorProxy) -> TensorProxy:
    """0 below 0, `values` at 0, 1 above"""
    if dtypes.is_complex(input.dtype) or input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors of different or complex dtypes.")
    return clang.where(clang.eq(input, 0), values, clang.convert(clang.gt(input, 0), input.dtype))


@torchsymbol("ldexp", "Tensor.ldexp")
def ldexp(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """input * 2^other"""
    dtype = clang.promoted_dtype(other, kind=Kind.INT_TO_FLOAT)
    return clang.mul(input, clang.pow(2.0, clang.convert(other, dtype)))


@torchsymbol("logaddexp2", "Tensor.logaddexp2")
def logaddexp2(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """`log2(2^input + 2^other)`, without overflow."""
    dtype = clang.promoted_dtype(input, other)
    if not dtypes.is_float(dtype):
        raise NotImplementedError(f"logaddexp2 of {dtype}")
    a, b = (clang.convert(x, dtypes.compute_dtype(dtype)) for x in (input, other))
    sum_ = clang.maximum(a, b) + clang.log1p(clang.exp2(-clang.abs(a - b))) * (1 / math.log(2))
    same_infinity = clang.bitwise_and(clang.isinf(a), clang.eq(a, b))
    return clang.convert(clang.where(same_infinity, a, sum_), dtype)


def _double(x: Operand) -> Operand:
    dtype = torch.complex128 if dtypes.is_complex(dtypes.to_dtype(x)) else torch.float64
    return clang.convert(x, dtype)


@torchsymbol("float_power")
def float_power(input: Operand, exponent: Operand) -> TensorProxy:
    """input^exponent in double precision"""
    return clang.pow(_double(input), _double(exponent))


@torchsymbol("Tensor.float_power")
def tensor_float_power(self: TensorProxy, exponent: Operand) -> TensorProxy:
    return clang.pow(_double(self), _double(exponent))


# Written into a tensor of another dtype, torch refuses the result: it says so itself.
del in_place[torch.Tensor.float_power_]
