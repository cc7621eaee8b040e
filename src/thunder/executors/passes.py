"""Transform for execution: every operation is given to the executor that will run it; regions are fused."""

from collections.abc import Mapping, Sequence
from typing import Any

from thunder.core.proxies import Proxy
from thunder.core.symbol import BoundSymbol, unique_proxies
from thunder.core.trace import Event, PassTimer, Trace
from thunder.core.views import viewed
from thunder.executors.partition import Dataflow, fusion_groups, schedule
from thunder.extend import Executor, FusionExecutor, OperatorExecutor
from thunder.transforms.common_subexpressions import merge_common_subexpressions, values_that_leave
from thunder.transforms.dead_code_elimination import dead_code_elimination

NAME = "Transform for execution"


def transform_for_execution(
    trace: Trace, executors: Sequence[Executor], options: Mapping[str, Any] | None = None
) -> Trace:
    """`trace` in terms of what the executors run, first choice first; every operation must find one.

    `options` are for the executors that fuse.
    """
    with PassTimer() as timer:
        statements, output, events = merge_common_subexpressions(trace.bound_symbols, trace.output)
        new = trace.derived(statements, NAME, output=output, events=events)
        _Execution(new, executors, options or {}).run()
        clean = dead_code_elimination(new)
        new.bound_symbols = clean.bound_symbols
        new.events += clean.events
        return timer.stamp(new)


class _Execution:
    """Works on `trace` in place."""

    def __init__(self, trace: Trace, executors: Sequence[Executor], options: Mapping[str, Any]):
        self.trace = trace
        self.executors = executors
        self.options = options
        self.leaving = values_that_leave(trace.bound_symbols, trace.output)

    def run(self) -> None:
        statements = self.trace.bound_symbols
        self.flow = Dataflow(statements)
        decisions = [self.taker(s) for s in statements]
        takers = [taker for taker, _, _ in decisions]
        reasons = {i: (by, reason) for i, (_, by, reason) in enumerate(decisions)}
        groups, alone = fusion_groups(self.flow, takers)
        for i, reason in alone.items():
            reasons[i] = (takers[i].name, reason)
            self.event("refused", statements[i], takers[i].name, reason)
        self.needed_outside = self.uses_outside(groups)
        result: list[BoundSymbol] = []
        fused = {group[0]: group for group in groups}
        for unit in schedule(self.flow, groups):
            if unit[0] in fused:
                result.append(self.fuse(unit, takers[unit[0]]))
            else:
                calls = self.claim(statements[unit[0]])
                by, reason = reasons[unit[0]]
                self.trace.unfused += [Event.of("refused", call, by=by, reason=reason) for call in calls]
                result += calls
        self.trace.bound_symbols = result

    def event(self, kind: str, operation: BoundSymbol, by: str, reason: str, into: str | None = None) -> None:
        self.trace.events.append(Event.of(kind, operation, by=by, reason=reason, into=into))

    # ---- who takes what ----

    def taker(self, operation: BoundSymbol) -> tuple[FusionExecutor | None, str, str]:
        """The fusion executor that this operation goes to, if no executor before that one runs it.

        Beside it: which executor said the last word on fusing the operation, and why it goes to none.
        """
        by, why = "thunder", "none of the executors fuses"
        for executor in self.executors:
            if isinstance(executor, FusionExecutor):
                reason = self.shared_result(operation) or executor.refusal(operation)
                if reason is None:
                    return executor, executor.name, ""
                self.event("refused", operation, executor.name, reason)
                by, why = executor.name, reason
            elif isinstance(executor, OperatorExecutor) and executor.implementation(operation) is not None:
                if by == "thunder" and any(isinstance(x, FusionExecutor) for x in self.executors):
                    by, why = executor.name, f"{executor.name} runs it, which is asked before those that fuse"
                return None, by, why
        return None, by, why

    def shared_result(self, operation: BoundSymbol) -> str | None:
        """A fusion makes new tensors; a returned view must share memory with what it is a view of."""
        if any(p in self.leaving for p in operation.outputs):
            for p in viewed(operation):
                return f"its result is returned and shares memory with {p.name}"
        return None

    def claim(self, operation: BoundSymbol) -> list[BoundSymbol]:
        """The operation, or what it is made of, as calls that executors run."""
        for executor in self.executors:
            if not isinstance(executor, OperatorExecutor):
                continue
            symbol = executor.implementation(operation)
            if symbol is not None:
                self.event("claimed", operation, executor.name, f"runs it as {symbol.id}")
                return [operation.replaced(symbol=symbol, subsymbols=(operation,))]
        if operation.subsymbols:
            parts = (s.replaced(source=s.source or operation.source) for s in operation.subsymbols)
            return [claimed for part in parts for claimed in self.claim(part)]
        if operation.symbol.implementation is not None:
            self.event("claimed", operation, "torch", "runs it as it is")
            return [operation]
        raise NotImplementedError(f"no executor runs {operation.symbol.id}")

    # ---- fusing ----

    def uses_outside(self, groups: Sequence[Sequence[int]]) -> list[set[Proxy]]:
        """For each operation, which of its outputs something outside of its group uses."""
        group_of = {i: k for k, group in enumerate(groups) for i in group}
        returned = set(unique_proxies(self.trace.output))
        uses = []
        for i, operation in enumerate(self.flow.operations):
            outside = set(returned.intersection(operation.outputs))
            for c in self.flow.consumers[i]:
                if group_of.get(c, -1) != group_of.get(i):
                    outside.update(set(operation.outputs).intersection(self.flow.operations[c].inputs))
            uses.append(outside)
        return uses

    def fuse(self, unit: Sequence[int], executor: FusionExecutor) -> BoundSymbol:
        operations = [self.flow.operations[i] for i in unit]
        region = [leaf.replaced(source=op.source) for op in operations for leaf in op.leaves()]
        made: dict[Proxy, None] = dict.fromkeys(p for leaf in region for p in leaf.outputs)
        inputs = list(dict.fromkeys(p for leaf in region for p in leaf.inputs if p not in made))
        outputs = [p for p in made if any(p in self.needed_outside[i] for i in unit)]
        name = self.trace.numbered_name(executor.fusion_prefix)
        symbol = executor.fuse(name, region, inputs, outputs, **self.options)
        self.record_fused(operations, name, executor)
        source = operations[0].source
        return BoundSymbol(symbol, tuple(inputs), {}, outputs, tuple(region), source)

    def record_fused(self, operations: Sequence[BoundSymbol], name: str, executor: FusionExecutor) -> None:
        computed: dict[Proxy, BoundSymbol] = {}
        read: dict[Proxy, BoundSymbol] = {}
        for operation in operations:
            links: list[str] = [f"uses {p.name}, which it computes" for p in operation.inputs if p in computed]
            links += [f"shares the input {p.name}" for p in operation.inputs if p in read and p not in computed]
            self.event("fused", operation, executor.name, links[0] if links else "begins the region", name)
            computed.update(dict.fromkeys(operation.outputs, operation))
            read.update(dict.fromkeys(operation.inputs, operation))
