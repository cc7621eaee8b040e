"""Every operation that torch's operator database has samples of gives what eager gives, by torch and by primitives."""

import random
from collections.abc import Iterator

import pytest
import torch
from recorded import assert_as_eager
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo

from thunder.executors import torchex  # noqa: F401
from thunder.torch.language import torch_functions

# Random values, uninitialized values, and an operation that returns more than torch's (tested by itself).
NOT_COMPARABLE = ("empty", "rand", "new_empty", "nn.functional.batch_norm", "nn.functional.dropout")
SAMPLES = 2
TOLERANCE = {torch.bfloat16: {"rtol": 1.6e-2, "atol": 3e-2}}


def cases() -> Iterator:
    for op in op_db:
        if op.op not in torch_functions or op.name.startswith(NOT_COMPARABLE):
            continue
        dtypes = [d for d in (torch.float32, torch.bfloat16, torch.int64, torch.bool) if d in op.dtypes]
        for dtype in dtypes[:2]:
            variant = f"-{op.variant_test_name}" if op.variant_test_name else ""
            yield pytest.param(op, dtype, id=f"{op.name}{variant}-{str(dtype).removeprefix('torch.')}")


def test_the_database_covers_at_least_a_hundred_operations():
    assert len({case.values[0].name for case in cases()}) >= 100


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op, dtype", list(cases()))
def test_as_eager(op: OpInfo, dtype: torch.dtype):
    torch.manual_seed(0)
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
    random.Random(op.name).shuffle(samples)
    symbol, compared = torch_functions[op.op], 0
    for sample in samples:
        args = (sample.input, *sample.args)
        try:
            with torch.no_grad():
                op.op(*args, **sample.kwargs)
        except (RuntimeError, ValueError, IndexError, TypeError):
            continue
        try:
            assert_as_eager(symbol, op.op, *args, tolerance=TOLERANCE.get(dtype), **sample.kwargs)
        except NotImplementedError:  # recorded as an opaque call
            continue
        compared += 1
        if compared == SAMPLES:
            break
