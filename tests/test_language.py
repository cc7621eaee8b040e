"""Python's language inside of jitted functions: CPython runs it, so that all of it means what it means.

`language.txt` has the programs, in the form of the tables of `test_guards.py`.
"""

from pathlib import Path

import pytest
from worlds import compare_worlds, read_rows

ROWS = read_rows(Path(__file__).with_name("language.txt"))


@pytest.mark.parametrize("name", ROWS)
def test_jitted_is_plain(name):
    program, calls, plainly = ROWS[name]
    compare_worlds(program, calls, plainly=plainly)
