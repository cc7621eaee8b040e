"""The sizes of the tensors that a program is given, where they may be others at a later call.

A size is an unknown; what the program, and the rules of operations, compute from sizes are polynomials of them. What
these decide by sizes that is not so for all of them becomes a condition of the prologue.
"""

import operator
from collections.abc import Callable
from typing import Any

import torch

from thunder.core.numbers import FloatOfSize, SymbolicNumber, SymbolicSize
from thunder.core.polynomials import Polynomial, Unknown
from thunder.core.proxies import NumberProxy, TensorProxy, contiguous_strides
from thunder.core.symbol import BoundSymbol
from thunder.frontend.guards import Guard, Prologue, unpack

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_texts = {getattr(operator, name): text for name, text in _COMPARISONS.items()}

_opposites = {
    operator.eq: operator.ne, operator.ne: operator.eq, operator.lt: operator.ge,
    operator.ge: operator.lt, operator.gt: operator.le, operator.le: operator.gt,
}  # fmt: skip
_mirrored = {operator.lt: operator.gt, operator.gt: operator.lt, operator.le: operator.ge, operator.ge: operator.le}


class Sizes:
    """Those of one program.

    Args:
        numbers: its other numbers, and its trace.
        prologue: to which conditions go.

    Attributes:
        are_used: whether there are any.
        are_refused: what was made of them did not keep their names: the trace is of no use.
        is_fixed: nothing can become a condition any more: what is asked about sizes from now on is for show.
    """

    def __init__(self, numbers: Any, prologue: Prologue):
        self.numbers, self.prologue = numbers, prologue
        self.are_used = self.is_fixed = self.are_refused = False
        self._inputs: dict[Any, NumberProxy] = {}
        self._parts: dict[Any, Unknown] = {}  # quotients and remainders
        self._conditions: set[Any] = set()

    # ---- where sizes come from ----

    def of_argument(self, x: torch.Tensor, proxy: TensorProxy, local: Any) -> None:
        """Make sizes of `proxy` symbolic; the prologue calls the tensor `local`. Sizes of 0 and 1 mean too much."""
        if type(x) is not torch.Tensor or x.stride() != contiguous_strides(x.shape):
            return
        unknowns = {
            d: Unknown(f"{proxy.name}_{d}", (local, f".shape[{d}]"), size, 2)
            for d, size in enumerate(x.shape)
            if size > 1
        }
        self.prologue.require_all(
            [Guard(f"dimension {d} of {proxy.name}", (*u.place, " > 1"), u.place, u.value) for d, u in unknowns.items()]
        )
        if unknowns:
            self.numbers.has_come()
            self.are_used = True
        proxy.shape = tuple(
            self.number(Polynomial.of(unknowns[d])) if d in unknowns else size for d, size in enumerate(x.shape)
        )
        proxy.strides = contiguous_strides(proxy.shape)

    def number(self, polynomial: Polynomial) -> Any:
        polynomial = polynomial.simplified()
        if polynomial.is_number:
            return polynomial.value
        return SymbolicSize(polynomial, self)

    # ---- what becomes of them ----

    def computed(self, function: Callable, operands: tuple[Any, ...]) -> Any:
        if function is float and isinstance(operands[0], SymbolicSize):
            return self.as_float(operands[0])
        if not all(type(x) in (int, bool) or isinstance(x, SymbolicSize) for x in operands) or function not in _rules:
            return self.numbers.computed(function, operands)
        return _rules[function](self, *map(_polynomial, operands))

    def as_float(self, size: SymbolicSize) -> FloatOfSize:
        place = ("float(", *size.place, ")")
        proxy = self.input(("float", size.polynomial.key()), "size", place, float(size.value))
        if proxy.size is None:
            proxy.size = FloatOfSize(proxy, float(size.value), self, place)
            proxy.size.label = size.label
        return proxy.size

    def divided(self, a: Polynomial, b: Polynomial) -> Any:
        a, b, _ = self.without_common_factor(a, b)
        quotient, rest = a.divided(b)
        return self.number(quotient + self.part(operator.floordiv, rest, b) if rest.terms else quotient)

    def remainder(self, a: Polynomial, b: Polynomial) -> Any:
        a, b, common = self.without_common_factor(a, b)
        _, rest = a.divided(b)
        return self.number(common * self.part(operator.mod, rest, b)) if rest.terms else 0

    def without_common_factor(self, a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial, Polynomial]:
        """What is divided, by what, both without their common factor, and that. The divisor is not zero."""
        if b.is_number and not b.terms:
            raise ZeroDivisionError("integer division or modulo by zero")
        if not b.is_number and (b.least is None or b.least < 1):
            if not b.value:
                self.value_of(SymbolicSize(b, self))
                raise ZeroDivisionError("integer division or modulo by zero")
            self.compared(operator.ne, b, Polynomial({}))
        common = a.common_factor(b)
        return a.divided(common)[0], b.divided(common)[0], common

    def part(self, function: Callable, a: Polynomial, b: Polynomial) -> Polynomial:
        """The quotient or remainder of two polynomials, which are numbers or make an unknown."""
        if a.is_number and b.is_number:
            return Polynomial.of(function(a.value, b.value))
        key = (function, a.key(), b.key())
        if key not in self._parts:
            text = " // " if function is operator.floordiv else " % "
            label, place = f"({a.label}{text}{b.label})", ("(", *a.place(), text, *b.place(), ")")
            is_positive = b.least is not None and b.least > 0
            bounded = is_positive and (function is operator.mod or (a.least is not None and a.least >= 0))
            within = frozenset(v for u in (*a.unknowns, *b.unknowns) for v in (u, *u.made_of))
            value = function(a.value, b.value)
            self._parts[key] = Unknown(label, place, value, 0 if bounded else None, within)
        return Polynomial.of(self._parts[key]).simplified()

    def decided(self, function: Callable, operands: tuple[Any, ...]) -> Any:
        if not all(type(x) in (int, bool) or isinstance(x, SymbolicSize) for x in operands):
            return self.numbers.decided(function, operands)
        return self.compared(function, *map(_polynomial, operands))

    def compared(self, function: Callable, a: Polynomial, b: Polynomial) -> bool:
        difference = (a - b).simplified().without_common_factor()
        outcome = function(difference.value, 0)
        if self.is_fixed or _is_so(function, difference) or (function, difference.key()) in self._conditions:
            return outcome
        self._conditions.add((function, difference.key()))
        if a.is_number:
            difference, function = -difference, _mirrored.get(function, function)
        left, right = difference.sides()
        text = f" {_texts[function if outcome else _opposites[function]]} "
        condition = (*left.place(), text, *right.place())
        if right.is_number:
            self.require(left, condition)
        else:
            self.prologue.require_all([Guard(f"{left.label}{text}{right.label}", condition, condition, True)])
        if outcome is (function is operator.eq) and function in (operator.eq, operator.ne):
            self.learn(difference)
        return outcome

    def require(self, of: Polynomial, condition: tuple[Any, ...]) -> None:
        self.prologue.require_all([Guard(f"the size {of.label}", condition, of.place(), of.value)])

    def learn(self, zero: Polynomial) -> None:
        """That a polynomial is zero tells what an unknown is that stands in it once, alone."""
        for u in reversed(zero.unknowns):
            factor = zero.terms.get((u,))
            is_alone = sum(u in product for product in zero.terms) == 1
            if factor in (1, -1) and is_alone and not any(u in v.made_of for v in zero.unknowns):
                rest = Polynomial({product: x for product, x in zero.terms.items() if product != (u,)})
                u.equals = rest if factor == -1 else -rest
                return

    def value_of(self, size: SymbolicNumber) -> int | float:
        if isinstance(size, FloatOfSize):
            return size.value if self.is_fixed else self.numbers.value_of(size)
        if not self.is_fixed:
            for u in size.polynomial.unknowns:
                self.require(Polynomial.of(u), (*u.place, f" == {u.value}"))
                u.equals = Polynomial.of(u.value)
        return size.value

    def must_be_constant(self, what: str) -> BaseException:
        return self.numbers.must_be_constant(what)

    def text_of(self, size: SymbolicSize) -> str:
        """As text; the program's own question makes the value a condition, that of a rule for a message does not."""
        if not self.is_fixed and not self.numbers.tracer.is_unobserved:
            size.constant()
        return str(size.value)

    # ---- in the trace ----

    def size_input(self, size: SymbolicSize) -> NumberProxy:
        name = size.label if size.label.isidentifier() else "size"
        proxy = self.input(size.polynomial.key(), name, size.place, size.value)
        if proxy.size is None:
            proxy.size = size
        return proxy

    def input(self, key: Any, name: str, place: tuple[Any, ...], value: int | float) -> NumberProxy:
        """The input of the computation that the prologue finds at `place`, one for each key."""
        if key not in self._inputs:
            proxy = self._inputs[key] = NumberProxy(self.numbers.trace.new_name(name), type(value))
            self.prologue.trace.names.add(proxy.name)
            self.prologue.trace.bound_symbols.append(BoundSymbol(unpack, (place,), {}, proxy))
            self.numbers.inputs.append((proxy, value))
            self.numbers.tracer.evaluation.bind(proxy, value)
        return self._inputs[key]

    def fix(self) -> None:
        """From now on nothing that is asked about sizes has consequences."""
        self.is_fixed = True
        self.numbers = self.prologue = None


