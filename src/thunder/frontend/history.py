"""What ran while a program was traced: the instructions, calls and lines of the user's code and of torch's layers."""

import dis
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from thunder.core.printing import INDENT
from thunder.core.symbol import SourceLine
from thunder.frontend.dependence import is_watched
from thunder.frontend.provenance import source_line


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that ran; `depth` is the number of calls that it is nested in."""

    depth: int
    source: SourceLine

    @property
    def where(self) -> str:
        return f"{self.source.path}:{self.source.line}"


@dataclass(frozen=True, slots=True)
class Call(Entry):
    """A function of the user's code started; `source` is where it is defined."""

    function: str

    def __str__(self) -> str:
        return f"{INDENT * self.depth}call {self.function} ({self.where})"


@dataclass(frozen=True, slots=True)
class Line(Entry):
    """A line was reached."""

    def __str__(self) -> str:
        return f"{INDENT * self.depth}{self.where}: {self.source.text.strip()}"


@dataclass(frozen=True, slots=True)
class OpaqueCall(Entry):
    """Something was called whose inside is not the user's code: a built-in, an operation of torch, a library."""

    function: str

    def __str__(self) -> str:
        return f"{INDENT * self.depth}opaque call {self.function}"


class History:
    """Collects what ran, told by an observer.

    Attributes:
        instructions: every instruction, in order.
        log: calls and lines, in order.
    """

    def __init__(self) -> None:
        self.instructions: list[dis.Instruction] = []
        self.log: list[Entry] = []
        self.base: int | None = None  # frames around the program

    def entered(self, frame: FrameType) -> None:
        code = frame.f_code
        if self.base is None:
            self.base = _frames_around(frame)
        source = source_line(code.co_filename, code.co_firstlineno)
        self.log.append(Call(self.depth(frame) - 1, source, code.co_qualname))

    def line(self, frame: FrameType, number: int) -> None:
        self.log.append(Line(self.depth(frame), source_line(frame.f_code.co_filename, number)))

    def instruction(self, frame: FrameType, offset: int) -> None:
        self.instructions.append(_instructions(frame.f_code)[offset])

    def called(self, frame: FrameType, function: Any) -> None:
        name = _name_of(function)
        if not name.startswith("thunder."):  # how operations get recorded is no part of the program
            source = source_line(frame.f_code.co_filename, frame.f_lineno or frame.f_code.co_firstlineno)
            self.log.append(OpaqueCall(self.depth(frame), source, name))

    def depth(self, frame: FrameType) -> int:
        """How many calls of the program `frame` is in, its own included."""
        return _frames_around(frame) + 1 - (self.base or 0)


def _frames_around(frame: FrameType) -> int:
    """The number of frames around this one that are the user's or a layer's."""
    count, outer = 0, frame.f_back
    while outer is not None:
        count, outer = count + is_watched(outer.f_code), outer.f_back
    return count


@lru_cache(maxsize=8192)
def _instructions(code: CodeType) -> dict[int, dis.Instruction]:
    return {instruction.offset: instruction for instruction in dis.get_instructions(code)}


def _name_of(function: Any) -> str:
    named = function if hasattr(function, "__qualname__") else type(function)
    module = getattr(named, "__module__", None)
    owner = getattr(function, "__self__", None)
    if module is None and isinstance(owner, type(dis)):  # a built-in of a module
        module = owner.__name__
    name = named.__qualname__.removeprefix("_VariableFunctionsClass.")  # where torch keeps its functions
    return name if module in (None, "builtins") else f"{module}.{name}"
