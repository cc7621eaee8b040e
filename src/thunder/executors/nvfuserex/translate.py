"""What each primitive is in nvFuser's words: a table of rules, `{primitive: rule(definition, *arguments)}`.

A rule is given the primitive's arguments with values in place of proxies, and returns the value (or values) of exactly
the primitive's dtype and shape. Half types are computed in float32 and rounded after every operation, as torch's
kernels do. Nothing is left for nvFuser to convert or add on the way: that would be in its text and not in ours.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

from thunder.core import prims
from thunder.core.proxies import Proxy, TensorProxy, is_dense
from thunder.core.symbol import BoundSymbol, Symbol, Tag, map_proxies
from thunder.executors.nvfuserex.definition import DataType, Definition, Value
from thunder.executors.nvfuserex.layout import Layout

Rule = Callable[..., Any]
Number = bool | int | float | complex

Bool, Int, Double, Float = DataType.Bool, DataType.Int, DataType.Double, DataType.Float
HALVES = (DataType.Half, DataType.BFloat16)
FLOATS = (Double, Float, *HALVES)
INTEGERS = (Int, DataType.Int32)
PARTS = {DataType.ComplexFloat: Float, DataType.ComplexDouble: Double}  # the type of the parts of complex numbers
COMPLEX = tuple(PARTS)
REAL = (*FLOATS, *INTEGERS, Bool)

rules: dict[Symbol, Rule] = {}

# The types of the first tensor that a rule takes, where it does not take all.
operand_types: dict[Symbol, tuple[DataType, ...]] = {}


def rule(primitive: Symbol, *types: DataType) -> Callable[[Rule], Rule]:
    """Registers the translation of `primitive`, for operands of `types` if it does not take all."""

    def register(function: Rule) -> Rule:
        rules[primitive] = function
        if types:
            operand_types[primitive] = types
        return function

    return register


# ---- operands ----


def compute_type(dtype: DataType) -> DataType:
    """The type in which operations on `dtype` are computed."""
    return Float if dtype in HALVES else dtype


def number_of(dtype: DataType, x: Number) -> Number:
    """`x` as the kind of number that nvFuser combines with tensors of `dtype` without a conversion."""
    if dtype in COMPLEX:
        return complex(x)
    return float(x) if dtype in FLOATS else int(x)


def operands(fd: Definition, args: Sequence[Value | Number]) -> tuple[list[Value | Number], DataType]:
    """The arguments in the type they are computed in, and the type of the tensors among them.

    Bools become integers where there is a number among them, for nvFuser has no bool numbers.
    """
    dtype = next(x.dtype for x in args if isinstance(x, Value))
    has_number = not all(isinstance(x, Value) for x in args)
    inside = Int if dtype is Bool and has_number else compute_type(dtype)
    return [fd.cast(x, inside) if isinstance(x, Value) else number_of(inside, x) for x in args], dtype


def elementwise(primitive: Symbol, operation: str, *types: DataType, output: DataType | None = None) -> None:
    """`primitive` is nvFuser's `operation`."""

    def translate(fd: Definition, *args: Value | Number) -> Value:
        inside, dtype = operands(fd, args)
        return fd.cast(fd.elementwise(operation, *inside, dtype=output), output or dtype)

    rule(primitive, *types)(translate)


# ---- elementwise, one operand ----

for name in ("erf", "erfc", "erfinv", "exp2", "expm1", "lgamma", "log1p"):
    elementwise(getattr(prims, name), name, *FLOATS)
for name in (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log10", "log2", "reciprocal"),
    *("rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"),
):
    elementwise(getattr(prims, name), name, *FLOATS, *COMPLEX)

elementwise(prims.neg, "neg", *FLOATS, *INTEGERS, *COMPLEX)


@rule(prims.abs, *FLOATS, *INTEGERS, *COMPLEX)
def _abs(fd: Definition, a: Value) -> Value:
    (inside,), dtype = operands(fd, [a])
    return fd.cast(fd.elementwise("abs", inside, dtype=PARTS.get(dtype)), PARTS.get(dtype, dtype))


def _rounding(primitive: Symbol, operation: str) -> None:
    def translate(fd: Definition, a: Value) -> Value:
        if a.dtype not in FLOATS:
            return a
        (inside,), dtype = operands(fd, [a])
        return fd.cast(fd.elementwise(operation, inside), dtype)

    rule(primitive, *FLOATS, *INTEGERS)(translate)


