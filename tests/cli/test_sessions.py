"""Sessions on disk: whole or not there, old and broken ones are errors with a way out. No process, no torch."""

import json
import os
import resource
import signal
from contextlib import contextmanager

import pytest

from thunder_cli import session
from thunder_cli.errors import CommandError
from thunder_cli.events import Failure, Fusion, Inputs, Output, Result, Stage, Started
from thunder_cli.render.part import Part
from thunder_cli.session import Session


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def kept():
    kept = Session(command="thunder trace s.py:f", created=session.now())
    for event in (
        Started("s.py:f", "h100", True, "recorded", {"torch": "2.10"}),
        Inputs({"a": "1"}, "--input"),
        Output("hello"),
        Stage("computation", 0, None, 0.5, "def computation(a):\n"),
        Stage("computation", 1, "Transform for execution", 0.5, "def computation(a): # ünï\n"),
        Fusion("nvFusion0", "computation", ["add"], ["s.py:2"], "definition\n", None, "repro\n", missing="no nvFuser"),
        Fusion("nvFusion0", "backward", ["mul"], ["s.py:3"], "other\n", "kernel\n", "repro 2\n"),
        Result("3", True, "equal to eager"),
        Failure("program", "it broke"),
    ):
        kept.add(event)
    return kept


def test_what_is_read_is_what_was_written(kept):
    path = session.write(kept, "s-f", None)
    assert str(path) == ".thunder/sessions/s-f-1"
    assert session.read(path) == kept
    assert (path / "computation" / "01-transform-for-execution.py").read_text() == kept.stages[1].text
    assert (path / "fusions" / "backward" / "nvFusion0" / "kernel.cu").read_text() == "kernel\n"
    assert not (path / "fusions" / "nvFusion0" / "kernel.cu").exists()


def test_each_session_gets_its_own_number_and_the_last_is_found(kept):
    paths = [session.write(kept, "s-f", None) for _ in range(3)]
    assert [path.name for path in paths] == ["s-f-1", "s-f-2", "s-f-3"]
    assert session.find(None) == paths[-1]
    assert session.find("s-f-2") == paths[1] and session.find(str(paths[1])) == paths[1]


def test_of_many_sessions_an_error_lists_the_last(kept):
    for _ in range(12):
        session.write(kept, "many", None)
    with pytest.raises(CommandError, match=r"The last are many-3, .*, many-12; thunder sessions lists all 12\."):
        session.find("none")


def test_a_part_says_what_who_sees_only_it_must_know(kept):
    kept.result = Result("1", False, "NOT equal to eager: 1 instead of 2")
    assert Part(stage="0").remarks(kept) == ["the result is NOT equal to eager: 1 instead of 2"]
    assert Part().remarks(kept) == []


def test_a_fusion_name_that_repeats_must_say_which(kept):
    assert kept.fusion("backward/nvFusion0").kernel == "kernel\n"
    assert kept.fusion("computation/nvFusion0").kernel is None
    with pytest.raises(CommandError, match="computation/nvFusion0 or backward/nvFusion0"):
        kept.fusion("nvFusion0")
    with pytest.raises(CommandError, match="has no fusion nvFusion9"):
        kept.fusion("nvFusion9")


def test_out_replaces_a_session_and_nothing_else(kept, tmp_path):
    out = tmp_path / "golden"
    session.check_out(out)
    assert session.write(kept, "s-f", out) == out
    kept.stages.pop()
    kept.order.remove("stage")
    session.check_out(out)
    session.write(kept, "s-f", out)
    assert session.read(out) == kept
    assert sorted(p.name for p in tmp_path.iterdir()) == ["golden"]
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").touch()
    with pytest.raises(CommandError, match="is no session"):
        session.check_out(tmp_path / "home")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"version": 2', '"version": 3'), "newer thunder"),
        (lambda text: text.replace('"version": 2', '"version": 1'), "an older thunder"),
        (lambda text: text[: len(text) // 2], "damaged"),
        (lambda text: "", "damaged"),
        (lambda text: "[1, 2]", "damaged"),
        (lambda text: "{}", "damaged"),
        (lambda text: text.replace('"trace": "computation"', '"tarce": "computation"'), "damaged"),
        (lambda text: text.replace("computation/00-acquired.py", "../../../../secret"), "outside of the session"),
        (lambda text: text.replace("computation/00-acquired.py", "computation/gone.py"), "gone.json"),
    ],
)
def test_a_session_that_is_newer_or_broken_is_a_clear_error(kept, change, said):
    path = session.write(kept, "s-f", None)
    index = path / "index.json"
    index.write_text(change(index.read_text()))
    with pytest.raises(CommandError, match=said):
        session.read(path)


@contextmanager
def full_disk():
    """Files cannot grow beyond 100 bytes inside; the tests' own report is one, so nothing else may be."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_on_a_full_disk_nothing_is_left_behind(kept, tmp_path):
    with pytest.raises(CommandError, match="was not written to"), full_disk():
        session.write(kept, "s-f", None)
    assert list((tmp_path / ".thunder" / "sessions").iterdir()) == []


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_in_a_read_only_directory_the_error_says_where_to_write(kept, tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(CommandError, match="--out DIR"):
        session.write(kept, "s-f", None)


def test_an_index_is_complete_json_without_the_texts(kept):
    index = json.loads((session.write(kept, "s-f", None) / "index.json").read_text())
    assert index["format"] == "thunder session" and index["version"] == 2
    assert index["stages"][0]["text"] == "computation/00-acquired.py"
    assert index["output"] == ["hello"]
