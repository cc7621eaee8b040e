"""Why a compiled program could not be used again: the first guard that does not hold, with both values."""

from typing import Any

import torch

from thunder.core.printing import INDENT, Printer
from thunder.core.symbol import BoundSymbol
from thunder.core.trace import Trace
from thunder.frontend.guards import Guard, check, print_parts, unpack
from thunder.frontend.tensor_guards import describe_tensor
from thunder.frontend.torch_state import STATE_NAMES


def state_change(before: tuple, now: tuple) -> str:
    """Which setting of torch is another."""
    return next(f"{n}: {b} -> {x}" for n, b, x in zip(STATE_NAMES, before, now) if b != x)


def guard_failure(prologue: Trace, args: tuple, kwargs: dict[str, Any]) -> str:
    """What the prologue finds different for these arguments."""
    guards, explain = _explainer(prologue)
    try:
        index, now = explain(args, kwargs)
    except (KeyError, AttributeError, IndexError, TypeError, ValueError, ArithmeticError, RuntimeError) as e:
        return f"something that the trace used is gone ({type(e).__name__}: {e})"
    guard = guards[index]
    if guard.tensors is not None:
        return _metadata_change(guard, now)
    if guard.place is None:
        return f"{guard.subject} changed"
    return f"{guard.subject}: {_short(guard.expected)} -> {_short(now)}"


def _explainer(prologue: Trace) -> tuple[list[Guard], Any]:
    """The prologue as a function that returns the index of the first guard that fails, and the value it fails on."""
    printer = Printer(prologue.names)
    guards: list[Guard] = []
    lines = ["def explain(args, kwargs):"]
    for statement in prologue.bound_symbols:
        if statement.symbol is unpack:
            lines += [INDENT + line for line in printer.statement(statement)]
        elif statement.symbol is check:
            lines += _explained(statement, printer, guards)
    namespace = dict(printer.context)
    namespace["torch"] = torch
    exec("\n".join([*lines, f"{INDENT}raise ValueError('it holds now')"]), namespace)
    return guards, namespace["explain"]


def _explained(statement: BoundSymbol, printer: Printer, guards: list[Guard]) -> list[str]:
    lines = []
    for guard in statement.args:
        now = "None" if guard.place is None else print_parts(guard.place, printer)
        lines.append(f"{INDENT}if not ({print_parts(guard.condition, printer)}): return {len(guards)}, {now}")
        guards.append(guard)
    return lines


def _metadata_change(guard: Guard, now: tuple[Any, ...]) -> str:
    for name, before, varying, x in zip(*guard.tensors, now):
        after = describe_tensor(x, varying)
        if before != after:
            return f"{name}: {before} -> {after}"
    return f"{guard.subject} changed"


def _short(x: Any) -> str:
    text = repr(x) if not callable(x) else getattr(x, "__qualname__", repr(x))
    return text if len(text) <= 60 and " at 0x" not in text else f"another {type(x).__name__}"
