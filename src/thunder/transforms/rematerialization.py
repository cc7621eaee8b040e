"""Rematerialization: what the forward saves is the cut of fewest bytes; cheap operations behind it are run again.

Between what the forward must compute and what the backward uses lie chains of elementwise operations and views. Each
value of such a chain may be saved, or be computed again from values that are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from thunder.core import prims
from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.symbol import BoundSymbol, Symbol, Tag

# Elementwise primitives that are slow where no fusion holds them.
_SLOW_ALONE = frozenset(
    {
        prims.acos, prims.acosh, prims.asin, prims.asinh, prims.atan, prims.atanh, prims.atan2, prims.cos, prims.cosh,
        prims.erf, prims.erfc, prims.erfinv, prims.exp, prims.exp2, prims.expm1, prims.lgamma, prims.log, prims.log10,
        prims.log1p, prims.log2, prims.pow, prims.sigmoid, prims.sin, prims.sinh, prims.tan, prims.tanh,
    }
)  # fmt: skip
_PROHIBITIVE = 2**60  # bytes
_ELEMENTWISE = prims.elementwise | {prims.where, prims.convert_element_type}
_MOVES_MUCH = frozenset({prims.cat, prims.pad, prims.flip, prims.graft})


@dataclass(frozen=True, slots=True)
class Plan:
    """What is saved, in the order of the forward, and the statements that compute the rest of what is needed again."""

    saved: tuple[Proxy, ...]
    repeated: tuple[BoundSymbol, ...]


def cheapest(
    forward: Sequence[BoundSymbol], inputs: Sequence[Proxy], needed: set[Proxy], written: Iterable[Proxy] = ()
) -> Plan:
    """The plan that saves the fewest bytes, for a backward that uses the values in `needed`.

    Inputs cost nothing: they are alive anyway. What is needed itself is saved rather than what costs the same.

    Args:
        written: the inputs that the program writes to, which the backward would not find as they were.
    """
    costs = {**dict.fromkeys(inputs, 0), **dict.fromkeys(written, _PROHIBITIVE)}
    import networkx  # which takes its time, and only training needs

    graph = networkx.DiGraph()
    producer = {p: s for s in forward for p in s.outputs}
    reached: set[Proxy] = set()
    pending = list(needed)
    while pending:
        p = pending.pop()
        if p in reached:
            continue
        reached.add(p)
        statement = producer.get(p)
        graph.add_edge(("in", p), ("out", p), capacity=_cost(p, p in needed, costs.get(p)))
        if statement is not None and is_cheap(statement):
            for x in statement.inputs:
                graph.add_edge(("out", x), ("in", p), capacity=inf)
                pending.append(x)
        else:
            graph.add_edge("forward", ("in", p), capacity=inf)
        if p in needed:
            graph.add_edge(("out", p), "backward", capacity=inf)
    if not needed:
        return Plan((), ())
    _, (early, _) = networkx.minimum_cut(graph, "forward", "backward")
    cut = {p for p in reached if ("in", p) in early and ("out", p) not in early}
    order = dict.fromkeys((*inputs, *(p for s in forward for p in s.outputs)))
    return Plan(tuple(p for p in order if p in cut), tuple(_between(forward, producer, cut, needed)))


def _between(
    forward: Sequence[BoundSymbol], producer: dict[Proxy, BoundSymbol], cut: set[Proxy], needed: set[Proxy]
) -> Iterable[BoundSymbol]:
    """The statements, in order, that compute what is needed from what is saved."""
    wanted: set[int] = set()
    pending = [p for p in needed if p not in cut]
    while pending:
        statement = producer[pending.pop()]
        if id(statement) not in wanted:
            wanted.add(id(statement))
            pending += [x for x in statement.inputs if x not in cut]
    return (s for s in forward if id(s) in wanted)


def _cost(p: Proxy, is_needed: bool, cost: int | None) -> int:
    if not isinstance(p, TensorProxy):
        return 0
    bytes_ = p.numel * p.dtype.itemsize if cost is None else cost
    return bytes_ + (1 if is_needed else 2 + bytes_ // 50)


def is_cheap(statement: BoundSymbol) -> bool:
    """Whether running a statement again costs little: elementwise operations and views, slow ones only in a fusion."""
    if len(statement.outputs) != 1 or not isinstance(statement.outputs[0], TensorProxy):
        return False
    is_fused = statement.outputs[0].device.type == "cuda"
    return all(_is_cheap(leaf.symbol, is_fused) for leaf in statement.leaves())


def _is_cheap(symbol: Symbol, is_fused: bool) -> bool:
    if Tag.SHAPE_ONLY in symbol.tags:
        return symbol not in _MOVES_MUCH
    return symbol in _ELEMENTWISE and (is_fused or symbol not in _SLOW_ALONE)
