"""What was noted of Python state -> guards of the prologue, and the way to the tensors in it."""

import os
import types
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from thunder.core.printing import Live
from thunder.frontend.dependence import (
    ABSENT,
    CONSTANTS,
    CONTAINERS,
    HOOKS,
    MODULE_STORES,
    Attributes,
    Dependence,
    Store,
)
from thunder.frontend.guards import Access, Guard, Prologue, same_value

GLOBAL_HOOKS = tuple(f"_global{hooks}" for hooks in HOOKS)


class Snapshot:
    """The contents of a container, to compare others with.

    Constants must be equal and of one type, objects the same, tensors any: they are fetched and checked as inputs.
    """

    def __init__(self, container: Any, dependence: Dependence, around: tuple[int, ...] = ()):
        self.kind = type(container)
        self.itself = container if id(container) in dependence.pinned else None
        before = dependence.containers[id(container)][1]
        around += (id(container),)
        values = before.values() if isinstance(before, dict) else before
        self.keys = list(before) if isinstance(before, dict) else None
        self.whole = set(before) if isinstance(before, set) else None
        self.items = [] if self.whole is not None else [self._item(x, dependence, around) for x in values]

    def _item(self, x: Any, dependence: Dependence, around: tuple[int, ...]) -> Any:
        if isinstance(x, CONTAINERS) and id(x) in dependence.containers and id(x) not in around:
            return Snapshot(x, dependence, around)
        return x

    def matches(self, container: Any) -> bool:
        if type(container) is not self.kind or (self.itself is not None and container is not self.itself):
            return False
        if self.whole is not None:
            return container == self.whole and {*map(type, container)} == {*map(type, self.whole)}
        if len(container) != len(self.items):
            return False
        if self.keys is not None:
            if list(container) != self.keys:
                return False
            container = container.values()
        return all(map(_same, container, self.items))


def _same(x: Any, expected: Any) -> bool:
    if x is expected:
        return True
    if isinstance(expected, Snapshot):
        return expected.matches(x)
    if isinstance(expected, torch.Tensor):
        return isinstance(x, torch.Tensor)
    if isinstance(expected, CONSTANTS):
        return type(x) is type(expected) and (x == expected or (x != x and expected != expected))
    return False


def require_state(
    prologue: Prologue, dependence: Dependence, inputs: dict[int, Any], places: dict[int, tuple[Any, ...]]
) -> None:
    """The state that the program could reach is as it was; of tensors that are inputs, the prologue checks metadata.

    An input that is found in several places (tied weights, an argument that is a global too) must be one in all.

    Args:
        inputs: the tensors that the prologue fetches, by identity.
        places: the expressions of those that are arguments, by identity.
    """
    guards: list[Guard] = []
    for store in dependence.stores.values():
        if not store.name.endswith(MODULE_STORES):  # those of one module are one statement
            prologue.require_all(guards)
            guards = []
        guards += _store_guards(store, dependence, inputs, places)
    prologue.require_all(guards)
    for cell, value, subject in dependence.cells.values():
        place = (Live(cell, "cell"), ".cell_contents")
        if value is ABSENT:
            prologue.require_all([Guard(subject, (Live(cell, "cell"), " == ", Live(types.CellType(), "empty")))])
            continue
        if id(cell) in dependence.numbers_in_cells:
            continue
        condition = _condition(place, value, dependence, inputs, places)
        if condition is not None:
            prologue.require_all([Guard(subject, condition, place, value)])
        for condition in _one_tensor(place, value, dependence, inputs, places):
            prologue.require_all([Guard(f"tensors in {subject}", condition)])
    for x in dependence.objects.values():
        condition = ("type(", Live(x, type(x).__name__), ") is ", Live(type(x), type(x).__name__))
        prologue.require_all([Guard(f"the class of a {type(x).__name__}", condition)])
    for cache, name in dependence.caches.values():
        place = (Live(cache, name), ".cache_info()[1:]")
        prologue.require_all([Guard(f"the cache of {name}", (*place, f" == {tuple(cache.cache_info()[1:])}"))])
    for module in dependence.modules.values():
        kind = type(module)
        is_of_kind = ("type(", Live(module, kind.__name__), ") is ", kind)
        prologue.require_all(
            [Guard(f"the class of {kind.__name__}", is_of_kind), *_hook_guards(vars(module), HOOKS, kind.__name__)]
        )
    if dependence.modules:
        prologue.require_all(list(_hook_guards(vars(torch.nn.modules.module), GLOBAL_HOOKS, "all modules")))


