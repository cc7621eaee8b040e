"""Tells what thunder does while it does it, so that a process that dies in the middle leaves what it saw.

Runs in the worker.
"""

from collections.abc import Callable

from thunder.core.errors import ThunderError
from thunder.core.observing import Observer
from thunder.core.printing import Printer
from thunder.core.symbol import BoundSymbol
from thunder.core.trace import Trace
from thunder_cli.events import Event, Operation, Plain, Progress, Recompiled


class LaterCalls(Observer):
    """For calls after the traced one: tells of each reason to compile the entry again, once."""

    def __init__(self, emit: Callable[[Event], None]):
        self.emit = emit
        self.reasons: set[str] = set()

    def recompiled(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.add(reason)
            self.emit(Recompiled(reason))

    def given_up(self, reason: ThunderError) -> bool:
        self.emit(Plain(reason.what, reason.way_out, str(reason.source) if reason.source else None))
        return True


class Journal(LaterCalls):
    """For the traced call.

    Args:
        emit: takes the events.
        report: called when there are all stages, before they run, which may end the process.
    """

    def __init__(self, emit: Callable[[Event], None], report: Callable[[], None]):
        super().__init__(emit)
        self.compiled = report
        self.count = 0

    def recorded(self, trace: Trace, statement: BoundSymbol) -> None:
        if trace.name == "computation":
            for text in Printer(trace.names).statement(statement):
                self.emit(Operation(text))

    def fused(self, name: str) -> None:
        self.count += 1
        self.emit(Progress(f"compiling fusions: {self.count} done"))
