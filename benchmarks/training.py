"""What training costs: the 12-layer GPT, forward and backward, against eager and torch.compile in the same process.

The first call, a steady step, and the bytes that are saved for the backward.
"""

import copy
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

import thunder
from benchmarks.first_call import load_gpt
from benchmarks.measure import Row, best_seconds

TOKENS = torch.randint(0, 128, (2, 32), generator=torch.Generator().manual_seed(0))


def loss_of(call: Callable) -> torch.Tensor:
    return F.cross_entropy(call(TOKENS).flatten(0, 1), TOKENS.flatten())


def step(model: torch.nn.Module, call: Callable) -> None:
    model.zero_grad()
    loss_of(call).backward()


def saved_bytes(model: torch.nn.Module, call: Callable) -> int:
    """How many bytes the graph of a loss keeps alive, parameters and buffers aside."""
    kept: dict[int, int] = {}
    own = {x.untyped_storage().data_ptr() for x in (*model.parameters(), *model.buffers(), TOKENS)}

    def note(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        loss = loss_of(call)  # alive, so that no two saved tensors have one address
    loss.detach()
    return sum(kept.values())


if __name__ == "__main__":
    torch.manual_seed(0)
    models = [load_gpt()() for _ in range(1)]
    models += [copy.deepcopy(models[0]) for _ in range(2)]
    # Each is warmed up by a small program, so that neither pays for imports.
    x = torch.ones(2, requires_grad=True)
    torch.compile(lambda x: x + 1, backend="aot_eager")(x).sum().backward()
    thunder.jit(lambda x: x + 1)(x).sum().backward()
    eager, ours, theirs = models[0], thunder.jit(models[1]), torch.compile(models[2], backend="aot_eager")
    first = []
    for model, call in zip(models, (eager, ours, theirs)):
        start = time.perf_counter()
        step(model, call)
        first.append(time.perf_counter() - start)
    print(Row("12-layer GPT, first step", first[1], 'torch.compile(backend="aot_eager")', first[2], 1.0))
    steps = [lambda m=m, c=c: step(m, c) for m, c in zip(models, (eager, ours, theirs))]
    steady = best_seconds(*steps, repeats=15, number=2)
    print(Row("12-layer GPT, steady step", steady[1], "eager", steady[0], 1.1))
    print(Row("", steady[1], 'torch.compile(backend="aot_eager")', steady[2], 1.1))
    kept = [saved_bytes(model, call) for model, call in zip(models, (eager, ours, theirs))]
    for against, other in zip(("eager", 'torch.compile(backend="aot_eager")'), (kept[0], kept[2])):
        ratio = kept[1] / other
        verdict = "ok" if ratio <= 1 else "OVER"
        print(f"bytes saved: {kept[1]:,} against {other:,} of {against}: {ratio:.2f} (budget 1.00) {verdict}")
