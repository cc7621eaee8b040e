"""Whether tracing and the passes are linear in the number of operations."""

import time

import torch

import thunder
from benchmarks.first_call import load_gpt
from benchmarks.measure import Row


def seconds(layers: int) -> float:
    model = load_gpt()(layers=layers)
    tokens = torch.randint(0, 128, (2, 32))
    with torch.no_grad():
        jitted = thunder.jit(model)
        start = time.perf_counter()
        jitted(tokens)
        return time.perf_counter() - start


if __name__ == "__main__":
    seconds(2)
    few, many = min(seconds(4) for _ in range(3)), min(seconds(40) for _ in range(2))
    print(Row("GPT of 40 layers, first call", many, "of 4 layers", few, 12.0))
