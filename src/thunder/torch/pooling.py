"""Pooling of the PyTorch language. Windows that share out their dimensions evenly are means of blocks."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from thunder import clang
from thunder.core import dtypes, prims, window_prims
from thunder.core.proxies import TensorProxy
from thunder.torch.elementwise import pow_
from thunder.torch.language import torchsymbol

Sizes = int | Sequence[int]


def _spread(x: Sizes, n: int) -> tuple[int, ...]:
    values = (x,) if isinstance(x, int) else tuple(x)
    return values * n if len(values) == 1 else values


def _checked(
    input: TensorProxy, kernel: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil_mode: bool, n: int
) -> tuple[tuple[int, ...], ...]:
    """Kernel, stride, padding and dilation, one number for each dimension; NotImplementedError for what torch refuses.

    The call is then an opaque one, and torch says what is wrong.
    """
    kernel = _spread(kernel, n)
    stride = kernel if stride is None or stride == () or stride == [] else _spread(stride, n)
    windows = (kernel, stride, _spread(padding, n), _spread(dilation, n))
    if input.ndim not in (n + 1, n + 2) or any(len(x) != n for x in windows):
        raise NotImplementedError(f"pooling of {input.ndim} dimensions")
    if 0 in input.shape[-n - 1 :]:
        raise NotImplementedError("pooling of no elements")
    for size, k, s, p, d in zip(input.shape[-n:], *windows):
        if k <= 0 or s <= 0 or d <= 0 or not 0 <= p <= (d * (k - 1) + 1) // 2:
            raise NotImplementedError("pooling with windows that torch refuses")
        if window_prims.pooled_size(size, k, s, p, d, ceil_mode) < 1:
            raise NotImplementedError("pooling into no windows")
    return windows


def block_means(a: TensorProxy, sizes: Sequence[int]) -> TensorProxy:
    """The means of blocks that divide the last dimensions evenly into `sizes`; fusable."""
    n = len(sizes)
    shape = list(a.shape[:-n])
    for size, count in zip(a.shape[-n:], sizes):
        shape += [count, size // count]
    inner = tuple(len(shape) - 2 * n + 2 * i + 1 for i in range(n))
    out = clang.mean(prims.reshape(a, tuple(shape)), inner)
    return clang.laid_out(out, like=a if out.ndim == a.ndim else None)


def _max_pooling(n: int) -> None:
    def pooled(
        input: TensorProxy,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        windows = _checked(input, kernel_size, stride, padding, dilation, ceil_mode, n)
        values, indices = window_prims.max_pool(input, *windows, bool(ceil_mode))
        return (values, indices) if return_indices else values

    def with_indices(*args: Any, return_indices: bool = False, **kwargs: Any) -> Any:
        return pooled(*args, **kwargs, return_indices=True)

    def plain(
        input: TensorProxy,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        ceil_mode: bool = False,
    ) -> Any:
        return pooled(input, kernel_size, stride, padding, dilation, ceil_mode)

    pooled.__name__, with_indices.__name__ = f"max_pool{n}d", f"max_pool{n}d_with_indices"
    plain.__name__ = f"torch_max_pool{n}d"
    torchsymbol(f"nn.functional.max_pool{n}d")(pooled)
    torchsymbol(f"nn.functional.max_pool{n}d_with_indices")(with_indices)
    torchsymbol(f"max_pool{n}d")(plain)


def _avg_pooling(n: int) -> None:
    def pooled(
        input: TensorProxy,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> TensorProxy:
        kernel, stride, padding, _ = _checked(input, kernel_size, stride, padding, 1, ceil_mode, n)
        if divisor_override == 0 or dtypes.is_complex(input.dtype):
            raise NotImplementedError("avg_pool over a divisor of 0, or of complex numbers")
        even = kernel == stride and not any(padding) and not any(s % k for s, k in zip(input.shape[-n:], kernel))
        if even and divisor_override is None and dtypes.is_float(input.dtype):
            return block_means(input, [s // k for s, k in zip(input.shape[-n:], kernel)])
        return window_prims.avg_pool(
            input, kernel, stride, padding, bool(ceil_mode), bool(count_include_pad), divisor_override
        )

    pooled.__name__ = f"avg_pool{n}d"
    torchsymbol(f"nn.functional.avg_pool{n}d", *(("avg_pool1d",) if n == 1 else ()))(pooled)


def adaptive_sizes(input: TensorProxy, output_size: Any, n: int) -> tuple[int, ...]:
    sizes = _spread(output_size, n)
    if input.ndim not in (n + 1, n + 2) or len(sizes) != n or 0 in input.shape[-n - 1 :]:
        raise NotImplementedError(f"adaptive pooling of {list(input.shape)}")
    sizes = tuple(size if s is None else s for s, size in zip(sizes, input.shape[-n:]))
    if any(s <= 0 for s in sizes) or not dtypes.is_float(input.dtype):
        raise NotImplementedError(f"adaptive pooling of {input.dtype} to {sizes}")
    return sizes


def _adaptive_pooling(n: int) -> None:
    def mean(input: TensorProxy, output_size: Any) -> TensorProxy:
        sizes = adaptive_sizes(input, output_size, n)
        if not any(size % s for s, size in zip(sizes, input.shape[-n:])):
            return block_means(input, sizes)
        return window_prims.adaptive_avg_pool(input, sizes)

    def maximum(input: TensorProxy, output_size: Any, return_indices: bool = False) -> Any:
        values, indices = window_prims.adaptive_max_pool(input, adaptive_sizes(input, output_size, n))
        return (values, indices) if return_indices else values

    def with_indices(input: TensorProxy, output_size: Any, return_indices: bool = False) -> Any:
        return maximum(input, output_size, True)

    mean.__name__, maximum.__name__ = f"adaptive_avg_pool{n}d", f"adaptive_max_pool{n}d"
    with_indices.__name__ = f"adaptive_max_pool{n}d_with_indices"
    torchsymbol(f"nn.functional.adaptive_avg_pool{n}d", *(("adaptive_avg_pool1d",) if n == 1 else ()))(mean)
    torchsymbol(f"nn.functional.adaptive_max_pool{n}d")(maximum)
    torchsymbol(f"nn.functional.adaptive_max_pool{n}d_with_indices")(with_indices)


def _lp_pooling(n: int) -> None:
    def pooled(
        input: TensorProxy,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> TensorProxy:
        """The sum of powers of each window's elements, as the power 1 / norm_type"""
        kernel, stride, padding, _ = _checked(input, kernel_size, stride, 0, 1, ceil_mode, n)
        powers = pow_.meta(input, norm_type)
        out = window_prims.avg_pool(powers, kernel, stride, padding, bool(ceil_mode), True, None)
        size = clang.abs(out)
        positive = clang.sign(out) * clang.where(size <= 0, 0.0, size)
        return pow_.meta(positive * math.prod(kernel), 1.0 / norm_type)

    pooled.__name__ = f"lp_pool{n}d"
    torchsymbol(f"nn.functional.lp_pool{n}d")(pooled)


