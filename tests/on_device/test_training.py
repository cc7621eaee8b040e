"""Training on the device: forward and backward are fused, and 50 steps stay with eager."""

import copy

import pytest
import torch
import torch.nn.functional as F
from fifty_steps import MODELS, OPTIMIZERS, assert_fifty_steps_stay_with_eager
from torch import nn

import thunder
import thunder.examine
import thunder.transforms


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("build", MODELS)
def test_fifty_steps_stay_with_eager(build, optimizer):
    jitted = assert_fifty_steps_stay_with_eager(build, optimizer, "cuda")
    for traces in (thunder.last_traces(jitted), thunder.last_backward_traces(jitted)):
        assert thunder.examine.get_fusions(traces[-1])


@pytest.mark.parametrize("as_transform", [False, True])
def test_steps_in_half_precision_with_a_gradient_scaler_are_near_eagers(as_transform):
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)).cuda()
    model, x = copy.deepcopy(plain), torch.randn(16, 8, device="cuda")
    transforms = [thunder.transforms.autocast(torch.float16)] if as_transform else []
    jitted, found = thunder.jit(model, transforms=transforms), []
    for m, call in ((plain, plain), (model, jitted)):
        scaler, losses = torch.amp.GradScaler("cuda", init_scale=2.0**10), []
        optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
        for factor in (1.0, 1.0, float("inf"), 1.0, 1.0):
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.float16, enabled=call is plain or not as_transform):
                out = call(factor * x)
                loss = F.mse_loss(out.float(), x[:, :4])
            assert out.dtype is torch.float16
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses += [loss.detach(), torch.tensor(scaler.get_scale())]
        found.append(losses)
    torch.testing.assert_close(found[1], found[0], rtol=1e-2, atol=1e-3, equal_nan=True)
    assert found[0][5] == 2.0**9 and thunder.compile_stats(jitted).plain is None
