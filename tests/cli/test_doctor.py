"""`thunder doctor`: what is there, what is not, and what to do about it."""

import json

from running_thunder import HAS_NVFUSER, SOURCE


def test_doctor_names_what_is_there_and_mends_what_is_not(run):
    done = run("doctor", "--json")
    findings = {finding["what"]: finding for finding in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0, done.stdout + done.stderr
    assert findings["torch"]["good"] and findings["device"]["good"]
    assert findings["nvFuser"]["good"] is (True if HAS_NVFUSER else None)
    assert findings["nvFuser"]["mend"] == "" if HAS_NVFUSER else "pip install" in findings["nvFuser"]["mend"]
    assert findings["backend"]["found"].partition(":")[0] in ("native", "virtual", "recorded")


def test_doctor_says_no_where_torch_does_not_work(run, tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('libbroken.so: cannot open')")
    (tmp_path / "torch" / "version.py").write_text("cuda = None")
    done = run("doctor", PYTHONPATH=f"{tmp_path}:{SOURCE}")
    assert done.returncode == 1
    assert "libbroken.so" in done.stdout and "pip install --force-reinstall torch" in done.stdout
