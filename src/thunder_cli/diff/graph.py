"""A stage as a graph whose values are numbered by what they compute.

Two values have the same number if and only if the same operations on the same inputs compute them. The number of a use
tells also where a value goes, so that stages are the same but for names and order if their numbers are the same.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from thunder_cli.events import Stage

DELETE = "prims.python_del"
CHECK = "prologue.check"  # compared as guards


class Damaged(ValueError):
    """A stage that is no program: edited by hand, or not thunder's."""


class Numbers:
    """Gives equal keys one number; all stages that are compared share it."""

    def __init__(self) -> None:
        self._of: dict[Hashable, int] = {}

    def __call__(self, *key: Hashable) -> int:
        return self._of.setdefault(key, len(self._of))


@dataclass(slots=True)
class Call:
    """An operation of a stage with the operations that it is made of."""

    data: dict[str, Any]
    parts: list["Call"] = field(default_factory=list)


@dataclass(slots=True)
class Unit:
    """An operation as it is compared: a statement, or one operation inside of a fusion.

    Attributes:
        fusion: the name of the fusion that it is in.
        inputs, outputs: names of values; inputs each once.
        signature: what it does, whatever its inputs are.
        number: what it computes.
        use: what it computes, and where that goes.
    """

    call: Call
    fusion: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    signature: int
    number: int = -1
    use: int = -1

    @property
    def name(self) -> str:
        return self.call.data["operation"]