for name in ("ceil", "floor", "round", "trunc"):
    _rounding(getattr(prims, name), name)


def _test_of_floats(primitive: Symbol, operation: str, of_others: str) -> None:
    """A test for special floats; `of_others` compares a value with itself for types that have none."""

    def translate(fd: Definition, a: Value) -> Value:
        (inside,), dtype = operands(fd, [a])
        if dtype in FLOATS or dtype in COMPLEX:
            return fd.elementwise(operation, inside, dtype=Bool)
        return fd.elementwise(of_others, inside, inside, dtype=Bool)

    rule(primitive)(translate)


_test_of_floats(prims.isfinite, "isfinite", "eq")
_test_of_floats(prims.isinf, "isinf", "ne")
_test_of_floats(prims.isnan, "isnan", "ne")


@rule(prims.logical_not)
def _logical_not(fd: Definition, a: Value) -> Value:
    if a.dtype is Bool:
        return fd.elementwise("logical_not", a)
    (inside,), dtype = operands(fd, [a])
    return fd.elementwise("eq", inside, number_of(dtype, 0), dtype=Bool)


@rule(prims.bitwise_not, Bool, *INTEGERS)
def _bitwise_not(fd: Definition, a: Value) -> Value:
    return fd.elementwise("logical_not" if a.dtype is Bool else "bitwise_not", a)


@rule(prims.sign, *REAL)
def _sign(fd: Definition, a: Value) -> Value:
    if a.dtype is Bool:
        return a
    (inside,), dtype = operands(fd, [a])
    positive = fd.cast(fd.elementwise("gt", inside, number_of(dtype, 0), dtype=Bool), inside.dtype)
    negative = fd.cast(fd.elementwise("lt", inside, number_of(dtype, 0), dtype=Bool), inside.dtype)
    return fd.cast(fd.elementwise("sub", positive, negative), dtype)


@rule(prims.signbit, *REAL)
def _signbit(fd: Definition, a: Value) -> Value:
    if a.dtype in FLOATS:
        (inside,), _ = operands(fd, [a])
        return fd.elementwise("signbit", inside, dtype=Bool)
    (inside, zero), _ = operands(fd, [a, 0])
    return fd.elementwise("lt", inside, zero, dtype=Bool)


# ---- elementwise, several operands ----

elementwise(prims.sub, "sub", *FLOATS, *INTEGERS, *COMPLEX)
elementwise(prims.div, "div", *FLOATS, *COMPLEX)
elementwise(prims.fmod, "fmod", *FLOATS, *INTEGERS)
elementwise(prims.remainder, "remainder", *FLOATS, *INTEGERS)
elementwise(prims.atan2, "atan2", *FLOATS)
elementwise(prims.gcd, "gcd", *INTEGERS)
elementwise(prims.nextafter, "nextafter", Double, Float)
for name in ("eq", "ne"):
    elementwise(getattr(prims, name), name, output=Bool)
for name in ("lt", "le", "gt", "ge"):
    elementwise(getattr(prims, name), name, *REAL, output=Bool)


@rule(prims.hypot, *FLOATS)
def _hypot(fd: Definition, a: Value, b: Value) -> Value:
    """The greater side times a number between 1 and the root of 2: nothing is squared that may overflow."""
    sides, dtype = operands(fd, [a, b])
    x, y = (fd.elementwise("abs", side) for side in sides)
    great, small = fd.elementwise("maximum", x, y), fd.elementwise("minimum", x, y)
    ratio = fd.elementwise("div", small, great)
    factor = fd.elementwise("sqrt", fd.elementwise("add", fd.elementwise("mul", ratio, ratio), 1.0))
    is_zero = fd.elementwise("eq", great, 0.0, dtype=Bool)
    out = fd.elementwise("where", is_zero, great, fd.elementwise("mul", great, factor))
    for side in (x, y):
        out = fd.elementwise("where", fd.elementwise("isinf", side, dtype=Bool), side, out)
    return fd.cast(out, dtype)


def _also_for_bools(primitive: Symbol, operation: str, of_bools: str, *types: DataType) -> None:
    """`primitive` is `operation`; of bool tensors, nvFuser's operation `of_bools`."""

    def translate(fd: Definition, *args: Value | Number) -> Value:
        inside, dtype = operands(fd, args)
        is_bool = all(isinstance(x, Value) and x.dtype is Bool for x in inside)
        return fd.cast(fd.elementwise(of_bools if is_bool else operation, *inside), dtype)

    rule(primitive, *types)(translate)


