"""Runs each file of on_device/ as tests of their own in a process on the virtual device."""

from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parent / "on_device").glob("test_*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem.removeprefix("test_"))
def test_on_the_virtual_device(virtual, file):
    done = virtual("--devices", "2", "-m", "pytest", str(file), "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
