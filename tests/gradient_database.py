"""First-order gradients of torch's operator database: `thunder.jit` against eager, one entry with its f64 samples."""

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from gradients import copied, tensors_of
from operator_database import DATABASE, NOT_TRACED, full_name
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

import thunder

SEED = 2026
DIFFERENTIABLE = [op for op in DATABASE if op.supports_autograd and op.name not in NOT_TRACED]


@dataclass
class Outcome:
    """What came of the samples of one entry.

    Attributes:
        samples, passed: how many there were that eager differentiates, and how many had eager's gradients.
        plainly: how many were run plainly, uncompiled.
        failures: a text for each sample that had others.
    """

    samples: int = 0
    passed: int = 0
    plainly: int = 0
    failures: list[str] = field(default_factory=list)


def dtype_of(op: OpInfo) -> torch.dtype | None:
    """The dtype to compare gradients in: float64, or complex128 where an operation takes nothing else."""
    return next((d for d in (torch.float64, torch.complex128, torch.float32) if d in op.dtypes), None)


def check(op: OpInfo, limit: int | None = None) -> Outcome:
    """Compare with eager on the samples for the CPU; with a limit, on as many of them, drawn with a seed."""
    outcome, dtype = Outcome(), dtype_of(op)
    torch.manual_seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=True)) if dtype is not None else []
        if limit is not None:
            random.Random(full_name(op)).shuffle(samples)
        for i, sample in enumerate(samples[:limit]):
            try:
                expected = gradients(op.op, sample)
            except Exception:  # torch refuses the sample, or to differentiate it
                continue
            if not expected[1]:
                continue
            outcome.samples += 1
            jitted = thunder.jit(op.op)
            try:
                assert_same(gradients(jitted, sample), expected)
            except Exception as e:
                outcome.failures.append(f"{full_name(op)} {i}: {type(e).__name__}: {' '.join(str(e).split())[:300]}")
            else:
                outcome.passed += 1
                outcome.plainly += thunder.compile_stats(jitted).plain is not None
    return outcome


Gradients = tuple[list[torch.Tensor], list[torch.Tensor | None], list[bool]]


def gradients(function: Callable, sample: SampleInput) -> Gradients:
    """Outputs, gradients of the inputs, and which outputs require gradients."""
    args, kwargs = copied(((sample.input, *sample.args), sample.kwargs))
    torch.manual_seed(SEED)
    outputs = tensors_of(function(*args, **kwargs))
    inputs = [x for x in tensors_of((args, kwargs)) if x.requires_grad]
    differentiable = [x for x in outputs if x.requires_grad]
    generator = torch.Generator().manual_seed(SEED)
    grads = [torch.rand(x.shape, generator=generator, dtype=torch.float64).to(x.dtype) for x in differentiable]
    found = torch.autograd.grad(differentiable, inputs, grads, allow_unused=True) if differentiable else []
    return [x.detach() for x in outputs], found, [x.requires_grad for x in outputs]


def assert_same(actual: Gradients, expected: Gradients) -> None:
    assert actual[2] == expected[2], f"outputs that require gradients: {actual[2]}, eager: {expected[2]}"
    for a, b in zip((*actual[0], *actual[1]), (*expected[0], *expected[1]), strict=True):
        assert a is not None or b is None, "there is no gradient where eager gives one"
        if a is not None:
            torch.testing.assert_close(a, torch.zeros_like(a) if b is None else b, equal_nan=True, check_stride=False)
