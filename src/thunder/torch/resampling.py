"""Images in another size or seen through a grid: interpolation, padding by what is there, pixel shuffling."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from thunder import clang
from thunder.core import dtypes, prims, window_prims
from thunder.core.proxies import TensorProxy, channels_last_order
from thunder.torch.language import torchsymbol
from thunder.torch.pooling import adaptive_sizes, block_means

# The neighbours that count for one element, along a dimension: (index, weight); a weight of None is 1.
Taps = list[tuple[TensorProxy, TensorProxy | None]]

_SPATIAL = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def _output_sizes(
    input: TensorProxy, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The sizes of the output, and the scale factors that torch's kernels are given."""
    n = input.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ValueError("only one of size or scale_factor should be defined")
    given = size if scale_factor is None else scale_factor
    values = tuple(given) if isinstance(given, tuple | list) else (given,) * n
    if len(values) != n or any(isinstance(x, TensorProxy) for x in values):
        raise NotImplementedError("interpolate with another number of sizes")
    if scale_factor is None:
        return tuple(map(int, values)), (None,) * n
    sizes = tuple(math.floor(float(x) * float(s)) for x, s in zip(input.shape[2:], values))
    return sizes, (None,) * n if recompute else tuple(map(float, values))


def _positions(length: int, dtype: torch.dtype, device: torch.device) -> TensorProxy:
    return clang.convert(prims.iota(length, 0, 1, torch.int64, device), dtype)


def _clamped(index: TensorProxy, size: int) -> TensorProxy:
    return clang.minimum(clang.maximum(index, 0), size - 1)


def _nearest(size: int, out: int, scale: float, shift: float, device: torch.device) -> Taps:
    at = clang.floor((_positions(out, torch.float32, device) + shift) * scale)
    return [(clang.convert(clang.minimum(at, float(size - 1)), torch.int64), None)]


def _source(out: int, scale: float, align_corners: bool, dtype: torch.dtype, device: torch.device) -> TensorProxy:
    """Where each element of the output lies between those of the input."""
    position = _positions(out, dtype, device)
    return position * scale if align_corners else (position + 0.5) * scale - 0.5


def _linear(size: int, source: TensorProxy) -> Taps:
    source = clang.maximum(source, 0.0)
    low = clang.minimum(clang.floor(source), float(size - 1))
    weight = source - low
    first = clang.convert(low, torch.int64)
    return [(first, 1.0 - weight), (_clamped(first + 1, size), weight)]


def _cubic(size: int, source: TensorProxy) -> Taps:
    """Keys' cubic convolution with the coefficient -0.75."""
    c = -0.75
    low = clang.floor(source)
    t = source - low
    first = clang.convert(low, torch.int64)

    def near(x: TensorProxy) -> TensorProxy:
        return ((c + 2) * x - (c + 3)) * x * x + 1

    def far(x: TensorProxy) -> TensorProxy:
        return ((c * x - 5 * c) * x + 8 * c) * x - 4 * c

    weights = (far(t + 1), near(t), near(1 - t), far(2 - t))
    return [(_clamped(first + (i - 1), size), weight) for i, weight in enumerate(weights)]


def _resampled(a: TensorProxy, dim: int, taps: Taps) -> TensorProxy:
    """`a` along `dim` as the weighted sums of its elements that `taps` name."""
    total = None
    for index, weight in taps:
        part = prims.take(a, index, dim)
        if weight is not None:
            shape = tuple(part.shape[d] if d == dim else 1 for d in range(a.ndim))
            part = part * prims.broadcast_in_dim(weight, shape, (dim,))
        total = part if total is None else total + part
    return total


