"""The primitives: what every operation comes down to, each with the rule that infers its output's metadata.

The rules are strict: shapes and dtypes already agree (`thunder.clang` broadcasts and promotes). Where an elementwise
primitive takes several tensors they have one shape; Python numbers may stand for tensors. No dimension is negative.
What else a primitive means (how to run it, differentiate it, translate it) is in the tables of those transformations.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder.core import dtypes
from thunder.core.printing import statement_rules
from thunder.core.proxies import (
    NumberProxy,
    TensorProxy,
    channels_last_order,
    contiguous_strides,
    elementwise_strides,
    is_dense,
    strides_in_order,
)
from thunder.core.symbol import BoundSymbol, Symbol, Tag
from thunder.core.trace import number, tensor

Number = bool | int | float | complex
Dims = Sequence[int]

all_prims: dict[str, Symbol] = {}


def prim(*tags: Tag) -> Callable[[Callable], Symbol]:
    """Makes the decorated metadata rule a primitive of the same name (a trailing `_prim` is dropped)."""

    def decorate(rule: Callable) -> Symbol:
        name = rule.__name__.removesuffix("_prim")
        all_prims[name] = Symbol(name, "prims", rule, is_prim=True, tags=tags)
        return all_prims[name]

    return decorate


def __getattr__(name: str) -> Symbol:
    """`prims.sum` is `sum_prim`: traces print the name, this file keeps Python's own."""
    try:
        return all_prims[name]
    except KeyError:
        raise AttributeError(f"there is no primitive {name!r}") from None


class MetadataError(ValueError):
    """A primitive was given arguments that do not fit together: a mistake in the operation that called it."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise MetadataError(message)


# ---- elementwise ----


def _elementwise_output(name: str, args: tuple, dtype: torch.dtype | None = None) -> TensorProxy:
    """A tensor of the arguments' common shape; `dtype` is the output's where it is not the arguments'."""
    tensors = [x for x in args if isinstance(x, TensorProxy)]
    require(bool(tensors), f"prims.{name} needs a tensor")
    first = tensors[0]
    for x in tensors[1:]:
        require(x.shape == first.shape, f"prims.{name}: shapes {first.shape} and {x.shape} differ")
        require(x.dtype == first.dtype, f"prims.{name}: dtypes {first.dtype} and {x.dtype} differ")
    on = next((x for x in tensors if x.ndim or x.device.type != "cpu"), first)
    return tensor(first, dtype=dtype, device=on.device, strides=elementwise_strides(tensors, first.shape))


elementwise: set[Symbol] = set()


def _elementwise(name: str, output_dtype: Callable[[torch.dtype], torch.dtype] | None = None) -> Symbol:
    def rule(*args: TensorProxy | Number) -> TensorProxy:
        dtype = None
        if output_dtype is not None:
            dtype = output_dtype(next(x.dtype for x in args if isinstance(x, TensorProxy)))
        return _elementwise_output(name, args, dtype)

    rule.__name__ = name
    symbol = prim()(rule)
    elementwise.add(symbol)
    return symbol


def _to_bool(_: torch.dtype) -> torch.dtype:
    return torch.bool


abs = _elementwise("abs", dtypes.corresponding_real)
acos = _elementwise("acos")
acosh = _elementwise("acosh")
asin = _elementwise("asin")
asinh = _elementwise("asinh")
atan = _elementwise("atan")
atanh = _elementwise("atanh")
bitwise_not = _elementwise("bitwise_not")
ceil = _elementwise("ceil")
conj_physical = _elementwise("conj_physical")  # complex numbers with the imaginary part negated, computed
cos = _elementwise("cos")
cosh = _elementwise("cosh")
erf = _elementwise("erf")
erfc = _elementwise("erfc")
erfinv = _elementwise("erfinv")
exp = _elementwise("exp")
exp2 = _elementwise("exp2")
expm1 = _elementwise("expm1")
floor = _elementwise("floor")
isfinite = _elementwise("isfinite", _to_bool)
isinf = _elementwise("isinf", _to_bool)
isnan = _elementwise("isnan", _to_bool)
lgamma = _elementwise("lgamma")
log = _elementwise("log")
log10 = _elementwise("log10")
log1p = _elementwise("log1p")
log2 = _elementwise("log2")
logical_not = _elementwise("logical_not", _to_bool)
neg = _elementwise("neg")
reciprocal = _elementwise("reciprocal")
round = _elementwise("round")
rsqrt = _elementwise("rsqrt")
sigmoid = _elementwise("sigmoid")
sign = _elementwise("sign")
signbit = _elementwise("signbit", _to_bool)
sin = _elementwise("sin")
sinh = _elementwise("sinh")
sqrt = _elementwise("sqrt")
tan = _elementwise("tan")
tanh = _elementwise("tanh")
trunc = _elementwise("trunc")

