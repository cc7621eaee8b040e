"""The backward operations that PyTorch has kernels for, as operations of the language.

Their formulas let a fusion hold them; run alone, each is one call of torch's kernel.
"""

import math
from collections.abc import Sequence

import torch

from thunder import clang
from thunder.core import dtypes
from thunder.core.proxies import TensorProxy
from thunder.torch.language import torchsymbol
from thunder.torch.normalization import batch_norm, layer_norm, per_channel, trailing_dims


def _wide(*tensors: TensorProxy) -> tuple[TensorProxy, ...]:
    """The tensors in the dtype that torch's kernels compute in."""
    return tuple(clang.convert(x, dtypes.compute_dtype(x.dtype)) for x in tensors)


@torchsymbol("ops.aten.sigmoid_backward")
def sigmoid_backward(grad_output: TensorProxy, output: TensorProxy) -> TensorProxy:
    return grad_output * (1 - output) * output


@torchsymbol("ops.aten.tanh_backward")
def tanh_backward(grad_output: TensorProxy, output: TensorProxy) -> TensorProxy:
    return grad_output * (1 - output * output)


@torchsymbol("ops.aten.threshold_backward")
def threshold_backward(grad_output: TensorProxy, self: TensorProxy, threshold: float) -> TensorProxy:
    """The gradient where `self` is above the threshold, NaN included, else 0."""
    return clang.where(clang.le(self, threshold), 0.0, grad_output)


@torchsymbol("ops.aten.gelu_backward")
def gelu_backward(grad_output: TensorProxy, self: TensorProxy, *, approximate: str = "none") -> TensorProxy:
    g, x = _wide(grad_output, self)
    if approximate == "none":
        cdf = 0.5 * (1.0 + clang.erf(x * math.sqrt(0.5)))
        slope = cdf + x * clang.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    else:
        scale = math.sqrt(2 / math.pi)
        tanh = clang.tanh(scale * (x + 0.044715 * (x * x * x)))
        inner = scale * (1.0 + 3 * 0.044715 * (x * x))
        slope = 0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * inner
    return clang.convert(g * slope, self.dtype)


@torchsymbol("ops.aten.silu_backward")
def silu_backward(grad_output: TensorProxy, self: TensorProxy) -> TensorProxy:
    g, x = _wide(grad_output, self)
    sigmoid = clang.sigmoid(x)
    return clang.convert(g * sigmoid * (1.0 + x * (1.0 - sigmoid)), self.dtype)


@torchsymbol("ops.aten.elu_backward")
def elu_backward(
    grad_output: TensorProxy,
    alpha: float,
    scale: float,
    input_scale: float,
    is_result: bool,
    self_or_result: TensorProxy,
) -> TensorProxy:
    """Of elu, selu and celu: scale * x where positive, else alpha * scale * (exp(input_scale * x) - 1)."""
    if is_result:
        raise NotImplementedError("the gradient of elu from its result")
    g, x = _wide(grad_output, self_or_result)
    slope = clang.exp(x * input_scale if input_scale != 1 else x) * (input_scale * alpha * scale)
    return clang.convert(g * clang.where(clang.le(x, 0), slope, float(scale)), self_or_result.dtype)


@torchsymbol("ops.aten.softplus_backward")
def softplus_backward(grad_output: TensorProxy, self: TensorProxy, beta: float, threshold: float) -> TensorProxy:
    g, x = _wide(grad_output, self)
    scaled = x * beta
    return clang.convert(clang.where(scaled > threshold, g, g * clang.sigmoid(scaled)), self.dtype)


@torchsymbol("ops.aten.mish_backward")
def mish_backward(grad_output: TensorProxy, self: TensorProxy) -> TensorProxy:
    g, x = _wide(grad_output, self)
    inner = clang.tanh(clang.maximum(x, 0.0) + clang.log1p(clang.exp(-clang.abs(x))))
    return clang.convert(g * (inner + x * clang.sigmoid(x) * (1 - inner * inner)), self.dtype)


