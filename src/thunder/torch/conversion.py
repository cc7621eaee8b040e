"""Casts, copies and moves between devices of the PyTorch language."""

from typing import Any

import torch

from thunder import clang
from thunder.core import prims
from thunder.core.devices import to_device
from thunder.core.proxies import TensorProxy, is_contiguous
from thunder.torch.language import Number, is_number, torchsymbol


def _copied(
    a: TensorProxy,
    dtype: torch.dtype | None,
    device: torch.device | None,
    copy: bool = False,
    memory_format: torch.memory_format | None = None,
) -> TensorProxy:
    """`a` in `dtype` on `device`; `a` itself if it is that already and no copy is asked for."""
    out = a
    if dtype is not None and dtype != out.dtype:
        out = prims.convert_element_type(out, dtype)
    if device is not None and device != out.device:
        out = prims.device_put(out, device)
    if memory_format not in (None, torch.preserve_format):
        if memory_format is not torch.contiguous_format:
            raise NotImplementedError(f"memory_format={memory_format}")
        out = out if out.is_contiguous and (out is not a or not copy) else prims.contiguous(out)
    return prims.clone(out) if copy and out is a else out


@torchsymbol("Tensor.to")
def to(
    self: TensorProxy,
    *args: Any,
    device: Any = None,
    dtype: torch.dtype | None = None,
    other: TensorProxy | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: torch.memory_format | None = None,
) -> TensorProxy:
    """`to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`, each followed by non_blocking and copy."""
    rest = list(args)
    if rest and isinstance(rest[0], TensorProxy):
        other = rest.pop(0)
    elif rest and isinstance(rest[0], torch.dtype):
        dtype = rest.pop(0)
    elif rest:
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], torch.dtype)):
            dtype = rest.pop(0)
    if len(rest) > 2:
        raise TypeError(f"to() received an invalid combination of arguments: {args}")
    copy = rest[1] if len(rest) > 1 else copy
    if other is not None:
        device, dtype = other.device, other.dtype
    return _copied(self, dtype, None if device is None else to_device(device), copy, memory_format)


@torchsymbol("Tensor.type")
def type_(self: TensorProxy, dtype: torch.dtype | None = None, non_blocking: bool = False) -> TensorProxy:
    if not isinstance(dtype, torch.dtype):
        raise NotImplementedError("type() without a dtype, or with the name of a tensor class")
    return clang.convert(self, dtype)


@torchsymbol("Tensor.type_as")
def type_as(self: TensorProxy, other: TensorProxy) -> TensorProxy:
    return _copied(self, other.dtype, other.device)


def _cast(name: str, dtype: torch.dtype) -> None:
    def meta(self: TensorProxy, memory_format: torch.memory_format | None = None) -> TensorProxy:
        return _copied(self, dtype, None, memory_format=memory_format)

    meta.__name__ = name
    torchsymbol(f"Tensor.{name}")(meta)


for _name, _dtype in {
    "bfloat16": torch.bfloat16,
    "bool": torch.bool,
    "byte": torch.uint8,
    "cdouble": torch.complex128,
    "cfloat": torch.complex64,
    "chalf": torch.complex32,
    "char": torch.int8,
    "double": torch.float64,
    "float": torch.float32,
    "half": torch.float16,
    "int": torch.int32,
    "long": torch.int64,
    "short": torch.int16,
}.items():
    _cast(_name, _dtype)


@torchsymbol("Tensor.cpu")
def cpu(self: TensorProxy, memory_format: torch.memory_format | None = None) -> TensorProxy:
    return _copied(self, None, torch.device("cpu"), memory_format=memory_format)


@torchsymbol("Tensor.cuda")
def cuda(
    self: TensorProxy,
    device: Any = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> TensorProxy:
    return _copied(self, None, to_device("cuda" if device is None else device), memory_format=memory_format)


@torchsymbol("clone", "Tensor.clone")
def clone(input: TensorProxy, *, memory_format: torch.memory_format | None = None) -> TensorProxy:
    if memory_format in (None, torch.preserve_format):
        return prims.clone(input)
    if memory_format is torch.contiguous_format:
        return prims.contiguous(input)
    raise NotImplementedError(f"clone with memory_format={memory_format}")


@torchsymbol("Tensor.contiguous")
def contiguous(self: TensorProxy, memory_format: torch.memory_format = torch.contiguous_format) -> TensorProxy:
    """`self` if it is laid out that way already, else a copy that is."""
    if memory_format is torch.contiguous_format:
        return self if self.is_contiguous else prims.contiguous(self)
    if memory_format is torch.channels_last and self.ndim == 4:
        order = (0, 2, 3, 1)
        if is_contiguous([self.shape[d] for d in order], [self.strides[d] for d in order]):
            return self
    raise NotImplementedError(f"contiguous with memory_format={memory_format}")


@torchsymbol("detach", "Tensor.detach")
def detach(input: TensorProxy) -> TensorProxy:
    return prims.detach(input)


@torchsymbol("Tensor.copy")
def copy(self: TensorProxy, src: TensorProxy | Number, non_blocking: bool = False) -> TensorProxy:
    """What `self` holds after `self.copy_(src)`: `src` in the dtype, on the device and in the shape of `self`."""
    if is_number(src):
        copied = prims.full(self.shape, clang.convert(src, self.dtype), self.dtype, self.device)
    else:
        shape = clang.broadcast_shapes(self.shape, src.shape)
        if shape != self.shape:
            message = f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(shape)}"
            raise RuntimeError(message)
        moved = clang.expand_to(_copied(src, self.dtype, self.device), self.shape)
        copied = prims.clone(moved) if moved is src or moved.shape != src.shape else moved
    return prims.overwrite(copied, self) if self.requires_grad and torch.is_grad_enabled() else copied
