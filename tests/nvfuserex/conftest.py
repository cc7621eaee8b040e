"""What the tests of the nvFuser executor share: a report on all regions from one process on the virtual device."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from thunder import virtual_cuda
from thunder.executors.nvfuserex.version import installed

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))


# A child process must find thunder too, however the tests were started.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(virtual_cuda.__file__).parents[2])}


def on_virtual_device(script: Path, *arguments: str) -> str:
    """Run a Python script on a virtual H100; gives its output."""
    command = [sys.executable, "-m", "thunder.virtual_cuda", "--chip", "h100", str(script), *arguments]
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=ENVIRONMENT)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """For every region what nvFuser made of it."""
    if not installed():
        pytest.skip("nvFuser is not installed")
    directory = tmp_path_factory.mktemp("kernels")
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), "")
    on_virtual_device(HERE / "compile_regions.py", str(directory / "report.json"), str(directory), compiler)
    return json.loads((directory / "report.json").read_text())
