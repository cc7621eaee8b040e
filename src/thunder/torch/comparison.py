"""Comparisons, logic and choices of the PyTorch language."""

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.torch.language import Number, is_number, torchsymbol

Operand = TensorProxy | Number

_COMPARISONS = {"eq": "", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}


def _comparison(name: str, alias: str) -> Symbol:
    compute = getattr(clang, name)

    def meta(input: Operand, other: Operand) -> TensorProxy:
        return compute(input, other)

    meta.__name__ = name
    names = (name, f"Tensor.{name}", f"Tensor.__{name}__", *((alias, f"Tensor.{alias}") if alias else ()))
    return torchsymbol(*names)(meta)


for _name, _alias in _COMPARISONS.items():
    _comparison(_name, _alias)


@torchsymbol()
def isnan(input: TensorProxy) -> TensorProxy:
    return clang.isnan(input)


@torchsymbol()
def isinf(input: TensorProxy) -> TensorProxy:
    return clang.isinf(input)


@torchsymbol()
def isfinite(input: TensorProxy) -> TensorProxy:
    return clang.isfinite(input)


@torchsymbol()
def signbit(input: TensorProxy) -> TensorProxy:
    return clang.signbit(input)


@torchsymbol()
def isclose(
    input: TensorProxy, other: TensorProxy, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> TensorProxy:
    """`|input - other| <= atol + rtol * |other|`, or equal."""
    if input.dtype != other.dtype:
        raise RuntimeError(f"{input.dtype} did not match {other.dtype}")
    close = clang.eq(input, other)
    if equal_nan and dtypes.is_inexact(input.dtype):
        close = clang.bitwise_or(close, clang.bitwise_and(clang.isnan(input), clang.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    wide = input if dtypes.is_inexact(input.dtype) else clang.convert(input, torch.get_default_dtype())
    allowed = clang.add(clang.abs(clang.mul(clang.convert(other, wide.dtype), rtol)), atol)
    error = clang.abs(clang.sub(wide, clang.convert(other, wide.dtype)))
    return clang.bitwise_or(close, clang.bitwise_and(clang.isfinite(error), clang.le(error, allowed)))


@torchsymbol()
def logical_not(input: TensorProxy) -> TensorProxy:
    return clang.logical_not(input)


def _truth(a: TensorProxy) -> TensorProxy:
    return a if a.dtype is torch.bool else clang.ne(a, 0)


@torchsymbol()
def logical_and(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    return clang.bitwise_and(_truth(input), _truth(other))


@torchsymbol()
def logical_or(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    return clang.bitwise_or(_truth(input), _truth(other))


@torchsymbol()
def logical_xor(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    return clang.bitwise_xor(_truth(input), _truth(other))


@torchsymbol("bitwise_not", "Tensor.bitwise_not", "Tensor.__invert__")
def bitwise_not(input: TensorProxy) -> TensorProxy:
    _refuse_inexact("bitwise_not", input)
    return clang.bitwise_not(input)


def _refuse_inexact(name: str, *values: Operand) -> None:
    dtype = clang.result_type(*values)
    if dtypes.is_inexact(dtype):
        raise NotImplementedError(f'"{name}_cpu" not implemented for {dtype}')


def _bitwise(name: str, operator: str) -> Symbol:
    compute = getattr(clang, name)

    def meta(input: Operand, other: Operand) -> TensorProxy:
        _refuse_inexact(name, input, other)
        return compute(input, other)

    meta.__name__ = name
    names = (name, f"Tensor.{name}", f"Tensor.__{operator}__")
    return torchsymbol(*names, reflects=(f"Tensor.__r{operator}__",))(meta)


for _name, _operator in {
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "bitwise_left_shift": "lshift",
    "bitwise_right_shift": "rshift",
}.items():
    _bitwise(_name, _operator)


@torchsymbol("where")
def where(condition: TensorProxy, input: Operand | None = None, other: Operand | None = None) -> TensorProxy:
    """`input` where `condition` holds, else `other`."""
    if input is None or other is None:
        raise NotImplementedError("where(condition): the result's shape depends on values")
    if condition.dtype is torch.uint8:
        condition = clang.convert(condition, torch.bool)
    if condition.dtype is not torch.bool:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{dtypes.short_name(condition.dtype)}"
        )
    if is_number(input) and is_number(other):
        dtype = clang.result_type(input, other)
        input = prims.full((), clang.convert(input, dtype), dtype, condition.device)
        other = clang.convert(other, dtype)
    return clang.where(condition, input, other)


@torchsymbol("Tensor.where")
def tensor_where(self: TensorProxy, condition: TensorProxy, other: Operand) -> TensorProxy:
    """`self` where `condition` holds, else `other`."""
    return where(condition, self, other)


@torchsymbol()
def masked_fill(input: TensorProxy, mask: TensorProxy, value: Operand) -> TensorProxy:
    """`value` where `mask` holds, else `input`; the dtype of `input`."""
    if mask.dtype is not torch.bool:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    if not is_number(value):
        if value.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
    elif dtypes.category(dtypes.to_dtype(value)) > max(1, dtypes.category(input.dtype)):
        raise NotImplementedError(f"masked_fill of {input.dtype} with {value!r}")
    return clang.where(mask, clang.convert(value, input.dtype), input)
