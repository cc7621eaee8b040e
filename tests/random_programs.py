"""Random Python programs of tensors, numbers, containers and state, and steps that call them and change that state.

Matrices are 3 by 3 and rows of 3, so that every operation fits every operand.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

HEAD = """
import contextvars, dataclasses, enum, functools
G = 2
LOG = []
CFG = {"k": 3, "flag": True, "items": [1, 2], "pair": (0.5, 4)}
W = torch.linspace(0, 1, 9).reshape(3, 3)

class Holder:
    scale = 1.5
    def __init__(self):
        self.count = 0
        self.cache = None
        self.names = ["a", "b"]
    @property
    def double(self):
        return self.count * 2
    def __getattr__(self, name):
        if name == "missing":
            return 7
        raise AttributeError(name)

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 9).reshape(3, 3))
        self.register_buffer("seen", torch.zeros(()))
        self.gain = 2.0
    def forward(self, x):
        if self.training:
            self.seen += 1
        return x @ self.weight * self.gain

@dataclasses.dataclass
class Box:
    value: int
    tensor: torch.Tensor

class Slots:
    __slots__ = ("value", "__dict__")

class Kind(enum.Enum):
    ONE = 1
    TWO = 2

@functools.cache
def cached(n):
    return n * 2

H = Holder()
L = Layer()
SLOTS = Slots()
BOX = Box(1, torch.ones(3, 3))
VARIABLE = contextvars.ContextVar("variable", default=1)
VARIABLE.set(2)
D = {"t": torch.eye(3), "n": 2}
X = torch.linspace(-1, 1, 9).reshape(3, 3)
Y = X.t() * 2
ROW = X[1]
ITEMS = [1, 2.5]

def made(start):
    total = start
    def step(x, by):
        nonlocal total
        total = total + by
        return x * total
    return step

CLOSURE = made(1)

def choose(key, a, b):
    match key:
        case 1 | 2:
            return a
        case int(k) if k > 5:
            return b * k
        case _:
            return a - b

def numbers_of(n):
    for i in range(n):
        got = yield i
    return n

class Scope:
    def __enter__(self):
        H.count += 1
        return H.count
    def __exit__(self, kind, error, trace):
        LOG.append(kind.__name__ if kind else "ok")
        return kind is KeyError
