"""What `thunder diff` says of pairs of programs, and of traces that are changed at random."""

import copy
import random
import re
from dataclasses import replace

import pytest
import torch
from traced_programs import session_of

from thunder_cli.diff.graph import Graph, Numbers, calls
from thunder_cli.diff.sessions import Change, compare

BASE = """\
W = torch.full((4, 4), 2.0, device="cuda")
SCALE = 3.0

def f(a, b):
    c = a + b
    d = torch.sin(c)
    e = c * 2.0
    g = d - e
    return g, c @ b
"""
GLOBALS = """\
W = torch.full((4, 4), 2.0, device="cuda")
V = torch.full((4, 4), 4.0, device="cuda")

def f(a, b):
    c = a * W
    d = b * V
    return c - d
"""
RANDOM = """\
def f(a, b):
    c = F.dropout(a, 0.5)
    d = F.dropout(b, 0.25)
    return c + d
"""
MODULE = """\
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)
        self.register_buffer("count", torch.zeros(()))
    def forward(self, a, b):
        self.count += 1
        return self.second(torch.relu(self.first(a))) + b
f = Model().cuda()
"""
CONTAINER = """\
def f(a, b):
    c = a + b
    return {"sum": c, "twice": (c * 2, [a - b])}
"""

SAME, C, S = Change.IDENTICAL, Change.COSMETIC, Change.STRUCTURAL

