"""Gradients of what makes complex numbers and takes them apart, and where the other rules hold for complex numbers.

The gradient of z is that of its real part plus 1j times that of its imaginary part, as torch has it.
"""

from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.transforms.gradients.elementwise import Grads, zeros_like
from thunder.transforms.gradients.table import gradient

# Primitives whose gradient rules are right for complex numbers too: those here, and linear ones.
HOLDS: frozenset[Symbol] = frozenset({
    *(prims.add, prims.sub, prims.mul, prims.div, prims.neg, prims.where, prims.sum_prim, prims.convert_element_type),
    *(prims.clone, prims.contiguous, prims.broadcast_in_dim, prims.reshape, prims.permute, prims.squeeze),
    *(prims.slice_prim, prims.cat, prims.flip, prims.pad, prims.take, prims.index, prims.gather, prims.full),
    *(prims.real, prims.imag, prims.complex_prim, prims.conj_physical, prims.view_as_real, prims.view_as_complex),
})  # fmt: skip


@gradient(prims.conj_physical)
def _conj(g: TensorProxy, out: TensorProxy, a: TensorProxy) -> Grads:
    return (prims.conj_physical(g),)


@gradient(prims.complex_prim)
def _complex(g: TensorProxy, out: TensorProxy, real: TensorProxy, imag: TensorProxy) -> Grads:
    return prims.real(g), prims.imag(g)


@gradient(prims.real)
def _real(g: TensorProxy, out: TensorProxy, a: TensorProxy) -> Grads:
    return (prims.complex(g, zeros_like(g)),)


@gradient(prims.imag)
def _imag(g: TensorProxy, out: TensorProxy, a: TensorProxy) -> Grads:
    return (prims.complex(zeros_like(g), g),)


@gradient(prims.view_as_real)
def _view_as_real(g: TensorProxy, out: TensorProxy, a: TensorProxy) -> Grads:
    return (prims.view_as_complex(prims.contiguous(g)),)


@gradient(prims.view_as_complex)
def _view_as_complex(g: TensorProxy, out: TensorProxy, a: TensorProxy) -> Grads:
    return (prims.view_as_real(g),)
