"""Which dtype an operation computes in and returns, and bringing its operands to one dtype, device and shape.

The rules are those of https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc.
"""

from collections.abc import Sequence
from enum import Enum, auto

import torch

from thunder.core import dtypes, prims
from thunder.core.numbers import SymbolicNumber
from thunder.core.proxies import TensorProxy

__all__ = [
    "Kind",
    "broadcast_shapes",
    "common_device",
    "computation_dtype",
    "convert",
    "expand_to",
    "on_device",
    "operands",
    "output_dtype",
    "promoted_dtype",
    "result_type",
]

Number = bool | int | float | complex


class Kind(Enum):
    """How an elementwise operation derives its dtypes from the promoted dtype of its operands."""

    DEFAULT = auto()  # computes in it and returns it: add
    INT_TO_FLOAT = auto()  # exact dtypes become the default dtype: sin
    ALWAYS_BOOL = auto()  # computes in it, returns bool: eq
    BOOL_TO_LONG = auto()  # bool becomes int64: sum
    COMPLEX_TO_FLOAT = auto()  # computes in it, returns the real dtype of a complex one: abs
    PRESERVE = auto()  # moves values and computes nothing: where


def result_type(*values: TensorProxy | Number) -> torch.dtype:
    """The dtype that `values` promote to: tensors with dimensions, then without, then numbers, by category."""
    groups: list[torch.dtype | None] = [None, None, None]
    for x in values:
        if isinstance(x, TensorProxy):
            at, dtype = (0 if x.shape else 1), x.dtype
        else:
            at, dtype = 2, dtypes.to_dtype(_number_type(x))
        groups[at] = dtype if groups[at] is None else dtypes.promote(groups[at], dtype)
    return _combine(groups[0], _combine(groups[1], groups[2]))


def _number_type(x: Number) -> type:
    """The Python number type of `x`, which may be one of NumPy's that derive from these."""
    for kind in (bool, int, float, complex):
        if isinstance(x, kind):
            return kind
    raise TypeError(f"{x!r} is neither a tensor nor a number")


def _combine(higher: torch.dtype | None, lower: torch.dtype | None) -> torch.dtype | None:
    """The dtype of operands of a higher and a lower rank: the lower counts only if its category is greater."""
    if higher is None or lower is None:
        return higher or lower
    if dtypes.category(lower) <= dtypes.category(higher):
        return higher
    if higher.is_floating_point:  # a complex number takes the precision of the tensor
        return dtypes.corresponding_complex(higher)
    return lower


def promoted_dtype(*values: TensorProxy | Number, kind: Kind = Kind.DEFAULT) -> torch.dtype:
    """The dtype that the operands of an operation of this kind are converted to."""
    dtype = result_type(*values)
    if kind is Kind.INT_TO_FLOAT and dtypes.is_exact(dtype):
        return torch.get_default_dtype()
    if kind is Kind.BOOL_TO_LONG and dtype is torch.bool:
        return torch.int64
    return dtype


def computation_dtype(*values: TensorProxy | Number, kind: Kind = Kind.DEFAULT) -> torch.dtype:
    """The dtype in which torch's kernels compute a composite: float32 where operands are float16 or bfloat16."""
    return dtypes.compute_dtype(promoted_dtype(*values, kind=kind))


def output_dtype(promoted: torch.dtype, kind: Kind) -> torch.dtype:
    """The dtype of the result of an operation whose operands were converted to `promoted`."""
    if kind is Kind.ALWAYS_BOOL:
        return torch.bool
    return dtypes.corresponding_real(promoted) if kind is Kind.COMPLEX_TO_FLOAT else promoted


def convert(a: TensorProxy | Number, dtype: torch.dtype) -> TensorProxy | Number:
    """`a` in `dtype`; a Python number becomes one of the type that `dtype` holds."""
    if isinstance(a, TensorProxy):
        return a if a.dtype == dtype else prims.convert_element_type(a, dtype)
    kind = dtypes.number_type(dtype)
    return a.converted(kind) if isinstance(a, SymbolicNumber) else kind(a)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that tensors of `shapes` broadcast to."""
    result = tuple(shapes[0])
    for shape in shapes[1:]:
        if shape != result:
            result = _broadcast_two(result, shape)
    return result


def _broadcast_two(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    ndim = max(len(a), len(b))
    result = []
    for d in range(-ndim, 0):
        p, q = (a[d] if -d <= len(a) else 1), (b[d] if -d <= len(b) else 1)
        if p != q and p != 1 and q != 1:
            raise RuntimeError(
                f"The size of tensor a ({p}) must match the size of tensor b ({q}) "
                f"at non-singleton dimension {ndim + d}"
            )
        result.append(q if p == 1 else p)
    return tuple(result)


def expand_to(a: TensorProxy, shape: Sequence[int]) -> TensorProxy:
    """`a` broadcast to `shape`; `a` itself if it has that shape."""
    if a.shape == tuple(shape):
        return a
    return prims.broadcast_in_dim(a, tuple(shape), tuple(range(len(shape) - a.ndim, len(shape))))


def operands(*values: TensorProxy | Number, kind: Kind = Kind.DEFAULT) -> tuple[TensorProxy | Number, ...]:
    """`values` in one dtype, on one device and broadcast to one shape; numbers stay numbers."""
    dtype = promoted_dtype(*values, kind=kind)
    tensors = [x for x in values if isinstance(x, TensorProxy)]
    if not tensors:
        raise TypeError("an operation of the core language needs at least one tensor")
    device, shape = common_device(tensors), broadcast_shapes(*(x.shape for x in tensors))
    return tuple(
        expand_to(on_device(convert(x, dtype), device), shape) if isinstance(x, TensorProxy) else convert(x, dtype)
        for x in values
    )


def common_device(tensors: Sequence[TensorProxy]) -> torch.device:
    """Where an elementwise operation on `tensors` runs: tensors without dimensions may come from the CPU."""
    device = next((x.device for x in tensors if x.ndim or x.device.type != "cpu"), tensors[0].device)
    for x in tensors:
        if x.device != device and (x.ndim or x.device.type != "cpu"):
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{device} and {x.device}!"
            )
    return device


def on_device(a: TensorProxy, device: torch.device) -> TensorProxy:
    return a if a.device == device else prims.device_put(a, device)
