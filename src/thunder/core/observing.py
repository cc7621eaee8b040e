"""Who is told what happens while a program is compiled: the observer of a debugger, or none that cares."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Observer:
    """Is told what thunder does, when it does it. This one takes no interest."""

    def recorded(self, trace: Any, statement: Any) -> None:
        """A statement came to the end of a trace that is being made."""

    def compiled(self) -> None:
        """All stages of a specialization are there; nothing of it has run."""

    def fused(self, name: str) -> None:
        """A fusion has been compiled."""

    def recompiled(self, reason: str) -> None:
        """What is compiled does not hold for a call, for this reason."""

    def given_up(self, reason: Exception) -> bool:
        """A callable is run plainly from now on. Whether the user is told so here, rather than by a warning."""
        return False


class _State(threading.local):
    observer = Observer()


_state = _State()


def current_observer() -> Observer:
    return _state.observer


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Inside, what happens in this thread is told to `observer`."""
    outer, _state.observer = _state.observer, observer
    try:
        yield
    finally:
        _state.observer = outer
