"""Common subexpressions: of equal operations on equal inputs one is kept, its value stands for the others."""

from collections.abc import Hashable, Sequence
from typing import Any

from thunder.core.proxies import Proxy
from thunder.core.symbol import BoundSymbol, map_proxies, unique_proxies
from thunder.core.trace import Event
from thunder.core.views import viewed

REASON = "same operation on the same inputs (common subexpression)"


def merge_common_subexpressions(
    bound_symbols: Sequence[BoundSymbol], output: Any
) -> tuple[list[BoundSymbol], Any, list[Event]]:
    """The statements with repeated operations merged, the output in their terms, and what was replaced.

    Two results that both leave the trace are never merged: the caller may write to one of them.
    """
    leaving = values_that_leave(bound_symbols, output)
    first_of: dict[Hashable, BoundSymbol] = {}
    mapping: dict[Proxy, Proxy] = {}
    kept: list[BoundSymbol] = []
    events: list[Event] = []
    for original in bound_symbols:
        bound_symbol = original
        if any(p in mapping for p in original.inputs):
            bound_symbol = original.with_values(mapping)
        key = None if bound_symbol.has_effect else _key(bound_symbol)
        first = first_of.setdefault(key, bound_symbol) if key is not None else bound_symbol
        if first is bound_symbol or not _mergeable(first, bound_symbol, leaving):
            kept.append(bound_symbol)
            continue
        pairs = list(zip(bound_symbol.outputs, first.outputs))
        mapping.update(pairs)
        leaving.update(new for old, new in pairs if old in leaving)
        names = ", ".join(p.name for p in first.outputs)
        events.append(Event.of("replaced", bound_symbol, by="common subexpressions", reason=REASON, into=names))
    return kept, map_proxies(output, mapping), events


def values_that_leave(bound_symbols: Sequence[BoundSymbol], output: Any) -> set[Proxy]:
    """The values that the caller of the trace gets hold of, as they are or through a view."""
    leaving = set(unique_proxies(output))
    for bound_symbol in reversed(bound_symbols):
        if any(p in leaving for p in bound_symbol.outputs):
            leaving.update(viewed(bound_symbol))
    return leaving


def _mergeable(first: BoundSymbol, second: BoundSymbol, leaving: set[Proxy]) -> bool:
    if len(first.outputs) != len(second.outputs) or not second.outputs:
        return False
    return not any(a in leaving and b in leaving for a, b in zip(first.outputs, second.outputs))


def _key(bound_symbol: BoundSymbol) -> Hashable | None:
    try:
        symbol = bound_symbol.symbol
        key = (symbol.id, symbol.implementation, _hashable(bound_symbol.args), _hashable(bound_symbol.kwargs))
        hash(key)
    except TypeError:
        return None
    return key


def _hashable(x: Any) -> Hashable:
    """A key that is equal only for equal values of one type; proxies by identity."""
    if isinstance(x, tuple | list):
        return type(x), tuple(map(_hashable, x))
    if isinstance(x, dict):
        return tuple((k, _hashable(v)) for k, v in x.items())
    if isinstance(x, slice):
        return slice, _hashable((x.start, x.stop, x.step))
    if isinstance(x, float):
        return float, repr(x)
    return type(x), x
