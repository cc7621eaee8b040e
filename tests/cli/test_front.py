"""What is answered without a worker: help, versions, mistakes in the command line. None of it imports torch."""

import subprocess
import sys

import pytest
from running_thunder import SOURCE

FOREVER = "def foo(a, b):\n    return a\n\nclass Model:\n    def step(self, x): return x\n"


@pytest.fixture
def script(tmp_path):
    (tmp_path / "script.py").write_text(FOREVER)


@pytest.mark.parametrize("arguments", ["--help", "--version", "trace missing.py:foo", "trace script.py:fo", "sessions"])
def test_help_and_usage_errors_import_neither_torch_nor_rich(script, tmp_path, arguments):
    code = (
        f"import sys; sys.path.insert(0, {SOURCE!r}); sys.argv = ['thunder', *{arguments.split()!r}]\n"
        "from thunder_cli.app import main\n"
        "try: main()\n"
        "finally: print({'torch', 'rich', 'numpy'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "set()"


def test_help_names_every_command(run):
    done = run("--help")
    assert done.returncode == 0
    for command in ("trace", "show", "why", "diff", "ci", "repro", "sessions", "targets", "doctor"):
        assert f"\n  {command} " in done.stdout


def test_version_is_printed(run):
    import thunder

    assert run("--version").stdout == f"thunder {thunder.__version__}\n"


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("missing.py:foo", 2, ["there is no file missing.py"]),
        ("scrip.py:foo", 2, ["there is no file scrip.py", "Did you mean script.py?"]),
        ("nowhere/script.py:foo", 2, ["there is no directory nowhere"]),
        ("script.py:fooo", 2, ["script.py has no fooo", "Did you mean foo?", "It defines foo, Model, Model.step"]),
        ("script.py", 2, ["does not say what to trace", "script.py:function", "It defines foo"]),
        ("script.py:", 2, ["does not say what to trace"]),
        ("script.py:a b", 2, ["does not say what to trace"]),
        (":foo", 2, ["does not say what to trace", "a script and an entry in it, script.py:foo,"]),
        (".:foo", 2, [". is a directory"]),
    ],
)
def test_a_target_that_is_not_there_is_an_error_with_the_way_out(run, script, target, code, said):
    done = run("trace", target)
    assert done.returncode == code
    assert all(part in done.stderr for part in said), done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_a_syntax_error_shows_the_line_and_a_caret(run, tmp_path):
    (tmp_path / "broken.py").write_text("import torch\n\n    def foo(a:\n  pass\n")
    done = run("trace", "broken.py:foo")
    assert done.returncode == 3
    assert "broken.py:3: syntax error" in done.stderr
    line, caret = done.stderr.splitlines()[1:3]
    assert line == "  def foo(a:" and caret.strip() == "^"


def test_a_binary_file_is_no_script(run, tmp_path):
    (tmp_path / "binary.py").write_bytes(b"\x00\xff\xfe\x80")
    done = run("trace", "binary.py:foo")
    assert done.returncode == 3
    assert "binary.py is not Python source" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--input", "f32[2"], ["--input 'f32[2' does not parse", "f32[2, 2]@cuda"]),
        (["--input", "torch.ones("], ["does not parse"]),
        (["--target", "h1000"], ["no chip named 'h1000'", "Did you mean h100?"]),
        (["--only", "everything"], ["--only everything", "stages, fusions, kernels, repro"]),
        (["--only", "stages", "--stage", "1"], ["exclude each other"]),
        (["--out", "taken"], ["--out taken exists and is no session"]),
        (["--timeout", "soon"], ["--timeout", "valid number"]),
    ],
)
def test_a_wrong_option_is_a_usage_error(run, script, tmp_path, options, said):
    (tmp_path / "taken").write_text("something of the user's")
    done = run("trace", "script.py:foo", *options)
    assert done.returncode == 2
    assert all(part in done.stderr for part in said), done.stderr


def test_without_a_session_every_command_that_needs_one_says_how_to_make_one(run):
    for arguments in (["show"], ["repro", "--fusion", "nvFusion0"]):
        done = run(*arguments)
        assert done.returncode == 2
        assert "there is no session here yet" in done.stderr and "thunder trace" in done.stderr
    done = run("sessions")
    assert done.returncode == 0 and "no session here yet" in done.stdout


def test_targets_lists_the_chips_with_their_figures(run):
    done = run("targets")
    assert done.returncode == 0
    row = next(line for line in done.stdout.splitlines() if line.startswith("h100 "))
    assert row.split("  ")[0] == "h100" and "9.0" in row and "132" in row and "3350 GB/s" in row
    assert len(run("targets", "--json").stdout.splitlines()) >= 5
