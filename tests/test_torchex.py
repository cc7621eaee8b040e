"""The torch executor runs every operation and primitive, under autocast off, and changes no argument."""

import pytest
import torch
import torch.nn.functional as F
from recorded import Recorded

import thunder.torch as ltorch
from thunder import extend
from thunder.core import prims
from thunder.executors.torchex import ex, no_autocast
from thunder.torch.language import operations


def test_it_is_a_default_executor():
    assert ex in extend.get_default_executors()
    assert extend.get_executor("torch") is ex


def test_it_runs_every_operation_and_every_primitive():
    assert not [s for s in operations.values() if s not in ex.implementations]
    assert not [s for s in prims.all_prims.values() if s not in ex.implementations and s is not prims.python_del]


def test_symbols_run_when_nothing_is_recorded():
    x = torch.randn(2, 3)
    assert torch.equal(ltorch.add(x, 1), x + 1)
    assert torch.equal(ltorch.linear(x, x), F.linear(x, x))
    assert torch.equal(prims.mul(x, x), x * x)
    assert torch.equal(prims.sum(x, (0,)), x.sum(0))
    assert torch.equal(prims.slice(x, (0, 1), (2, 3), (1, 1)), x[:, 1:])
    assert torch.equal(ltorch.setitem(x, 0, 1.0)[0], torch.ones(3))


OF_TWO = (
    *("add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "div"),
    *("eq", "floor_divide", "fmod", "ge", "gt", "le", "lt", "maximum", "minimum", "mul", "ne", "pow", "remainder"),
    "sub",
)
OF_TWO_TENSORS = {"gcd", "hypot", "nextafter"} | (prims.special_functions.keys() - prims.special_unary.keys())
NUMBERS = {torch.float32: 1.5, torch.bfloat16: 1.5, torch.int64: 2, torch.bool: True, torch.complex64: 1.5 + 1j}


def operands(primitive):
    """Tensors of every dtype that torch takes for `primitive`, and a number to go with each."""
    for dtype, number in NUMBERS.items():
        for x in (torch.tensor([1, 2, 3]).to(dtype), torch.tensor(3).to(dtype)):
            try:
                primitive(x, x)
            except (RuntimeError, NotImplementedError):
                continue
            yield x, number


@pytest.mark.parametrize("name", OF_TWO)
def test_a_number_may_stand_for_either_tensor(name):
    primitive = prims.all_prims[name]
    for x, number in operands(primitive):
        full = torch.full_like(x, number)
        for args, expected in (((number, x), primitive(full, x)), ((x, number), primitive(x, full))):
            recorded = Recorded(primitive, *args)
            (call,) = recorded.trace.bound_symbols
            claimed = call.replaced(symbol=ex.implementation(call) or primitive, subsymbols=())
            run = recorded.trace.derived([claimed], "Transform for execution").python_callable()
            torch.testing.assert_close(primitive(*args), expected)
            torch.testing.assert_close(run(*recorded.inputs), expected)


def test_where_takes_a_number_at_either_place():
    condition = torch.tensor([True, False, True])
    for dtype, number in NUMBERS.items():
        x = torch.tensor([1, 2, 3]).to(dtype)
        full = torch.full_like(x, number)
        torch.testing.assert_close(prims.where(condition, number, x), torch.where(condition, full, x))
        torch.testing.assert_close(prims.where(condition, x, number), torch.where(condition, x, full))


def test_the_other_elementwise_primitives_take_one_tensor():
    x = torch.ones(2)
    for name, primitive in prims.all_prims.items():
        if primitive.meta.__qualname__.startswith("_elementwise.") and name not in {*OF_TWO, *OF_TWO_TENSORS}:
            with pytest.raises(TypeError):
                primitive(x, x)


def test_operations_print_as_the_torch_callables_that_run_them():
    x = torch.ones(2, 3)
    for symbol, args, printed in [
        (ltorch.add, (x, x), "torch.add"),
        (ltorch.linear, (x, x), "torch.nn.functional.linear"),
        (ltorch.view, (x, 6), "torch.Tensor.reshape"),
        (ltorch.setitem, (x, 0, 1.0), "torchex.setitem"),
    ]:
        (bound_symbol,) = Recorded(symbol, *args).trace.bound_symbols
        assert ex.implementation(bound_symbol).id == printed


def test_a_claimed_program_is_a_program():
    recorded = Recorded(lambda x: ltorch.setitem(ltorch.relu(x), 0, 2.0), torch.randn(2, 3))
    claimed = [b.replaced(symbol=ex.implementation(b), subsymbols=()) for b in recorded.trace.bound_symbols]
    trace = recorded.trace.derived(claimed, "Transform for execution")
    assert "torchex.setitem" in str(trace) and "from thunder.executors import torchex" in str(trace)
    torch.testing.assert_close(trace.python_callable()(*recorded.inputs), recorded.run())


@pytest.mark.parametrize("args, kwargs", [((), {"inplace": True}), ((True,), {})])
def test_calls_that_would_change_their_argument_are_not_claimed(args, kwargs):
    (bound_symbol,) = Recorded(ltorch.relu, torch.randn(3), *args, **kwargs).trace.bound_symbols
    assert ex.implementation(bound_symbol) is None
    (bound_symbol,) = Recorded(ltorch.relu, torch.randn(3)).trace.bound_symbols
    assert ex.implementation(bound_symbol) is not None


def test_batch_norm_leaves_the_running_statistics():
    mean, var = torch.zeros(3), torch.ones(3)
    _, new_mean, new_var = ltorch.batch_norm(torch.randn(4, 3), mean, var, None, None, True)
    assert torch.equal(mean, torch.zeros(3)) and torch.equal(var, torch.ones(3))
    assert not torch.equal(new_mean, mean) and not torch.equal(new_var, var)


def test_no_autocast_turns_autocast_off_and_on_again():
    @no_autocast
    def product(a: torch.Tensor) -> torch.dtype:
        return (a @ a).dtype

    x = torch.ones(2, 2)
    assert product(x) == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert product(x) == torch.float32
        assert (x @ x).dtype == torch.bfloat16
        with pytest.raises(ZeroDivisionError):
            no_autocast(lambda: 1 / 0)()
        assert torch.is_autocast_enabled("cpu")


def test_iota_has_the_length_it_is_told():
    for length in (0, 1, 10, 1000):
        assert prims.iota(length, 0.0, 0.1, torch.float32, torch.device("cpu")).shape == (length,)
        assert prims.iota(length, 5, -2, torch.int64, torch.device("cpu")).shape == (length,)
