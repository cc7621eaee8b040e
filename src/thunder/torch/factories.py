"""Operations of the PyTorch language that make tensors of nothing."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.devices import to_device
from thunder.core.proxies import TensorProxy
from thunder.torch.language import Number, is_number, sizes_of, torchsymbol


def checked(symbol: str, layout: Any, pin_memory: bool | None, names: Any = None, memory_format: Any = None) -> None:
    """NotImplementedError for the arguments that factories take and traces do not express."""
    if layout not in (None, torch.strided) or pin_memory or names is not None:
        raise NotImplementedError(f"{symbol} with layout, pin_memory or names")
    if memory_format not in (None, torch.preserve_format, torch.contiguous_format):
        raise NotImplementedError(f"{symbol} with memory_format={memory_format}")


def _full(
    shape: Sequence[int], value: Number, dtype: torch.dtype | None, device: Any, requires_grad: bool = False
) -> TensorProxy:
    dtype = dtype or torch.get_default_dtype()
    out = prims.full(tuple(shape), clang.convert(value, dtype), dtype, to_device(device))
    out.requires_grad = requires_grad
    return out


def _shaped_factory(name: str, value: float) -> None:
    """zeros, ones and empty; the contents of empty are whatever is there, so zeros will do."""

    def factory(
        *sizes: int | Sequence[int],
        size: Sequence[int] | None = None,
        out: None = None,
        dtype: torch.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool | None = False,
        requires_grad: bool = False,
        names: Any = None,
        memory_format: Any = None,
    ) -> TensorProxy:
        checked(name, layout, pin_memory, names, memory_format)
        return _full(sizes_of(sizes, size), value, dtype, device, requires_grad)

    def like(
        input: TensorProxy,
        *,
        dtype: torch.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool | None = False,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> TensorProxy:
        checked(f"{name}_like", layout, pin_memory, memory_format=memory_format)
        return _full_like(input, value, dtype, device, requires_grad)

    def new(
        self: TensorProxy,
        *sizes: int | Sequence[int],
        size: Sequence[int] | None = None,
        dtype: torch.dtype | None = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool | None = False,
    ) -> TensorProxy:
        checked(f"new_{name}", layout, pin_memory)
        return _full(sizes_of(sizes, size), value, dtype or self.dtype, device or self.device, requires_grad)

    factory.__name__, like.__name__, new.__name__ = name, f"{name}_like", f"new_{name}"
    torchsymbol(name)(factory)
    torchsymbol(f"{name}_like")(like)
    torchsymbol(f"Tensor.new_{name}")(new)


for _name, _value in {"zeros": 0, "ones": 1, "empty": 0}.items():
    _shaped_factory(_name, _value)


def _full_like(
    a: TensorProxy, value: Number, dtype: torch.dtype | None, device: Any, requires_grad: bool = False
) -> TensorProxy:
    return _full(a.shape, value, dtype or a.dtype, a.device if device is None else device, requires_grad)


@torchsymbol("full")
def full(
    size: Sequence[int],
    fill_value: Number,
    *,
    out: None = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
    names: Any = None,
) -> TensorProxy:
    checked("full", layout, pin_memory, names)
    dtype = dtype or dtypes.to_dtype(fill_value)
    if is_number(fill_value):
        return _full(sizes_of((size,)), fill_value, dtype, device, requires_grad)
    return prims.clone(clang.expand_to(clang.convert(fill_value, dtype), sizes_of((size,))))


@torchsymbol("full_like")
def full_like(
    input: TensorProxy,
    fill_value: Number,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> TensorProxy:
    checked("full_like", layout, pin_memory, memory_format=memory_format)
    if not is_number(fill_value):
        raise NotImplementedError("full_like with a tensor")
    return _full_like(input, fill_value, dtype, device, requires_grad)


@torchsymbol("Tensor.new_full")
def new_full(
    self: TensorProxy,
    size: Sequence[int],
    fill_value: Number,
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool | None = False,
) -> TensorProxy:
    checked("new_full", layout, pin_memory)
    if not is_number(fill_value):
        raise NotImplementedError("new_full with a tensor")
    return _full(sizes_of((size,)), fill_value, dtype or self.dtype, device or self.device, requires_grad)


@torchsymbol("fill", "Tensor.fill")
def fill(input: TensorProxy, value: Number | TensorProxy) -> TensorProxy:
    """`value` in the shape and dtype of `input`; what `fill_` writes."""
    if is_number(value):
        return _full_like(input, value, None, None)
    if value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    moved = clang.on_device(clang.convert(value, input.dtype), input.device)
    return prims.clone(clang.expand_to(moved, input.shape))


@torchsymbol("zero", "Tensor.zero")
def zero(input: TensorProxy) -> TensorProxy:
    """Zeros in the shape and dtype of `input`; what `zero_` writes."""
    return _full_like(input, 0, None, None)


@torchsymbol("arange")
def arange(
    start: Number,
    end: Number | None = None,
    step: Number = 1,
    *,
    out: None = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
) -> TensorProxy:
    """start, start + step, ... below end"""
    checked("arange", layout, pin_memory)
    if end is None:
        start, end = 0, start
    if not all(is_number(x) for x in (start, end, step)):
        raise NotImplementedError("arange of tensors")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not all(isinstance(x, int) or math.isfinite(x) for x in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is None:
        integers = all(isinstance(x, int) for x in (start, end, step))
        dtype = torch.int64 if integers else torch.get_default_dtype()
    if dtype is torch.int64:  # torch truncates the numbers before it counts
        start, end, step = (x if isinstance(x, int) else int(x) for x in (start, end, step))
    length = -((start - end) // step) if dtype is torch.int64 else math.ceil((end - start) / step)
    out = prims.iota(length, clang.convert(start, dtype), clang.convert(step, dtype), dtype, to_device(device))
    out.requires_grad = requires_grad
    return out


@torchsymbol("linspace")
def linspace(
    start: Number,
    end: Number,
    steps: int,
    *,
    out: None = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
) -> TensorProxy:
    """`steps` numbers from `start` to `end`, both included, the second half counted back from the end"""
    checked("linspace", layout, pin_memory)
    dtype = dtype or torch.get_default_dtype()
    if dtype not in (torch.float32, torch.float64) or not (is_number(start) and is_number(end)) or steps < 2:
        raise NotImplementedError("linspace of a dtype other than float32 and float64, or of less than two numbers")
    index = prims.iota(steps, 0, 1, torch.int64, to_device(device))
    step = (end - start) / (steps - 1)
    rising = clang.convert(index, dtype) * step + start
    falling = end - clang.convert((steps - 1) - index, dtype) * step
    out = clang.where(clang.lt(index, steps // 2), rising, falling)
    out.requires_grad = requires_grad
    return out


@torchsymbol("eye")
def eye(
    n: int,
    m: int | None = None,
    *,
    out: None = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
) -> TensorProxy:
    checked("eye", layout, pin_memory)
    device = to_device(device)
    rows = prims.iota(n, 0, 1, torch.int64, device)
    columns = rows if m is None else prims.iota(m, 0, 1, torch.int64, device)
    out = clang.convert(clang.eq(clang.unsqueeze(rows, 1), columns), dtype or torch.get_default_dtype())
    out.requires_grad = requires_grad
    return out


def _from_data(data: Any, dtype: torch.dtype | None, device: Any) -> TensorProxy:
    """The tensor of nested lists of numbers."""
    if isinstance(data, TensorProxy) or not _only_numbers(data):
        raise NotImplementedError("a tensor made of something else than numbers")
    dtype = dtype or torch.tensor(data).dtype
    if is_number(data):
        return prims.full((), clang.convert(data, dtype), dtype, to_device(device))
    return prims.tensor_from_sequence(data, dtype, to_device(device))


def _only_numbers(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return all(map(_only_numbers, data))
    return type(data) in (bool, int, float, complex)


@torchsymbol("tensor")
def tensor(
    data: Any,
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> TensorProxy:
    checked("tensor", None, pin_memory)
    out = _from_data(data, dtype, device)
    out.requires_grad = requires_grad
    return out


@torchsymbol("as_tensor", "asarray")
def as_tensor(data: Any, dtype: torch.dtype | None = None, device: Any = None) -> TensorProxy:
    if isinstance(data, TensorProxy):
        out = clang.convert(data, dtype or data.dtype)
        return out if device is None else clang.on_device(out, to_device(device))
    return _from_data(data, dtype, device)


@torchsymbol("scalar_tensor")
def scalar_tensor(
    s: Number,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
) -> TensorProxy:
    checked("scalar_tensor", layout, pin_memory)
    return _full((), s, dtype, device, requires_grad)


@torchsymbol("Tensor.new_tensor")
def new_tensor(
    self: TensorProxy,
    data: Any,
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> TensorProxy:
    checked("new_tensor", layout, pin_memory)
    return _from_data(data, dtype or self.dtype, device or self.device)


def _triangle_indices(name: str, is_inside: Callable[[int, int, int], bool]) -> None:
    def meta(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: torch.dtype = torch.int64,
        device: Any = None,
        layout: Any = None,
        pin_memory: bool | None = False,
    ) -> TensorProxy:
        """The rows and the columns of a triangle of a matrix, as two rows of a tensor."""
        checked(name, layout, pin_memory)
        places = [(i, j) for i in range(row) for j in range(col) if is_inside(i, j, offset)]
        if row < 0 or col < 0 or len(places) > _WRITTEN_OUT or not places:
            raise NotImplementedError(f"{name} of so many elements")
        return prims.tensor_from_sequence([list(x) for x in zip(*places)], dtype, to_device(device))

    meta.__name__ = name
    torchsymbol(name)(meta)


# Up to this many places, a trace holds them as numbers.
_WRITTEN_OUT = 64
_triangle_indices("tril_indices", lambda i, j, offset: j <= i + offset)
_triangle_indices("triu_indices", lambda i, j, offset: j >= i + offset)