_also_for_bools(prims.add, "add", "logical_or")
_also_for_bools(prims.mul, "mul", "logical_and")
_also_for_bools(prims.maximum, "maximum", "logical_or", *REAL)
_also_for_bools(prims.minimum, "minimum", "logical_and", *REAL)
_also_for_bools(prims.bitwise_and, "bitwise_and", "logical_and", Bool, *INTEGERS)
_also_for_bools(prims.bitwise_or, "bitwise_or", "logical_or", Bool, *INTEGERS)
_also_for_bools(prims.bitwise_xor, "bitwise_xor", "ne", Bool, *INTEGERS)


@rule(prims.pow, *FLOATS, *INTEGERS, *COMPLEX)
def _pow(fd: Definition, a: Value | Number, b: Value | Number) -> Value:
    (x, y), dtype = operands(fd, [a, b])
    if dtype not in INTEGERS and not isinstance(y, Value):  # torch's kernels know these exponents
        if y == 2.0:
            return fd.cast(fd.elementwise("mul", x, x), dtype)
        if y == 3.0:
            return fd.cast(fd.elementwise("mul", fd.elementwise("mul", x, x), x), dtype)
        if y == 0.5:
            return fd.cast(fd.elementwise("sqrt", x), dtype)
        if y == -0.5:
            return fd.cast(fd.elementwise("rsqrt", x), dtype)
        if y == -1.0:
            return fd.cast(fd.elementwise("reciprocal", x), dtype)
    return fd.cast(fd.elementwise("pow", x, y), dtype)


@rule(prims.floor_divide, *FLOATS, *INTEGERS)
def _floor_divide(fd: Definition, a: Value | Number, b: Value | Number) -> Value:
    (x, y), dtype = operands(fd, [a, b])
    zero, one = number_of(dtype, 0), number_of(dtype, 1)
    rest = fd.elementwise("fmod", x, y)
    negative = fd.elementwise("lt", rest, zero, dtype=Bool)
    if isinstance(y, Value):
        apart = fd.elementwise("ne", negative, fd.elementwise("lt", y, zero, dtype=Bool), dtype=Bool)
    else:
        apart = fd.elementwise("ge", rest, zero, dtype=Bool) if y < 0 else negative
    below = fd.elementwise("logical_and", fd.elementwise("ne", rest, zero, dtype=Bool), apart, dtype=Bool)
    if dtype not in FLOATS:
        quotient = fd.elementwise("div", x, y)
        return fd.elementwise("where", below, fd.elementwise("sub", quotient, one), quotient)
    ratio = fd.elementwise("div", x, y)
    whole = fd.elementwise("div", fd.elementwise("sub", x, rest), y)
    whole = fd.elementwise("where", below, fd.elementwise("sub", whole, one), whole)
    floor = fd.elementwise("floor", whole)
    too_low = fd.elementwise("gt", fd.elementwise("sub", whole, floor), 0.5, dtype=Bool)
    floor = fd.elementwise("where", too_low, fd.elementwise("add", floor, one), floor)
    signed_zero = fd.elementwise("mul", ratio, zero)
    result = fd.elementwise("where", fd.elementwise("ne", whole, zero, dtype=Bool), floor, signed_zero)
    if isinstance(y, Value):
        result = fd.elementwise("where", fd.elementwise("eq", y, zero, dtype=Bool), ratio, result)
    elif y == 0:
        result = ratio
    return fd.cast(result, dtype)


def _shift(primitive: Symbol, operation: str) -> None:
    """A shift by fewer than 0 or by all bits leaves nothing, or only the sign to the right, as in torch."""

    def translate(fd: Definition, a: Value | Number, b: Value | Number) -> Value:
        (x, y), dtype = operands(fd, [a, b])
        bits = dtype.value.itemsize * 8
        if not isinstance(y, Value):
            if 0 <= y < bits:
                return fd.elementwise(operation, x, y)
            return _far_shift(fd, operation, x, bits)
        within = fd.elementwise(
            "logical_and",
            fd.elementwise("ge", y, 0, dtype=Bool),
            fd.elementwise("lt", y, bits, dtype=Bool),
        )
        near = fd.elementwise(operation, x, fd.elementwise("where", within, y, 0))
        if isinstance(x, Value):
            far = _far_shift(fd, operation, x, bits)
        else:
            far = 0 if operation == "bitwise_left_shift" or x >= 0 else -1
        return fd.elementwise("where", within, near, far, dtype=dtype)

    rule(primitive, *INTEGERS)(translate)


