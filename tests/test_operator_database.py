"""Every operation of torch's operator database, compiled, does what eager does: a fixed part of the samples.

`make opdb` checks them all.
"""

import random
from collections.abc import Iterator

import pytest
import torch
from operator_database import DATABASE, NOT_REFUSED, check, check_errors, full_name
from torch.testing._internal.opinfo.core import OpInfo

SAMPLES = 2


def cases() -> Iterator:
    """Each operation with f32 and another dtype, or with two others."""
    for op in DATABASE:
        others = sorted(op.dtypes - {torch.float32}, key=str)
        random.Random(full_name(op)).shuffle(others)
        dtypes = [torch.float32] * (torch.float32 in op.dtypes) + others
        yield pytest.param(op, dtypes[:2], id=full_name(op))


@pytest.mark.parametrize("op, dtypes", list(cases()))
def test_as_eager(op: OpInfo, dtypes: list[torch.dtype]):
    outcomes = [check(op, dtype, SAMPLES) for dtype in dtypes]
    assert [failure for o in outcomes for failure in o.failures] == []


def test_what_eager_refuses_is_refused_with_the_same_exception():
    refusing = [op for op in DATABASE if op.error_inputs_func and op.name not in NOT_REFUSED and op.name != "__rdiv__"]
    outcomes = [check_errors(op) for op in refusing]
    assert [failure for o in outcomes for failure in o.failures] == []
    assert sum(o.samples for o in outcomes) > 500
