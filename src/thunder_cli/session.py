"""The record of one `thunder trace` on disk: an index in JSON, and the texts of stages and fusions beside it.

A directory appears complete or not at all. Imports no torch.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from thunder_cli.errors import CommandError, did_you_mean
from thunder_cli.events import (
    Decisions,
    Event,
    Failure,
    Fusion,
    Guards,
    Inputs,
    Operation,
    Output,
    Plain,
    Recompiled,
    Result,
    Stage,
    Started,
)

FORMAT = "thunder session"
VERSION = 1
ROOT = Path(".thunder") / "sessions"
INDEX = "index.json"
LISTED = 10  # sessions that an error lists
FUSION_TEXTS = {"definition": "definition.py", "kernel": "kernel.cu", "repro": "repro.py"}

# Where a session keeps each kind of event; others it does not keep.
_LISTS = {
    Stage: "stages",
    Fusion: "fusions",
    Output: "output",
    Recompiled: "recompiled",
    Failure: "failures",
    Operation: "operations",
}
_SINGLE = {
    Started: "started",
    Inputs: "inputs",
    Plain: "plain",
    Decisions: "decisions",
    Guards: "guards",
    Result: "result",
}


@dataclass
class Session:
    """What a session holds, in the order in which it is shown. `operations` are for the time until there are stages."""

    command: str = ""
    created: str = ""
    started: Started | None = None
    inputs: Inputs | None = None
    plain: Plain | None = None
    stages: list[Stage] = field(default_factory=list)
    decisions: Decisions | None = None
    fusions: list[Fusion] = field(default_factory=list)
    guards: Guards | None = None
    output: list[Output] = field(default_factory=list)
    result: Result | None = None
    recompiled: list[Recompiled] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Keep an event of the run."""
        if (name := _LISTS.get(type(event))) is not None:
            getattr(self, name).append(event)
        elif (name := _SINGLE.get(type(event))) is not None:
            setattr(self, name, event)

    def unfinished(self) -> Stage | None:
        """What was recorded by a process that died while it recorded, as a stage."""
        if not self.operations or any(stage.trace == "computation" for stage in self.stages):
            return None
        lines = "".join(f"  {operation.text}\n" for operation in self.operations)
        return Stage("computation", 0, None, 0.0, f"# Not complete: the process ended here.\n{lines}")

    def events(self) -> Iterator[Event]:
        """The events kept, as the run gave them."""
        first = [self.started, *self.output, self.inputs, self.plain, *self.stages, self.decisions, *self.fusions]
        last = [self.guards, self.result, *self.recompiled, *self.failures]
        yield from (event for event in [*first, *last] if event is not None)

    def fusion(self, name: str) -> Fusion:
        """The fusion called `name`, or `backward/name` where that is ambiguous."""
        found = [f for f in self.fusions if name in (f.path, f"{f.trace}/{f.name}")]
        found = found or [f for f in self.fusions if f.name == name]
        names = [f.path for f in self.fusions]
        if not found:
            listing = f"It has {', '.join(names)}." if names else "It has no fusions."
            raise CommandError(f"the session has no fusion {name}.{did_you_mean(name, names)}\n{listing}")
        same = [f for f in self.fusions if f.name == found[0].name]
        if len(same) > 1 and name == found[0].name:
            choices = " or ".join(f"{f.trace}/{f.name}" for f in same)
            raise CommandError(f"more than one fusion is called {name}.\nSay which: {choices}.")
        return found[0]


def slug(title: str) -> str:
    """`transform-for-execution`"""
    return re.sub(r"\W+", "-", title.lower()).strip("-") or "stage"


def stage_file(stage: Stage) -> str:
    return f"{stage.trace}/{stage.index:02d}-{slug(stage.title)}.py"