# What is changed in which program, by replacing text, and the class that the pair must get.
PAIRS = [
    ("nothing", BASE, [], SAME),
    ("a comment at the end of a line that is not traced", BASE, [("SCALE = 3.0", "SCALE = 3.0  # new")], SAME),
    ("an unused global", BASE, [("SCALE = 3.0", "SCALE = 4.0")], SAME),
    ("a comment above", BASE, [("    d = ", "    # about d\n    d = ")], C),
    ("blank lines", BASE, [("    c = a + b\n", "\n\n    c = a + b\n\n")], C),
    ("spaces in a line", BASE, [("d = torch.sin(c)", "d  =  torch.sin( c )")], C),
    ("a local variable is renamed", BASE, [("c", "total")], C),
    ("an argument is renamed", BASE, [("(a, b)", "(x, b)"), ("a + b", "x + b")], C),
    (
        "two variables swap their names",
        BASE,
        [("d = torch", "TMP = torch"), ("    e = c", "    d = c"), ("g = d - e", "e = TMP\n    g = e - d")],
        C,
    ),
    (
        "the function is renamed",
        BASE,
        [("def f", "def h"), ("    return g, c @ b", "    return g, c @ b\n\nf = h\n#")],
        C,
    ),
    (
        "independent lines change places",
        BASE,
        [("    d = torch.sin(c)\n    e = c * 2.0\n", "    e = c * 2.0\n    d = torch.sin(c)\n")],
        C,
    ),
    ("a line in two", BASE, [("g = d - e", "g = d; g = g - e")], C),
    ("two lines in one", BASE, [("    d = torch.sin(c)\n", ""), ("g = d - e", "g = torch.sin(c) - e")], C),
    ("an operator as a function", BASE, [("a + b", "torch.add(a, b)")], C),
    ("an operator as a method", BASE, [("d - e", "d.sub(e)")], C),
    (
        "a part as a function of its own",
        BASE,
        [("def f", "def part(c):\n    return torch.sin(c)\n\ndef f"), ("= torch.sin(c)", "= part(c)")],
        C,
    ),
    ("a global tensor is renamed", GLOBALS, [("W", "WEIGHT")], C),
    (
        "global tensors are read in another order",
        GLOBALS,
        [("    c = a * W\n    d = b * V\n", "    d = b * V\n    c = a * W\n")],
        C,
    ),
    (
        "a dict is returned in another order",
        CONTAINER,
        [('{"sum": c, "twice": (c * 2, [a - b])}', '{"twice": (c * 2, [a - b]), "sum": c}')],
        S,
    ),
    ("a class is renamed", MODULE, [("Model", "Network")], C),
    (
        "an independent operation of a random one moves",
        RANDOM,
        [
            (
                "    c = F.dropout(a, 0.5)\n    d = F.dropout(b, 0.25)\n    return c + d",
                "    c = F.dropout(a, 0.5)\n    d = F.dropout(b, 0.25)\n    return c.add(d)",
            )
        ],
        C,
    ),
    ("an operation is replaced", BASE, [("torch.sin", "torch.cos")], S),
    ("an operation is removed", BASE, [("g = d - e", "g = d")], S),
    ("an operation is added", BASE, [("g = d - e", "g = (d - e).abs()")], S),
    ("dead code is added", BASE, [("    e = ", "    dead = c * c\n    e = ")], S),
    ("another constant", BASE, [("2.0\n    g", "2.5\n    g")], S),
    ("a constant of another type", BASE, [("c * 2.0", "c * 2")], S),
    ("operands are exchanged", BASE, [("d - e", "e - d")], S),
    ("operands of a sum are exchanged", BASE, [("a + b", "b + a")], S),
    ("another input", BASE, [("torch.sin(c)", "torch.sin(a)")], S),
    ("a cast is inserted", BASE, [("torch.sin(c)", "torch.sin(c.double())")], S),
    ("a cast that leaves the result's type is inserted", BASE, [("torch.sin(c)", "torch.sin(c.double()).float()")], S),
    ("another dtype within", BASE, [("c * 2.0", "c.bfloat16() * 2.0")], S),
    (
        "another dimension",
        BASE,
        [
            ("return g,", "return g.sum(0),"),
        ],
        S,
    ),
    ("a reduction keeps its dimension", CONTAINER, [("c * 2", "c.sum(0, keepdim=True)")], S),
    ("what is returned changes places", BASE, [("return g, c @ b", "return c @ b, g")], S),
    ("more is returned", BASE, [("return g, c @ b", "return g, c @ b, d")], S),
    ("less is returned", BASE, [("return g, c @ b", "return g")], S),
    (
        "one value is returned twice in place of two equal ones",
        CONTAINER,
        [("    c = a + b\n", "    c = a + b\n    d = a + b\n"), ("(c * 2", "(d * 2")],
        S,
    ),
    ("an argument more is used", BASE, [("(a, b)", "(a, b, *, k=W)"), ("a + b", "a + b + k")], S),
    ("a parameter that is not used is added", BASE, [("(a, b)", "(a, b, k=1)")], C),
    ("global tensors change places", GLOBALS, [("a * W", "a * V"), ("b * V", "b * W")], S),
    ("another global tensor", GLOBALS, [("b * V", "b * W")], S),
    ("a global tensor of another shape", GLOBALS, [("V = torch.full((4, 4)", "V = torch.full((1, 4)")], S),
    ("a global tensor of another dtype", GLOBALS, [("2.0, device", "2.0, dtype=torch.float64, device")], S),
    ("a value of a global tensor", GLOBALS, [("2.0, device", "2.5, device")], SAME),
    (
        "random operations change places",
        RANDOM,
        [
            (
                "    c = F.dropout(a, 0.5)\n    d = F.dropout(b, 0.25)\n",
                "    d = F.dropout(b, 0.25)\n    c = F.dropout(a, 0.5)\n",
            )
        ],
        S,
    ),
    ("another probability", RANDOM, [("0.25", "0.5")], S),
    (
        "layers change places",
        MODULE,
        [("self.second(torch.relu(self.first(a)))", "self.first(torch.relu(self.second(a)))")],
        S,
    ),
    ("a layer is shared", MODULE, [("self.second(torch", "self.first(torch")], S),
    ("a buffer is written otherwise", MODULE, [("+= 1", "+= 2")], S),
    ("a buffer is not written", MODULE, [("        self.count += 1\n", "")], S),
    ("another activation", MODULE, [("torch.relu", "torch.tanh")], S),
    ("an operation leaves its fusion", BASE, [("d = torch.sin(c)", "d = torch.sin(c).cpu().cuda()")], S),
    ("a fusion in two", BASE, [("g = d - e", "g = (d @ b) - e")], S),
    ("a container of another type", CONTAINER, [("(c * 2, [a - b])", "[c * 2, [a - b]]")], S),
    ("another key", CONTAINER, [('"sum"', '"total"')], S),
]


