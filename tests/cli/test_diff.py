"""`thunder diff` as a command: sessions of other processes and directories, broken ones, formats and exit codes."""

import json
import shutil
from pathlib import Path

import pytest
from running_thunder import thunder

from thunder_cli import session
from thunder_cli.events import Stage
from thunder_cli.session import Session

GOLDEN = Path(__file__).parent / "golden" / "quickstart"
TENSOR = {"type": "cpu f32[2]", "strides": [1]}


def chain(length, names="t{}", operation="prims.sin", at=None, stages=1):
    """A session whose stages are a chain of one operation, with another one at `at`."""
    operations, last = [], "a"
    for i in range(length):
        name = names.format(i)
        source = {"path": "p.py", "line": i + 1, "text": f"{name} = f({last})"}
        call = {
            "line": i,
            "depth": 0,
            "operation": operation if i == at else "prims.cos",
            "arguments": [{"value": last}],
        }
        operations.append({**call, "options": {}, "inputs": [last], "outputs": [name], "source": source})
        last = name
    values = {"a": TENSOR, **{names.format(i): TENSOR for i in range(length)}}
    kept = Session()
    for index in range(stages):
        kept.add(Stage("computation", index, None, 0.0, names, ["a"], [{"value": last}], operations, values))
    return kept


@pytest.fixture
def sessions(tmp_path, monkeypatch):
    """Two sessions, `a` and `b`, that differ in one operation."""
    monkeypatch.chdir(tmp_path)
    session.write(chain(4), "a", tmp_path / "a")
    session.write(chain(4, at=2), "b", tmp_path / "b")
    return tmp_path


def test_a_change_is_shown_with_the_users_line_and_exits_with_1(sessions):
    done = thunder("diff", "a", "b", cwd=sessions)
    assert done.returncode == 1 and done.stderr == ""
    change = "  - t2 = prims.cos(t1)\n  + t2 = prims.sin(t1)"
    assert done.stdout.startswith(f"structural  computation/0 acquired\n{change}")
    assert "p.py:3:  t2 = f(t1)" in done.stdout
    assert thunder("diff", "a", "b", "--allow", "structural", cwd=sessions).returncode == 0
    assert thunder("diff", "a", "a", "--allow", "identical", cwd=sessions).returncode == 0


def test_markdown_begins_with_a_table_and_json_is_one_object(sessions):
    printed = thunder("diff", "a", "b", "--format", "markdown", cwd=sessions).stdout
    assert printed.splitlines()[2:5] == [
        "| | entry | difference | where |",
        "|---|---|---|---|",
        "| ❌ | b | structural | computation/0 acquired |",
    ]
    assert "<details><summary>b: structural</summary>" in printed and "\n- t2 = prims.cos(t1)\n" in printed
    answer = json.loads(thunder("diff", "a", "b", "--json", cwd=sessions).stdout)
    assert answer["change"] == "structural"
    assert answer["sections"][0]["differences"][0]["source"] == "p.py:3:  t2 = f(t1)"


def test_accept_replaces_the_golden_directory_by_the_session(sessions):
    done = thunder("diff", "b", "--against", "a", "--accept", cwd=sessions)
    assert done.returncode == 0, done.stderr
    assert thunder("diff", "b", "--against", "a", "--allow", "identical", cwd=sessions).returncode == 0
    assert json.loads((sessions / "a" / "index.json").read_text())["created"] == ""


def test_two_stages_of_one_session_are_compared(sessions):
    done = thunder("diff", "--stages", "a:0", "b:0", cwd=sessions)
    assert done.returncode == 1 and "  + t2 = prims.sin(t1)" in done.stdout
    done = thunder("diff", "--stages", "a:0", "a:7", cwd=sessions)
    assert done.returncode == 2 and "has no stage '7'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a"], "there is no session here yet"),
        ([], "there are not two sessions here to compare"),
        (["a", "c"], "there is no session c"),
        (["--against", "c"], "c holds no session yet"),
        (["a", "b", "--allow", "everything"], "identical, cosmetic, kernel, structural"),
        (["a", "b", "--format", "xml"], "Choose text, markdown, json"),
    ],
)
def test_a_mistake_is_a_usage_error_with_the_way_out(sessions, arguments, said):
    done = thunder("diff", *arguments, cwd=sessions)
    assert done.returncode == 2 and said in done.stderr


DATA = "computation/00-acquired.json"


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("index.json", '"version": 2', '"version": 1', "written by an older thunder"),
        ("index.json", '"version": 2', '"version": 3', "written by a newer thunder"),
        ("index.json", '"format": "thunder session"', '"format": "another"', "is not the index of a session"),
        ("index.json", '"order"', '"orders"', "is damaged"),
        (DATA, '"operations"', '"operation"', "is damaged"),
        (DATA, '"depth": 0', '"depth": 5', "is at depth 5, in nothing"),
        (DATA, '"depth": 0', '"depth": "x"', "is damaged"),
        (DATA, '[{"value": "t1"}]', '[{"value": "gone"}]', "uses gone, which nothing before it computes"),
        (DATA, '"inputs": ["t1"]', '"inputs": null', "is damaged"),
        (DATA, '"returns": [{"value": "t3"}]', '"returns": ' + "[" * 10000 + "]" * 10000, "is damaged"),
        (DATA, "}", "", "is damaged"),
    ],
)
def test_a_broken_session_is_a_clear_error(sessions, file, old, new, said):
    path = sessions / "b" / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    done = thunder("diff", "a", "b", cwd=sessions)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_names_in_any_script_and_with_spaces_are_matched(sessions):
    session.write(chain(4, names="größe {} \x1b|`"), "c", sessions / "ein Ordner")
    done = thunder("diff", "a", "ein Ordner", cwd=sessions)
    assert done.returncode == 0 and done.stdout.startswith("cosmetic")


def test_a_hundred_thousand_operations_are_compared(sessions):
    from thunder_cli.diff.sessions import compare

    (found,) = compare(chain(100_000), chain(100_000, at=50_000)).sections
    (difference,) = found.differences
    assert difference.before == "t50000 = prims.cos(t49999)" and difference.source.startswith("p.py:50001:")


def test_the_same_program_traced_elsewhere_is_identical(traced, tmp_path):
    """In another process and directory, by an absolute path."""
    directory, _ = traced
    shutil.copy(directory / "quickstart.py", tmp_path)
    assert thunder("trace", "quickstart.py:foo", "--out", "again", cwd=tmp_path).returncode == 0
    first = str(directory / ".thunder" / "sessions" / "quickstart-foo-1")
    done = thunder("diff", first, "again", "--allow", "identical", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("identical   prologue/0 acquired, computation (4 stages), nvFusion0\n")


def test_every_python_and_torch_gives_the_golden_session(traced):
    """Made once on Python 3.12 and torch 2.10 with nvFuser; kernels are compared where there are any."""
    directory, _ = traced
    done = thunder("diff", "--against", str(GOLDEN), "--allow", "kernel", cwd=directory)
    assert done.returncode == 0, done.stdout
    compared = json.loads(thunder("diff", "--against", str(GOLDEN), "--json", cwd=directory).stdout)
    assert {s["change"] for s in compared["sections"] if not s["name"].startswith("nvFusion")} == {"identical"}
