"""What the first call costs: the 12-layer GPT under no_grad, against torch.compile in the same process."""

import importlib.util
import time
from pathlib import Path

import torch

import thunder
from benchmarks.measure import Row


def load_gpt():
    """The class of fixtures/gpt.py, without running the script's own model on a CUDA device."""
    path = Path(__file__).parent.parent / "fixtures" / "gpt.py"
    source = path.read_text().partition("\ntorch.manual_seed")[0]
    spec = importlib.util.spec_from_loader("gpt", loader=None)
    module = importlib.util.module_from_spec(spec)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module.GPT


def first_call(wrap) -> float:
    """Seconds of the first call of a new model under `wrap`."""
    torch.manual_seed(0)
    model = load_gpt()()
    tokens = torch.randint(0, 128, (2, 32))
    with torch.no_grad():
        call = wrap(model)
        start = time.perf_counter()
        call(tokens)
        return time.perf_counter() - start


if __name__ == "__main__":
    eager = first_call(lambda model: model)
    # Each is warmed up by a small program, so that neither pays for imports.
    with torch.no_grad():
        torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(2))
        thunder.jit(lambda x: x + 1)(torch.ones(2))
    ours = first_call(thunder.jit)
    theirs = first_call(lambda model: torch.compile(model, backend="aot_eager"))
    print(Row("12-layer GPT, forward, no_grad", ours, 'torch.compile(backend="aot_eager")', theirs, 1.0))
    print(Row("", ours, "eager", eager, float("inf")))
