"""What `thunder trace` says beside the stages: decisions by value, why later calls are compiled again, the way back."""

import json

from running_thunder import thunder

DECIDES = """\
import torch

scale = 2


class Model:
    def step(self, a):
        if a.sum() > 0:
            return a * scale
        return a - scale


model = Model()
for _ in range(2):
    model.step(torch.ones(3))
scale = 3
for _ in range(50):
    model.step(torch.ones(3))
"""

JITTED = """\
import torch
import thunder


@thunder.jit
def foo(a):
    return a * 2 if a.sum() > 0 else a


for x in (1.0, -1.0, 1.0, -1.0):
    foo(torch.full((3,), x))
foo(torch.ones(4))
"""

PRINTS = """\
import torch


def foo(a):
    print("hello", a.shape)
    return a * 2


foo(torch.ones(3))
"""

TURNS = """\
import torch


def foo(a):
    b = a.clone().t_()
    return b * 2


foo(torch.ones(3, 2))
"""


def test_decisions_and_what_a_later_call_finds_different(tmp_path):
    (tmp_path / "script.py").write_text(DECIDES)
    done = thunder("trace", "script.py:model.step", "--target", "cpu", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "── decisions by value ─" in done.stdout
    assert "script.py:8:        if a.sum() > 0:  t1: True\n" in done.stdout
    assert done.stdout.count("recompiled   scale (global of script.py): 2 -> 3\n") == 1
    assert sorted(thunder("show", cwd=tmp_path).stdout.splitlines()) == sorted(done.stdout.splitlines())


def test_each_reason_of_what_the_program_jitted_is_said_once(tmp_path):
    (tmp_path / "script.py").write_text(JITTED)
    done = thunder("trace", "script.py:foo", "--target", "cpu", "--json", cwd=tmp_path)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    reasons = [event["reason"] for event in events if event["event"] == "recompiled"]
    assert len(reasons) == 2, done.stderr
    assert reasons[0].startswith("script.py:7:") and reasons[0].endswith("False -> True")
    assert reasons[1] == 'a: "cpu f32[3]" -> "cpu f32[4]"'


def test_an_entry_that_is_run_plainly_says_so_once_with_the_line(tmp_path):
    (tmp_path / "script.py").write_text(TURNS)
    done = thunder("trace", "script.py:foo", "--target", "cpu", cwd=tmp_path)
    assert "plain     script.py:5:    b = a.clone().t_()\n" in done.stdout
    assert "This is run plainly, not compiled: t_() changes the shape" in done.stdout
    assert "plainly" not in done.stderr and done.returncode == 0
    index = json.loads((tmp_path / ".thunder" / "sessions" / "script-foo-1" / "index.json").read_text())
    assert index["plain"]["source"].startswith("script.py:5")
    assert index["plain"]["reason"].startswith("t_() changes the shape")


def test_an_entry_that_prints_is_traced_with_a_warning(tmp_path):
    (tmp_path / "script.py").write_text(PRINTS)
    done = thunder("trace", "script.py:foo", "--target", "cpu", cwd=tmp_path)
    assert "ltorch.mul(a, 2)" in done.stdout and "equal to eager" in done.stdout and done.returncode == 0
    assert "hello torch.Size([3])" in done.stdout
    assert "script.py:5" in done.stderr and "It happens now, and not in later calls." in done.stderr
