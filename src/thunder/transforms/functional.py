"""Functional transforms of programs: grad, value_and_grad, vjp and jvp.

Each gives a function that is traced where a jitted program calls it, as part of that program, and is jitted where it
is called by itself. They nest.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder.core.differentiability import mark_differentiable
from thunder.core.dtypes import is_inexact
from thunder.core.errors import UnsupportedError
from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.pytree import tree_flatten, tree_map, tree_unflatten
from thunder.core.recording import current_recorder
from thunder.core.symbol import BoundSymbol, map_proxies
from thunder.frontend.autograd_calls import current_tracer
from thunder.transforms.autodiff import pull_back, steps_of
from thunder.transforms.gradients.elementwise import zeros_like
from thunder.transforms.kept_graphs import GraphProxy


def value_and_grad(func: Callable) -> Callable:
    """A function that gives (what `func` returns, the gradients of its positional arguments).

    The gradients are a tuple of the arguments, each with gradients in the place of its floating point tensors (zeros
    where the result does not depend on one) and None in the place of anything else. Those of the elements of a result
    with more than one element are added up.
    """

    def transformed(*args: Any, **kwargs: Any) -> tuple[Any, tuple]:
        value, pull = _linearized(func, args, kwargs)
        return value, pull(tree_map(lambda x: torch.ones_like(x) if _is_inexact(x) else x, value))

    return _traced(transformed, func)


def grad(func: Callable) -> Callable:
    """A function that gives the gradients of the positional arguments of `func`, as `value_and_grad` gives them."""

    def transformed(*args: Any, **kwargs: Any) -> tuple:
        value, pull = _linearized(func, args, kwargs)
        return pull(tree_map(lambda x: torch.ones_like(x) if _is_inexact(x) else x, value))

    return _traced(transformed, func)


def vjp(func: Callable) -> Callable:
    """A function of (primals, cotangents) that gives (func(*primals), the gradients of the primals).

    `cotangents` are as `func` returns: the gradients of its results.
    """

    def transformed(primals: Sequence[Any], cotangents: Any, **kwargs: Any) -> tuple[Any, tuple]:
        value, pull = _linearized(func, tuple(primals), kwargs)
        return value, pull(cotangents)

    return _traced(transformed, func, signature=False)


def jvp(func: Callable) -> Callable:
    """A function of (primals, tangents) that gives (func(*primals), the derivative in the direction of the tangents).

    `tangents` are as the primals. The derivative is computed by differentiating the backward, which is linear.
    """

    def transformed(primals: Sequence[Any], tangents: Sequence[Any], **kwargs: Any) -> tuple[Any, Any]:
        value = func(*primals, **kwargs)
        direction = tree_map(lambda x: torch.zeros_like(x) if _is_inexact(x) else x, value)

        def backward(cotangents: Any) -> tuple:
            return _linearized(func, tuple(primals), kwargs)[1](cotangents)

        _, pull = _linearized(backward, (direction,), {})
        return value, pull(tuple(tangents))[0]

    return _traced(transformed, func, signature=False)


def _is_inexact(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and is_inexact(x.dtype)


def _traced(transformed: Callable, func: Callable, signature: bool = True) -> Callable:
    """`transformed`, jitted where it is not called by a program that is being traced."""
    if signature:
        transformed = functools.wraps(func)(transformed)
    jitted: list[Callable] = []

    @functools.wraps(transformed)
    def call(*args: Any, **kwargs: Any) -> Any:
        if current_tracer() is not None:
            return transformed(*args, **kwargs)
        if not jitted:
            from thunder.jit import jit

            jitted.append(jit(transformed))
        return jitted[0](*args, **kwargs)

    return call


def _linearized(func: Callable, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Callable[[Any], tuple]]:
    """What `func` returns, and the function from gradients of that to those of `args`; both are recorded."""
    tracer, recorder = current_tracer(), current_recorder()
    statements = tracer.trace.bound_symbols
    leaves, spec = tree_flatten(args)
    start = len(statements)
    fresh = {i: x.view_as(x) for i, x in enumerate(leaves) if _is_inexact(x)}
    primals = {i: tracer.handle_of(x).current() for i, x in fresh.items()}
    outer = {p for p in primals.values() if p.requires_grad}
    for p in primals.values():
        p.requires_grad = True
    with torch.enable_grad():
        value = func(*tree_unflatten([fresh.get(i, x) for i, x in enumerate(leaves)], spec), **kwargs)
    outputs = [tracer.handle_of(x).current() if _is_inexact(x) else None for x in tree_flatten(value)[0]]
    recorded = statements[start:]
    statements[start:], steps, renamed = steps_of(recorded, primals.values(), recorder)
    if outer:
        _refuse_graphs(statements[start:])
    _mark_for_outer(recorded, statements[start:], outer)
    tracer.rewritten(start)

    def pull(cotangents: Any) -> tuple:
        with tracer.unobserved(), torch._C.DisableTorchFunction():
            given = tree_flatten(cotangents)[0]
            pairs = [(p, tracer.handle_of(g).current()) for p, g in zip(outputs, given) if p is not None]
            before = len(statements)
            found = map_proxies(pull_back(recorder, steps, pairs), renamed)
            statements[before:] = [s.with_values(renamed) for s in statements[before:]]
            of = {i: found[p] if p in found else zeros_like(p) for i, p in primals.items()}
            tracer.stamp(before, {})
            grads = [tracer.wrap(of[i], None, {}) if i in of else None for i in range(len(leaves))]
        return tree_unflatten(grads, spec)

    return value, pull


def _mark_for_outer(recorded: Sequence[BoundSymbol], statements: Sequence[BoundSymbol], outer: set[Proxy]) -> None:
    """Let `requires_grad` say again what it says around the function: which values that the program differentiates."""
    stopped = {p for s in recorded for p in s.outputs if isinstance(p, TensorProxy) and not p.requires_grad}
    for p in (p for s in statements for p in s.outputs if isinstance(p, TensorProxy)):
        p.requires_grad = p in outer
    if torch.is_grad_enabled():
        for statement in statements:
            mark_differentiable([statement])
            for p in stopped.intersection(statement.outputs):
                p.requires_grad = False


def _refuse_graphs(statements: Sequence[BoundSymbol]) -> None:
    """What torch differentiates once by a graph of its own cannot be differentiated again."""
    for statement in statements:
        if any(isinstance(p, GraphProxy) for p in statement.outputs):
            raise UnsupportedError(
                f"Gradients of gradients go through {statement.symbol.name}, which has no gradient rule.",
                "Differentiate it once, or leave it out of what is differentiated twice.",
                statement.source,
            )
