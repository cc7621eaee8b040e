"""Gradients of matrix products, convolutions and embeddings."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.transforms.gradients.elementwise import Grads
from thunder.transforms.gradients.table import augmented, gradient


@gradient(prims.matmul)
def _matmul(g: TensorProxy, out: TensorProxy, a: TensorProxy, b: TensorProxy) -> Grads:
    if a.ndim == 1 and b.ndim == 1:
        g = clang.expand_to(g, a.shape)
        return g * b, g * a
    if b.ndim == 1:
        column = clang.unsqueeze(g, g.ndim)
        return column * b, prims.matmul(_transposed(_rows(a)), prims.reshape(g, (g.numel,)))
    if a.ndim == 1:
        return prims.matmul(b, g), clang.unsqueeze(a, 1) * g
    return prims.matmul(g, _transposed(b)), prims.matmul(_transposed(a), g)


def _transposed(a: TensorProxy) -> TensorProxy:
    return clang.transpose(a, -2, -1)


def _rows(a: TensorProxy) -> TensorProxy:
    """`a` as a matrix: the last dimension stays."""
    return a if a.ndim == 2 else prims.reshape(a, (math.prod(a.shape[:-1]), a.shape[-1]))


@gradient(prims.linear)
def _linear(g: TensorProxy, out: TensorProxy, a: TensorProxy, weight: TensorProxy, bias: TensorProxy | None) -> Grads:
    if weight.ndim == 1:  # one output, without a dimension
        column = clang.unsqueeze(g, g.ndim)
        return column * weight, clang.sum_to(column * a, weight.shape), _bias(g, bias)
    rows = _rows(g) if g.ndim > 1 else clang.unsqueeze(g, 0)
    samples = _rows(a) if a.ndim > 1 else clang.unsqueeze(a, 0)
    of_a = prims.matmul(rows, weight)
    of_a = of_a if of_a.shape == a.shape else prims.reshape(of_a, a.shape)
    return of_a, prims.matmul(_transposed(rows), samples), _bias(g if g.ndim < 2 else rows, bias)


def _bias(g: TensorProxy, bias: TensorProxy | None) -> TensorProxy | None:
    return None if bias is None else clang.sum_to(g, bias.shape)


@gradient(prims.embedding)
def _embedding(g: TensorProxy, out: TensorProxy, index: TensorProxy, weight: TensorProxy) -> Grads:
    return None, prims.embedding_backward(g, index, weight.shape[0], -1, False)


@augmented(prims.convolution)
def _convolution(
    needs_gradient: Callable[[Any], bool],
    a: TensorProxy,
    weight: TensorProxy,
    bias: TensorProxy | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> tuple[TensorProxy, Callable]:
    mask = [needs_gradient(a), needs_gradient(weight), needs_gradient(bias)]
    out = prims.convolution(a, weight, bias, stride, padding, dilation, transposed, output_padding, groups)

    def pullback(g: TensorProxy) -> Any:
        sizes = None if bias is None else list(bias.shape)
        return prims.convolution_backward(
            g, a, weight, sizes, list(stride), list(padding), list(dilation), transposed, list(output_padding),
            groups, mask,
        )  # fmt: skip

    return out, pullback
