"""Differentiation of a computation: a forward that also returns what the backward needs, and that backward.

Each operation becomes a step of the forward: what runs, and a pullback, which records how the gradients of its inputs
come from those of its outputs. How is told by the table of gradient rules; an operation without a rule differentiates
through what it is made of, which the backward computes again from the operation's inputs, or, where that cannot be
(random numbers, operations that are made of nothing), by torch's autograd. A value has one name in both traces.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from thunder import clang
from thunder.core.differentiability import REQUIRE, STOPS, differentiable_outputs
from thunder.core.dtypes import is_complex, is_inexact
from thunder.core.numbers import Number
from thunder.core.proxies import NumberProxy, Proxy, TensorProxy
from thunder.core.recording import current_recorder
from thunder.core.region import is_region, region
from thunder.core.symbol import BoundSymbol, SourceLine, Tag, map_proxies, unique_proxies
from thunder.core.trace import PassTimer, Trace, TraceRecorder, record
from thunder.transforms.dead_code_elimination import dead_code_elimination
from thunder.transforms.gradients import HOLDS_FOR_COMPLEX_NUMBERS, augmented_rules, by_torch, gradient_rules, rewrites
from thunder.transforms.gradients.elementwise import zeros_like
from thunder.transforms.kept_graphs import with_kept_graph
from thunder.transforms.number_operands import NumberOperands
from thunder.transforms.rematerialization import cheapest

FORWARD = "Augmented forward"
BACKWARD = "Backward"

Gradients = list[tuple[Proxy, TensorProxy]]


@dataclass(slots=True)
class Step:
    """One operation that is differentiated.

    Attributes:
        outputs: the tensors of its output, in order.
        pullback: takes their gradients, None where there is none, and records those of the inputs.
        source: the user's line.
    """

    outputs: tuple[TensorProxy, ...]
    pullback: Callable[[list[TensorProxy | None]], Iterable[tuple[Proxy, TensorProxy]]]
    source: SourceLine | None


@dataclass(slots=True)
class Differentiated:
    """A computation, differentiated.

    Attributes:
        forward: returns (what the computation returned, saved values).
        outputs: the tensors that the computation returns, each once, in order.
        inputs: the computation's arguments.
        saved: what the forward saves, in order.
        repeated: the statements of the forward, in order, that the backward runs again to have what is not saved.
    """

    forward: Trace
    outputs: tuple[TensorProxy, ...]
    inputs: tuple[Proxy, ...]
    saved: tuple[Proxy, ...]
    repeated: tuple[BoundSymbol, ...]
    _steps: list[Step]
    _renamed: dict[Proxy, Proxy]
    _names: set[str]

    def backward(self, given: Sequence[bool] | None = None) -> tuple[Trace, tuple[int, ...]]:
        """The trace that takes saved values and gradients and gives those of the inputs, None where there is none.

        Args:
            given: which of `outputs` a gradient comes to; all that require gradients, if left out.

        Returns:
            The trace, and the positions in `saved` of the values that it takes.
        """
        if given is None:
            given = [p.requires_grad for p in self.outputs]
        with PassTimer() as timer:
            trace = Trace("backward", constructed_by=BACKWARD, names=set(self._names))
            wanted = [p for p, is_given in zip(self.outputs, given) if is_given]
            grads = [gradient_proxy(trace, p) for p in wanted]
            pairs = list(zip(wanted, grads))
            with record(trace) as recorder:
                found = pull_back(recorder, self._steps, pairs)
            trace.output = tuple(found.get(p) if p.requires_grad else None for p in self.inputs)
            if self._renamed:
                trace.bound_symbols = [s.with_values(self._renamed) for s in trace.bound_symbols]
                trace.output = map_proxies(trace.output, self._renamed)
            trace.bound_symbols = dead_code_elimination(trace).bound_symbols
            trace.bound_symbols = with_repeated(trace, self.repeated)
            free = free_values(trace)
            used = tuple(i for i, p in enumerate(self.saved) if p in free)
            trace.args = (*(self.saved[i] for i in used), *grads)
            _name_gradients(trace, found, {*free, *grads})
            return timer.stamp(trace), used


def gradient_proxy(trace: Trace, p: TensorProxy) -> TensorProxy:
    """The argument of `trace` that the gradient of `p` is."""
    return TensorProxy(trace.new_name(f"grad_{p.name}"), shape=p.shape, dtype=p.dtype, device=p.device)


def pull_back(recorder: TraceRecorder, steps: Sequence[Step], pairs: Gradients) -> dict[Proxy, TensorProxy]:
    """Record the pullbacks of `steps`, last first; gives the gradient of every value that gets one."""
    found: dict[Proxy, TensorProxy] = {}
    statements = recorder.scopes[-1]
    for p, g in pairs:
        found[p] = g if p not in found else clang.add(found[p], g)
    for step in reversed(steps):
        grads = [found.get(p) for p in step.outputs]
        if all(g is None for g in grads):
            continue
        before = len(statements)
        for p, g in step.pullback(grads):
            found[p] = g if p not in found else clang.add(found[p], g)
        for statement in statements[before:]:
            statement.source = statement.source or step.source
    return found


def with_repeated(trace: Trace, repeated: Sequence[BoundSymbol]) -> list[BoundSymbol]:
    """The statements of `trace`, each behind those of `repeated` that it is the first to need."""
    position = {id(s): i for i, s in enumerate(repeated)}
    producer = {p: s for s in repeated for p in s.outputs}
    made: set[Proxy] = set()
    result: list[BoundSymbol] = []

    def make(values: Iterable[Proxy]) -> None:
        needed, left = [], list(values)
        while left:
            p = left.pop()
            if p in producer and p not in made:
                needed.append(producer[p])
                made.update(producer[p].outputs)
                left.extend(producer[p].inputs)
        result.extend(sorted(needed, key=lambda s: position[id(s)]))

    for statement in trace.bound_symbols:
        make(statement.inputs)
        result.append(statement)
    make(unique_proxies(trace.output))
    return result


def free_values(trace: Trace) -> set[Proxy]:
    """The values that a trace uses and does not compute."""
    made: set[Proxy] = set()
    free: set[Proxy] = set()
    for statement in trace.bound_symbols:
        free.update(p for p in statement.inputs if p not in made)
        made.update(statement.outputs)
    free.update(p for p in unique_proxies(trace.output) if p not in made)
    return free


def _name_gradients(trace: Trace, found: dict[Proxy, TensorProxy], known: set[Proxy]) -> None:
    """The gradient of x is called grad_x, if it is computed for x alone or for x first."""
    computed = {p for statement in trace.bound_symbols for p in statement.outputs}
    done = set(known)
    for p, g in found.items():
        if g not in done and g in computed:
            done.add(g)
            g.name = trace.new_name(f"grad_{p.name}")


def differentiate(
    trace: Trace,
    written: Iterable[Proxy] = (),
    known: set[Proxy] | None = None,
    stays: Callable[[BoundSymbol], bool] = lambda _: False,
    numbers: Mapping[NumberProxy, Number] = MappingProxyType({}),
) -> Differentiated:
    """The forward and the backward of a computation, whose output is (results, values to write back).

    Args:
        written: the inputs that are written to afterwards.
        known: the values whose `requires_grad` says whether gradients go through them; the others, which transforms
            have made, depend on what they are computed from. All, if left out.
        stays: whether an operation is to run as it is in the forward, whatever rules there are for what it computes.
        numbers: the numbers of the trace, and what they are in the call that it was made for.

    Raises:
        UnsupportedError: if a rule must know a number, which is then to be a constant.
    """
    with PassTimer() as timer:
        forward = trace.derived([], FORWARD)
        with record(forward) as recorder:
            builder = _Builder(recorder, numbers)
            builder.known, builder.stays = known, stays
            builder.active.update(p for p in trace.args if isinstance(p, TensorProxy) and p.requires_grad)
            steps = builder.steps(trace.bound_symbols, forward.bound_symbols)
        outputs = unique_proxies(trace.output)
        result = Differentiated(forward, outputs, trace.args, (), (), steps, builder.renamed, forward.names)
        full, _ = result.backward()
        free = free_values(full)
        plan = cheapest(forward.bound_symbols, forward.args, free, written)
        result.saved, result.repeated = plan.saved, plan.repeated
        forward.output = (trace.output, result.saved)
        forward.bound_symbols = dead_code_elimination(forward).bound_symbols
        timer.stamp(forward)
    return result


def steps_of(
    statements: Sequence[BoundSymbol], active: Iterable[Proxy], recorder: TraceRecorder
) -> tuple[list[BoundSymbol], list[Step], dict[Proxy, Proxy]]:
    """What runs in the place of `statements`, its steps, and the values that stand for others in the pullbacks."""
    builder, emitted = _Builder(recorder), []
    builder.active.update(active)
    steps = builder.steps(statements, emitted)
    return emitted, steps, builder.renamed


class _Builder:
    """Makes the steps of a forward.

    Attributes:
        active: the values that gradients go through.
        renamed: values that a rule computed, and the values of the trace that they are.
        known: the values whose `requires_grad` counts; all, if None.
        stays: whether an operation must run as it is.
        numbers: gives what rules hold in the place of numbers.
    """

    def __init__(self, recorder: TraceRecorder, numbers: Mapping[NumberProxy, Number] = MappingProxyType({})):
        self.recorder = recorder
        self.numbers = NumberOperands(numbers)
        self.active: set[Proxy] = set()
        self.renamed: dict[Proxy, Proxy] = {}
        self.known: set[Proxy] | None = None
        self.stays: Callable[[BoundSymbol], bool] = lambda _: False

    def steps(self, statements: Iterable[BoundSymbol], emitted: list[BoundSymbol], inner: bool = False) -> list[Step]:
        """The steps of `statements`; what runs is appended to `emitted`.

        Args:
            inner: whether these are what an operation is made of, of which the user's program says nothing.
        """
        steps: list[Step] = []
        for statement in statements:
            outputs = self.active_outputs(statement, inner)
            if outputs:
                self.active.update(outputs)
                steps += self.differentiated(statement, emitted)
            else:
                emitted.append(statement)
        return steps

    def active_outputs(self, statement: BoundSymbol, inner: bool) -> list[TensorProxy]:
        if not inner:
            self.mark_unknown(statement)
            marked = [p for p in statement.outputs if isinstance(p, TensorProxy) and p.requires_grad]
            return marked if self.active.intersection(statement.inputs) else []
        return differentiable_outputs(statement, self.active)

    def mark_unknown(self, statement: BoundSymbol) -> None:
        if self.known is not None and not self.known.issuperset(statement.outputs):
            for p in differentiable_outputs(statement, self.active):
                p.requires_grad |= p not in self.known

    def differentiated(self, statement: BoundSymbol, emitted: list[BoundSymbol]) -> list[Step]:
        """The steps of one operation, by the first way that there is."""
        symbol = statement.symbol
        if self.has_complex(statement) and symbol.implementation is not None:
            return [self.by_torch(statement, emitted)]
        stays = self.stays(statement)
        if (
            not stays
            and symbol in rewrites
            and _takes(rewrites[symbol], 0, statement)
            and (parts := self.rewritten(statement)) is not None
        ):
            return self.steps(parts, emitted, inner=True)
        if not stays and symbol in augmented_rules and (step := self.augmented(statement, emitted)) is not None:
            return [step]
        if symbol in gradient_rules and _takes(gradient_rules[symbol], 2, statement):
            emitted.append(statement)
            return [self.by_rule(statement)]
        if not statement.subsymbols or (symbol in by_torch and not stays):
            return [self.by_torch(statement, emitted)]
        allowed = _can_be_handed_on if is_region(statement) else _can_be_repeated
        if all(map(allowed, statement.leaves())):
            return [self.by_repetition(statement, emitted)]
        parts = [s.replaced(source=s.source or statement.source) for s in statement.subsymbols]
        return self.steps(parts, emitted, inner=True)

    def has_complex(self, statement: BoundSymbol) -> bool:
        """Whether the operation computes with complex numbers in ways that the rules are not made for."""
        if not _has_complex(statement):
            return False
        return any(leaf.symbol not in HOLDS_FOR_COMPLEX_NUMBERS for leaf in statement.leaves() if _has_complex(leaf))

    # ---- ways to differentiate ----

    @contextmanager
    def scope(self) -> Iterator[list[BoundSymbol]]:
        """Inside, calls of symbols are recorded in the list."""
        statements: list[BoundSymbol] = []
        self.recorder.scopes.append(statements)
        try:
            yield statements
        finally:
            self.recorder.scopes.pop()

    def in_place_of(self, statement: BoundSymbol, recorded: list[BoundSymbol], out: Any) -> list[BoundSymbol]:
        """What was recorded, with the values of `statement` for those of `out`, and its line."""
        mapping = dict(zip(unique_proxies(out), unique_proxies(statement.output)))
        mapping = {new: old for new, old in mapping.items() if new is not old}
        self.renamed.update(mapping)
        return [s.with_values(mapping).replaced(source=statement.source) for s in recorded]

    def rewritten(self, statement: BoundSymbol) -> list[BoundSymbol] | None:
        with self.scope() as recorded:
            args, kwargs = self.numbers.opened((statement.args, statement.kwargs))
            out = rewrites[statement.symbol](*args, **kwargs)
        return None if out is None else self.in_place_of(statement, recorded, out)

    def augmented(self, statement: BoundSymbol, emitted: list[BoundSymbol]) -> Step | None:
        rule = augmented_rules[statement.symbol]
        if not _takes(rule, 1, statement):
            return None
        with self.scope() as recorded:
            args, kwargs = self.numbers.opened((statement.args, statement.kwargs))
            made = rule(self.needs_gradient, *args, **kwargs)
        if made is None:
            return None
        out, pullback = made
        emitted += self.in_place_of(statement, recorded, out)
        arguments = _arguments(rule, 1, statement)

        def pull(grads: list[TensorProxy | None]) -> Gradients:
            return list(self.paired(arguments, pullback(_like(statement.output, grads))))

        return Step(_tensors(statement), pull, statement.source)

    def by_rule(self, statement: BoundSymbol) -> Step:
        rule = gradient_rules[statement.symbol]
        arguments = _arguments(rule, 2, statement)

        def pull(grads: list[TensorProxy | None]) -> Gradients:
            g = _like(statement.output, grads)
            args, kwargs = self.numbers.opened((statement.args, statement.kwargs))
            return list(self.paired(arguments, rule(g, statement.output, *args, **kwargs)))

        return Step(_tensors(statement), pull, statement.source)

    def by_torch(self, statement: BoundSymbol, emitted: list[BoundSymbol]) -> Step:
        kept, pullback = with_kept_graph(statement, self.active)
        emitted.append(kept)
        return Step(_tensors(statement), pullback, statement.source)

    def by_repetition(self, statement: BoundSymbol, emitted: list[BoundSymbol]) -> Step:
        """The backward computes again what the operation is made of; what that does not need is dead code.

        What may not be computed again, a region hands on.
        """
        source = statement.source
        random = [leaf for leaf in statement.leaves() if Tag.RANDOM in leaf.symbol.tags]
        once = [p for leaf in random for p in leaf.outputs]
        tensors = _tensors(statement)
        if once:
            outputs = tuple(dict.fromkeys((*statement.outputs, *once)))
            statement = region(statement.symbol.name, list(_random_apart(statement.subsymbols)), outputs)
        emitted.append(statement)
        repeated: list[BoundSymbol] = []
        inner = self.steps(statement.subsymbols, repeated, inner=True)
        available = set(statement.outputs)
        repeated = [s for r in repeated if (s := _without(r, available, self.recorder)) is not None]

        def pull(grads: list[TensorProxy | None]) -> Gradients:
            recorder = current_recorder()
            recorder.scopes[-1].extend(repeated)
            found = pull_back(recorder, inner, [(p, g) for p, g in zip(tensors, grads) if g is not None])
            if statement.symbol.id in REQUIRE:
                found = {p: zeros_like(p) for p in statement.inputs if self.needs_gradient(p)} | found
            return [(p, found[p]) for p in statement.inputs if p in found]

        return Step(tensors, pull, source)

    # ---- gradients of arguments ----

    def needs_gradient(self, x: Any) -> bool:
        return isinstance(x, Proxy) and x in self.active

    def paired(self, arguments: dict[str, Any] | Sequence[Any], grads: Any) -> Iterator[tuple[Proxy, TensorProxy]]:
        """(value, gradient) for the arguments that need gradients."""
        for x, g in zip(arguments, grads):
            if g is None:
                continue
            if isinstance(x, tuple | list):
                yield from self.paired(x, g)
            elif self.needs_gradient(x):
                yield x, g


def _can_be_repeated(leaf: BoundSymbol) -> bool:
    """Whether the backward may compute it again; what torch must differentiate would be run twice."""
    symbol = leaf.symbol
    if symbol.module != "prims" or symbol.tags & {Tag.RANDOM, Tag.EFFECT}:
        return False
    has_rule = symbol in gradient_rules or symbol in augmented_rules or symbol in STOPS
    return has_rule or not (_has_inexact(leaf.inputs) and _has_inexact(leaf.outputs))


def _has_complex(statement: BoundSymbol) -> bool:
    values = (*statement.inputs, *statement.outputs)
    return any(isinstance(p, TensorProxy) and is_complex(p.dtype) for p in values)


def _has_inexact(values: Iterable[Proxy]) -> bool:
    return any(isinstance(p, TensorProxy) and is_inexact(p.dtype) for p in values)


def _can_be_handed_on(leaf: BoundSymbol) -> bool:
    """Whether a region may hold the operation: what it gives can be kept, if it cannot be computed again."""
    return leaf.symbol.module == "prims" or not leaf.symbol.tags & {Tag.RANDOM, Tag.EFFECT}


def _random_apart(statements: Iterable[BoundSymbol]) -> Iterator[BoundSymbol]:
    """The same, with random operations that others are made of as statements of their own."""
    for statement in statements:
        if statement.subsymbols and any(Tag.RANDOM in leaf.symbol.tags for leaf in statement.leaves()):
            yield from _random_apart(s.replaced(source=s.source or statement.source) for s in statement.subsymbols)
        else:
            yield statement


def _without(statement: BoundSymbol, available: set[Proxy], recorder: TraceRecorder) -> BoundSymbol | None:
    """`statement`, giving other names to what is available already; None if it gives nothing else."""
    again = [p for p in statement.outputs if p in available]
    if len(again) == len(statement.outputs):
        return None
    fresh = {p: copied(p, recorder) for p in again}
    return statement.with_values(fresh) if fresh else statement


def copied(p: Proxy, recorder: TraceRecorder) -> Proxy:
    """Another value of the kind of `p`."""
    if not isinstance(p, TensorProxy):
        return NumberProxy(recorder.new_name(), p.kind) if isinstance(p, NumberProxy) else type(p)(recorder.new_name())
    return TensorProxy(recorder.new_name(), shape=p.shape, dtype=p.dtype, device=p.device, strides=p.strides)


def _tensors(statement: BoundSymbol) -> tuple[TensorProxy, ...]:
    return tuple(p for p in unique_proxies(statement.output) if isinstance(p, TensorProxy))


def _like(output: Any, grads: Sequence[TensorProxy | None]) -> Any:
    """`grads`, which are those of the tensors of `output`, nested as these are."""
    if isinstance(output, TensorProxy):
        return grads[0]
    of = dict(zip((p for p in unique_proxies(output) if isinstance(p, TensorProxy)), grads))
    return _nested(output, of)


def _nested(output: Any, of: dict[Proxy, TensorProxy | None]) -> Any:
    if isinstance(output, tuple | list):
        return tuple(_nested(x, of) for x in output)
    return of.get(output) if isinstance(output, Proxy) else None


@cache
def _parameters(rule: Callable) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(rule).parameters.values())


def _takes(rule: Callable, skipped: int, statement: BoundSymbol) -> bool:
    """Whether a rule has parameters for all that the call names."""
    parameters = _parameters(rule)[skipped:]
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters):
        return True
    return {p.name for p in parameters}.issuperset(statement.kwargs)


def _arguments(rule: Callable, skipped: int, statement: BoundSymbol) -> list[Any]:
    """The arguments of a call in the order of the rule's parameters after the first `skipped`."""
    arguments: list[Any] = []
    positional = iter(statement.args)
    for parameter in _parameters(rule)[skipped:]:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            arguments += positional
        elif parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            arguments.append(next(positional, statement.kwargs.get(parameter.name)))
    return arguments
