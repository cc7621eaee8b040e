"""What Python state a traced program depended on and what it changed.

For each of the user's functions that runs, the state that it can reach is followed from its arguments, globals and
closure: through containers entirely, through objects by the names that the function's code mentions. What is found is
noted as it was when first met: that is what a later call must find again. What is different after the trace, the
program wrote.

Following by mentioned names guards more than was read, never less: code reads an attribute by a name that it mentions,
as an attribute or, for `getattr` and `hasattr`, as a string. Code that computes names, or looks at `vars`, can read
all.
"""

import array
import contextlib
import contextvars
import enum
import functools
import gc
import os
import queue
import sys
import threading
import types
import weakref
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy
import torch

from thunder.core.errors import NotRepresentable, NumbersMustBeConstant
from thunder.core.printing import Live
from thunder.frontend.guards import Access
from thunder.frontend.newborn import Objects
from thunder.frontend.provenance import is_importing, is_library_file

CONSTANTS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size, enum.Enum, range)
CONTAINERS = (list, tuple, dict, set, frozenset, deque)
LARGEST_CONTAINER = 1 << 20

# The dictionaries in which an `nn.Module` keeps what its attributes are.
MODULE_STORES = ("_parameters", "_buffers", "_modules")

# What `nn.Module.__call__` looks at on the module it calls.
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
# Code that mentions one of these can read attributes whose names it does not mention.
_COMPUTES_NAMES = {"getattr", "hasattr", "setattr", "delattr", "vars", "dir", "__dict__", "__getattribute__"}
# Code that mentions one of these can get at modules inside of a module without their names.
_WALKS_MODULES = {
    "modules", "children", "named_modules", "named_children", "get_submodule", "_modules", "parameters",
    "named_parameters", "buffers", "named_buffers", "state_dict", "apply",
}  # fmt: skip
# Code that mentions one of these can read environment variables.
_ENVIRONMENT = {"environ", "getenv", "putenv", "unsetenv"}
# State that no guard can compare and no statement can write again; so is that of iterators of Python's own.
_OPAQUE = (
    array.array,
    bytearray,
    memoryview,
    numpy.ndarray,
    queue.SimpleQueue,
    threading.local,
    types.MappingProxyType,
)
# Modules of Python whose objects are containers in all but name.
_CONTAINER_MODULES = ("collections", "weakref", "argparse")
_PARTIAL_STATE = ("func", "args", "keywords")
_MODULE_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)
_FUNCTION_STATE = ("__code__", "__defaults__", "__kwdefaults__")


@dataclass(frozen=True, eq=False, slots=True)
class Names:
    """The names by which a function can read attributes and globals; or that it can read any."""

    all: frozenset[str]
    any: bool = False
    walks_modules: bool = False


NO_NAMES = Names(frozenset())
ANY_NAMES = Names(frozenset(), any=True, walks_modules=True)


@lru_cache(maxsize=16384)
def mentioned_names(code: CodeType) -> Names:
    """The names in the code of a function and in those nested in it."""
    nested = [mentioned_names(x).all for x in code.co_consts if isinstance(x, CodeType)]
    strings = (x for x in code.co_consts if isinstance(x, str) and x.isidentifier())
    names = frozenset(code.co_names).union(strings, *nested)
    return Names(names, not names.isdisjoint(_COMPUTES_NAMES), not names.isdisjoint(_WALKS_MODULES))


@lru_cache(maxsize=16384)
def is_watched(code: CodeType) -> bool:
    """Whether code is the user's, or that of a layer of torch.nn, whose attributes are the user's."""
    filename = code.co_filename.replace("\\", "/")
    if not is_library_file(code.co_filename):
        return True
    return "/torch/nn/modules/" in filename and not filename.endswith("/module.py")


