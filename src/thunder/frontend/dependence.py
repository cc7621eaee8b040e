"""What Python state a traced program depended on and what it changed.

For each of the user's functions that runs, the state that it can reach is followed from its arguments, globals and
closure: through containers entirely, through objects by the names that the function's code mentions. What is found is
noted as it was when first met: that is what a later call must find again. What is different after the trace, the
program wrote.

Following by mentioned names guards more than was read, never less: code reads an attribute by a name that it mentions,
as an attribute or, for `getattr` and `hasattr`, as a string.
"""

import builtins
import enum
import functools
import sys
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from thunder.frontend.provenance import is_importing, is_library_file

CONSTANTS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, enum.Enum, range)
CONTAINERS = (list, tuple, dict, set, frozenset, deque)
LARGEST_CONTAINER = 4096

# The dictionaries in which an `nn.Module` keeps what its attributes are.
MODULE_STORES = ("_parameters", "_buffers", "_modules")

# What `nn.Module.__call__` looks at on the module it calls.
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@dataclass(frozen=True, eq=False, slots=True)
class Names:
    """The names by which a function can read attributes and globals; `strings` are those that it has as strings."""

    all: frozenset[str]
    strings: frozenset[str]


NO_NAMES = Names(frozenset(), frozenset())


@lru_cache(maxsize=16384)
def mentioned_names(code: CodeType) -> Names:
    """The names in the code of a function and in those nested in it."""
    nested = [mentioned_names(x) for x in code.co_consts if isinstance(x, CodeType)]
    strings = frozenset(x for x in code.co_consts if isinstance(x, str) and x.isidentifier())
    strings = strings.union(*(n.strings for n in nested))
    return Names(strings.union(code.co_names, *(n.all for n in nested)), strings)


@lru_cache(maxsize=16384)
def is_watched(code: CodeType) -> bool:
    """Whether code is the user's, or that of a layer of torch.nn, whose attributes are the user's."""
    filename = code.co_filename.replace("\\", "/")
    if not is_library_file(code.co_filename):
        return True
    return "/torch/nn/modules/" in filename and not filename.endswith("/module.py")


@dataclass(eq=False, slots=True)
class Store:
    """A dictionary that holds state: an object's attributes, a module's buffers, a class, globals.

    Attributes:
        name: what prologues call it.
        entries: the live dictionary.
        before: its entries when they were first met.
        describe: says of a key what it is, for messages.
        whole: whether `before` had all entries, so that a new one is noticed.
        noted: the keys that the trace depends on.
    """

    name: str
    entries: Mapping[str, Any]
    before: dict[str, Any]
    describe: Callable[[str], str]
    whole: bool
    noted: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Change:
    """Something that the program wrote: an entry of a dictionary, the contents of a container or of a closure cell."""

    target: Any
    key: Any  # of an entry; None for a whole container or cell
    value: Any
    subject: str
    deleted: bool = False


