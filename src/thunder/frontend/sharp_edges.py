"""Calls whose outcome no guard can vouch for, and effects that a trace has no name for."""

import contextvars
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from thunder.core.errors import NotRepresentable, SharpEdgeError
from thunder.core.options import SharpEdges
from thunder.core.symbol import SourceLine
from thunder.frontend.dependence import NO_NAMES, Dependence
from thunder.frontend.provenance import is_importing


class SharpEdge(NamedTuple):
    """What the program did: `reads the clock`, and whether that is an effect rather than a read."""

    what: str
    is_effect: bool


_EFFECTS = {"print": "prints", "open": "opens a file", "input": "asks for input", "system": "runs a command"}
_EFFECT_MODULES = {"builtins", "_io", "io", "posix", "nt", "subprocess"}
_CLOCKS = {"time", "_time"}
_SEEDS = {"torch.random", "torch.cuda.random"}
_NOW = {"now", "utcnow", "today"}


def sharp_edge(function: Any, first: Any) -> SharpEdge | None:
    """What is sharp about calling `function`, whose first argument (or `self`) is `first`; None for most."""
    name = getattr(function, "__name__", "")
    module = getattr(function, "__module__", None) or ""
    owner = getattr(function, "__self__", None)
    if name in _EFFECTS and module in _EFFECT_MODULES:
        return SharpEdge(_EFFECTS[name], True)
    if module in _CLOCKS and name not in ("sleep", "gmtime", "mktime"):
        return SharpEdge("reads the clock", False)
    if name in _NOW and getattr(owner, "__module__", "") == "datetime":
        return SharpEdge("reads the clock", False)
    if isinstance(first, random.Random) or isinstance(owner, random.Random) or module == "random":
        return SharpEdge("draws from Python's random", False)
    if module.startswith("numpy.random") or type(owner).__module__.startswith("numpy.random"):
        return SharpEdge("draws from NumPy's random", False)
    of_generator = isinstance(owner, torch.Generator) or getattr(function, "__objclass__", None) is torch.Generator
    if of_generator or function is torch.Generator or module in _SEEDS:
        return SharpEdge("makes, seeds or asks a generator of random numbers", True)
    if module == "uuid" or module == "secrets" or name == "urandom":
        return SharpEdge("draws random numbers of the system", False)
    return None


def context_variable(function: Any, first: Any) -> contextvars.ContextVar | None:
    """The context variable that the call reads or sets, if it does."""
    if getattr(function, "__name__", "") not in ("get", "set", "reset"):
        return None
    variable = getattr(function, "__self__", first)
    return variable if isinstance(variable, contextvars.ContextVar) else None


class SharpEdgePolicy:
    """Decides what becomes of sharp calls while a program is traced.

    The program is run plainly (allow), or compiled with a warning: effects happen when it is traced, and reads are not
    repeated (warn). Or the call is refused (error).
    """

    def __init__(self, option: SharpEdges, dependence: Dependence):
        self.option, self.dependence = option, dependence
        self.source: Callable[[], SourceLine | None]

    def called(self, function: Any, first: Any) -> None:
        variable = context_variable(function, first)
        if variable is not None:
            self.dependence.reach(variable, NO_NAMES)
            return
        if getattr(function, "__name__", "") == "step" and isinstance(first, torch.optim.Optimizer):
            raise NotRepresentable(
                f"The program steps an optimizer ({type(first).__name__}), whose state a trace does not hold.",
                "Step it outside of the jitted function.",
                self.source(),
            )
        edge = sharp_edge(function, first)
        if edge is None or is_importing(sys._getframe(1)):
            return
        what = f"The program {edge.what} ({function.__name__}), which a trace cannot repeat."
        way_out = "Do it outside of the jitted function, and pass what is needed."
        if self.option is SharpEdges.ERROR:
            raise SharpEdgeError(what, way_out, self.source())
        if self.option is SharpEdges.ALLOW:
            raise NotRepresentable(what, way_out, self.source())
        later = "It happens now, and not in later calls." if edge.is_effect else "Later calls find what this one found."
        warnings.warn(str(SharpEdgeError(what, later, self.source())), stacklevel=2)