@torchsymbol("ops.aten.hardswish_backward")
def hardswish_backward(grad_output: TensorProxy, self: TensorProxy) -> TensorProxy:
    g, x = _wide(grad_output, self)
    slope = clang.where(clang.lt(x, 3), x / 3 + 0.5, 1.0)
    return clang.convert(clang.where(clang.le(x, -3), 0.0, g * slope), self.dtype)


@torchsymbol("ops.aten.hardtanh_backward")
def hardtanh_backward(grad_output: TensorProxy, self: TensorProxy, min_val: float, max_val: float) -> TensorProxy:
    outside = clang.bitwise_or(clang.le(self, min_val), clang.ge(self, max_val))
    return clang.where(outside, clang.convert(0, grad_output.dtype), grad_output)


@torchsymbol("ops.aten.softshrink_backward")
def softshrink_backward(grad_output: TensorProxy, self: TensorProxy, lambd: float) -> TensorProxy:
    inside = clang.bitwise_and(clang.ge(self, -lambd), clang.le(self, lambd))
    return clang.where(inside, clang.convert(0, grad_output.dtype), grad_output)


def _bounded(
    g: TensorProxy, a: TensorProxy, target: TensorProxy, reduction: int, bound: float, scale: float
) -> TensorProxy:
    """Of a loss whose slope is `scale` times the difference, at most `bound`; a reduction of 1 is the mean."""
    dtype = a.dtype
    g, a, target = _wide(g, a, target)
    difference = a - target
    slope = clang.where(clang.ge(difference, bound), bound, difference)
    slope = clang.where(clang.le(difference, -bound), -bound, slope) * scale
    return clang.convert((g / max(a.numel, 1) if reduction == 1 else g) * slope, dtype)


@torchsymbol("ops.aten.huber_loss_backward")
def huber_loss_backward(
    grad_output: TensorProxy, self: TensorProxy, target: TensorProxy, reduction: int, delta: float
) -> TensorProxy:
    return _bounded(grad_output, self, target, reduction, delta, 1.0)


@torchsymbol("ops.aten.smooth_l1_loss_backward")
def smooth_l1_loss_backward(
    grad_output: TensorProxy, self: TensorProxy, target: TensorProxy, reduction: int, beta: float
) -> TensorProxy:
    if not beta:
        raise NotImplementedError("the gradient of smooth_l1_loss with beta=0")
    return _bounded(grad_output, self, target, reduction, beta, 1.0 / beta)


@torchsymbol("ops.aten._softmax_backward_data")
def softmax_backward(grad_output: TensorProxy, output: TensorProxy, dim: int, input_dtype: torch.dtype) -> TensorProxy:
    g, out = _wide(grad_output, output)
    product = g * out
    grad = product - out * clang.sum(product, dim, keepdim=True) if out.ndim else product - out * product
    return clang.convert(grad, input_dtype)


@torchsymbol("ops.aten._log_softmax_backward_data")
def log_softmax_backward(
    grad_output: TensorProxy, output: TensorProxy, dim: int, input_dtype: torch.dtype
) -> TensorProxy:
    g, out = _wide(grad_output, output)
    total = clang.sum(g, dim, keepdim=True) if out.ndim else g
    return clang.convert(g - clang.exp(out) * total, input_dtype)


@torchsymbol("native_layer_norm")
def native_layer_norm(
    input: TensorProxy,
    normalized_shape: Sequence[int],
    weight: TensorProxy | None,
    bias: TensorProxy | None,
    eps: float,
) -> tuple[TensorProxy, TensorProxy, TensorProxy]:
    """layer_norm, the mean, and 1 / sqrt(var + eps), both with the normalized dimensions of size 1."""
    dims = trailing_dims("layer_norm", input, normalized_shape)
    variance, mean = clang.var_mean(*_wide(input), dims, keepdim=True, correction=0)
    out = layer_norm.meta(input, normalized_shape, weight, bias, eps)
    rstd = clang.rsqrt(variance + eps)
    if input.device.type == "cpu" and (weight is None or weight.dtype == input.dtype):
        return out, clang.convert(mean, input.dtype), clang.convert(rstd, input.dtype)  # as torch's kernel for the CPU
    return out, mean, rstd


