"""Dropout of whole channels, dropout that keeps mean and variance, and other layers with noise."""

import math

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.torch.activations import softmax
from thunder.torch.language import torchsymbol


def _kept(shape: tuple[int, ...], like: TensorProxy, p: float) -> TensorProxy:
    """1 where the dropout keeps, else 0; drawn as torch does, which draws in the order of memory."""
    if not like.is_contiguous:
        raise NotImplementedError("dropout of a tensor that is not row-major")
    chances = prims.full(shape, 1.0 - p, like.dtype, like.device)
    return prims.bernoulli(chances)


def _checked(input: TensorProxy, p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not dtypes.is_float(input.dtype):
        raise NotImplementedError(f"dropout of {input.dtype}")


def _channel_dropout(n: int, unbatched: bool) -> None:
    def dropout(input: TensorProxy, p: float = 0.5, training: bool = True, inplace: bool = False) -> TensorProxy:
        """In training, each channel is 0 with chance `p`, else divided by 1 - p; https://arxiv.org/abs/1411.4280"""
        _checked(input, p)
        if input.ndim not in (n + 1, n + 2):
            raise NotImplementedError(f"dropout{n}d of {input.ndim} dimensions")
        one_sample = unbatched and input.ndim == n + 1
        if not training or p == 0.0 or input.numel == 0:
            return prims.reshape(input, input.shape) if one_sample else input  # torch gives a view then
        if p == 1.0:
            return clang.mul(input, 0.0)
        # One sample has its first dimension for the channels (dropout2d takes it for the batch, as torch warns).
        leading = (1, input.shape[0]) if one_sample else input.shape[:2]
        noise = clang.div(_kept((*leading, *(1 for _ in range(n))), input, p), 1.0 - p)
        if one_sample:
            noise = prims.reshape(noise, noise.shape[1:])
        elif noise.ndim != input.ndim:
            noise = prims.reshape(noise, (*leading, *(1 for _ in input.shape[2:])))
        return clang.mul(input, noise)

    dropout.__name__ = f"dropout{n}d"
    torchsymbol(f"nn.functional.dropout{n}d", inplace=True)(dropout)


_channel_dropout(1, True)
_channel_dropout(2, False)
_channel_dropout(3, True)


def _alpha(input: TensorProxy, p: float, training: bool, shape: tuple[int, ...]) -> TensorProxy:
    """What is dropped becomes SELU's least value; the whole is scaled back to its mean and variance."""
    _checked(input, p)
    if not training or p == 0.0 or input.numel == 0:
        return input
    if p == 1.0:
        return clang.mul(input, 0.0)
    alpha = 1.7580993408473766
    scale = 1.0 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    kept = _kept(shape, input, p)
    shift = clang.add(clang.mul(clang.sub(kept, 1), alpha * scale), alpha * scale * p)
    return clang.add(clang.mul(input, clang.mul(kept, scale)), shift)


@torchsymbol("nn.functional.alpha_dropout", inplace=True)
def alpha_dropout(input: TensorProxy, p: float = 0.5, training: bool = False, inplace: bool = False) -> TensorProxy:
    """https://arxiv.org/abs/1706.02515"""
    return _alpha(input, p, training, input.shape)


@torchsymbol("nn.functional.feature_alpha_dropout", inplace=True)
def feature_alpha_dropout(
    input: TensorProxy, p: float = 0.5, training: bool = False, inplace: bool = False
) -> TensorProxy:
    """alpha_dropout of whole channels"""
    if input.ndim < 2:
        raise NotImplementedError("feature_alpha_dropout of less than two dimensions")
    return _alpha(input, p, training, (*input.shape[:2], *(1 for _ in input.shape[2:])))


@torchsymbol("nn.functional.rrelu", inplace=True)
def rrelu(
    input: TensorProxy, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> TensorProxy:
    """input where positive, else scaled by the mean of the slopes (in training by a random one)"""
    if training or not dtypes.is_float(input.dtype):
        raise NotImplementedError("rrelu in training")
    a = clang.convert(input, dtypes.compute_dtype(input.dtype))
    return clang.convert(clang.where(a > 0, a, a * ((lower + upper) / 2)), input.dtype)


@torchsymbol("nn.functional.gumbel_softmax")
def gumbel_softmax(
    logits: TensorProxy, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> TensorProxy:
    """softmax((logits + Gumbel noise) / tau), or one-hot with its gradient; https://arxiv.org/abs/1611.01144"""
    if not dtypes.is_float(logits.dtype) or logits.ndim == 0 or not logits.is_contiguous:
        raise NotImplementedError("gumbel_softmax of no floats, or of another layout")
    noise = clang.neg(clang.log(prims.exponential(logits.shape, 1.0, logits.dtype, logits.device)))
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    d = clang.canonical_dim(dim, logits.ndim)
    at = clang.argmax(soft, d, keepdim=True)
    classes = prims.iota(logits.shape[d], 0, 1, torch.int64, logits.device)
    spread = prims.broadcast_in_dim(classes, _along(logits, d), (d,))
    chosen = clang.convert(clang.eq(spread, at), soft.dtype)
    return chosen - prims.detach(soft) + soft


def _along(a: TensorProxy, dim: int) -> tuple[int, ...]:
    return tuple(size if d == dim else 1 for d, size in enumerate(a.shape))