def _far_shift(fd: Definition, operation: str, x: Value, bits: int) -> Value:
    if operation == "bitwise_right_shift":
        return fd.elementwise(operation, x, bits - 1)
    return fd.elementwise("mul", x, 0)


_shift(prims.bitwise_left_shift, "bitwise_left_shift")
_shift(prims.bitwise_right_shift, "bitwise_right_shift")


@rule(prims.where)
def _where(fd: Definition, condition: Value, a: Value | Number, b: Value | Number) -> Value:
    dtype = next(x.dtype for x in (a, b) if isinstance(x, Value))
    (x, y), inside = [a, b], dtype
    if not (isinstance(a, Value) and isinstance(b, Value)):
        (x, y), _ = operands(fd, [a, b])
        inside = next(v.dtype for v in (x, y) if isinstance(v, Value))
    return fd.cast(fd.elementwise("where", condition, x, y, dtype=inside), dtype)


# ---- conversion and copies ----


@rule(prims.convert_element_type)
def _convert_element_type(fd: Definition, a: Value, dtype: torch.dtype) -> Value:
    to = DataType(dtype)
    if a.dtype in COMPLEX and to is Bool:
        return fd.elementwise("ne", a, 0j, dtype=Bool)
    if a.dtype in COMPLEX and to not in COMPLEX:
        a = _part(fd, "real", a)
    if a.dtype is not to and (a.dtype in HALVES or to in HALVES):
        a = fd.cast(a, Float)
    return fd.cast(a, to)


@rule(prims.detach)
def _detach(fd: Definition, a: Value) -> Value:
    return a


@rule(prims.clone)
@rule(prims.contiguous)
def _copied(fd: Definition, a: Value) -> Value:
    return a  # which gets memory of its own where it is an output


@rule(prims.graft)
@rule(prims.overwrite)
def _graft(fd: Definition, a: Value, other: Value) -> Value:
    return a


# ---- complex numbers ----


def _part(fd: Definition, operation: str, a: Value) -> Value:
    """The real or imaginary part, by the operation of this name."""
    return fd.elementwise(operation, a, dtype=PARTS[a.dtype])


@rule(prims.complex_prim, Float, Double)
def _complex(fd: Definition, real: Value, imag: Value) -> Value:
    return fd.elementwise("complex", real, imag, dtype=next(c for c, part in PARTS.items() if part is real.dtype))


@rule(prims.real, *COMPLEX)
def _real(fd: Definition, a: Value) -> Value:
    return _part(fd, "real", a)


@rule(prims.imag, *COMPLEX)
def _imag(fd: Definition, a: Value) -> Value:
    return _part(fd, "imag", a)


@rule(prims.conj_physical, *COMPLEX)
def _conj_physical(fd: Definition, a: Value) -> Value:
    negated = fd.elementwise("neg", _part(fd, "imag", a))
    return fd.elementwise("complex", _part(fd, "real", a), negated, dtype=a.dtype)


@rule(prims.view_as_real)
def _view_as_real(fd: Definition, a: Value) -> Value:
    sizes = (*a.shape, 2)
    real, imag = (_broadcast_in_dim(fd, _part(fd, name, a), sizes, range(a.ndim)) for name in ("real", "imag"))
    is_real = fd.elementwise("eq", _broadcast_in_dim(fd, _count(fd, 2), sizes, [a.ndim]), 0, dtype=Bool)
    return fd.elementwise("where", is_real, real, imag)


@rule(prims.view_as_complex, Float, Double)
def _view_as_complex(fd: Definition, a: Value) -> Value:
    at = [_full(fd, (), i, torch.int64, None) for i in range(2)]
    return _complex(fd, *(_indexed(fd, "select", a, i, a.ndim - 1, a.shape[:-1]) for i in at))


# ---- shape ----

# What nvFuser may answer with the memory it was given.
VIEWS = ("broadcast", "expand", "permute", "reshape", "squeeze", "stride_order")


# After these nvFuser may give an output its dimensions in another order than torch.
REORDERING = (prims.permute, prims.view_as_real)


