"""Normalizations of the PyTorch language. float16 and bfloat16 are computed in float32 and rounded once."""

import math
from collections.abc import Sequence

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.torch.language import torchsymbol, updates


def trailing_dims(name: str, input: TensorProxy, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    shape = tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, "
            f"{', '.join(map(str, shape))}], but got input of size {list(input.shape)}"
        )
    return tuple(range(input.ndim - len(shape), input.ndim))


def _normalized(a: TensorProxy, dims: Sequence[int], eps: float) -> TensorProxy:
    """(a - mean(a)) / sqrt(var(a) + eps)"""
    variance, mean = clang.var_mean(a, dims, keepdim=True, correction=0)
    return (a - mean) * clang.rsqrt(variance + eps)


def _scaled_and_shifted(a: TensorProxy, weight: TensorProxy | None, bias: TensorProxy | None) -> TensorProxy:
    if weight is not None:
        a = a * clang.convert(weight, a.dtype)
    return a if bias is None else a + clang.convert(bias, a.dtype)


@torchsymbol("nn.functional.layer_norm", "layer_norm")
def layer_norm(
    input: TensorProxy,
    normalized_shape: Sequence[int],
    weight: TensorProxy | None = None,
    bias: TensorProxy | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> TensorProxy:
    """(input - mean) / sqrt(var + eps) * weight + bias over the last dimensions; https://arxiv.org/abs/1607.06450"""
    dims = trailing_dims("layer_norm", input, normalized_shape)
    if dtypes.is_exact(input.dtype):
        raise NotImplementedError(f"layer_norm of {input.dtype}")
    a = _normalized(clang.convert(input, dtypes.compute_dtype(input.dtype)), dims, eps)
    return clang.laid_out(clang.convert(_scaled_and_shifted(a, weight, bias), input.dtype))


@torchsymbol("nn.functional.rms_norm", "rms_norm")
def rms_norm(
    input: TensorProxy,
    normalized_shape: Sequence[int],
    weight: TensorProxy | None = None,
    eps: float | None = None,
) -> TensorProxy:
    """input / sqrt(mean(input^2) + eps) * weight over the last dimensions; https://arxiv.org/abs/1910.07467"""
    dims = trailing_dims("rms_norm", input, normalized_shape)
    dtype = input.dtype if weight is None else clang.result_type(input, weight)
    if dtypes.is_exact(input.dtype):
        raise NotImplementedError(f"rms_norm of {input.dtype}")
    a = clang.convert(input, dtypes.compute_dtype(input.dtype))
    if eps is None:
        eps = torch.finfo(a.dtype).eps
    a = a * clang.rsqrt(clang.mean(a * a, dims, keepdim=True) + eps)
    return clang.convert(_scaled_and_shifted(a, weight, None), dtype)


def per_channel(a: TensorProxy, ndim: int) -> TensorProxy:
    """The vector `a` as it broadcasts along dimension 1 of a tensor of `ndim` dimensions."""
    return prims.broadcast_in_dim(a, tuple(a.shape[0] if d == 1 else 1 for d in range(ndim)), (1,))


def _channel_affine(a: TensorProxy, weight: TensorProxy | None, bias: TensorProxy | None) -> TensorProxy:
    weight, bias = (None if x is None else per_channel(x, a.ndim) for x in (weight, bias))
    return _scaled_and_shifted(a, weight, bias)


@torchsymbol("nn.functional.group_norm")
def group_norm(
    input: TensorProxy,
    num_groups: int,
    weight: TensorProxy | None = None,
    bias: TensorProxy | None = None,
    eps: float = 1e-05,
) -> TensorProxy:
    """layer_norm of each group of channels of each sample; https://arxiv.org/abs/1803.08494"""
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    batch, channels = input.shape[:2]
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    a = clang.convert(input, dtypes.compute_dtype(input.dtype))
    groups = prims.reshape(a, (batch, num_groups, math.prod(input.shape[1:]) // num_groups))
    a = prims.reshape(_normalized(groups, (2,), eps), input.shape)
    return clang.laid_out(clang.convert(_channel_affine(a, weight, bias), input.dtype), like=input)


@torchsymbol("nn.functional.instance_norm")
def instance_norm(
    input: TensorProxy,
    running_mean: TensorProxy | None = None,
    running_var: TensorProxy | None = None,
    weight: TensorProxy | None = None,
    bias: TensorProxy | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> TensorProxy | tuple[TensorProxy, TensorProxy, TensorProxy]:
    """(input - mean) / sqrt(var + eps) per sample and channel; https://arxiv.org/abs/1607.08022

    With running statistics and those of the input it gives (result, new running mean, new running variance), see
    `updates`; with running statistics alone it is batch_norm.
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
        return batch_norm.meta(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if (running_mean is None) != (running_var is None) or input.ndim < 3:
        raise NotImplementedError("instance_norm with one running statistic, or of a matrix")
    if math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    wide, dims = clang.convert(input, dtypes.compute_dtype(input.dtype)), tuple(range(2, input.ndim))
    variance, mean = clang.var_mean(wide, dims, keepdim=True, correction=0)
    a = (wide - mean) * clang.rsqrt(variance + eps)
    out = clang.laid_out(clang.convert(_channel_affine(a, weight, bias), input.dtype), like=input)
    if running_mean is None or running_var is None:
        return out
    count = math.prod(input.shape[2:])
    statistics = (mean, variance * (count / (count - 1)))
    means = (clang.mean(prims.squeeze(x, dims), 0) for x in statistics)  # over the samples
    return out, *(_moved(old, new, momentum) for old, new in zip((running_mean, running_var), means))


@torchsymbol("nn.functional.batch_norm")
def batch_norm(
    input: TensorProxy,
    running_mean: TensorProxy | None,
    running_var: TensorProxy | None,
    weight: TensorProxy | None = None,
    bias: TensorProxy | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> TensorProxy | tuple[TensorProxy, TensorProxy, TensorProxy]:
    """(input - mean) / sqrt(var + eps) * weight + bias per channel; https://arxiv.org/abs/1502.03167

    In training, with running statistics, it gives (result, new running mean, new running variance), see `updates`.
    """
    if input.ndim < 2 or input.numel == 0:
        raise NotImplementedError("batch_norm of a vector, or of nothing")
    a = clang.convert(input, dtypes.compute_dtype(input.dtype))
    dims = tuple(d for d in range(input.ndim) if d != 1)
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
        mean, variance = clang.convert(running_mean, a.dtype), clang.convert(running_var, a.dtype)
        out = clang.convert(_batch_normalized(a, mean, variance, weight, bias, eps), input.dtype)
        return clang.laid_out(out, like=input)
    count = math.prod(input.shape[d] for d in dims)
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    variance, mean = clang.var_mean(a, dims, correction=0)
    out = clang.convert(_batch_normalized(a, mean, variance, weight, bias, eps), input.dtype)
    out = clang.laid_out(out, like=input)
    if running_mean is None or running_var is None:
        return out
    if momentum is None:
        raise NotImplementedError("batch_norm without momentum")
    unbiased = variance * (count / (count - 1))
    return out, _moved(running_mean, mean, momentum), _moved(running_var, unbiased, momentum)


def _batch_normalized(
    a: TensorProxy,
    mean: TensorProxy,
    variance: TensorProxy,
    weight: TensorProxy | None,
    bias: TensorProxy | None,
    eps: float,
) -> TensorProxy:
    scale = per_channel(clang.rsqrt(variance + eps), a.ndim)
    return _channel_affine((a - per_channel(mean, a.ndim)) * scale, weight, bias)


def _moved(running: TensorProxy, new: TensorProxy, momentum: float) -> TensorProxy:
    """The running statistic after a batch whose statistic is `new`."""
    wide = clang.convert(running, new.dtype)
    return clang.convert(new * momentum + wide * (1 - momentum), running.dtype)


def _batch_norm_updates(
    input: TensorProxy,
    running_mean: TensorProxy | None,
    running_var: TensorProxy | None,
    weight: TensorProxy | None = None,
    bias: TensorProxy | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> tuple[TensorProxy, ...]:
    if not training or running_mean is None or running_var is None:
        return ()
    return running_mean, running_var


updates[batch_norm] = _batch_norm_updates


def _instance_norm_updates(
    input: TensorProxy,
    running_mean: TensorProxy | None = None,
    running_var: TensorProxy | None = None,
    weight: TensorProxy | None = None,
    bias: TensorProxy | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> tuple[TensorProxy, ...]:
    if not use_input_stats or running_mean is None or running_var is None:
        return ()
    return running_mean, running_var


updates[instance_norm] = _instance_norm_updates
