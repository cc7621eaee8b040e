"""TARGET, as far as reading its source tells: where the script is, whether it parses, what it defines.

Imports no torch, so that most mistakes are answered at once.
"""

import ast
import os
import tokenize
from dataclasses import dataclass
from pathlib import Path

from thunder_cli.errors import CommandError, Exit, did_you_mean


@dataclass(frozen=True)
class Target:
    """`script.py:entry` or `package.module:entry`; one of `script` and `module` is None."""

    script: str | None
    module: str | None
    entry: str

    def __str__(self) -> str:
        """With the script's name only, as traces say it."""
        return f"{Path(self.script).name if self.script else self.module}:{self.entry}"

    @property
    def stem(self) -> str:
        """What a session of it is called."""
        program = Path(self.script).stem if self.script else self.module.rpartition(".")[2]
        return f"{program}-{self.entry.replace('.', '-')}"


def parse(text: str) -> Target:
    """The target that the user typed; CommandError says what is wrong with it."""
    program, colon, entry = text.rpartition(":")
    if not colon or not program or not all(part.isidentifier() for part in entry.split(".")):
        example = f"{text.rstrip(':')}:function"
        if colon and not program:
            example = f"script.py:{entry or 'function'}"
        names = ""
        if text.endswith(".py") and os.path.isfile(text):
            names = _listing(definitions(read_source(text, text), text))
        raise CommandError(
            f"{text!r} does not say what to trace.\nGive a script and an entry in it, {example}, "
            f"or a module and an entry, package.module:function.{names}"
        )
    if program.endswith(".py") or not all(part.isidentifier() for part in program.split(".")):
        target = Target(program, None, entry)
        check_entry(target, read_source(program, text))
        return target
    return Target(None, program, entry)


def read_source(path: str, target: str) -> str:
    """The text of the script."""
    if os.path.isdir(path):
        raise CommandError(f"{path} is a directory.\nName a script in it, {os.path.join(path, 'script.py')}:function.")
    try:
        with tokenize.open(path) as file:
            return file.read()
    except FileNotFoundError:
        folder = os.path.dirname(path) or "."
        there = sorted(n for n in os.listdir(folder) if n.endswith(".py")) if os.path.isdir(folder) else []
        hint = did_you_mean(os.path.basename(path), there)
        where = "" if os.path.isdir(folder) else f" (there is no directory {folder})"
        raise CommandError(
            f"there is no file {path}{where}.{hint}\nTARGET is script.py:entry, with the path as seen from here."
        ) from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.\nCheck its permissions.") from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not Python source: {error}.", Exit.PROGRAM) from None


def syntax_error_message(error: SyntaxError, path: str) -> str:
    """Where the script does not parse: the line and a caret."""
    line = (error.text or "").rstrip("\n")
    stripped = line.lstrip()
    caret = " " * max((error.offset or 1) - 1 - (len(line) - len(stripped)), 0) + "^"
    shown = f"\n  {stripped}\n  {caret}" if stripped else ""
    return f"{path}:{error.lineno}: syntax error: {error.msg}{shown}\nThe script must run before it can be traced."


def parse_source(source: str, path: str) -> ast.Module:
    try:
        return ast.parse(source, path)
    except SyntaxError as error:
        raise CommandError(syntax_error_message(error, path), Exit.PROGRAM) from None
    except ValueError as error:  # null bytes
        raise CommandError(f"{path} is not Python source: {error}.", Exit.PROGRAM) from None


def definitions(source: str, path: str) -> list[str]:
    """What the source offers to trace: its functions, classes, and methods of classes."""
    names = []
    for node in parse_source(source, path).body:
        if isinstance(node, ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = [n.name for n in node.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("__")]
            names += [node.name, *(f"{node.name}.{method}" for method in methods)]
    return names


def bound_names(tree: ast.AST) -> set[str] | None:
    """The names that running this may bind; None if reading it cannot tell."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            if node.name == "*":
                return None
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            if node.id in ("globals", "exec", "vars", "setattr"):
                return None
            if isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return names


def defines(source: str, path: str, name: str) -> bool:
    """Whether importing the source, as opposed to running it as `__main__`, may bind `name`."""
    tree = parse_source(source, path)
    tree.body = [node for node in tree.body if not _is_main_guard(node)]
    names = bound_names(tree)
    return names is None or name in names


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}


def check_entry(target: Target, source: str) -> None:
    """Raise if the source certainly does not define the entry."""
    names = bound_names(parse_source(source, target.script))
    if names is not None and target.entry.partition(".")[0] not in names:
        raise no_such_entry(target, source)


def no_such_entry(target: Target, source: str) -> CommandError:
    """The error for an entry that is not in the program, with the names that are."""
    names = definitions(source, target.script or target.module)
    program = str(target).rpartition(":")[0]
    hint = did_you_mean(target.entry, names)
    return CommandError(f"{program} has no {target.entry}.{hint}{_listing(names)}")


def _listing(names: list[str]) -> str:
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"\nIt defines {shown}." if names else "\nIt defines no function and no class."
