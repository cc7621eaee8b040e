"""Numbers that a trace holds by name rather than by value, and what a program that is traced holds in their place.

A `SymbolicNumber` computes as the Python number that it stands for, and the trace with it. Where the program decides by
it (a comparison, a size, a text), the outcome is asked of the number that there is in this call, and noted as a
condition: of the prologue where the number comes from arguments, else by a check in the computation.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from thunder.core.polynomials import Polynomial
from thunder.core.proxies import NumberProxy
from thunder.core.symbol import Symbol

Number = int | float


_symbols: dict[Callable, Symbol] = {}


def symbol_of(function: Callable) -> Symbol:
    """The operation of a trace that calls `function` of numbers."""
    if function not in _symbols:
        module = "operator" if function.__module__ == "_operator" else function.__module__
        _symbols[function] = Symbol(function.__name__, module, is_prim=True, implementation=function)
    return _symbols[function]


def is_of_numbers(symbol: Symbol) -> bool:
    """Whether an operation of a trace computes a number from numbers."""
    return symbol is _symbols.get(symbol.implementation)


class Arithmetic(Protocol):
    """Who records what becomes of the numbers of a program that is traced."""

    def computed(self, function: Callable, operands: tuple[Any, ...]) -> Any:
        """What `function` gives for numbers; recorded if it is a number again."""

    def decided(self, function: Callable, operands: tuple[Any, ...]) -> Any:
        """What a comparison gives; a later call must find the same."""

    def value_of(self, number: "SymbolicNumber") -> Number:
        """The value, which a later call must find again."""

    def size_input(self, size: "SymbolicSize") -> NumberProxy:
        """The input of the computation that a size is."""

    def text_of(self, size: "SymbolicSize") -> str:
        """A size as text; where the program asks, the value is a condition."""

    def must_be_constant(self, what: str) -> BaseException:
        """The error that has the program traced anew, with its numbers as constants."""


class SymbolicNumber:
    """Stands for an int or float. (No subclass of these: C code would take a value that no condition knows of.)

    Attributes:
        proxy: the value of the trace.
        value: the number in this call.
        place: for a number from arguments, the expression of the prologue that gives it, in parts; else None.
        origin: the function and the operands that it was computed from, if it was.
    """

    kind: type[Number]

    def __init__(
        self,
        proxy: NumberProxy,
        value: Number,
        arithmetic: Arithmetic,
        place: tuple[Any, ...] | None = None,
        origin: tuple[Callable, tuple[Any, ...]] | None = None,
    ):
        self.proxy, self.value, self.arithmetic, self.place, self.origin = proxy, value, arithmetic, place, origin
        self.is_constant = False  # once the value itself is a condition

    @property
    def __class__(self) -> type:
        """What `isinstance` sees."""
        return self.kind

    def constant(self) -> Number:
        """The value, which is a condition from now on."""
        return self.arithmetic.value_of(self)

    def converted(self, kind: type[Number]) -> Any:
        """The number as one of another type."""
        if kind is self.kind:
            return self
        return self.arithmetic.computed(kind, (self,)) if kind in (int, float) else kind(self.constant())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("node", "arithmetic"):
            raise AttributeError(name)
        return getattr(self.constant(), name)

    def __hash__(self) -> int:
        raise self.arithmetic.must_be_constant("is a key, or in a set")

    def __reduce_ex__(self, protocol: int) -> Any:
        raise self.arithmetic.must_be_constant("is copied or pickled")

    def __repr__(self) -> str:
        return repr(self.constant())

    def __str__(self) -> str:
        return str(self.constant())

    def __format__(self, specification: str) -> str:
        return format(self.constant(), specification)

    def __int__(self) -> int:
        return int(self.constant())

    def __float__(self) -> float:
        return float(self.constant())

    def __complex__(self) -> complex:
        return complex(self.constant())

    def __round__(self, *digits: int) -> Number:
        return round(self.constant(), *digits)

    def __bool__(self) -> bool:
        return self != 0

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if _is_operand(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if _is_operand(other) else NotImplemented

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return pow(self.constant(), constant(other), constant(modulus))
        return self.arithmetic.computed(operator.pow, (self, other)) if _is_operand(other) else NotImplemented


def _is_operand(x: Any) -> bool:
    return type(x) in (bool, int, float) or isinstance(x, SymbolicNumber)


def _rounding(name: str) -> Callable[[SymbolicNumber], int]:
    def method(self: SymbolicNumber) -> Any:
        return self if self.kind is int else getattr(self.constant(), name)()

    return method


def _unary(function: Callable) -> Callable[[SymbolicNumber], Any]:
    return lambda self: self.arithmetic.computed(function, (self,))


def _binary(function: Callable) -> Callable[[SymbolicNumber, Any], Any]:
    return lambda self, other: (
        self.arithmetic.computed(function, (self, other)) if _is_operand(other) else NotImplemented
    )


def _reflected(function: Callable) -> Callable[[SymbolicNumber, Any], Any]:
    return lambda self, other: (
        self.arithmetic.computed(function, (other, self)) if _is_operand(other) else NotImplemented
    )


def _comparison(function: Callable) -> Callable[[SymbolicNumber, Any], Any]:
    return lambda self, other: (
        self.arithmetic.decided(function, (self, other)) if _is_operand(other) else NotImplemented
    )


for _name in ("floor", "ceil", "trunc"):
    setattr(SymbolicNumber, f"__{_name}__", _rounding(f"__{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(SymbolicNumber, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"):
    _function = getattr(operator, _name)
    if _name != "pow":
        setattr(SymbolicNumber, f"__{_name.strip('_')}__", _binary(_function))
    setattr(SymbolicNumber, f"__r{_name.strip('_')}__", _reflected(_function))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(SymbolicNumber, f"__{_name}__", _comparison(getattr(operator, _name)))


class SymbolicInt(SymbolicNumber, torch.SymInt):
    """An int. (A `torch.SymInt`: torch's own functions take these for ints.)"""

    kind = int

    def __index__(self) -> int:
        return self.constant()


class SymbolicFloat(SymbolicNumber, torch.SymFloat):
    """A float."""

    kind = float


def constant(x: Any) -> Any:
    """`x`, or the number that it stands for, which is a condition from now on."""
    return x.constant() if isinstance(x, SymbolicNumber) else x


class SymbolicSize(SymbolicInt):
    """A size that may be another one at a later call, or an int computed of such: a polynomial of sizes of arguments.

    It comes from the prologue as one number; the trace computes nothing for it.
    """

    def __init__(self, polynomial: Polynomial, arithmetic: Arithmetic):
        self._polynomial, self.arithmetic = polynomial, arithmetic

    @property
    def polynomial(self) -> Polynomial:
        self._polynomial = self._polynomial.simplified()
        return self._polynomial

    @property
    def value(self) -> int:
        return self._polynomial.value

    @property
    def is_constant(self) -> bool:
        return self.polynomial.is_number

    @property
    def place(self) -> tuple[Any, ...]:
        return self.polynomial.place()

    @property
    def proxy(self) -> NumberProxy:
        return self.arithmetic.size_input(self)

    @property
    def label(self) -> str:
        """What comments call it."""
        return self.polynomial.label

    def __repr__(self) -> str:
        return self.arithmetic.text_of(self)

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(self.arithmetic.text_of(self), specification)


class FloatOfSize(SymbolicFloat):
    """`float(size)`, which comes from the prologue too."""

    label = ""


def as_size(x: Any) -> int:
    """`x` as a size of a tensor: symbolic if it is computed from sizes, else a number, which is a condition."""
    return x if isinstance(x, SymbolicSize) else operator.index(x)


def sizes_by_value(tree: Any) -> Any:
    """Nested arguments with the sizes that names stand for in the place of these."""
    return map_numbers(tree, NumberProxy, lambda x: x if x.size is None else x.size)


def map_numbers(tree: Any, kind: type, function: Callable[[Any], Any]) -> Any:
    """Nested arguments with what `function` gives for numbers of this kind."""
    if isinstance(tree, kind):
        return function(tree)
    cls = type(tree)
    if cls in (tuple, list, torch.Size):
        items = [map_numbers(x, kind, function) for x in tree]
        return items if cls is list else tuple(items)
    if cls is dict:
        return {k: map_numbers(v, kind, function) for k, v in tree.items()}
    if cls is slice:
        return slice(*(map_numbers(x, kind, function) for x in (tree.start, tree.stop, tree.step)))
    return tree


def sizes_in_this_call(sizes: Sequence[int]) -> tuple[int, ...]:
    """The numbers that sizes are now, which are no conditions."""
    return tuple(x.value if isinstance(x, SymbolicNumber) else x for x in sizes)
