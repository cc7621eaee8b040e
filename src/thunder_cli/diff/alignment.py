"""What is different in two stages that do not mean the same, as few differences as explain it. In linear time."""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from thunder_cli.diff.graph import FusedRegion, Graph, Unit, call_text, structure, text_of


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        kind: removed, added, replaced (another operation or constant), type (another dtype, shape or layout), input
            (takes another value), argument, returned, deleted, fusion, pass, kernel, launch, guard, name, order, text.
        before, after: what there is on either side, as text; several lines where there are several.
        source: the user's line on the newer side, or else on the older: `model.py:42:  y = x.sum()`.
        note: what else is to be said, such as why.
    """

    kind: str
    before: str | None
    after: str | None
    source: str | None = None
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Alignment:
    """Pairs the operations of two graphs, and tells what is different."""

    def __init__(self, before: Graph, after: Graph):
        self.before, self.after = before, after
        self.refusals = {
            name: f"{event['operation']} is not fused: {event['reason']}"
            for event in after.stage.events
            if event["kind"] == "refused"
            for name in event["values"]
        }
        self.pairs: dict[int, int] = {}
        self.paired: set[int] = set()
        self.pair()

    # ---- which operation is which ----

    def pair(self) -> None:
        self.pair_by(lambda _, unit, i: unit.use)
        if len(self.pairs) == len(self.before.units) == len(self.after.units):
            return
        relations = self.before.relations(), self.after.relations()
        self.pair_by(lambda _, unit, i: unit.number)
        self.pair_by(lambda side, unit, i: relations[side][i])
        self.pair_by(lambda _, unit, i: (unit.signature, source_text(unit), unit.outputs))
        self.pair_by(lambda _, unit, i: (unit.signature, source_text(unit)))
        self.pair_by(lambda _, unit, i: (unit.name, source_text(unit), unit.outputs[:1]))
        self.pair_by(lambda _, unit, i: (unit.name, unit.outputs[:1]))
        self.pair_by(lambda _, unit, i: (source_text(unit), unit.outputs[:1]) if unit.outputs else None)
        self.pair_by(lambda _, unit, i: (unit.name, source_text(unit)))
        graphs = self.before, self.after
        self.pair_by(lambda side, unit, i: tuple(graphs[side].number[name] for name in unit.inputs) or None)
        self.pair_by(lambda _, unit, i: unit.signature)

    def pair_by(self, key: Callable[[int, Unit, int], Hashable]) -> None:
        """Pair what is not paired yet and has the same key, in order."""
        free: dict[Hashable, deque[int]] = defaultdict(deque)
        for j, unit in enumerate(self.after.units):
            if j not in self.paired:
                free[key(1, unit, j)].append(j)
        for i, unit in enumerate(self.before.units):
            if i in self.pairs or (wanted := key(0, unit, i)) is None or not (found := free.get(wanted)):
                continue
            self.pairs[i] = found.popleft()
            self.paired.add(self.pairs[i])

    # ---- what is different ----

    def differences(self) -> list[Difference]:
        found = [*self.arguments(), *self.operations(), *self.returned(), *self.regions()]
        found = found or list(self.deleted())
        return found or [Difference("input", "equal values are shared", "they are shared in another way")]

    def operations(self) -> Iterator[Difference]:
        """Those of the newer side in order, each removed one before what follows it."""
        partner = {j: i for i, j in self.pairs.items()}
        gone = deque(i for i in range(len(self.before.units)) if i not in self.pairs)
        for j, unit in enumerate(self.after.units):
            i = partner.get(j)
            while i is not None and gone and gone[0] < i:
                yield removed(self.before.units[gone.popleft()])
            if i is None:
                yield Difference("added", None, call_text(unit.call.data), where(unit), self.reason(unit))
            else:
                yield from self.changed(self.before.units[i], unit)
        yield from (removed(self.before.units[i]) for i in gone)

    def changed(self, old: Unit, new: Unit) -> Iterator[Difference]:
        """How a pair is different, if it is; what is only computed from something else counts at that."""
        texts = call_text(old.call.data), call_text(new.call.data)
        if old.signature != new.signature:
            if shape_of(old) != shape_of(new):
                yield Difference("replaced", *self.distinct(texts, old, new), where(new))
                return
            types = self.types(self.before, old), self.types(self.after, new)
            if types[0] != types[1]:
                yield Difference("type", f"{old.outputs[0]}: {types[0]}", f"{new.outputs[0]}: {types[1]}", where(new))
            else:
                yield Difference("replaced", *self.distinct(texts, old, new), where(new))
        elif not all(map(self.same_value, old.inputs, new.inputs)):
            yield Difference("input", *texts, where(new))

    def distinct(self, texts: tuple[str, str], old: Unit, new: Unit) -> tuple[str, str]:
        """The texts of two operations that are not the same, to the part in them that is not."""
        while texts[0] == texts[1]:
            parts = [(x, y) for x, y in zip(old.call.parts, new.call.parts) if call_text(x.data) != call_text(y.data)]
            if not parts:
                break
            texts = call_text(parts[0][0].data), call_text(parts[0][1].data)
        return texts

    def types(self, graph: Graph, unit: Unit) -> str:
        types = [graph.values.get(name, {}) for name in unit.outputs]
        return ", ".join(f"{t.get('type')} strides {text_of(t.get('strides', []))}" for t in types)

    def same_value(self, old: str, new: str) -> bool:
        """Whether a value of one side is that of the other: what paired operations give, or the same argument."""
        if self.before.number[old] == self.after.number[new]:
            return True
        made, remade = self.before.producer.get(old), self.after.producer.get(new)
        if made is None or remade is None:
            return made is remade and self.argument_place(old, new)
        return self.pairs.get(made[0]) == remade[0] and made[1] == remade[1]

    def argument_place(self, old: str, new: str) -> bool:
        """Whether two arguments, one of which has another type, have the same place."""
        arguments = self.before.stage.arguments, self.after.stage.arguments
        return (
            len(arguments[0]) == len(arguments[1])
            and old in arguments[0]
            and new in arguments[1]
            and arguments[0].index(old) == arguments[1].index(new)
        )

    def arguments(self) -> Iterator[Difference]:
        sides = [{graph.number[name]: name for name in graph.stage.arguments} for graph in (self.before, self.after)]
        gone = [name for number, name in sides[0].items() if number not in sides[1]]
        new = [name for number, name in sides[1].items() if number not in sides[0]]
        texts = [f"{name}: {self.argument_text(self.before, name)}" for name in gone]
        new_texts = [f"{name}: {self.argument_text(self.after, name)}" for name in new]
        for i in range(max(len(texts), len(new_texts))):
            yield Difference("argument", *(side[i] if i < len(side) else None for side in (texts, new_texts)))

    def argument_text(self, graph: Graph, name: str) -> str:
        return str(graph.values.get(name, {}).get("type", "")) or "?"

    def returned(self) -> Iterator[Difference]:
        same = structure(self.before.stage.returns, lambda name: self.producer_of(self.before, name), True)
        other = structure(self.after.stage.returns, lambda name: self.producer_of(self.after, name), True)
        if self.before.returns != self.after.returns and same != other:
            yield Difference("returned", *(f"return {text_of(g.stage.returns)}" for g in (self.before, self.after)))

    def producer_of(self, graph: Graph, name: str) -> Hashable:
        """What a value is, in the terms of the newer side where it is paired."""
        if (made := graph.producer.get(name)) is None:
            return "argument", graph.number[name]
        place = self.pairs.get(made[0], ("gone", made[0])) if graph is self.before else made[0]
        return place, made[1]

    def deleted(self) -> Iterator[Difference]:
        """What is deleted: told where nothing else is different, for else it follows from that."""
        old, new = ({graph.number[name] for name in graph.deleted} for graph in (self.before, self.after))
        if old != new:
            names = [name for name in self.before.deleted if self.before.number[name] not in new]
            others = [name for name in self.after.deleted if self.after.number[name] not in old]
            yield Difference("deleted", *(f"del {', '.join(x)}" if x else None for x in (names, others)))

    # ---- fusions ----

    def regions(self) -> Iterator[Difference]:
        """The fusions that hold other operations."""
        same = self.same_regions()
        old = [region for region in self.before.regions if region.name not in same]
        kept = set(same.values())
        new = [region for region in self.after.regions if region.name not in kept]
        partner = {j: i for i, j in self.pairs.items()}
        fused = {i for region in self.before.regions for i in region.units}
        refused = [j for region in old for i in region.units if (j := self.pairs.get(i)) is not None]
        reasons = dict.fromkeys(filter(None, (self.reason(self.after.units[j]) for j in refused)))
        gained = [j for region in new for j in region.units if partner.get(j) not in fused]
        if old or new:
            sources = [where(self.after.units[j]) for j in (*refused, *gained)]
            yield Difference(
                "fusion",
                "\n".join(region_text(self.before, region) for region in old) or None,
                "\n".join(region_text(self.after, region) for region in new) or None,
                next(filter(None, sources), None),
                "; ".join(list(reasons)[:3]),
            )

    def same_regions(self) -> dict[str, str]:
        """The fusions that hold the same operations, by their names on either side."""
        home = {j: region for region in self.after.regions for j in region.units}
        same = {}
        for region in self.before.regions:
            images = [self.pairs.get(i) for i in region.units]
            other = home.get(images[0]) if images else None
            if other is not None and {*images} == {*other.units} and len(images) == len(other.units):
                same[region.name] = other.name
        return same

    def reason(self, unit: Unit) -> str:
        """Why an operation of the newer side is in no fusion, where that was recorded."""
        return "" if unit.fusion else next((self.refusals[n] for n in unit.outputs if n in self.refusals), "")


def removed(unit: Unit) -> Difference:
    return Difference("removed", call_text(unit.call.data), None, where(unit))


def shape_of(unit: Unit) -> Hashable:
    """An operation and its constants, the same for any inputs and types."""
    names: dict[str, int] = {}

    def shape(call: Any) -> Hashable:
        data = call.data
        given = [structure(x, lambda n: names.setdefault(n, len(names))) for x in (data["arguments"], *_sorted(data))]
        return data["operation"], tuple(given), tuple(shape(part)[0] for part in call.parts)

    return shape(unit.call)


def _sorted(data: dict[str, Any]) -> list[Any]:
    return [[key, data["options"][key]] for key in sorted(data["options"])]


def source_text(unit: Unit) -> str:
    source = unit.call.data["source"]
    return source["text"] if source else ""


def where(unit: Unit) -> str | None:
    """`model.py:42:  y = x.sum()`"""
    source = unit.call.data["source"]
    return f"{source['path']}:{source['line']}:  {source['text']}" if source else None


def region_text(graph: Graph, region: FusedRegion) -> str:
    """`nvFusion0 (add, mul)  quickstart.py:4, quickstart.py:7`"""
    units = [graph.units[i] for i in region.units]
    return f"{region.name} ({listed([unit.name.rpartition('.')[2] for unit in units])})"


def listed(words: Sequence[str], limit: int = 6) -> str:
    return ", ".join(words) if len(words) <= limit else f"{', '.join(words[:limit])}, ... {len(words)}"
