"""Complex numbers in the PyTorch language: their parts are views, what is made of parts is new."""

import math

import torch

from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.torch.language import torchsymbol


@torchsymbol("view_as_real")
def view_as_real(input: TensorProxy) -> TensorProxy:
    """The real and imaginary parts as a last dimension of 2."""
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return prims.view_as_real(input)


@torchsymbol("view_as_complex")
def view_as_complex(input: TensorProxy) -> TensorProxy:
    """The complex numbers whose parts are the last dimension."""
    if input.dtype not in (torch.float16, torch.float32, torch.float64):
        raise RuntimeError("view_as_complex is only supported for floating point tensors")
    if input.ndim == 0 or input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if input.strides[-1] != 1 or any(s % 2 for s in input.strides[:-1]):
        raise RuntimeError("Tensor must have a last dimension with stride 1, and other strides divisible by 2")
    return prims.view_as_complex(input)


@torchsymbol("real", "Tensor.real.__get__")
def real(input: TensorProxy) -> TensorProxy:
    return prims.real(input) if input.dtype.is_complex else input


@torchsymbol("imag", "Tensor.imag.__get__")
def imag(input: TensorProxy) -> TensorProxy:
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return prims.imag(input)


@torchsymbol("complex")
def complex_(real: TensorProxy, imag: TensorProxy) -> TensorProxy:
    """real + imag * 1j"""
    if real.dtype != imag.dtype:
        raise RuntimeError(f"Expected object of scalar type {real.dtype} but got scalar type {imag.dtype}")
    if real.dtype not in (torch.float16, torch.float32, torch.float64):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {real.dtype}")
    return prims.complex(*clang.operands(real, imag))


@torchsymbol("polar")
def polar(abs: TensorProxy, angle: TensorProxy) -> TensorProxy:
    """abs * exp(angle * 1j)"""
    if abs.dtype != angle.dtype or abs.dtype not in (torch.float32, torch.float64):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {abs.dtype}")
    a, b = clang.operands(abs, angle)
    return prims.complex(a * clang.cos(b), a * clang.sin(b))


@torchsymbol("angle", "Tensor.angle")
def angle(input: TensorProxy) -> TensorProxy:
    """The angle of complex numbers; pi for negative real ones, else 0."""
    if input.dtype.is_complex:
        return clang.atan2(prims.imag(input), prims.real(input))
    a = clang.convert(input, clang.promoted_dtype(input, kind=clang.Kind.INT_TO_FLOAT))
    return clang.where(clang.isnan(a), a, clang.convert(clang.lt(a, 0), a.dtype) * math.pi)


@torchsymbol("conj_physical", "Tensor.conj_physical")
def conj_physical(input: TensorProxy) -> TensorProxy:
    """Complex numbers with the sign of the imaginary part changed."""
    return prims.conj_physical(input) if input.dtype.is_complex else input


@torchsymbol("resolve_conj", "Tensor.resolve_conj", "resolve_neg", "Tensor.resolve_neg")
def resolve_conj(input: TensorProxy) -> TensorProxy:
    """`input` itself; of complex numbers torch knows whether it has put off to conjugate them."""
    if input.dtype.is_complex:
        raise NotImplementedError("a conjugation that was put off")
    return input


@torchsymbol("conj", "Tensor.conj")
def conj(input: TensorProxy) -> TensorProxy:
    """The conjugate; real numbers are their own."""
    if input.dtype.is_complex:
        raise NotImplementedError("the lazy conjugate of complex numbers")
    return input


@torchsymbol("isreal", "Tensor.isreal")
def isreal(input: TensorProxy) -> TensorProxy:
    """Whether numbers have no imaginary part."""
    if input.dtype.is_complex:
        return clang.eq(prims.imag(input), 0)
    return prims.full(input.shape, True, torch.bool, input.device)
