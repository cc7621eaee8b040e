"""Two sessions compared: stage by stage, fusion by fusion."""

import gc
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

from thunder_cli.diff.alignment import Alignment, Difference
from thunder_cli.diff.graph import CHECK, Damaged, Graph, Numbers, values_in
from thunder_cli.diff.kernels import compare_fusions
from thunder_cli.events import Stage
from thunder_cli.session import Session, broken


class Change(IntEnum):
    """How much is different, the least first."""

    IDENTICAL = 0
    COSMETIC = 1  # names, the order of independent operations, comments
    KERNEL = 2  # the same definition, another kernel or launch
    STRUCTURAL = 3  # operations, constants, dtypes, shapes, fusion boundaries

    def __str__(self) -> str:
        return self.name.lower()


@dataclass
class Section:
    """What was compared, how much is different, and what. `follows`: it does from what other sections tell."""

    name: str
    change: Change
    differences: list[Difference] = field(default_factory=list)
    remark: str = ""
    follows: bool = False


@dataclass
class Comparison:
    """The answer. Remarks are of what is not compared."""

    before: str
    after: str
    sections: list[Section] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def change(self) -> Change:
        return max((section.change for section in self.sections), default=Change.IDENTICAL)

    def to_json(self) -> dict[str, Any]:
        sections = [
            {
                "name": section.name,
                "change": str(section.change),
                "remark": section.remark,
                "follows": section.follows,
                "differences": [difference.to_json() for difference in section.differences],
            }
            for section in self.sections
        ]
        ends = {"before": self.before, "after": self.after, "change": str(self.change)}
        return {**ends, "remarks": self.remarks, "sections": sections}


