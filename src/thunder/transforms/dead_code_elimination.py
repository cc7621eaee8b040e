"""Dead code elimination: operations whose results nothing uses are removed."""

from thunder.core.proxies import Proxy
from thunder.core.symbol import BoundSymbol, unique_proxies
from thunder.core.trace import Event, PassTimer, Trace

NAME = "Dead Code Elimination"


def dead_code_elimination(trace: Trace) -> Trace:
    """`trace` without the operations that nothing needs.

    Random operations stay: the numbers drawn after them depend on them.
    """
    with PassTimer() as timer:
        needed: set[Proxy] = set(unique_proxies(trace.output))
        kept: list[BoundSymbol] = []
        events: list[Event] = []
        for bound_symbol in reversed(trace.bound_symbols):
            if bound_symbol.has_effect or any(p in needed for p in bound_symbol.outputs):
                needed.update(bound_symbol.inputs)
                kept.append(bound_symbol)
            else:
                events.append(Event.of("removed", bound_symbol, by=NAME, reason="result never used"))
        return timer.stamp(trace.derived(kept[::-1], NAME, events=events[::-1]))
