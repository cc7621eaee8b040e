"""Which recorder, if any, the current thread's calls of symbols go to."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Recorder(Protocol):
    """What a symbol hands its calls to while a trace is made.

    `calls_of_program` takes those calls that the traced program itself makes.
    """

    calls_of_program: Callable[[Any, tuple, dict[str, Any]], Any] | None

    def call(self, symbol: Any, args: tuple, kwargs: dict[str, Any]) -> Any: ...


class _State(threading.local):
    recorder: Recorder | None = None


_state = _State()


def current_recorder() -> Recorder | None:
    return _state.recorder


@contextmanager
def recording(recorder: Recorder | None) -> Iterator[None]:
    """Calls of symbols in this thread go to `recorder` (or are run, if None) inside the context."""
    outer, _state.recorder = _state.recorder, recorder
    try:
        yield
    finally:
        _state.recorder = outer
