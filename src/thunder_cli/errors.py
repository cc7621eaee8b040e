"""How a command ends: exit codes, and the error that carries one with its message."""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    FINE = 0
    NO = 1  # the answer is "no"
    USAGE = 2
    PROGRAM = 3  # the user's program failed
    OURS = 4
    INTERRUPTED = 130  # by Ctrl-C, as shells count it


class CommandError(Exception):
    """A finished message, what happened and the way out, and the exit code that goes with it."""

    def __init__(self, message: str, code: Exit = Exit.USAGE):
        super().__init__(message)
        self.code = code


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """` Did you mean foo?` if one of `names` is near, else nothing."""
    names = list(names)
    close = get_close_matches(name, names, n=1) or [n for n in names if n.lower() == name.lower()]
    return f" Did you mean {close[0]}?" if close else ""