class Attributes(MutableMapping):
    """Attributes that an object keeps in no `__dict__`, as a dictionary: slots, a function's code and defaults."""

    def __init__(self, owner: Any, names: tuple[str, ...]):
        self.owner, self.names = owner, names

    def __getitem__(self, name: str) -> Any:
        if name in self.names:
            with contextlib.suppress(AttributeError):
                return object.__getattribute__(self.owner, name)
        raise KeyError(name)

    def __setitem__(self, name: str, value: Any) -> None:
        object.__setattr__(self.owner, name, value)

    def __delitem__(self, name: str) -> None:
        object.__delattr__(self.owner, name)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.names if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ContextValue(MutableMapping):
    """The value of a context variable, as a dictionary with at most one entry."""

    def __init__(self, variable: contextvars.ContextVar):
        self.variable = variable

    def __getitem__(self, name: str) -> Any:
        if (value := self.variable.get(ABSENT)) is ABSENT:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        self.variable.set(value)

    def __delitem__(self, name: str) -> None:
        """Nothing: the program is traced in a context of its own, which ends with it."""

    def __iter__(self) -> Iterator[str]:
        return iter(("value",) if self.variable.get(ABSENT) is not ABSENT else ())

    def __len__(self) -> int:
        return sum(1 for _ in self)


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
        everything: whether it depends on there being no other keys.
        numbers: what stands in `entries` for numbers that are symbolic.
    """

    name: str
    entries: Mapping[str, Any]
    before: dict[str, Any]
    describe: Callable[[str], str]
    whole: bool
    noted: set[str] = field(default_factory=set)
    everything: bool = False
    numbers: dict[str, Any] = field(default_factory=dict)


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
        self.objects: dict[int, Any] = {}
        self.pinned: set[int] = set()  # ids of containers of which no other with the same contents will do
        self.caches: dict[int, tuple[Any, str]] = {}
        self.made = Objects()  # that the program made, known when it has run
        self.symbolic_number: Callable[[Any, Access], Any] | None = None  # gives what stands for one, if any may
        self.numbers_in_cells: dict[int, Any] = {}
        self._placed: list[tuple[Any, str, Any]] = []  # where symbolic numbers stand, and for which
        self._closures: dict[CodeType, list[FunctionType]] = defaultdict(list)
        self._made: dict[int, Any] = {}  # objects that the program itself made
        self._owners: dict[Any, Any] = {}  # of stores
        self._untracked: set[int] = set()  # ids of containers that the collector did not know when met
        self._cached: set[CodeType] = set()  # of functions that are called through a cache
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
        if code in self._cached:
            self.refuse_caching(code)
        for value in arguments:
            # A container or iterator that was there before is reached from where it is kept.
            self.reach(value, names, was_there=not isinstance(value, CONTAINERS) and not is_opaque(value))
        if not is_library_file(code.co_filename):
            if not names.all.isdisjoint(_ENVIRONMENT):
                self.store(os.environ, "environ", "{} (environment variable)")
            self.globals(frame.f_globals, names)
            for function in self._closures.get(code, ()):
                self.function_state(function, names)

    def function_state(self, function: FunctionType, names: Names) -> None:
        self.closure(function, names)
        store = self.attributes(function, _FUNCTION_STATE, function.__name__.strip("<>"))
        for key in _FUNCTION_STATE:
            self.note(store, key, names)

    def refuse_caching(self, code: CodeType) -> None:
        """What a cache keeps must not be made while tracing."""
        raise NotRepresentable(
            f"A cache keeps what {code.co_name} returns, and has nothing yet for what it is called with.",
            "Call it once before, with what it is called with in the jitted function.",
            once=True,
        )

    def globals(self, namespace: dict[str, Any], names: Names) -> None:
        where = (namespace.get("__file__") or namespace.get("__name__", "")).rpartition("/")[2]
        store = self.store(namespace, "globals", f"{{}} (global of {where})", whole=False, owner=namespace)
        for name in names.all:
            self.note(store, name, names)

    def closure(self, function: FunctionType, names: Names) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            value = contents_of(cell)
            self.cells.setdefault(id(cell), (cell, value, f"{name} (closure of {function.__qualname__})"))
            if value is not ABSENT:
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
            self.function(value, names)
        elif isinstance(value, functools.partial):
            store = self.attributes(value, _PARTIAL_STATE, "partial")
            for key in _PARTIAL_STATE:
                self.note(store, key, names)
        elif isinstance(value, functools._lru_cache_wrapper):
            self.cached(value, names)
        elif isinstance(value, contextvars.ContextVar):
            store = self.store(ContextValue(value), "context", f"{value.name} (context variable)", key=value)
            self.note(store, "value", names)
        elif isinstance(value, ModuleType):
            if is_users_module(value):
                self.globals(vars(value), names)
        elif isinstance(value, weakref.ref):
            self.reach(value(), names)
        elif isinstance(value, type):
            self.class_attributes(value, names)
            self.class_attributes(type(value), names)
        else:
            self.object(value, names, was_there)

    def function(self, value: FunctionType, names: Names) -> None:
        if is_library_file(value.__code__.co_filename):
            return
        if value not in self._closures[value.__code__]:
            self._closures[value.__code__].append(value)
            if self.symbolic_number is not None:
                self.make_cells_symbolic(value)
        if vars(value) or names.any:
            store = self.store(vars(value), f"{value.__name__}_attributes", f"{{}} (attribute of {value.__name__})")
            self.note_all(store, names)

    def make_cells_symbolic(self, function: FunctionType) -> None:
        """The numbers of a closure; before it runs, since Python 3.11 puts back what a profiler finds in its frame."""
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            value = contents_of(cell)
            if type(value) in (int, float) and id(cell) not in self.cells:
                access = Access("cell", Live(cell, "cell")).attribute("cell_contents").named(name)
                self.cells[id(cell)] = cell, value, f"{name} (closure of {function.__qualname__})"
                cell.cell_contents = self.numbers_in_cells[id(cell)] = self.symbolic_number(value, access)

    def cached(self, value: Any, names: Names) -> None:
        """A function with a cache: what it gives is what it gave, until the cache is cleared."""
        self.caches[id(value)] = value, value.__name__
        if self._placed or self.numbers_in_cells:
            raise NumbersMustBeConstant("a cache may keep what is computed from it")
        self.symbolic_number = None
        function = value.__wrapped__
        self.reach(function, names)
        if isinstance(function, FunctionType):
            code = function.__code__
            self._cached.add(code)
            self.globals(function.__globals__, mentioned_names(code))
            self.function_state(function, mentioned_names(code))

    def container(self, value: Any, names: Names, was_there: bool) -> None:
        if was_there and id(value) not in self.containers:
            if len(value) > LARGEST_CONTAINER:
                raise NotRepresentable(
                    f"The program can read a {type(value).__name__} of {len(value)} objects, too large to be guarded.",
                    "Pass what it needs of it as an argument.",
                )
            self.note_container(value)
        items = copy_of(value)
        for item in list(items.values() if isinstance(items, dict) else items):
            self.reach(item, names, was_there or not isinstance(item, CONTAINERS))
        if type(value) not in CONTAINERS:
            self.object(value, names, was_there)

    def note_container(self, value: Any) -> None:
        self.containers[id(value)] = value, copy_of(value)
        if not gc.is_tracked(value):
            self._untracked.add(id(value))

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

    def object(self, value: Any, names: Names, was_there: bool) -> None:
        if is_opaque(value):
            if was_there:
                raise NotRepresentable(
                    f"The program can read and change a {type(value).__name__}, whose state cannot be guarded.",
                    "Take what is needed of it outside of the jitted function.",
                )
            return
        self.class_attributes(type(value), names)
        entries = attributes_of(value)
        kind = type(value).__name__
        if is_library_object(value):
            if entries is None or type(value).__module__ not in _CONTAINER_MODULES:
                return
            names = ANY_NAMES
        if not isinstance(value, (torch.nn.Module, *CONTAINERS)):
            self.objects[id(value)] = value
        if slots := slots_of(type(value)):
            self.note_all(self.attributes(value, slots, kind), names)
        if entries is None:
            return
        store = self.store(entries, f"{kind}_state", f"{{}} (attribute of {kind})", owner=value)
        if isinstance(value, torch.nn.Module):
            self.module(value, store, names)
        else:
            self.note_all(store, names)

    def module(self, value: torch.nn.Module, store: Store, names: Names) -> None:
        self.modules[id(value)] = value
        self.note_all(store, names, but=MODULE_STORES)
        self.note(store, "forward", names)
        kind = type(value).__name__
        for hooks in HOOKS:
            for hook in getattr(value, hooks, {}).values():
                self.reach(hook, names)
        for attribute in MODULE_STORES:
            store = self.store(getattr(value, attribute), f"{kind}{attribute}", f"{{}} (of {kind})", owner=value)
            self.note_all(store, names)
            if attribute == "_modules":
                walked = names.walks_modules or isinstance(value, _MODULE_CONTAINERS)
                for key in store.entries:
                    self.note(store, key, names if walked or key in names.all else NO_NAMES)

    def note_all(self, store: Store, names: Names, but: tuple[str, ...] = ()) -> None:
        """Note all entries that code with these names can read, and that there are no others that it can."""
        store.everything |= names.any
        # What is not there may come, and hide what its class has or be found by `hasattr`.
        for key in {*names.all, *(store.entries if names.any else ())}.difference(but):
            self.note(store, key, names)

    def class_attributes(self, cls: type, names: Names) -> None:
        for base in cls.__mro__:
            if not is_users_class(base):
                continue
            name = base.__name__
            store = self.store(vars(base), f"{name}_class", f"{name}.{{}}", whole=False, key=base, owner=base)
            # Operators call methods that no code mentions, and torch calls `forward`.
            methods = {k for k, v in store.entries.items() if k.startswith("__") and isinstance(v, FunctionType)}
            inherited = {"forward"} if issubclass(cls, torch.nn.Module) else set()
            every = [k for k in store.entries if not k.startswith("__")] if names.any else ()
            for name in {*names.all, *methods, *inherited, *every}:
                self.note(store, name, names)

    def attributes(self, owner: Any, names: tuple[str, ...], kind: str) -> Store:
        """The store of attributes that are in no dictionary."""
        subject = f"{{}} (attribute of {kind})"
        return self.store(Attributes(owner, names), kind, subject, key=("attributes", id(owner)), owner=owner)

    def store(
        self,
        entries: Mapping[str, Any],
        name: str,
        description: str,
        *,
        whole: bool = True,
        key: Any = None,
        owner: Any = None,
    ) -> Store:
        key = key or id(entries)
        if key not in self.stores:
            self.stores[key] = Store(name, entries, dict(entries) if whole else {}, description.format, whole)
        if owner is not None:
            self._owners[key] = owner
        return self.stores[key]

    def note(self, store: Store, key: str, names: Names) -> None:
        is_new = key not in store.noted
        store.noted.add(key)
        if key not in store.entries:
            return
        value = store.entries[key]
        if is_new and not store.whole:
            store.before[key] = value
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        if is_new and type(value) in (int, float) and self.may_be_symbolic(store):
            access = Access(store.name, Live(store.entries, store.name)).item(key).named(key)
            if isinstance(store.entries, Attributes):
                access = Access(store.name, Live(store.entries.owner, store.name)).attribute(key).named(key)
            if not gc.is_tracked(store.entries):
                self._untracked.add(id(store.entries))
            store.entries[key] = store.numbers[key] = self.symbolic_number(value, access)
            self._placed.append((store.entries, key, value))
        was_there = value is store.before.get(key) or not isinstance(value, CONTAINERS)
        for part in (value.fget, value.fset) if isinstance(value, property) else (value,):
            self.reach(part, names, was_there)

    def may_be_symbolic(self, store: Store) -> bool:
        """Whether numbers in a store may be: those that the user's modules and objects have, not their classes."""
        if self.symbolic_number is None or type(store.entries) not in (dict, Attributes):
            return False
        owner = self._owners.get(next(key for key, s in self.stores.items() if s is store))
        return owner is store.entries or (owner is not None and is_users_class(type(owner)))

    def program(self, program: Any) -> None:
        """The traced callable itself: its closure is state."""
        self.reach(program, NO_NAMES)

    def forget(self, made: Objects) -> None:
        """Of objects that were met and turn out to be of the program's own making, drop what was noted."""

        def is_made(x: Any) -> bool:
            return x in made and id(x) not in self._untracked

        for key in [key for key, owner in self._owners.items() if is_made(owner)]:
            del self.stores[key]
        for noted in (self.modules, self.objects):
            for key in [key for key, x in noted.items() if is_made(x)]:
                del noted[key]
        for key in [key for key, (x, _) in self.containers.items() if is_made(x)]:
            del self.containers[key]
        self.made = made

    # ---- what the program changed ----

    def changes(self) -> Iterator[Change]:
        """What is different now from when it was met."""
        for store in self.stores.values():
            keys = {**store.before, **store.entries} if store.whole else store.noted
            for key in sorted(keys):
                now, before = store.entries.get(key, ABSENT), store.before.get(key, ABSENT)
                if now is not store.numbers.get(key, before):
                    yield Change(store.entries, key, now, store.describe(key), deleted=now is ABSENT)
        for container, before in self.containers.values():
            if not same_items(container, before):
                yield Change(container, None, container, f"the contents of a {type(container).__name__}")
        for cell, before, subject in self.cells.values():
            if (now := contents_of(cell)) is not self.numbers_in_cells.get(id(cell), before):
                yield Change(cell, None, now, subject, deleted=now is ABSENT)

    def roll_back(self) -> None:
        """Make everything what it was when it was met."""
        for change in list(self.changes()):
            if isinstance(change.target, types.CellType):
                before = self.cells[id(change.target)][1]
                if before is ABSENT:
                    del change.target.cell_contents
                else:
                    change.target.cell_contents = before
            elif change.key is None:
                refill(change.target, self.containers[id(change.target)][1])
            else:
                self.restore_entry(change)
        for entries, key, value in self._placed:
            entries[key] = value
        for identity in self.numbers_in_cells:
            cell, value, _ = self.cells[identity]
            cell.cell_contents = value

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


