"""Sliding blocks of images as columns of a matrix, and such columns added up to images, in the PyTorch language."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch

from thunder import clang
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.torch.language import torchsymbol

Sizes = int | Sequence[int]


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Blocks of an image: each attribute has one number for the rows and one for the columns."""

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many blocks there are along each dimension."""
        sizes = zip(self.image, self.kernel, self.dilation, self.padding, self.stride)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in sizes)

    def indices(self, padded: TensorProxy) -> tuple[TensorProxy | None, ...]:
        """Where in the padded image the elements of blocks are: (row and column in a block, row and column of it)."""
        tensors = {}
        for d in range(2):
            inside = prims.iota(self.kernel[d], 0, self.dilation[d], torch.int64, padded.device)
            starts = prims.iota(self.counts[d], 0, self.stride[d], torch.int64, padded.device)
            at = clang.unsqueeze(inside, 1) + clang.unsqueeze(starts, 0)
            shape = (self.kernel[0], 1, self.counts[0], 1) if d == 0 else (1, self.kernel[1], 1, self.counts[1])
            tensors[2 + d] = prims.reshape(at, shape)
        return clang.common_indices(padded, tensors)


def _blocks(image: Sequence[int], *sizes: Sizes) -> _Blocks:
    """NotImplementedError for what torch refuses: the call is then an opaque one, and torch says what is wrong."""
    blocks = _Blocks(tuple(image), *((x, x) if isinstance(x, int) else tuple(x) for x in sizes))
    each = (blocks.kernel, blocks.dilation, blocks.padding, blocks.stride)
    fits = all(len(x) == 2 for x in (blocks.image, *each)) and min(*blocks.kernel, *blocks.dilation, *blocks.stride) > 0
    if not fits or min(blocks.padding) < 0 or min(blocks.counts) < 1:
        raise NotImplementedError("blocks of an image that torch refuses")
    return blocks


@torchsymbol("nn.functional.unfold")
def im2col(
    input: TensorProxy, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> TensorProxy:
    """The blocks of images (N, C, H, W) or of one (C, H, W) as columns: (N, C * elements of a block, blocks)."""
    if input.ndim not in (3, 4) or input.numel == 0:
        raise NotImplementedError(f"unfold of {input.ndim} dimensions")
    blocks = _blocks(input.shape[-2:], kernel_size, dilation, padding, stride)
    images = input if input.ndim == 4 else clang.unsqueeze(input, 0)
    if any(blocks.padding):
        images = prims.pad(images, clang.convert(0, input.dtype), (0, 0, *blocks.padding), (0, 0, *blocks.padding))
    columns = prims.index(images, blocks.indices(images))
    return prims.reshape(columns, (*input.shape[:-3], input.shape[-3] * prod(blocks.kernel), prod(blocks.counts)))


@torchsymbol("nn.functional.fold")
def col2im(
    input: TensorProxy,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> TensorProxy:
    """Images whose blocks are the columns of `input`; where blocks overlap, they are added up."""
    image = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
    blocks = _blocks(image, kernel_size, dilation, padding, stride)
    size = prod(blocks.kernel)
    if input.ndim not in (2, 3) or input.numel == 0 or input.shape[-2] % size or input.shape[-1] != prod(blocks.counts):
        raise NotImplementedError("fold of columns that do not fit")
    batch, channels = input.shape[:-2], input.shape[-2] // size
    columns = prims.reshape(input, (prod(batch), channels, *blocks.kernel, *blocks.counts))
    padded = tuple(n + 2 * p for n, p in zip(image, blocks.padding))
    zeros = prims.full((prod(batch), channels, *padded), clang.convert(0, input.dtype), input.dtype, input.device)
    images = prims.index_put(zeros, blocks.indices(zeros), columns, True)
    cropped = (0, 0, *(-p for p in blocks.padding))
    images = prims.pad(images, clang.convert(0, input.dtype), cropped, cropped) if any(blocks.padding) else images
    return prims.reshape(images, (*batch, channels, *image))
