"""The watch for the program's calls of the entry, however the program reaches it. Runs in the worker."""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import MethodType
from typing import Any

import torch

import thunder
from thunder.frontend.provenance import call_site
from thunder_cli.entry import Call, compiled_of, is_jitted, is_method, resolve
from thunder_cli.errors import CommandError

_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: attributes of the type cannot be set


def is_function(x: Any) -> bool:
    """Whether `x` is called as a function is: no class, no method, no object of a class whose calls can be watched."""
    return callable(x) and not isinstance(x, type | MethodType) and bool(type(x).__flags__ & _IMMUTABLE_TYPE)


FOLLOWED = 32  # calls after the first, so that a program that makes many is not slowed down


class Watch:
    """Finds the program's first call of the entry, and some after it.

    Args:
        name, path: the global name, and the attributes from it to the entry.
        handle: called with that first call instead of the entry; what it returns is what the program gets.
        later: entered around a later call of the entry.
    """

    def __init__(
        self,
        name: str,
        path: list[str],
        handle: Callable[[Call], Any],
        later: Callable[[Call], AbstractContextManager[None]] = nullcontext,
    ):
        self.name, self.path, self.handle, self.later = name, path, handle, later
        self.done = False
        self.left = 0  # how many later calls are followed yet
        self.entry_owner: Any = None
        self.entry: Any = None
        self.undo: list[Callable[[], None]] = []

    def bound(self, value: Any) -> Any:
        """The program binds `value` to the name: watch the entry in it. Returns what to bind."""
        if self.done:
            return value
        self.unwatch()
        if not self.path and is_function(value):
            return self.watched_function(value)
        try:
            owner = resolve(value, self.path[:-1], self.name)
            entry = resolve(owner, self.path[-1:], self.name) if self.path else value
        except CommandError:  # may come later; if not, the end of the program will tell
            return value
        self.entry, self.entry_owner = entry, owner
        self.watch_attribute(owner, entry)
        return value

    def watch_attribute(self, owner: Any, entry: Any) -> None:
        """Watch an entry that is reached through `owner` or its class."""
        if is_jitted(entry):
            self.watch_jitted(entry)
        elif isinstance(entry, MethodType) and not isinstance(entry.__self__, type):
            self.watch_method(type(entry.__self__), entry.__name__, lambda x: x is entry.__self__)
        elif isinstance(entry, type):
            if issubclass(entry, torch.nn.Module):
                self.watch_method(entry, "__call__", lambda x: True)
        elif self.path and is_method(owner, self.path[-1]):
            self.watch_method(owner, self.path[-1], lambda x: True)
        elif self.path and is_function(entry):
            self.replace(owner, self.path[-1], self.watched_function(entry))
        elif callable(entry):
            self.watch_method(type(entry), "__call__", lambda x: x is entry)

    def watched_function(self, function: Callable) -> Callable:
        """A stand-in for `function` that hands on the first call."""

        @functools.wraps(function)
        def stand_in(*args: Any, **kwargs: Any) -> Any:
            if self.done:
                return self.later_call(function, Call(function, args, kwargs, ""))
            return self.first_call(function, args, kwargs)

        stand_in.__thunder_entry__ = function
        return stand_in

    def watch_jitted(self, jitted: Callable) -> None:
        """Watch the calls of what `thunder.jit` gave; it is traced as it is."""
        compiled = compiled_of(jitted)

        @functools.wraps(type(compiled).__call__)
        def stand_in(called: Any, *args: Any, **kwargs: Any) -> Any:
            if called is not compiled:
                return original(called, *args, **kwargs)
            if self.done:
                return self.later_call(partial(original, called), Call(jitted, args, kwargs, ""))
            return self.first_call(jitted, args, kwargs)

        original = type(compiled).__call__
        self.replace(type(compiled), "__call__", stand_in)

    @contextmanager
    def jit_calls(self) -> Iterator[None]:
        """Inside, a program that jits the entry jits the entry itself, and calls of that are watched as well.

        After it, nothing is watched.
        """
        original = thunder.jit

        @functools.wraps(original)
        def jit(fn: Any = None, /, **options: Any) -> Any:
            if fn is None:
                return functools.partial(jit, **options)
            jitted = original(getattr(fn, "__thunder_entry__", fn), **options)
            if not self.done and self.is_entry(fn):
                self.watch_jitted(jitted)
            return jitted

        thunder.jit = jit
        try:
            yield
        finally:
            thunder.jit = original
            self.unwatch()

    def is_entry(self, x: Any) -> bool:
        return hasattr(x, "__thunder_entry__") or (self.entry is not None and x is self.entry)

    def watch_method(self, cls: type, name: str, accepts: Callable[[Any], bool]) -> None:
        """Watch the calls of a method on the objects that `accepts` allows."""
        function = getattr(cls, name)

        @functools.wraps(function)
        def stand_in(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not accepts(instance):
                return function(instance, *args, **kwargs)
            is_forward = name == "forward" and isinstance(instance, torch.nn.Module)
            subject = instance if name == "__call__" or is_forward else MethodType(function, instance)
            method = name if is_forward else None
            if self.done:
                return self.later_call(partial(function, instance), Call(subject, args, kwargs, "", method))
            return self.first_call(subject, args, kwargs, method)

        self.replace(cls, name, stand_in)

    def replace(self, owner: Any, name: str, stand_in: Any) -> None:
        """Put `stand_in` in the place of an attribute until the watch is done."""
        own = vars(owner).get(name)
        if isinstance(own, staticmethod):
            stand_in = staticmethod(stand_in)
        setattr(owner, name, stand_in)
        self.undo.append((lambda: delattr(owner, name)) if own is None else (lambda: setattr(owner, name, own)))

    def unwatch(self) -> None:
        while self.undo:
            self.undo.pop()()

    def first_call(self, subject: Any, args: tuple, kwargs: dict[str, Any], method: str | None = None) -> Any:
        self.done = True
        self.unwatch()
        line = call_site(sys._getframe(2)).source
        origin = f"the script's own call, {line.path}:{line.line}" if line else "the script's own call"
        result = self.handle(Call(subject, args, kwargs, origin, method))
        self.left = FOLLOWED
        if is_jitted(subject):
            self.watch_jitted(subject)
        elif self.entry is not None:
            self.watch_attribute(self.entry_owner, self.entry)
        return result

    def later_call(self, function: Callable, call: Call) -> Any:
        """Run a later call of the entry by `function`, followed if there are not too many."""
        if not self.left:
            return function(*call.args, **call.kwargs)
        self.left -= 1
        if not self.left:
            self.unwatch()
        left, self.left = self.left, 0  # none that it makes itself
        try:
            with self.later(call):
                return function(*call.args, **call.kwargs)
        finally:
            self.left = left
