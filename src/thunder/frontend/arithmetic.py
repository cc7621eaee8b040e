"""The numbers of a traced program: recorded where it computes with them, conditions where it decides by them."""

import dis
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from thunder.core import prims
from thunder.core.errors import NumbersMustBeConstant, UnsupportedError
from thunder.core.numbers import (
    FloatOfSize,
    Number,
    SymbolicFloat,
    SymbolicInt,
    SymbolicNumber,
    SymbolicSize,
    constant,
    is_of_numbers,
    map_numbers,
    symbol_of,
)
from thunder.core.proxies import NumberProxy
from thunder.core.recording import current_recorder
from thunder.core.symbol import BoundSymbol, unique_proxies
from thunder.core.trace import Trace
from thunder.frontend.guards import Access, Guard, Prologue, same_value
from thunder.frontend.sizes import Sizes

# Python's text for a function of numbers, as prologues print it.
_TEXTS: dict[Callable, tuple[str, ...]] = {
    **{
        getattr(operator, name): ("(", f" {text} ", ")")
        for name, text in {
            "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
            "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
            "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
        }.items()
    },
    operator.neg: ("(-", ")"), operator.pos: ("(+", ")"), operator.invert: ("(~", ")"), operator.abs: ("abs(", ")"),
    int: ("int(", ")"), float: ("float(", ")"),
}  # fmt: skip


_SEES_CALLS = sys.version_info >= (3, 12)  # before, profilers are told of no call of a class


@lru_cache(maxsize=16384)
def _asks_types(code: CodeType) -> bool:
    """Whether code may ask, unseen, for types, which tell what stands for a number from a number."""
    for i in dis.get_instructions(code):
        is_called = _SEES_CALLS and i.opname == "LOAD_GLOBAL" and i.arg & 1  # `type(x)`, which observers are told of
        if i.argval == "type" and i.opname in ("LOAD_GLOBAL", "LOAD_NAME") and not is_called:
            return True
    return any(isinstance(x, CodeType) and _asks_types(x) for x in code.co_consts)


