"""What happened while a program was traced, as plain data: what the worker sends, sessions keep, and views show.

Every field holds what JSON can hold. Imports no torch.
"""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Started:
    """The worker is up.

    Attributes:
        target: `script.py:entry`, with the script's name only.
        device: a chip's key, `cuda` or `cpu`.
        virtual: whether that device is not there.
        backend: who compiles fusions, and why that one.
        versions: of Python, torch, thunder, nvFuser.
    """

    target: str
    device: str
    virtual: bool
    backend: str
    versions: dict[str, str]


@dataclass
class Progress:
    """What the worker is doing now."""

    text: str


@dataclass
class Operation:
    """An operation of the program was recorded, as it prints before values have their names."""

    text: str


@dataclass
class Output:
    """A line that the user's program printed."""

    text: str


@dataclass
class Inputs:
    """What the entry is called with: a type or value for each parameter, and where they come from."""

    values: dict[str, str]
    origin: str


@dataclass
class Stage:
    """One stage of one trace.

    Attributes:
        trace: computation, prologue, epilogue or backward.
        index: its place among the stages of that trace.
        constructed_by: the pass that made it, None for the acquired one.
        text: the canonical text.
        arguments: names of what it takes.
        returns: what it returns, in the terms of arguments of operations (see `describe_argument`).
        operations: every call that the text shows, decompositions included: its line, depth, name, arguments, inputs,
            outputs, source, and `effect` for a primitive that must stay in its order.
        values: type and strides of each value, by name.
        events: what the pass did.
    """

    trace: str
    index: int
    constructed_by: str | None
    milliseconds: float
    text: str
    arguments: list[str] = field(default_factory=list)
    returns: Any = None
    operations: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def title(self) -> str:
        return self.constructed_by or "acquired"


@dataclass
class Fusion:
    """One fused region.

    Attributes:
        name, trace: together its identity: names repeat across traces.
        operations: names of the operations in it.
        sources: the user's lines it comes from.
        definition, repro: Python text.
        kernel: CUDA text, or None; then `missing` says why and what to do.
        facts: `kernels`, each with its name, grid, block, registers and shared memory, and `bytes_moved`.
    """

    name: str
    trace: str
    operations: list[str]
    sources: list[str]
    definition: str | None
    kernel: str | None
    repro: str | None
    facts: dict[str, Any] = field(default_factory=dict)
    missing: str | None = None

    @property
    def path(self) -> str:
        """The name that is unique in a session; that of the computation's fusions is the bare one."""
        return self.name if self.trace == "computation" else f"{self.trace}/{self.name}"


@dataclass
class Plain:
    """The entry is run as it is: no trace can stand for what it does.

    Attributes:
        reason, way_out: what it does, and what would help.
        source: the user's line, with its text.
    """

    reason: str
    way_out: str
    source: str | None


@dataclass
class Decisions:
    """What the program decided by values: of each decision the value, its outcome, and the user's line."""

    made: list[dict[str, str]]


@dataclass
class Recompiled:
    """A later call of the entry needs another program: what was different, with both values."""

    reason: str


@dataclass
class Guards:
    """What the trace depends on: of each check of the prologue its subject and its text."""

    checks: list[dict[str, str]]


@dataclass
class Result:
    """What the entry returned. `equal` tells whether eager's result is the same, None if that is not known."""

    text: str
    equal: bool | None
    comparison: str


@dataclass
class Failure:
    """What went wrong: `kind` is usage, program (the user's), interrupted or ours; `detail`: a traceback of ours."""

    kind: str
    message: str
    detail: str | None = None


@dataclass
class Finished:
    """The worker has done what it could; without this, its process was ended by something else."""


@dataclass
class Recorded:
    """The session was written."""

    path: str


Event = (
    Started
    | Progress
    | Operation
    | Output
    | Inputs
    | Plain
    | Stage
    | Decisions
    | Fusion
    | Guards
    | Result
    | Recompiled
    | Failure
    | Finished
    | Recorded
)
KINDS: dict[str, type] = {cls.__name__.lower(): cls for cls in Event.__args__}


def encode(event: Event) -> str:
    """One line of JSON."""
    return json.dumps({"event": type(event).__name__.lower(), **vars(event)}, ensure_ascii=False)


def decode(line: str | bytes) -> Event:
    fields = json.loads(line)
    return KINDS[fields.pop("event")](**fields)
