"""Options of `thunder.jit` and their documented values."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, TypeVar

E = TypeVar("E", bound=Enum)


class CacheOption(Enum):
    """When a compiled program is used again."""

    CONSTANT_VALUES = "constant values"
    SAME_INPUT = "same input"
    NO_CACHING = "no caching"
    SYMBOLIC_VALUES = "symbolic values"


class SharpEdges(Enum):
    """What happens when a program has an effect that a trace cannot repeat, or reads what cannot be guarded."""

    ALLOW = "allow"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True)
class DebugOptions:
    """Options for debugging thunder itself.

    Attributes:
        show_internal_frames: tracebacks of errors keep the frames of thunder.
        record_history: keep what ran while tracing, for `thunder.last_interpreter_log`.
    """

    show_internal_frames: bool = False
    record_history: bool = False

    def __new__(cls, *args: Any, **options: Any) -> "DebugOptions":
        for name in options:
            if name not in cls.list_options():
                known = cls.list_options()
                hint = did_you_mean(name, known, otherwise=f"there are {', '.join(known)}")
                raise ValueError(f"thunder.DebugOptions has no option {name!r}: {hint}")
        return super().__new__(cls)

    @classmethod
    def list_options(cls) -> list[str]:
        """The names of the options there are."""
        return [f.name for f in fields(cls)]


def did_you_mean(name: str, known: Sequence[str], *, otherwise: str) -> str:
    """A hint for someone who wrote `name` where only the known names are allowed."""
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else otherwise


def resolve(value: "E | str", kind: type[E], option: str) -> E:
    """The member of `kind` that the user's `value` names."""
    try:
        return kind(value)
    except ValueError:
        choices = ", ".join(repr(m.value) for m in kind)
        raise ValueError(f"{option}={value!r} is not an option; choose one of {choices}") from None
