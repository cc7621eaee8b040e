"""Values while tracing: what is recorded is run on the real inputs as far as a decision of the program needs it.

A trace has no effects before its epilogue, so this changes nothing that the program could see.
"""

from collections.abc import Callable
from typing import Any

import torch

from thunder.core.errors import NotRepresentable
from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.recording import recording
from thunder.core.symbol import BoundSymbol, Tag, map_proxies
from thunder.core.trace import Trace
from thunder.frontend.torch_state import without_autocast


class Evaluation:
    """The values of a trace that is being recorded.

    Args:
        real_input: gives the real tensor of a proxy that is an input.
    """

    def __init__(self, trace: Trace, real_input: Callable[[Proxy], torch.Tensor | None]):
        self.trace, self.real_input = trace, real_input
        self.values: dict[Proxy, Any] = {}
        self.constants: set[Proxy] = set()  # of the values, those that are the same at every call
        self.producers: dict[Proxy, BoundSymbol] = {}
        self.seen = 0

    def value_of(self, proxy: TensorProxy) -> torch.Tensor:
        """The tensor that `proxy` is in this call."""
        self.note_producers()
        for statement in self.missing(proxy):
            self.run(statement)
        if proxy not in self.values:
            self.values[proxy] = self.real_input(proxy)
        return self.values[proxy]

    def is_constant(self, proxy: TensorProxy) -> bool:
        """Whether the value, which has been asked for, is the same at every call."""
        return proxy in self.constants

    def bind(self, output: Any, result: Any, constant: bool = False) -> None:
        """`result` is what `output` is in this call."""
        if isinstance(output, Proxy):
            self.values[output] = result
            if constant:
                self.constants.add(output)
        elif isinstance(output, tuple | list):
            for o, r in zip(output, result):
                self.bind(o, r, constant)

    def note_producers(self) -> None:
        statements = self.trace.bound_symbols
        for statement in statements[self.seen :]:
            self.producers.update(dict.fromkeys(statement.outputs, statement))
        self.seen = len(statements)

    def missing(self, proxy: TensorProxy) -> list[BoundSymbol]:
        """The statements that must be run to know `proxy`, in order."""
        order: dict[int, BoundSymbol] = {}
        pending: list[tuple[Proxy, bool]] = [(proxy, False)]
        while pending:
            p, ready = pending.pop()
            statement = self.producers.get(p)
            if statement is None or p in self.values or id(statement) in order:
                continue
            if ready:
                order[id(statement)] = statement
                continue
            pending.append((p, True))
            pending.extend((x, False) for x in statement.inputs)
        return list(order.values())

    def run(self, statement: BoundSymbol) -> None:
        if any(Tag.RANDOM in leaf.symbol.tags for leaf in statement.leaves()):
            raise NotRepresentable(
                "The program decides by a random number that it draws itself.",
                "Draw it outside of the jitted function.",
                statement.source,
            )
        for p in statement.inputs:
            if p not in self.values:
                self.values[p] = self.real_input(p)
        args, kwargs = map_proxies((statement.args, statement.kwargs), self.values)
        with recording(None), torch.no_grad(), without_autocast():
            result = statement.symbol(*args, **kwargs)
        self.bind(statement.output, result, all(p in self.constants for p in statement.inputs))
