"""The numbers of a trace as gradient rules hold them: what a rule computes with one is recorded, as for a tensor."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from thunder.core.errors import UnsupportedError
from thunder.core.numbers import Number, SymbolicFloat, SymbolicInt, SymbolicNumber, map_numbers, symbol_of
from thunder.core.proxies import NumberProxy
from thunder.core.recording import current_recorder
from thunder.core.symbol import BoundSymbol

# What gives a number of one type, and never fails, whatever the numbers are.
_ALLOWED = frozenset({operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.abs, float})


class NumberOperands:
    """Those of one trace.

    Args:
        values: what they are in the call that the trace was made for.
    """

    def __init__(self, values: Mapping[NumberProxy, Number]):
        self.values = dict(values)

    def opened(self, tree: Any) -> Any:
        """Nested arguments of a call in the trace, as a rule takes them."""
        if not self.values:
            return tree
        current_recorder().named = self.named
        return map_numbers(tree, NumberProxy, self.number)

    def named(self, tree: Any) -> Any:
        return map_numbers(tree, SymbolicNumber, lambda x: x.proxy)

    def number(self, proxy: NumberProxy) -> SymbolicNumber:
        if proxy not in self.values:
            raise self.must_be_constant("is not known")
        return (SymbolicInt if proxy.kind is int else SymbolicFloat)(proxy, self.values[proxy], self)

    def computed(self, function: Callable, operands: tuple[Any, ...]) -> Any:
        if function not in _ALLOWED:
            raise self.must_be_constant("is computed with in a way that may fail")
        value = function(*(x.value if isinstance(x, SymbolicNumber) else x for x in operands))
        proxy = NumberProxy(current_recorder().new_name(), type(value))
        self.values[proxy] = value
        current_recorder().keep(BoundSymbol(symbol_of(function), self.named(operands), {}, proxy))
        return self.number(proxy)

    def decided(self, function: Callable, operands: tuple[Any, ...]) -> Any:
        raise self.must_be_constant("is compared")

    def value_of(self, number: SymbolicNumber) -> Number:
        raise self.must_be_constant("is looked at")

    def must_be_constant(self, what: str) -> BaseException:
        return UnsupportedError(
            f"A number that a gradient depends on {what} by the rule of an operation.", "Use a constant, or a tensor."
        )
