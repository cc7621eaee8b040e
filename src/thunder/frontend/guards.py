"""What a trace depended on -> the prologue: a program that checks it, and fetches the tensors the computation takes."""

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder.core.printing import Live, Printer, statement_rules
from thunder.core.proxies import Proxy
from thunder.core.symbol import BoundSymbol, Symbol, Tag
from thunder.core.trace import Trace
from thunder.frontend.tensor_guards import describe_tensor, is_row_major, share_no_memory, tensor_guards


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """How to get at an object: from a root (the prologue's argument or a live object) by steps.

    Attributes:
        name: what the object is called where it gets a name of its own.
        step: Python text that follows the parent's expression (`._modules["fc"]`, `[0]`), for a root the argument's
            name or the live object.
        parent: None for a root.
    """

    name: str
    step: Any
    parent: "Access | None" = None

    def attribute(self, name: str) -> "Access":
        return Access(f"{self.name}_{name}", f".{name}", self)

    def item(self, key: Any, *, of: str = "") -> "Access":
        """The item `key`, of the attribute `of` where that is given."""
        return Access(f"{self.name}_{_identifier(key)}", f"{of}[{key!r}]", self)

    def named(self, name: str) -> "Access":
        return Access(name, self.step, self.parent)


def _identifier(key: Any) -> str:
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in str(key))
    return text or "item"


@dataclass(frozen=True, slots=True)
class Guard:
    """One condition under which a trace may be used again.

    Attributes:
        subject: what must be so, as the user would call it.
        condition: a Python expression, in parts: text, and objects that the printer names.
        place: the expression of the value that is looked at, in parts, where there is one.
        expected: the value that was found there.
        tensors: for a check of tensors, their names, what they were, and which of their sizes may vary.
    """

    subject: str
    condition: tuple[Any, ...]
    place: tuple[Any, ...] | None = None
    expected: Any = None
    tensors: tuple[list[str], list[str], list[tuple[bool, ...]]] | None = None


check = Symbol("check", "prologue", tags=(Tag.EFFECT,))
unpack = Symbol("unpack", "prologue")


def print_parts(parts: Iterable[Any], printer: Printer) -> str:
    return "".join(part if isinstance(part, str) else printer.value(part) for part in parts)


def _print_check(bound_symbol: BoundSymbol, printer: Printer) -> list[str]:
    conditions = " and ".join(print_parts(guard.condition, printer) for guard in bound_symbol.args)
    return [f"if not ({conditions}): return None"]


def _print_unpack(bound_symbol: BoundSymbol, printer: Printer) -> list[str]:
    return [f"{bound_symbol.output.name} = {print_parts(bound_symbol.args[0], printer)}"]


statement_rules[check] = _print_check
statement_rules[unpack] = _print_unpack


def without_guards(prologue: Trace) -> Trace:
    """The prologue that fetches the computation's inputs and checks nothing."""
    fetches = [statement for statement in prologue.bound_symbols if statement.symbol is not check]
    return prologue.derived(fetches, "Leave Out Guards")


def same_value(place: tuple[Any, ...], x: Any) -> tuple[Any, ...]:
    """The expression that the value at `place` is `x`: an equal one of one type if it is a constant, else the same."""
    if isinstance(x, float) and math.isnan(x):
        return ("type(", *place, ") is float and ", *place, " != ", *place)
    if type(x) in (bool, int, float, complex, str, bytes):
        literal = repr(x) if isinstance(x, str | bytes) else x
        sign = (" and str(", *place, f") == {str(x)!r}") if type(x) is float and x == 0 else ()
        return ("type(", *place, ") is ", type(x), " and ", *place, " == ", literal, *sign)
    if x is None or isinstance(x, torch.dtype | type):
        return (*place, " is ", x)
    if isinstance(x, torch.device | torch.Size):
        return (*place, " == ", x)
    if isinstance(x, range):
        return (*place, " == ", Live(x, "range_"))
    return (*place, " is ", Live(x, x.name if isinstance(x, enum.Enum) else type(x).__name__))