# Special functions that only torch's kernels compute.
_SPECIAL_UNARY = """airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma erfcx i0 i0e i1 i1e log_ndtr
    modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtri scaled_modified_bessel_k0
    scaled_modified_bessel_k1 spherical_bessel_j0"""
_SPECIAL_BINARY = """chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
    hermite_polynomial_h hermite_polynomial_he igamma igammac laguerre_polynomial_l legendre_polynomial_p
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
    shifted_chebyshev_polynomial_w zeta"""
special_unary = {name: _elementwise(name) for name in _SPECIAL_UNARY.split()}
special_functions = special_unary | {name: _elementwise(name) for name in _SPECIAL_BINARY.split()}


@prim()
def polygamma(n: int, a: TensorProxy) -> TensorProxy:
    """The derivative of digamma of order `n`."""
    return _elementwise_output("polygamma", (a,))


add = _elementwise("add")
atan2 = _elementwise("atan2")
bitwise_and = _elementwise("bitwise_and")
bitwise_left_shift = _elementwise("bitwise_left_shift")
bitwise_or = _elementwise("bitwise_or")
bitwise_right_shift = _elementwise("bitwise_right_shift")
bitwise_xor = _elementwise("bitwise_xor")
div = _elementwise("div")  # true division; the operands are floating point or complex
eq = _elementwise("eq", _to_bool)
floor_divide = _elementwise("floor_divide")  # rounds towards minus infinity
fmod = _elementwise("fmod")
gcd = _elementwise("gcd")
ge = _elementwise("ge", _to_bool)
gt = _elementwise("gt", _to_bool)
hypot = _elementwise("hypot")
le = _elementwise("le", _to_bool)
lt = _elementwise("lt", _to_bool)
maximum = _elementwise("maximum")  # NaN wins, as in torch
minimum = _elementwise("minimum")
mul = _elementwise("mul")
ne = _elementwise("ne", _to_bool)
nextafter = _elementwise("nextafter")
pow = _elementwise("pow")
remainder = _elementwise("remainder")  # the sign of the divisor, as Python's %
sub = _elementwise("sub")


@prim()
def where(condition: TensorProxy, a: TensorProxy | Number, b: TensorProxy | Number) -> TensorProxy:
    """`a` where `condition` (bool) holds, else `b`; at least one of them a tensor."""
    require(condition.dtype is torch.bool, f"prims.where: the condition is {condition.dtype}, not bool")
    values = [x for x in (a, b) if isinstance(x, TensorProxy)]
    require(bool(values), "prims.where needs a tensor to choose from")
    out = _elementwise_output("where", tuple(values))
    require(condition.shape == out.shape, f"prims.where: shapes {condition.shape} and {out.shape} differ")
    out.strides = elementwise_strides([condition, *values], out.shape)
    if condition.device.type != "cpu":
        out.device = condition.device
    return out


@prim()
def complex_prim(real: TensorProxy, imag: TensorProxy) -> TensorProxy:
    """real + imag * 1j"""
    return _elementwise_output("complex", (real, imag), dtypes.corresponding_complex(real.dtype))


# ---- conversion and copies ----


def preserved_strides(a: TensorProxy) -> tuple[int, ...]:
    """The strides of a copy of `a` that keeps its layout, as torch's preserve_format."""
    return a.strides if is_dense(a.shape, a.strides) else elementwise_strides([a], a.shape)


