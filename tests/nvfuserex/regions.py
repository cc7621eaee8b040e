"""Regions of primitives for the tests: together they use every translation rule, on every type it takes."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import BoundSymbol
from thunder.core.trace import Trace, record

CUDA = torch.device("cuda", 0)
f64, f32, f16, bf16 = torch.float64, torch.float32, torch.float16, torch.bfloat16
i64, i32, b8 = torch.int64, torch.int32, torch.bool
c64, c128 = torch.complex64, torch.complex128
FLOATS, INTEGERS, COMPLEX = (f64, f32, f16, bf16), (i64, i32), (c64, c128)


@dataclass(frozen=True)
class Region:
    """Primitives that `build` calls on proxies; each input is a shape and a dtype, and strides if not contiguous."""

    name: str
    inputs: tuple[tuple, ...]
    build: Callable

    def record(self) -> tuple[list[BoundSymbol], list[TensorProxy], list[TensorProxy]]:
        """The region's calls, inputs and outputs."""
        trace = Trace("computation")
        proxies = []
        for n, (shape, dtype, *strides) in enumerate(self.inputs):
            name = trace.new_name(f"a{n}")
            proxies.append(
                TensorProxy(name, shape=shape, dtype=dtype, device=CUDA, strides=strides[0] if strides else None)
            )
        with record(trace):
            outputs = self.build(*proxies)
        return trace.bound_symbols, proxies, list(outputs) if isinstance(outputs, tuple | list) else [outputs]


regions: dict[str, Region] = {}


def short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def add(name: str, inputs: list[tuple], build: Callable) -> None:
    regions[name] = Region(name, tuple(inputs), build)


# ---- elementwise ----

UNARY_FLOAT = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "erfinv", "exp"),
    *("exp2", "expm1", "floor", "isfinite", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "logical_not"),
    *(
        "neg",
        "reciprocal",
        "round",
        "rsqrt",
        "sigmoid",
        "sign",
        "signbit",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
    ),
)
UNARY_INTEGER = (
    *("abs", "bitwise_not", "ceil", "floor", "isfinite", "isinf", "isnan", "logical_not", "neg", "round", "sign"),
    *("signbit", "trunc"),
)
UNARY_BOOL = ("bitwise_not", "isfinite", "isinf", "isnan", "logical_not", "sign", "signbit")
COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
BINARY_FLOAT = (
    *("add", "atan2", "div", "floor_divide", "fmod", "maximum", "minimum", "mul", "pow", "remainder", "sub"),
    *COMPARISONS,
)
BINARY_INTEGER = (
    *("add", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "floor_divide"),
    *("fmod", "maximum", "minimum", "mul", "pow", "remainder", "sub", *COMPARISONS),
)
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
UNARY_COMPLEX = (
    *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "isfinite", "isinf", "isnan"),
    *(
        "conj_physical",
        "imag",
        "real",
        "log",
        "log10",
        "log2",
        "logical_not",
        "neg",
        "reciprocal",
        "rsqrt",
        "sigmoid",
        "sin",
        "sinh",
        "sqrt",
        "tan",
    ),
    "tanh",
)
BINARY_COMPLEX = ("add", "div", "eq", "mul", "ne", "pow", "sub")
BINARY_BOOL = ("add", "bitwise_and", "bitwise_or", "bitwise_xor", "maximum", "minimum", "mul", *COMPARISONS)


def each(names: tuple[str, ...]) -> Callable:
    """Calls every primitive of `names` on the inputs."""
    return lambda *args: [getattr(prims, name)(*args) for name in names]


def with_number(names: tuple[str, ...], number: float) -> Callable:
    """Calls every primitive of `names` with a number to the right, and to the left where torch takes it there."""
    left = [name for name in names if name not in ("fmod", *COMPARISONS)]

    def build(a: TensorProxy) -> list[TensorProxy]:
        right = [getattr(prims, name)(a, number) for name in names]
        return right + [getattr(prims, name)(number, a) for name in left]

    return build


