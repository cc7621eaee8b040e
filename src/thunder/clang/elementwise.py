"""Elementwise operations: the primitives of the same names after type promotion and broadcasting."""

from collections.abc import Callable

from thunder.clang.promotion import (
    Kind,
    Number,
    broadcast_shapes,
    common_device,
    convert,
    expand_to,
    on_device,
    operands,
    promoted_dtype,
)
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol

__all__ = ["where"]

_UNARY = {
    Kind.DEFAULT: "bitwise_not ceil floor neg round sign trunc",
    Kind.INT_TO_FLOAT: """acos acosh asin asinh atan atanh cos cosh erf erfc erfinv exp exp2 expm1 lgamma log log10
        log1p log2 reciprocal rsqrt sigmoid sin sinh sqrt tan tanh""",
    Kind.ALWAYS_BOOL: "isfinite isinf isnan logical_not signbit",
    Kind.COMPLEX_TO_FLOAT: "abs",
}
_BINARY = {
    Kind.DEFAULT: """add bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor floor_divide fmod
        maximum minimum mul pow remainder sub""",
    Kind.INT_TO_FLOAT: "atan2 div",
    Kind.ALWAYS_BOOL: "eq ge gt le lt ne",
}


def _unary(prim: Symbol, kind: Kind) -> Callable[[TensorProxy], TensorProxy]:
    def function(a: TensorProxy) -> TensorProxy:
        return prim(convert(a, promoted_dtype(a, kind=kind)))

    return function


def _binary(prim: Symbol, kind: Kind) -> Callable[[TensorProxy | Number, TensorProxy | Number], TensorProxy]:
    def function(a: TensorProxy | Number, b: TensorProxy | Number) -> TensorProxy:
        return prim(*operands(a, b, kind=kind))

    return function


def _define(make: Callable[[Symbol, Kind], Callable], kinds: dict[Kind, str]) -> None:
    for kind, names in kinds.items():
        for name in names.split():
            function = make(prims.all_prims[name], kind)
            function.__name__ = function.__qualname__ = name
            function.__doc__ = f"`prims.{name}` after type promotion ({kind.name}) and broadcasting."
            globals()[name] = function
            __all__.append(name)


_define(_unary, _UNARY)
_define(_binary, _BINARY)


def where(condition: TensorProxy, a: TensorProxy | Number, b: TensorProxy | Number) -> TensorProxy:
    """`a` where `condition` (bool) holds, else `b`; at least one of the two is a tensor."""
    dtype = promoted_dtype(a, b, kind=Kind.PRESERVE)
    condition, a, b = _broadcast_where(condition, convert(a, dtype), convert(b, dtype))
    return prims.where(condition, a, b)


def _broadcast_where(condition: TensorProxy, a: TensorProxy | Number, b: TensorProxy | Number) -> tuple:
    tensors = [x for x in (condition, a, b) if isinstance(x, TensorProxy)]
    device, shape = common_device(tensors), broadcast_shapes(*(x.shape for x in tensors))
    return tuple(expand_to(on_device(x, device), shape) if isinstance(x, TensorProxy) else x for x in (condition, a, b))