@prim()
def convert_element_type(a: TensorProxy, dtype: torch.dtype) -> TensorProxy:
    return tensor(a, dtype=dtype, strides=preserved_strides(a))


@prim()
def device_put(a: TensorProxy, device: torch.device) -> TensorProxy:
    return tensor(a, device=device, strides=preserved_strides(a))


@prim()
def clone(a: TensorProxy) -> TensorProxy:
    """A copy that keeps the layout."""
    return tensor(a, strides=preserved_strides(a))


@prim()
def contiguous(a: TensorProxy) -> TensorProxy:
    """A row-major copy."""
    return tensor(a)


# ---- shape ----


@prim(Tag.VIEW, Tag.SHAPE_ONLY)
def broadcast_in_dim(a: TensorProxy, shape: Dims, dims: Dims) -> TensorProxy:
    """Dimension i of `a` becomes dimension dims[i] of the output; sizes of 1 and new dimensions are repeated."""
    require(len(dims) == a.ndim, f"prims.broadcast_in_dim: {len(dims)} dims for a tensor of {a.ndim}")
    strides = [0] * len(shape)
    for i, d in enumerate(dims):
        require(a.shape[i] in (1, shape[d]), f"prims.broadcast_in_dim: {a.shape} does not broadcast to {tuple(shape)}")
        strides[d] = a.strides[i] if a.shape[i] == shape[d] else 0
    for d in set(range(len(shape))) - set(dims):
        if shape[d] == 1:  # as unsqueeze gives it
            later = [i for i, target in enumerate(dims) if target > d]
            strides[d] = a.shape[later[0]] * a.strides[later[0]] if later else 1
    return tensor(a, shape=shape, strides=strides)


@prim(Tag.SHAPE_ONLY)
def reshape(a: TensorProxy, shape: Dims) -> TensorProxy:
    """The elements in row-major order under another shape: a view where the layout allows one, else a copy."""
    require(
        math.prod(shape) == a.numel,
        f"prims.reshape: {a.shape} has {a.numel} elements, {tuple(shape)} {math.prod(shape)}",
    )
    return tensor(a, shape=shape, strides=view_strides(a.shape, a.strides, shape))


def view_strides(shape: Dims, strides: Dims, new_shape: Dims) -> tuple[int, ...] | None:
    """The strides under which the same memory has `new_shape`, or None if it needs a copy."""
    if math.prod(shape) == 0:
        return tuple(strides) if tuple(shape) == tuple(new_shape) else contiguous_strides(new_shape)
    result = [0] * len(new_shape)
    target = len(new_shape) - 1
    chunk_stride = strides[-1] if strides else 1
    in_chunk = filled = 1
    for d in range(len(shape) - 1, -1, -1):
        in_chunk *= shape[d]
        ends_chunk = d == 0 or (shape[d - 1] != 1 and strides[d - 1] != in_chunk * chunk_stride)
        if not ends_chunk:
            continue
        while target >= 0 and (filled < in_chunk or new_shape[target] == 1):
            result[target] = filled * chunk_stride
            filled *= new_shape[target]
            target -= 1
        if filled != in_chunk:
            return None
        if d > 0:
            chunk_stride = strides[d - 1]
            in_chunk = filled = 1
    if not shape:
        while target >= 0:
            result[target] = 1
            target -= 1
    return tuple(result) if target < 0 else None


@prim(Tag.VIEW, Tag.SHAPE_ONLY)
def permute(a: TensorProxy, dims: Dims) -> TensorProxy:
    require(sorted(dims) == list(range(a.ndim)), f"prims.permute: {tuple(dims)} is no order of {a.ndim} dimensions")
    return tensor(a, shape=[a.shape[d] for d in dims], strides=[a.strides[d] for d in dims])