@rule(prims.broadcast_in_dim)
def _broadcast_in_dim(fd: Definition, a: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
    new = [d not in dims for d in range(len(shape))]
    if any(new):
        sizes = [1 if new[d] else a.shape[dims.index(d)] for d in range(len(shape))]
        a = _shaped(fd, "broadcast", a, sizes, {dims[d] for d in a.expanded}, is_broadcast_dim=new)
    if a.shape == tuple(shape):
        return a
    expanded = a.expanded | {d for d, size in enumerate(shape) if a.shape[d] != size}
    return _shaped(fd, "expand", a, shape, expanded, shape=list(shape))


def _shaped(fd: Definition, operation: str, a: Value, sizes: Sequence[int], expanded: Any = (), **kwargs: Any) -> Value:
    """`fd.ops.<operation>(a, **kwargs)`, which gives the elements of `a` another shape."""
    output = Value(a.dtype, tuple(sizes), frozenset(expanded), a.of_input and operation in VIEWS)
    fd.call(operation, a, outputs=[output], **kwargs)
    return output


@rule(prims.reshape)
def _reshape(fd: Definition, a: Value, shape: Sequence[int]) -> Value:
    # Sizes of 1 are dropped and added here: nvFuser would do so where it knows the sizes, and its text would show it.
    sizes = [size for size in shape if size != 1]
    a = _squeeze(fd, a, [d for d, size in enumerate(a.shape) if size == 1])
    if list(a.shape) != sizes:
        if a.expanded:  # merging a repeated dimension, nvFuser 0.2.36 takes the wrong elements
            a = _in_memory_of_its_own(fd, a)
        a = _shaped(fd, "reshape", a, sizes, new_shape=sizes)
    return _broadcast_in_dim(fd, a, shape, [d for d, size in enumerate(shape) if size != 1])


@rule(prims.permute)
def _permute(fd: Definition, a: Value, dims: Sequence[int]) -> Value:
    if list(dims) == list(range(a.ndim)):
        return a
    expanded = {i for i, d in enumerate(dims) if d in a.expanded}
    return _shaped(fd, "permute", a, [a.shape[d] for d in dims], expanded, dims=list(dims))


@rule(prims.squeeze)
def _squeeze(fd: Definition, a: Value, dims: Sequence[int]) -> Value:
    return _shaped(fd, "squeeze", a, *_kept(a, dims), dims=sorted(dims)) if dims else a


def _as_padded(fd: Definition, a: Value) -> Value:
    """`a` in a type whose numbers nvFuser writes as they are."""
    return a if a.dtype in (*FLOATS, *COMPLEX, Int) else fd.cast(a, Int)


def _pad_by(fd: Definition, a: Value, value: Number, low: Sequence[int], high: Sequence[int]) -> Value:
    """`a` with `low[d]` elements of `value` before and `high[d]` behind; negative numbers crop."""
    if not any(low) and not any(high):
        return a
    inside = _as_padded(fd, a)
    sizes = [size + before + behind for size, before, behind in zip(a.shape, low, high)]
    widths = [n for d in reversed(range(a.ndim)) for n in (low[d], high[d])]
    expanded = {d for d in a.expanded if low[d] == high[d] == 0}
    number = number_of(inside.dtype, value)
    return fd.cast(_shaped(fd, "pad", inside, sizes, expanded, pad_widths=widths, value=number), a.dtype)


@rule(prims.pad)
def _pad(fd: Definition, a: Value, value: Number, low: Sequence[int], high: Sequence[int]) -> Value:
    return _pad_by(fd, a, value, low, high)


@rule(prims.slice_prim)
def _slice(fd: Definition, a: Value, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]) -> Value:
    """A dimension of which one element is left is selected: cropping it, nvFuser 0.2.36 takes others."""
    for d, size in enumerate(a.shape):
        if size > 1 and ends[d] - starts[d] == 1:  # and nothing else is cropped, see refusal.py
            sizes = [1 if i == d else n for i, n in enumerate(a.shape)]
            one = _select(fd, a, _full(fd, (), starts[d], torch.int64, None), d)
            return _broadcast_in_dim(fd, one, sizes, [i for i in range(a.ndim) if i != d])
    return _pad_by(fd, a, 0, [-start for start in starts], [end - size for end, size in zip(ends, a.shape)])


