"""Finding the entry and its inputs: which call of a program is taken, and what the program notices. In this process."""

import sys

import pytest
import torch

from thunder_cli import inputs
from thunder_cli.arguments import check_runs_when_called
from thunder_cli.entry import Call, entry_object
from thunder_cli.errors import CommandError
from thunder_cli.job import Job
from thunder_cli.script import Program
from thunder_cli.watch import Watch


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Makes a program of a text, as the worker does."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.delitem(sys.modules, "script", raising=False)

    def make(text, entry="foo", arguments=()):
        (tmp_path / "script.py").write_text(text)
        return Program(Job(str(tmp_path / "script.py"), None, entry, "cpu", False, arguments=list(arguments)))

    return make


def first_call(program, entry, result="traced"):
    """Runs the program; gives its namespace and the calls that were taken."""
    calls = []

    def handle(call):
        calls.append(call)
        return call.run() if result is None else result

    name, *path = entry.split(".")
    watch = Watch(name, path, handle)
    with watch.jit_calls():
        namespace = program.run(name, watch.bound)
    return namespace, calls


BINDINGS = {
    "def": "def foo(x): return x",
    "assignment": "def bar(x): return x\nfoo = bar",
    "lambda": "foo = lambda x: x",
    "import": "from operator import neg as foo",
    "decorated": "import functools\n@functools.lru_cache\ndef foo(x): return x",
    "if": "if True:\n    def foo(x): return x",
    "try": "try:\n    foo\nexcept NameError:\n    def foo(x): return x",
    "with": "import contextlib\nwith contextlib.nullcontext(abs) as foo: pass",
    "for": "for foo in [abs]: pass",
    "walrus": "if (foo := abs): pass",
    "twice": "foo = None\ndef foo(x): return 'first'\ndef foo(x): return x",
    "main": "if __name__ == '__main__':\n    def foo(x): return x",
    "partial": "import functools\nfoo = functools.partial(max, 1)",
}


@pytest.mark.parametrize("binding", BINDINGS.values(), ids=BINDINGS.keys())
def test_the_first_call_is_taken_however_the_name_is_bound(program, binding):
    namespace, calls = first_call(program(f"{binding}\nresult = foo(2)\nagain = foo(3)\n"), "foo")
    assert [call.args for call in calls] == [(2,)]
    assert namespace["result"] == "traced" and namespace["again"] != "traced"
    assert calls[0].origin.startswith("the script's own call, script.py:")


def test_a_call_from_inside_of_another_function_is_taken(program):
    text = "def foo(x, y=1): return x\ndef main(): return foo(2, y=5)\nresult = main()\n"
    _, (call,) = first_call(program(text), "foo")
    assert call.args == (2,) and call.kwargs == {"y": 5} and call.origin.endswith("script.py:2")


MODULES = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return x + 1
    def loss(self, x):
        return self(x) * 2
class Trainer:
    def __init__(self):
        self.model = Model()
    def step(self, x):
        return self.model(x)
    @staticmethod
    def scale(x):
        return x * 3
