"""Tells of each operation while it is recorded, so that a process that dies in the middle leaves what it saw.

Runs in the worker.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import thunder.core.trace
from thunder.core.printing import Printer
from thunder.core.symbol import Symbol
from thunder.core.trace import TraceRecorder
from thunder_cli.events import Event, Operation


@contextmanager
def journal(emit: Callable[[Event], None]) -> Iterator[None]:
    """Inside, what is recorded into a computation is told to `emit`."""

    class Journal(TraceRecorder):
        def call(self, symbol: Symbol, args: tuple, kwargs: dict[str, Any]) -> Any:
            before = len(self.trace.bound_symbols)
            output = super().call(symbol, args, kwargs)
            if self.trace.name == "computation" and len(self.trace.bound_symbols) > before:
                for text in Printer(self.trace.names).statement(self.trace.bound_symbols[-1]):
                    emit(Operation(text))
            return output

    original, thunder.core.trace.TraceRecorder = thunder.core.trace.TraceRecorder, Journal
    try:
        yield
    finally:
        thunder.core.trace.TraceRecorder = original
