"""Loss functions of the PyTorch language."""

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.torch.activations import log_softmax, logsigmoid
from thunder.torch.language import torchsymbol, unsupported
from thunder.torch.reductions import root


def reduction_of(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that the legacy arguments mean."""
    unsupported("a loss", size_average=size_average, reduce=reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss: TensorProxy, reduction: str) -> TensorProxy:
    if reduction == "none":
        return loss
    return clang.mean(loss) if reduction == "mean" else clang.sum(loss)


def _pair(input: TensorProxy, target: TensorProxy) -> tuple[TensorProxy, TensorProxy]:
    """Both in the dtype to compute in."""
    dtype = clang.computation_dtype(input, target)
    if not dtypes.is_float(dtype):
        raise NotImplementedError(f"a loss of {dtype}")
    return clang.convert(input, dtype), clang.convert(target, dtype)


@torchsymbol("nn.functional.mse_loss")
def mse_loss(
    input: TensorProxy,
    target: TensorProxy,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: TensorProxy | None = None,
) -> TensorProxy:
    """(input - target)^2"""
    unsupported("mse_loss", weight=weight)
    reduction = reduction_of(size_average, reduce, reduction)
    a, b = _pair(input, target)
    difference = a - b
    return clang.convert(reduced(difference * difference, reduction), clang.result_type(input, target))


@torchsymbol("nn.functional.l1_loss")
def l1_loss(
    input: TensorProxy,
    target: TensorProxy,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: TensorProxy | None = None,
) -> TensorProxy:
    """|input - target|"""
    unsupported("l1_loss", weight=weight)
    reduction = reduction_of(size_average, reduce, reduction)
    a, b = _pair(input, target)
    return clang.convert(reduced(clang.abs(a - b), reduction), clang.result_type(input, target))


@torchsymbol("nn.functional.smooth_l1_loss")
def smooth_l1_loss(
    input: TensorProxy,
    target: TensorProxy,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> TensorProxy:
    """d^2 / (2 beta) where d = |input - target| is below beta, else d - beta / 2"""
    reduction = reduction_of(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss.meta(input, target, reduction=reduction)
    a, b = _pair(input, target)
    d = clang.abs(a - b)
    loss = clang.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    return clang.convert(reduced(loss, reduction), clang.result_type(input, target))


@torchsymbol("nn.functional.huber_loss")
def huber_loss(
    input: TensorProxy,
    target: TensorProxy,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: TensorProxy | None = None,
) -> TensorProxy:
    """d^2 / 2 where d = |input - target| is at most delta, else delta * (d - delta / 2)"""
    unsupported("huber_loss", weight=weight)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    a, b = _pair(input, target)
    d = clang.abs(a - b)
    loss = clang.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta))
    return clang.convert(reduced(loss, reduction), clang.result_type(input, target))


@torchsymbol("nn.functional.binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    input: TensorProxy,
    target: TensorProxy,
    weight: TensorProxy | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: TensorProxy | None = None,
) -> TensorProxy:
    """-(target * log(sigmoid(input)) * pos_weight + (1 - target) * log(1 - sigmoid(input))) * weight"""
    reduction = reduction_of(size_average, reduce, reduction)
    if input.shape != target.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    log_probability = logsigmoid(input)  # torch rounds here and after each step that follows
    if pos_weight is not None:
        log_probability = ((pos_weight - 1) * target + 1) * log_probability
    loss = (1 - target) * input - log_probability
    return reduced(loss if weight is None else loss * weight, reduction)


@torchsymbol("nn.functional.binary_cross_entropy")
def binary_cross_entropy(
    input: TensorProxy,
    target: TensorProxy,
    weight: TensorProxy | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """-(target * log(input) + (1 - target) * log(1 - input)) * weight, with logarithms kept above -100"""
    reduction = reduction_of(size_average, reduce, reduction)
    if input.shape != target.shape:
        raise ValueError(f"Using a target size ({target.shape}) that is different to the input size ({input.shape})")
    a, b = _pair(input, target)
    log_a, log_rest = clang.maximum(clang.log(a), -100.0), clang.maximum(clang.log1p(-a), -100.0)
    loss = (b - 1.0) * log_rest - b * log_a
    if weight is not None:
        loss = loss * clang.convert(weight, a.dtype)
    return clang.convert(reduced(loss, reduction), input.dtype)


@torchsymbol("nn.functional.nll_loss")
def nll_loss(
    input: TensorProxy,
    target: TensorProxy,
    weight: TensorProxy | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> TensorProxy:
    """-weight[target] * input[target], except where the target is `ignore_index`"""
    return _nll(input, target, weight, ignore_index, reduction_of(size_average, reduce, reduction), smoothing=0.0)


def _check_classes(input: TensorProxy, target: TensorProxy) -> int:
    """The dimension of the classes."""
    if input.ndim == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {input.ndim})")
    dim = 0 if input.ndim == 1 else 1
    if target.shape != input.shape[:dim] + input.shape[dim + 1 :]:
        raise ValueError(f"Expected target size {input.shape[:dim] + input.shape[dim + 1 :]}, got {target.shape}")
    if not dtypes.is_exact(target.dtype):
        raise RuntimeError(f"expected scalar type Long but found {target.dtype}")
    return dim


def counted_classes(
    target: TensorProxy, weight: TensorProxy | None, ignore_index: int, dtype: torch.dtype
) -> tuple[TensorProxy, TensorProxy, TensorProxy]:
    """Where the target counts, its classes (0 where it does not), and by how much each counts, in `dtype`."""
    counted = clang.ne(target, ignore_index)
    classes = clang.convert(clang.where(counted, target, 0), torch.int64)
    if weight is None:
        return counted, classes, clang.convert(counted, dtype)
    flat = prims.take(clang.convert(weight, dtype), prims.reshape(classes, (classes.numel,)), 0)
    return counted, classes, clang.where(counted, prims.reshape(flat, classes.shape), 0.0)


def _nll(
    log_probabilities: TensorProxy,
    target: TensorProxy,
    weight: TensorProxy | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
) -> TensorProxy:
    """The loss against class indices, mixed with the mean over all classes where `smoothing` is not 0."""
    dim = _check_classes(log_probabilities, target)
    dtype = log_probabilities.dtype
    a = clang.convert(log_probabilities, dtypes.compute_dtype(dtype))
    weight = None if weight is None else clang.convert(weight, a.dtype)
    counted, classes, shares = counted_classes(target, weight, ignore_index, a.dtype)
    loss = -prims.squeeze(prims.gather(a, dim, clang.unsqueeze(classes, dim)), (dim,))
    if weight is not None:
        loss = loss * shares
    loss = clang.where(counted, loss, 0.0)
    if smoothing:
        every = a if weight is None else a * _along(weight, a, dim)
        every = clang.where(counted, -clang.sum(every, dim), 0.0)
        loss = loss * (1 - smoothing) + every * (smoothing / a.shape[dim])
    if reduction != "none":
        loss = clang.sum(loss)
    if reduction == "mean":
        loss = loss / clang.sum(shares)
    return clang.convert(loss, dtype)


def _along(weight: TensorProxy, a: TensorProxy, dim: int) -> TensorProxy:
    """The vector `weight` as it broadcasts along dimension `dim` of `a`."""
    return prims.broadcast_in_dim(weight, tuple(weight.shape[0] if d == dim else 1 for d in range(a.ndim)), (dim,))


@torchsymbol("nn.functional.cross_entropy")
def cross_entropy(
    input: TensorProxy,
    target: TensorProxy,
    weight: TensorProxy | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> TensorProxy:
    """-sum(target * log_softmax(input)) over the classes; the target holds class indices or probabilities"""
    reduction = reduction_of(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if input.ndim == 0:
        raise RuntimeError("cross_entropy: the input needs a dimension of classes")
    log_probabilities = log_softmax(input, 0 if input.ndim == 1 else 1)
    if input.shape != target.shape:
        return _nll(log_probabilities, target, weight, ignore_index, reduction, label_smoothing)
    return _soft_cross_entropy(log_probabilities, target, weight, reduction, label_smoothing)


def _soft_cross_entropy(
    log_probabilities: TensorProxy, target: TensorProxy, weight: TensorProxy | None, reduction: str, smoothing: float
) -> TensorProxy:
    """The loss against class probabilities."""
    if dtypes.is_exact(target.dtype):
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.dtype}")
    dim = 0 if log_probabilities.ndim == 1 else 1
    a, target = _pair(log_probabilities, target)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / a.shape[dim]
    product = a * target
    if weight is not None:
        product = product * _along(clang.convert(weight, a.dtype), a, dim)
    if reduction == "none":
        loss = -clang.sum(product, dim)
    else:
        loss = -clang.sum(product)
        if reduction == "mean":
            loss = loss / max(a.numel // a.shape[dim], 1)
    return clang.convert(loss, log_probabilities.dtype)


@torchsymbol("nn.functional.kl_div")
def kl_div(
    input: TensorProxy,
    target: TensorProxy,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> TensorProxy:
    """target * (log(target) - input); exp(target) * (target - input) if the target holds logarithms"""
    unsupported("kl_div", size_average=size_average, reduce=reduce)
    if log_target:
        loss = clang.exp(target) * (target - input)
    else:
        entropy = clang.where(clang.eq(target, 0), 0.0, target * clang.log(target))
        loss = clang.where(clang.isnan(target), target, entropy) - target * input
    if reduction == "batchmean":
        return clang.sum(loss) / input.shape[0] if input.ndim else clang.sum(loss)
    return reduced(loss, reduction_of(None, None, reduction))


@torchsymbol("nn.functional.cosine_similarity", "cosine_similarity")
def cosine_similarity(x1: TensorProxy, x2: TensorProxy, dim: int = 1, eps: float = 1e-8) -> TensorProxy:
    """x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along `dim`"""
    dtype = clang.result_type(x1, x2)
    if dtypes.is_exact(dtype):
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype}")
    a, b = clang.operands(x1, x2)
    a, b = (x / clang.maximum(root(clang.sum(x * x, dim, keepdim=True), 2), eps) for x in (a, b))
    return clang.sum(a * b, dim)
