"""One piece of host memory seen as a CPU tensor and as a virtual CUDA tensor.

DLPack hands a tensor over as a small C structure that says where the bytes are and on which device. Changing the device
in it gives a tensor over the same bytes on the other device, with ownership, strides and offset kept by torch itself.
"""

import ctypes

import torch

_DLPACK_CPU, _DLPACK_CUDA = 1, 2
_DEVICE_OFFSET = ctypes.sizeof(ctypes.c_void_p)  # in DLTensor the device follows the data pointer

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]

# DLPack has no name for these; they travel as bytes.
_AS_BYTES = frozenset(value for name, value in vars(torch).items() if name.startswith("float8_"))


def host_alias(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor over the bytes of a virtual CUDA tensor, with its shape and strides. It keeps them alive."""
    return _relabelled(tensor, _DLPACK_CPU, 0)


def device_alias(tensor: torch.Tensor, index: int) -> torch.Tensor:
    """A CUDA tensor of device `index` over the bytes of a CPU tensor, with its shape and strides; keeps them alive."""
    return _relabelled(tensor, _DLPACK_CUDA, index)


def copy_bytes(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy between two tensors of the same dtype, shape and strides, whatever their devices say."""
    ctypes.memmove(target.data_ptr(), source.data_ptr(), span(source) * source.element_size())


def span(tensor: torch.Tensor) -> int:
    """How many elements of memory lie between a tensor's first and its last."""
    return 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0


def _relabelled(tensor: torch.Tensor, device_type: int, index: int) -> torch.Tensor:
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.dtype in _AS_BYTES:
        return _relabelled(tensor.view(torch.uint8), device_type, index).view(tensor.dtype)
    capsule = torch._C._to_dlpack(tensor)
    device = (ctypes.c_int32 * 2).from_address(_capsule_pointer(capsule, b"dltensor") + _DEVICE_OFFSET)
    device[0], device[1] = device_type, index
    alias = torch._C._from_dlpack(capsule)
    if alias.stride() != tensor.stride():  # DLPack gives dimensions of size one a stride of one
        alias = alias.as_strided(tensor.shape, tensor.stride())
    if tensor.is_conj():
        alias = torch._conj(alias)
    if tensor.is_neg():
        alias = torch._neg_view(alias)
    return alias
