"""Layers of the PyTorch language: embedding, dropout, convolutions, pooling."""

from collections.abc import Sequence

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import Symbol
from thunder.torch.language import torchsymbol, unsupported


@torchsymbol("nn.functional.embedding")
def embedding(
    input: TensorProxy,
    weight: TensorProxy,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> TensorProxy:
    """The rows of `weight` that `input` names; the row `padding_idx` gets no gradient."""
    unsupported("embedding", max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    if input.dtype not in (torch.int64, torch.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{input.dtype} instead (while checking arguments for embedding)"
        )
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if padding_idx is None:
        return prims.embedding(input, weight)
    # Where the padding row is taken, its value comes from a detached copy, so that it gets no gradient.
    rows = weight.shape[0]
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    is_padding = clang.unsqueeze(clang.eq(input, padding_idx % rows), input.ndim)
    taken = prims.embedding(input, weight)
    return clang.where(is_padding, prims.detach(taken), taken)


@torchsymbol("nn.functional.embedding_bag")
def embedding_bag(
    input: TensorProxy,
    weight: TensorProxy,
    offsets: TensorProxy | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: TensorProxy | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> TensorProxy:
    """The sums or means of bags of rows of `weight`: a bag is a row of `input`, or begins at each of `offsets`"""
    unsupported("embedding_bag", max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    fits = input.dtype in (torch.int64, torch.int32) and weight.ndim == 2 and dtypes.is_float(weight.dtype)
    if not fits or input.ndim != (2 if offsets is None else 1) or mode not in ("sum", "mean") or input.numel == 0:
        raise NotImplementedError(f"embedding_bag of {input.ndim} dimensions with mode={mode!r}")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        raise NotImplementedError("embedding_bag with weights that do not fit")
    if offsets is not None and (include_last_offset or offsets.ndim != 1 or offsets.shape[0] == 0):
        raise NotImplementedError("embedding_bag with include_last_offset")
    rows = clang.convert(prims.embedding(input, weight), dtypes.compute_dtype(weight.dtype))
    counted = prims.full(input.shape, 1.0, rows.dtype, rows.device)
    if padding_idx is not None:
        counted = clang.convert(clang.ne(input, padding_idx % weight.shape[0]), rows.dtype)
    factor = counted if per_sample_weights is None else counted * clang.convert(per_sample_weights, rows.dtype)
    rows = rows * clang.unsqueeze(factor, factor.ndim)
    total, count = (_bag_sums(x, input, offsets) for x in (rows, clang.unsqueeze(counted, counted.ndim)))
    out = total if mode == "sum" else total / clang.maximum(count, 1.0)
    return clang.convert(out, weight.dtype)


def _bag_sums(a: TensorProxy, input: TensorProxy, offsets: TensorProxy | None) -> TensorProxy:
    if offsets is None:
        return clang.sum(a, 1)
    # The bag of an element is the number of bags that have begun, less one.
    at = prims.iota(input.shape[0], 0, 1, offsets.dtype, input.device)
    bag = clang.sum(clang.le(offsets, clang.unsqueeze(at, 1)), 1) - 1
    empty = prims.full((offsets.shape[0], a.shape[1]), 0.0, a.dtype, a.device)
    return prims.index_put(empty, (bag,), a, True)


@torchsymbol("nn.functional.dropout", inplace=True)
def dropout(input: TensorProxy, p: float = 0.5, training: bool = True, inplace: bool = False) -> TensorProxy:
    """In training, each element is 0 with chance `p`, else divided by 1 - p; https://arxiv.org/abs/1207.0580"""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0 or input.numel == 0:
        return input
    if dtypes.is_exact(input.dtype):
        raise RuntimeError(f"result type Float can't be cast to the desired output type {input.dtype}")
    if p == 1.0:
        return clang.mul(input, 0.0)
    kept = clang.convert(prims.dropout_mask(input, float(p)), input.dtype)
    return clang.mul(input, clang.div(kept, 1.0 - p))


def _spread(x: int | Sequence[int], n: int) -> tuple[int, ...]:
    """One number for each of `n` dimensions."""
    values = (x,) if isinstance(x, int) else tuple(x)
    return values * n if len(values) == 1 else values


def _same_padding(a: TensorProxy, weight: TensorProxy, dilation: Sequence[int]) -> tuple[TensorProxy, tuple[int, ...]]:
    """The input and the padding with which a convolution of stride 1 keeps the sizes."""
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    extra = [total % 2 for total in totals]
    if any(extra) and a.dtype.is_complex:
        raise NotImplementedError("padding of complex numbers")
    if any(extra):
        zero = clang.convert(0, a.dtype)
        a = prims.pad(a, zero, (0,) * a.ndim, (0, 0, *extra))
    return a, tuple(total // 2 for total in totals)


def _convolution(n: int) -> Symbol:
    def conv(
        input: TensorProxy,
        weight: TensorProxy,
        bias: TensorProxy | None = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
    ) -> TensorProxy:
        if input.dtype.is_complex:
            raise NotImplementedError("convolution of complex numbers")
        stride, dilation = _spread(stride, n), _spread(dilation, n)
        a = _batched(f"conv{n}d", input, n)
        _check_channels(a, weight, groups, weight.shape[1] * groups)
        if padding == "same":
            if set(stride) != {1}:
                raise RuntimeError("padding='same' is not supported for strided convolutions")
            a, padding = _same_padding(a, weight, dilation)
        padding = (0,) * n if padding == "valid" else _spread(padding, n)
        out = prims.convolution(a, weight, bias, stride, padding, dilation, False, (0,) * n, groups)
        return out if input.ndim == n + 2 else prims.squeeze(out, (0,))

    conv.__name__ = f"conv{n}d"
    return torchsymbol(f"nn.functional.conv{n}d")(conv)


def _transposed_convolution(n: int) -> Symbol:
    def conv_transpose(
        input: TensorProxy,
        weight: TensorProxy,
        bias: TensorProxy | None = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        dilation: int | Sequence[int] = 1,
    ) -> TensorProxy:
        if input.dtype.is_complex:
            raise NotImplementedError("transposed convolution of complex numbers")
        a = _batched(f"conv_transpose{n}d", input, n)
        _check_channels(a, weight, groups, weight.shape[0])
        spread = [_spread(x, n) for x in (stride, padding, dilation, output_padding)]
        out = prims.convolution(a, weight, bias, *spread[:3], True, spread[3], groups)
        return out if input.ndim == n + 2 else prims.squeeze(out, (0,))

    conv_transpose.__name__ = f"conv_transpose{n}d"
    return torchsymbol(f"nn.functional.conv_transpose{n}d")(conv_transpose)


def _batched(name: str, input: TensorProxy, n: int) -> TensorProxy:
    """`input` with a batch dimension, also where it is a single sample."""
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    return input if input.ndim == n + 2 else clang.unsqueeze(input, 0)


def _check_channels(a: TensorProxy, weight: TensorProxy, groups: int, channels: int) -> None:
    if a.dtype != weight.dtype:
        raise RuntimeError(f"Input type ({a.dtype}) and weight type ({weight.dtype}) should be the same")
    if weight.ndim != a.ndim:
        raise RuntimeError(f"Expected a weight of {a.ndim} dimensions, but got size {list(weight.shape)}")
    if a.shape[1] != channels:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(a.shape)} to have "
            f"{channels} channels, but got {a.shape[1]} channels instead"
        )


for _n in (1, 2, 3):
    _convolution(_n)
    _transposed_convolution(_n)


@torchsymbol("nn.functional.one_hot")
def one_hot(input: TensorProxy, num_classes: int = -1) -> TensorProxy:
    """1 where the class is the index, else 0"""
    if num_classes < 0:
        raise NotImplementedError("one_hot without num_classes: the result's shape depends on values")
    classes = prims.iota(num_classes, 0, 1, torch.int64, input.device)
    return clang.convert(clang.eq(clang.unsqueeze(input, input.ndim), classes), torch.int64)