def inputs():
    return torch.ones(4, 4, device="cuda"), torch.full((4, 4), 0.5, device="cuda")


@pytest.fixture(scope="module")
def trace():
    """The session of a program, each traced once."""
    known = {}

    def session(source):
        if source not in known:
            known[source] = session_of(source, inputs())
        return known[source]

    return session


@pytest.mark.parametrize(("program", "changes", "expected"), [p[1:] for p in PAIRS], ids=[p[0] for p in PAIRS])
def test_a_pair_of_programs_gets_its_class(trace, program, changes, expected):
    changed = program
    for old, new in changes:
        assert old in changed
        changed = re.sub(rf"\b{old}\b", new, changed) if old.isidentifier() else changed.replace(old, new)
    answer = compare(trace(program), trace(changed))
    found = [(str(s.change), s.name, s.remark, s.differences) for s in answer.sections if s.change is answer.change]
    assert answer.change is expected, found
    assert compare(trace(changed), trace(program)).change is expected
    if expected is Change.STRUCTURAL:
        assert all(section[3] for section in found)


# ---- traces that are changed at random ----

BLOCK = """\
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(4)
        self.up = torch.nn.Linear(4, 8)
        self.down = torch.nn.Linear(8, 4)
        self.register_buffer("steps", torch.zeros(()))
    def forward(self, a, b):
        self.steps += 1
        x = F.dropout(a, 0.5) + b
        y = self.down(F.gelu(self.up(self.norm(x)), approximate="tanh"))
        z = torch.softmax(y @ x.transpose(0, 1), dim=-1)
        return {"z": z, "parts": (x.split(2, 0), y[:, 1:3] * 0.5, x.sum(1, keepdim=True))}
f = Block().cuda()
"""
TIMES = 1000


@pytest.fixture(scope="module")
def block():
    return session_of(BLOCK, inputs())


def with_one_stage(session, random):
    """The session with its prologue and one other stage, and that stage."""
    prologue, *stages = session.stages
    stage = random.choice(stages)
    return replace(session, stages=[prologue, stage])


def changed_at_random(session, random):
    """The session with one operation, constant, dtype or edge of its last stage changed, and what was changed."""
    changed = replace(session, stages=[session.stages[0], copy.deepcopy(session.stages[1])])
    stage = changed.stages[1]
    operations = [o for o in stage.operations if o["operation"] != "prims.python_del"]
    while True:
        kind, operation = random.choice(("operation", "constant", "dtype", "edge")), random.choice(operations)
        if kind == "operation":
            other = random.choice([o["operation"] for o in operations] + ["prims.other"])
            if other != operation["operation"]:
                what, operation["operation"] = operation["operation"], other
                return changed, (kind, stage.title, what, other)
        elif kind == "dtype":
            name = random.choice([*stage.arguments, *operation["outputs"]])
            value = stage.values[name]
            if re.search(r" f32\[", value["type"]):
                value["type"] = value["type"].replace(" f32[", random.choice((" f64[", " bf16[")))
                return changed, (kind, stage.title, name)
        elif kind == "constant":
            places = list(constants(operation["arguments"])) + list(constants(operation["options"]))
            if places:
                owner, key = random.choice(places)
                what, owner[key] = owner[key], other_constant(owner[key])
                return changed, (kind, stage.title, operation, what)
        elif (what := redirect(stage, operation, random)) is not None:
            return changed, (kind, stage.title, operation, what)


def constants(x):
    """Where in an argument the constants are: each as its container and key."""
    for key, y in x.items() if isinstance(x, dict) else enumerate(x):
        if isinstance(y, dict | list):
            yield from constants(y)
        elif y is not None and key not in ("value", "tree"):
            yield x, key


def other_constant(x):
    return not x if isinstance(x, bool) else x + 1 if isinstance(x, int) else x + "1"