ABSENT = object()


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
    elif isinstance(items, dict) and list(container) == list(items):
        for key, value in items.items():
            if container[key] is not value:
                container[key] = value
    else:
        container.clear()
        container.extend(items) if isinstance(container, deque) else container.update(items)


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The object's `__dict__` if it has one, found without running code of its own."""
    try:
        entries = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return entries if isinstance(entries, dict) else None


def contents_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is in it
        return ABSENT


@lru_cache(maxsize=4096)
def slots_of(cls: type) -> tuple[str, ...]:
    """The names of the slots that the user's classes give their objects."""
    names: list[str] = []
    for base in cls.__mro__:
        if is_users_class(base):
            names += (k for k, v in vars(base).items() if isinstance(v, types.MemberDescriptorType))
    return tuple(names)


def is_opaque(value: Any) -> bool:
    """Whether an object has state that can neither be compared nor written."""
    cls = type(value)
    return issubclass(cls, _OPAQUE) or (issubclass(cls, Iterator) and not is_users_class(cls))


def is_users_module(module: ModuleType) -> bool:
    path = getattr(module, "__file__", None)
    if path is None:
        return module.__spec__ is None and module.__name__ not in sys.builtin_module_names
    return not is_library_file(path)


@lru_cache(maxsize=4096)
def is_users_class(cls: type) -> bool:
    if cls.__module__ in sys.builtin_module_names:
        return False
    module = sys.modules.get(cls.__module__)
    path = getattr(module, "__file__", None)
    return path is None or not is_library_file(path)


def is_library_object(value: Any) -> bool:
    """Whether an object is of a class of a library, and no layer of torch.nn."""
    return not is_users_class(type(value)) and not isinstance(value, torch.nn.Module | types.SimpleNamespace)
