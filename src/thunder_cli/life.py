"""The life of a value: what computes it, what each pass did to it and why, where it runs. From a session alone."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from thunder_cli.diff.graph import Call, call_text, calls
from thunder_cli.errors import CommandError, did_you_mean
from thunder_cli.events import Fusion, Stage
from thunder_cli.session import Session

DONE = {
    "removed": "removed",
    "replaced": "replaced by {into}",
    "claimed": "given to {by}",
    "fused": "fused into {into}",
    "refused": "not fused by {by}",
    "moved": "moved",
    "inserted": "{operation} inserted",
}
LISTED = 12  # names that an error lists


@dataclass
class Step:
    """One thing that happened: in which stage, what, and why."""

    where: str
    what: str
    why: str = ""


@dataclass
class Life:
    """Of one value, or of an operation that gives none: its name, type, line of the program, and what happened."""

    name: str
    type: str
    source: str
    steps: list[Step] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "steps": [vars(step) for step in self.steps]}


class Lives:
    """Finds lives in a session."""

    def __init__(self, session: Session):
        self.session = session
        self.stages = [stage for stage in session.stages if stage.trace != "prologue"]
        self.statements = [calls(stage.operations) for stage in self.stages]
        self.made: list[dict[str, tuple[Call, Call]]] = [makers(statements) for statements in self.statements]

    def called(self, subject: str) -> list[Life]:
        """The lives that a value, an operation or a line stands for.

        Raises:
            CommandError: if nothing is called so.
        """
        names = self.values(subject) or self.at_line(subject) or self.of_operation(subject)
        if not names:
            known = self.names()
            listing = ", ".join(known[:LISTED]) + (", ..." if len(known) > LISTED else "")
            raise CommandError(
                f"the session has no value, operation or line {subject}.{did_you_mean(subject, known)}\n"
                f"Its values are {listing}."
            )
        return [self.life(name) for name in names]

    def names(self) -> list[str]:
        return list(dict.fromkeys(n for made, stage in zip(self.made, self.stages) for n in [*stage.arguments, *made]))

    def values(self, subject: str) -> list[str]:
        return [subject] if any(subject in stage.values for stage in self.stages) else []

    def at_line(self, subject: str) -> list[str]:
        """The values that a line computes: `7` or `model.py:7`."""
        path, _, number = subject.rpartition(":")
        if not number.isdigit():
            return []

        def is_there(data: dict[str, Any]) -> bool:
            source = data["source"]
            if source is None or source["line"] != int(number):
                return False
            return not path or source["path"] == path or source["path"].endswith("/" + path)

        return self.outputs(is_there)

    def of_operation(self, subject: str) -> list[str]:
        """The values that an operation gives: `ltorch.add`, `add`, or a fusion's name."""
        names = self.outputs(lambda data: subject in (data["operation"], data["operation"].rpartition(".")[2]))
        region = subject.rpartition("/")[2]
        return names or self.outputs(lambda data: data["operation"] == region)

    def outputs(self, wanted: Any) -> list[str]:
        """What the statements give that are, or are made of, a wanted operation."""
        found: dict[str, None] = {}
        for statements in self.statements:
            for call in statements:
                parts = list(walk(call))
                if wanted(call.data) or any(wanted(part.data) for part in parts):
                    found.update(dict.fromkeys(call.data["outputs"]))
        return list(found)

    # ---- one life ----

    def life(self, name: str) -> Life:
        first = next((made[name] for made in self.made if name in made), None)
        kind = next((s.values[name].get("type", "") for s in self.stages if name in s.values), "")
        life = Life(name, kind, source_text(first[0].data["source"] or first[1].data["source"]) if first else "")
        previous = None
        for stage, made in zip(self.stages, self.made):
            told = list(self.events(stage, name))
            if name in made and previous is None:
                life.steps += self.birth(stage, *made[name])
                previous = made[name]
            elif previous is None and name in stage.arguments:
                life.steps.append(Step(where(stage), "an input", self.origin(name)))
                previous = (Call({"operation": "", "arguments": [], "options": {}, "outputs": [name]}),) * 2
            elif name in made:
                if not told and call_text(made[name][1].data) != call_text(previous[1].data):
                    told.append(Step(where(stage), call_text(made[name][1].data), "written so by this pass"))
                previous = made[name]
            life.steps += told
        life.steps += self.execution(name)
        return life

    def birth(self, stage: Stage, statement: Call, call: Call) -> Iterator[Step]:
        prims = [part.data["operation"] for part in walk(statement) if not part.parts]
        if call is not statement:
            yield Step(where(stage), call_text(call.data), f"inside of {call_text(statement.data)}")
        elif stage.operations:
            yield Step(
                where(stage), call_text(statement.data), ", ".join(dict.fromkeys(prims)) if statement.parts else ""
            )

    def events(self, stage: Stage, name: str) -> Iterator[Step]:
        """What the pass that made the stage recorded of the value, and of the inputs of its operation."""
        made = next((made[name] for made in self.made if name in made), None)
        names = {name, *made[0].data["outputs"]} if made else {name}
        for event in stage.events:
            if not names.isdisjoint(event["values"]) and (event["operation"] != "del" or name in event["values"]):
                yield Step(where(stage), DONE.get(event["kind"], event["kind"]).format(**event), event["reason"])
            elif event["kind"] == "replaced" and self.takes(name, event["values"]):
                what = f"{', '.join(event['values'])} {DONE['replaced'].format(**event)}"
                yield Step(where(stage), what, event["reason"])

    def takes(self, name: str, values: list[str]) -> bool:
        """Whether the operation of the value was recorded with one of these as an input."""
        made = next((made[name] for made in self.made if name in made), None)
        return made is not None and not set(made[0].data["inputs"]).isdisjoint(values)

    def origin(self, name: str) -> str:
        prologue = next((stage for stage in self.session.stages if stage.trace == "prologue"), None)
        lines = prologue.text.splitlines() if prologue is not None else []
        return next((line.strip() for line in lines if line.strip().startswith(f"{name} = ")), "")

    def execution(self, name: str) -> Iterator[Step]:
        """Where the value is computed when the program runs."""
        for fusion in self.session.fusions:
            stages = [i for i, stage in enumerate(self.stages) if stage.trace == fusion.trace]
            made = self.made[stages[-1]].get(name) if stages else None
            if made is None or made[0].data["operation"] != fusion.name:
                continue
            kernels = ", ".join(kernel["name"] for kernel in fusion.facts.get("kernels", []))
            yield Step("kernel", kernels or "none", f"{fusion.path} ({fused_with(fusion)})")


def makers(statements: list[Call]) -> dict[str, tuple[Call, Call]]:
    """For each value the statement and, in it, the innermost operation that gives it."""
    made: dict[str, tuple[Call, Call]] = {}
    for statement in statements:
        for call in walk(statement):
            for name in call.data["outputs"]:
                made.setdefault(name, (statement, call))
    return made


def walk(call: Call) -> Iterator[Call]:
    yield call
    for part in call.parts:
        yield from walk(part)


def fused_with(fusion: Fusion) -> str:
    listed = ", ".join(fusion.operations[:6])
    return listed if len(fusion.operations) <= 6 else f"{listed}, ... {len(fusion.operations)}"


def where(stage: Stage) -> str:
    trace = "" if stage.trace == "computation" else f"{stage.trace} "
    return f"{trace}{stage.index} {stage.title}"


def source_text(source: dict[str, Any] | None) -> str:
    return f"{source['path']}:{source['line']}:  {source['text']}" if source else ""
