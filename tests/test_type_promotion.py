"""Type promotion is PyTorch's, for every pair of kinds of operands."""

import itertools
import operator

import pytest
import torch
from recorded import Recorded, assert_as_eager

import thunder
import thunder.torch as ltorch
from thunder import clang
from thunder.clang import Kind
from thunder.core.proxies import TensorProxy
from thunder.executors import torchex  # noqa: F401

DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
)
NUMBERS = (True, 2, 2.5, 2j)
OPERANDS = [torch.ones(2, dtype=d) for d in DTYPES] + [torch.ones((), dtype=d) for d in DTYPES] + list(NUMBERS)


def proxy_of(x):
    if not isinstance(x, torch.Tensor):
        return x
    return TensorProxy("x", shape=x.shape, dtype=x.dtype, device=x.device)


def test_result_type_of_two_operands_is_torchs():
    for a, b in itertools.product(OPERANDS, OPERANDS):
        assert clang.result_type(proxy_of(a), proxy_of(b)) == torch.result_type(a, b), (a, b)


def test_result_type_does_not_depend_on_the_order_of_operands():
    for operands in itertools.combinations([*OPERANDS[::3], *NUMBERS], 3):
        found = {clang.result_type(*map(proxy_of, order)) for order in itertools.permutations(operands)}
        assert len(found) == 1


def test_result_type_honours_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        x = torch.ones(2, dtype=torch.int64)
        assert clang.result_type(proxy_of(x), 2.5) == torch.float64 == torch.result_type(x, 2.5)
        assert clang.promoted_dtype(proxy_of(x), kind=Kind.INT_TO_FLOAT) == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", ["add", "mul", "div", "eq", "maximum", "pow", "remainder", "atan2", "sub"])
def test_binary_operations_promote_as_torch(name):
    function = getattr(torch, name)
    for a, b in itertools.product(OPERANDS, OPERANDS):
        if not isinstance(a, torch.Tensor):
            continue
        try:
            expected = function(a, b)
        except (RuntimeError, TypeError, NotImplementedError):
            continue
        recorded = Recorded(getattr(ltorch, name), a, b)
        assert recorded.trace.output.dtype == expected.dtype, (a, b)
        assert recorded.run_primitives().dtype == expected.dtype, (a, b)


@pytest.mark.parametrize(
    "name", ["abs", "sin", "neg", "isfinite", "logical_not", "sum", "prod", "cumsum", "sign", "exp"]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_unary_operations_and_reductions_give_torchs_dtype(name, dtype):
    x, args = torch.ones(3, dtype=dtype), (0,) if name == "cumsum" else ()
    try:
        expected = getattr(torch, name)(x, *args)
        recorded = Recorded(getattr(ltorch, name), x, *args)
    except (RuntimeError, NotImplementedError):
        return
    assert recorded.trace.output.dtype == expected.dtype
    assert recorded.run_primitives().dtype == expected.dtype


def test_where_promotes_its_values():
    condition = torch.tensor([True, False])
    for a, b in itertools.product(OPERANDS, OPERANDS):
        assert_as_eager(ltorch.where, torch.where, condition, a, b)


def test_numbers_are_recorded_in_the_type_of_the_result():
    recorded = Recorded(ltorch.add, torch.ones(2), 2)
    assert "prims.add(input, 2.0)" in str(recorded.trace)


def test_what_has_the_right_dtype_and_shape_is_not_converted():
    recorded = Recorded(ltorch.add, torch.ones(2, 3), torch.ones(2, 3))
    (add,) = recorded.trace.bound_symbols
    assert [b.symbol.id for b in add.subsymbols] == ["prims.add"]


# ---- every pair of dtypes, through `thunder.jit` ----

ALL_DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint16, torch.uint32, torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2),
)
TENSORS = [torch.tensor([1, 2]).to(d) for d in ALL_DTYPES] + [torch.tensor(2).to(d) for d in ALL_DTYPES]
PAIRS = [(a, b) for a, b in itertools.product([*TENSORS, True, 3, 1.5, 2j], repeat=2) if len({type(a), type(b)}) < 3]
PAIRS = [(a, b) for a, b in PAIRS if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor)]


def in_place(operation):
    return lambda a, b: operation(a.clone(), b)


OPERATIONS = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")},
    **{name: getattr(operator, name) for name in ("eq", "lt", "and_", "or_", "xor", "lshift", "rshift")},
    **{name: in_place(getattr(operator, name)) for name in ("iadd", "imul", "itruediv", "ipow", "iand")},
    **{name: getattr(torch, name) for name in ("maximum", "atan2", "fmod", "hypot", "logical_and", "copysign")},
    **{name: getattr(torch, name) for name in ("result_type", "heaviside", "nextafter", "gcd", "bitwise_and")},
    "where": lambda a, b: torch.where(torch.tensor([True, False]), a, b),
    "cat": lambda a, b: torch.cat([a, b]),
    "stack": lambda a, b: torch.stack([a, b]),
    "addcmul": lambda a, b: torch.addcmul(a, b, b),
    "lerp": lambda a, b: torch.lerp(a, b, 0.5),
    "copy": lambda a, b: a.clone().copy_(b),
    "rounded division": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "matmul": lambda a, b: a @ b,
    "clamp": lambda a, b: torch.clamp(a, min=b),
    "isclose": torch.isclose,
    "masked": lambda a, b: a.clone().masked_fill_(torch.tensor(True), b),
    "assigned": lambda a, b: a.clone().index_fill_(0, torch.tensor([0]), b),
}


def outcome(operation, a, b):
    """What the operation gives, or the error that it raises."""
    try:
        return operation(a, b)
    except Exception as e:
        return e


def described(x):
    return f"{x.dtype}{list(x.shape)} {x.tolist()}" if isinstance(x, torch.Tensor) else repr(x)


def is_same(a, b):
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return a == b
    wide = [x.to(torch.complex128) if x.dtype.itemsize < 16 else x for x in (a, b)]
    return a.dtype == b.dtype and a.shape == b.shape and torch.allclose(*wide, rtol=1e-2, equal_nan=True)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_pair_of_dtypes_numbers_and_scalars_is_as_eager(name):
    operation = OPERATIONS[name]
    eager = [(a, b, outcome(operation, a, b)) for a, b in PAIRS]
    given = [x for x in eager if not isinstance(x[2], Exception)]
    jitted = thunder.jit(lambda pairs: [operation(a, b) for a, b in pairs])
    found = jitted([(a, b) for a, b, _ in given])
    assert thunder.compile_stats(jitted).plain is None
    different = [
        f"{described(a)}, {described(b)}: {described(f)}, eager {described(e)}"
        for (a, b, e), f in zip(given, found, strict=True)
        if not is_same(f, e)
    ]
    refused = [x for x in eager if isinstance(x[2], Exception)]
    for a, b, error in refused[:: len(refused) // 25 + 1]:
        found = outcome(thunder.jit(operation), a, b)
        if type(found) is not type(error):
            different.append(f"{described(a)}, {described(b)}: {found!r}, eager {error!r}")
    assert different == []
