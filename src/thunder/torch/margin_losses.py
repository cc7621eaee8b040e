"""Losses that compare margins, distances and distributions in the PyTorch language."""

import math
from typing import Any

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.torch.activations import logsigmoid
from thunder.torch.elementwise import pow_
from thunder.torch.language import torchsymbol
from thunder.torch.losses import reduced, reduction_of
from thunder.torch.reductions import vector_norm


def _positive(a: TensorProxy) -> TensorProxy:
    """max(a, 0), whose slope at 0 is 1, as that of torch's clamp_min."""
    return clang.where(clang.lt(a, 0), clang.convert(0, a.dtype), a)


def _refuse_shapes_that_differ(name: str, a: TensorProxy, b: TensorProxy) -> None:
    if a.shape != b.shape or not dtypes.is_float(clang.result_type(a, b)):
        raise NotImplementedError(f"{name} of tensors of different shapes, or of no floats")


@torchsymbol("nn.functional.soft_margin_loss")
def soft_margin_loss(
    input: TensorProxy,
    target: TensorProxy,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """log(1 + exp(-target * input))"""
    reduction = reduction_of(size_average, reduce, reduction)
    _refuse_shapes_that_differ("soft_margin_loss", input, target)
    return reduced(clang.log1p(clang.exp(-target * input)), reduction)


@torchsymbol("nn.functional.margin_ranking_loss", "margin_ranking_loss")
def margin_ranking_loss(
    input1: TensorProxy,
    input2: TensorProxy,
    target: TensorProxy,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """max(0, -target * (input1 - input2) + margin)"""
    reduction = reduction_of(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{list(input1.shape)}, input2: {list(input2.shape)}, target: {list(target.shape)} "
        )
    return reduced(_positive(-target * (input1 - input2) + margin), reduction)


@torchsymbol("nn.functional.hinge_embedding_loss", "hinge_embedding_loss")
def hinge_embedding_loss(
    input: TensorProxy,
    target: TensorProxy,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """input where the target is 1, max(0, margin - input) where it is -1"""
    reduction = reduction_of(size_average, reduce, reduction)
    _refuse_shapes_that_differ("hinge_embedding_loss", input, target)
    apart = clang.where(clang.ne(target, 1), _positive(margin - input), clang.convert(0, input.dtype))
    same = clang.where(clang.ne(target, -1), input, clang.convert(0, input.dtype))
    return reduced(apart + same, reduction)


@torchsymbol("nn.functional.cosine_embedding_loss", "cosine_embedding_loss")
def cosine_embedding_loss(
    input1: TensorProxy,
    input2: TensorProxy,
    target: TensorProxy,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """1 - cos(input1, input2) where the target is 1, max(0, cos - margin) where it is -1"""
    reduction = reduction_of(size_average, reduce, reduction)
    dim = target.ndim
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input1.ndim != input2.ndim:
        raise NotImplementedError("cosine_embedding_loss of tensors that do not fit")
    if not dtypes.is_float(input1.dtype) or input1.dtype != input2.dtype:
        raise NotImplementedError("cosine_embedding_loss of no floats")
    wide = dtypes.compute_dtype(input1.dtype)
    a, b = clang.operands(clang.convert(input1, wide), clang.convert(input2, wide))
    products = clang.sum(a * b, dim)
    scale = (clang.sum(a * a, dim) + 1e-12) * (clang.sum(b * b, dim) + 1e-12)
    cosine = clang.convert(products / clang.sqrt(scale), input1.dtype)
    zero = clang.convert(0, input1.dtype)
    same = clang.where(clang.eq(target, 1), 1 - cosine, zero)
    apart = clang.where(clang.eq(target, -1), _positive(cosine - margin), zero)
    return reduced(same + apart, reduction)


@torchsymbol("nn.functional.poisson_nll_loss", "poisson_nll_loss")
def poisson_nll_loss(
    input: TensorProxy,
    target: TensorProxy,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """exp(input) - target * input, or input - target * log(input + eps), with Stirling's approximation if `full`"""
    reduction = reduction_of(size_average, reduce, reduction)
    if not dtypes.is_float(input.dtype):
        raise NotImplementedError(f"poisson_nll_loss of {input.dtype}")
    if log_input:
        loss = clang.exp(input) - target * input
    else:
        loss = input - target * clang.log(input + eps)
    if full:
        stirling = target * clang.log(target) - target + 0.5 * clang.log(2 * math.pi * target)
        loss = loss + clang.where(target <= 1, clang.convert(0, stirling.dtype), stirling)
    return reduced(loss, reduction)


@torchsymbol("nn.functional.gaussian_nll_loss")
def gaussian_nll_loss(
    input: TensorProxy,
    target: TensorProxy,
    var: TensorProxy | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> TensorProxy:
    """(log(var) + (input - target)^2 / var) / 2, with `var` at least `eps`"""
    if not isinstance(var, TensorProxy) or not dtypes.is_float(input.dtype) or reduction not in ("none", "mean", "sum"):
        raise NotImplementedError("gaussian_nll_loss with a number as variance")
    if var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = clang.unsqueeze(var, var.ndim)
        elif input.ndim != var.ndim or sum(y for x, y in zip(input.shape, var.shape) if x != y) != 1:
            raise NotImplementedError("gaussian_nll_loss with a variance that does not fit")
    var = clang.where(clang.lt(prims.detach(var), eps), prims.detach(clang.maximum(var, eps)), var)
    difference = input - target
    loss = 0.5 * (clang.log(var) + difference * difference / var)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@torchsymbol("nn.functional.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(
    input: TensorProxy,
    target: TensorProxy,
    weight: TensorProxy | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """-(target * logsigmoid(input) + (1 - target) * logsigmoid(-input)), the mean over classes"""
    reduction = reduction_of(size_average, reduce, reduction)
    if not dtypes.is_float(input.dtype) or input.ndim == 0:
        raise NotImplementedError("multilabel_soft_margin_loss of no floats")
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    per_sample = clang.sum(loss, input.ndim - 1) / input.shape[-1]
    return reduced(per_sample, reduction)


@torchsymbol("nn.functional.multi_margin_loss")
def multi_margin_loss(
    input: TensorProxy,
    target: TensorProxy,
    p: int = 1,
    margin: float = 1.0,
    weight: TensorProxy | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """sum(max(0, margin - input[target] + input[i])^p) / classes over the classes i other than the target"""
    reduction = reduction_of(size_average, reduce, reduction)
    fits = input.ndim in (1, 2) and target.ndim == input.ndim - 1 and target.shape == input.shape[:-1]
    if not fits or p not in (1, 2) or not dtypes.is_float(input.dtype) or target.dtype is not torch.int64:
        raise NotImplementedError("multi_margin_loss of tensors that do not fit")
    if input.numel == 0:
        raise NotImplementedError("multi_margin_loss of nothing")
    classes, dim = input.shape[-1], input.ndim - 1
    at = clang.unsqueeze(target, dim)
    distance = clang.maximum(margin - prims.gather(input, dim, at) + input, 0)
    distance = distance * distance if p == 2 else distance
    if weight is not None:
        chosen = prims.take(weight, prims.reshape(target, (target.numel,)), 0)
        distance = distance * prims.reshape(chosen, at.shape)
    is_target = clang.eq(prims.iota(classes, 0, 1, torch.int64, input.device), at)
    loss = clang.sum(clang.where(is_target, clang.convert(0, distance.dtype), distance), dim) / classes
    return reduced(loss, reduction)


@torchsymbol("nn.functional.multilabel_margin_loss")
def multilabel_margin_loss(
    input: TensorProxy,
    target: TensorProxy,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """sum(max(0, 1 - (input[j] - input[i]))) / classes over the targets j, which end before -1, and the others i"""
    reduction = reduction_of(size_average, reduce, reduction)
    fits = input.ndim in (1, 2) and input.shape == target.shape and target.dtype is torch.int64
    if not fits or not dtypes.is_float(input.dtype) or input.numel == 0:
        raise NotImplementedError("multilabel_margin_loss of tensors that do not fit")
    classes, dim = input.shape[-1], input.ndim - 1
    counted = clang.eq(prims.cumsum(clang.convert(clang.lt(target, 0), torch.int64), dim), 0)
    at = clang.where(counted, target, 0)
    named = clang.eq(clang.unsqueeze(at, dim + 1), prims.iota(classes, 0, 1, torch.int64, input.device))
    is_target = clang.any(clang.bitwise_and(named, clang.unsqueeze(counted, dim + 1)), dim)
    difference = clang.unsqueeze(prims.gather(input, dim, at), dim + 1) - clang.unsqueeze(input, dim)
    compared = clang.bitwise_and(clang.unsqueeze(counted, dim + 1), clang.unsqueeze(clang.logical_not(is_target), dim))
    margins = clang.where(compared, clang.maximum(1 - difference, 0), clang.convert(0, input.dtype))
    return reduced(clang.sum(margins, (dim, dim + 1)) / classes, reduction)


def _distance(a: TensorProxy, b: TensorProxy, p: float, eps: float, keepdim: bool) -> TensorProxy:
    return vector_norm(a - b + eps, p, max(a.ndim, b.ndim) - 1, keepdim)


@torchsymbol("nn.functional.pairwise_distance", "pairwise_distance")
def pairwise_distance(
    x1: TensorProxy, x2: TensorProxy, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> TensorProxy:
    """|x1 - x2 + eps|_p over the last dimension"""
    if not dtypes.is_float(clang.result_type(x1, x2)) or max(x1.ndim, x2.ndim) == 0:
        raise NotImplementedError("pairwise_distance of no floats")
    return _distance(x1, x2, p, eps, keepdim)


@torchsymbol("nn.functional.triplet_margin_loss", "triplet_margin_loss")
def triplet_margin_loss(
    anchor: TensorProxy,
    positive: TensorProxy,
    negative: TensorProxy,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """max(0, |anchor - positive|_p - |anchor - negative|_p + margin)"""
    reduction = reduction_of(size_average, reduce, reduction)
    if not anchor.ndim == positive.ndim == negative.ndim or anchor.ndim == 0 or not dtypes.is_float(anchor.dtype):
        raise NotImplementedError("triplet_margin_loss of tensors of several ranks, or of no floats")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    near, far = (_distance(anchor, x, p, eps, False) for x in (positive, negative))
    if swap:
        far = clang.minimum(far, _distance(positive, negative, p, eps, False))
    return reduced(_positive(near - far + margin), reduction)


@torchsymbol("nn.functional.local_response_norm")
def local_response_norm(
    input: TensorProxy, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> TensorProxy:
    """input / (k + alpha * mean of input^2 over neighbouring channels)^beta"""
    if input.ndim < 3 or input.numel == 0 or not dtypes.is_float(input.dtype):
        raise NotImplementedError("local_response_norm of less than three dimensions")
    squares = input * input
    pads = [[0] * input.ndim for _ in range(2)]
    pads[0][1], pads[1][1] = size // 2, (size - 1) // 2
    padded = prims.pad(squares, 0.0, *map(tuple, pads))
    channels = input.shape[1]
    total = clang.slice_dim(padded, 1, 0, channels)
    for i in range(1, size):
        total = total + clang.slice_dim(padded, 1, i, i + channels)
    return input / pow_.meta(total / size * alpha + k, beta)


@torchsymbol("dist", "Tensor.dist")
def dist(input: TensorProxy, other: TensorProxy, p: float = 2) -> TensorProxy:
    """|input - other|_p over all elements"""
    if not dtypes.is_float(clang.result_type(input, other)) or not isinstance(p, int | float):
        raise NotImplementedError("dist of no floats")
    difference = input - other
    if difference.numel == 0 or difference.ndim == 0:
        raise NotImplementedError("dist of nothing")
    return vector_norm(difference, p)


@torchsymbol("cdist", "functional.cdist")
def cdist(x1: TensorProxy, x2: TensorProxy, p: float = 2.0, compute_mode: Any = None) -> TensorProxy:
    """|x1[i] - x2[j]|_p for every pair of rows"""
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1] or x1.dtype != x2.dtype or p < 0:
        raise NotImplementedError("cdist of rows that do not fit")
    if x1.dtype not in (torch.float32, torch.float64) or 0 in (*x1.shape, *x2.shape):
        raise NotImplementedError(f"cdist of {x1.dtype}")
    a, b = clang.unsqueeze(x1, x1.ndim - 1), clang.unsqueeze(x2, x2.ndim - 2)
    difference = a - b
    return vector_norm(difference, p, difference.ndim - 1)