for dtype in FLOATS:
    add(f"unary_{short(dtype)}", [((64,), dtype)], each(UNARY_FLOAT))
    add(f"binary_{short(dtype)}", [((64,), dtype)] * 2, each(BINARY_FLOAT))
for dtype in (f32, bf16):
    for label, number in {"2": 2, "minus_1_75": -1.75, "0": 0.0}.items():
        add(f"number_{label}_{short(dtype)}", [((64,), dtype)], with_number(BINARY_FLOAT, number))
    add(f"powers_{short(dtype)}", [((64,), dtype)], lambda a: [prims.pow(a, n) for n in (3, 0.5, -0.5, -1, 4, -2.0)])
for dtype in INTEGERS:
    add(f"unary_{short(dtype)}", [((64,), dtype)], each(UNARY_INTEGER))
    add(f"binary_{short(dtype)}", [((64,), dtype)] * 2, each(BINARY_INTEGER))
    add(f"number_3_{short(dtype)}", [((64,), dtype)], with_number(BINARY_INTEGER, 3))
    add(f"shift_far_{short(dtype)}", [((64,), dtype)], with_number(SHIFTS, 100))
    add(f"gcd_{short(dtype)}", [((64,), dtype)] * 2, prims.gcd)
for dtype in FLOATS:
    add(f"hypot_{short(dtype)}", [((64,), dtype)] * 2, prims.hypot)
for dtype in (f64, f32):
    add(f"nextafter_{short(dtype)}", [((64,), dtype)] * 2, prims.nextafter)
add("unary_bool", [((64,), b8)], each(UNARY_BOOL))
add("binary_bool", [((64,), b8)] * 2, each(BINARY_BOOL))
add("number_bool", [((64,), b8)], lambda a: [prims.eq(a, True), prims.bitwise_xor(a, True), prims.add(a, False)])
for dtype in (f16, bf16):
    add(f"rounded_{short(dtype)}", [((64,), dtype)] * 2, lambda a, b: prims.sub(prims.mul(prims.add(a, b), b), a))


for dtype in COMPLEX:
    name, part = short(dtype), f64 if dtype is c128 else f32
    add(f"unary_{name}", [((64,), dtype)], each(UNARY_COMPLEX))
    add(f"binary_{name}", [((64,), dtype)] * 2, each(BINARY_COMPLEX))
    add(f"number_{name}", [((64,), dtype)], with_number(("add", "div", "eq", "mul", "ne", "sub"), 1.5 - 2j))
    add(f"powers_{name}", [((64,), dtype)], lambda a: [prims.pow(a, n) for n in (2, 3, 0.5, -0.5, -1)])
    add(f"parts_{name}", [((64,), part)] * 2, prims.complex)
    add(f"view_as_real_{name}", [((4, 8), dtype)], lambda a: prims.neg(prims.view_as_real(a)))
    add(f"view_as_complex_{name}", [((4, 8, 2), part)], lambda a: prims.mul(c := prims.view_as_complex(a), c))
    for to in (*FLOATS, *INTEGERS, b8, c128) if dtype is c64 else (f64, c64):
        if to is not dtype:
            add(f"cast_{name}_{short(to)}", [((64,), dtype)], lambda a, to=to: prims.convert_element_type(a, to))
        if to is not dtype and to not in COMPLEX:
            add(f"cast_{short(to)}_{name}", [((64,), to)], lambda a, to=dtype: prims.convert_element_type(a, to))


def wheres(condition: TensorProxy, a: TensorProxy, b: TensorProxy) -> list[TensorProxy]:
    one = a.dtype is b8 or 1
    return [prims.where(condition, a, b), prims.where(condition, a, one), prims.where(condition, one, b)]