class Dependence:
    """Collects what the functions of one traced program can reach."""

    def __init__(self) -> None:
        self.stores: dict[Any, Store] = {}
        self.containers: dict[int, tuple[Any, Any]] = {}  # the container, a copy of it as it was
        self.cells: dict[int, tuple[types.CellType, Any, str]] = {}
        self.modules: dict[int, torch.nn.Module] = {}
        self.made: frozenset[int] = frozenset()  # ids of the objects that the program made, known when it has run
        self._closures: dict[CodeType, list[FunctionType]] = defaultdict(list)
        self._made: dict[int, Any] = {}  # objects that the program itself made
        self._owners: dict[int, Any] = {}  # of stores
        self._met: set[int] = set()
        self._reached: dict[tuple[int, Names, bool], Any] = {}  # holds what was met, so that ids stay theirs

    def function_started(self, frame: FrameType) -> None:
        """Note what the function that runs in `frame` can reach."""
        if is_importing(frame):
            return
        code = frame.f_code
        names = mentioned_names(code)
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        arguments = [frame.f_locals.get(name) for name in code.co_varnames[:count]]
        if code.co_name == "__init__" and arguments and not self.has_met(arguments[0]):
            self._made[id(arguments[0])] = arguments[0]
        for value in arguments:
            # A container that was there before is reached from where it is kept.
            self.reach(value, names, was_there=not isinstance(value, CONTAINERS))
        if not is_library_file(code.co_filename):
            self.globals(frame.f_globals, names)
            for function in self._closures.get(code, ()):
                self.closure(function, names)

    def globals(self, namespace: dict[str, Any], names: Names) -> None:
        where = (namespace.get("__file__") or namespace.get("__name__", "")).rpartition("/")[2]
        store = self.store(namespace, "globals", f"{{}} (global of {where})", whole=False)
        for name in names.all:
            if name in namespace or hasattr(builtins, name):
                self.note(store, name, names)

    def closure(self, function: FunctionType, names: Names) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # nothing is in it yet
                continue
            self.cells.setdefault(id(cell), (cell, value, f"{name} (closure of {function.__qualname__})"))
            self.reach(value, names)

    def has_met(self, value: Any) -> bool:
        """Whether `value` is an object that was there before and that some function can reach."""
        return id(value) in self._met

    def reach(self, value: Any, names: Names, was_there: bool = True) -> None:
        """Follow `value` by `names`; note its state if it was there before the program ran."""
        if isinstance(value, (*CONSTANTS, torch.Tensor)) or (id(value), names, was_there) in self._reached:
            return
        if id(value) in self._made:
            self.made_object(value, names)
            return
        self._reached[id(value), names, was_there] = value
        self._met.add(id(value))
        if isinstance(value, CONTAINERS):
            self.container(value, names, was_there)
        elif isinstance(value, MethodType):
            self.reach(value.__self__, names)
            self.reach(value.__func__, names)
        elif isinstance(value, FunctionType):
            if not is_library_file(value.__code__.co_filename) and value not in self._closures[value.__code__]:
                self._closures[value.__code__].append(value)
        elif isinstance(value, ModuleType):
            if getattr(value, "__file__", None) and not is_library_file(value.__file__):
                self.globals(vars(value), names)
        elif isinstance(value, type):
            self.class_attributes(value, names)
        else:
            self.object(value, names)

    def container(self, value: Any, names: Names, was_there: bool) -> None:
        if len(value) > LARGEST_CONTAINER:
            return
        if was_there and id(value) not in self.containers:
            self.containers[id(value)] = value, copy_of(value)
        for item in list(value.values() if isinstance(value, dict) else value):
            self.reach(item, names, was_there or not isinstance(item, CONTAINERS))

    def made_object(self, value: Any, names: Names) -> None:
        """An object of the program's own making has no state to note, but leads on to what has."""
        self.class_attributes(type(value), names)
        del self._made[id(value)]  # while it is followed, should it lead to itself
        self._reached[id(value), names, True] = value
        for key in names.all & (attributes_of(value) or {}).keys():
            item = vars(value)[key]
            self.reach(item, names, not isinstance(item, CONTAINERS))
        del self._reached[id(value), names, True]
        self._made[id(value)] = value

    def object(self, value: Any, names: Names) -> None:
        self.class_attributes(type(value), names)
        entries = attributes_of(value)
        if entries is None or is_library_object(value):
            return
        kind = type(value).__name__
        store = self.store(entries, f"{kind}_state", f"{{}} (attribute of {kind})")
        self._owners[id(entries)] = value
        is_module = isinstance(value, torch.nn.Module)
        for key in names.all & entries.keys():
            if not (is_module and key in MODULE_STORES):
                self.note(store, key, names)
        # What is not there may come, and hide what its class has or be found by `hasattr`.
        hidden = {key for key in names.all - entries.keys() if key in names.strings or has_users_attribute(value, key)}
        store.noted.update(hidden | {"forward"} if is_module else hidden)
        if is_module:
            self.modules[id(value)] = value
            for hooks in HOOKS:
                for hook in getattr(value, hooks, {}).values():
                    self.reach(hook, names)
            for attribute in MODULE_STORES:
                store = self.store(getattr(value, attribute), f"{kind}{attribute}", f"{{}} (of {kind})")
                self._owners[id(store.entries)] = value
                for key in store.entries:
                    if key in names.all or attribute == "_modules":
                        self.note(store, key, names if key in names.all else NO_NAMES)

    def class_attributes(self, cls: type, names: Names) -> None:
        for base in cls.__mro__:
            if not is_users_class(base):
                continue
            store = self.store(vars(base), f"{base.__name__}_class", f"{base.__name__}.{{}}", whole=False, key=base)
            for name in names.all:
                if name in store.entries:
                    self.note(store, name, names)

    def store(
        self, entries: Mapping[str, Any], name: str, description: str, *, whole: bool = True, key: Any = None
    ) -> Store:
        key = key or id(entries)
        if key not in self.stores:
            self.stores[key] = Store(name, entries, dict(entries) if whole else {}, description.format, whole)
        return self.stores[key]

    def note(self, store: Store, key: str, names: Names) -> None:
        store.noted.add(key)
        if key not in store.entries:
            return
        value = store.entries[key]
        if not store.whole:
            store.before.setdefault(key, value)
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        was_there = value is store.before.get(key) or not isinstance(value, CONTAINERS)
        for part in (value.fget, value.fset) if isinstance(value, property) else (value,):
            self.reach(part, names, was_there)

    def program(self, program: Any) -> None:
        """The traced callable itself: its closure is state."""
        while isinstance(program, functools.partial):
            self.reach((program.args, program.keywords), NO_NAMES)
            program = program.func
        self.reach(program, NO_NAMES)

    def forget(self, made: frozenset[int]) -> None:
        """Of objects that were met and turn out to be of the program's own making, drop what was noted."""
        for key, owner in self._owners.items():
            if id(owner) in made:
                del self.stores[key]
        for noted in (self.modules, self.containers):
            for key in made.intersection(noted):
                del noted[key]
        self.made |= made

    # ---- what the program changed ----

    def changes(self) -> Iterator[Change]:
        """What is different now from when it was met."""
        for store in self.stores.values():
            keys = {**store.before, **store.entries} if store.whole else store.noted
            for key in sorted(keys):
                now, before = store.entries.get(key, _ABSENT), store.before.get(key, _ABSENT)
                if now is not before:
                    yield Change(store.entries, key, now, store.describe(key), deleted=now is _ABSENT)
        for container, before in self.containers.values():
            if not same_items(container, before):
                yield Change(container, None, container, f"the contents of a {type(container).__name__}")
        for cell, before, subject in self.cells.values():
            if cell.cell_contents is not before:
                yield Change(cell, None, cell.cell_contents, subject)

    def roll_back(self) -> None:
        """Make everything what it was when it was met."""
        for change in list(self.changes()):
            if isinstance(change.target, types.CellType):
                change.target.cell_contents = self.cells[id(change.target)][1]
            elif change.key is None:
                refill(change.target, self.containers[id(change.target)][1])
            else:
                self.restore_entry(change)

    def restore_entry(self, change: Change) -> None:
        store = next(s for s in self.stores.values() if s.entries is change.target)
        if isinstance(change.target, types.MappingProxyType):
            owner = next(key for key, s in self.stores.items() if s is store)
            if change.key in store.before:
                setattr(owner, change.key, store.before[change.key])
            else:
                delattr(owner, change.key)
        elif change.key in store.before:
            change.target[change.key] = store.before[change.key]
        else:
            del change.target[change.key]


