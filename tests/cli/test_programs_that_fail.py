"""Programs that raise, hang, exit or die: the right error, and what was traced until then."""

import json
import os
import signal
import subprocess
import sys

import pytest
from running_thunder import environment, thunder

from thunder_cli.errors import CommandError
from thunder_cli.tracing import executors

PROGRAM = """\
import ctypes
import os
import signal
import sys

import torch


def helper(b):
    raise ValueError("no such luck")


def raises(a):
    b = a + 1
    return helper(b)


def hangs(a):
    b = a + 1
    while True:
        pass


def exits(a):
    b = a + 1
    sys.exit(5)


def leaves(a):
    b = a + 1
    os._exit(7)


def kills(a):
    b = a + 1
    os.kill(os.getpid(), signal.SIGKILL)


def crashes(a):
    b = a + 1
    ctypes.string_at(0)


def leaves_torch(a):
    b = a + 1
    c = b.numpy()
    return c


def two(a, b):
    return a + b


def example_inputs():
    return torch.ones(2, 2)
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("failing")
    (directory / "program.py").write_text(PROGRAM)
    (directory / "bare.py").write_text(PROGRAM.partition("def example_inputs")[0])
    return directory


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            "raises",
            ["program.py:10: ValueError: no such luck\n", "    return helper(b)\n"],
        ),
        ("hangs", ["program.py:20: still running after 4 seconds", "--timeout"]),
        ("exits", ["program.py:26: the program ended itself with sys.exit(5) while exits was traced"]),
        ("leaves", ["program.py ended its process with exit code 7"]),
        ("kills", ["program.py was killed by SIGKILL"]),
        ("crashes", ["program.py was killed by SIGSEGV"]),
        ("leaves_torch", ["program.py:46  c = b.numpy()"]),
    ],
)
def test_what_was_traced_until_the_end_is_shown_and_recorded_with_the_error(directory, entry, said):
    done = thunder("trace", f"program.py:{entry}", "--target", "cpu", "--timeout", "4", cwd=directory)
    assert done.returncode == 3
    assert all(part in done.stderr for part in said), done.stderr
    assert "thunder_cli" not in done.stderr and "src/thunder" not in done.stderr
    assert "ltorch.add(a, 1)" in done.stdout
    path = directory / ".thunder" / "sessions" / f"program-{entry}-1"
    assert f"session   .thunder/sessions/program-{entry}-1" in done.stdout
    assert "ltorch.add(a, 1)" in (path / "computation" / "00-acquired.py").read_text()
    (failure,) = json.loads((path / "index.json").read_text())["failures"]
    assert failure["kind"] == "program" and said[0].strip() in failure["message"]


@pytest.mark.parametrize(
    ("entry", "inputs", "said"),
    [
        ("two", [], ["two asks for 2 inputs and got none.\n  bare.py:50  def two(a, b):\n", "--input (twice)"]),
        ("two", ["f32[2]"], ["missing a required argument: 'b'", "bare.py:50  def two(a, b):"]),
    ],
)
def test_an_entry_that_cannot_be_called_so_is_a_usage_error(directory, entry, inputs, said):
    options = [option for text in inputs for option in ("--input", text)]
    done = thunder("trace", f"bare.py:{entry}", "--target", "cpu", *options, cwd=directory)
    assert done.returncode == 2, done.stderr
    assert all(part in done.stderr for part in said), done.stderr
    assert "Traceback" not in done.stderr
    assert not list(directory.glob(".thunder/sessions/bare-*"))


def test_a_program_that_will_not_end_is_killed(directory):
    """It catches the exception by which it is told to end."""
    (directory / "stubborn.py").write_text(
        "import time, torch\n"
        "def foo(x):\n    y = x + 1\n    while True:\n"
        "        try: time.sleep(9)\n        except BaseException: pass\n"
        "foo(torch.ones(2))\n"
    )
    done = thunder("trace", "stubborn.py:foo", "--target", "cpu", "--timeout", "1", cwd=directory)
    assert done.returncode == 3
    assert "stubborn.py was still running after 1 seconds, did not end when asked to, and was killed" in done.stderr
    assert "ltorch.add(x, 1)" in done.stdout


def test_an_unknown_executor_lists_those_there_are():
    with pytest.raises(CommandError, match="no executor is called 'torhc'; there are "):
        executors(["torhc"])


def test_a_script_that_fails_before_the_call_shows_the_users_traceback(directory):
    (directory / "early.py").write_text("def foo(a):\n    return a\n\nfoo(1 / 0)\n")
    done = thunder("trace", "early.py:foo", "--target", "cpu", cwd=directory)
    assert done.returncode == 3
    assert done.stderr.startswith("thunder: early.py:4: ZeroDivisionError: division by zero\nTraceback")
    assert done.stderr.count("File ") == 1


def test_a_session_that_cannot_be_written_is_an_error_after_the_trace(directory, tmp_path):
    (tmp_path / ".thunder").write_text("not a directory")
    done = thunder(
        "trace", str(directory / "bare.py:two"), "--target", "cpu", "--input", "1", "--input", "f32[2]", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "── 3  Delete Last Used" in done.stdout and "equal to eager" in done.stdout
    assert "the session was not written to .thunder/sessions" in done.stderr and "--out DIR" in done.stderr


def test_ctrl_c_ends_it_with_130_and_keeps_what_was_traced(tmp_path):
    """To the whole group of processes, as a terminal sends it."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "thunder_cli", "trace", "program.py:hangs", "--target", "cpu"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), start_new_session=True, **pipes)
    while not process.stdout.readline().startswith("inputs"):
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in said and "Traceback" not in said
