"""Random programs, jitted, show the results and leave the state that they do plainly, call after call.

RANDOM_PROGRAMS=2000 pytest tests/test_properties.py tries as many new ones.
"""

import os
import warnings

import pytest
from hypothesis import HealthCheck, given, note, settings
from random_programs import HEAD, programs
from worlds import run_world

COUNT = os.environ.get("RANDOM_PROGRAMS")


@pytest.mark.parametrize("cache", ["constant values", "symbolic values"])
@settings(
    max_examples=int(COUNT or 15),
    derandomize=COUNT is None,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(made=programs())
def test_random_programs_are_as_plain_ones(cache, made):
    program, steps = made
    note(program.removeprefix(HEAD) + "\n" + "\n".join(steps))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = run_world(program, steps, jitted=False)
        found, _ = run_world(program, steps, jitted=True, cache=cache)
    assert found == expected
