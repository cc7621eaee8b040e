"""What a call costs once everything is compiled."""

import torch

import thunder
from benchmarks.measure import Row, best_seconds


def four_operations(a, b):
    c = a + b
    d = a + b
    e = a * a
    f = d * b
    return c, e, f


def compare(what: str, program, args: tuple, number: int) -> None:
    compiled = torch.compile(program, backend="eager")
    jitted = thunder.jit(program)
    compiled(*args), jitted(*args)
    runs = (lambda: jitted(*args), lambda: compiled(*args), lambda: program(*args))
    ours, theirs, eager = best_seconds(*runs, repeats=15, number=number)
    print(Row(what, ours, 'torch.compile(backend="eager")', theirs, 0.7))
    print(Row("", ours, "eager", eager, float("inf")))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        compare("two 2x2 tensors, 4 operations", four_operations, (torch.ones(2, 2), torch.ones(2, 2)), 2000)
        layers = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(75)])
        compare("75 small Linear layers, 150 parameters", layers, (torch.ones(2, 4),), 100)
