"""Training on the device: forward and backward are fused, and 50 steps stay with eager."""

import copy

import pytest
import torch
import torch.nn.functional as F

import thunder
import thunder.examine


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(16), torch.nn.Linear(16, 48), torch.nn.Linear(16, 16)
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


def gpt():
    model = torch.nn.Sequential(torch.nn.Embedding(11, 16), Block(), torch.nn.Linear(16, 11))
    return model, torch.randint(0, 11, (4, 6))


def convolutional():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 11)
    )
    return model, torch.randn(4, 3, 8, 8)


@pytest.mark.parametrize("build", [gpt, convolutional])
def test_fifty_steps_stay_with_eager(build):
    torch.manual_seed(0)
    plain, x = build()
    plain, x = plain.cuda(), x.cuda()
    model = copy.deepcopy(plain)
    target = torch.arange(4, device="cuda") if build is convolutional else torch.arange(24, device="cuda") % 11
    jitted, found = thunder.jit(model), []
    for m, call in ((plain, plain), (model, jitted)):
        optimizer, losses = torch.optim.AdamW(m.parameters(), lr=3e-3), []
        for _ in range(50):
            optimizer.zero_grad()
            losses.append(F.cross_entropy(call(x).reshape(-1, 11), target))
            losses[-1].backward()
            optimizer.step()
        found.append(torch.stack(losses).detach())
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-4)
    assert found[0][-1] < found[0][0] / 2
    for traces in (thunder.last_traces(jitted), thunder.last_backward_traces(jitted)):
        assert thunder.examine.get_fusions(traces[-1])
