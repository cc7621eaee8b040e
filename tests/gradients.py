"""Compares the gradients of a jitted program with eager's, and every stage of its backward with both."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

import thunder
from thunder.core.proxies import Proxy
from thunder.core.trace import Trace


def tensors_of(tree: Any) -> list[torch.Tensor]:
    return [x for x in tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]


def copied(tree: Any) -> Any:
    """The same arguments with leaves of their own."""
    return tree_map(
        lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x, tree
    )


def differentiated(program: Callable, args: tuple, seed: int = 0) -> tuple[list[torch.Tensor], list[Any], list[bool]]:
    """The outputs of a call, the gradients of its arguments for random ones of the outputs, who requires gradients."""
    args = copied(args)
    torch.manual_seed(seed)
    outputs = tensors_of(program(*args))
    inputs = [x for x in tensors_of(args) if x.requires_grad]
    differentiable = [x for x in outputs if x.requires_grad]
    generator = torch.Generator().manual_seed(seed)
    grads = [torch.rand(x.shape, generator=generator, dtype=torch.float64).to(x.dtype) for x in differentiable]
    found = torch.autograd.grad(differentiable, inputs, grads, allow_unused=True) if differentiable else []
    return [x.detach() for x in outputs], list(found), [x.requires_grad for x in outputs]


def assert_same_gradients(program: Callable, *args: Any, plain: bool = False, **tolerance: float) -> Callable:
    """Jitted, `program` gives eager's outputs and gradients. Gives the jitted program.

    Args:
        plain: whether it is expected to be run plainly.
    """
    jitted = thunder.jit(program)
    expected = differentiated(program, args)
    for _ in range(2):
        actual = differentiated(jitted, args)
        torch.testing.assert_close(actual[0], expected[0], equal_nan=True, **tolerance)
        assert actual[2] == expected[2], "other outputs require gradients than eager's"
        assert [g is None for g in actual[1]] == [g is None for g in expected[1]]
        for g, e in zip(actual[1], expected[1]):
            if e is not None:
                torch.testing.assert_close(g, e, equal_nan=True, check_stride=False, **tolerance)
    assert (thunder.compile_stats(jitted).plain is not None) == plain
    return jitted


def run_by_name(trace: Trace, values: dict[str, Any]) -> Any:
    """What a stage returns, for values by the names of its arguments."""
    return trace.python_callable()(*[values[p.name] for p in trace.args])


def bound(output: Any, result: Any, values: dict[str, Any]) -> dict[str, Any]:
    """`values`, and what the names of a stage's output stand for in its result."""
    if isinstance(output, Proxy):
        values[output.name] = result
    elif isinstance(output, tuple | list):
        for o, r in zip(output, result):
            bound(o, r, values)
    return values


def stage_gradients(jitted: Callable, inputs: list[torch.Tensor], grads: dict[str, torch.Tensor]) -> list[list[Any]]:
    """The gradients of the inputs by every stage of the forward that saves values with every stage of the backward.

    Args:
        grads: the gradients that come to the outputs, by the names that the backward calls them.
    """
    traces, found = thunder.last_traces(jitted), []
    first = next(i for i, t in enumerate(traces) if t.constructed_by == "Augmented forward")
    for forward in traces[first:]:
        given = dict(zip([p.name for p in forward.args], inputs))
        values = bound(forward.output, run_by_name(forward, given), given)
        for backward in thunder.last_backward_traces(jitted):
            found.append(run_by_name(backward, {**values, **grads}))
    return found
