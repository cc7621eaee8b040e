"""Delete last used: each value is deleted behind the last operation that uses it, so that its memory is free."""

from thunder.core import prims
from thunder.core.proxies import Proxy
from thunder.core.symbol import BoundSymbol, unique_proxies
from thunder.core.trace import Event, PassTimer, Trace

NAME = "Delete Last Used"


def del_last_used(trace: Trace) -> Trace:
    """`trace` with `del` statements."""
    with PassTimer() as timer:
        seen: set[Proxy] = set(unique_proxies(trace.output))
        reversed_statements: list[BoundSymbol] = []
        events: list[Event] = []
        for bound_symbol in reversed(trace.bound_symbols):
            last = [p for p in (*bound_symbol.inputs, *bound_symbol.outputs) if p not in seen]
            if last:
                seen.update(last)
                deletion = BoundSymbol(prims.python_del, tuple(last), {}, None)
                reversed_statements.append(deletion)
                names = tuple(p.name for p in last)
                events.append(Event("inserted", "del", names, NAME, "not used any more", None, bound_symbol.source))
            reversed_statements.append(bound_symbol)
        return timer.stamp(trace.derived(reversed_statements[::-1], NAME, events=events[::-1]))