@dataclass
class Side:
    """One of the two sessions, its name for messages, and the values of its computation by name."""

    session: Session
    name: str
    values: dict[str, int] = field(default_factory=dict)

    def fusions(self, stage: Stage) -> set[str]:
        """Names of the fusions that the stage may hold."""
        return {fusion.name for fusion in self.session.fusions if fusion.trace == stage.trace}

    def graph(self, stage: Stage, numbers: Numbers, labels: dict[str, Hashable] | None) -> Graph:
        try:
            return Graph(stage, self.fusions(stage), numbers, labels)
        except (Damaged, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            why = str(error) if isinstance(error, Damaged) else f"{type(error).__name__}: {error}"
            raise broken(Path(self.name), f"in {stage.trace}/{stage.index}, {why}") from None


def compare(before: Session, after: Session, names: tuple[str, str] = ("before", "after")) -> Comparison:
    """Compare two sessions."""
    with garbage_uncollected():
        return _compare(before, after, names)


@contextmanager
def garbage_uncollected() -> Iterator[None]:
    """Without looking for cycles among the many small objects of a comparison, which has none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _compare(before: Session, after: Session, names: tuple[str, str]) -> Comparison:
    sides = Side(before, names[0]), Side(after, names[1])
    answer = Comparison(*names)
    answer.sections += outcomes(*sides)
    numbers = Numbers()
    for old, new in paired_stages(before.stages, after.stages):
        compare_stages(sides, old, new, numbers, answer)
    answer.remarks += circumstances(before, after)
    mark_what_follows(answer.sections)
    return answer


def compare_two(old: tuple[Side, Stage], new: tuple[Side, Stage]) -> Comparison:
    """Compare two stages, of one session or of two."""
    names = [f"{side.name}:{stage.trace}/{stage.index}" for side, stage in (old, new)]
    numbers, answer = Numbers(), Comparison(*names)
    alignment = Alignment(*(side.graph(stage, numbers, None) for side, stage in (old, new)))
    answer.sections.append(section(title(old[1]), alignment))
    return answer


def title(stage: Stage) -> str:
    return f"{stage.trace}/{stage.index} {stage.title}"


def paired_stages(old: Sequence[Stage], new: Sequence[Stage]) -> Iterator[tuple[Stage | None, Stage | None]]:
    """The stages that the same pass made of the same trace; alone those that only one side has."""
    keyed = [_by_pass(stages) for stages in (old, new)]
    for key, stage in keyed[0].items():
        yield stage, keyed[1].pop(key, None)
    for stage in keyed[1].values():
        yield None, stage


def _by_pass(stages: Iterable[Stage]) -> dict[Hashable, Stage]:
    count: Counter[Hashable] = Counter()
    found = {}
    for stage in stages:
        key = stage.trace, stage.constructed_by
        count[key] += 1
        found[key, count[key]] = stage
    return found


def compare_stages(
    sides: tuple[Side, Side], old: Stage | None, new: Stage | None, numbers: Numbers, answer: Comparison
) -> None:
    if old is None or new is None:
        texts = [None if stage is None else f"{title(stage)}" for stage in (old, new)]
        difference = Difference("pass", *texts, note="only one of the two has this stage")
        answer.sections.append(Section(title(old or new), Change.STRUCTURAL, [difference]))
        return
    if old.trace == "prologue":
        answer.sections.append(compare_prologues(sides, old, new, numbers))
        return
    labels = argument_labels(sides, old, new, answer)
    graphs = [sides[0].graph(old, numbers, labels[0])]
    same = labels[0] == labels[1] and content(old) == content(new) and sides[0].fusions(old) == sides[1].fusions(new)
    graphs.append(graphs[0] if same else sides[1].graph(new, numbers, labels[1]))
    alignment = Alignment(*graphs)
    answer.sections.append(section(title(old), alignment))
    if old.trace == "computation":
        for side, graph in zip(sides, graphs):
            side.values = graph.number
    if is_last(sides[0].session, old) and is_last(sides[1].session, new):
        regions = alignment.same_regions()
        sections, remarks = compare_fusions(sides[0].session, sides[1].session, old.trace, regions)
        answer.sections += [Section(name, Change(change), found) for name, change, found in sections]
        answer.remarks += remarks


def is_last(session: Session, stage: Stage) -> bool:
    return stage is [s for s in session.stages if s.trace == stage.trace][-1]


def content(stage: Stage) -> tuple:
    """A stage without how it came to be."""
    return stage.text, stage.arguments, stage.returns, stage.operations, stage.values


def section(name: str, alignment: Alignment) -> Section:
    old, new = alignment.before, alignment.after
    if old is not new and old.key() != new.key():
        return Section(name, Change.STRUCTURAL, alignment.differences())
    if what := cosmetic(alignment):
        return Section(name, Change.COSMETIC, remark=what)
    return Section(name, Change.IDENTICAL)


def cosmetic(alignment: Alignment) -> str:
    """What is different in two stages that mean the same, in words; nothing if they are identical."""
    found: list[str] = []
    old, new, partners = alignment.before, alignment.after, alignment.pairs
    if old is new:
        return ""
    names = [(a, b) for i, j in partners.items() for a, b in zip(old.units[i].outputs, new.units[j].outputs)]
    renamed = sum(a != b for a, b in [*names, *zip(old.stage.arguments, new.stage.arguments)])
    if renamed:
        found.append(f"{renamed} value{'s' * (renamed != 1)} renamed")
    order = list(partners.values())
    places = [partners[i] for i in sorted(partners)]
    if places != sorted(order) or [r.name for r in old.regions] != [r.name for r in new.regions]:
        found.append("independent operations in another order")
    data = [content(stage) for stage in (old.stage, new.stage)]
    if not found and data[0] != data[1]:
        sources = [[operation["source"] for operation in stage[3]] for stage in data]
        found.append("other lines of the program" if sources[0] != sources[1] else "other comments or layout")
    return ", ".join(found)


# ---- arguments: which is which ----


def argument_labels(sides: tuple[Side, Side], old: Stage, new: Stage, answer: Comparison) -> list[dict[str, Hashable]]:
    """What stands for each argument of two stages: where the program has it from, or what computes it.

    Arguments that only one side has are taken for renamed, in order, where that can be: a variable of the program that
    is called otherwise, or a value that is computed otherwise, which is told of where it is computed.
    """
    if old.trace == "computation":
        labels = [computation_labels(side.session, stage) for side, stage in zip(sides, (old, new))]
        may_rename = {label for side in labels for label in side.values() if label[0] == "live"}
    else:
        labels = [value_labels(side, stage) for side, stage in zip(sides, (old, new))]
        changed = any(s.change is Change.STRUCTURAL for s in answer.sections)
        may_rename = {label for side in labels for label in side.values() if label[0] == "value" and changed}
    return renamed(labels, may_rename)


def renamed(labels: Sequence[dict[str, Hashable]], may_rename: set[Hashable]) -> list[dict[str, Hashable]]:
    common = set(labels[0].values()) & set(labels[1].values())
    result = []
    for side in labels:
        count = 0
        changed = dict(side)
        for name, label in side.items():
            if label not in common and label in may_rename:
                changed[name] = "renamed", count
                count += 1
        result.append(changed)
    return result


def computation_labels(session: Session, stage: Stage) -> dict[str, Hashable]:
    """Where the prologue has each argument from; its place, if there is no prologue."""
    prologues = [s for s in session.stages if s.trace == "prologue"]
    returned = list(values_in(prologues[-1].returns)) if prologues else []
    if len(returned) != len(stage.arguments):
        return {name: ("place", i) for i, name in enumerate(stage.arguments)}
    paths = access_paths(prologues[-1])
    return occurrences(dict(zip(stage.arguments, (paths.get(name, ("name", name)) for name in returned))))


def occurrences(labels: dict[str, Hashable]) -> dict[str, Hashable]:
    """The same labels, those that repeat told apart."""
    seen: Counter[Hashable] = Counter()
    result = {}
    for name, label in labels.items():
        result[name] = (*label, seen[label])
        seen[label] += 1
    return result


def access_paths(prologue: Stage) -> dict[str, Hashable]:
    """How the prologue gets at each of its values: `("given", "args", "[0]")`, `("live", "._buffers['n']")`."""
    paths: dict[str, Hashable] = {name: ("given", name) for name in prologue.arguments}
    for operation in prologue.operations:
        if operation["operation"] == CHECK or not operation["outputs"] or not operation["arguments"]:
            continue
        parts = operation["arguments"][0]
        root, *steps = parts if isinstance(parts, list) and parts else [parts]
        if isinstance(root, dict) and "value" in root:
            start = paths.get(root["value"], ("name", root["value"]))
        else:
            start = ("live",)
        paths[operation["outputs"][0]] = (*start, *(str(step) for step in steps))
    return paths


def value_labels(side: Side, stage: Stage) -> dict[str, Hashable]:
    """The values of the computation among the arguments by what they are, others by their place among the others."""
    others = [name for name in stage.arguments if name not in side.values]
    places = {name: ("other", i) for i, name in enumerate(others)}
    return occurrences({n: places.get(n) or ("value", side.values[n]) for n in stage.arguments})


# ---- what the trace depends on ----


def compare_prologues(sides: tuple[Side, Side], old: Stage, new: Stage, numbers: Numbers) -> Section:
    name = title(old)
    graphs = [side.graph(stage, numbers, None) for side, stage in zip(sides, (old, new))]
    guards = compare_guards(sides[0].session, sides[1].session)
    if graphs[0].key() == graphs[1].key():
        what = cosmetic(Alignment(*graphs))
        return Section(name, Change.COSMETIC if what or guards else Change.IDENTICAL, guards, what)
    first = [_first(side.session, "computation", stage) for side, stage in zip(sides, (old, new))]
    computations = [computation_labels(side.session, stage) for side, stage in zip(sides, first)]
    labels = renamed(computations, {label for side in computations for label in side.values() if label[0] == "live"})
    operations = [Counter(unit.name for unit in graph.units) for graph in graphs]
    if Counter(labels[0].values()) == Counter(labels[1].values()) and set(operations[0]) == set(operations[1]):
        return Section(name, Change.COSMETIC, guards, "variables of the program are called otherwise")
    return Section(name, Change.STRUCTURAL, [*Alignment(*graphs).differences(), *guards])


def _first(session: Session, trace: str, default: Stage) -> Stage:
    return next((stage for stage in session.stages if stage.trace == trace), default)


WORD = re.compile(r"(?<![\w.'\"])[^\W\d]\w*")
NUMBERED = re.compile(r"(?<=[A-Za-z_])\d+\b")


def compare_guards(before: Session, after: Session) -> list[Difference]:
    """Conditions under which a trace is used again: they are no part of what it computes."""
    sides = [guard_texts(session) for session in (before, after)]
    gone, new = sides[0] - sides[1], sides[1] - sides[0]
    return [Difference("guard", text, None) for text in gone.elements()] + [
        Difference("guard", None, text) for text in new.elements()
    ]


def guard_texts(session: Session) -> Counter[str]:
    """The conditions, with the prologue's values by their places."""
    prologue = next((stage for stage in reversed(session.stages) if stage.trace == "prologue"), None)
    if prologue is None or session.guards is None:
        return Counter()
    names = [*prologue.arguments, *(name for operation in prologue.operations for name in operation["outputs"])]
    places = {name: f"value {i}" for i, name in enumerate(names)}
    texts = (WORD.sub(lambda m: places.get(m[0], m[0]), check["text"]) for check in session.guards.checks)
    return Counter(NUMBERED.sub("", text) for text in texts)


# ---- around the traces ----


def outcomes(old: Side, new: Side) -> Iterator[Section]:
    """Where one of the two was not traced, or not to the end."""
    texts = [failure_text(side.session) for side in (old, new)]
    if texts[0] != texts[1]:
        yield Section("outcome", Change.STRUCTURAL, [Difference("outcome", *texts)])


def failure_text(session: Session) -> str:
    if session.failures:
        return "failed: " + session.failures[0].message.partition("\n")[0]
    return f"is run plainly, not compiled: {session.plain.reason}" if session.plain else "traced and run"


def circumstances(before: Session, after: Session) -> Iterator[str]:
    """What the two were made with, where that is different."""
    if before.started is None or after.started is None:
        return
    if before.started.device != after.started.device:
        yield f"device: {before.started.device} -> {after.started.device}"
    versions = before.started.versions, after.started.versions
    for name in dict.fromkeys([*versions[0], *versions[1]]):
        old, new = (side.get(name, "none") for side in versions)
        if old != new:
            yield f"{name}: {old} -> {new}"


ALWAYS_TOLD = ("fusion", "pass", "outcome", "definition")


def mark_what_follows(sections: Sequence[Section]) -> None:
    """A stage whose differences are all at lines of the program that earlier ones told of says nothing new."""
    told: set[str | None] = set()
    known: set[Difference] = set()
    for found in sections:
        if found.change is not Change.STRUCTURAL:
            continue
        new = [d for d in found.differences if d not in known and (d.kind in ALWAYS_TOLD or d.source not in told)]
        found.follows = not new
        told |= {difference.source for difference in found.differences}
        known |= set(found.differences)
