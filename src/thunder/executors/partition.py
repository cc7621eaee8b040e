"""Which operations are fused together: a partition of a trace by dataflow, in linear time.

Every operation gets a level: the largest number of times that any path from the inputs to it crosses between operations
that one fusion executor takes and others. A path that leaves such operations and comes back reaches a higher level, so
connected operations of one executor on one level can be run as one without a cycle.
"""

from collections import defaultdict
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from thunder.core.proxies import Proxy
from thunder.core.symbol import BoundSymbol, Tag


class Dataflow:
    """Which operations of a trace wait for which; those with effects, and random ones, stay in their order."""

    def __init__(self, operations: Sequence[BoundSymbol]):
        self.operations = operations
        producer: dict[Proxy, int] = {}
        self.dependencies: list[list[int]] = []
        self.consumers: list[list[int]] = [[] for _ in operations]
        last_ordered: int | None = None
        for i, operation in enumerate(operations):
            needs = {producer[p] for p in operation.inputs if p in producer}
            if operation.has_effect:
                needs |= {last_ordered} if last_ordered is not None else set()
                last_ordered = i
            self.dependencies.append(sorted(needs))
            for d in needs:
                self.consumers[d].append(i)
            producer.update(dict.fromkeys(operation.outputs, i))


def fusion_groups(flow: Dataflow, takers: Sequence[Any]) -> tuple[list[list[int]], dict[int, str]]:
    """The groups to fuse, each a list of operations in order, and why operations that could be fused are not.

    Operations that only move elements are left out at the edge of a group: on their own they are free, in a kernel they
    are not.

    Args:
        takers: the fusion executor of each operation, None if there is none.
    """
    levels = _levels(flow, takers)
    _sink(flow, takers, levels)
    alone: dict[int, str] = {}
    groups = []
    for group in _connected(flow, takers, levels):
        inner = _without_shape_only_edges(flow, group)
        for i in set(group) - set(inner):
            alone[i] = "only changes the shape at the edge of a region, which is free outside of it"
        if sum(computing_prims(flow.operations[i]) for i in inner) < 2:
            alone.update((i, _cycle(flow, takers, i) or "region of one operation") for i in inner)
        else:
            groups.append(inner)
    return groups, alone


def _cycle(flow: Dataflow, takers: Sequence[Any], i: int) -> str | None:
    """Why operation `i` is not fused with a neighbour of the same executor, if that would make a cycle."""
    before = [(d, i, flow.operations[d]) for d in flow.dependencies[i] if takers[d] is takers[i]]
    behind = [(i, c, flow.operations[c]) for c in flow.consumers[i] if takers[c] is takers[i]]
    for first, last, neighbour in before + behind:
        between = _between(flow, takers, first, last)
        if between is not None:
            name = ", ".join(p.name for p in neighbour.outputs)
            return f"fused with what computes {name} it would make a cycle: {between.symbol.name} must run between them"
    return None


def _between(flow: Dataflow, takers: Sequence[Any], first: int, last: int) -> BoundSymbol | None:
    """An operation of another executor that waits for `first` and that `last` waits for."""
    reached = {first}
    foreign: dict[int, int] = {}  # operations on a path that has left the executor, and where it left
    for i in range(first + 1, last + 1):
        needs = [d for d in flow.dependencies[i] if d in reached]
        if not needs:
            continue
        reached.add(i)
        left = next((foreign[d] for d in needs if d in foreign), None)
        if i == last:
            return None if left is None else flow.operations[left]
        if left is not None or takers[i] is not takers[first]:
            foreign[i] = i if left is None else left
    return None


def _levels(flow: Dataflow, takers: Sequence[Any]) -> list[int]:
    levels: list[int] = []
    for i, needs in enumerate(flow.dependencies):
        levels.append(max((levels[d] + (takers[d] is not takers[i]) for d in needs), default=0))
    return levels


def _sink(flow: Dataflow, takers: Sequence[Any], levels: list[int]) -> None:
    """Operations with no producer on their level move to the level of their first consumer, to be fused with it."""
    for i in reversed(range(len(levels))):
        if takers[i] is None or any(takers[d] is takers[i] and levels[d] == levels[i] for d in flow.dependencies[i]):
            continue
        consumers = flow.consumers[i]
        latest = min((levels[c] - (takers[c] is not takers[i]) for c in consumers), default=levels[i])
        if any(takers[c] is takers[i] and levels[c] == latest for c in consumers):
            levels[i] = latest


def _connected(flow: Dataflow, takers: Sequence[Any], levels: Sequence[int]) -> list[list[int]]:
    """Operations of one executor and level that are linked by a value: computed by one, or read by both."""
    parent = list(range(len(takers)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    reader: dict[tuple[int, int, Proxy], int] = {}
    for i, operation in enumerate(flow.operations):
        if takers[i] is None:
            continue
        for d in flow.dependencies[i]:
            if takers[d] is takers[i] and levels[d] == levels[i]:
                parent[root(i)] = root(d)
        for p in operation.inputs:
            other = reader.setdefault((id(takers[i]), levels[i], p), i)
            parent[root(i)] = root(other)
    groups: dict[int, list[int]] = defaultdict(list)
    for i, taker in enumerate(takers):
        if taker is not None:
            groups[root(i)].append(i)
    return list(groups.values())


def computing_prims(operation: BoundSymbol) -> int:
    """How many of the primitives that an operation comes down to compute something, not only move elements."""
    return sum(Tag.SHAPE_ONLY not in leaf.symbol.tags for leaf in operation.leaves())


def _without_shape_only_edges(flow: Dataflow, group: Sequence[int]) -> list[int]:
    shape_only = {i for i in group if not computing_prims(flow.operations[i])}
    inside = set(group)
    for i in group:
        if i in shape_only and not inside.intersection(flow.dependencies[i]):
            inside.discard(i)
    for i in reversed(group):
        if i in inside and i in shape_only and not inside.intersection(flow.consumers[i]):
            inside.discard(i)
    return [i for i in group if i in inside]


def schedule(flow: Dataflow, groups: Sequence[Sequence[int]]) -> list[list[int]]:
    """All operations, those of a group together, in an order in which each comes after what it waits for.

    As near as possible to the order they had.
    """
    group_of = {i: k for k, group in enumerate(groups) for i in group}
    units = [list(group) for group in groups] + [[i] for i in range(len(flow.operations)) if i not in group_of]
    unit_of = {i: u for u, unit in enumerate(units) for i in unit}
    waits = [{unit_of[d] for i in unit for d in flow.dependencies[i]} - {u} for u, unit in enumerate(units)]
    followers: list[list[int]] = [[] for _ in units]
    for u, needs in enumerate(waits):
        for d in needs:
            followers[d].append(u)
    missing = [len(needs) for needs in waits]
    ready = [(unit[-1], u) for u, unit in enumerate(units) if not missing[u]]
    heapify(ready)
    order = []
    while ready:
        _, u = heappop(ready)
        order.append(units[u])
        for follower in followers[u]:
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, (units[follower][-1], follower))
    assert len(order) == len(units), "the groups of a partition form a cycle"
    return order
