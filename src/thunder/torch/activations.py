"""Activation functions of the PyTorch language. float16 and bfloat16 are computed in float32 and rounded once."""

import math
from collections.abc import Callable
from typing import Any

import torch

from thunder import clang
from thunder.core import dtypes
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.torch.language import Number, torchsymbol


def _wide(compute: Callable[..., TensorProxy], input: TensorProxy) -> TensorProxy:
    """`compute(input)` in the dtype that torch's kernels compute in, rounded to the dtype of `input`."""
    if dtypes.is_exact(input.dtype):
        raise NotImplementedError(f"an activation of {input.dtype}")
    return clang.convert(compute(clang.convert(input, dtypes.compute_dtype(input.dtype))), input.dtype)


@torchsymbol("nn.functional.relu", "relu", "Tensor.relu", inplace=True)
def relu(input: TensorProxy, inplace: bool = False) -> TensorProxy:
    """max(input, 0); NaN stays."""
    if input.dtype is torch.bool or input.dtype.is_complex:
        raise RuntimeError(f"relu is not supported for {input.dtype}")
    return clang.maximum(input, 0)


@torchsymbol("nn.functional.relu6", inplace=True)
def relu6(input: TensorProxy, inplace: bool = False) -> TensorProxy:
    return clang.minimum(clang.maximum(input, 0), 6)