for dtype in (*FLOATS, *INTEGERS, b8, *COMPLEX):
    name = short(dtype)
    add(f"where_{name}", [((64,), b8), ((64,), dtype), ((64,), dtype)], wheres)
    for to in (*FLOATS, *INTEGERS, b8) if dtype not in COMPLEX else ():
        if to is not dtype:
            add(f"cast_{name}_{short(to)}", [((64,), dtype)], lambda a, to=to: prims.convert_element_type(a, to))

# ---- shape ----

for dtype in (f32, bf16, i32, b8, c64):
    name = short(dtype)
    number = dtype is b8 or 1
    add(f"pad_{name}", [((4, 8), dtype)], lambda a, number=number: prims.pad(a, number, (1, 0), (2, -3)))
    add(f"cat_{name}", [((4, 8), dtype), ((4, 3), dtype)], lambda a, b: prims.cat([a, b, a], 1))
    add(f"take_{name}", [((4, 8), dtype), ((3,), i64)], lambda a, index: prims.take(a, index, 1))
    add(f"gather_{name}", [((4, 8), dtype), ((4, 3), i64)], lambda a, i: prims.gather(a, 1, prims.remainder(i, 8)))
    add(
        f"slice_scatter_{name}",
        [((4, 8), dtype), ((2, 5), dtype)],
        lambda a, b: prims.slice_scatter(a, b, (1, 0), (3, 5), (1, 1)),
    )
    add(f"index_{name}", [((4, 8), dtype), ((2, 3), i64)], lambda a, i: prims.index(a, (None, prims.remainder(i, 8))))
