"""Where in the user's program an operation was called, and which variable its result goes to.

Both are read off the calling frame: its current instruction tells the line, the instruction behind it whether the
result is stored. What a code object says is worked out once per instruction.
"""

import dis
import linecache
import os
import sys
import sysconfig
from bisect import bisect_right
from functools import cache, lru_cache
from types import CodeType, FrameType

import optree
import torch

from thunder.core.symbol import SourceLine

_DEBUGGER = os.path.join(os.path.dirname(__file__), "..", "..", "thunder_cli", "worker.py")
_LIBRARIES = tuple(
    os.path.dirname(os.path.abspath(path)) + os.sep
    for path in (torch.__file__, optree.__file__, os.path.dirname(__file__), _DEBUGGER)
)
_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_SITE_PACKAGES = tuple({sysconfig.get_paths()[k] + os.sep for k in ("purelib", "platlib")})

_STORES = {"STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"}


@cache
def is_library_file(filename: str) -> bool:
    """Whether code of this file is torch's, ours or Python's own: never the user's line."""
    if filename.startswith("<frozen "):
        return True
    path = os.path.abspath(filename)
    if path.startswith(_LIBRARIES):
        return True
    return path.startswith(_STANDARD_LIBRARY) and not path.startswith(_SITE_PACKAGES)


@cache
def display_path(filename: str) -> str:
    """The path that traces print: relative to the script's directory or the folder it is imported from."""
    path = os.path.abspath(filename)
    roots = [os.path.abspath(p or ".") for p in sys.path if os.path.isdir(p or ".")]
    inside = [root for root in roots if path.startswith(root + os.sep)]
    if filename.startswith("<") or not inside:
        return os.path.basename(filename)
    return os.path.relpath(path, max(inside, key=len)).replace(os.sep, "/")


@lru_cache(maxsize=65536)
def source_line(filename: str, line: int) -> SourceLine:
    return SourceLine(display_path(filename), line, linecache.getline(filename, line).rstrip())


@lru_cache(maxsize=8192)
def _instructions(code: CodeType) -> tuple[list[dis.Instruction], list[int]]:
    """The instructions and their offsets."""
    instructions = list(dis.get_instructions(code))
    return instructions, [instruction.offset for instruction in instructions]


@lru_cache(maxsize=65536)
def result_goes_to(code: CodeType, offset: int) -> tuple[str, ...] | None:
    """The variables that the result of the instruction at `offset` is stored in.

    Several for an unpacked result, none if it is stored in none, and None if it is returned.
    """
    instructions, offsets = _instructions(code)
    i = bisect_right(offsets, offset)  # a call that is under way is at its inline cache, behind the instruction
    while i < len(instructions) and instructions[i].opname in ("CACHE", "COPY", "NOP", "EXTENDED_ARG"):
        i += 1
    if i >= len(instructions):
        return ()
    following = instructions[i]
    if following.opname in ("RETURN_VALUE", "RETURN_CONST"):
        return None
    count = 1
    if following.opname == "UNPACK_SEQUENCE":
        count, i = following.arg or 0, i + 1
    names: list[str] = []
    while len(names) < count and i < len(instructions) and instructions[i].opname in _STORES:
        name = instructions[i].argval
        if instructions[i].opname == "STORE_FAST_STORE_FAST":
            names += name
        else:
            names.append(name[0] if isinstance(name, tuple) else name)
        i += 1
    return tuple(names[:count]) if len(names) >= count else ()


def is_importing(frame: FrameType | None) -> bool:
    """Whether an import runs this frame: what that does is no part of the program."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


class CallSite:
    """The user's frame that made a call.

    Attributes:
        source: the user's line.
        names: the variables that the result is stored in.
        call: the frame, if any, that the naming frame called to get there: all operations of one `x = f(...)` share it.
    """

    __slots__ = ("call", "names", "source")

    def __init__(self, source: SourceLine | None, names: tuple[str, ...], call: FrameType | None):
        self.source, self.names, self.call = source, names, call


def call_site(frame: FrameType | None, stop: FrameType | None = None) -> CallSite:
    """The call site nearest to `frame`, looking outwards, `stop` excluded.

    Where the innermost user frame returns the result at once, the frame it returns to names it.
    """
    source, call = None, None
    while frame is not None and frame is not stop:
        code = frame.f_code
        if not is_library_file(code.co_filename):
            if source is None:
                source = source_line(code.co_filename, frame.f_lineno)
            names = result_goes_to(code, frame.f_lasti)
            if names is not None:
                return CallSite(source, names, call)
        call, frame = frame, frame.f_back
    return CallSite(source, (), None)
