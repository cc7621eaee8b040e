"""A part of a program as one operation, made of the statements of that part."""

from collections.abc import Iterable, Sequence
from typing import Any

from thunder.core.proxies import Proxy
from thunder.core.symbol import BoundSymbol, Symbol, unique_proxies
from thunder.core.trace import Trace


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
