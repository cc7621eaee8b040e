"""`thunder ci`: the list of entries, golden sessions, exit codes."""

import pytest

from thunder_cli import configuration
from thunder_cli.errors import CommandError

MODEL = """\
import torch

def step(x):
    h = torch.sin(x)
    return h * 2

def example_inputs():
    return [torch.ones(3)]
"""
ENTRIES = '[entries.step]\nentry = "model.py:step"\ntarget = "cpu"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no thunder.toml"),
        ("[entries", "is not TOML"),
        ("", "lists no entries"),
        ("entries = 3", "lists no entries"),
        ("[entry.a]", "Did you mean entries?"),
        ("[entries.a]", "does not say which entry"),
        ('[entries.a]\nentry = "a.py:f"\ninput = []', "Did you mean inputs?"),
        ('[entries.a]\nentry = "a.py:f"\ninputs = "f32[2]"', "inputs is a list of strings"),
        ('[entries.a]\nentry = "a.py:f"\ninputs = [2]', "inputs is a list of strings"),
        ('[entries.a]\nentry = "a.py:f"\ntimeout = true', "timeout is a number"),
        ('[entries.a]\nentry = "a.py:f"\ngrad = 1', "grad is true or false"),
        ('[entries."../a"]\nentry = "a.py:f"', "cannot be the name of a directory"),
        ('golden = 3\n[entries.a]\nentry = "a.py:f"', "golden is the name of a directory"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_the_way_out(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "thunder.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CommandError) as raised:
        configuration.read(path.relative_to(tmp_path))
    assert said in str(raised.value)


def test_entries_are_accepted_compared_and_fail_when_they_change(run, tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "thunder.toml").write_text(ENTRIES)
    first = run("ci")
    assert first.returncode == 1 and "step has no golden session" in first.stdout
    accepted = run("ci", "--accept")
    assert accepted.returncode == 0 and accepted.stdout.startswith("identical"), accepted.stderr
    (tmp_path / "model.py").write_text("# moved by a line\n" + MODEL.replace("h =", "s =").replace("h *", "s *"))
    same = run("ci")
    assert same.returncode == 0 and same.stdout.startswith("cosmetic"), same.stdout + same.stderr
    (tmp_path / "model.py").write_text(MODEL.replace("sin", "cos"))
    changed = run("ci", "--format", "markdown")
    assert changed.returncode == 1
    assert "| ❌ | step | structural | computation/0 acquired" in changed.stdout
    assert "\n- h = ltorch.sin(x)" in changed.stdout and "\n+ h = ltorch.cos(x)" in changed.stdout
    assert run("ci", "stepp").returncode == 2
    assert [path.name for path in (tmp_path / "golden").iterdir()] == ["step"]