add(
    "take_from_the_end",
    [((4, 8), f32), ((5,), i64)],
    lambda a, i: prims.take(a, prims.sub(prims.remainder(i, 8), 8), 1),
)
add("select_from_the_end", [((4, 8), f32), ((), i64)], lambda a, index: prims.select(a, prims.sub(index, 4), 0))
add("slice_one", [((4, 8), f32)], lambda a: prims.neg(prims.slice(a, (0, 3), (4, 4), (1, 1))))
add(
    "slices_of_one",
    [((4, 3, 8), f32)],
    lambda a: [prims.neg(prims.squeeze(prims.slice(a, (0, i, 0), (4, i + 1, 8), (1, 1, 1)), (1,))) for i in range(3)],
)
add("slice", [((4, 8), f32)], lambda a: prims.slice(a, (1, 0), (3, 5), (1, 1)))
add("gather_rows", [((4, 8), f32), ((6, 8), i32)], lambda a, i: prims.gather(a, 0, prims.remainder(i, 4)))
add("gather_one", [((4, 8), f32), ((4, 1), i64)], lambda a, i: prims.neg(prims.gather(a, 1, prims.remainder(i, 8))))
add(
    "gather_computed",
    [((4, 8), f32), ((4, 1), i64)],
    lambda a, i: prims.gather(prims.exp(a), 1, prims.remainder(i, 8)),
)
add(
    "gather_sums",
    [((4, 8), f32), ((3,), i64)],
    lambda a, i: prims.gather(prims.sum(a, (1,)), 0, prims.remainder(i, 4)),
)
add("select", [((4, 8), f32), ((), i64)], lambda a, index: prims.select(a, index, 0))
add("take_one", [((4, 8), f32), ((), i64)], lambda a, index: prims.take(a, index, 1))
add("take_computed", [((4, 8), f32), ((3,), i64)], lambda a, i: [e := prims.exp(a), prims.take(e, i, 1)])
add("take_of_sums", [((4, 8), f32), ((3,), i64)], lambda a, i: prims.take(prims.sum(a, (1,)), i, 0))
add("index_computed", [((4, 8), f32), ((2, 3), i64)], lambda a, i: prims.index(prims.exp(a), (None, i)))
add("select_computed", [((4, 8), f32), ((), i64)], lambda a, i: prims.select(prims.exp(a), i, 0))
add("slice_one_computed", [((4, 8), f32)], lambda a: prims.slice(prims.exp(a), (0, 3), (4, 4), (1, 1)))
add("argmax_computed", [((4, 8), f32)], lambda a: [e := prims.exp(a), prims.argmax(e, 1)])
add("parts_of_input", [((4, 8), c64)], lambda a: [prims.view_as_real(a), prims.real(a), prims.neg(a)])
add("complex_of_computed", [((4, 8, 2), f32)], lambda a: prims.view_as_complex(prims.exp(a)))
add(
    "scattered_into_computed",
    [((4, 8), f32), ((2, 5), f32)],
    lambda a, b: prims.slice_scatter(prims.exp(a), prims.neg(b), (1, 0), (3, 5), (1, 1)),
)
add("scattered_row", [((4, 8), f32), ((1, 8), f32)], lambda a, b: prims.slice_scatter(a, b, (2, 0), (3, 8), (1, 1)))
add(
    "scattered_into_one",
    [((1, 8), bf16), ((1, 3), bf16)],
    lambda a, b: prims.slice_scatter(a, b, (0, 2), (1, 5), (1, 1)),
)
add("take_of_vector", [((40,), f32), ((3,), i32)], lambda a, index: prims.take(a, index, 0))
add("reshape_permute", [((4, 8), f32)], lambda a: prims.neg(prims.permute(prims.reshape(a, (2, 2, 8)), (2, 0, 1))))
add("broadcast", [((4, 8), f32)], lambda a: prims.exp(prims.broadcast_in_dim(a, (4, 3, 8), (0, 2))))
add("broadcast_1", [((4, 1, 8), f32)], lambda a: prims.exp(prims.broadcast_in_dim(a, (4, 3, 8), (0, 1, 2))))
add("squeeze", [((4, 1, 8), f32)], lambda a: prims.exp(prims.squeeze(a, (1,))))
add("reshape_1", [((4, 1, 8), f32)], lambda a: [prims.exp(prims.reshape(a, s)) for s in ((4, 8), (1, 32), (32, 1, 1))])
add(
    "reshape_broadcast",
    [((4, 8), f32)],
    lambda a: prims.exp(prims.reshape(prims.broadcast_in_dim(a, (4, 3, 8), (0, 2)), (12, 8))),
)
add("grafted", [((4, 8), f32)] * 2, lambda a, b: prims.overwrite(prims.exp(prims.graft(a, b)), b))
add("views", [((4, 8), f32)], lambda a: [prims.permute(a, (1, 0)), prims.reshape(a, (32,)), prims.detach(a)])
add("identity", [((4, 8), i64)], prims.round)
add(
    "rotate_half",
    [((4, 8), f32)],
    lambda a: prims.cat([prims.neg(prims.slice(a, (0, 4), (4, 8), (1, 1))), prims.slice(a, (0, 0), (4, 4), (1, 1))], 1),
)

# ---- memory ----

add("copy", [((4, 8), f32)], prims.clone)
add("copy_of_permuted", [((4, 8), f32, (1, 4))], prims.clone)
add("rows_of_permuted", [((4, 8), f32, (1, 4))], prims.contiguous)

add("permuted", [((4, 8), f32, (1, 4))], lambda a: [b := prims.add(a, a), prims.permute(b, (1, 0))])
add("channels_last", [((2, 3, 4, 5), f32, (60, 1, 15, 3))], lambda a: prims.add(a, a))
add("mixed_orders", [((4, 8), f32), ((4, 8), f32, (1, 4))], lambda a, b: prims.add(b, a))
add("expanded", [((4, 8), f32, (0, 1))], lambda a: prims.add(a, a))
add("gaps", [((4, 8), f32, (16, 2))], lambda a: prims.add(a, a))
add("no_dimensions", [((), f32)], lambda a: [prims.add(a, a), prims.sum(a, ())])
add("many_dimensions", [((2,) * 9, f32)], lambda a: prims.add(a, a))

# ---- reductions ----

