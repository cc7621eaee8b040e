"""Values that are known while tracing: those computed from constants alone."""

from typing import Any

import torch

from thunder.core.proxies import Proxy
from thunder.core.recording import recording
from thunder.core.symbol import BoundSymbol, map_proxies
from thunder.core.trace import Trace


def known_value(trace: Trace, value: Proxy) -> torch.Tensor | None:
    """The tensor that `value` is at every call; None if it depends on an input or on random numbers."""
    needed = _computation_of(trace, value)
    if needed is None:
        return None
    environment: dict[Proxy, Any] = {}
    with recording(None):
        for statement in needed:
            args, kwargs = map_proxies((statement.args, statement.kwargs), environment)
            _bind(statement.output, statement.symbol(*args, **kwargs), environment)
    return environment[value]


def _computation_of(trace: Trace, value: Proxy) -> list[BoundSymbol] | None:
    """The statements that compute `value`, if they need nothing from outside."""
    wanted, statements = {value}, []
    for statement in reversed(trace.bound_symbols):
        if wanted.isdisjoint(statement.outputs):
            continue
        if statement.has_effect:
            return None
        wanted.difference_update(statement.outputs)
        wanted.update(statement.inputs)
        statements.append(statement)
    return None if wanted else statements[::-1]


def _bind(output: Any, result: Any, environment: dict[Proxy, Any]) -> None:
    if isinstance(output, Proxy):
        environment[output] = result
    elif isinstance(output, tuple | list):
        for o, r in zip(output, result):
            _bind(o, r, environment)
