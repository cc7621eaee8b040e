"""grad, value_and_grad, vjp and jvp give what torch.func gives."""

import pytest
import torch
import torch.nn.functional as F

import thunder
from thunder.core.transforms import value_and_grad


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def program(x, w):
    return (F.gelu(x @ w) * x.sum()).mean()


X, W = torch.randn(3, 3, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64)


@pytest.mark.parametrize("wrap", [thunder.jit, lambda f: f], ids=["jitted", "by itself"])
def test_value_and_gradients(wrap):
    value, grads = wrap(value_and_grad(program))(X, W)
    torch.testing.assert_close(value, program(X, W))
    torch.testing.assert_close(grads, torch.func.grad(program, argnums=(0, 1))(X, W))
    torch.testing.assert_close(wrap(thunder.grad(program))(X, W), grads)


def test_gradients_of_containers_and_of_results_with_many_elements():
    def of_dict(d, n):
        return d["a"] * d["b"][0] * n

    ones = torch.ones(2)
    (of_d, of_n) = thunder.grad(of_dict)({"a": ones, "b": [ones * 3], "c": torch.ones(1)}, 2)
    assert of_n is None
    torch.testing.assert_close(of_d, {"a": ones * 6, "b": [ones * 2], "c": torch.zeros(1)})


def test_gradients_of_gradients():
    def cubed(x):
        return (x.sin() ** 3).sum()

    def squared_slope(x):
        return (thunder.grad(cubed)(x)[0] ** 2).sum()

    def eagers(x):
        return (torch.func.grad(cubed)(x) ** 2).sum()

    torch.testing.assert_close(thunder.jit(thunder.grad(squared_slope))(X)[0], torch.func.grad(eagers)(X))
    x = X.clone().requires_grad_()
    thunder.jit(squared_slope)(x).backward()
    torch.testing.assert_close(x.grad, torch.func.grad(eagers)(X))


def test_gradients_of_gradients_without_a_rule_are_refused_by_name():
    def program(x):
        return torch.special.i0(x).sum()

    nested = thunder.jit(thunder.grad(lambda x: thunder.grad(program)(x)[0].sum()))
    with pytest.raises(NotImplementedError, match="Gradients of gradients go through"):
        nested(X)


def test_vjp_and_jvp():
    def two(x, w):
        return x @ w, x.sin()

    cotangents = torch.randn(3, 3, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64)
    value, grads = thunder.jit(thunder.vjp(two))((X, W), cotangents)
    expected, pull = torch.func.vjp(two, X, W)
    torch.testing.assert_close((value, grads), (expected, pull(cotangents)))
    torch.testing.assert_close(thunder.jvp(two)((X, W), cotangents), torch.func.jvp(two, (X, W), cotangents))


def test_without_gradients_inside_stays_without():
    def program(x):
        with torch.no_grad():
            y = x.sin()
        return (x * y).sum()

    torch.testing.assert_close(thunder.grad(program)(X)[0], X.sin())
