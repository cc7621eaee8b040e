"""Questions about traces: which fusions there are, a script that reproduces one, why the rest is not fused, memory."""

from thunder.core import prims
from thunder.core.symbol import BoundSymbol
from thunder.core.trace import Event, Trace
from thunder.examine.memory_use import Memory, memory
from thunder.executors.nvfuserex import FusionDefinitionWrapper, repro

__all__ = ["Memory", "get_fusion_symbols", "get_fusions", "get_nvfuser_repro", "memory", "why_not_fused"]


def get_fusion_symbols(trace: Trace) -> list[BoundSymbol]:
    """The calls of nvFuser fusions in a trace, in order."""
    if not isinstance(trace, Trace):
        raise TypeError(f"this takes a trace, such as thunder.last_traces(fn)[-1], not a {type(trace).__name__}")
    return [call for call in trace.bound_symbols if isinstance(call.symbol.implementation, FusionDefinitionWrapper)]


def get_fusions(trace: Trace) -> list[tuple[str, FusionDefinitionWrapper]]:
    """The names and the wrappers of the nvFuser fusions in a trace, in order."""
    return [(call.symbol.name, call.symbol.implementation) for call in get_fusion_symbols(trace)]


def get_nvfuser_repro(trace: Trace, fusion_name: str) -> str:
    """A Python script that runs one fusion of a trace alone. The fusion must have run once: its inputs' shapes count.

    Raises:
        ValueError: no fusion of the trace has that name.
        RuntimeError: the fusion has not run yet.
    """
    fusions = dict(get_fusions(trace))
    if fusion_name not in fusions:
        there = f"it has {', '.join(fusions)}" if fusions else "it has none"
        raise ValueError(f"the trace has no fusion called {fusion_name!r}; {there}")
    fusion = fusions[fusion_name].last_used
    if fusion is None:
        raise RuntimeError(f"{fusion_name} has not run yet; call the compiled function once, then ask again")
    return repro.versions() + repro.script(fusion)


def why_not_fused(trace: Trace) -> list[Event]:
    """For each operation of an execution trace that is outside of fusions: who did not fuse it, and why.

    In the order in which they run. Each has the `operation` as the trace prints it, the names of the `values` that it
    gives, `by`, the executor that decided, its `reason` and the user's line as `source`.

    Raises:
        ValueError: the trace was not transformed for execution, so nothing is decided.
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"this takes a trace, such as thunder.last_traces(fn)[-1], not a {type(trace).__name__}")
    outside = [
        (call.symbol.id, tuple(p.name for p in call.outputs))
        for call in trace.bound_symbols
        if call.symbol is not prims.python_del and not isinstance(call.symbol.implementation, FusionDefinitionWrapper)
    ]
    known = {(event.operation, event.values): event for event in trace.unfused}
    if outside and not any(key in known for key in outside):
        raise ValueError("nothing is fused or refused yet; take a later trace: thunder.last_traces(fn)[-1]")
    return [known[key] for key in outside if key in known]
