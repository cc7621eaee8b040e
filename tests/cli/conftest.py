"""What the tests of the command share: an empty directory to run it in, and one program that has been traced."""

import pytest
from running_thunder import thunder

QUICKSTART = """\
import torch


def foo(a, b):
    c = a + b
    d = a + b
    e = a * a
    f = d * b
    return c, f


if __name__ == "__main__":
    a = torch.full((2, 2), 1.0, device="cuda")
    b = torch.full((2, 2), 3.0, device="cuda")
    print("sum", foo(a, b)[0].sum().item())
"""


@pytest.fixture
def run(tmp_path):
    """Run the command in an empty directory: `run("trace", ...)`."""
    return lambda *arguments, **environment: thunder(*arguments, cwd=tmp_path, **environment)


@pytest.fixture(scope="session")
def traced(tmp_path_factory):
    """A directory in which the quickstart has been traced once, and what that printed."""
    directory = tmp_path_factory.mktemp("traced")
    (directory / "quickstart.py").write_text(QUICKSTART)
    done = thunder("trace", "quickstart.py:foo", cwd=directory)
    assert done.returncode == 0, done.stdout + done.stderr
    return directory, done.stdout