class Numbers:
    """Those of one program.

    Args:
        tracer: traces the program.
        is_watched: whether code is the user's.
        symbolic: whether there may be any.

    Attributes:
        is_used: whether there are any.
        inputs: those of arguments, and what they are in this call.
    """

    def __init__(self, tracer: Any, prologue: Prologue, is_watched: Callable[[CodeType], bool], symbolic: bool):
        self.tracer, self.prologue, self.is_watched, self.symbolic = tracer, prologue, is_watched, symbolic
        self.trace: Trace = tracer.trace
        self.thread = threading.get_ident()
        self.is_used = False
        self.is_closed = False
        self.inputs: list[tuple[NumberProxy, Number]] = []
        self._conditions: set[tuple[Any, ...]] = set()
        self.sizes = Sizes(self, prologue)
        self._top: dict[NumberProxy, NumberProxy] = {}  # of the numbers, their names in the trace itself

    # ---- where numbers come from ----

    def of_argument(self, x: Number, access: Access) -> SymbolicNumber:
        """What stands for the argument that the prologue finds at `access`."""
        proxy = NumberProxy(self.trace.new_name(access.name), type(x))
        self.prologue.fetch(access, proxy)
        place = ("type(", proxy, ")")
        self.prologue.require_all([Guard(access.name, (*place, " is ", type(x)), place, type(x))])
        self.inputs.append((proxy, x))
        return self.number(proxy, x, place=(proxy,))

    def of_tensor(self, proxy: Any, value: Any) -> Any:
        """What stands for the number that a tensor holds, which is `value` in this call; None where nothing can."""
        if not self.symbolic or type(value) not in (int, float) or self.is_asked_for_types():
            return None
        return self.number(prims.item(proxy), value)

    def number(self, proxy: NumberProxy, value: Number, **known: Any) -> SymbolicNumber:
        recorder = self.has_come()
        if len(recorder.scopes) == 1:
            self._top[proxy] = proxy
        self.tracer.evaluation.bind(proxy, value)
        return (SymbolicInt if type(value) is int else SymbolicFloat)(proxy, value, self, **known)

    def has_come(self) -> Any:
        """Note that there are numbers; returns the recorder, which puts names in their place from now on."""
        self.is_used = True
        recorder = current_recorder()
        recorder.named = self.named
        return recorder

    def is_asked_for_types(self) -> bool:
        """Whether a function of the user's that runs now asks for the types of values."""
        frame, start = sys._getframe(1), self.tracer.start
        while frame is not None and frame is not start:
            if self.is_watched(frame.f_code) and _asks_types(frame.f_code):
                return True
            frame = frame.f_back
        return False

    def function_started(self, frame: FrameType) -> None:
        if self.is_used and not self.is_closed and _asks_types(frame.f_code):
            raise NumbersMustBeConstant("a function asks for types")

    def called(self, function: Any, first: Any) -> None:
        if function is type and isinstance(first, SymbolicNumber) and not self.is_closed:
            raise NumbersMustBeConstant("the program asks for the type of a number")

    # ---- what becomes of them ----

    def is_elsewhere(self) -> bool:
        """Whether another thread asks, which finds what the program keeps its numbers in."""
        return threading.get_ident() != self.thread

    def computed(self, function: Callable, operands: tuple[Any, ...]) -> Any:
        if self.is_elsewhere():
            return function(*map(_value, operands))
        self.require_open()
        if all(map(_is_known, operands)):
            return function(*map(constant, operands))
        try:
            value = function(*map(_value, operands))
        except Exception:
            for x in operands:
                constant(x)
            raise
        if type(value) not in (int, float):
            return function(*map(constant, operands))
        if function is operator.pow:
            self.decide_kind_of_power(*operands)
        proxy = self.record(function, operands, type(value))
        return self.number(proxy, value, place=_place(function, operands), origin=(function, operands))

    def decide_kind_of_power(self, base: Any, exponent: Any) -> None:
        """An int to the power of a negative one is a float, a negative float to that of a fraction is complex."""
        if isinstance(base, int) and isinstance(exponent, int):
            self.decided(operator.ge, (exponent, 0))
        elif not (type(exponent) is int or (type(exponent) is float and exponent.is_integer())):
            self.decided(operator.ge, (base, 0))

    def decided(self, function: Callable, operands: tuple[Any, ...]) -> Any:
        outcome = function(*map(_value, operands))
        if self.is_elsewhere():
            return outcome
        self.require_open()
        key = (function, *map(_key, operands))
        if all(map(_is_known, operands)) or key in self._conditions:
            return outcome
        self._conditions.add(key)
        expression = _place(function, operands)
        if expression is None:
            with self.before_the_call():
                prims.check_value(self.record(function, tuple(map(self.on_top, operands)), bool), outcome)
        else:
            number = next(x for x in operands if not _is_known(x))
            condition = expression if outcome else ("not ", *expression)
            self.prologue.require_all([Guard(_name(number), condition, number.place, number.value)])
        return outcome

    @contextmanager
    def before_the_call(self) -> Iterator[None]:
        """What is recorded inside stands in the trace itself, before the operation that is being recorded."""
        recorder = current_recorder()
        scopes, before = recorder.scopes, len(self.trace.bound_symbols)
        recorder.scopes = scopes[:1]
        try:
            yield
        finally:
            recorder.scopes = scopes
        self.tracer.stamp(before, {})

    def on_top(self, x: Any) -> Any:
        """The name of a number in the trace itself, where it may have been computed inside of an operation only."""
        if _is_known(x):
            return _value(x)
        if isinstance(x, NumberProxy):
            return x
        if isinstance(x, SymbolicSize | FloatOfSize):
            return x.proxy
        if x.proxy not in self._top:
            function, operands = x.origin
            self._top[x.proxy] = self.record(function, tuple(map(self.on_top, operands)), x.kind)
            self.tracer.evaluation.bind(self._top[x.proxy], x.value)
        return self._top[x.proxy]

    def take_back(self, start: int) -> None:
        """Take the statements from `start` on out of the trace, but for conditions and what these are computed from."""
        statements = self.trace.bound_symbols
        ours = (prims.check_value, prims.item)
        statements[start:] = [s for s in statements[start:] if s.symbol in ours or is_of_numbers(s.symbol)]

    def value_of(self, number: SymbolicNumber) -> Number:
        if self.is_elsewhere():
            return number.value
        self.require_open()
        if not number.is_constant:
            if number.place is None:
                with self.before_the_call():
                    prims.check_value(self.on_top(number), number.value)
            else:
                condition = same_value(number.place, number.value)
                self.prologue.require_all([Guard(number.proxy.name, condition, number.place, number.value)])
            number.is_constant = True
        return number.value

    def must_be_constant(self, what: str) -> BaseException:
        return NumbersMustBeConstant(what)

    def require_open(self) -> None:
        if self.is_closed:
            raise UnsupportedError(
                "A number of a program that was traced is used after that.",
                "Return it from the jitted function.",
            )

    def record(self, function: Callable, operands: tuple[Any, ...], kind: type) -> NumberProxy:
        recorder = current_recorder()
        before = len(self.trace.bound_symbols)
        proxy = NumberProxy(recorder.new_name(), kind)
        recorder.keep(BoundSymbol(symbol_of(function), self.named(operands), {}, proxy))
        self.tracer.stamp(before, {})
        return proxy

    # ---- in the trace ----

    def named(self, tree: Any) -> Any:
        """Nested arguments with the names by which the trace holds numbers, or their values where these are known."""
        return map_numbers(tree, SymbolicNumber, lambda x: x.value if x.is_constant else x.proxy)

    def constants(self, tree: Any) -> Any:
        """Nested arguments with the values of numbers, which are conditions from now on."""
        return map_numbers(tree, SymbolicNumber, SymbolicNumber.constant) if self.is_used else tree

    def values(self) -> dict[NumberProxy, Number]:
        """What the numbers of the trace are in this call."""
        return {p: x for p, x in self.tracer.evaluation.values.items() if isinstance(p, NumberProxy)}

    def taken(self) -> list[tuple[NumberProxy, Number]]:
        """Those from arguments that the trace, which is complete, takes."""
        statements = self.trace.bound_symbols
        used = {p for statement in statements for p in statement.inputs}
        used.update(p for statement in statements for leaf in statement.leaves() for p in leaf.inputs)
        used.update(unique_proxies(self.trace.output))
        return [(p, x) for p, x in self.inputs if p in used]


def _key(x: Any) -> Any:
    if isinstance(x, SymbolicSize):
        return x.polynomial.key()
    return x.proxy if isinstance(x, SymbolicNumber) else x


def _name(x: SymbolicNumber) -> str:
    return x.polynomial.label if isinstance(x, SymbolicSize) else x.proxy.name


def _is_known(x: Any) -> bool:
    return not isinstance(x, SymbolicNumber) or x.is_constant


def _value(x: Any) -> Any:
    return x.value if isinstance(x, SymbolicNumber) else x


def _place(function: Callable, operands: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The expression of the prologue for what `function` gives; None if an operand has none."""
    texts = _TEXTS[function]
    parts: list[Any] = []
    for text, x in zip(texts, operands):
        if isinstance(x, SymbolicNumber) and x.place is None:
            return None
        parts += [text, *(x.place if isinstance(x, SymbolicNumber) else (x,))]
    return (*parts, texts[-1])
