"""The interpreter log: what ran while a program was traced."""

import dis
import math
import sys
from itertools import pairwise

import pytest
import torch
from torch import nn

import thunder
from thunder.frontend.history import Call, Line, OpaqueCall

X = torch.ones(2, 3)
RECORD = thunder.DebugOptions(record_history=True)


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def helper(y):
    n = len([1, 2])
    return torch.relu(y) + n


def program(x):
    total = x
    for _ in range(2):
        total = helper(total) * math.sqrt(4)
    return total


def recorded(fn, *args):
    jitted = thunder.jit(fn, debug_options=RECORD)
    torch.testing.assert_close(jitted(*args), fn(*args))
    return jitted


def test_the_log_has_calls_and_lines_nested():
    log = thunder.last_interpreter_log(recorded(program, X))
    calls = [(e.depth, e.function.rpartition(".")[2]) for e in log if isinstance(e, Call)]
    assert calls == [(0, "program"), (1, "helper"), (1, "helper")]
    opaque = [(e.depth, e.function) for e in log if isinstance(e, OpaqueCall)]
    once = [(2, "len"), (2, "torch.relu"), (1, "math.sqrt")]
    assert [entry for entry in opaque if entry[1] != "range"] == [*once, *once]
    lines = [(e.depth, e.source.text.strip()) for e in log if isinstance(e, Line)]
    assert lines[:3] == [(1, "total = x"), (1, "for _ in range(2):"), (1, "total = helper(total) * math.sqrt(4)")]
    assert lines.count((2, "n = len([1, 2])")) == 2
    assert all(b.depth <= a.depth + 1 for a, b in pairwise(log))
    assert {e.source.path for e in log} == {"test_history.py"}


def test_instructions_are_those_that_ran():
    def branch(x):
        return x + 1 if x.shape[0] == 2 else x - 1

    ran = thunder.last_interpreted_instructions(recorded(branch, X))
    assert all(isinstance(i, dis.Instruction) for i in ran)
    everything = list(dis.get_instructions(branch))
    assert ran[-1].opname == "RETURN_VALUE" and [i for i in ran if i in everything] == ran
    symbols = [i.argrepr for i in ran if i.opname == "BINARY_OP"]
    assert symbols == ["+"] and len(ran) < len(everything)


def test_loops_repeat_and_layers_are_part_of_it():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    log = thunder.last_interpreter_log(recorded(model, X))
    calls = [e.function for e in log if isinstance(e, Call)]
    assert calls == ["Sequential.forward", "Sequential.__iter__", "Linear.forward", "ReLU.forward"]
    ran = thunder.last_interpreted_instructions(recorded(program, X))
    assert sum(i.argval == "helper" and i.opname == "LOAD_GLOBAL" for i in ran) == 2


def test_printed_log_is_indented(capsys):
    thunder.print_last_interpreter_log(recorded(program, X))
    text = capsys.readouterr().out
    assert text.startswith("call program (test_history.py:")
    assert "\n    n = len([1, 2])" not in text and ": n = len([1, 2])\n    opaque call len\n" in text


def test_of_the_last_tracing_even_after_an_error():
    def failing(x):
        if x.ndim > 2:
            raise KeyError("no")
        return x + 1

    jitted = recorded(failing, X)
    before = len(thunder.last_interpreter_log(jitted))
    jitted(X)
    assert len(thunder.last_interpreter_log(jitted)) == before
    with pytest.raises(KeyError):
        jitted(X[None])
    assert [e.source.text.strip() for e in thunder.last_interpreter_log(jitted)][-1] == 'raise KeyError("no")'
    assert sys.gettrace() is None or sys.version_info >= (3, 12)


def test_asking_for_what_was_not_recorded():
    jitted = thunder.jit(program)
    jitted(X)
    questions = (
        thunder.last_interpreted_instructions,
        thunder.last_interpreter_log,
        thunder.print_last_interpreter_log,
    )
    for question in questions:
        with pytest.raises(RuntimeError, match=r"program .*DebugOptions\(record_history=True\)"):
            question(jitted)
        with pytest.raises(RuntimeError, match="call it first"):
            question(thunder.jit(program, debug_options=RECORD))


def test_unknown_debug_options():
    with pytest.raises(ValueError, match="did you mean 'record_history'"):
        thunder.DebugOptions(record_histry=True)
    with pytest.raises(ValueError, match="there are show_internal_frames, record_history"):
        thunder.DebugOptions(x=True)
    with pytest.raises(ValueError, match="DebugOptions"):
        thunder.jit(program, record_history=True)
    assert thunder.DebugOptions.list_options() == ["show_internal_frames", "record_history"]