def _unpooling(n: int) -> None:
    def unpooled(
        input: TensorProxy,
        indices: TensorProxy,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> TensorProxy:
        """The inverse of max_pool: the maxima back in their places, 0 elsewhere"""
        kernel = _spread(kernel_size, n)
        stride = kernel if stride is None else _spread(stride, n)
        if input.ndim not in (n + 1, n + 2) or indices.shape != input.shape or indices.dtype is not torch.int64:
            raise NotImplementedError("max_unpool of tensors that do not fit")
        pads = _spread(padding, n)
        sizes = tuple((size - 1) * s - 2 * p + k for size, s, p, k in zip(input.shape[-n:], stride, pads, kernel))
        if output_size is not None:
            given = tuple(output_size)[-n:]
            if len(output_size) not in (n, input.ndim) or any(abs(g - x) >= s for g, x, s in zip(given, sizes, stride)):
                raise NotImplementedError(f"max_unpool to {output_size}")
            sizes = given
        if any(s <= 0 for s in sizes) or 0 in input.shape or (n == 2 and not input.is_contiguous):
            raise NotImplementedError("max_unpool to no elements, or of another layout")
        outer, zero = input.shape[:-n], clang.convert(0, input.dtype)
        empty = prims.full((*outer, math.prod(sizes)), zero, input.dtype, input.device)
        flat, at = (prims.reshape(x, (*outer, math.prod(input.shape[-n:]))) for x in (input, indices))
        return prims.reshape(prims.scatter(empty, len(outer), at, flat), (*outer, *sizes))

    unpooled.__name__ = f"max_unpool{n}d"
    torchsymbol(f"nn.functional.max_unpool{n}d")(unpooled)


for _n in (1, 2, 3):
    _max_pooling(_n)
    _avg_pooling(_n)
    _adaptive_pooling(_n)
    _lp_pooling(_n)
    _unpooling(_n)
