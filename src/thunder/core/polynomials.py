"""Polynomials of sizes: what a trace knows of a size that may be another one at a later call.

Equal expressions have equal polynomials, so that most questions about sizes (is 4 * n // 4 the same as n?) need no
condition. A quotient or remainder that does not come out even is an unknown of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any


@dataclass(eq=False, slots=True)
class Unknown:
    """A size of an argument, or a quotient or remainder of sizes.

    Attributes:
        label: what comments call it.
        place: the expression of the prologue that gives it, in parts.
        value: what it is in this call.
        least: what it never falls below; None if that is not known.
        made_of: the unknowns in a quotient or remainder, and those in these.
        equals: what else it is, once that is a condition.
    """

    label: str
    place: tuple[Any, ...]
    value: int
    least: int | None
    made_of: frozenset["Unknown"] = frozenset()
    equals: "Polynomial | None" = None
    serial: int = field(default_factory=count().__next__)


class Polynomial:
    """A sum of products of unknowns. `terms` maps products, which are tuples of unknowns, to factors."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[tuple[Unknown, ...], int]):
        self.terms = {product: factor for product, factor in terms.items() if factor}

    @classmethod
    def of(cls, x: "int | Unknown") -> "Polynomial":
        return cls({(): x} if isinstance(x, int) else {(x,): 1})

    @property
    def is_number(self) -> bool:
        return not any(self.terms)

    @property
    def value(self) -> int:
        return sum(factor * math.prod(u.value for u in product) for product, factor in self.terms.items())

    @property
    def unknowns(self) -> list[Unknown]:
        """In the order in which they were met."""
        return sorted({u for product in self.terms for u in product}, key=lambda u: u.serial)

    def key(self) -> Any:
        """What is equal for equal polynomials alone."""
        return frozenset(self.terms.items())

    def simplified(self) -> "Polynomial":
        """The same, in terms of what is not known to be something else."""
        if all(u.equals is None for u in self.unknowns):
            return self
        result = Polynomial({})
        for product, factor in self.terms.items():
            term = Polynomial.of(factor)
            for u in product:
                term *= Polynomial.of(u) if u.equals is None else u.equals.simplified()
            result += term
        return result

    def __add__(self, other: "Polynomial") -> "Polynomial":
        terms = dict(self.terms)
        for product, factor in other.terms.items():
            terms[product] = terms.get(product, 0) + factor
        return Polynomial(terms)

    def __neg__(self) -> "Polynomial":
        return Polynomial({product: -factor for product, factor in self.terms.items()})

    def __sub__(self, other: "Polynomial") -> "Polynomial":
        return self + -other

    def __mul__(self, other: "Polynomial") -> "Polynomial":
        result = Polynomial({})
        for p, a in self.terms.items():
            for q, b in other.terms.items():
                result += Polynomial({_sorted(p + q): a * b})
        return result

    def divided(self, divisor: "Polynomial") -> tuple["Polynomial", "Polynomial"]:
        """(quotient, rest) with quotient * divisor + rest being this; of the rest, no term is a multiple of it."""
        quotient, rest = {}, {}
        if len(divisor.terms) != 1:
            return (Polynomial.of(1), Polynomial({})) if self.key() == divisor.key() else (Polynomial({}), self)
        ((by, factor_by),) = divisor.terms.items()
        for product, factor in self.terms.items():
            left = _without(product, by)
            if left is None or factor % factor_by:
                rest[product] = factor
            else:
                quotient[left] = factor // factor_by
        return Polynomial(quotient), Polynomial(rest)

    def without_common_factor(self) -> "Polynomial":
        """The same divided by what is a factor of all terms and never less than one: it has the same sign."""
        return self.divided(self.common_factor(self))[0]

    def common_factor(self, other: "Polynomial") -> "Polynomial":
        """The product of unknowns, each never less than one, that is a factor of all terms of both."""
        common: list[Unknown] = []
        for u in self.unknowns:
            if u.least is not None and u.least > 0:
                common += [u] * min(product.count(u) for product in (*self.terms, *other.terms))
        return Polynomial({tuple(common): 1})

    def sides(self) -> tuple["Polynomial", "Polynomial"]:
        """Two polynomials without negative factors, of which this is the difference."""
        return (
            Polynomial({product: factor for product, factor in self.terms.items() if factor > 0}),
            Polynomial({product: -factor for product, factor in self.terms.items() if factor < 0}),
        )

    @property
    def least(self) -> int | None:
        """What it never falls below, as far as that can be told."""
        total = 0
        for product, factor in self.terms.items():
            leasts = [u.least for u in product]
            if product and (factor < 0 or any(x is None or x < 0 for x in leasts)):
                return None
            total += factor * math.prod(leasts)
        return total

    def place(self) -> tuple[Any, ...]:
        """The expression of the prologue that gives it, in parts."""
        return self._expression(lambda u: u.place)

    @property
    def label(self) -> str:
        return "".join(self._expression(lambda u: (u.label,)))

    def _expression(self, of: Callable[[Unknown], tuple[Any, ...]]) -> tuple[Any, ...]:
        if self.is_number:
            return (str(self.value),)
        parts: tuple[Any, ...] = ()
        for product, factor in self.terms.items():
            factors = [of(u) for u in product]
            if factor != 1 or not product:
                factors.insert(0, (str(factor),))
            parts += (" + ",) * bool(parts) + factors[0]
            for x in factors[1:]:
                parts += (" * ", *x)
        is_one = len(self.terms) == 1 and sum(map(len, self.terms)) + (sum(self.terms.values()) != 1) == 1
        return parts if is_one else ("(", *parts, ")")


def _sorted(product: tuple[Unknown, ...]) -> tuple[Unknown, ...]:
    return tuple(sorted(product, key=lambda u: u.serial))


def _without(product: tuple[Unknown, ...], by: tuple[Unknown, ...]) -> tuple[Unknown, ...] | None:
    """The factors that are left of a product divided by another; None where that does not come out even."""
    left = list(product)
    for u in by:
        if u not in left:
            return None
        left.remove(u)
    return tuple(left)