@rule(prims.cat)
def _cat(fd: Definition, tensors: Sequence[Value], dim: int) -> Value:
    if len(tensors) == 1:
        return tensors[0]
    total = sum(x.shape[dim] for x in tensors)
    parts, before = [], 0
    for x in tensors:
        low, high = ([n if d == dim else 0 for d in range(x.ndim)] for n in (before, total - before - x.shape[dim]))
        parts.append(_pad_by(fd, _as_padded(fd, x), 0, low, high))
        before += x.shape[dim]
    output = Value(parts[0].dtype, parts[0].shape, frozenset.intersection(*(x.expanded for x in parts)))
    fd.call("cat", parts, dim=dim, manual_padding=True, outputs=[output])
    return fd.cast(output, tensors[0].dtype)


# ---- indexing ----


def _counted_from_the_front(fd: Definition, index: Value, size: int) -> Value:
    """`index` with `size` added where it is negative: nvFuser would read in front of the tensor."""
    is_negative = fd.elementwise("lt", index, 0, dtype=Bool)
    return fd.elementwise("where", is_negative, fd.elementwise("add", index, size), index)


@rule(prims.select)
def _select(fd: Definition, a: Value, index: Value, dim: int) -> Value:
    index = _counted_from_the_front(fd, index, a.shape[dim])
    return _indexed(fd, "select", a, index, dim, _kept(a, [dim])[0])


@rule(prims.take)
def _take(fd: Definition, a: Value, index: Value, dim: int) -> Value:
    if index.ndim == 0:
        return _select(fd, a, index, dim)
    index = _counted_from_the_front(fd, index, a.shape[dim])
    index = _broadcast_in_dim(fd, index, [index.shape[0] if d == dim else 1 for d in range(a.ndim)], [dim])
    return _indexed(fd, "index_select", a, index, dim, [*a.shape[:dim], index.shape[dim], *a.shape[dim + 1 :]])


@rule(prims.index)
def _index(fd: Definition, a: Value, indices: Sequence[Value | None]) -> Value:
    ((dim, index),) = ((d, x) for d, x in enumerate(indices) if x is not None)
    taken = _take(fd, a, _reshape(fd, index, (prod(index.shape),)), dim)
    return _reshape(fd, taken, (*a.shape[:dim], *index.shape, *a.shape[dim + 1 :]))


@rule(prims.slice_scatter)
def _slice_scatter(
    fd: Definition, a: Value, value: Value, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]
) -> Value:
    inside: Value | None = None
    for d, (start, end, size) in enumerate(zip(starts, ends, a.shape)):
        if (start, end) == (0, size):
            continue
        position = _broadcast_in_dim(fd, _count(fd, size), a.shape, [d])
        for test in (
            fd.elementwise("ge", position, start, dtype=Bool),
            fd.elementwise("lt", position, end, dtype=Bool),
        ):
            inside = test if inside is None else fd.elementwise("logical_and", inside, test)
    if inside is None:
        return value
    behind = [size - end for size, end in zip(a.shape, ends)]
    return fd.elementwise("where", inside, _pad_by(fd, value, 0, starts, behind), a)


@rule(prims.gather)
def _gather(fd: Definition, a: Value, dim: int, index: Value) -> Value:
    if a.of_input:
        return _indexed(fd, "take_along_axis", a, index, dim, index.shape)
    # nvFuser 0.2.36 counts dimensions that are summed away, and cannot return what it takes of a computed value.
    return fd.copy(_indexed(fd, "take_along_axis", fd.copy(a), index, dim, index.shape))


def _indexed(fd: Definition, operation: str, a: Value, index: Value, dim: int, shape: Sequence[int]) -> Value:
    output = Value(a.dtype, tuple(shape))
    fd.call(operation, a, index, dim=dim, outputs=[output])
    return output


# ---- reductions ----


def _kept(a: Value, dims: Sequence[int]) -> tuple[tuple[int, ...], frozenset[int]]:
    """The sizes of the dimensions other than `dims`, and which of these are expanded."""
    kept = [d for d in range(a.ndim) if d not in dims]
    return tuple(a.shape[d] for d in kept), frozenset(i for i, d in enumerate(kept) if d in a.expanded)