_rules: dict[Callable, Callable[..., Any]] = {
    operator.add: lambda sizes, a, b: sizes.number(a + b),
    operator.sub: lambda sizes, a, b: sizes.number(a - b),
    operator.mul: lambda sizes, a, b: sizes.number(a * b),
    operator.neg: lambda sizes, a: sizes.number(-a),
    operator.pos: lambda sizes, a: sizes.number(a),
    operator.floordiv: Sizes.divided,
    operator.mod: Sizes.remainder,
}


def _polynomial(x: Any) -> Polynomial:
    return x.polynomial if isinstance(x, SymbolicSize) else Polynomial.of(int(x))


def _is_so(function: Callable, difference: Polynomial) -> bool:
    """Whether a difference compares with zero in one way whatever the sizes are."""
    if difference.is_number:
        return True
    low, high = difference.least, (-difference).least
    high = None if high is None else -high
    if function in (operator.eq, operator.ne):
        return (low is not None and low > 0) or (high is not None and high < 0)
    if function in (operator.lt, operator.ge):
        return (low is not None and low >= 0) or (high is not None and high < 0)
    return (low is not None and low > 0) or (high is not None and high <= 0)


def varying(shape: tuple[Any, ...]) -> tuple[bool, ...]:
    """Which sizes may be others at a later call."""
    return tuple(isinstance(x, SymbolicSize) and not x.is_constant for x in shape)
