"""Everything that a trace can depend on, changed between two calls: the jitted program follows as the plain one does.

`changes/` has the tables. A row is a program, which defines `f`, and below `--` steps. The plain and the jitted world
take the same steps; a step that is an expression is called twice. Where none calls `f`, the steps are a change between
calls of `f(x)`. A row that says `(plainly)` has state that can be neither compared nor written: such a program is run
plainly, with a warning.
"""

from pathlib import Path

import pytest
import torch
from worlds import compare_worlds, read_rows, run_world

from thunder.frontend import tensor_guards

TABLES = sorted((Path(__file__).parent / "changes").glob("*.txt"))
ROWS = {f"{table.stem}: {name}": row for table in TABLES for name, row in read_rows(table).items()}


def steps_of(steps):
    return steps if any(step.startswith("f(") for step in steps) else ["f(x)", *steps, "f(x)"]


def test_there_are_rows():
    assert len(ROWS) > 300


@pytest.mark.parametrize("name", ROWS)
def test_a_change_is_followed(name):
    program, steps, plainly = ROWS[name]
    # What a program writes may well be what its next call is compiled anew for; a cache is filled by a plain call.
    may_retrace = name.startswith(("writes", "caller", "closures")) or "cached" in name
    compare_worlds(program, steps_of(steps), plainly=plainly, retraced=may_retrace)


@pytest.mark.parametrize("name", [name for name in ROWS if "tensor" in name])
def test_a_change_is_followed_without_torchs_guards(name, monkeypatch):
    monkeypatch.setattr(tensor_guards, "TensorGuards", None)
    test_a_change_is_followed(name)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_a_change_is_followed_where_values_are_symbolic(name):
    program, steps, _ = ROWS[name]
    with torch.no_grad():
        expected, _ = run_world(program, steps_of(steps), jitted=False)
        found, _ = run_world(program, steps_of(steps), jitted=True, cache="symbolic values")
    assert found == expected