def _drop_repeated(fd: Definition, a: Value, dims: Sequence[int]) -> tuple[Value, list[int], int]:
    """`a` without those of `dims` along which there is one element or one repeated, the rest of `dims`, the repeats."""
    single = [d for d in dims if a.shape[d] == 1]
    expanded = [d for d in dims if d in a.expanded]
    repeats = prod(a.shape[d] for d in expanded)
    gone = sorted(single + expanded)
    if not gone:
        return a, sorted(dims), 1
    kept = [d for d in range(a.ndim) if d not in gone]
    flags = {"squeeze_expanded": True} if expanded else {}
    a = _shaped(fd, "squeeze", a, *_kept(a, gone), dims=gone, **flags)
    return a, [i for i, d in enumerate(kept) if d in dims], repeats


def _reduce(fd: Definition, operation: str, a: Value, dims: Sequence[int], **kwargs: Any) -> Value:
    if not dims:
        return a
    shape, expanded = _kept(a, dims)
    return _shaped(fd, operation, fd.to_reduce(a, operation), shape, expanded, dims=list(dims), **kwargs)


@rule(prims.sum_prim, *FLOATS, *INTEGERS, *COMPLEX)
def _sum(fd: Definition, a: Value, dims: Sequence[int]) -> Value:
    (inside,), dtype = operands(fd, [a])
    inside, dims, repeats = _drop_repeated(fd, inside, dims)
    if repeats != 1:
        inside = fd.elementwise("mul", inside, number_of(dtype, repeats))
    return fd.cast(_reduce(fd, "sum", inside, dims, dtype=inside.dtype), dtype)


@rule(prims.prod_prim, *FLOATS, *INTEGERS, *COMPLEX)
def _prod(fd: Definition, a: Value, dims: Sequence[int]) -> Value:
    (inside,), dtype = operands(fd, [a])
    inside, dims, repeats = _drop_repeated(fd, inside, dims)
    if repeats != 1:
        inside = fd.elementwise("pow", inside, number_of(dtype, repeats))
    return fd.cast(_reduce(fd, "prod", inside, dims, dtype=inside.dtype), dtype)


def _extremum(primitive: Symbol, operation: str) -> None:
    def translate(fd: Definition, a: Value, dims: Sequence[int]) -> Value:
        inside = fd.cast(a, Int if a.dtype is Bool else compute_type(a.dtype))
        inside, dims, _ = _drop_repeated(fd, inside, dims)
        return fd.cast(_reduce(fd, operation, inside, dims), a.dtype)

    rule(primitive, *REAL)(translate)


_extremum(prims.amax, "max")
_extremum(prims.amin, "min")
_extremum(prims.any_prim, "max")
_extremum(prims.all_prim, "min")
operand_types[prims.any_prim] = operand_types[prims.all_prim] = (Bool,)


def _arg_extremum(primitive: Symbol, operation: str) -> None:
    """Where the extremum stands first, or the first NaN."""

    def translate(fd: Definition, a: Value, dim: int | None) -> Value:
        a, dim = (_reshape(fd, a, (prod(a.shape),)), 0) if dim is None else (a, dim)
        size, others = a.shape[dim], [d for d in range(a.ndim) if d != dim]
        if size == 1 or dim in a.expanded:
            return _full(fd, [a.shape[d] for d in others], 0, torch.int64, None)
        inside = fd.cast(a, compute_type(a.dtype))
        best = _broadcast_in_dim(fd, _reduce(fd, operation, inside, [dim]), a.shape, others)
        found = fd.elementwise("eq", inside, best, dtype=Bool)
        if a.dtype in FLOATS:
            found = fd.elementwise("logical_or", found, fd.elementwise("isnan", inside, dtype=Bool))
        position = _broadcast_in_dim(fd, _count(fd, size), a.shape, [dim])
        return _reduce(fd, "min", fd.elementwise("where", found, position, size, dtype=Int), [dim])

    rule(primitive, *FLOATS, *INTEGERS)(translate)


_arg_extremum(prims.argmax, "max")
_arg_extremum(prims.argmin, "min")


