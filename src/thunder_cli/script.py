"""Running the user's script as Python would run it, or importing it, in the worker."""

import importlib
import importlib.util
import os
import sys
from collections import UserDict
from collections.abc import Callable
from types import ModuleType
from typing import Any

from thunder_cli import target
from thunder_cli.errors import CommandError
from thunder_cli.job import Job


class Program:
    """The script or module of a job.

    Attributes:
        path: the source file.
        source: its text.
        name: how messages call it.
    """

    def __init__(self, job: Job):
        self.job = job
        self.spec = None
        if job.script is not None:
            self.path = os.path.abspath(job.script)
            self.name = os.path.basename(job.script)
            sys.path.insert(0, os.path.dirname(os.path.realpath(job.script)))
            sys.argv = [job.script, *job.arguments]
        else:
            sys.path.insert(0, os.getcwd())
            self.name = job.module
            self.spec = self._find_module(job.module)
            self.path = self.spec.origin
            sys.argv = [self.path, *job.arguments]
        self.source = target.read_source(self.path, str(self))
        self.target = target.Target(job.script, job.module, job.entry)

    def _find_module(self, name: str) -> Any:
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:  # a parent package
            spec = None
        if spec is None or not spec.origin or not spec.origin.endswith(".py"):
            raise CommandError(
                f"there is no Python module {name} here.\n"
                f"Modules are found as `python -m` finds them; for a script give its path, {name}.py:{self.job.entry}."
            )
        return spec

    def defines(self, name: str) -> bool:
        """Whether importing the program, without running it as `__main__`, may define `name`."""
        return target.defines(self.source, self.name, name)

    def load(self) -> dict[str, Any]:
        """Import the program under its own name, and return its namespace."""
        if self.spec is not None:
            return vars(importlib.import_module(self.spec.name))
        name = os.path.splitext(self.name)[0]
        module = ModuleType(name)
        module.__file__ = self.path
        sys.modules[name] = module
        exec(self.code(), vars(module))
        return vars(module)

    def run(self, name: str, bound: Callable[[Any], Any]) -> dict[str, Any]:
        """Run the program as `__main__`, and return its namespace.

        Args:
            name: a global name of the program.
            bound: called with each value that the program's top level binds to `name`, gives what to bind instead.
        """
        module = ModuleType("__main__")
        module.__file__ = self.path
        if self.spec is not None:
            module.__spec__, module.__package__ = self.spec, self.spec.parent
        module.__builtins__ = __builtins__
        sys.modules["__main__"] = module
        exec(self.code(), vars(module), _WatchedNamespace(vars(module), name, bound))
        return vars(module)

    def code(self) -> Any:
        try:
            return compile(self.source, self.path, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise CommandError(target.syntax_error_message(error, self.name), code=3) from None


def as_module(script: str, entry: str) -> str:
    """How to name a script that is a module of a package, as a line of a message; nothing if it is none."""
    folder, file = os.path.split(os.path.abspath(script))
    names = [os.path.splitext(file)[0]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    if len(names) == 1:
        return ""
    where = "" if folder == os.getcwd() else f", in {folder}"
    return f"\nIt is a module of a package. As such it runs with thunder trace {'.'.join(names)}:{entry}{where}."


class _WatchedNamespace(UserDict):
    """A module's namespace in which one name is watched.

    The code of a module's top level stores its names through the mapping it is executed with, whatever kind of
    statement binds them; its functions use the module's dictionary itself.
    """

    def __init__(self, namespace: dict[str, Any], name: str, bound: Callable[[Any], Any]):
        self.data = namespace
        self.name = name
        self.bound = bound

    def __setitem__(self, key: str, value: Any) -> None:
        self.data[key] = self.bound(value) if key == self.name else value
