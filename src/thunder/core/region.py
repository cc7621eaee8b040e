"""A part of a program as one operation, made of the statements of that part."""

from collections.abc import Iterable, Sequence
from typing import Any

from thunder.core.proxies import NumberProxy, Proxy, TensorProxy
from thunder.core.symbol import BoundSymbol, Symbol, map_proxies, unique_proxies
from thunder.core.trace import Trace, record


class Region:
    """Runs the statements of a part of a program: takes the values they use, gives those that others use."""

    def __init__(self, statements: Sequence[BoundSymbol], inputs: Sequence[Proxy], outputs: Sequence[Proxy]):
        self.statements, self.inputs, self.outputs = statements, inputs, outputs

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        names = {p.name for s in self.statements for p in (*s.inputs, *s.outputs)}
        trace = Trace("region", tuple(self.inputs), list(self.statements), tuple(self.outputs), names=names)
        return trace.python_callable()(*values)


def region(name: str, statements: Sequence[BoundSymbol], outputs: Sequence[Proxy]) -> BoundSymbol:
    """The call of the operation called `name`, which lives in the trace's context, that is made of `statements`."""
    made: set[Proxy] = set()
    inputs: dict[Proxy, None] = {}
    for statement in statements:
        inputs.update(dict.fromkeys(p for p in statement.inputs if p not in made))
        made.update(statement.outputs)
    symbol = Symbol(name, None, implementation=Region(statements, tuple(inputs), outputs))
    return BoundSymbol(symbol, tuple(inputs), {}, tuple(outputs), tuple(statements), statements[0].source)


def is_region(bound_symbol: BoundSymbol) -> bool:
    return isinstance(bound_symbol.symbol.implementation, Region)


def used_outside(statements: Sequence[BoundSymbol], rest: Iterable[BoundSymbol], output: Any) -> list[Proxy]:
    """What `statements` compute and `rest` or the output use."""
    used = set(unique_proxies(output)).union(*(s.inputs for s in rest))
    return [p for s in statements for p in s.outputs if p in used]


def depends_on_sizes(statements: Sequence[BoundSymbol], inputs: Sequence[Proxy]) -> bool:
    """Whether there are sizes that the trace does not know, or numbers."""
    values = (*inputs, *(p for s in statements for p in s.outputs))
    return any(isinstance(p, NumberProxy) or any(type(n) is not int for n in p.shape) for p in values)


def of_sizes(
    statements: Sequence[BoundSymbol], inputs: Sequence[Proxy], outputs: Sequence[Proxy], values: Sequence[Any]
) -> tuple[list[BoundSymbol], list[Proxy], list[Proxy]]:
    """Statements, inputs and outputs for tensors of the sizes of `values`; the numbers among these are constants."""
    known: dict[Proxy, Any] = {}
    taken = []
    trace = Trace("region")
    with record(trace):
        for p, x in zip(inputs, values):
            known[p] = x
            if isinstance(p, TensorProxy):
                known[p] = TensorProxy(p.name, shape=x.shape, strides=x.stride(), dtype=p.dtype, device=p.device)
                taken.append(known[p])
        for statement in statements:
            args, kwargs = map_proxies((statement.args, statement.kwargs), known)
            new = unique_proxies(statement.symbol(*args, **kwargs))
            for old, p in zip(unique_proxies(statement.output), new):
                known[old], p.name = p, old.name
    sources = [b.source for b in statements]
    sized = [b.replaced(source=source) for b, source in zip(trace.bound_symbols, sources, strict=True)]
    return sized, taken, [known[p] for p in outputs]
