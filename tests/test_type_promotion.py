"""Type promotion is PyTorch's, for every pair of kinds of operands."""

import itertools

import pytest
import torch
from recorded import Recorded, assert_as_eager

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
