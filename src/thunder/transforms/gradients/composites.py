"""Gradients of composites that have a better or more stable one than what they are made of gives."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

import thunder.torch as ltorch
from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.torch import backward
from thunder.torch.activations import default_softmax_dim
from thunder.torch.losses import counted_classes
from thunder.transforms.gradients.elementwise import Grads, zeros_like
from thunder.transforms.gradients.table import augmented, by_torch, gradient, rewrite

Needs = Callable[[Any], bool]
Sizes = int | Sequence[int]


@gradient(ltorch.relu)
def _relu(g: TensorProxy, out: TensorProxy, input: TensorProxy, inplace: bool = False) -> Grads:
    return (backward.threshold_backward(g, out, 0),)


@gradient(ltorch.zero)
def _zero(g: TensorProxy, out: TensorProxy, input: TensorProxy) -> Grads:
    return (zeros_like(input),)


@gradient(ltorch.fill)
def _fill(g: TensorProxy, out: TensorProxy, input: TensorProxy, value: Any) -> Grads:
    if not isinstance(value, TensorProxy):
        return zeros_like(input), None
    total = prims.sum_prim(g, tuple(range(g.ndim))) if g.ndim else g
    return zeros_like(input), clang.on_device(clang.convert(total, value.dtype), value.device)


def _inside(g: TensorProxy, inside: TensorProxy) -> TensorProxy:
    return clang.where(inside, g, clang.convert(0, g.dtype))


@gradient(ltorch.gelu)
def _gelu(g: TensorProxy, out: Any, input: TensorProxy, *, approximate: str = "none") -> Grads:
    return (backward.gelu_backward(g, input, approximate=approximate),)


@gradient(ltorch.silu)
def _silu(g: TensorProxy, out: Any, input: TensorProxy, inplace: bool = False) -> Grads:
    return (backward.silu_backward(g, input),)


def _softmax_rule(symbol: Symbol, backward_of: Callable[..., TensorProxy]) -> None:
    @gradient(symbol)
    def rule(
        g: TensorProxy, out: TensorProxy, input: TensorProxy, dim: int | None = None, *rest: Any, **named: Any
    ) -> Grads:
        dim = named.get("axis", dim)
        dim = clang.canonical_dim(default_softmax_dim(input) if dim is None else dim, input.ndim)
        return (clang.convert(backward_of(g, out, dim, out.dtype), input.dtype),)


_softmax_rule(ltorch.softmax, backward.softmax_backward)
_softmax_rule(ltorch.log_softmax, backward.log_softmax_backward)


@augmented(ltorch.layer_norm)
def _layer_norm(
    needs_gradient: Needs,
    input: TensorProxy,
    normalized_shape: Sequence[int],
    weight: TensorProxy | None = None,
    bias: TensorProxy | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> tuple[TensorProxy, Callable]:
    shape = tuple(normalized_shape)
    out, mean, rstd = backward.native_layer_norm(input, shape, weight, bias, eps)
    mask = [needs_gradient(x) for x in (input, weight, bias)]

    def pullback(g: TensorProxy) -> Any:
        grads = backward.native_layer_norm_backward(g, input, shape, mean, rstd, weight, bias, mask)
        return grads[0], None, *grads[1:]

    return out, pullback


@augmented(ltorch.batch_norm)
def _batch_norm(
    needs_gradient: Needs,
    input: TensorProxy,
    running_mean: TensorProxy | None,
    running_var: TensorProxy | None,
    weight: TensorProxy | None = None,
    bias: TensorProxy | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> tuple[Any, Callable] | None:
    if needs_gradient(running_mean) or needs_gradient(running_var):
        return None
    if (running_mean is None or running_var is None) and training:
        return None
    mean = rstd = None
    if training:
        out, mean, rstd, *new = backward.native_batch_norm(
            input, weight, bias, running_mean, running_var, True, momentum, eps
        )
        out = (out, *new)
    else:
        out = ltorch.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    mask = [needs_gradient(x) for x in (input, weight, bias)]
    running = (None, None) if training else (running_mean, running_var)

    def pullback(g: Any) -> Any:
        g = g[0] if training else g
        grads = backward.native_batch_norm_backward(g, input, weight, *running, mean, rstd, training, eps, mask)
        return grads[0], None, None, *grads[1:]

    return out, pullback


by_torch.add(ltorch.scaled_dot_product_attention)


@augmented(ltorch.scaled_dot_product_attention)
def _attention(
    needs_gradient: Needs,
    query: TensorProxy,
    key: TensorProxy,
    value: TensorProxy,
    attn_mask: TensorProxy | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[TensorProxy, Callable] | None:
    """By the kernel that torch takes on the CPU, where torch takes it."""
    tensors = (query, key, value)
    plain = attn_mask is None and not dropout_p and not enable_gqa and torch.backends.cuda.flash_sdp_enabled()
    if not plain or any(x.ndim != 4 or x.device.type != "cpu" or not x.numel or x.strides[-1] != 1 for x in tensors):
        return None
    if len({(*x.shape[:2], x.shape[3]) for x in tensors}) > 1 or not dtypes.is_float(query.dtype):
        return None
    out, logsumexp = prims.flash_attention(query, key, value, 0.0, is_causal, scale=scale)

    def pullback(g: TensorProxy) -> Any:
        return prims.flash_attention_backward(g, query, key, value, out, logsumexp, 0.0, is_causal, scale=scale)

    return out, pullback


def _joined(g: Sequence[TensorProxy | None], out: Sequence[TensorProxy], dim: int) -> TensorProxy:
    """The gradient of a tensor from those of its parts along `dim`."""
    parts = [zeros_like(part) if x is None else x for x, part in zip(g, out)]
    return parts[0] if len(parts) == 1 else prims.cat(parts, dim)


@gradient(ltorch.split, ltorch.chunk, ltorch.tensor_split)
def _split(g: Any, out: Any, input: TensorProxy, *rest: Any, **named: Any) -> Grads:
    dim = rest[1] if len(rest) > 1 else named.get("dim", 0)
    return (_joined(g, out, clang.canonical_dim(dim, input.ndim)),)


@gradient(ltorch.unbind)
def _unbind(g: Any, out: Any, input: TensorProxy, dim: int = 0) -> Grads:
    dim = clang.canonical_dim(dim, input.ndim)
    rows = [None if x is None else clang.unsqueeze(x, dim) for x in g]
    return (_joined(rows, [clang.unsqueeze(x, dim) for x in out], dim),)


@rewrite(ltorch.cross_entropy)
def _cross_entropy(
    input: TensorProxy,
    target: TensorProxy,
    weight: TensorProxy | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> TensorProxy | None:
    if input.shape == target.shape or label_smoothing:
        return None
    dim = 0 if input.ndim == 1 else 1
    return ltorch.nll_loss(
        ltorch.log_softmax(input, dim), target, weight, ignore_index=ignore_index, reduction=reduction
    )


@gradient(ltorch.nll_loss)
def _nll_loss(
    g: TensorProxy,
    out: TensorProxy,
    input: TensorProxy,
    target: TensorProxy,
    weight: TensorProxy | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Grads:
    dim = 0 if input.ndim == 1 else 1
    dtype = dtypes.compute_dtype(input.dtype)
    counted, classes, shares = counted_classes(target, weight, ignore_index, dtype)
    g = clang.convert(g, dtype)
    if reduction == "mean":
        g = g / clang.sum(shares)
    picked = clang.convert(clang.where(counted, -g * shares, 0.0), input.dtype)  # g is no number where none count
    if input.device.type == "cuda":  # which compares in a kernel that there is anyway, rather than write zeros first
        each = prims.iota(input.shape[dim], 0, 1, torch.int64, input.device)
        each = prims.broadcast_in_dim(each, input.shape, (dim,))
        is_picked = clang.eq(each, clang.unsqueeze(classes, dim))
        return (clang.where(is_picked, clang.unsqueeze(picked, dim), clang.convert(0, input.dtype)),)
    return (prims.scatter(zeros_like(input), dim, clang.unsqueeze(classes, dim), clang.unsqueeze(picked, dim)),)


@gradient(ltorch.clamp)
def _clamp(g: TensorProxy, out: TensorProxy, input: TensorProxy, min: Any = None, max: Any = None) -> Grads:
    """At a bound that is a number the gradient still passes; that of a tensor bound is what it takes from the input."""
    low, high = min is not None, max is not None
    inside = clang.ge(input, min) if low else None
    if high:
        below = clang.le(input, max)
        inside = below if inside is None else clang.bitwise_and(inside, below)
    g = clang.convert(g, out.dtype)
    of_input = clang.convert(clang.sum_to(_inside(g, inside), input.shape), input.dtype)
    of_min = of_max = None
    if isinstance(min, TensorProxy):
        takes = input < min
        takes = clang.bitwise_and(takes, min < max) if high else takes
        of_min = clang.convert(clang.sum_to(_inside(g, takes), min.shape), min.dtype)
    if isinstance(max, TensorProxy):
        takes = input > max
        takes = clang.bitwise_or(takes, max < min) if low else takes
        of_max = clang.convert(clang.sum_to(_inside(g, takes), max.shape), max.dtype)
    return of_input, of_min, of_max


@gradient(ltorch.index_fill)
def _index_fill(g: TensorProxy, out: Any, input: TensorProxy, dim: int, index: TensorProxy, value: Any) -> Grads:
    """Each element that is filled counts once, however often the index names it."""
    zero = prims.full((), clang.convert(0, g.dtype), g.dtype, g.device)
    indices = (None,) * clang.canonical_dim(dim, input.ndim) + (index,)
    of_input = prims.index_put(g, indices, zero, False)
    of_value = clang.convert(clang.sum(g - of_input), value.dtype) if isinstance(value, TensorProxy) else None
    return of_input, None, None, of_value


@gradient(ltorch.clamp_min)
def _clamp_min(g: TensorProxy, out: TensorProxy, input: TensorProxy, min: Any) -> Grads:
    return _clamp(g, out, input, min, None)[:2]


@gradient(ltorch.clamp_max)
def _clamp_max(g: TensorProxy, out: TensorProxy, input: TensorProxy, max: Any) -> Grads:
    of_input, _, of_max = _clamp(g, out, input, None, max)
    return of_input, of_max


@gradient(ltorch.im2col)
def _im2col(
    g: TensorProxy,
    out: TensorProxy,
    input: TensorProxy,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Grads:
    return (ltorch.col2im(g, input.shape[-2:], kernel_size, dilation, padding, stride),)


@gradient(ltorch.col2im)
def _col2im(
    g: TensorProxy,
    out: TensorProxy,
    input: TensorProxy,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Grads:
    return (ltorch.im2col(g, kernel_size, dilation, padding, stride),)
