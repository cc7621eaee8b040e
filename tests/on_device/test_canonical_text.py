"""The canonical text of the fixtures is the same in every environment, and nvFuser's own where it is nvFuser's.

The files in golden/ were written in the full environment, where nvFuser prints the definitions; in the light one the
recorded backend must write the same. `pytest --update-golden` writes them again.
"""

import hashlib
from pathlib import Path

import pytest
import torch

import thunder
from thunder.examine import get_fusions

GOLDEN = Path(__file__).parent / "golden"
PROGRAMS = {"first": "foo", "quickstart": "foo", "mlp": "model", "gpt": "model", "closure": "scaled"}


def texts(module, entry):
    """Every canonical text of one traced program, by file name."""
    program = getattr(module, entry)
    inputs = module.example_inputs() if hasattr(module, "example_inputs") else (module.a, module.b)
    with torch.no_grad():
        jitted = thunder.jit(program)
        jitted(*inputs)
    stages = thunder.last_traces(jitted)
    found = {"prologue.py": thunder.last_prologue_traces(jitted)[0].canonical()}
    for k, stage in enumerate(stages):
        name = (stage.constructed_by or "acquired").lower().replace(" ", "-")
        found[f"{k:02}-{name}.py"] = stage.canonical()
    for name, wrapper in get_fusions(stages[-1]):
        found[f"{name}.py"] = str(wrapper.last_used)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_a_fixture_is_the_same_everywhere(name, load_fixture, request):
    folder = GOLDEN / name
    actual = texts(load_fixture(name), PROGRAMS[name])
    if name == "gpt":  # too long to keep
        digests = [f"{hashlib.sha256(text.encode()).hexdigest()}  {file}\n" for file, text in actual.items()]
        actual = {"sha256sums": "".join(digests)}
    if request.config.getoption("--update-golden"):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for file, text in actual.items():
            (folder / file).write_text(text)
    expected = {path.name: path.read_text() for path in folder.iterdir()}
    assert actual == expected
