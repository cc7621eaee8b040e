"""Names of values: a value is called as the variable that the user's line assigns it to, else t0, t1, ..."""

from collections.abc import Callable, Iterable
from itertools import count

from thunder.core.proxies import Proxy
from thunder.core.symbol import BoundSymbol
from thunder.core.trace import RESERVED_NAMES, Trace
from thunder.frontend.provenance import CallSite


def assign_names(trace: Trace, hints: Iterable[tuple[BoundSymbol, CallSite]]) -> None:
    """Give every value that is computed in `trace` its final name; arguments keep theirs."""
    wanted = _wanted_names(hints)
    names = {p.name for p in trace.args} | {b.symbol.name for b in trace.bound_symbols if b.symbol.module is None}
    done: set[Proxy] = set(trace.args)
    numbers = count()

    def name(p: Proxy) -> None:
        if p in done:
            return
        done.add(p)
        prefix = wanted.get(p)
        if prefix is not None:
            trace.names = names
            p.name = trace.new_name(prefix)
            return
        p.name = next(n for n in (f"t{i}" for i in numbers) if n not in names)
        names.add(p.name)

    # Variables first, so that a user's `t1` is theirs.
    for p in wanted:
        name(p)
    for bound_symbol in trace.bound_symbols:
        _name_all(bound_symbol, name)
    trace.names = names


def _name_all(bound_symbol: BoundSymbol, name: Callable[[Proxy], None]) -> None:
    for p in bound_symbol.outputs:
        name(p)
    for sub in bound_symbol.subsymbols:
        _name_all(sub, name)


def _wanted_names(hints: Iterable[tuple[BoundSymbol, CallSite]]) -> dict[Proxy, str]:
    """The variable of each value. Of the operations of one call, `x = f(...)`, the last one's result is x."""
    wanted: dict[Proxy, str] = {}
    last: dict[tuple[str, ...], tuple[object, tuple[Proxy, ...]]] = {}
    for bound_symbol, site in hints:
        if not site.names:
            continue
        outputs = bound_symbol.outputs
        if site.call is not None:
            call, earlier = last.get(site.names, (None, ()))
            if call is site.call:
                for p in earlier:
                    wanted.pop(p, None)
            last[site.names] = (site.call, outputs)
        if len(site.names) == len(outputs):
            wanted.update(zip(outputs, site.names))
        elif len(site.names) == 1:
            wanted.update((p, f"{site.names[0]}_{i}") for i, p in enumerate(outputs))
    return {p: n for p, n in wanted.items() if n.isidentifier() and n not in RESERVED_NAMES and not n.startswith("__")}