@dataclass(slots=True)
class FusedRegion:
    """A fusion as a statement: its name, its own inputs and outputs, and its units' places in the graph."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    units: list[int]


class Graph:
    """A stage, numbered.

    Args:
        stage: the stage.
        fusions: names of the fusions that it may hold.
        numbers: shared by what is compared.
        labels: what stands for each argument; its place, where nothing is given.

    Raises:
        Damaged: if the stage uses what nothing computes.
    """

    def __init__(self, stage: Stage, fusions: set[str], numbers: Numbers, labels: dict[str, Hashable] | None = None):
        self.stage, self.numbers = stage, numbers
        self.values = stage.values
        self.number: dict[str, int] = {}
        self.producer: dict[str, tuple[int, int]] = {}
        self.units: list[Unit] = []
        self.regions: list[FusedRegion] = []
        self.deleted: list[str] = []
        for place, name in enumerate(stage.arguments):
            label = (labels or {}).get(name, place)
            self.number[name] = numbers("argument", label, self.type_of(name))
        self.last_effect = numbers("start")
        for call in calls(stage.operations):
            self.add(call, fusions)
        self.number_uses()

    # ---- what is computed ----

    def add(self, call: Call, fusions: set[str]) -> None:
        data = call.data
        if data["operation"] == DELETE:
            self.deleted += data["inputs"]
        elif data["operation"] in fusions and call.parts:
            first = len(self.units)
            for part in call.parts:
                self.add_unit(part, data["operation"])
            members = list(range(first, len(self.units)))
            region = FusedRegion(data["operation"], tuple(data["inputs"]), tuple(data["outputs"]), members)
            self.check_known((*values_in(data["arguments"]), *region.inputs, *region.outputs), data)
            self.regions.append(region)
        elif data["operation"] != CHECK:
            self.add_unit(call, None)

    def add_unit(self, call: Call, fusion: str | None) -> None:
        signature, inputs, has_effect = Signature(self).of_unit(call)
        outputs = tuple(call.data["outputs"])
        self.check_known(inputs, call.data)
        token = self.last_effect if has_effect else None
        number = self.numbers("unit", signature, tuple(self.number[name] for name in inputs), token)
        if has_effect:
            self.last_effect = number
        for place, name in enumerate(outputs):
            self.number[name] = self.numbers("output", number, place)
            self.producer[name] = len(self.units), place
        self.units.append(Unit(call, fusion, inputs, outputs, signature, number))

    def check_known(self, names: Sequence[str], data: dict[str, Any]) -> None:
        for name in names:
            if name not in self.number:
                raise Damaged(f"{data['operation']} uses {name}, which nothing before it computes")

    def type_of(self, name: str) -> Hashable:
        """What is known of a value besides what computes it."""
        value = self.values.get(name, {})
        return value.get("type"), tuple(value.get("strides", ()))

    # ---- where it goes ----

    def number_uses(self) -> None:
        self.check_known(tuple(values_in(self.stage.returns)), {"operation": "return"})
        self.check_known(self.deleted, {"operation": "del"})
        self.returns = self.numbers("returns", structure(self.stage.returns, self.number.__getitem__, lists=True))
        uses = self.last_uses()
        for unit in reversed(self.units):
            unit.use = self.numbers("use", unit.number, tuple(tuple(sorted(uses[name])) for name in unit.outputs))
            for place, name in enumerate(unit.inputs):
                uses[name].append(self.numbers(unit.use, place))
        self.argument_uses = [
            self.numbers("use", self.number[name], tuple(sorted(uses[name]))) for name in self.stage.arguments
        ]

    def last_uses(self) -> dict[str, list[int]]:
        """For each value the uses that are no operations: it is returned, deleted."""
        uses: dict[str, list[int]] = {name: [] for name in self.number}
        for place, name in enumerate(values_in(self.stage.returns)):
            uses[name].append(self.numbers("returned", place))
        for name in self.deleted:
            uses[name].append(self.numbers("deleted"))
        return uses

    def relations(self) -> list[int]:
        """For each unit a number of what it does and where that goes, whatever its inputs are."""
        uses, relation = self.last_uses(), [0] * len(self.units)
        for i in reversed(range(len(self.units))):
            unit = self.units[i]
            key = tuple(tuple(sorted(uses[name])) for name in unit.outputs)
            relation[i] = self.numbers("relation", unit.signature, key)
            for place, name in enumerate(unit.inputs):
                uses[name].append(self.numbers(relation[i], place))
        return relation

    # ---- the whole ----

    def region_key(self, region: FusedRegion) -> Hashable:
        """What a fusion holds and gives, whatever it is called and in which order."""
        units = Counter(self.units[i].use for i in region.units)
        ends = (Counter(self.number[name] for name in names) for names in (region.inputs, region.outputs))
        return tuple(tuple(sorted(counted.items())) for counted in (units, *ends))

    def key(self) -> Hashable:
        """Equal for stages that mean the same."""
        uses = Counter(unit.use for unit in self.units)
        regions = Counter(self.region_key(region) for region in self.regions)
        return frozenset(uses.items()), frozenset(regions.items()), tuple(sorted(self.argument_uses)), self.returns


class Signature:
    """What an operation does, with inputs named by their first use and other values by what they are."""

    def __init__(self, graph: Graph):
        self.graph, self.numbers = graph, graph.numbers
        self.inputs: dict[str, int] = {}
        self.inner: dict[str, int] = {}
        self.last_effect: int | None = None

    def of_unit(self, call: Call) -> tuple[int, tuple[str, ...], bool]:
        """The signature, the inputs, and whether the operation must stay in its order."""
        number = self.of(call)
        return number, tuple(self.inputs), self.last_effect is not None

    def of(self, call: Call) -> int:
        data = call.data
        given = (
            structure(data["arguments"], self.value),
            tuple((key, structure(data["options"][key], self.value)) for key in sorted(data["options"])),
            tuple(self.value(name) for name in data["inputs"]),
            tuple(self.graph.type_of(name) for name in data["outputs"]),
        )
        parts = []
        for part in call.parts:
            number = self.of(part)
            parts.append(number)
            for place, name in enumerate(part.data["outputs"]):
                self.inner[name] = self.numbers("inner", number, place)
        results = tuple(self.inner.get(name, -1) for name in data["outputs"]) if parts else ()
        token = None
        if data.get("effect"):
            token = self.last_effect = self.numbers("effect", self.last_effect, data["operation"], given)
        return self.numbers(data["operation"], given, tuple(sorted(parts)), results, token)

    def value(self, name: str) -> Hashable:
        if name in self.inner:
            return "inner", self.inner[name]
        return self.inputs.setdefault(name, len(self.inputs))


def calls(operations: Sequence[dict[str, Any]]) -> list[Call]:
    """The statements, each with what it is made of, from the list of all operations and their depths."""
    open_calls: list[Call] = []
    statements: list[Call] = []
    for data in operations:
        call, depth = Call(data), data["depth"]
        if not 0 <= depth <= len(open_calls):
            raise Damaged(f"{data['operation']} is at depth {depth}, in nothing")
        del open_calls[depth:]
        (open_calls[-1].parts if open_calls else statements).append(call)
        open_calls.append(call)
    return statements


def structure(x: Any, value: Callable[[str], Hashable], lists: bool = False) -> Hashable:
    """A key for an argument (see `thunder_cli.describe.describe_argument`).

    `value` gives that of a value by its name; `lists` tells whether a list is another argument than a tuple.
    """
    if isinstance(x, dict):
        if "value" in x:
            return "value", value(x["value"])
        if "list" in x and not lists:
            return structure(x["list"], value)
        if "items" in x:
            return "items", tuple((structure(k, value, lists), structure(v, value, lists)) for k, v in x["items"])
        return tuple((key, structure(x[key], value, lists)) for key in sorted(x))
    if isinstance(x, list):
        return tuple(structure(y, value, lists) for y in x)
    return type(x).__name__, x


def values_in(x: Any) -> Iterator[str]:
    """The names of the values in an argument, in order, each as often as it occurs."""
    if isinstance(x, dict):
        if "value" in x:
            yield x["value"]
        else:
            for y in x.values():
                yield from values_in(y)
    elif isinstance(x, list):
        for y in x:
            yield from values_in(y)


def text_of(x: Any) -> str:
    """An argument as a program would write it."""
    if isinstance(x, list):
        return f"({', '.join(map(text_of, x))}{',' * (len(x) == 1)})"
    if not isinstance(x, dict):
        return repr(x)
    if "list" in x:
        return f"[{', '.join(map(text_of, x['list']))}]"
    if "items" in x:
        return f"{{{', '.join(f'{text_of(k)}: {text_of(v)}' for k, v in x['items'])}}}"
    if "slice" in x:
        start, stop, step = ("" if y is None else text_of(y) for y in x["slice"])
        return f"{start}:{stop}" + (f":{step}" if step else "")
    if "tree" in x:
        return f"{x['tree']}{text_of(x['leaves'])}"
    return str(x.get("value", x.get("text")))


def call_text(data: dict[str, Any]) -> str:
    """`c = ltorch.add(a, b)`"""
    arguments = [*map(text_of, data["arguments"]), *(f"{k}={text_of(v)}" for k, v in data["options"].items())]
    outputs = ", ".join(data["outputs"])
    return f"{outputs + ' = ' if outputs else ''}{data['operation']}({', '.join(arguments)})"
