"""Gradients of torch's operator database are eager's: a fixed part of the samples. `make opdb-grad` checks them all."""

import pytest
import torch
from gradient_database import DIFFERENTIABLE, check, full_name
from torch.testing._internal.opinfo.core import OpInfo

import thunder

SAMPLES = 1
GRADCHECKED = ("softmax", "nn.functional.layer_norm", "nn.functional.gelu", "matmul", "var", "pow", "amax", "norm",
               "nn.functional.conv2d", "nn.functional.cross_entropy", "gather", "cumsum", "clamp", "index_put",
               "nn.functional.scaled_dot_product_attention", "nn.functional.batch_norm")  # fmt: skip


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=full_name)
def test_gradients_are_eagers(op: OpInfo):
    assert check(op, SAMPLES).failures == []


@pytest.mark.parametrize("op", [op for op in DIFFERENTIABLE if full_name(op) in GRADCHECKED], ids=full_name)
def test_gradients_are_those_of_finite_differences(op: OpInfo):
    torch.manual_seed(0)
    samples = op.sample_inputs("cpu", torch.float64, requires_grad=True)
    given = [s for s in samples if s.input.requires_grad and s.input.numel() > 0]
    sample = min(given, key=lambda s: s.input.numel())
    jitted = thunder.jit(op.op)

    def of_input(x):
        torch.manual_seed(0)
        out = jitted(x, *sample.args, **sample.kwargs)
        return out[0] if isinstance(out, tuple) else out

    x = sample.input.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(of_input, (x,), fast_mode=True)
