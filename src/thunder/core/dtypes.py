"""Facts about torch's dtypes: short names for trace comments, categories, promotion.

A dtype in a trace is a `torch.dtype`; this file adds what torch does not say about one.
"""

from functools import cache
from typing import Any

import torch

_SHORT_NAMES: dict[torch.dtype, str] = {
    torch.bool: "b8",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.complex32: "c32",
    torch.complex64: "c64",
    torch.complex128: "c128",
    torch.float8_e4m3fn: "f8e4m3fn",
    torch.float8_e4m3fnuz: "f8e4m3fnuz",
    torch.float8_e5m2: "f8e5m2",
    torch.float8_e5m2fnuz: "f8e5m2fnuz",
}
_FROM_SHORT_NAME = {name: dtype for dtype, name in _SHORT_NAMES.items()}

bool8 = torch.bool
uint8, int8, int16, int32, int64 = torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64
float16, bfloat16, float32, float64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
complex32, complex64, complex128 = torch.complex32, torch.complex64, torch.complex128


def short_name(dtype: torch.dtype) -> str:
    """The name that trace comments use: `f32` for `torch.float32`."""
    return _SHORT_NAMES.get(dtype) or str(dtype).removeprefix("torch.")


def from_short_name(name: str) -> torch.dtype:
    """The dtype that trace comments call `name`; KeyError if there is none."""
    return _FROM_SHORT_NAME[name]


def to_dtype(x: Any) -> torch.dtype:
    """The dtype of a tensor, proxy, Python number or number type, or the dtype itself."""
    if isinstance(x, torch.dtype):
        return x
    kind = x if isinstance(x, type) else x.__class__
    if kind is bool:
        return torch.bool
    if kind is int:
        return torch.int64
    if kind is float:
        return torch.get_default_dtype()
    if kind is complex:
        return corresponding_complex(torch.get_default_dtype())
    if hasattr(x, "dtype"):
        return x.dtype
    raise TypeError(f"{x!r} has no dtype")


def to_torch_dtype(x: Any) -> torch.dtype:
    """Same as `to_dtype`: the dtypes of traces are torch's own."""
    return to_dtype(x)


def is_float(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point


def is_complex(dtype: torch.dtype) -> bool:
    return dtype.is_complex


def is_inexact(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def is_exact(dtype: torch.dtype) -> bool:
    """Whether `dtype` is bool or an integer."""
    return not is_inexact(dtype)


def is_low_precision(dtype: torch.dtype) -> bool:
    """Whether torch's kernels compute `dtype` in float32 inside."""
    return dtype in (torch.float16, torch.bfloat16)


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which torch's kernels compute a composite operation on `dtype`."""
    return torch.float32 if is_low_precision(dtype) else dtype


def corresponding_complex(dtype: torch.dtype) -> torch.dtype:
    return {torch.float64: torch.complex128, torch.float16: torch.complex32}.get(dtype, torch.complex64)


def corresponding_real(dtype: torch.dtype) -> torch.dtype:
    reals = {torch.complex128: torch.float64, torch.complex64: torch.float32, torch.complex32: torch.float16}
    return reals.get(dtype, dtype)


def number_type(dtype: torch.dtype) -> type:
    """The Python number type that holds a value of `dtype`."""
    if dtype is torch.bool:
        return bool
    if dtype.is_complex:
        return complex
    return float if dtype.is_floating_point else int


def category(dtype: torch.dtype) -> int:
    """0 for bool, 1 for integers, 2 for floats, 3 for complex: what type promotion orders by."""
    if dtype is torch.bool:
        return 0
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else 1


@cache
def promote(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    """The smallest dtype that holds both, by torch's table."""
    return torch.promote_types(a, b)
