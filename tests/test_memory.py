"""`examine.memory` tells what is saved and what is alive, as torch's own hooks see it."""

import pytest
import torch
import torch.nn.functional as F

import thunder
import thunder.examine


def program(x, w):
    return F.relu(F.layer_norm(x @ w, (64,))).t().exp().sum()


def test_saved_bytes_are_those_that_torch_saves():
    jitted, kept = thunder.jit(program), {}
    x, w = (torch.randn(64, 64, requires_grad=True) for _ in range(2))

    def pack(t):
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss = jitted(x, w)
    own = x.untyped_storage().data_ptr(), w.untyped_storage().data_ptr()
    memory = thunder.examine.memory(jitted)
    assert memory.saved_bytes == sum(n for address, n in kept.items() if address not in own) > 0
    assert memory.input_bytes == 2 * 64 * 64 * 4
    assert loss.requires_grad


def test_the_peak_is_told_by_line():
    jitted = thunder.jit(lambda x: ((x + 1) * 2).sum())
    jitted(torch.ones(100))
    memory = thunder.examine.memory(jitted)
    assert [line.bytes for line in memory.forward] == [800, 1200, 804]
    assert memory.peak_bytes == 1200 and memory.saved_bytes == 0 and memory.backward == ()
    assert str(memory).splitlines()[0] == "inputs 400, saved for the backward 0, peak 1,200 bytes"
    assert "1,200  t1 = torch.mul(t0)" in str(memory)


def test_there_is_nothing_to_tell_before_a_call():
    with pytest.raises(RuntimeError, match="call the function first"):
        thunder.examine.memory(thunder.jit(program))
