"""Shape operations of the PyTorch language. Views come down to view primitives or to `prims.reshape`."""

import math
import operator
from collections.abc import Sequence
from itertools import pairwise

import torch

from thunder import clang
from thunder.core import memory_prims, prims
from thunder.core.prims import view_strides
from thunder.core.proxies import TensorProxy
from thunder.torch.language import operations, sizes_of, torchsymbol
from thunder.torch.resampling import padded_by_index


@torchsymbol("Tensor.view")
def view(
    self: TensorProxy,
    *shape: int | Sequence[int] | torch.dtype,
    size: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
) -> TensorProxy:
    """The same memory under another shape, or as another dtype."""
    if dtype is not None or (shape and isinstance(shape[0], torch.dtype)):
        return _as_dtype(self, shape[0] if dtype is None else dtype)
    sizes = clang.infer_size(sizes_of(shape, size), self.numel)
    if view_strides(self.shape, self.strides, sizes) is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return prims.reshape(self, sizes)


def _as_dtype(self: TensorProxy, dtype: torch.dtype) -> TensorProxy:
    before, after = self.dtype.itemsize, dtype.itemsize
    fits = before == after or (
        self.ndim > 0
        and self.strides[-1] == 1
        and all(n * before % after == 0 for n in (self.shape[-1], *self.strides[:-1]))
    )
    if not fits or self.dtype.is_complex != dtype.is_complex:
        raise NotImplementedError(f"view of {self.dtype} as {dtype}")
    return memory_prims.bitcast(self, dtype)


@torchsymbol("Tensor.view_as")
def view_as(self: TensorProxy, other: TensorProxy) -> TensorProxy:
    return view.meta(self, other.shape)


@torchsymbol("Tensor.reshape", "reshape")
def reshape(input: TensorProxy, *sizes: int | Sequence[int], shape: Sequence[int] | None = None) -> TensorProxy:
    return clang.reshape(input, sizes_of(sizes, shape))


@torchsymbol("Tensor.reshape_as")
def reshape_as(self: TensorProxy, other: TensorProxy) -> TensorProxy:
    return clang.reshape(self, other.shape)


@torchsymbol()
def flatten(input: TensorProxy, start_dim: int = 0, end_dim: int = -1) -> TensorProxy:
    return clang.flatten(input, start_dim, end_dim)


@torchsymbol("ravel", "Tensor.ravel")
def ravel(input: TensorProxy) -> TensorProxy:
    return prims.reshape(input if input.is_contiguous else prims.contiguous(input), (input.numel,))


@torchsymbol()
def unflatten(input: TensorProxy, dim: int, sizes: Sequence[int]) -> TensorProxy:
    if isinstance(dim, str):
        raise NotImplementedError("unflatten of named dimensions")
    dim = clang.canonical_dim(dim, input.ndim)
    try:
        inner = clang.infer_size(sizes_of((sizes,)), input.shape[dim])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({input.shape[dim]}) in the input tensor"
        ) from None
    return prims.reshape(input, (*input.shape[:dim], *inner, *input.shape[dim + 1 :]))


@torchsymbol("transpose", "Tensor.transpose", "swapaxes", "Tensor.swapaxes", "swapdims", "Tensor.swapdims")
def transpose(input: TensorProxy, dim0: int, dim1: int) -> TensorProxy:
    return clang.transpose(input, dim0, dim1)


@torchsymbol("t", "Tensor.t")
def t(input: TensorProxy) -> TensorProxy:
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return prims.permute(input, tuple(reversed(range(input.ndim))))


@torchsymbol("Tensor.T.__get__")
def T(self: TensorProxy) -> TensorProxy:
    """`self.T`"""
    return prims.permute(self, tuple(reversed(range(self.ndim))))


@torchsymbol("Tensor.mT.__get__", "adjoint", "Tensor.adjoint")
def mT(self: TensorProxy) -> TensorProxy:
    """`self.mT`: the last two dimensions swapped."""
    if self.ndim == 1:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    if self.dtype.is_complex:
        raise NotImplementedError("mT of complex tensors")
    if self.ndim == 0:
        return prims.permute(self, ())
    return clang.transpose(self, -2, -1)


