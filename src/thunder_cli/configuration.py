"""`thunder.toml`: the entries that `thunder ci` traces. Imports no torch."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thunder_cli.errors import CommandError, did_you_mean

FILE = "thunder.toml"
GOLDEN = "golden"
EXAMPLE = '[entries.step]\nentry = "train.py:step"\ninputs = ["f32[2, 2]@cuda"]\ntarget = "h100"'


@dataclass(frozen=True)
class Entry:
    """One entry point.

    Attributes:
        name: what the file calls it; its golden directory has this name.
        entry: `script.py:function` or `package.module:function`.
        inputs: as for `--input`; without them as `thunder trace` finds inputs.
        target: as for `--target`.
        arguments: the script's own.
        executors: by priority, or None for the default ones.
        grad: whether gradients are traced.
        timeout: the time limit in seconds, or None.
    """

    name: str
    entry: str
    inputs: list[str] = field(default_factory=list)
    target: str = "h100"
    arguments: list[str] = field(default_factory=list)
    executors: list[str] | None = None
    grad: bool = False
    timeout: float | None = None


KEYS: dict[str, type | tuple[type, ...]] = {
    "entry": str,
    "inputs": list,
    "target": str,
    "arguments": list,
    "executors": list,
    "grad": bool,
    "timeout": (int, float),
}


@dataclass(frozen=True)
class Configuration:
    """All entries, and where their golden sessions are, relative to the file's directory."""

    entries: list[Entry]
    golden: Path


def read(path: Path) -> Configuration:
    """The configuration in that file.

    Raises:
        CommandError: if there is none, or it is not one.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandError(f"there is no {path}.\nIt lists what to trace, such as\n\n{EXAMPLE}") from None
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not TOML: {error}.\nAn example:\n\n{EXAMPLE}") from None
    check_keys(table, ("golden", "entries"), str(path))
    entries, golden = table.get("entries"), table.get("golden", GOLDEN)
    if not isinstance(entries, dict) or not entries:
        raise CommandError(f"{path} lists no entries.\nAn example:\n\n{EXAMPLE}")
    if not isinstance(golden, str):
        raise CommandError(f"{path}: golden is the name of a directory, a string.")
    return Configuration([entry(name, fields, path) for name, fields in entries.items()], Path(golden))


def entry(name: str, fields: Any, path: Path) -> Entry:
    where = f"{path}, entries.{name}"
    if not isinstance(fields, dict) or "entry" not in fields:
        raise CommandError(f"{where} does not say which entry to trace.\nAn example:\n\n{EXAMPLE}")
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise CommandError(f"{where}: {name!r} cannot be the name of a directory.")
    check_keys(fields, tuple(KEYS), where)
    for key, value in fields.items():
        texts = KEYS[key] is not list or (isinstance(value, list) and all(isinstance(x, str) for x in value))
        if not isinstance(value, KEYS[key]) or isinstance(value, bool) != (KEYS[key] is bool) or not texts:
            kind = {list: "a list of strings", str: "a string", bool: "true or false"}.get(KEYS[key], "a number")
            raise CommandError(f"{where}: {key} is {kind}, not {value!r}.")
    return Entry(name, **fields)


def check_keys(table: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise CommandError(f"{where}: {key} is not known.{did_you_mean(key, known)}\nIt takes {', '.join(known)}.")
