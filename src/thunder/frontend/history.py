"""What ran while a program was traced: instructions and calls of the user's code."""

import dis
from collections.abc import Callable
from typing import Any

NOT_BUILT = "recording what the interpreter runs is not built yet: {} has nothing to show"


def last_interpreted_instructions(fn: Callable) -> list[dis.Instruction]:
    """The instructions that ran while `fn` was last traced."""
    raise NotImplementedError(NOT_BUILT.format("thunder.last_interpreted_instructions"))


def last_interpreter_log(fn: Callable) -> list[Any]:
    """The calls, lines and opaque calls of the last tracing of `fn`."""
    raise NotImplementedError(NOT_BUILT.format("thunder.last_interpreter_log"))


def print_last_interpreter_log(fn: Callable) -> None:
    """Print `last_interpreter_log(fn)`."""
    raise NotImplementedError(NOT_BUILT.format("thunder.print_last_interpreter_log"))