class Prologue:
    """Builds the prologue while a program is traced."""

    def __init__(self) -> None:
        self.args = Access("args", "args")
        self.kwargs = Access("kwargs", "kwargs")
        self.trace = Trace("prologue", (Proxy("args"), Proxy("kwargs")), decorated=False)
        self.trace.names.update(("args", "kwargs"))
        self.guards: list[Guard] = []
        self._locals: dict[Access, Proxy] = {}
        self._tensors: list[tuple[Proxy, torch.Tensor, tuple[bool, ...]]] = []

    def fetch(self, access: Access, proxy: Proxy | None = None) -> Proxy:
        """The value in the prologue that `access` leads to, under the name of `proxy` where that is given."""
        if (known := self._locals.get(access)) is not None:
            return known
        if access.parent is None and access.step in ("args", "kwargs"):
            value = next(p for p in self.trace.args if p.name == access.step)
        else:
            parts = (access.step,) if access.parent is None else (self.fetch(access.parent), access.step)
            value = proxy or Proxy(self.trace.new_name(access.name))
            self.trace.names.add(value.name)
            self.trace.bound_symbols.append(BoundSymbol(unpack, (parts,), {}, value))
        self._locals[access] = value
        return value

    def require(self, subject: str, *condition: Any) -> None:
        """The trace holds only where `condition` does."""
        self.require_all([Guard(subject, condition)])

    def require_all(self, guards: Sequence[Guard]) -> None:
        """The trace holds only where all of these do; they print as one statement."""
        if guards:
            self.guards += guards
            self.trace.bound_symbols.append(BoundSymbol(check, tuple(guards), {}, None))

    def require_call(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """As many positional arguments, and the same keywords."""
        names = list(kwargs)
        condition = f"len(args) == {len(args)} and " + (f"list(kwargs) == {names!r}" if names else "not kwargs")
        self.require("the number of arguments", condition)

    def require_container(self, access: Access, x: Any) -> None:
        """A container of the same type and size; a dictionary with the same keys in the same order."""
        value = self.fetch(access)
        if isinstance(x, dict):
            self.require(access.name, "type(", value, ") is ", type(x), " and list(", value, ") == ", list(x))
        else:
            self.require(access.name, "type(", value, ") is ", type(x), " and len(", value, f") == {len(x)}")

    def require_value(self, access: Access, x: Any) -> None:
        """The same number, string or other constant; any other object: the very same."""
        place = (self.fetch(access),)
        self.require_all([Guard(access.name, same_value(place, x), place, x)])

    def require_tensor(
        self, access: Access, x: torch.Tensor, proxy: Proxy | None = None, varying: tuple[bool, ...] = ()
    ) -> Proxy:
        """A tensor of the same class and metadata, but for the sizes that `varying` names; then it is row-major."""
        value = self.fetch(access, proxy)
        self._tensors.append((value, x, varying))
        return value

    def require_same_object(self, first: Access, second: Access) -> None:
        """The two arguments are one tensor."""
        self.require(f"{second.name} being {first.name}", self.fetch(second), " is ", self.fetch(first))

    def require_distinct_objects(self, accesses: Sequence[Access]) -> None:
        """No two of the arguments are one tensor."""
        if len(accesses) == 2:
            first, second = map(self.fetch, accesses)
            self.require("tensors that are not one", first, " is not ", second)
        elif len(accesses) > 2:
            ids = ", ".join(f"id({self.fetch(a).name})" for a in accesses)
            self.require("tensors that are not one", f"len({{{ids}}}) == {len(accesses)}")

    def require_memory_of_their_own(self, tensors: Sequence[Proxy], others: Sequence[Proxy]) -> None:
        """No two of `tensors` share memory, nor one of them and one of the others."""
        names = [f"[{', '.join(p.name for p in group)}]" for group in (tensors, others)]
        condition = (Live(share_no_memory, "share_no_memory"), f"({', '.join(names)})")
        self.require("memory that tensors share", *condition)

    def finish(self, outputs: Iterable[Proxy]) -> Trace:
        """The prologue, which returns `outputs`."""
        if self._tensors:
            names = [value.name for value, *_ in self._tensors]
            varying = [sizes for *_, sizes in self._tensors]
            guards = tensor_guards([x for _, x, _ in self._tensors], varying)
            condition = (guards, f".check({', '.join(names)})")
            found = (names, [describe_tensor(x, sizes) for _, x, sizes in self._tensors], varying)
            place = (f"({', '.join(names)},)",)
            self.require_all([Guard("the metadata of tensors", condition, place, tensors=found)])
            for name, sizes in zip(names, varying):
                if any(sizes):
                    self.require(f"the layout of {name}", Live(is_row_major, "is_row_major"), f"({name})")
        self.trace.output = tuple(outputs)
        return self.trace
