"""Values are called as the user's variables, and traces of one program are the same text every time."""

import textwrap

import pytest
import torch

import thunder


def names_of(program, *args):
    jitted = thunder.jit(program)
    with torch.no_grad():
        jitted(*args)
    return [p.name for b in thunder.last_traces(jitted)[0].bound_symbols for p in b.outputs], jitted


X, Y = torch.ones(2, 4), torch.full((2, 4), 2.0)


def test_a_value_is_called_as_the_variable_it_is_assigned_to():
    def program(a):
        b = a + 1
        c = torch.sin(b) * 2
        return c

    assert names_of(program, X)[0] == ["b", "t0", "c"]


def test_unpacked_results_are_called_as_their_variables():
    def program(a):
        left, right = a.split(2, dim=1)
        return left * right

    assert names_of(program, X)[0] == ["left", "right", "t0"]


def test_a_variable_assigned_again_gets_a_number():
    def program(a):
        x = a + 1
        x = x * 2
        x -= 3
        return x

    assert names_of(program, X)[0] == ["x", "x_1", "x_2"]


def test_what_a_call_returns_is_called_as_the_variable_of_its_caller():
    def inner(a):
        return torch.exp(a + 1)

    def program(a):
        h = inner(a)
        return h * 2

    assert names_of(program, X)[0] == ["t0", "h", "t1"]


def test_of_a_call_with_several_operations_the_last_has_the_variables_name():
    net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())

    def program(a):
        for _ in range(2):
            y = net(a)
            a = y + 1
        return a

    assert names_of(program, X)[0] == ["t0", "y", "a_1", "t1", "y_1", "a_2"]


def test_a_walrus_and_a_double_assignment_name_their_value():
    def program(a):
        b = c = a + 1
        if (d := b * c) is not None:
            return d

    assert names_of(program, X)[0][1] == "d"


@pytest.mark.parametrize(
    "name", ["torch", "thunder", "t0", "ltorch", "prims", "no_autocast", "float", "slice", "nvFusion0"]
)
def test_an_argument_of_any_name_leaves_the_text_complete(name):
    namespace = {"math": torch}
    exec(f"def program({name}, other):\n    y = {name} + other\n    return y * float_inf, math.sum(y)", namespace)
    namespace["float_inf"] = 2.5
    program = namespace["program"]
    jitted = thunder.jit(program)
    with torch.no_grad():
        expected = program(X, Y)
        jitted(X, Y)
        for stage in thunder.last_traces(jitted):
            result, _ = stage.python_callable()(X, Y)
            torch.testing.assert_close(result, expected)


def test_the_same_program_gives_the_same_text_twice():
    def program(a):
        b = torch.softmax(a, 1)
        return torch.special.entr(b).sum()

    (_, first), (_, second) = names_of(program, X), names_of(program, X)
    texts = [[t.canonical() for t in thunder.last_traces(j)] for j in (first, second)]
    assert texts[0] == texts[1]
    assert not any("milliseconds" in t or "0x" in t for t in texts[0])


def test_the_users_line_stands_above_what_it_did(tmp_path, monkeypatch):
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
        def program(a):
            b = a + 1
            return b * b
    """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    import program

    _, jitted = names_of(program.program, X)
    text = thunder.last_traces(jitted)[0].canonical()
    assert '  # program.py:3:     b = a + 1\n  b = ltorch.add(a, 1)  # b: "cpu f32[2, 4]"\n' in text


def test_every_printed_line_knows_what_it_shows():
    def program(a):
        b = a + 1
        return b * b

    _, jitted = names_of(program, X)
    lines = thunder.last_traces(jitted)[0].lines()
    statements = [line for line in lines if line.bound_symbol is not None and line.depth == 0]
    assert [line.bound_symbol.symbol.id for line in statements] == ["ltorch.add", "ltorch.mul"]
    assert all(line.source.path == "test_naming.py" for line in statements)