@torchsymbol("nn.functional.hardtanh", inplace=True)
def hardtanh(input: TensorProxy, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> TensorProxy:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    low, high = clang.convert(min_val, input.dtype), clang.convert(max_val, input.dtype)
    return clang.minimum(clang.maximum(input, low), high)


@torchsymbol("nn.functional.leaky_relu", inplace=True)
def leaky_relu(input: TensorProxy, negative_slope: float = 0.01, inplace: bool = False) -> TensorProxy:
    return _wide(lambda x: clang.where(x > 0, x, x * negative_slope), input)


@torchsymbol("nn.functional.elu", inplace=True)
def elu(input: TensorProxy, alpha: float = 1.0, inplace: bool = False) -> TensorProxy:
    """input where positive, else alpha * (exp(input) - 1)"""
    return _wide(lambda x: clang.where(x > 0, x, clang.expm1(x) * alpha), input)


@torchsymbol("nn.functional.selu", "selu", inplace=True)
def selu(input: TensorProxy, inplace: bool = False) -> TensorProxy:
    """scale * elu(input, alpha), constants from https://arxiv.org/abs/1706.02515"""
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return _wide(lambda x: clang.where(x > 0, x * scale, clang.expm1(x) * (alpha * scale)), input)


@torchsymbol("nn.functional.silu", inplace=True)
def silu(input: TensorProxy, inplace: bool = False) -> TensorProxy:
    """input * sigmoid(input)"""
    return _wide(lambda x: x / (1.0 + clang.exp(-x)), input)


@torchsymbol("nn.functional.mish", inplace=True)
def mish(input: TensorProxy, inplace: bool = False) -> TensorProxy:
    """input * tanh(log(1 + exp(input))), https://arxiv.org/abs/1908.08681"""
    return _wide(lambda x: x * clang.tanh(_softplus(x)), input)


def _softplus(x: TensorProxy) -> TensorProxy:
    """log(1 + exp(x)) without overflow."""
    return clang.where(x > 20.0, x, clang.log1p(clang.exp(x)))


@torchsymbol("nn.functional.softplus")
def softplus(input: TensorProxy, beta: float = 1, threshold: float = 20) -> TensorProxy:
    """log(1 + exp(beta * input)) / beta; input itself where beta * input > threshold"""

    def compute(x: TensorProxy) -> TensorProxy:
        scaled = x * beta
        return clang.where(scaled > threshold, x, clang.log1p(clang.exp(scaled)) / beta)

    return _wide(compute, input)


@torchsymbol("nn.functional.logsigmoid")
def logsigmoid(input: TensorProxy) -> TensorProxy:
    """log(1 / (1 + exp(-input))), from the side that does not overflow"""
    return _wide(lambda x: clang.minimum(x, 0.0) - clang.log1p(clang.exp(-clang.abs(x))), input)


@torchsymbol("nn.functional.gelu")
def gelu(input: TensorProxy, *, approximate: str = "none") -> TensorProxy:
    """input * Phi(input), or its tanh approximation; https://arxiv.org/abs/1606.08415"""
    if approximate == "none":
        return _wide(lambda x: x * 0.5 * (1.0 + clang.erf(x * math.sqrt(0.5))), input)
    if approximate != "tanh":
        raise RuntimeError(f"approximate argument must be either none or tanh, but got {approximate!r}.")

    def compute(x: TensorProxy) -> TensorProxy:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return 0.5 * x * (1.0 + clang.tanh(inner))

    return _wide(compute, input)


@torchsymbol("nn.functional.hardsigmoid", inplace=True)
def hardsigmoid(input: TensorProxy, inplace: bool = False) -> TensorProxy:
    """input / 6 + 1 / 2, kept within 0 and 1"""
    return _wide(lambda x: clang.minimum(clang.maximum(x + 3.0, 0.0), 6.0) / 6.0, input)


@torchsymbol("nn.functional.hardswish", inplace=True)
def hardswish(input: TensorProxy, inplace: bool = False) -> TensorProxy:
    """input * hardsigmoid(input)"""
    return _wide(lambda x: x * clang.minimum(clang.maximum(x + 3.0, 0.0), 6.0) / 6.0, input)


@torchsymbol("nn.functional.softsign")
def softsign(input: TensorProxy) -> TensorProxy:
    return clang.div(input, clang.add(clang.abs(input), 1))


@torchsymbol("nn.functional.tanhshrink")
def tanhshrink(input: TensorProxy) -> TensorProxy:
    return clang.sub(input, clang.tanh(input))


@torchsymbol("nn.functional.glu")
def glu(input: TensorProxy, dim: int = -1) -> TensorProxy:
    """a * sigmoid(b), where a and b are the halves of `input` along `dim`"""
    if input.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = clang.canonical_dim(dim, input.ndim)
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    a, b = clang.slice_dim(input, dim, 0, size // 2), clang.slice_dim(input, dim, size // 2, size)
    wide = dtypes.compute_dtype(input.dtype)
    return clang.convert(clang.convert(a, wide) * clang.sigmoid(clang.convert(b, wide)), input.dtype)


def _softmax_input(input: TensorProxy, dtype: torch.dtype | None) -> tuple[TensorProxy, torch.dtype]:
    """The input in the dtype to compute in, and the dtype of the result."""
    dtype = dtype or input.dtype
    if dtypes.is_exact(dtype) or dtypes.is_complex(dtype):
        raise NotImplementedError(f'"softmax" not implemented for {dtype}')
    return clang.convert(input, dtypes.compute_dtype(dtype)), dtype


def _stable_exponent(input: TensorProxy, dim: int) -> TensorProxy:
    """`input` less its greatest element along `dim`."""
    if input.ndim == 0:
        return clang.sub(input, input)
    if input.shape[dim] == 0:
        return input
    return clang.sub(input, clang.amax(input, dim, keepdim=True))


def _softmax(input: TensorProxy, dim: int, dtype: torch.dtype | None) -> TensorProxy:
    """exp(input) / sum(exp(input))"""
    dim = clang.canonical_dim(dim, input.ndim)
    a, dtype = _softmax_input(input, dtype)
    exponentials = clang.exp(_stable_exponent(a, dim))
    out = clang.convert(clang.div(exponentials, clang.sum(exponentials, dim, keepdim=True)), dtype)
    return clang.laid_out(out, like=input)


def _log_softmax(input: TensorProxy, dim: int, dtype: torch.dtype | None) -> TensorProxy:
    """input - log(sum(exp(input)))"""
    dim = clang.canonical_dim(dim, input.ndim)
    a, dtype = _softmax_input(input, dtype)
    shifted = _stable_exponent(a, dim)
    total = clang.log(clang.sum(clang.exp(shifted), dim, keepdim=True))
    return clang.laid_out(clang.convert(clang.sub(shifted, total), dtype), like=input)


def default_softmax_dim(input: TensorProxy) -> int:
    """The dimension that torch takes where none is given."""
    return 0 if input.ndim in (0, 1, 3) else 1


def _softmax_symbol(name: str, compute: Callable[..., TensorProxy]) -> Symbol:
    def meta(
        input: TensorProxy,
        dim: int | None = None,
        *rest: Any,
        _stacklevel: int = 3,
        dtype: torch.dtype | None = None,
    ) -> TensorProxy:
        """`rest` is (dtype) as torch.softmax takes it, or (_stacklevel, dtype) as nn.functional.softmax does."""
        if rest and isinstance(rest[-1], torch.dtype):
            dtype = rest[-1]
        return compute(input, default_softmax_dim(input) if dim is None else dim, dtype)

    meta.__name__ = name
    return torchsymbol(f"nn.functional.{name}", name, f"Tensor.{name}", f"special.{name}")(meta)


softmax = _softmax_symbol("softmax", _softmax)
log_softmax = _softmax_symbol("log_softmax", _log_softmax)


@torchsymbol("nn.functional.softmin")
def softmin(
    input: TensorProxy, dim: int | None = None, _stacklevel: int = 3, dtype: torch.dtype | None = None
) -> TensorProxy:
    return softmax.meta(clang.neg(input), dim, dtype=dtype)


@torchsymbol("nn.functional.threshold", "threshold", inplace=True)
def threshold(input: TensorProxy, threshold: Number, value: Number, inplace: bool = False) -> TensorProxy:
    """input where greater than `threshold`, else `value`"""
    value = clang.convert(value, input.dtype)
    return clang.where(clang.le(input, threshold), value, input)


@torchsymbol("nn.functional.normalize")
def normalize(input: TensorProxy, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: None = None) -> TensorProxy:
    """input / max(|input|_p, eps) along `dim`"""
    from thunder.torch.reductions import vector_norm

    if out is not None or not isinstance(p, int | float):
        raise NotImplementedError("normalize with out=, or with p that is no number")
    norm = clang.maximum(vector_norm.meta(input, p, dim, True), eps)
    return clang.div(input, norm)
