"""Under cache="symbolic values" numbers of arguments and state are inputs; `item` gives a number of the trace."""

import dataclasses
import decimal
import functools
import math
import operator
import warnings

import pytest
import torch
import torch.nn.functional as F

import thunder

X = torch.linspace(-2, 2, 12).reshape(3, 4)


def symbolic(program):
    return thunder.jit(program, cache="symbolic values")


def same(a, b):
    """Equal, of one type, tensors close."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()))
    elif isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b, equal_nan=True)
    else:
        assert a == b or (a != a and b != b), (a, b)


def outcome(function, *args):
    try:
        return function(*args)
    except Exception as e:
        return type(e), str(e)


@dataclasses.dataclass
class Settings:
    scale: float
    shift: int


def only_computes(x, n):
    return x * n + (n + 1) / 2 - n // 3 + n % 5, -n, abs(n), 2**n if n > -1 else n


def of_all_operators(x, n):
    m = n * 3 - 2
    bits = m & 6 | 1 ^ n << 2
    return x + bits - (~n >> 1), divmod(m, 4), divmod(40, n + 1), pow(n, 2), pow(2.0, n), 7 - n, 9 / (n + 1)


def branches(x, n):
    return x * n if n > 2 else x - n


def makes_sizes(x, n):
    return torch.zeros(n, 2) + n, x[:, :n], x.expand(n, 3, 4).sum(0)


def loops(x, n):
    for i in range(n):
        x = x + i
    return x


def makes_text(x, n):
    return {f"by {n}": x * n}, str(n), repr(n), f"{n:d}"


def indexes(x, n):
    return x[n], [10, 20, 30, 40, 50, 60][n], x.sum(n % 2)


def is_a_key(x, n):
    return {n: x}, n in {1, 2}, hash(n)


def asks_for_its_type(x, n):
    return (x if type(n) is int else x * 2), isinstance(n, int), isinstance(n, float), isinstance(n, bool)


def leaves_for_math(x, n):
    return x * math.sqrt(n + 1), math.floor(n), math.ceil(n), round(n), operator.index(n), int(n), float(n)


def is_foreign(x, n):
    return x * float(decimal.Decimal(n)), int.bit_length(int(n)), n.bit_length(), n.real


def compares(x, n):
    return max(n, 3), min(n, 2), sum([n, 1, n]), n == 2, n != 3, not n, bool(n), n in (1, 2)


def is_in_containers(x, d):
    return x * d["scale"] + d["more"][0], d


def of_keywords(x, *, factor=2, **rest):
    return x * factor + rest.get("shift", 0), rest


def of_a_dataclass(x, settings):
    return x * settings.scale + settings.shift


def is_an_argument_of_layers(x, p):
    return F.leaky_relu(x, p), F.elu(x, p), x.clamp(-p, p), torch.where(x > p, x, p), torch.full((2,), p), x.pow(p)


def is_written(x, n):
    x[0] = n
    x.mul_(n)
    x[x > n] = 0.5
    return x


def returns_it(x, n):
    return n, [n + 1, (n, x)], n * 2.5


def catches(x, n):
    try:
        share = 1 // n
    except ZeroDivisionError:
        share = 100
    return x + share


PROGRAMS = {
    "catches": (catches, [(1,), (0,), (2,), (0,), (1,)], 2),
    "only_computes": (only_computes, [(0,), (1,), (2,), (7,), (-3,)], 2),
    "of_all_operators": (of_all_operators, [(1,), (2,), (5,), (11,)], 1),
    "branches": (branches, [(1,), (2,), (3,), (9,), (-4,)], 2),
    "makes_sizes": (makes_sizes, [(1,), (2,), (1,), (3,)], 3),
    "loops": (loops, [(1,), (3,), (1,)], 2),
    "makes_text": (makes_text, [(1,), (2,), (1,)], 2),
    "indexes": (indexes, [(0,), (2,), (0,), (-1,)], 3),
    "is_a_key": (is_a_key, [(1,), (3,), (1,)], 2),
    "asks_for_its_type": (asks_for_its_type, [(1,), (2,), (1.5,), (True,)], 4),
    "leaves_for_math": (leaves_for_math, [(1,), (4,), (1,)], 2),
    "is_foreign": (is_foreign, [(1,), (4,), (1,)], 2),
    "compares": (compares, [(1,), (2,), (1,), (3,)], 3),
    "is_in_containers": (is_in_containers, [({"scale": 2.0, "more": [1]},), ({"scale": 3.5, "more": [4]},)], None),
    "is_an_argument_of_layers": (is_an_argument_of_layers, [(0.5,), (0.25,), (1.5,)], None),
    "is_written": (is_written, [(2,), (1,), (-3,)], None),
    "returns_it": (returns_it, [(1,), (2,), (10**30,), (-5,)], 1),
    "another type": (lambda x, n: x.int() * n, [(1,), (2.5,), (3,), (True,), (1j,)], None),
    "floats": (lambda x, s: x * s + s / 2 - s**2, [(0.5,), (-0.0,), (math.inf,), (math.nan,), (1e300,)], 1),
    "powers": (lambda x, n: (x * 2**n, n**2, (-2.0) ** n), [(2,), (3,), (-1,), (0.5,), (-2,)], None),
    "divides by zero": (lambda x, n: x + 1 // n, [(1,), (0,), (2,), (0,)], None),
    "too large": (lambda x, n: x.long() * n, [(1,), (2**62,), (2**70,), (3,)], None),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_call_gives_what_the_plain_program_gives(name):
    program, calls, misses = PROGRAMS[name]
    jitted = symbolic(program)
    for args in calls:
        x, y = X.clone(), X.clone()
        same(outcome(jitted, x, *args), outcome(program, y, *args))
        same(x, y)
    assert thunder.compile_stats(jitted).plain is None
    assert misses is None or thunder.cache_misses(jitted) == misses


def test_keyword_arguments_and_fields_are_symbolic_too():
    jitted = symbolic(of_keywords)
    for kwargs in ({"factor": 3}, {"factor": 4}, {"factor": 4, "shift": 1}, {"factor": 5, "shift": 2}, {}):
        same(jitted(X, **kwargs), of_keywords(X, **kwargs))
    assert thunder.cache_misses(jitted) == 3
    jitted = symbolic(of_a_dataclass)
    for scale, shift in ((1.5, 2), (2.5, 4)):
        settings = Settings(scale, shift)
        same(jitted(X, settings), of_a_dataclass(X, settings))
        assert settings == Settings(scale, shift) and type(settings.scale) is float
    assert thunder.cache_misses(jitted) == 1


def test_the_trace_holds_numbers_by_name():
    jitted = symbolic(lambda x, n: x * (n + 1))
    same(jitted(X, 2), X * 3)
    lines = [line.strip() for line in thunder.last_traces(jitted)[0].canonical().splitlines()]
    assert "def computation(x, n):" in lines and '# n: "int"' in lines
    assert any(line.startswith("t0 = operator.add(n, 1)") for line in lines)
    assert any("type(n) is int" in line for line in thunder.last_prologue_traces(jitted)[0].canonical().splitlines())


def test_why_it_was_compiled_again_names_the_number():
    jitted = symbolic(branches)
    jitted(X, 1), jitted(X, 5)
    assert thunder.last_recompile_reason(jitted) == "n: 1 -> 5"
    jitted(X, 1.5)
    assert thunder.last_recompile_reason(jitted) == "n: int -> float"


def test_old_specializations_are_found_among_many():
    jitted = symbolic(lambda x, name, n: x * n + len(name))
    for n in range(2):
        for i in range(7):
            name = "a" * i
            same(jitted(X, name, n), X * n + i)
    assert (thunder.cache_misses(jitted), thunder.cache_hits(jitted)) == (7, 7)


# Programs of a tensor that requires gradients and a number, and how often they are compiled for 2, 3 and 5.
DIFFERENTIATED = {
    "x * n": 1,
    "x * n + n * 2": 1,
    "x / n": 1,
    "n - x": 1,
    "n / x": 1,
    "(x - n).pow(2).mean()": 1,
    "x.clamp(-n / 4, n / 4)": 1,
    "F.leaky_relu(x, n * 0.1)": 1,
    "torch.where(x > 0, x * n, n)": 1,
    "torch.logsumexp(x * n, 1)": 1,
    "(F.gelu(x * n) + n).softmax(-1)": 1,
    "x * (1 / (x.detach().norm().item() + n))": 1,
    "x / x.detach().abs().max().item() * n": 1,
    "x.abs() ** n": 3,
    "x.view(-1)[n] * n": 3,
}


@pytest.mark.parametrize("text", DIFFERENTIATED)
def test_gradients_go_through_numbers(text):
    program = eval(f"lambda x, n: {text}", {"torch": torch, "F": F})
    jitted = symbolic(program)
    for n in (2, 3, 5):
        x, y = (X * n + 0.1).requires_grad_(), (X * n + 0.1).requires_grad_()
        found, expected = jitted(x, n), program(y, n)
        same(found.detach(), expected.detach())
        found.sum().backward(), expected.sum().backward()
        same(x.grad, y.grad)
    assert thunder.cache_misses(jitted) == DIFFERENTIATED[text]


def test_steps_that_are_scaled_by_what_item_gives_are_compiled_once():
    def clipped(x):
        return x * (1 / max(x.detach().norm().item(), 1e-6))

    jitted = thunder.jit(clipped)
    for factor in range(1, 12):
        x, y = (X * factor).requires_grad_(), (X * factor).requires_grad_()
        jitted(x).sum().backward(), clipped(y).sum().backward()
        same(x.grad, y.grad)
    assert thunder.cache_misses(jitted) == 1 and thunder.compile_stats(jitted).plain is None


def test_numbers_beside_gradients_stay_symbolic():
    jitted, x = symbolic(lambda x, n: ((x * x).sum(), n + 1, n)), X.clone().requires_grad_()
    for n in (2, 3):
        x.grad = None
        loss, *numbers = jitted(x, n)
        loss.backward()
        same(x.grad, 2 * X)
        assert numbers == [n + 1, n]
    assert thunder.cache_misses(jitted) == 1


# ---- numbers that are no arguments ----


class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls, self.scale = 0, 1.5

    def forward(self, x):
        self.calls += 1
        return x * self.calls * self.scale


class InSlots:
    __slots__ = ("n",)

    def __init__(self):
        self.n = 1

    def __call__(self, x):
        self.n *= 2
        return x + self.n


def in_a_closure():
    n = 0

    def program(x):
        nonlocal n
        n += 1
        return x * n

    return program


in_globals = 3


def of_a_global(x):
    global in_globals
    in_globals = in_globals + 1
    return x * in_globals


@torch.no_grad()
@pytest.mark.parametrize("make", [Counts, InSlots, in_a_closure])
def test_a_counter_is_compiled_once(make):
    plain, counted = make(), make()
    jitted = symbolic(counted if isinstance(counted, torch.nn.Module) else lambda x: counted(x))
    for _ in range(5):
        same(jitted(X), plain(X))
    assert thunder.cache_misses(jitted) == 1
    for name in ("calls", "n"):
        same(getattr(counted, name, None), getattr(plain, name, None))


def test_globals_are_written_as_the_plain_program_does(monkeypatch):
    monkeypatch.setitem(globals(), "in_globals", 3)
    jitted = symbolic(of_a_global)
    for expected in (4, 5, 6):
        same(jitted(X), X * expected)
        same(in_globals, expected)
    monkeypatch.setitem(globals(), "in_globals", 0.5)
    same(jitted(X), X * 1.5)
    assert thunder.cache_misses(jitted) == 2
    assert thunder.last_recompile_reason(jitted) == "in_globals: int -> float"


@torch.no_grad()
def test_settings_that_are_changed_are_followed():
    plain, changed = Counts(), Counts()
    jitted = symbolic(changed)
    for scale in (1.5, 2.5, -0.0, math.inf, 2):
        plain.scale = changed.scale = scale
        same(jitted(X + 0.1), plain(X + 0.1))
    assert thunder.cache_misses(jitted) == 2  # the last is an int


def test_a_program_that_raises_leaves_numbers_as_they_are():
    class Holder:
        n = 1

    holder = Holder()
    holder.n = 2

    def program(x):
        holder.n += 1
        raise ValueError(holder.n)

    for _ in range(2):
        before = holder.n
        with pytest.raises(ValueError):
            symbolic(program)(X)
        assert type(holder.n) is int and holder.n == before + 1


# ---- numbers of tensors, in every mode ----


def test_what_item_gives_is_computed_with_in_the_trace():
    def program(x, log):
        largest = x.max().item()
        log.append(largest)
        return x / (2 * largest + 1), largest, x.argmax().item() + 1

    jitted, logs = thunder.jit(program), ([], [])
    for factor in (1.0, 2.5, -3.0):
        same(jitted(X * factor, logs[0]), program(X * factor, logs[1]))
        same(*logs)


def test_only_decisions_by_what_item_gives_are_checked():
    def program(x):
        largest = x.max().item()
        return x * largest if largest > 1 else x - largest

    jitted = thunder.jit(program)
    for factor in (1.0, 2.0, 3.0, 0.1, 0.2, 5.0):
        same(jitted(X * factor), program(X * factor))
    assert thunder.cache_misses(jitted) == 2
    assert "check_value(" in thunder.last_traces(jitted)[0].canonical()


@pytest.mark.parametrize(
    "program",
    [
        lambda x: catches(x, x.argmax().item() - 11),
        lambda x: x[: x.argmax().item() % 3],
        lambda x: f"{x.sum().item():.3f}",
        lambda x: {x.argmax().item(): x},
        lambda x: x + float(decimal.Decimal(x.argmax().item())),
        lambda x: (type(x.sum().item()) is float, x.sum().item()),
        lambda x: torch.zeros(x.argmax().item()),
        lambda x: functools.reduce(lambda a, b: a + b, (y.item() for y in x.sum(0))),
        lambda x: [y.item() for y in x.flatten()],
        lambda x: math.exp(x.mean().item()),
        lambda x: (x > 0).any().item(),
    ],
)
def test_programs_with_item_give_what_the_plain_ones_give(program):
    jitted = thunder.jit(program)
    for x in (X, X.flip(0, 1), X * 2, X):
        same(jitted(x), program(x))
    assert thunder.compile_stats(jitted).plain is None


def test_a_loss_that_is_logged_does_not_stop_training():
    log = []

    def step(x):
        loss = (x * x).sum()
        log.append(loss.item())
        return loss

    jitted, x = thunder.jit(step), X.clone().requires_grad_()
    for factor in (1.0, 2.0):
        loss = jitted(x * factor)
        loss.backward()
        assert log[-1] == loss.item()
    assert len(log) == 2 and thunder.compile_stats(jitted).plain is None


def test_a_number_that_outlives_its_trace_says_so():
    kept = []

    class Hidden:
        __slots__ = ("number",)

    hidden = Hidden()

    def program(x):
        n = x.sum().item()
        object.__setattr__(hidden, "number", n)
        return x * n

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jitted = thunder.jit(program)
        same(jitted(X), program(X))
        jitted(X * 2)
    assert hidden.number == (X * 2).sum().item(), kept
