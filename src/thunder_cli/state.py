"""What a call may change besides its arguments: globals and closures of the entry, and what these hold. In the worker.

A traced call and its eager reference must each find the same there, and the program must see one change, not two.
"""

from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from thunder_cli.entry import plain

LIMIT = 100_000  # objects that are looked at
OPAQUE = (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)
KNOWN_OF_TORCH = (torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)
SCALARS = (bool, int, float, complex, str, bytes, type(None))


class State:
    """The state that `subject` reaches by name, as it is now; what is reached from `given` is not part of it.

    Args:
        subject: the entry: a function, a method, or a module.
        given: arguments and the like, which are copied for the reference instead.
    """

    def __init__(self, subject: Any, given: Any):
        self.seen: dict[int, Any] = {}
        self.stores: list[tuple[str, Any, Any]] = []  # name, the live object, what it held
        self.tensors: list[tuple[str, torch.Tensor, torch.Tensor]] = []
        self.walk("", (given, getattr(subject, "__self__", None)), kept=False)
        for function in functions(subject):
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                self.walk(name, cell, kept=True)
            self.walk("global", function.__globals__, kept=True)

    def walk(self, name: str, root: Any, *, kept: bool) -> None:
        waiting = [(name, root)]
        while waiting and len(self.seen) < LIMIT:
            name, x = waiting.pop()
            if id(x) in self.seen or isinstance(x, (*SCALARS, *OPAQUE)):
                continue
            self.seen[id(x)] = x  # keeps it, and so its address
            if isinstance(x, torch.Tensor):
                if kept and not x.is_meta:
                    self.tensors.append((name, x, x.detach().clone()))
                continue
            contents = contents_of(x)
            if contents is None:
                if isinstance(x, tuple):
                    waiting += [(f"{name}[{i}]", y) for i, y in enumerate(x)]
                continue
            if kept:
                self.stores.append((name, x, contents))
            waiting += [(f"{name} {key}", y) for key, y in items(contents)]

    def changes(self) -> dict[str, Any]:
        """What of it has changed since, by name: to be compared."""
        changed = [(name, items_of_change(contents, contents_of(x))) for name, x, contents in self.stores]
        found = [(f"{name} {key}", value) for name, items in changed for key, value in items]
        found += [(name, x.detach().clone()) for name, x, old in self.tensors if not same_tensor(x, old)]
        return dict(found)

    def restore(self) -> None:
        """Make everything as it was."""
        for _, x, contents in self.stores:
            if list(items_of_change(contents, contents_of(x))):
                refill(x, contents)
        with torch.no_grad():
            for _, x, old in self.tensors:
                if not same_tensor(x, old):
                    x.detach().copy_(old)


def functions(subject: Any) -> Iterator[FunctionType]:
    """The Python functions that a call of `subject` begins with."""
    subject = plain(subject)
    methods = [type(subject).__call__, getattr(type(subject), "forward", None)]
    for x in (subject, getattr(subject, "__func__", None), *methods):
        if isinstance(x, FunctionType) and not x.__module__.startswith(("torch.", "thunder.")):
            yield x


def contents_of(x: Any) -> Any:
    """A shallow copy of what an object holds that can be changed; None if it holds nothing of that kind."""
    if isinstance(x, CellType):
        try:
            return {"": x.cell_contents}
        except ValueError:
            return {}
    if type(x) in (list, dict, set) or isinstance(x, dict):
        return dict(x) if isinstance(x, dict) else x.copy()
    if type(x).__module__.partition(".")[0] in ("torch", "thunder", "thunder_cli") and not isinstance(
        x, KNOWN_OF_TORCH
    ):
        return None
    attributes = getattr(x, "__dict__", None)
    return dict(attributes) if type(attributes) is dict else None


def items(contents: Any) -> list[tuple[Any, Any]]:
    if isinstance(contents, dict):
        return [
            (key, value) for key, value in contents.items() if key not in ("__builtins__", "__loader__", "__spec__")
        ]
    return [] if isinstance(contents, set) else list(enumerate(contents))


def items_of_change(old: Any, new: Any) -> Iterator[tuple[Any, Any]]:
    """What has come, gone (as None) or become another object."""
    if isinstance(old, set):
        if old != new:
            yield "", sorted(map(repr, new))
        return
    before, after = dict(items(old)), dict(items(new))
    for key, value in after.items():
        if key not in before or before[key] is not value:
            yield key, value
    yield from ((key, None) for key in before if key not in after)


def refill(x: Any, contents: Any) -> None:
    if isinstance(x, CellType):
        if contents:
            x.cell_contents = contents[""]
        else:
            del x.cell_contents
    elif isinstance(x, list):
        x[:] = contents
    elif isinstance(x, set):
        x.clear()
        x.update(contents)
    else:
        held = x if isinstance(x, dict) else vars(x)
        for key in held.keys() - contents.keys():
            del held[key]
        held.update({key: y for key, y in contents.items() if key not in held or held[key] is not y})


def same_tensor(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.shape == y.shape and bool(torch.equal(x.detach(), y))


def leaves(root: Any) -> dict[str, Any]:
    """The tensors and constants that arguments hold, and how long their lists and dicts are, by the way there."""
    found: dict[str, Any] = {}
    seen: dict[int, Any] = {}
    waiting = [("an argument", root)]
    while waiting and len(seen) < LIMIT:
        name, x = waiting.pop()
        if isinstance(x, (torch.Tensor, *SCALARS)):
            found[name] = x
            continue
        if id(x) in seen or isinstance(x, OPAQUE):
            continue
        seen[id(x)] = x
        contents = x if isinstance(x, tuple) else contents_of(x)
        if contents is not None:
            if isinstance(x, list | dict):
                found[f"the length of {name}"] = len(contents)
            waiting += [(f"{name}[{key!r}]", y) for key, y in items(contents)]
    return found


def different(traced: dict[str, Any], eager: dict[str, Any], compare: Callable[..., tuple[bool, str]]) -> str | None:
    """The first tensor or constant that two calls left differently, in words."""
    kinds = (torch.Tensor, *SCALARS)
    for name, value in eager.items():
        if name in traced and isinstance(value, kinds) and isinstance(traced[name], kinds):
            equal, words = compare(traced[name], value)
            if not equal:
                return f"{name.strip()} is left {words}"
    return None