def write(session: Session, stem: str, out: Path | None) -> Path:
    """Write the session to `out`, or to a new directory named after `stem`; gives where it is."""
    parent = ROOT if out is None else out.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".writing-", dir=parent))
        scratch.chmod(0o755)
    except OSError as error:
        raise _unwritable(parent, error) from None
    try:
        for path, text in _texts(session):
            (scratch / path).parent.mkdir(parents=True, exist_ok=True)
            (scratch / path).write_text(text, encoding="utf-8")
        (scratch / INDEX).write_text(json.dumps(_index(session), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return _name_next(scratch, stem) if out is None else _replace(scratch, out)
    except OSError as error:
        raise _unwritable(out or ROOT, error) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unwritable(path: Path, error: OSError) -> CommandError:
    return CommandError(
        f"the session was not written to {path}: {error.strerror or error}.\n"
        "Give another directory with --out DIR, or make room there; what was traced is shown above."
    )


def check_out(out: Path) -> None:
    """Raise if `out` holds something that is no session: that is not overwritten."""
    if out.exists() and not (out.is_dir() and ((out / INDEX).exists() or not any(out.iterdir()))):
        raise CommandError(f"--out {out} exists and is no session.\nGive a new directory, or one that a session is in.")


def _name_next(scratch: Path, stem: str) -> Path:
    """Rename to the first free name; two processes never get the same one."""
    for n in count(1):
        path = ROOT / f"{stem}-{n}"
        if path.exists():
            continue
        try:
            scratch.rename(path)
        except OSError:
            if not path.exists():
                raise
        else:
            return path
    raise AssertionError("count() does not end")


def _replace(scratch: Path, out: Path) -> Path:
    if out.exists():
        old = Path(tempfile.mkdtemp(prefix=".replaced-", dir=scratch.parent))
        out.rename(old / "session")
        scratch.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    else:
        scratch.rename(out)
    return out


def _texts(session: Session) -> Iterator[tuple[str, str]]:
    for stage in session.stages:
        yield stage_file(stage), stage.text
    for fusion in session.fusions:
        for part, file in FUSION_TEXTS.items():
            if (text := getattr(fusion, part)) is not None:
                yield f"fusions/{fusion.path}/{file}", text


def _index(session: Session) -> dict[str, Any]:
    """Everything but the texts, which are named by their files."""
    index: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    index |= {"created": session.created, "command": session.command}
    for name in _SINGLE.values():
        event = getattr(session, name)
        index[name] = None if event is None else vars(event)
    index["output"] = [line.text for line in session.output]
    index["recompiled"] = [event.reason for event in session.recompiled]
    index["failures"] = [vars(failure) for failure in session.failures]
    index["fusions"] = [
        vars(fusion)
        | {
            part: f"fusions/{fusion.path}/{file}"
            for part, file in FUSION_TEXTS.items()
            if getattr(fusion, part) is not None
        }
        for fusion in session.fusions
    ]
    index["stages"] = [vars(stage) | {"text": stage_file(stage)} for stage in session.stages]
    return index


def read(path: Path) -> Session:
    """The session in that directory."""
    try:
        index = json.loads((path / INDEX).read_text(encoding="utf-8"))
        if index["format"] != FORMAT or not isinstance(index["version"], int):
            raise KeyError("format")
    except FileNotFoundError:
        raise CommandError(
            f"{path} holds no session: it has no {INDEX}.\nthunder sessions lists those there are."
        ) from None
    except OSError as error:
        raise CommandError(f"{path / INDEX} cannot be read: {error.strerror}.\nCheck its permissions.") from None
    except (ValueError, KeyError, TypeError):
        raise _broken(path, f"{INDEX} is not the index of a session") from None
    if index["version"] > VERSION:
        raise CommandError(
            f"{path} was written by a newer thunder (format {index['version']}; this one reads {VERSION}).\n"
            "Upgrade thunder, or trace the program again."
        )
    try:
        return _session(path, index)
    except OSError as error:
        raise _broken(path, f"{error.filename}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _broken(path, f"{type(error).__name__}: {error}") from None


def _broken(path: Path, why: str) -> CommandError:
    return CommandError(f"the session {path} is damaged: {why}.\nTrace the program again.")


def _session(path: Path, index: dict[str, Any]) -> Session:
    def text(file: str) -> str:
        if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
            raise ValueError(f"{file} is outside of the session")
        return (path / file).read_text(encoding="utf-8")

    # Those before there were decisions have fewer entries.
    single = {name: cls(**index[name]) for cls, name in _SINGLE.items() if index.get(name) is not None}
    stages = [Stage(**fields | {"text": text(fields["text"])}) for fields in index["stages"]]
    fusions = [
        Fusion(**fields | {part: text(fields[part]) for part in FUSION_TEXTS if fields[part] is not None})
        for fields in index["fusions"]
    ]
    return Session(
        command=index["command"],
        created=index["created"],
        stages=stages,
        fusions=fusions,
        output=[Output(line) for line in index["output"]],
        recompiled=[Recompiled(reason) for reason in index.get("recompiled", [])],
        failures=[Failure(**fields) for fields in index["failures"]],
        **single,
    )


def paths() -> list[Path]:
    """The sessions here, oldest first."""
    found = [
        (index.stat().st_mtime_ns, index.parent) for index in ROOT.glob(f"*/{INDEX}") if index.parent.name[0] != "."
    ]
    return [path for _, path in sorted(found)]


def find(name: str | None) -> Path:
    """The session called `name`, or in that directory; without a name the last one."""
    there = paths()
    if name is None:
        if not there:
            raise CommandError("there is no session here yet.\nthunder trace script.py:function makes one.")
        return there[-1]
    for path in (ROOT / name, Path(name)):
        if (path / INDEX).exists():
            return path
    names = [path.name for path in there]
    listing = f"There are {', '.join(names)}." if names else "There is no session here yet; thunder trace makes one."
    if len(names) > LISTED:
        listing = f"The last are {', '.join(names[-LISTED:])}; thunder sessions lists all {len(names)}."
    raise CommandError(f"there is no session {name}.{did_you_mean(name, names)}\n{listing}")


def now() -> str:
    """The time that a session keeps."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
