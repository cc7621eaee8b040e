"""Fusions as a user of `thunder.jit` meets them: what each kept of its last call."""

import pytest
import torch

import thunder
from thunder.examine import get_fusions


def program(a, b):
    return (a + b) * b


@pytest.mark.parametrize("options", [{}, {"nv_store_fusion_inputs": True}])
def test_a_fusion_keeps_the_inputs_of_its_last_call_when_asked(options):
    jitted = thunder.jit(program, **options)
    for value in (1.0, 2.0):
        inputs = torch.full((2, 3), value, device="cuda"), torch.ones(2, 3, device="cuda")
        jitted(*inputs)
    assert thunder.cache_hits(jitted) == 1
    ((_, wrapper),) = get_fusions(thunder.last_traces(jitted)[-1])
    stored = wrapper.last_used.stored_inputs
    if options:
        assert [x.tolist() for x in stored] == [x.tolist() for x in inputs]
    else:
        assert stored is None