@torchsymbol("ops.aten.native_layer_norm_backward")
def native_layer_norm_backward(
    grad_out: TensorProxy,
    input: TensorProxy,
    normalized_shape: Sequence[int],
    mean: TensorProxy,
    rstd: TensorProxy,
    weight: TensorProxy | None,
    bias: TensorProxy | None,
    output_mask: Sequence[bool],
) -> tuple[TensorProxy | None, TensorProxy | None, TensorProxy | None]:
    """The gradients of input, weight and bias, as far as `output_mask` asks for them."""
    dims = trailing_dims("layer_norm", input, normalized_shape)
    g, x = _wide(grad_out, input)
    normal = (x - mean) * rstd
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        scaled = g if weight is None else g * clang.convert(weight, g.dtype)
        inner = clang.mean(scaled, dims, keepdim=True) + normal * clang.mean(scaled * normal, dims, keepdim=True)
        of_input = clang.convert((scaled - inner) * rstd, input.dtype)
    if output_mask[1] and weight is not None:
        of_weight = clang.convert(clang.sum_to(g * normal, weight.shape), weight.dtype)
    if output_mask[2] and bias is not None:
        of_bias = clang.convert(clang.sum_to(g, bias.shape), bias.dtype)
    return of_input, of_weight, of_bias


@torchsymbol("ops.aten._native_batch_norm_legit_functional")
def native_batch_norm(
    input: TensorProxy,
    weight: TensorProxy | None,
    bias: TensorProxy | None,
    running_mean: TensorProxy,
    running_var: TensorProxy,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[TensorProxy, TensorProxy, TensorProxy, TensorProxy, TensorProxy]:
    """batch_norm in training, the mean, 1 / sqrt(var + eps), and the new running mean and variance."""
    (a,) = _wide(input)
    variance, mean = clang.var_mean(a, [d for d in range(a.ndim) if d != 1], correction=0)
    out, new_mean, new_var = batch_norm.meta(input, running_mean, running_var, weight, bias, True, momentum, eps)
    return out, mean, clang.rsqrt(variance + eps), new_mean, new_var


@torchsymbol("ops.aten.native_batch_norm_backward")
def native_batch_norm_backward(
    grad_out: TensorProxy,
    input: TensorProxy,
    weight: TensorProxy | None,
    running_mean: TensorProxy | None,
    running_var: TensorProxy | None,
    save_mean: TensorProxy | None,
    save_invstd: TensorProxy | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[TensorProxy | None, TensorProxy | None, TensorProxy | None]:
    """The gradients of input, weight and bias, as far as `output_mask` asks for them."""
    dims = tuple(d for d in range(input.ndim) if d != 1)
    count = math.prod(input.shape[d] for d in dims)
    g, x = _wide(grad_out, input)
    if train:
        mean, rstd = save_mean, save_invstd
    else:
        mean, rstd = clang.convert(running_mean, x.dtype), clang.rsqrt(clang.convert(running_var, x.dtype) + eps)
    scale = per_channel(rstd, x.ndim)
    normal = (x - per_channel(mean, x.ndim)) * scale
    total, product = clang.sum(g, dims), clang.sum(g * normal, dims)
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        of_input = g
        if train:
            of_input = g - (per_channel(total, x.ndim) + normal * per_channel(product, x.ndim)) / count
        scale = scale if weight is None else scale * per_channel(clang.convert(weight, x.dtype), x.ndim)
        of_input = clang.convert(of_input * scale, input.dtype)
    if output_mask[1] and weight is not None:
        of_weight = clang.convert(product, weight.dtype)
    if output_mask[2]:
        of_bias = clang.convert(total, input.dtype if weight is None else weight.dtype)
    return of_input, of_weight, of_bias
