"""Fusions of a program whose sizes are symbolic: one trace, translated for the sizes that come."""

import torch

import thunder
from thunder.examine import get_fusions


def program(x, y, bias):
    a = (x * y + bias).relu()
    return torch.softmax((a - a.mean(1, keepdim=True)) * x.shape[0], -1) + torch.arange(x.shape[1], device=x.device)


def test_a_fusion_of_symbolic_sizes_is_that_of_constants():
    jitted = thunder.jit(program, cache="symbolic values")
    with torch.no_grad():
        for n, m in ((4, 6), (5, 6), (8, 3), (4, 6)):
            args = [torch.randn(shape, device="cuda") for shape in ((n, m), (n, m), (m,))]
            torch.testing.assert_close(jitted(*args), program(*args))
            constant = thunder.jit(program)
            constant(*args)
            ((_, ours),) = get_fusions(thunder.last_traces(jitted)[-1])
            ((_, theirs),) = get_fusions(thunder.last_traces(constant)[-1])
            assert str(ours.last_used) == str(theirs.last_used)
    assert thunder.cache_misses(jitted) == 1
