"""The entry of a job as an object: finding it in its program, and what a call of it is. Runs in the worker."""

import inspect
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch

import thunder
from thunder_cli.errors import CommandError, did_you_mean


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


def plain(x: Any) -> Any:
    """What the program jitted, if `x` is what it got for that; else `x`."""
    return thunder.compile_data(x).fn if is_jitted(x) else x


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


def signature_text(x: Any) -> str:
    try:
        return str(inspect.signature(x))
    except (TypeError, ValueError):
        return "(...)"
