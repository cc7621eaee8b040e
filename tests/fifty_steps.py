"""Fifty steps of training, jitted and in eager: the models, the optimizers, and what stays the same."""

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import nn

import thunder

Built = tuple[nn.Module, torch.Tensor, torch.Tensor]  # the model, what it takes, the classes it should tell


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        # No bias: that of the keys cancels, so Adam would make steps of the rounding errors that its gradient is.
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48, bias=False), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 2, 8)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


def gpt() -> Built:
    model = nn.Sequential(nn.Embedding(11, 16), Block(), Block(), nn.Linear(16, 11))
    words = torch.randint(0, 11, (4, 7))
    return model, words[:, :-1], words[:, 1:]


def convolutional() -> Built:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 4),
    )  # fmt: skip
    return model, torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])


MODELS = (gpt, convolutional)
OPTIMIZERS: dict[str, Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.3, foreach=False),
    "SGD with momentum, foreach": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, foreach=True),
    "AdamW, foreach": lambda p: torch.optim.AdamW(p, lr=3e-3, foreach=True),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, lr=3e-3, fused=True),
}


def assert_fifty_steps_stay_with_eager(build: Callable[[], Built], optimizer: str, device: str) -> nn.Module:
    """Losses, parameters and buffers are eager's within tolerance, and the model learns. Gives the jitted model."""
    (plain, _, expected), (model, jitted, losses) = (_train(build, optimizer, device, jit) for jit in (False, True))
    torch.testing.assert_close(losses, expected, rtol=1e-3, atol=1e-4)
    assert losses[-1] < losses[0] / 2
    for a, b in zip((*model.parameters(), *model.buffers()), (*plain.parameters(), *plain.buffers()), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)
    assert thunder.compile_stats(jitted).plain is None and thunder.cache_misses(jitted) == 1
    return jitted


def _train(
    build: Callable[[], Built], optimizer: str, device: str, jit: bool
) -> tuple[nn.Module, nn.Module, torch.Tensor]:
    """With a schedule of the learning rate, clipped gradients, and gradients set to zero and to None in turns."""
    torch.manual_seed(0)
    model, x, classes = build()
    model, x, classes = model.to(device), x.to(device), classes.to(device)
    call = thunder.jit(model) if jit else model
    chosen = OPTIMIZERS[optimizer](model.parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(chosen, 50)
    losses = []
    for step in range(50):
        chosen.zero_grad(set_to_none=step % 2 == 0)
        losses.append(F.cross_entropy(call(x).flatten(0, -2), classes.flatten()))
        losses[-1].backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        chosen.step()
        schedule.step()
    return model, call, torch.stack(losses).detach()
