"""What programs bring along, `torch.library` operators and `autograd.Function`s, does what it does in eager."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from gradients import assert_same_gradients
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import thunder

library = torch.library.Library("thunder_tests", "FRAGMENT")


@torch.library.custom_op("thunder_tests::added_to", mutates_args={"x"})
def added_to(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(y)
    return x * 2


@torch.library.custom_op("thunder_tests::only_writes", mutates_args={"x"})
def only_writes(x: torch.Tensor) -> None:
    x.add_(1)


@torch.library.custom_op("thunder_tests::without_fake", mutates_args=())
def without_fake(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@torch.library.custom_op("thunder_tests::several", mutates_args=())
def several(xs: list[torch.Tensor], k: int, y: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    return xs[0] * k + (0 if y is None else y), xs[1].sum(0)


@several.register_fake
def _(xs: list[torch.Tensor], k: int, y: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(xs[0]), xs[1].new_empty(xs[1].shape[1:])


def _several_backward(ctx: Any, g: torch.Tensor, of_sum: torch.Tensor) -> tuple:
    return [g * ctx.k, of_sum.expand(ctx.shape)], None, g if ctx.has_y else None


def _several_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    xs, ctx.k, y = inputs
    ctx.shape, ctx.has_y = xs[1].shape, y is not None


several.register_autograd(_several_backward, setup_context=_several_context)

library.define("turned(Tensor(a) x) -> Tensor(a)")
library.impl("turned", lambda x: x.t(), "CPU")
library.define("on_cpu(Tensor x) -> Tensor")
library.impl("on_cpu", lambda x: x + 5, "CPU")
library.define("composite(Tensor x) -> Tensor")
library.impl("composite", lambda x: (x * x).sin(), "CompositeImplicitAutograd")
library.define("tripled_(Tensor(a!) x) -> Tensor(a!)")
library.impl("tripled_", lambda x: x.mul_(3), "CPU")

ours = torch.ops.thunder_tests


def writes(x):
    y = x * 1
    out = added_to(y, x)
    only_writes(y)
    ours.tripled_(y)
    return y, out


def writes_to_its_argument(x):
    only_writes(x)
    return x * 2


def writes_through_a_view(x):
    y = x * 1
    ours.turned(y)[0] = 5
    return y


@pytest.mark.parametrize(
    "program",
    [
        writes,
        writes_to_its_argument,
        writes_through_a_view,
        lambda x: without_fake(x) + 1,
        lambda x: ours.on_cpu(x) * 2,
        lambda x: several([x, x], 3)[1],
        lambda x: ours.without_fake.default(x),
        lambda x: ours.turned(x),
    ],
)
@pytest.mark.filterwarnings("ignore:.*run plainly")
def test_operators_do_what_they_do_in_eager(program: Callable):
    x, y = (torch.arange(12.0).reshape(3, 4) for _ in range(2))
    jitted = thunder.jit(program)
    for _ in range(2):
        torch.testing.assert_close(jitted(x), program(y))
        torch.testing.assert_close(x, y)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: several([x, y * 2], 3, x),
        lambda x, y: several([x * 2, y], 3, y=x)[0],
        lambda x, y: ours.composite(x * 2) + y,
    ],
)
def test_gradients_of_operators_are_eagers(program: Callable):
    assert_same_gradients(program, *(torch.randn(3, 4, requires_grad=True) for _ in range(2)))


class WithOtherArguments(Function):
    @staticmethod
    def forward(ctx, x, k, name, numbers, flags=None):
        ctx.k = k
        return x * k + numbers[0]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None, None, None, None


class WithoutSome(Function):
    """Of three outputs, one only has gradients."""

    @staticmethod
    def forward(ctx, x):
        positive, shifted = x > 0, x + 1
        ctx.mark_non_differentiable(positive, shifted)
        return x * 2, positive, shifted

    @staticmethod
    def backward(ctx, g, *rest):
        return g * 2


class NoneForNothing(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, of_second):
        assert of_second is None
        return g * 20


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].exp() * 3


class Asking(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        of_x, of_weight = ctx.needs_input_grad
        return g * weight if of_x else None, g * x * (1 + 10 * of_x) if of_weight else None


class InTwoSteps(Function):
    @staticmethod
    def forward(x, k):
        return x * k, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx, g, of_sum):
        return g * ctx.k + of_sum * ctx.saved_tensors[0], None


class WritesItsInput(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


class GivesItsInput(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 5


class Flat(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return g.view(3, 4) * 7


def writes_in_a_function(x, y):
    z = x * 1
    return WritesItsInput.apply(z) * 1, z * y


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: WithOtherArguments.apply(x * y, 3, "name", [1.0], {}),
        lambda x, y: WithOtherArguments.apply(x * 2, y.detach(), "name", [1.0]) * y,
        lambda x, y: (WithoutSome.apply(x * y), x * y),
        lambda x, y: NoneForNothing.apply(x * y)[0],
        lambda x, y: Once.apply(x * y),
        lambda x, y: Asking.apply(x, y),
        lambda x, y: Asking.apply(x.detach(), y) * x,
        lambda x, y: InTwoSteps.apply(x * y, 2),
        lambda x, y: InTwoSteps.apply(x * y, 2)[1],
        lambda x, y: GivesItsInput.apply(x) * y,
        lambda x, y: Flat.apply(x * 1) * y.flatten(),
        writes_in_a_function,
    ],
)
def test_gradients_of_functions_are_eagers(program: Callable):
    assert_same_gradients(program, *(torch.randn(3, 4, requires_grad=True) for _ in range(2)))


def test_hooks_of_saved_tensors_are_eagers():
    def hooked(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t + 1, lambda t: t * 2):
            return x.exp() * x

    x = torch.randn(3, 4, requires_grad=True)
    with pytest.warns(UserWarning, match="run plainly"):
        assert_same_gradients(hooked, x, plain=True)


def test_tensors_may_be_saved_on_the_cpu():
    def saving(x):
        with torch.autograd.graph.save_on_cpu():
            return x.exp() * x

    assert_same_gradients(saving, torch.randn(3, 4, requires_grad=True))
