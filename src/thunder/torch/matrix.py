"""Matrix products of the PyTorch language."""

import math

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.torch.language import Number, in_place, torchsymbol


def _refuse_different_dtypes(a: TensorProxy, b: TensorProxy) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {a.dtype} != {b.dtype}")


def _sizes(a: TensorProxy) -> str:
    return "x".join(map(str, a.shape))


@torchsymbol(
    "matmul",
    "Tensor.matmul",
    "Tensor.__matmul__",
    "linalg.matmul",
    reflects=("Tensor.__rmatmul__",),
)
def matmul(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The product of the last two dimensions (the last of a vector), with the dimensions before them broadcast."""
    if input.ndim == 0 or other.ndim == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {input.ndim}D and {other.ndim}D"
        )
    _refuse_different_dtypes(input, other)
    if input.shape[-1] != other.shape[-2 if other.ndim > 1 else 0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_sizes(input)} and {_sizes(other)})")
    if input.ndim <= 2 and other.ndim <= 2:
        return prims.matmul(input, other)
    if input.ndim > 2 and other.ndim <= 2:  # one product of a tall matrix
        tall = prims.matmul(prims.reshape(input, (math.prod(input.shape[:-1]), input.shape[-1])), other)
        return prims.reshape(tall, (*input.shape[:-1], *other.shape[1:]))
    return _batched(input, other)


def _batched(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """The product where `b` has batch dimensions: a vector becomes a matrix, the batches are broadcast."""
    vector_a, vector_b = a.ndim == 1, b.ndim == 1
    a = clang.unsqueeze(a, 0) if vector_a else a
    b = clang.unsqueeze(b, 1) if vector_b else b
    batch = clang.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = prims.matmul(clang.expand_to(a, batch + a.shape[-2:]), clang.expand_to(b, batch + b.shape[-2:]))
    return prims.squeeze(out, (out.ndim - 2,)) if vector_a else out


def _product(name: str, a: TensorProxy, b: TensorProxy, ndims: tuple[int, int]) -> TensorProxy:
    """`prims.matmul` of tensors that have exactly `ndims` dimensions."""
    if (a.ndim, b.ndim) != ndims:
        raise RuntimeError(f"{name}: expected {ndims[0]}D and {ndims[1]}D tensors, got {a.ndim}D and {b.ndim}D")
    _refuse_different_dtypes(a, b)
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0] or a.shape[:-2] != b.shape[:-2]:
        raise RuntimeError(f"{name}: mat1 and mat2 shapes cannot be multiplied ({_sizes(a)} and {_sizes(b)})")
    return prims.matmul(a, b)


@torchsymbol("mm", "Tensor.mm")
def mm(input: TensorProxy, mat2: TensorProxy) -> TensorProxy:
    return _product("mm", input, mat2, (2, 2))


@torchsymbol("bmm", "Tensor.bmm")
def bmm(input: TensorProxy, mat2: TensorProxy) -> TensorProxy:
    return _product("bmm", input, mat2, (3, 3))


@torchsymbol("mv", "Tensor.mv")
def mv(input: TensorProxy, vec: TensorProxy) -> TensorProxy:
    return _product("mv", input, vec, (2, 1))


@torchsymbol("dot", "Tensor.dot", "inner_product")
def dot(input: TensorProxy, tensor: TensorProxy) -> TensorProxy:
    return _product("dot", input, tensor, (1, 1))


@torchsymbol("outer", "Tensor.outer")
def outer(input: TensorProxy, vec2: TensorProxy) -> TensorProxy:
    if input.ndim != 1 or vec2.ndim != 1:
        raise RuntimeError(f"outer: Expected 1-D arguments, but got {input.ndim}-D and {vec2.ndim}-D")
    return clang.mul(clang.unsqueeze(input, 1), vec2)


def _add_product(input: TensorProxy, product: TensorProxy, beta: Number, alpha: Number) -> TensorProxy:
    """`beta * input + alpha * product`; a beta of 0 ignores `input`, NaN and all."""
    if input.dtype != product.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {input.dtype} and {product.dtype}")
    if dtypes.is_exact(input.dtype) and not (isinstance(beta, int) and isinstance(alpha, int)):
        raise NotImplementedError("a product of integers scaled by a float")
    dtype = dtypes.compute_dtype(product.dtype)
    out = clang.convert(product, dtype)
    out = out if alpha == 1 else clang.mul(out, alpha)
    if clang.broadcast_shapes(input.shape, out.shape) != out.shape:
        raise RuntimeError(f"The expanded size of the tensor {list(input.shape)} must match {list(out.shape)}")
    if beta != 0:
        added = clang.convert(input, dtype)
        out = clang.add(added if beta == 1 else clang.mul(added, beta), out)
    return clang.laid_out(clang.convert(out, product.dtype))


@torchsymbol("addmm", "Tensor.addmm")
def addmm(
    input: TensorProxy, mat1: TensorProxy, mat2: TensorProxy, *, beta: Number = 1, alpha: Number = 1
) -> TensorProxy:
    """`beta * input + alpha * (mat1 @ mat2)`"""
    return _add_product(input, _product("addmm", mat1, mat2, (2, 2)), beta, alpha)


@torchsymbol("baddbmm", "Tensor.baddbmm")
def baddbmm(
    input: TensorProxy, batch1: TensorProxy, batch2: TensorProxy, *, beta: Number = 1, alpha: Number = 1
) -> TensorProxy:
    """`beta * input + alpha * (batch1 @ batch2)`"""
    return _add_product(input, _product("baddbmm", batch1, batch2, (3, 3)), beta, alpha)


@torchsymbol("addmv", "Tensor.addmv")
def addmv(
    input: TensorProxy, mat: TensorProxy, vec: TensorProxy, *, beta: Number = 1, alpha: Number = 1
) -> TensorProxy:
    """`beta * input + alpha * (mat @ vec)`"""
    return _add_product(input, _product("addmv", mat, vec, (2, 1)), beta, alpha)


@torchsymbol("nn.functional.linear")
def linear(input: TensorProxy, weight: TensorProxy, bias: TensorProxy | None = None) -> TensorProxy:
    """`input @ weight.T + bias`"""
    if input.ndim == 0 or weight.ndim not in (1, 2):
        raise NotImplementedError("linear of a tensor without dimensions")
    _refuse_different_dtypes(input, weight)
    if input.shape[-1] != weight.shape[-1]:
        t = "x".join(map(str, reversed(weight.shape)))
        rows = math.prod(input.shape[:-1])
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and {t})")
    if bias is not None and bias.shape not in (weight.shape[:-1], ()):
        raise NotImplementedError("linear with a bias that is broadcast")
    return prims.linear(input, weight, bias)


@torchsymbol("vdot", "Tensor.vdot")
def vdot(input: TensorProxy, other: TensorProxy) -> TensorProxy:
    """The dot product with the conjugate of `input`."""
    if input.dtype.is_complex:
        raise NotImplementedError("vdot of complex numbers")
    return _product("vdot", input, other, (1, 1))


@torchsymbol("ger", "Tensor.ger", "linalg.outer")
def ger(input: TensorProxy, vec2: TensorProxy) -> TensorProxy:
    return outer.meta(input, vec2)


@torchsymbol("addr", "Tensor.addr")
def addr(
    input: TensorProxy, vec1: TensorProxy, vec2: TensorProxy, *, beta: Number = 1, alpha: Number = 1
) -> TensorProxy:
    """`beta * input + alpha * outer(vec1, vec2)`"""
    if not input.dtype == vec1.dtype == vec2.dtype or input.dtype is torch.bool:
        raise NotImplementedError("addr of several dtypes, or of bool")
    wide = dtypes.compute_dtype(input.dtype)
    product = outer.meta(*(clang.convert(x, wide) for x in (vec1, vec2)))
    return clang.convert(_add_product(clang.convert(input, wide), product, beta, alpha), input.dtype)


@torchsymbol("addbmm", "Tensor.addbmm")
def addbmm(
    input: TensorProxy, batch1: TensorProxy, batch2: TensorProxy, *, beta: Number = 1, alpha: Number = 1
) -> TensorProxy:
    """`beta * input + alpha * sum(batch1 @ batch2)`, summed over the batch"""
    if dtypes.is_low_precision(batch1.dtype):
        raise NotImplementedError("addbmm that rounds after each matrix")
    if (batch1.ndim, batch2.ndim) != (3, 3) or batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(f"addbmm: expected batches of matrices, got {_sizes(batch1)} and {_sizes(batch2)}")
    # The sum over the batch is part of one product: of the matrices side by side and of those one below the other.
    wide = prims.reshape(prims.permute(batch1, (1, 0, 2)), (batch1.shape[1], batch1.shape[0] * batch1.shape[2]))
    tall = prims.reshape(batch2, (batch2.shape[0] * batch2.shape[1], batch2.shape[2]))
    return _add_product(input, _product("addbmm", wide, tall, (2, 2)), beta, alpha)


@torchsymbol("linalg.cross")
def linalg_cross(input: TensorProxy, other: TensorProxy, *, dim: int = -1) -> TensorProxy:
    return _cross(input, other, dim)


@torchsymbol("cross", "Tensor.cross")
def cross(input: TensorProxy, other: TensorProxy, dim: int | None = None) -> TensorProxy:
    """The vector product along a dimension of 3: the first there is, if none is told."""
    if dim is None:
        dim = next((d for d, size in enumerate(input.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return _cross(input, other, dim)


def _cross(input: TensorProxy, other: TensorProxy, dim: int) -> TensorProxy:
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = clang.canonical_dim(dim, input.ndim)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {d} must have length 3.")
    a, b = ([clang.select(x, d, i) for i in range(3)] for x in (input, other))
    rows = [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]
    return prims.cat([clang.unsqueeze(x, d) for x in rows], d)


del in_place[torch.Tensor.addbmm_]  # it gives its argument another shape
