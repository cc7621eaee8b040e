"""Operators of one's own: called by programs, run in place of torch's, and replacing torch's callables by name."""

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F

import thunder
import thunder.torch as ltorch
from thunder.core.trace import tensor
from thunder.extend import OperatorExecutor, get_default_executors
from thunder.torch import torch_functions
from thunder.torch.language import find

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def executor() -> OperatorExecutor:
    return OperatorExecutor("of_the_tests")


@pytest.fixture
def restored() -> Iterator[None]:
    """torch's callables are as they were afterwards."""
    before = dict(torch_functions)
    yield
    torch_functions.clear()
    torch_functions.update(before)


def final_operations(jitted) -> list[str]:
    return [s.symbol.id for s in thunder.last_traces(jitted)[-1].bound_symbols if s.symbol.name != "python_del"]


def test_a_program_calls_an_operator(executor):
    scaled = executor.register_operator("scaled", meta=lambda a, by: tensor(a), fn=lambda a, by: a * by)

    def program(a):
        b = a + 1
        b.mul_(2)
        return scaled(b, 3.0) - scaled(a, by=2.0)

    jitted = thunder.jit(program, executors=[executor, *get_default_executors()])
    for _ in range(2):
        torch.testing.assert_close(jitted(X), program(X))
    assert final_operations(jitted).count("scaled") == 2
    source = thunder.last_traces(jitted)[0].bound_symbols[-1].source
    assert source.text.strip().startswith("return scaled(b")


def test_a_program_that_calls_an_operator_is_differentiated(executor):
    cubed = executor.register_operator("cubed", meta=lambda a: tensor(a), fn=lambda a: a**3)
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    thunder.jit(lambda a: (cubed(a * 2) + a).sum())(x).backward()
    ((y * 2) ** 3 + y).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_an_operator_that_torch_cannot_differentiate_stops_gradients_as_in_eager(executor):
    def run(a):
        return torch.from_numpy(a.detach().numpy() * 3)

    tripled = executor.register_operator("tripled", meta=lambda a: tensor(a), fn=run)
    x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
    thunder.jit(lambda a: (tripled(a) * a).sum())(x).backward()
    (run(y) * y).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_a_program_calls_operations_of_the_languages_by_their_symbols():
    def program(a):
        return ltorch.softmax(ltorch.add(a, torch.ones(4)), -1)

    jitted = thunder.jit(program)
    torch.testing.assert_close(jitted(X), torch.softmax(X + 1, -1))


def test_an_operation_with_arguments_that_its_rule_does_not_cover_is_recorded_as_an_opaque_call():
    weight, index = torch.randn(5, 3), torch.tensor([1, 4])
    program = lambda index, weight: ltorch.embedding(index, weight, scale_grad_by_freq=True)  # noqa: E731
    torch.testing.assert_close(thunder.jit(program)(index, weight), weight[index])


@pytest.mark.parametrize("symbol", [ltorch.softmax, "torch.nn.functional.softmax", "torch.softmax"])
def test_an_implementation_runs_an_operation_where_its_checker_allows(executor, symbol):
    calls = []

    def run(a, dim=None, **kwargs):
        calls.append(dim)
        return torch.softmax(a, dim)

    mine = executor.register_operator("mine", like=ltorch.softmax, fn=run)
    executor.register_implementation(symbol, mine, checker=lambda a, dim=None, **kwargs: dim == 1)
    jitted = thunder.jit(
        lambda a: (F.softmax(a, dim=1), F.softmax(a, dim=0)), executors=[executor, *get_default_executors()]
    )
    for actual, expected in zip(jitted(X), (F.softmax(X, 1), F.softmax(X, 0))):
        torch.testing.assert_close(actual, expected)
    assert calls == [1]
    assert final_operations(jitted) == ["mine", "torch.nn.functional.softmax"]


@pytest.mark.parametrize("replaced", ["torch.special.bessel_j0", torch.special.bessel_j0])
@pytest.mark.usefixtures("restored")
def test_an_operator_replaces_a_torch_callable(executor, replaced):
    executor.register_operator("half", meta=lambda a: tensor(a), fn=lambda a: a / 2, replaces=replaced)
    jitted = thunder.jit(lambda a: torch.special.bessel_j0(a) + 1)
    torch.testing.assert_close(jitted(X), X / 2 + 1)


def test_names_that_torch_has_not_are_refused(executor):
    mine = executor.register_operator("mine", like=ltorch.add, fn=torch.add)
    with pytest.raises(ValueError, match=r"torch has no torch\.nn\.functional\.sofmax"):
        executor.register_implementation("torch.nn.functional.sofmax", mine)
    with pytest.raises(ValueError, match="recorded as no operation of its own"):
        executor.register_implementation("torch.linalg.svd", mine)
    with pytest.raises(ValueError, match="either like= or meta="):
        executor.register_operator("mine", fn=torch.add)
    with pytest.raises(ValueError, match="no name that a trace could print"):
        executor.register_operator("my add", like=ltorch.add, fn=torch.add)
    with pytest.raises(TypeError, match="is no operator"):
        executor.register_implementation(ltorch.add, torch.add)
    with pytest.raises(TypeError, match="executors are"):
        thunder.jit(torch.add, executors=[5])


OF_TORCH = {
    "nn.functional.layer_norm": lambda x: F.layer_norm(x, (4,)),
    "nn.functional.gelu": F.gelu,
    "nn.functional.cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 2, 1])),
    "nn.functional.scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(
        x[None, None], x[None, None], x[None, None]
    ),
}


@pytest.mark.parametrize("name", OF_TORCH)
def test_an_implementation_runs_the_forward_of_what_is_differentiated(executor, name):
    calls = []
    function = find(name)

    def run(*args, **kwargs):
        calls.append(name)
        return function(*args, **kwargs)

    symbol = torch_functions[function]
    executor.register_implementation(symbol, executor.register_operator("mine", like=symbol, fn=run))
    x, y = (X.double().requires_grad_() for _ in range(2))
    jitted = thunder.jit(lambda x: OF_TORCH[name](x * 2).square().sum(), executors=[executor])
    jitted(x).backward()
    OF_TORCH[name](y * 2).square().sum().backward()
    assert calls == [name]
    torch.testing.assert_close(x.grad, y.grad)
