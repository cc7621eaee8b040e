"""Runs the real command in a process of its own."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import thunder_cli

SOURCE = str(Path(thunder_cli.__file__).parents[1])
HAS_NVFUSER = find_spec("nvfuser_direct") is not None


def environment(**more: str) -> dict[str, str]:
    """The environment of a process that finds thunder, and neither wants nor refuses colour."""
    path = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))
    variables = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")}
    return {**variables, "PYTHONPATH": path, **more}


def thunder(*arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess:
    """Run the command in `cwd`, without a terminal."""
    command = [sys.executable, "-m", "thunder_cli", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=120, check=False
    )