@rule(prims.var_mean, *FLOATS)
def _var_mean(fd: Definition, a: Value, dims: Sequence[int], correction: Number) -> tuple[Value, Value]:
    (inside,), dtype = operands(fd, [a])
    count = prod(a.shape[d] for d in dims)
    inside, dims, repeats = _drop_repeated(fd, inside, dims)
    if dims:
        shape, expanded = _kept(inside, dims)
        mean, squares, n = (Value(t, shape, expanded) for t in (inside.dtype, inside.dtype, Int))
        fd.call("welford", inside, dims=list(dims), outputs=[mean, squares, n])
    else:
        mean, squares = inside, fd.elementwise("sub", inside, inside)
    if repeats != 1:
        squares = fd.elementwise("mul", squares, float(repeats))
    variance = fd.elementwise("div", squares, max(0.0, float(count - correction)))
    return fd.cast(variance, dtype), fd.cast(mean, dtype)


@rule(prims.var, *FLOATS)
def _var(fd: Definition, a: Value, dims: Sequence[int], correction: Number) -> Value:
    return _var_mean(fd, a, dims, correction)[0]


# ---- factories ----


@rule(prims.full)
def _full(fd: Definition, shape: Sequence[int], value: Number, dtype: torch.dtype, _: torch.device | None) -> Value:
    # nvFuser writes numbers of these types as they are; it names and numbers those of the others.
    to = DataType(dtype)
    inside = Double if to in FLOATS else Int if to in INTEGERS else DataType.ComplexDouble if to in COMPLEX else to
    output = Value(inside, tuple(shape))
    number = bool(value) if inside is Bool else number_of(inside, value)
    fd.call("full", outputs=[output], shape=list(shape), fill_value=number, dtype=inside)
    return _convert_element_type(fd, output, dtype)


def _count(fd: Definition, length: int) -> Value:
    """0, 1, ... below `length`."""
    output = Value(Int, (length,))
    fd.call("iota", outputs=[output], length=length, start=0, step=1)
    return output


@rule(prims.iota)
def _iota(fd: Definition, length: int, start: Number, step: Number, dtype: torch.dtype, device: torch.device) -> Value:
    if isinstance(start, float) or isinstance(step, float):
        scaled = fd.elementwise("mul", fd.cast(_count(fd, length), Double), float(step))
        output = fd.elementwise("add", scaled, float(start))
    else:
        output = Value(Int, (length,))
        fd.call("iota", outputs=[output], length=length, start=int(start), step=int(step))
    return _convert_element_type(fd, output, dtype)


# ---- whole fusions ----


def translate(
    region: Sequence[BoundSymbol],
    inputs: Sequence[TensorProxy],
    outputs: Sequence[TensorProxy],
    layouts: Sequence[Layout],
) -> Definition:
    """The definition of a region of primitives whose inputs lie in memory as `layouts` say."""
    fd = Definition()
    values: dict[Proxy, Any] = {
        proxy: fd.define_tensor(proxy.shape, proxy.dtype, layout) for proxy, layout in zip(inputs, layouts, strict=True)
    }
    views = set(inputs)  # what is an input's memory in torch
    for call in region:
        result = rules[call.symbol](fd, *map_proxies(call.args, values), **map_proxies(call.kwargs, values))
        results = result if isinstance(result, tuple) else (result,)
        values.update(zip(call.outputs, results, strict=True))
        if Tag.SHAPE_ONLY in call.symbol.tags and views.issuperset(call.inputs):
            views.update(call.outputs)
    may_reorder = any(x.stride_order for x in layouts) or any(call.symbol in REORDERING for call in region)
    for proxy in outputs:
        value = values[proxy]
        # Elements that nvFuser would repeat, or take from an input, and torch would not.
        lacks_memory = any(proxy.strides[d] for d in value.expanded) or (value.of_input and proxy not in views)
        if lacks_memory:
            value = _in_memory_of_its_own(fd, value)
        if (may_reorder or lacks_memory) and value.ndim > 1 and is_dense(proxy.shape, proxy.strides):
            value = _in_order_of(fd, value, proxy)
        fd.add_output(value)
    return fd


def _in_memory_of_its_own(fd: Definition, value: Value) -> Value:
    everywhere = Value(Bool, value.shape)
    fd.call("full", outputs=[everywhere], shape=list(value.shape), fill_value=True, dtype=Bool)
    return fd.elementwise("where", everywhere, value, value)


def _in_order_of(fd: Definition, value: Value, proxy: TensorProxy) -> Value:
    """`value` with the dimensions in torch's order, where nvFuser might choose another."""
    order = Layout.of(proxy.shape, proxy.strides).stride_order or range(value.ndim - 1, -1, -1)
    return _shaped(fd, "stride_order", value, value.shape, value.expanded, stride_order=list(order))