def _store_guards(
    store: Store, dependence: Dependence, inputs: dict[int, Any], places: dict[int, tuple[Any, ...]]
) -> Iterator[Guard]:
    live = Live(store.entries, store.name)
    if store.entries is os.environ:
        yield Guard("the environment variables", (live, " == ", Live(store.before, "environ_snapshot")))
        return
    if not store.before and store.name.endswith(MODULE_STORES):
        yield Guard(f"what {store.name} has", ("not ", live))
    elif store.everything or store.name.endswith("_modules"):
        yield Guard(f"what {store.name} has", ("list(", live, ") == ", list(store.before)))
    elif store.noted.difference(store.before) and store.name.endswith(MODULE_STORES):
        yield Guard(f"what {store.name} has", ("len(", live, f") == {len(store.before)}"))
    elif absent := store.noted.difference(store.before):
        condition = (live, ".keys().isdisjoint(", Live(frozenset(absent), "absent"), ")")
        yield Guard(f"what {store.name} has not", condition)
    for key in sorted(store.noted):
        if key in store.before and key not in store.numbers:
            place = (live, f"[{key!r}]")
            if isinstance(store.entries, Attributes):
                place = (Live(store.entries.owner, store.name), f".{key}")
            value = store.before[key]
            condition = _condition(place, value, dependence, inputs, places)
            if condition is not None:
                yield Guard(store.describe(key), condition, place, value)
            for condition in _one_tensor(place, value, dependence, inputs, places):
                yield Guard(f"tensors in {store.describe(key)}", condition)


def _condition(
    place: tuple[Any, ...],
    value: Any,
    dependence: Dependence,
    inputs: dict[int, Any],
    places: dict[int, tuple[Any, ...]],
) -> tuple[Any, ...] | None:
    """The expression that what is at `place` is as `value`; None where the prologue checks it otherwise."""
    if isinstance(value, torch.Tensor):
        if id(value) not in inputs:
            return ("isinstance(", *place, ", ", torch.Tensor, ")")
        first = places.setdefault(id(value), place)
        return None if first is place else (*place, " is ", *first)
    if isinstance(value, CONSTANTS):
        return same_value(place, value)
    if id(value) in places:
        return (*place, " is ", *places[id(value)])
    if isinstance(value, CONTAINERS) and id(value) in dependence.containers:
        if isinstance(value, tuple | list) and not value and id(value) not in dependence.pinned:
            return ("type(", *place, ") is ", type(value), " and not ", *place)
        kind = type(value).__name__
        return (Live(Snapshot(value, dependence), f"{kind}_snapshot"), ".matches(", *place, ")")
    named = isinstance(value, type | types.FunctionType | types.ModuleType | types.BuiltinFunctionType)
    name = value.__name__.rpartition(".")[2] if named else type(value).__name__
    return (*place, " is ", Live(value, name.strip("<>")))


def _one_tensor(
    place: tuple[Any, ...],
    value: Any,
    dependence: Dependence,
    inputs: dict[int, Any],
    places: dict[int, tuple[Any, ...]],
    around: tuple[int, ...] = (),
) -> Iterator[tuple[Any, ...]]:
    """For the inputs in a container that are found elsewhere too: that they are one."""
    if not isinstance(value, list | tuple | dict) or id(value) not in dependence.containers or id(value) in around:
        return
    before = dependence.containers[id(value)][1]
    for key, item in before.items() if isinstance(before, dict) else enumerate(before):
        if not isinstance(key, str | int):
            continue
        there = (*place, f"[{key!r}]")
        if isinstance(item, torch.Tensor):
            condition = _condition(there, item, dependence, inputs, places) if id(item) in inputs else None
            if condition is not None:
                yield condition
        else:
            yield from _one_tensor(there, item, dependence, inputs, places, (*around, id(value)))


def _hook_guards(state: dict[str, Any], names: Sequence[str], owner: str) -> Iterator[Guard]:
    live = Live(state, f"{_as_name(owner)}_state")
    for hooks in names:
        if hooks not in state:
            continue
        if state[hooks]:
            functions = tuple(state[hooks].values())
            condition = ("tuple(", live, f"[{hooks!r}].values()) == ", Live(functions, hooks.strip("_")))
        else:
            condition = ("not ", live, f"[{hooks!r}]")
        yield Guard(f"{hooks} of {owner}", condition)


def find_tensor(x: torch.Tensor, dependence: Dependence) -> Access | None:
    """Where among the state that was noted a tensor is kept."""
    for store in dependence.stores.values():
        root = Access(store.name, Live(store.entries, store.name))
        for key in store.before:
            if key in store.noted or not store.whole:
                found = _find_in(x, store.before[key], root.item(key).named(_as_name(key)), dependence, ())
                if found is not None:
                    return found
    for cell, value, subject in dependence.cells.values():
        name = subject.partition(" ")[0]
        access = Access("cell", Live(cell, "cell")).attribute("cell_contents").named(name)
        found = _find_in(x, value, access, dependence, ())
        if found is not None:
            return found
    return None


def _find_in(
    x: torch.Tensor, value: Any, access: Access, dependence: Dependence, around: tuple[int, ...]
) -> Access | None:
    if value is x:
        return access
    if not isinstance(value, list | tuple | dict) or id(value) not in dependence.containers or id(value) in around:
        return None
    before = dependence.containers[id(value)][1]
    for key, item in before.items() if isinstance(before, dict) else enumerate(before):
        if isinstance(item, torch.Tensor | list | tuple | dict) and isinstance(key, str | int):
            found = _find_in(x, item, access.item(key), dependence, (*around, id(value)))
            if found is not None:
                return found
    return None


def _as_name(key: str) -> str:
    return key if key.isidentifier() else "".join(c if c.isalnum() else "_" for c in key)