other = Model()
model = Model()
trainer = Trainer()
other(torch.zeros(1))
results = [model(torch.ones(1)), model.loss(torch.ones(1)), trainer.step(torch.ones(1)), Trainer.scale(torch.ones(1))]
"""


@pytest.mark.parametrize(
    ("entry", "subject", "value"),
    [
        ("model", "model", 1),
        ("Model", "other", 0),
        ("Model.forward", "other", 0),
        ("model.forward", "model", 1),
        ("trainer.model", "trainer.model", 1),
    ],
)
def test_modules_are_taken_whole_by_instance_class_or_forward(program, entry, subject, value):
    namespace, (call,) = first_call(program(MODULES, entry), entry, result=None)
    assert call.subject is eval(subject, namespace)
    assert call.args[0].item() == value
    assert call.run().item() == value + 1
    assert [x.item() for x in namespace["results"]] == [2, 4, 2, 3]
    assert "forward" not in vars(namespace["model"]) and "__call__" not in vars(namespace["Model"])


@pytest.mark.parametrize(
    ("entry", "result"), [("Model.loss", 4), ("trainer.step", 2), ("Trainer.step", 2), ("Trainer.scale", 3)]
)
def test_methods_are_taken_with_the_object_they_are_of(program, entry, result):
    namespace, (call,) = first_call(program(MODULES, entry), entry, result=None)
    assert call.run().item() == result
    assert [x.item() for x in namespace["results"]] == [2, 4, 2, 3]


@pytest.mark.parametrize("entry", ["foo", "jitted"])
def test_what_the_program_jits_itself_is_taken_as_it_is(program, entry):
    text = (
        "import torch, thunder\n"
        "def foo(a):\n    return a + 1\n"
        "jitted = thunder.jit(foo)\n"
        "result = jitted(torch.ones(2))\n"
        "stages = len(thunder.last_traces(jitted))\n"
    )
    namespace, (call,) = first_call(program(text, entry), entry, result=None)
    assert call.subject is namespace["jitted"]
    assert namespace["stages"] == 4 and namespace["result"].tolist() == [2, 2]


def test_the_program_runs_as_python_would_run_it(program, tmp_path):
    text = (
        "from __future__ import annotations\n"
        "import sys\n"
        "def foo(x): return x\n"
        "seen = __name__, __file__, sys.argv[1:], sys.path[0], sys.modules['__main__'].__dict__ is globals()\n"
        "same = locals()['foo'] is globals()['foo']\n"
        "exec('bar = 1')\n"
        "class A: x: int = bar\n"
        "squares = [foo(i) for i in range(2)]\n"
    )
    namespace, calls = first_call(program(text, arguments=["--lr", "1"]), "foo")
    path = str(tmp_path / "script.py")
    assert namespace["seen"] == ("__main__", path, ["--lr", "1"], str(tmp_path), True)
    assert namespace["same"] and namespace["bar"] == 1
    assert namespace["squares"] == ["traced", 1] and len(calls) == 1


def test_importing_a_program_does_not_run_what_is_for_main(program):
    text = "def foo(x): return x\nif __name__ == '__main__':\n    raise SystemExit\n"
    namespace = program(text).load()
    assert namespace["foo"](3) == 3 and namespace["__name__"] == "script"


def test_a_program_tells_without_running_what_importing_it_defines(program):
    text = "def example_inputs(): pass\nif __name__ == '__main__':\n    foo = 1\n"
    assert program(text).defines("example_inputs")
    assert not program(text).defines("foo")
    assert program(text + "from somewhere import *\n").defines("foo")


ENTRIES = """
import torch
NUMBER = 3
class Needs(torch.nn.Module):
    def __init__(self, width): super().__init__()
class Free(torch.nn.Module):
    def forward(self, x): return x
class Plain:
    def step(self, x): return x
"""


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("NUMBER", "NUMBER is of type int, which cannot be called"),
        ("Needs", r"Needs is a class that needs arguments to be made: Needs\(width\)"),
        ("Plain", "Name a method: Plain.step"),
        ("Plain.stop", "Plain has no stop. Did you mean step"),
    ],
)
def test_an_entry_that_cannot_be_called_says_why(program, entry, said):
    name, *path = entry.split(".")
    with pytest.raises(CommandError, match=said):
        entry_object(program(ENTRIES).load(), name, path)


def test_an_entry_that_runs_nothing_when_it_is_called_is_refused(program):
    text = "def many(x): yield x\nasync def later(x): return x\ndef now(x): return x\n"
    namespace = program(text).load()
    for name, said in (("many", "many is a generator"), ("later", "later is an async function")):
        with pytest.raises(CommandError, match=said):
            check_runs_when_called(Call(namespace[name], (1,), {}, "--input"))
    check_runs_when_called(Call(namespace["now"], (1,), {}, "--input"))
    check_runs_when_called(Call(torch.nn.Linear(2, 2), (1,), {}, "--input"))


def test_classes_that_need_nothing_are_made(program):
    namespace = program(ENTRIES).load()
    assert isinstance(entry_object(namespace, "Free", [])[0], namespace["Free"])
    module, method = entry_object(namespace, "Free", ["forward"])
    assert isinstance(module, namespace["Free"]) and method == "forward"
    assert entry_object(namespace, "Plain", ["step"])[0](4) == 4


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("f32[2, 3]", torch.float32, (2, 3)),
        ("bf16[4]@cpu", torch.bfloat16, (4,)),
        ("i64[2,2]", torch.int64, (2, 2)),
        ("b8[3]", torch.bool, (3,)),
        ("c64[2]", torch.complex64, (2,)),
        ("f32[]", torch.float32, ()),
        ("f64[0, 2]", torch.float64, (0, 2)),
        ('"cpu f16[5]"', torch.float16, (5,)),
    ],
)
def test_the_short_form_makes_the_tensor_that_traces_describe(text, dtype, shape):
    inputs.check(text)
    made = inputs.make(text, {})
    assert made.dtype is dtype and made.shape == shape
    assert torch.equal(made, inputs.make(text, {}))


def test_expressions_see_the_programs_names_and_torch():
    assert inputs.make(" width * 2 ", {"width": 4}) == 8
    assert inputs.make("torch.ones(2)", {}).tolist() == [1, 1]
    assert inputs.make("[1, 2]", {}) == [1, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [("z99[2]", "no dtype 'z99'"), ("nothing()", "NameError: name 'nothing'"), ("1 / 0", "ZeroDivisionError")],
)
def test_an_input_that_cannot_be_made_says_why(text, said):
    inputs.check(text)
    with pytest.raises(CommandError, match=said):
        inputs.make(text, {})