_ABSENT = object()


def copy_of(container: Any) -> Any:
    """A shallow copy, of a plain type."""
    if isinstance(container, dict):  # what is in it, not what a `__getitem__` of the user's makes of it
        return {key: dict.__getitem__(container, key) for key in container}
    return set(container) if isinstance(container, set | frozenset) else list(container)


def same_items(container: Any, before: Any) -> bool:
    """Whether a container holds the very objects that its copy holds, in order."""
    if len(container) != len(before):
        return False
    if isinstance(before, dict):
        return all(a is b and dict.__getitem__(container, a) is before[b] for a, b in zip(container, before))
    if isinstance(before, set):
        return container == before
    return all(a is b for a, b in zip(container, before))


def refill(container: Any, items: Any) -> None:
    """Make `items` the contents of a list, dictionary, set or deque."""
    if isinstance(container, list):
        container[:] = items
        return
    container.clear()
    container.extend(items) if isinstance(container, deque) else container.update(items)


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The object's `__dict__` if it has one, found without running code of its own."""
    try:
        entries = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return entries if isinstance(entries, dict) else None


def has_users_attribute(value: Any, name: str) -> bool:
    """Whether an object has an attribute by a class of the user's."""
    return any(name in vars(base) for base in type(value).__mro__ if is_users_class(base))


@lru_cache(maxsize=4096)
def is_users_class(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    path = getattr(module, "__file__", None)
    return cls.__module__ != "builtins" and (path is None or not is_library_file(path))


def is_library_object(value: Any) -> bool:
    """Whether an object is of a class of a library, and no layer of torch.nn."""
    return not is_users_class(type(value)) and not isinstance(value, torch.nn.Module | types.SimpleNamespace)
