"""Traces and fusions as the plain data of events. Runs in the worker."""

from dataclasses import asdict
from typing import Any

import torch

import thunder.examine
from thunder.core import prims
from thunder.core.numbers import sizes_in_this_call
from thunder.core.printing import Printer
from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.pytree import Structured
from thunder.core.symbol import BoundSymbol, SourceLine, Tag
from thunder.core.trace import Event, Trace
from thunder.executors.nvfuserex import repro
from thunder.frontend.guards import check
from thunder_cli.events import Fusion, Stage


def describe_stage(trace: Trace, index: int) -> Stage:
    lines = trace.lines()
    operations, values = [], {p.name: describe_value(p) for p in trace.args}
    seen: set[int] = set()
    for number, line in enumerate(lines, 1):
        call = line.bound_symbol
        if call is None or id(call) in seen:
            continue
        seen.add(id(call))
        operations.append({"line": number, "depth": line.depth, **describe_call(call)})
        values.update({p.name: describe_value(p) for p in (*call.inputs, *call.outputs)})
    text = "".join(line.text + "\n" for line in lines)
    events = [describe_event(event) for event in trace.events]
    return Stage(
        trace.name,
        index,
        trace.constructed_by,
        trace.milliseconds,
        text,
        [p.name for p in trace.args],
        describe_argument(trace.output, Printer(set())),
        operations,
        values,
        events,
    )


def describe_call(call: BoundSymbol) -> dict[str, Any]:
    printer = Printer(set())
    ordered = not call.subsymbols and not call.symbol.tags.isdisjoint((Tag.EFFECT, Tag.RANDOM))
    return {
        "operation": call.symbol.id,
        "arguments": [describe_argument(x, printer) for x in call.args],
        "options": {k: describe_argument(v, printer) for k, v in call.kwargs.items()},
        "inputs": [p.name for p in call.inputs],
        "outputs": [p.name for p in call.outputs],
        "source": describe_source(call.source),
        **({"effect": True} if ordered else {}),
    }


def describe_argument(x: Any, printer: Printer) -> Any:
    """JSON for an argument.

    That is `{"value": name}` for a value of the trace, a JSON list for a tuple, `{"list": [...]}` for a list,
    `{"slice": [start, stop, step]}`, `{"items": [[key, value]]}` for a dict, `{"tree": type, "leaves": [...]}` for a
    container of the user's, and `{"text": ...}` for what else JSON does not know.
    """
    if isinstance(x, Proxy):
        return {"value": x.name}
    if x is None or type(x) in (bool, int, str):
        return x
    if type(x) in (tuple, torch.Size):
        return [describe_argument(y, printer) for y in x]
    if type(x) is list:
        return {"list": [describe_argument(y, printer) for y in x]}
    if type(x) is slice:
        return {"slice": [describe_argument(y, printer) for y in (x.start, x.stop, x.step)]}
    if type(x) is dict:
        return {"items": [[describe_argument(k, printer), describe_argument(v, printer)] for k, v in x.items()]}
    if isinstance(x, Structured):
        return {"tree": printer.context_name(x.spec), "leaves": describe_argument(x.leaves, printer)}
    return {"text": printer.value(x)}


def describe_value(proxy: Proxy) -> dict[str, Any]:
    strides = {"strides": list(sizes_in_this_call(proxy.strides))} if isinstance(proxy, TensorProxy) else {}
    return {"type": proxy.type_string(), **strides}


def describe_source(source: SourceLine | None) -> dict[str, Any] | None:
    return None if source is None else {"path": source.path, "line": source.line, "text": source.text.strip()}


def describe_event(event: Event) -> dict[str, Any]:
    fields = {name: getattr(event, name) for name in ("kind", "operation", "by", "reason", "into")}
    return {**fields, "values": list(event.values), "source": describe_source(event.source)}


def describe_fusions(trace: Trace) -> list[Fusion]:
    """The fusions of an execution trace, as far as they have run."""
    found = []
    calls = {call.symbol.name: call for call in trace.bound_symbols}
    for name, wrapper in thunder.examine.get_fusions(trace):
        call = calls[name]
        leaves = [leaf for sub in call.subsymbols for leaf in sub.leaves()]
        sources = list(dict.fromkeys(f"{x.source.path}:{x.source.line}" for x in leaves if x.source is not None))
        fusion = Fusion(name, trace.name, [x.symbol.name for x in leaves], sources, None, None, None)
        describe_run(fusion, wrapper)
        found.append(fusion)
    return found


def describe_run(fusion: Fusion, wrapper: Any) -> None:
    """Fill in what is known of a fusion only when it has run."""
    if (last := wrapper.last_used) is None:
        fusion.missing = "this fusion has not run, so it has not been compiled."
        return
    fusion.definition = str(last)
    fusion.repro = repro.script(last)
    fusion.facts = {"kernels": [asdict(kernel) for kernel in last.last_kernels], "bytes_moved": last.bytes_moved}
    try:
        fusion.kernel = last.last_cuda_code()
    except RuntimeError as error:
        fusion.missing = str(error)


def describe_decisions(acquired: Trace) -> list[dict[str, str | None]]:
    """The checks of values in a trace: what it was decided by, with which outcome, and where."""
    calls = [call for call in acquired.bound_symbols if call.symbol in (prims.check_value, prims.check_shape)]
    return [
        {"value": call.args[0].name, "outcome": repr(call.args[1]), "source": str(call.source) if call.source else None}
        for call in calls
    ]


def describe_guards(prologue: Trace) -> list[dict[str, str]]:
    return [
        {"subject": line.bound_symbol.args[0].subject, "text": line.text.strip()}
        for line in prologue.lines()
        if line.bound_symbol is not None and line.bound_symbol.symbol is check
    ]
