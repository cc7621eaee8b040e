"""The record of one `thunder trace` on disk: an index in JSON, and the stages and fusions beside it.

A stage is two files: its text, and its operations as data. Nothing in a session depends on the directory or the machine
but what the program's values print as.

A directory appears complete or not at all. Imports no torch.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from thunder_cli.errors import CommandError, did_you_mean
from thunder_cli.events import (
    KINDS,
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
from thunder_cli.portable import portable

FORMAT = "thunder session"
VERSION = 2
ROOT = Path(".thunder") / "sessions"
INDEX = "index.json"
LISTED = 10  # sessions that an error lists
FUSION_TEXTS = {"definition": "definition.py", "kernel": "kernel.cu", "repro": "repro.py"}
STAGE_DATA = ("arguments", "returns", "values", "events", "operations")  # in a file of their own

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
    """What a session holds. `operations` are for the time until there are stages; `order` is that of the events."""

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
    order: list[str] = field(default_factory=list)

    def add(self, event: Event) -> None:
        """Keep an event of the run."""
        if (name := _LISTS.get(type(event))) is not None:
            getattr(self, name).append(event)
        elif (name := _SINGLE.get(type(event))) is not None:
            setattr(self, name, event)
        if name is not None and not isinstance(event, Operation):
            self.order.append(type(event).__name__.lower())

    def unfinished(self) -> Stage | None:
        """What was recorded by a process that died while it recorded, as a stage."""
        if not self.operations or any(stage.trace == "computation" for stage in self.stages):
            return None
        lines = "".join(f"  {operation.text}\n" for operation in self.operations)
        return Stage("computation", 0, None, 0.0, f"# Not complete: the process ended here.\n{lines}")

    def events(self) -> Iterator[Event]:
        """The events kept, as the run gave them."""
        several = {kind: iter(getattr(self, name)) for kind, name in _LISTS.items()}
        for word in self.order:
            kind = KINDS[word]
            yield next(several[kind], None) if kind in several else getattr(self, _SINGLE[kind])

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


def golden(kept: Session) -> Session:
    """A session without what differs from run to run: times, and what the program computed and printed."""
    stages = [replace(stage, milliseconds=0.0) for stage in kept.stages]
    order = [word for word in kept.order if word not in ("output", "result", "recompiled")]
    return replace(kept, created="", stages=stages, output=[], result=None, recompiled=[], order=order)


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
        index = portable(_index(session), os.getcwd())
        (scratch / INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
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
        yield data_file(stage_file(stage)), _data(stage)
    for fusion in session.fusions:
        for part, file in FUSION_TEXTS.items():
            if (text := getattr(fusion, part)) is not None:
                yield f"fusions/{fusion.path}/{file}", text


def data_file(text_file: str) -> str:
    """Where the data of the stage with that text is."""
    return text_file.removesuffix(".py") + ".json"


def _data(stage: Stage) -> str:
    """A stage's data as JSON, an operation on each line."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    entries = []
    for name in STAGE_DATA:
        value = getattr(stage, name)
        rows = name in ("operations", "events") and value
        entries.append(f'"{name}": ' + ("[\n" + ",\n".join(map(encode, value)) + "\n]" if rows else encode(value)))
    return "{" + ",\n".join(entries) + "}\n"


def _index(session: Session) -> dict[str, Any]:
    """Everything but what has files of its own, which it names."""
    index: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    index |= {"created": session.created, "command": session.command, "order": session.order}
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
    index["stages"] = [
        {name: value for name, value in vars(stage).items() if name not in STAGE_DATA} | {"text": stage_file(stage)}
        for stage in session.stages
    ]
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
    except (ValueError, KeyError, TypeError, RecursionError):
        raise broken(path, f"{INDEX} is not the index of a session") from None
    if index["version"] != VERSION:
        age, way_out = ("a newer", "Upgrade thunder, or t") if index["version"] > VERSION else ("an older", "T")
        raise CommandError(
            f"{path} was written by {age} thunder (format {index['version']}; this one reads {VERSION}).\n"
            f"{way_out}race the program again; --accept replaces what diff or ci compares with."
        )
    try:
        return _session(path, index)
    except OSError as error:
        raise broken(path, f"{error.filename}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise broken(path, f"{type(error).__name__}: {error}") from None


def broken(path: Path, why: str) -> CommandError:
    return CommandError(f"the session {path} is damaged: {why}.\nTrace the program again.")


def _session(path: Path, index: dict[str, Any]) -> Session:
    def text(file: str) -> str:
        if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
            raise ValueError(f"{file} is outside of the session")
        return (path / file).read_text(encoding="utf-8")

    single = {name: cls(**index[name]) for cls, name in _SINGLE.items() if index[name] is not None}
    stages = []
    for fields in index["stages"]:
        data = json.loads(text(data_file(fields["text"])))
        stages.append(Stage(**fields | {"text": text(fields["text"])} | {name: data[name] for name in STAGE_DATA}))
    fusions = [
        Fusion(**fields | {part: text(fields[part]) for part in FUSION_TEXTS if fields[part] is not None})
        for fields in index["fusions"]
    ]
    read = Session(
        command=index["command"],
        created=index["created"],
        stages=stages,
        fusions=fusions,
        output=[Output(line) for line in index["output"]],
        recompiled=[Recompiled(reason) for reason in index["recompiled"]],
        failures=[Failure(**fields) for fields in index["failures"]],
        order=index["order"],
        **single,
    )
    if any(event is None for event in read.events()):
        raise ValueError("its order names what it does not hold")
    return read


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