@prim(Tag.VIEW, Tag.SHAPE_ONLY)
def squeeze(a: TensorProxy, dims: Dims) -> TensorProxy:
    """Without the dimensions `dims`, each of size 1."""
    require(all(a.shape[d] == 1 for d in dims), f"prims.squeeze: dimensions {tuple(dims)} of {a.shape} are not all 1")
    kept = [d for d in range(a.ndim) if d not in dims]
    return tensor(a, shape=[a.shape[d] for d in kept], strides=[a.strides[d] for d in kept])


@prim(Tag.VIEW, Tag.SHAPE_ONLY)
def slice_prim(a: TensorProxy, starts: Dims, ends: Dims, steps: Dims) -> TensorProxy:
    """`a[starts[0]:ends[0]:steps[0], ...]` with 0 <= start <= end <= size and step >= 1."""
    shape = [max(0, -(-(e - b) // s)) for b, e, s in zip(starts, ends, steps)]
    return tensor(a, shape=shape, strides=[stride * step for stride, step in zip(a.strides, steps)])


@prim(Tag.VIEW, Tag.SHAPE_ONLY)
def diagonal(a: TensorProxy, offset: int, dim1: int, dim2: int) -> TensorProxy:
    """The elements at (i, i + offset) of two dimensions, as the last dimension of a view."""
    length = min(a.shape[dim1] - max(-offset, 0), a.shape[dim2] - max(offset, 0))
    kept = [d for d in range(a.ndim) if d not in (dim1, dim2)]
    strides = (*(a.strides[d] for d in kept), a.strides[dim1] + a.strides[dim2])
    return tensor(a, shape=(*(a.shape[d] for d in kept), max(length, 0)), strides=strides)


@prim(Tag.VIEW)
def view_as_real(a: TensorProxy) -> TensorProxy:
    """The real and the imaginary parts of complex numbers as a last dimension of 2."""
    strides = (*(2 * s for s in a.strides), 1)
    return tensor(a, shape=(*a.shape, 2), dtype=dtypes.corresponding_real(a.dtype), strides=strides)


@prim(Tag.VIEW)
def real(a: TensorProxy) -> TensorProxy:
    """The real parts of complex numbers."""
    return tensor(a, dtype=dtypes.corresponding_real(a.dtype), strides=[2 * s for s in a.strides])


@prim(Tag.VIEW)
def imag(a: TensorProxy) -> TensorProxy:
    """The imaginary parts of complex numbers."""
    return tensor(a, dtype=dtypes.corresponding_real(a.dtype), strides=[2 * s for s in a.strides])


@prim(Tag.VIEW)
def view_as_complex(a: TensorProxy) -> TensorProxy:
    """The complex numbers whose parts are the last dimension, which is 2 and has the stride 1."""
    strides = tuple(s // 2 for s in a.strides[:-1])
    return tensor(a, shape=a.shape[:-1], dtype=dtypes.corresponding_complex(a.dtype), strides=strides)


@prim(Tag.VIEW, Tag.SHAPE_ONLY)
def detach(a: TensorProxy) -> TensorProxy:
    """`a` without its history: differentiation stops here."""
    return tensor(a, strides=a.strides)


@prim(Tag.SHAPE_ONLY)
def graft(a: TensorProxy, onto: TensorProxy) -> TensorProxy:
    """The values of `a` with the history of `onto`: gradients pass to `onto` as if it were that."""
    return tensor(a, strides=a.strides)


@prim(Tag.SHAPE_ONLY)
def overwrite(a: TensorProxy, old: TensorProxy) -> TensorProxy:
    """The values of `a`, written over all of `old`: gradients pass to `a`, and those of `old` are zeros, not none."""
    return tensor(a, strides=a.strides)


@prim(Tag.SHAPE_ONLY)
def cat(tensors: Sequence[TensorProxy], dim: int) -> TensorProxy:
    first = tensors[0]
    for x in tensors[1:]:
        same = x.ndim == first.ndim and all(p == q for d, (p, q) in enumerate(zip(x.shape, first.shape)) if d != dim)
        require(same, f"prims.cat: shapes {first.shape} and {x.shape} differ outside dimension {dim}")
    shape = list(first.shape)
    shape[dim] = sum(x.shape[dim] for x in tensors)
    layouts = {channels_last_order(x) for x in tensors}  # torch keeps a layout that all have
    order = layouts.pop() if len(layouts) == 1 else None
    return tensor(first, shape=shape, strides=order and strides_in_order(shape, order))


@prim(Tag.SHAPE_ONLY)
def flip(a: TensorProxy, dims: Dims) -> TensorProxy:
    return tensor(a, strides=preserved_strides(a))


@prim(Tag.SHAPE_ONLY)
def pad(a: TensorProxy, value: Number, low: Dims, high: Dims) -> TensorProxy:
    """With `low[d]` elements of `value` before and `high[d]` behind in each dimension; negative numbers crop."""
    return tensor(a, shape=[size + before + behind for size, before, behind in zip(a.shape, low, high)])


# ---- indexing ----


@prim(Tag.VIEW, Tag.SHAPE_ONLY)
def select(a: TensorProxy, index: TensorProxy, dim: int) -> TensorProxy:
    """The slice of `a` along `dim` that the 0-dimensional integer `index` names."""
    kept = [d for d in range(a.ndim) if d != dim]
    return tensor(a, shape=[a.shape[d] for d in kept], strides=tuple(a.strides[d] for d in kept))


@prim()
def take(a: TensorProxy, index: TensorProxy, dim: int) -> TensorProxy:
    """The slices of `a` along `dim` that the 0- or 1-dimensional integer `index` names, in its order."""
    return tensor(a, shape=(*a.shape[:dim], *index.shape, *a.shape[dim + 1 :]))


@prim()
def index(a: TensorProxy, indices: Sequence[TensorProxy | None]) -> TensorProxy:
    """`a[indices]` for integer tensors of one shape, and None for a dimension taken whole.

    The indices' dimensions stand where the first index stands if the indices are neighbours, else in front.
    """
    at = [d for d, x in enumerate(indices) if x is not None]
    chosen = indices[at[0]].shape
    require(all(indices[d].shape == chosen for d in at), "prims.index: the shapes of the indices differ")
    kept = [size for d, size in enumerate(a.shape) if d not in at]
    front = at[0] if at[-1] - at[0] == len(at) - 1 else 0
    return tensor(a, shape=(*kept[:front], *chosen, *kept[front:]))


@prim()
def gather(a: TensorProxy, dim: int, index: TensorProxy) -> TensorProxy:
    """out[i][j] = a[index[i][j]][j] for dim 0, and so on."""
    return tensor(a, shape=index.shape)


@prim()
def scatter(a: TensorProxy, dim: int, index: TensorProxy, value: TensorProxy | Number) -> TensorProxy:
    """A copy of `a` with out[index[i][j]][j] = value[i][j] for dim 0, and so on."""
    return tensor(a)


@prim()
def scatter_add(a: TensorProxy, dim: int, index: TensorProxy, value: TensorProxy) -> TensorProxy:
    return tensor(a)


@prim()
def scatter_reduce(
    a: TensorProxy, dim: int, index: TensorProxy, value: TensorProxy, reduce: str, include_self: bool
) -> TensorProxy:
    """As scatter_add, with the elements that meet reduced by sum, prod, mean, amax or amin."""
    return tensor(a)


@prim()
def masked_scatter(a: TensorProxy, mask: TensorProxy, source: TensorProxy) -> TensorProxy:
    """`a` with the elements where `mask` holds replaced by the first ones of `source`, in order."""
    return tensor(a)


@prim()
def searchsorted(
    sorted_sequence: TensorProxy, values: TensorProxy, right: bool, dtype: torch.dtype, sorter: TensorProxy | None
) -> TensorProxy:
    """Where in the sorted last dimension each value would be inserted: before, or behind its equals if `right`."""
    return tensor(values, dtype=dtype)


@prim()
def index_put(
    a: TensorProxy, indices: Sequence[TensorProxy | None], values: TensorProxy, accumulate: bool
) -> TensorProxy:
    """A copy of `a` with a[indices] = values, or += if `accumulate`."""
    return tensor(a, strides=preserved_strides(a))


@prim()
def slice_scatter(a: TensorProxy, value: TensorProxy, starts: Dims, ends: Dims, steps: Dims) -> TensorProxy:
    """A copy of `a` in which the region that `prims.slice` would give is `value`."""
    return tensor(a, strides=preserved_strides(a))


# ---- reductions over dims; the reduced dimensions are dropped ----


def _reduced(a: TensorProxy, dims: Dims, dtype: torch.dtype | None = None) -> TensorProxy:
    require(len(set(dims)) == len(dims), f"a dimension appears twice in {tuple(dims)}")
    return tensor(a, shape=[size for d, size in enumerate(a.shape) if d not in dims], dtype=dtype)


@prim(Tag.REDUCTION)
def sum_prim(a: TensorProxy, dims: Dims) -> TensorProxy:
    return _reduced(a, dims)


@prim(Tag.REDUCTION)
def prod_prim(a: TensorProxy, dims: Dims) -> TensorProxy:
    return _reduced(a, dims)


@prim(Tag.REDUCTION)
def amax(a: TensorProxy, dims: Dims) -> TensorProxy:
    return _reduced(a, dims)


@prim(Tag.REDUCTION)
def amin(a: TensorProxy, dims: Dims) -> TensorProxy:
    return _reduced(a, dims)


@prim(Tag.REDUCTION)
def any_prim(a: TensorProxy, dims: Dims) -> TensorProxy:
    return _reduced(a, dims)


@prim(Tag.REDUCTION)
def all_prim(a: TensorProxy, dims: Dims) -> TensorProxy:
    return _reduced(a, dims)


@prim(Tag.REDUCTION)
def argmax(a: TensorProxy, dim: int | None) -> TensorProxy:
    return _reduced(a, range(a.ndim) if dim is None else (dim,), torch.int64)


@prim(Tag.REDUCTION)
def argmin(a: TensorProxy, dim: int | None) -> TensorProxy:
    return _reduced(a, range(a.ndim) if dim is None else (dim,), torch.int64)


@prim(Tag.REDUCTION)
def var(a: TensorProxy, dims: Dims, correction: Number) -> TensorProxy:
    return _reduced(a, dims, dtypes.corresponding_real(a.dtype))


@prim(Tag.REDUCTION)
def var_mean(a: TensorProxy, dims: Dims, correction: Number) -> tuple[TensorProxy, TensorProxy]:
    return _reduced(a, dims, dtypes.corresponding_real(a.dtype)), _reduced(a, dims)


@prim()
def cumsum(a: TensorProxy, dim: int) -> TensorProxy:
    return tensor(a)


def _scan(name: str) -> Symbol:
    def rule(a: TensorProxy, dim: int) -> TensorProxy:
        return tensor(a)

    rule.__name__ = name
    symbol = prim()(rule)
    elementwise.add(symbol)
    return symbol


cumprod = _scan("cumprod")
logcumsumexp = _scan("logcumsumexp")


@prim()
def cummax(a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    return tensor(a), tensor(a, dtype=torch.int64)


@prim()
def cummin(a: TensorProxy, dim: int) -> tuple[TensorProxy, TensorProxy]:
    return tensor(a), tensor(a, dtype=torch.int64)


def _selection(name: str) -> Symbol:
    """One element along a dimension and where it stands; the dimension is dropped."""

    def rule(a: TensorProxy, *args: int) -> tuple[TensorProxy, TensorProxy]:
        return _reduced(a, args[-1:]), _reduced(a, args[-1:], torch.int64)

    rule.__name__ = name
    return prim(Tag.REDUCTION)(rule)


kthvalue = _selection("kthvalue")  # (a, k, dim)
median = _selection("median")  # (a, dim)
mode = _selection("mode")  # (a, dim)
nanmedian = _selection("nanmedian")  # (a, dim)


@prim()
def topk(a: TensorProxy, k: int, dim: int, largest: bool, sorted: bool) -> tuple[TensorProxy, TensorProxy]:
    shape = (*a.shape[:dim], k, *a.shape[dim + 1 :])
    return tensor(a, shape=shape), tensor(a, shape=shape, dtype=torch.int64)


@prim()
def sort(a: TensorProxy, dim: int, descending: bool, stable: bool) -> tuple[TensorProxy, TensorProxy]:
    strides = preserved_strides(a)
    return tensor(a, strides=strides), tensor(a, dtype=torch.int64, strides=strides)


# ---- linear algebra and neural networks ----


@prim()
def matmul(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """Products of matrices, or of a matrix and a vector; batch dimensions are equal."""
    if a.ndim == 1 or b.ndim == 1:
        shape = a.shape[:-1] + (b.shape[:-2] + b.shape[-1:] if b.ndim > 1 else ())
    else:
        require(a.shape[:-2] == b.shape[:-2], f"prims.matmul: batches {a.shape[:-2]} and {b.shape[:-2]} differ")
        shape = (*a.shape[:-1], b.shape[-1])
    require(
        a.shape[-1] == b.shape[-2 if b.ndim > 1 else -1], f"prims.matmul: {a.shape} and {b.shape} do not fit together"
    )
    return tensor(a, shape=shape)


@prim()
def linear(a: TensorProxy, weight: TensorProxy, bias: TensorProxy | None) -> TensorProxy:
    """`a @ weight.T + bias`"""
    require(a.shape[-1] == weight.shape[-1], f"prims.linear: {a.shape} does not fit a weight of {weight.shape}")
    return tensor(a, shape=(*a.shape[:-1], *weight.shape[:-1]))


@prim()
def embedding(index: TensorProxy, weight: TensorProxy) -> TensorProxy:
    """The rows of `weight` that `index` names."""
    return tensor(weight, shape=(*index.shape, weight.shape[1]))


@prim()
def convolution(
    a: TensorProxy,
    weight: TensorProxy,
    bias: TensorProxy | None,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    transposed: bool,
    output_padding: Dims,
    groups: int,
) -> TensorProxy:
    """A batched convolution over any number of dimensions, as torch.convolution."""
    spatial = []
    for d in range(a.ndim - 2):
        size, kernel = a.shape[d + 2], dilation[d] * (weight.shape[d + 2] - 1) + 1
        if transposed:
            spatial.append((size - 1) * stride[d] - 2 * padding[d] + kernel + output_padding[d])
        else:
            spatial.append((size + 2 * padding[d] - kernel) // stride[d] + 1)
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    shape = (a.shape[0], channels, *spatial)
    order = channels_last_order(a) or channels_last_order(weight)
    return tensor(a, shape=shape, strides=order and strides_in_order(shape, order))


@prim()
def flash_attention(
    query: TensorProxy, key: TensorProxy, value: TensorProxy, dropout_p: float, is_causal: bool, *, scale: float | None
) -> tuple[TensorProxy, TensorProxy]:
    """Attention by torch's kernel for the CPU, and the logarithm of the sum of exponentials of each row of scores."""
    batch, heads, length, _ = query.shape
    shape, rows = (batch, heads, length, value.shape[-1]), (batch, heads, length)
    strides = strides_in_order(shape, (0, 2, 1, 3))
    return tensor(query, shape=shape, strides=strides), tensor(
        query, shape=rows, dtype=dtypes.compute_dtype(query.dtype), strides=strides_in_order(rows, (0, 2, 1))
    )


@prim()
def flash_attention_backward(
    g: TensorProxy,
    query: TensorProxy,
    key: TensorProxy,
    value: TensorProxy,
    out: TensorProxy,
    logsumexp: TensorProxy,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None,
) -> tuple[TensorProxy, TensorProxy, TensorProxy]:
    """The gradients of query, key and value."""
    return tensor(query), tensor(key), tensor(value)


@prim()
def embedding_backward(g: TensorProxy, index: TensorProxy, rows: int, padding_idx: int, by_freq: bool) -> TensorProxy:
    """The gradient of an embedding's weight, which has `rows` rows; that of row `padding_idx` is 0."""
    return tensor(g, shape=(rows, g.shape[-1]))


@prim()
def convolution_backward(
    g: TensorProxy,
    a: TensorProxy,
    weight: TensorProxy,
    bias_sizes: Dims | None,
    stride: Dims,
    padding: Dims,
    dilation: Dims,
    transposed: bool,
    output_padding: Dims,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[TensorProxy | None, TensorProxy | None, TensorProxy | None]:
    """The gradients of a convolution's input, weight and bias, as far as `output_mask` asks for them."""
    shapes = (a.shape, weight.shape, bias_sizes)
    return tuple(tensor(g, shape=s) if wanted else None for s, wanted in zip(shapes, output_mask))


# ---- factories ----


@prim()
def full(shape: Dims, value: Number, dtype: torch.dtype, device: torch.device) -> TensorProxy:
    return tensor(shape=shape, dtype=dtype, device=device)


@prim()
def iota(length: int, start: Number, step: Number, dtype: torch.dtype, device: torch.device) -> TensorProxy:
    """start, start + step, ...: `length` numbers."""
    return tensor(shape=(length,), dtype=dtype, device=device)


@prim()
def tensor_from_sequence(sequence: Any, dtype: torch.dtype, device: torch.device) -> TensorProxy:
    """The tensor of nested lists of numbers, or of one number."""
    shape = []
    level = sequence
    while isinstance(level, list | tuple):
        shape.append(len(level))
        level = level[0] if level else None
    return tensor(shape=shape, dtype=dtype, device=device)


@prim(Tag.RANDOM)
def uniform(shape: Dims, low: Number, high: Number, dtype: torch.dtype, device: torch.device) -> TensorProxy:
    """Random numbers from [low, high)."""
    return tensor(shape=shape, dtype=dtype, device=device)


@prim(Tag.RANDOM)
def normal(shape: Dims, dtype: torch.dtype, device: torch.device) -> TensorProxy:
    """Random numbers of mean 0 and variance 1."""
    return tensor(shape=shape, dtype=dtype, device=device)


@prim(Tag.RANDOM)
def random_integers(shape: Dims, low: int, high: int, dtype: torch.dtype, device: torch.device) -> TensorProxy:
    """Random integers from [low, high)."""
    return tensor(shape=shape, dtype=dtype, device=device)


@prim(Tag.RANDOM)
def bernoulli(probabilities: TensorProxy) -> TensorProxy:
    """1 with the chance that each element is, else 0."""
    return tensor(probabilities, strides=preserved_strides(probabilities))


@prim(Tag.RANDOM)
def exponential(shape: Dims, rate: float, dtype: torch.dtype, device: torch.device) -> TensorProxy:
    """Random numbers with the density rate * exp(-rate * x)."""
    return tensor(shape=shape, dtype=dtype, device=device)


@prim(Tag.RANDOM)
def dropout_mask(a: TensorProxy, probability: float) -> TensorProxy:
    """Which elements of `a` a dropout keeps (bool), each with chance 1 - `probability`, drawn as torch does."""
    return tensor(a, dtype=torch.bool)


# ---- effects ----


@prim(Tag.EFFECT)
def copy_(a: TensorProxy, to: TensorProxy) -> TensorProxy:
    """Writes the values of `a` into `to`."""
    return to


@prim()
def item(a: TensorProxy) -> NumberProxy:
    """The only element of a tensor of integers or floating point numbers, as a Python number."""
    return number(dtypes.number_type(a.dtype))


@prim(Tag.EFFECT)
def check_value(a: TensorProxy | NumberProxy, expected: Any) -> None:
    """The program decided by the value of `a`: where it is another one, the trace does not hold."""


@prim(Tag.EFFECT)
def check_shape(a: TensorProxy, shape: Dims) -> None:
    """The shape of `a` depends on values: where it is another one, the trace does not hold."""


@prim(Tag.EFFECT)
def python_del(*values: TensorProxy) -> None:
    """Forgets names, so that memory can be used again."""


def _print_del(bound_symbol: BoundSymbol, printer: Any) -> list[str]:
    return [f"del {', '.join(map(printer.value, bound_symbol.args))}"]


statement_rules[python_del] = _print_del
