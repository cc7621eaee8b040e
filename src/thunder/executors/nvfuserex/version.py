"""Where nvFuser is imported, and which one it is. Importing it takes a second, so that waits for the first fusion."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

MODULE = "nvfuser_direct"
INSTALL = "pip install nvfuser-cu128-torch210 (Linux x86-64, Python 3.10 or 3.12, torch 2.10)"


def installed() -> bool:
    """Whether nvFuser is there, found without importing it."""
    return find_spec(MODULE) is not None


@cache
def nvfuser() -> ModuleType:
    """The module nvFuser is."""
    return import_module(MODULE)


def version() -> str:
    """nvFuser's version without its git revision, or that there is none."""
    return nvfuser().version().partition("+")[0] if installed() else "not installed"