"""

MATRICES = ["x", "y", "W", 'd["t"]', "BOX.tensor"]
NUMBERS = ["n", "s", "G", 'CFG["k"]', "H.count", "H.double", "H.scale", "len(items)", "items[0]", 'CFG["pair"][1]',
           "H.missing", "L.gain", "BOX.value", "VARIABLE.get()", "L.seen.item()", 'd["n"]', "Kind.TWO.value",
           "cached(3)"]  # fmt: skip
CONDITIONS = ["flag", 'CFG["flag"]', "H.cache is None", "H.cache is not None", "items", '"b" in H.names',
              'hasattr(H, "extra")', "isinstance(n, int)", "L.training", "LOG"]  # fmt: skip


@dataclass
class Writer:
    """Writes the body of `f(x, y, row, n, s, flag, items, d)`.

    Attributes:
        matrices, rows, numbers: names that hold such.
    """

    draw: DrawFn
    lines: list[str] = field(default_factory=list)
    matrices: list[str] = field(default_factory=lambda: list(MATRICES))
    rows: list[str] = field(default_factory=lambda: ["row"])
    numbers: list[str] = field(default_factory=lambda: list(NUMBERS))
    depth: int = 1
    made: int = 0

    def one(self, choices: list[str]) -> str:
        return self.draw(st.sampled_from(choices))

    def name(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    # ---- expressions ----

    def number(self) -> str:
        kind = self.one(["name", "name", "literal", "sum", "max", "conditional", "item"])
        if kind == "name":
            return self.one(self.numbers)
        if kind == "literal":
            return self.one(["0", "1", "2", "-1", "0.5", "3"])
        if kind == "item":
            m = self.one(self.matrices)
            return self.one([f"{m}.max().item()", f"int({m}[0, 0])", f"{m}.argmax().item()", f"{m}[1, 2].item() * 2"])
        a, b = self.one(self.numbers), self.one(["1", "2", self.one(self.numbers)])
        if kind == "sum":
            return f"({a} {self.one(['+', '-', '*'])} {b})"
        return f"max({a}, {b})" if kind == "max" else f"({a} if {self.condition()} else {b})"

    def row(self) -> str:
        m, i = self.one(self.matrices), self.one(["0", "1", "-1"])
        views = [f"{m}[{i}]", f"{m}[torch.tensor({i})]", f"{m}[:, {i}]", f"{m}.diagonal()"]
        return self.one([self.one(self.rows), f"{m}.sum({abs(int(i))})", *views])

    def matrix(self) -> str:
        m, other = self.one(self.matrices), self.one(self.matrices)
        kind = self.one(["name", "unary", "binary", "number", "row", "where", "layer", "closure", "cache", "match"])
        if kind == "name":
            return m
        if kind == "unary":
            calls = ["sin", "t", "clone", "relu", "detach", "abs"]
            return m + self.one([".view(3, 3)", ".T", "[:]", *(f".{name}()" for name in calls)])
        if kind == "binary":
            return self.one([f"({m} + {other})", f"({m} * {other})", f"{m} @ {other}", f"torch.maximum({m}, {other})"])
        if kind == "number":
            return f"({m} {self.one(['+', '*', '-'])} {self.number()})"
        if kind == "row":
            return f"({m} + {self.row()})"
        if kind == "where":
            return f"torch.where({m} > {self.number()}, {m}, {other})"
        if kind == "match":
            return f"choose({self.number()}, {m}, {other})"
        return {"layer": f"L({m})", "closure": f"CLOSURE({m}, {self.number()})"}.get(
            kind, f"({m} if H.cache is None else H.cache)"
        )

    def condition(self) -> str:
        kind = self.one(["state", "number", "number", "tensor", "not"])
        if kind == "state":
            return self.one(CONDITIONS)
        if kind == "number":
            return f"{self.one(self.numbers)} {self.one(['>', '<', '==', '>='])} {self.one(['1', '2', '3', '0.5'])}"
        if kind == "tensor":
            return self.one([f"{self.one(self.matrices)}.sum() > {self.one(['0', '1'])}", f"({self.row()} > 0).any()"])
        return f"not {self.one(CONDITIONS)}"

    # ---- statements ----

    def block(self, size: int) -> None:
        for _ in range(size):
            getattr(self, self.one(STATEMENTS if self.depth < 3 else SIMPLE))()

    def nested(self, head: str, size: int = 2) -> None:
        """A block under `head`; what it makes is not known behind it."""
        self.emit(head)
        known = [list(names) for names in (self.matrices, self.rows, self.numbers)]
        self.depth += 1
        self.block(self.draw(st.integers(1, size)))
        self.depth -= 1
        self.matrices, self.rows, self.numbers = known

    def assign(self) -> None:
        kind = self.one(["matrix", "matrix", "row", "number"])
        text, name = getattr(self, kind)(), self.name(kind[0])
        self.emit(f"{name} = {text}")
        {"matrix": self.matrices, "row": self.rows, "number": self.numbers}[kind].append(name)

    def write_tensor(self) -> None:
        m, r = self.one(self.matrices), self.one(self.rows)
        self.emit(
            self.one(
                [
                    f"{m}.add_({self.number()})",
                    f"{m}.mul_({self.one(self.matrices)}.clone())",  # of memory that overlaps, torch promises nothing
                    f"{m}[{self.one(['0', '1', '-1'])}] = {self.number()}",
                    f"{m}[:, 1] += {self.row()}.clone()",
                    f"{r}.sub_(1)",
                    f"{m}[{m} > 1] = 0.5",
                    f"{m}.copy_({self.one(self.matrices)}.clone())",
                    f"{m}.t().mul_(0.5)",
                ]
            )
        )

    def write_state(self) -> None:
        self.emit(
            self.one(
                [
                    "G = G + 1",
                    f'CFG["k"] = {self.number()}',
                    'CFG["flag"] = not CFG["flag"]',
                    'CFG["new"] = len(LOG)',
                    'CFG.pop("new", None)',
                    f"H.count += {self.one(['1', 'n'])}",
                    f"H.cache = {self.matrix()}",
                    "H.cache = None",
                    'H.extra = "set"',
                    'H.__dict__.pop("extra", None)',
                    'H.names.append("c")',
                    f"LOG.append({self.one([self.number(), self.matrix(), '(n, x)'])})",
                    "LOG.clear()",
                    f"items.append({self.number()})",
                    f"W = {self.matrix()}",
                    f"W.add_({self.number()})",
                    f"H.cache = {self.one(self.matrices)}",
                    f"H.view = {self.row()}",
                    'H.view = None',
                    f'CFG["items"].append({self.one([self.number(), self.row()])})',
                    f'CFG["kept"] = {self.one(self.matrices)}, {self.one(self.numbers)}',
                    f"LOG.append({self.one(self.matrices)})",
                    f"SLOTS.value = {self.one([self.number(), self.matrix()])}",
                    "BOX.value += 1",
                    f"VARIABLE.set({self.number()})",
                    f'd["new"] = {self.one([self.matrix(), self.number()])}',
                    'd["t"].mul_(0.5)',
                    f'd["t"] = {self.matrix()}',
                    "L.gain = L.gain + 0.5",
                    "L.train(not L.training)",
                    "Holder.scale = Holder.scale * 2",
                ]
            )
        )

    def branch(self) -> None:
        self.nested(f"if {self.condition()}:")
        if self.draw(st.booleans()):
            self.nested("else:")

    def loop(self) -> None:
        head = self.one(
            ["for i in range(2):", "for i in items:", "for i in range(min(int(abs(n)), 3)):", "for i in numbers_of(2):",
             "for i, (k, v) in enumerate(list(CFG.items())):", "for i in [q * 2 for q in (0, 1)]:"]
        )  # fmt: skip
        self.numbers.append("i")
        self.nested(head)
        self.numbers.remove("i")
        if self.draw(st.booleans()):
            self.lines.append("    " * (self.depth + 1) + self.one(["if i: break", "continue", "H.count += 1"]))

    def guarded(self) -> None:
        error = self.one(["ValueError", "KeyError"])
        self.emit("try:")
        self.depth += 1
        self.block(1)
        self.emit(f"if {self.condition()}: raise {error}('no')")
        self.block(1)
        self.depth -= 1
        self.matrices, self.rows, self.numbers = list(MATRICES), ["row"], list(NUMBERS)  # others may not be there
        self.nested(self.one(["except ValueError:", "except (KeyError, ValueError) as e:", "finally:"]), 1)

    def scope(self) -> None:
        self.nested(self.one(["with torch.no_grad():", "with Scope() as level:"]))

    def function(self) -> None:
        name, result = self.name("g"), self.name("m")
        self.emit(f"def {name}(a, b=1, *rest, key={self.number()}):")
        self.depth += 1
        matrices, self.matrices = self.matrices, ["a", "x"]
        self.emit(f"return {self.matrix()} * b + key + len(rest)")
        self.matrices = matrices
        self.depth -= 1
        self.emit(f"{result} = {name}({self.one(self.matrices)}, {self.one(['2', '1, 3', 'key=0.5', 'b=n'])})")
        self.matrices.append(result)

    def comprehension(self) -> None:
        name = self.name("m")
        text = self.one(
            [f"sum([{self.one(self.matrices)} * q for q in items], {self.one(self.matrices)})",
             f"torch.stack([{self.one(self.matrices)}[j] for j in (2, 0, 1)])",
             f"{{k: {self.one(self.matrices)} for k in 'ab'}}['a']",
             f"(lambda t, k=n: t * k)({self.one(self.matrices)})"]
        )  # fmt: skip
        self.emit(f"{name} = {text}")
        self.matrices.append(name)

    def early(self) -> None:
        self.emit(f"if {self.condition()}: return {self.matrix()}, {self.number()}")


SIMPLE = ["assign", "assign", "assign", "write_tensor", "write_state", "comprehension", "early"]
STATEMENTS = [*SIMPLE, "branch", "branch", "loop", "guarded", "scope", "function"]

CALLS = ["f(X, Y, ROW, {n}, {s}, {flag}, ITEMS)", "f(X.clone(), X, X[0], {n}, {s}, {flag}, [1, 2])",
         "f(X, X, ROW.clone(), {n}, {s}, {flag}, ITEMS)", "f(X * 1, Y * 1, ROW * 1, {n}, {s}, {flag}, list(ITEMS))",
         "f(X, W, ROW, {n}, {s}, {flag}, ITEMS, {{'t': X, 'n': {n}}})",
         "f(X, Y, ROW, n={n}, s={s}, flag={flag}, items=ITEMS)"]  # fmt: skip
CHANGES = ["G = 5", "CFG['k'] = 1", "CFG['flag'] = False", "H.count = 7", "H.cache = X * 3", "H.cache = None",
           "ITEMS.append(3)", "LOG.clear()", "X.mul_(-1)", "W = W + 1", "L.eval()", "L.gain = 1", "H.names.remove('b')",
           "CFG['items'] = [5]", "Holder.scale = 3", "CLOSURE = made(4)", "L.weight.data.mul_(2)", "G = 2.5",
           "X = X.clone()", "ITEMS[:] = [2]", "L = Layer()", "H = Holder()",
           "D['n'] = 5", "D['t'] = X", "BOX.value = 4", "BOX.tensor = W", "VARIABLE.set(5)", "W.requires_grad_()",
           "H.view = X[0]", "SLOTS.value = 1", "cached.cache_clear()", "CFG['pair'] = (1, 2)",
           "X = X.double()"]  # fmt: skip


@st.composite
def programs(draw: DrawFn) -> tuple[str, list[str]]:
    """A program that defines `f`, and the steps of a test of it."""
    writer = Writer(draw)
    writer.block(draw(st.integers(2, 6)))
    result = f"return {writer.one(writer.matrices)}, {writer.one(writer.rows)}, {writer.number()}, x"
    body = "\n".join(writer.lines)
    program = f"{HEAD}\ndef f(x, y, row, n, s, flag, items, d=D):\n    global G, W\n{body}\n    {result}\n"
    steps: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        values = {"n": draw(st.sampled_from(["1", "3"])), "s": draw(st.sampled_from(["0.5", "2"]))}
        steps.append(draw(st.sampled_from(CALLS)).format(**values, flag=draw(st.booleans())))
        if draw(st.booleans()):
            steps.append(draw(st.sampled_from(CHANGES)))
    return program, [*steps, steps[0]]
