"""The entry of a job as an object, and the watch for the program's first call of it. Runs in the worker."""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import torch

import thunder
from thunder.frontend.provenance import call_site
from thunder_cli.errors import CommandError, did_you_mean

_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: attributes of the type cannot be set


@dataclass
class Call:
    """A call of the entry.

    Attributes:
        subject: what is traced: a function, a bound method or a module.
        method: the method of `subject` that is called, where that is not `subject` itself: a module is traced as a
            whole, so that its parameters have names, also when its `forward` is the entry.
        origin: where the inputs come from.
    """

    subject: Any
    args: tuple
    kwargs: dict[str, Any]
    origin: str
    method: str | None = None

    def run(self) -> Any:
        """Call it as the program would."""
        return (getattr(self.subject, self.method) if self.method else self.subject)(*self.args, **self.kwargs)


def is_jitted(x: Any) -> bool:
    """Whether the program made `x` with `thunder.jit`."""
    try:
        thunder.compile_data(x)
    except TypeError:
        return False
    return True


def is_function(x: Any) -> bool:
    """Whether `x` is called as a function is: no class, no method, no object of a class whose calls can be watched."""
    return callable(x) and not isinstance(x, type | MethodType) and bool(type(x).__flags__ & _IMMUTABLE_TYPE)


def compiled_of(jitted: Any) -> Any:
    """What compiles when `jitted` is called: the function itself, or a part of the module."""
    return getattr(jitted, "_compiled", jitted)


def resolve(value: Any, path: list[str], name: str) -> Any:
    """`value.a.b` for the path a, b."""
    for i, part in enumerate(path):
        if not hasattr(value, part):
            owner = ".".join([name, *path[:i]])
            names = [n for n in dir(value) if not n.startswith("_") and callable(getattr(value, n, None))]
            raise CommandError(f"{owner} has no {part}.{did_you_mean(part, names)}")
        value = getattr(value, part)
    return value


def is_method(owner: Any, name: str) -> bool:
    """Whether `owner` is a class and `name` a method of its objects."""
    return isinstance(owner, type) and isinstance(inspect.getattr_static(owner, name), FunctionType)


class Watch:
    """Finds the program's first call of the entry.

    Args:
        name, path: the global name, and the attributes from it to the entry.
        handle: called with that first call instead of the entry; what it returns is what the program gets.
    """

    def __init__(self, name: str, path: list[str], handle: Callable[[Call], Any]):
        self.name, self.path, self.handle = name, path, handle
        self.done = False
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
        self.entry = entry
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
                return function(*args, **kwargs)
            return self.first_call(function, args, kwargs)

        stand_in.__thunder_entry__ = function
        return stand_in

    def watch_jitted(self, jitted: Callable) -> None:
        """Watch the calls of what `thunder.jit` gave; it is traced as it is."""
        compiled = compiled_of(jitted)

        @functools.wraps(type(compiled).__call__)
        def stand_in(called: Any, *args: Any, **kwargs: Any) -> Any:
            if self.done or called is not compiled:
                return original(called, *args, **kwargs)
            return self.first_call(jitted, args, kwargs)

        original = type(compiled).__call__
        self.replace(type(compiled), "__call__", stand_in)

    @contextmanager
    def jit_calls(self) -> Iterator[None]:
        """Inside, a program that jits the entry jits the entry itself, and calls of that are watched as well."""
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

    def is_entry(self, x: Any) -> bool:
        return hasattr(x, "__thunder_entry__") or (self.entry is not None and x is self.entry)

    def watch_method(self, cls: type, name: str, accepts: Callable[[Any], bool]) -> None:
        """Watch the calls of a method on the objects that `accepts` allows."""
        function = getattr(cls, name)

        @functools.wraps(function)
        def stand_in(instance: Any, /, *args: Any, **kwargs: Any) -> Any:
            if self.done or not accepts(instance):
                return function(instance, *args, **kwargs)
            if name == "__call__":
                return self.first_call(instance, args, kwargs)
            if name == "forward" and isinstance(instance, torch.nn.Module):
                return self.first_call(instance, args, kwargs, method=name)
            return self.first_call(MethodType(function, instance), args, kwargs)

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
        return self.handle(Call(subject, args, kwargs, origin, method))


def entry_object(namespace: dict[str, Any], name: str, path: list[str]) -> tuple[Any, str | None]:
    """What to trace when nothing calls it: the subject and the method of a `Call`."""
    entry = resolve(namespace[name], path, name)
    entry = getattr(entry, "__thunder_entry__", entry)
    full = ".".join([name, *path])
    method = None
    if isinstance(entry, type):
        entry = instance(entry, full)
    elif path and is_method(owner := resolve(namespace[name], path[:-1], name), path[-1]):
        made = instance(owner, ".".join([name, *path[:-1]]))
        whole = path[-1] == "forward" and isinstance(made, torch.nn.Module)
        entry, method = (made, "forward") if whole else (getattr(made, path[-1]), None)
    if not callable(entry):
        methods = [f"{full}.{m}" for m, x in vars(type(entry)).items() if m[0] != "_" and isinstance(x, FunctionType)]
        way_out = f"Name a method: {', '.join(methods)}." if methods else "Name a function or an nn.Module."
        raise CommandError(f"{full} is of type {type(entry).__name__}, which cannot be called.\n{way_out}")
    return entry, method


def instance(cls: type, name: str) -> Any:
    """An object of `cls` to call, if that needs no arguments."""
    try:
        inspect.signature(cls).bind()
    except (TypeError, ValueError):
        raise CommandError(
            f"{name} is a class that needs arguments to be made: {name}{signature_text(cls)}.\n"
            "Name an instance of it instead, or let the script make one and call it."
        ) from None
    return cls()


def signature_of(call_subject: Any, method: str | None) -> inspect.Signature | None:
    """What the entry takes; None if Python cannot tell."""
    if isinstance(call_subject, torch.nn.Module) and method is None:
        call_subject = call_subject.forward
    try:
        return inspect.signature(getattr(call_subject, method) if method else call_subject)
    except (TypeError, ValueError):
        return None


def signature_text(x: Any) -> str:
    try:
        return str(inspect.signature(x))
    except (TypeError, ValueError):
        return "(...)"


def definition_line(subject: Any) -> str:
    """`quickstart.py:3  def foo(a, b):`, or nothing if there is no source."""
    function = subject.forward if isinstance(subject, torch.nn.Module) else subject
    function = inspect.unwrap(getattr(function, "__func__", function))
    try:
        lines, start = inspect.getsourcelines(function)
        path = os.path.basename(inspect.getsourcefile(function))
    except (TypeError, OSError):
        return ""
    offset = next((i for i, line in enumerate(lines) if line.lstrip().startswith(("def ", "async def ", "class "))), 0)
    return f"  {path}:{start + offset}  {lines[offset].strip()}\n"