def redirect(stage, operation, random):
    """Have an operation take another value that is known before it, in place of one that it takes."""
    numbers = Graph(stage, {"nvFusion0", "nvFusion1", "nvFusion2", "nvFusion3"}, Numbers()).number
    statements = [o for o in stage.operations if o["depth"] == 0 and o["line"] <= operation["line"]]
    earlier = stage.arguments + [n for o in statements[:-1] for n in o["outputs"]]
    old = random.choice([*operation["inputs"], None])
    new = random.choice(earlier)
    if old is None or new in operation["inputs"] or numbers.get(old) == numbers[new]:
        return None
    replace_value(operation["arguments"], old, new)
    replace_value(operation["options"], old, new)
    operation["inputs"] = [new if name == old else name for name in operation["inputs"]]
    return old, new


def replace_value(x, old, new):
    for key, y in x.items() if isinstance(x, dict) else enumerate(x):
        if key == "value" and y == old:
            x[key] = new
        elif isinstance(y, dict | list):
            replace_value(y, old, new)


def test_any_change_of_an_operation_a_constant_a_dtype_or_an_edge_is_structural(block):
    for seed in range(TIMES):
        generator = random.Random(seed)
        session = with_one_stage(block, generator)
        changed, what = changed_at_random(session, generator)
        answer = compare(session, changed)
        assert answer.change is Change.STRUCTURAL, (seed, what)
        assert all(s.differences for s in answer.sections if s.change is Change.STRUCTURAL), (seed, what)


def rewritten_at_random(session, random):
    """The session with every value renamed and operations in another order that is possible."""
    rewritten = copy.deepcopy(session)
    names = sorted({n for s in rewritten.stages for n in (*s.arguments, *s.values)})
    new = [f"v{i}" for i in range(len(names))]
    random.shuffle(new)
    renamed = dict(zip(names, new))
    for stage in rewritten.stages:
        roots = stage.arguments if stage.trace == "prologue" else []
        mine = {name: name if name in roots else other for name, other in renamed.items()}
        stage.operations = reorder(calls(stage.operations), random)
        for x in (stage.operations, stage.returns):
            rename(x, mine)
        stage.arguments = [mine[n] for n in stage.arguments]
        stage.values = {mine[n]: v for n, v in stage.values.items()}
        stage.text = ""
    return rewritten


def rename(x, names):
    for key, y in x.items() if isinstance(x, dict) else enumerate(x):
        if key == "value":
            x[key] = names[y]
        elif key in ("inputs", "outputs"):
            x[key] = [names[n] for n in y]
        elif isinstance(y, dict | list):
            rename(y, names)


def reorder(statements, random):
    """Statements, and those in a fusion, in a random order in which each comes after what it needs."""
    needs, maker, users, last_effect = [], {}, {}, None
    for i, call in enumerate(statements):
        needs.append({maker[n] for n in call.data["inputs"] if n in maker})
        if is_deletion(call):
            needs[i].update(j for n in call.data["inputs"] for j in users.get(n, ()))
        elif has_effect(call):
            needs[i] |= {last_effect} - {None}
            last_effect = i
        maker.update(dict.fromkeys(call.data["outputs"], i))
        for n in call.data["inputs"]:
            users.setdefault(n, []).append(i)
    ready, done = [], set()
    while len(done) < len(statements):
        chosen_index = random.choice([i for i, need in enumerate(needs) if i not in done and need <= done])
        done.add(chosen_index)
        chosen = statements[chosen_index]
        inner = chosen.parts if len(chosen.parts) < 2 or "." in chosen.data["operation"] else None
        ready.append(chosen.data)
        ready += flat(inner) if inner is not None else reorder(chosen.parts, random)
    return ready


def flat(parts):
    return [data for part in parts for data in (part.data, *flat(part.parts))]


def is_deletion(call):
    return call.data["operation"] == "prims.python_del"


def has_effect(call):
    return not is_deletion(call) and (bool(call.data.get("effect")) or any(map(has_effect, call.parts)))


def test_renamed_and_reordered_it_is_cosmetic(block):
    for seed in range(TIMES):
        generator = random.Random(seed)
        session = with_one_stage(block, generator)
        answer = compare(session, rewritten_at_random(session, generator))
        structural = [(s.name, s.differences) for s in answer.sections if s.change > Change.COSMETIC]
        assert answer.change is Change.COSMETIC, (seed, structural)