for dtype in (*FLOATS, *INTEGERS, *COMPLEX):
    name = short(dtype)
    add(f"sum_{name}", [((4, 8, 16), dtype)], lambda a: prims.sum(a, (1, 2)))
    add(f"prod_{name}", [((4, 8, 4), dtype)], lambda a: prims.prod(a, (2,)))
    if dtype in COMPLEX:
        continue
    add(f"amin_{name}", [((4, 8, 16), dtype)], lambda a: prims.amin(a, (2,)))
    add(f"argmax_{name}", [((4, 8, 16), dtype)], lambda a: prims.argmax(a, 2))
    add(f"argmin_{name}", [((4, 8, 16), dtype)], lambda a: [prims.argmin(a, 1), prims.argmin(a, None)])
    add(f"amax_{name}", [((4, 8, 16), dtype)], lambda a: prims.amax(a, (1,)))
for dtype in (f32, bf16):
    add(
        f"var_{short(dtype)}",
        [((4, 8, 16), dtype)],
        lambda a: [prims.var(a, (1, 2), 1), *prims.var_mean(a, (1, 2), 0)],
    )
add("any_all", [((4, 8), b8)], lambda a: [prims.any(a, (1,)), prims.all(a, (1,))])
add("amax_bool", [((4, 8), b8)], lambda a: prims.amax(a, (1,)))
add("sum_to_one", [((4, 8, 16), f32)], lambda a: prims.sum(a, (0, 1, 2)))
add("sum_outer", [((4, 8, 16), f32)], lambda a: prims.sum(a, (0, 2)))
add("sum_1", [((4, 1, 8), f32)], lambda a: [prims.sum(a, (1, 2)), prims.amax(a, (1, 2)), *prims.var_mean(a, (1,), 0)])
add("sum_expanded", [((4, 8), f32, (0, 1))], lambda a: prims.sum(prims.add(a, a), (0,)))
add("prod_expanded", [((4, 8), f32, (0, 1))], lambda a: prims.prod(prims.add(a, a), (0,)))
add("amax_expanded", [((4, 8), f32, (0, 1))], lambda a: prims.amax(prims.add(a, a), (0,)))
add("var_expanded", [((4, 8), f32, (0, 1))], lambda a: prims.var(prims.add(a, a), (0, 1), 1))
add(
    "all_reductions",
    [((4, 8), f32)],
    lambda a: [prims.sum(a, (1,)), prims.prod(a, (1,)), prims.amax(a, (1,)), *prims.var_mean(a, (1,), 1)],
)


def softmax(a: TensorProxy) -> TensorProxy:
    largest = prims.broadcast_in_dim(prims.amax(a, (1,)), a.shape, (0,))
    e = prims.exp(prims.sub(a, largest))
    return prims.div(e, prims.broadcast_in_dim(prims.sum(e, (1,)), a.shape, (0,)))


add("softmax", [((4, 8), f32)], softmax)

# ---- factories ----

for dtype in (*FLOATS, *INTEGERS, b8, *COMPLEX):
    add(f"full_{short(dtype)}", [], lambda dtype=dtype: prims.full((4, 8), 1, dtype, CUDA))
for dtype in (*FLOATS, *INTEGERS):
    start = 0.25 if dtype.is_floating_point else 1
    add(f"iota_{short(dtype)}", [], lambda dtype=dtype, start=start: prims.iota(5, start, 2, dtype, CUDA))

# ---- order of statements, dead ones, and constants ----

add("seed", [((2, 2), f32)] * 2, lambda a, b: [c := prims.add(a, b), prims.mul(c, b)])
add(
    "order",
    [((4,), f32)] * 2,
    lambda a, b: [prims.mul(c := prims.add(s := prims.cos(b), t := prims.sin(a)), s), t, c, prims.tanh(t)],
)
add("constants", [((4,), f32)], lambda a: [prims.add(a, x) for x in (1e-5, 1 / 3, 123456789.0, 1e20, 7)])
add("infinities", [((4,), f32)], lambda a: [prims.maximum(a, float(x)) for x in ("inf", "-inf", "nan")])