@torchsymbol("nn.functional.interpolate")
def interpolate(
    input: TensorProxy,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> TensorProxy:
    """`input` (batch, channels, spatial dimensions) in another size, one dimension after the other"""
    if align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if input.ndim not in (3, 4, 5) or antialias or not dtypes.is_float(input.dtype) or input.numel == 0:
        raise NotImplementedError(f"interpolate of {input.dtype} with {input.ndim} dimensions")
    if _SPATIAL.get(mode, input.ndim - 2) != input.ndim - 2:
        raise NotImplementedError(f"interpolate with mode={mode!r} of {input.ndim} dimensions")
    sizes, factors = _output_sizes(input, size, scale_factor, recompute_scale_factor)
    if min(sizes) <= 0 or any(f is not None and f <= 0 for f in factors):
        raise NotImplementedError("interpolate to no elements")
    if mode == "area":
        return _area(input, sizes)
    dtype = input.dtype if mode.startswith("nearest") else dtypes.compute_dtype(input.dtype)
    out = clang.convert(input, dtype)
    for d, (new, factor) in enumerate(zip(sizes, factors), start=2):
        old = input.shape[d]
        if new != old or (factor is not None and mode != "nearest"):
            out = _resampled(out, d, _taps(mode, old, new, factor, bool(align_corners), dtype, input.device))
    if out is input:
        out = prims.clone(input)
    return clang.laid_out(clang.convert(out, input.dtype), like=input)


def _taps(
    mode: str, old: int, new: int, factor: float | None, align: bool, dtype: torch.dtype, device: torch.device
) -> Taps:
    scale = old / new if factor is None else 1.0 / factor
    if mode == "nearest":
        return _nearest(old, new, scale, 0.0, device)
    if mode == "nearest-exact":
        return _nearest(old, new, scale, 0.5, device)
    if mode not in _SPATIAL:
        raise NotImplementedError(f"Input Error: Got unsupported mode {mode!r}")
    if align:
        scale = (old - 1) / (new - 1) if new > 1 else 0.0
    source = _source(new, scale, align, dtype, device)
    return _cubic(old, source) if mode == "bicubic" else _linear(old, source)


def _area(input: TensorProxy, sizes: Sequence[int]) -> TensorProxy:
    adaptive_sizes(input, sizes, len(sizes))
    if not any(size % s for s, size in zip(sizes, input.shape[2:])):
        return block_means(input, sizes)
    return window_prims.adaptive_avg_pool(input, tuple(sizes))


@torchsymbol("nn.functional.upsample")
def upsample(
    input: TensorProxy,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> TensorProxy:
    return interpolate.meta(input, size, scale_factor, mode, align_corners)


@torchsymbol("nn.functional.upsample_nearest")
def upsample_nearest(input: TensorProxy, size: Any = None, scale_factor: Any = None) -> TensorProxy:
    return interpolate.meta(input, size, scale_factor)


@torchsymbol("nn.functional.upsample_bilinear")
def upsample_bilinear(input: TensorProxy, size: Any = None, scale_factor: Any = None) -> TensorProxy:
    return interpolate.meta(input, size, scale_factor, "bilinear", True)


@torchsymbol("nn.functional.grid_sample")
def grid_sample(
    input: TensorProxy,
    grid: TensorProxy,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> TensorProxy:
    """`input` at the positions of `grid`; https://arxiv.org/abs/1506.02025"""
    fits = input.ndim == grid.ndim in (4, 5) and grid.shape[-1] == input.ndim - 2 and grid.shape[0] == input.shape[0]
    if not fits or input.dtype != grid.dtype or 0 in input.shape[1:]:
        raise NotImplementedError("grid_sample of tensors that do not fit")
    if mode not in ("bilinear", "nearest", "bicubic") or padding_mode not in ("zeros", "border", "reflection"):
        raise NotImplementedError(f"grid_sample with {mode=} and {padding_mode=}")
    if mode == "bicubic" and input.ndim == 5:
        raise NotImplementedError("grid_sample of volumes with mode='bicubic'")
    return window_prims.grid_sample(input, grid, mode, padding_mode, bool(align_corners))


def padded_by_index(input: TensorProxy, pad: Sequence[int], mode: str) -> TensorProxy:
    """`input` with its own elements put around it, mirrored, repeated or from the other side."""
    n = len(pad) // 2
    if len(pad) % 2 or not 1 <= n <= 3 or input.ndim not in (n + 1, n + 2) or channels_last_order(input):
        raise NotImplementedError(f"pad of {input.ndim} dimensions with mode={mode!r}")
    if 0 in input.shape[-n - 1 :] or min(pad) < 0:
        raise NotImplementedError(f"pad with mode={mode!r} that crops, or of nothing")
    out = input
    for i in range(n):
        before, behind = pad[2 * i], pad[2 * i + 1]
        dim = input.ndim - 1 - i
        size = input.shape[dim]
        limit = {"reflect": size - 1, "circular": size, "replicate": max(pad)}
        if mode not in limit or max(before, behind) > limit[mode]:
            raise NotImplementedError(f"pad with mode={mode!r} by more than there is")
        if before or behind:
            at = prims.iota(size + before + behind, -before, 1, torch.int64, input.device)
            out = prims.take(out, _padding_index(at, size, mode), dim)
    return prims.clone(input) if out is input else out


def _padding_index(at: TensorProxy, size: int, mode: str) -> TensorProxy:
    """Which element stands at the positions `at`, which reach from below 0 to `size` and above."""
    if mode == "replicate":
        return _clamped(at, size)
    if mode == "circular":
        return clang.remainder(at, size)
    return (size - 1) - clang.abs((size - 1) - clang.abs(at))


def _refuse_few_dimensions(name: str, input: TensorProxy) -> None:
    if input.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input with {input.ndim}")


@torchsymbol("pixel_shuffle", "nn.functional.pixel_shuffle")
def pixel_shuffle(input: TensorProxy, upscale_factor: int) -> TensorProxy:
    """Channels spread over blocks of `upscale_factor` squared pixels; https://arxiv.org/abs/1609.05158"""
    _refuse_few_dimensions("pixel_shuffle", input)
    *outer, channels, height, width = input.shape
    r = upscale_factor
    if r <= 0 or channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    a = prims.reshape(input, (*outer, channels // (r * r), r, r, height, width))
    n = len(outer)
    a = prims.permute(a, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    out = prims.reshape(a if r > 1 else prims.contiguous(a), (*outer, channels // (r * r), height * r, width * r))
    return clang.laid_out(out, like=input)


@torchsymbol("pixel_unshuffle", "nn.functional.pixel_unshuffle")
def pixel_unshuffle(input: TensorProxy, downscale_factor: int) -> TensorProxy:
    """Blocks of `downscale_factor` squared pixels made channels"""
    _refuse_few_dimensions("pixel_unshuffle", input)
    *outer, channels, height, width = input.shape
    r = downscale_factor
    if r <= 0 or height % r or width % r:
        raise RuntimeError(f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but got {r}")
    a = prims.reshape(input, (*outer, channels, height // r, r, width // r, r))
    n = len(outer)
    a = prims.permute(a, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    out = prims.reshape(a if r > 1 else prims.contiguous(a), (*outer, channels * r * r, height // r, width // r))
    return clang.laid_out(out, like=input)


@torchsymbol("channel_shuffle", "nn.functional.channel_shuffle", "native_channel_shuffle")
def channel_shuffle(input: TensorProxy, groups: int) -> TensorProxy:
    """Channels dealt out to `groups` groups in turn; https://arxiv.org/abs/1707.01083"""
    if input.ndim < 3 or groups <= 0 or input.shape[1] % groups or input.numel == 0:
        raise NotImplementedError("channel_shuffle of channels that cannot be shared out")
    batch, channels, *rest = input.shape
    a = prims.reshape(input, (batch, groups, channels // groups, *rest))
    a = prims.permute(a, (0, 2, 1, *range(3, a.ndim)))
    return clang.laid_out(prims.reshape(prims.contiguous(a), input.shape), like=input)


@torchsymbol("nn.functional.affine_grid")
def affine_grid(theta: TensorProxy, size: Sequence[int], align_corners: bool | None = None) -> TensorProxy:
    """The grid of an image of `size` seen through the affine maps `theta`"""
    n = len(size) - 2
    if n not in (2, 3) or theta.shape != (size[0], n, n + 1) or not dtypes.is_float(theta.dtype) or min(size) <= 0:
        raise NotImplementedError("affine_grid of sizes that do not fit")
    spatial = tuple(size[2:])
    axes = []
    for i, length in enumerate(reversed(spatial)):
        if length == 1:
            line = prims.full((1,), 0.0, theta.dtype, theta.device)
        else:
            position = _positions(length, theta.dtype, theta.device)
            line = position * (2 / (length - 1)) - 1.0
            line = line if align_corners else line * ((length - 1) / length)
        axes.append(prims.broadcast_in_dim(line, spatial, (n - 1 - i,)))
    axes.append(prims.full(spatial, 1.0, theta.dtype, theta.device))
    points = prims.cat([clang.unsqueeze(x, n) for x in axes], n)
    flat = prims.reshape(points, (math.prod(spatial), n + 1))
    flat = prims.broadcast_in_dim(flat, (size[0], *flat.shape), (1, 2))
    grid = prims.matmul(flat, clang.transpose(theta, 1, 2))
    return prims.reshape(grid, (size[0], *spatial, n))