@torchsymbol("Tensor.mH.__get__")
def mH(self: TensorProxy) -> TensorProxy:
    """`self.mH`: the last two dimensions swapped, conjugated."""
    return mT.meta(self)


@torchsymbol("Tensor.H.__get__")
def H(self: TensorProxy) -> TensorProxy:
    """`self.H`, of a matrix"""
    if self.ndim != 2:
        raise NotImplementedError(f"H of {self.ndim} dimensions")
    return mT.meta(self)


@torchsymbol("Tensor.permute", "permute")
def permute(input: TensorProxy, *order: int | Sequence[int], dims: Sequence[int] | None = None) -> TensorProxy:
    dims = sizes_of(order, dims)
    if len(dims) != input.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(dims)}"
        )
    if len({clang.canonical_dim(d, input.ndim) for d in dims}) != len(dims):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return clang.permute(input, dims)


@torchsymbol("movedim", "Tensor.movedim", "moveaxis", "Tensor.moveaxis")
def movedim(input: TensorProxy, source: int | Sequence[int], destination: int | Sequence[int]) -> TensorProxy:
    source = [clang.canonical_dim(d, input.ndim) for d in sizes_of((_tuple(source),))]
    destination = [clang.canonical_dim(d, input.ndim) for d in sizes_of((_tuple(destination),))]
    if len(source) != len(destination):
        raise RuntimeError("movedim: Invalid source or destination dims: they have different lengths")
    for name, dims in (("source", source), ("destination", destination)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({dims})")
    rest = iter(d for d in range(input.ndim) if d not in source)
    at = dict(zip(destination, source))
    return prims.permute(input, tuple(at[d] if d in at else next(rest) for d in range(input.ndim)))


def _tuple(x: int | Sequence[int]) -> tuple[int, ...]:
    return (x,) if isinstance(x, int) else tuple(x)


@torchsymbol("Tensor.expand")
def expand(
    self: TensorProxy, *sizes: int | Sequence[int], size: Sequence[int] | None = None, implicit: bool = False
) -> TensorProxy:
    return clang.expand(self, sizes_of(sizes, size))


@torchsymbol("Tensor.expand_as")
def expand_as(self: TensorProxy, other: TensorProxy) -> TensorProxy:
    return clang.expand(self, other.shape)


@torchsymbol("broadcast_to", "Tensor.broadcast_to")
def broadcast_to(input: TensorProxy, size: Sequence[int]) -> TensorProxy:
    return clang.expand(input, sizes_of((size,)))


@torchsymbol("broadcast_tensors", "functional.broadcast_tensors")
def broadcast_tensors(*tensors: TensorProxy) -> tuple[TensorProxy, ...]:
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tensors[0]
    shape = clang.broadcast_shapes(*(x.shape for x in tensors))
    return tuple(clang.expand(x, shape) for x in tensors)


@torchsymbol("squeeze", "Tensor.squeeze")
def squeeze(input: TensorProxy, dim: int | Sequence[int] | None = None) -> TensorProxy:
    if dim is None:
        dims = range(input.ndim)
    else:
        dims = [clang.canonical_dim(d, input.ndim) for d in _tuple(dim)]
    return clang.squeeze(input, dims)


@torchsymbol("unsqueeze", "Tensor.unsqueeze")
def unsqueeze(input: TensorProxy, dim: int) -> TensorProxy:
    return clang.unsqueeze(input, dim)


@torchsymbol("narrow", "Tensor.narrow")
def narrow(input: TensorProxy, dim: int, start: int, length: int) -> TensorProxy:
    if not isinstance(start, int):
        raise NotImplementedError("narrow from a tensor")
    if input.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    dim = clang.canonical_dim(dim, input.ndim)
    size = input.shape[dim]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if not 0 <= start <= size - length:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return clang.slice_dim(input, dim, start, start + length)


@torchsymbol("select", "Tensor.select")
def select(input: TensorProxy, dim: int, index: int) -> TensorProxy:
    if not isinstance(index, int):
        raise NotImplementedError("select with a tensor")
    if input.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = clang.canonical_dim(dim, input.ndim)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    return clang.select(input, dim, index % size)


@torchsymbol("unbind", "Tensor.unbind")
def unbind(input: TensorProxy, dim: int = 0) -> tuple[TensorProxy, ...]:
    if input.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = clang.canonical_dim(dim, input.ndim)
    return tuple(clang.select(input, dim, i) for i in range(input.shape[dim]))


@torchsymbol("split", "Tensor.split", "functional.split", "split_with_sizes", "Tensor.split_with_sizes")
def split(tensor: TensorProxy, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[TensorProxy, ...]:
    """Views of `tensor` along `dim`, each of one size (the last may be smaller) or of the sizes given."""
    dim = clang.canonical_dim(dim, tensor.ndim)
    size = tensor.shape[dim]
    if isinstance(split_size_or_sections, int):
        step = split_size_or_sections
        if step < 0 or (step == 0 and size != 0):
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
        sections = [min(step, size - at) for at in range(0, size, step)] if size else [0]
    else:
        sections = [operator.index(s) for s in split_size_or_sections]
    if sum(sections) != size or any(s < 0 for s in sections):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={sections}"
        )
    ends = [sum(sections[: i + 1]) for i in range(len(sections))]
    return tuple(clang.slice_dim(tensor, dim, end - length, end) for end, length in zip(ends, sections))


@torchsymbol("chunk", "Tensor.chunk")
def chunk(input: TensorProxy, chunks: int, dim: int = 0) -> tuple[TensorProxy, ...]:
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = input.shape[clang.canonical_dim(dim, input.ndim)]
    step = -(-size // chunks)
    return split.meta(input, step if size else [0] * chunks, dim)


@torchsymbol("tensor_split", "Tensor.tensor_split")
def tensor_split(input: TensorProxy, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[TensorProxy, ...]:
    """Views of `input` along `dim`, cut at the indices given or into that many parts as equal as can be."""
    if isinstance(indices_or_sections, TensorProxy):
        raise NotImplementedError("tensor_split at the values of a tensor")
    dim = clang.canonical_dim(dim, input.ndim)
    size = input.shape[dim]
    if isinstance(indices_or_sections, int):
        parts = indices_or_sections
        if parts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {parts}")
        cuts = [i * (size // parts) + min(i, size % parts) for i in range(parts + 1)]
    else:
        inner = [slice(i, None).indices(size)[0] for i in indices_or_sections]
        cuts = [0, *inner, size]
    return tuple(clang.slice_dim(input, dim, b, max(b, e)) for b, e in pairwise(cuts))


@torchsymbol("Tensor.repeat")
def repeat(self: TensorProxy, *counts: int | Sequence[int], repeats: Sequence[int] | None = None) -> TensorProxy:
    """Copies of `self` side by side, `repeats[d]` along dimension d."""
    repeats = sizes_of(counts, repeats)
    new = len(repeats) - self.ndim
    if new < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    sizes = (1,) * new + self.shape
    # Dimension d of the result is (repeats[d], size d) made one.
    shape = tuple(n for pair in zip(repeats, sizes) for n in pair)
    dims = tuple(2 * (d + new) + 1 for d in range(self.ndim))
    spread = prims.broadcast_in_dim(self, shape, dims)
    return _reshaped_copy(spread, tuple(r * s for r, s in zip(repeats, sizes)))


def _reshaped_copy(a: TensorProxy, shape: tuple[int, ...]) -> TensorProxy:
    """`a` under another shape in memory of its own, also where a view would do."""
    if view_strides(a.shape, a.strides, shape) is not None:
        a = prims.contiguous(a)
    return prims.reshape(a, shape)


@torchsymbol("Tensor.tile", "tile")
def tile(input: TensorProxy, *counts: int | Sequence[int], dims: Sequence[int] | None = None) -> TensorProxy:
    dims = sizes_of(counts, dims)
    return repeat.meta(input, (1,) * (input.ndim - len(dims)) + dims)


@torchsymbol("repeat_interleave", "Tensor.repeat_interleave")
def repeat_interleave(
    input: TensorProxy, repeats: int, dim: int | None = None, *, output_size: int | None = None
) -> TensorProxy:
    """Each element (or slice along `dim`) `repeats` times in a row."""
    if not isinstance(repeats, int):
        raise NotImplementedError("repeat_interleave with a tensor of repeats")
    if dim is None:
        input, dim = prims.reshape(input, (input.numel,)), 0
    dim = clang.canonical_dim(dim, input.ndim)
    spread = clang.unsqueeze(input, dim + 1)
    spread = clang.expand_to(spread, (*input.shape[: dim + 1], repeats, *input.shape[dim + 1 :]))
    return _reshaped_copy(spread, (*input.shape[:dim], input.shape[dim] * repeats, *input.shape[dim + 1 :]))


@torchsymbol("Tensor.flip", "flip")
def flip(input: TensorProxy, *given: int | Sequence[int], dims: Sequence[int] | None = None) -> TensorProxy:
    dims = sizes_of(given, dims)
    return prims.flip(input, clang.canonical_dims(dims, input.ndim) if dims else ())


@torchsymbol("roll", "Tensor.roll")
def roll(input: TensorProxy, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> TensorProxy:
    """Elements moved by `shifts` along `dims`, those that fall off the end put in front."""
    shifts = _tuple(shifts)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if dims is None or dims == ():
        flat = prims.reshape(input, (input.numel,))
        return prims.reshape(_roll_one(flat, shifts[0], 0), input.shape)
    dims = _tuple(dims)
    if len(dims) != len(shifts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    for shift, dim in zip(shifts, dims):
        input = _roll_one(input, shift, clang.canonical_dim(dim, input.ndim))
    return input


def _roll_one(a: TensorProxy, shift: int, dim: int) -> TensorProxy:
    size = a.shape[dim]
    cut = -shift % size if size else 0
    return prims.cat([clang.slice_dim(a, dim, cut, size), clang.slice_dim(a, dim, 0, cut)], dim)


@torchsymbol("nn.functional.pad")
def pad(input: TensorProxy, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> TensorProxy:
    """`pad` holds (before, behind) for the last dimension, then for the one before it, and so on."""
    if mode != "constant":
        return padded_by_index(input, pad, mode)
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise RuntimeError(f"Padding length must be even and at most twice the number of dimensions, got {len(pad)}")
    low, high = [0] * input.ndim, [0] * input.ndim
    for i in range(len(pad) // 2):
        low[-1 - i], high[-1 - i] = pad[2 * i], pad[2 * i + 1]
    if any(size + before + behind < 0 for size, before, behind in zip(input.shape, low, high)):
        raise RuntimeError(f"The input size {list(input.shape)}, plus negative padding {list(pad)}, is less than zero")
    return prims.pad(input, clang.convert(value or 0, input.dtype), tuple(low), tuple(high))


@torchsymbol("constant_pad_nd")
def constant_pad_nd(input: TensorProxy, pad: Sequence[int], value: float = 0) -> TensorProxy:
    """`pad` with a constant."""
    return operations["pad"].meta(input, pad, "constant", value)


def _below_diagonal(input: TensorProxy, diagonal: int) -> TensorProxy:
    """A mask of the last two dimensions: column - row <= diagonal."""
    rows, columns = input.shape[-2:]
    row = prims.iota(rows, 0, 1, torch.int64, input.device)
    column = prims.iota(columns, -diagonal, 1, torch.int64, input.device)
    return clang.le(column, clang.unsqueeze(row, 1))


def _refuse_vectors(name: str, input: TensorProxy) -> None:
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


@torchsymbol("tril", "Tensor.tril")
def tril(input: TensorProxy, diagonal: int = 0) -> TensorProxy:
    _refuse_vectors("tril", input)
    return clang.laid_out(clang.where(_below_diagonal(input, diagonal), input, clang.convert(0, input.dtype)))


@torchsymbol("triu", "Tensor.triu")
def triu(input: TensorProxy, diagonal: int = 0) -> TensorProxy:
    _refuse_vectors("triu", input)
    return clang.laid_out(clang.where(_below_diagonal(input, diagonal - 1), clang.convert(0, input.dtype), input))


@torchsymbol("meshgrid", "functional.meshgrid")
def meshgrid(*tensors: TensorProxy, indexing: str | None = None) -> tuple[TensorProxy, ...]:
    """Each vector spread along its own dimension of a common grid."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        tensors = tuple(tensors[0])
    if indexing not in (None, "ij"):
        raise NotImplementedError(f"meshgrid with indexing={indexing!r}")
    shape = tuple(math.prod(x.shape) for x in tensors)
    return tuple(prims.broadcast_in_dim(prims.reshape(x, (x.numel,)), shape, (d,)) for d, x in enumerate(tensors))
