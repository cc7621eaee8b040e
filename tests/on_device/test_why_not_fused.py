"""Why operations are outside of fusions, as the pass that decided it recorded it."""

import re

import pytest
import torch

import thunder
from thunder.core.trace import Event
from thunder.examine import why_not_fused
from thunder.executors import torchex
from thunder.extend import get_default_executors

A = torch.rand(4, 4, device="cuda")


def reasons(program, *args, stage: int = -1, **options) -> dict[str, Event]:
    jitted = thunder.jit(program, **options)
    jitted(*args)
    return {event.operation: event for event in why_not_fused(thunder.last_traces(jitted)[stage])}


def test_an_operation_that_nvfuser_has_not_and_one_of_another_dtype():
    found = reasons(lambda a, n: (a @ a, (n * n).sum(), a + a + 1), A, torch.ones(4, device="cuda").to(torch.uint8))
    assert found["torch.matmul"].reason == "matrix product: torch calls cuBLAS"
    assert found["torch.matmul"].by == "nvfuser"
    assert found["torch.matmul"].source.text.strip().startswith("found = reasons")
    assert found["torch.mul"].reason == "nvFuser does not compute u8"
    assert "torch.add" not in found


def test_an_operation_on_the_cpu():
    found = reasons(lambda a: a * 2 + 1, A.cpu())
    assert found["torch.mul"].reason == "a is on the CPU"


def test_a_region_of_one_operation():
    found = reasons(lambda a: torch.sin(a @ a) @ a, A)
    assert found["torch.sin"].reason == "region of one operation"


def test_an_operation_that_would_make_a_cycle():
    def program(a):
        b = a @ a
        c = torch.sin(b)
        return torch.mul(c, c @ a)

    found = reasons(program, A)
    between = r"fused with what computes \w+ it would make a cycle: matmul must run between them"
    assert re.fullmatch(between, found["torch.sin"].reason)
    assert re.fullmatch(between, found["torch.mul"].reason)


def test_an_operation_that_a_higher_executor_claims():
    found = reasons(lambda a: a * 2 + 1, A, executors=[torchex.ex, *get_default_executors()])
    assert found["torch.mul"].reason == "torch runs it, which is asked before those that fuse"
    assert found["torch.mul"].by == "torch"


def test_no_executor_that_fuses():
    found = reasons(lambda a: a * 2 + 1, A, executors=[torchex.ex])
    assert found["torch.mul"].reason == "none of the executors fuses"


def test_every_operation_outside_of_fusions_has_a_reason_in_the_order_they_run():
    def program(a):
        b = torch.softmax(a @ a, 0)
        b[0] = 1.0
        return b.sort(0), a.cumsum(0)

    jitted = thunder.jit(program)
    jitted(A)
    for trace in thunder.last_traces(jitted)[-2:]:
        outside = [s for s in trace.bound_symbols if not s.symbol.name.startswith(("nvFusion", "python_del"))]
        assert [e.operation for e in why_not_fused(trace)] == [s.symbol.id for s in outside]


def test_a_trace_in_which_nothing_is_decided_is_refused():
    with pytest.raises(ValueError, match="take a later trace"):
        reasons(lambda a: a * 2 + 1, A, stage=0)
    with pytest.raises(TypeError):
        why_not_fused("trace")
