"""Running programs on the virtual device from tests: each in a child process, as the device needs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import thunder

SOURCE = str(Path(thunder.__file__).parents[1])


@pytest.fixture
def virtual() -> Callable[..., subprocess.CompletedProcess]:
    """Runs `python -m thunder.virtual_cuda` with the given arguments and returns what came of it."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess:
        environment = {**os.environ, "PYTHONPATH": SOURCE, **variables}
        command = [sys.executable, "-m", "thunder.virtual_cuda", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)

    return run
