"""Whether a traced call returned what eager does. Runs in the worker."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch

from thunder.core.pytree import tree_flatten


@contextmanager
def same_randomness() -> Iterator[None]:
    """Every random number generator is afterwards as it was before."""
    states = random.getstate(), numpy.random.get_state(), torch.random.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    try:
        yield
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])
        torch.random.set_rng_state(states[2])
        if cuda:
            torch.cuda.set_rng_state_all(cuda)


def compare(result: Any, eager: Any) -> tuple[bool, str]:
    """Whether they are the same, and a few words that say how far."""
    mine, structure = tree_flatten(result)
    theirs, eager_structure = tree_flatten(eager)
    if structure != eager_structure:
        return False, f"NOT eager's result: its structure is {structure}, eager's is {eager_structure}"
    largest = 0.0
    for i, (x, y) in enumerate(zip(mine, theirs)):
        where = f" (output {i})" if len(mine) > 1 else ""
        if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
            if type(x) is not type(y) or not (x is y or bool(x == y)):
                return False, f"NOT equal to eager: {x!r} instead of {y!r}{where}"
            continue
        try:
            torch.testing.assert_close(x.detach(), y.detach(), equal_nan=True)
        except AssertionError as error:
            return False, f"NOT equal to eager{where}: " + " ".join(str(error).split())
        largest = max(largest, largest_difference(x.detach(), y.detach()))
    return (
        True,
        "equal to eager" if largest == 0 else f"equal to eager within tolerance (largest difference {largest:.1e})",
    )


def largest_difference(x: torch.Tensor, y: torch.Tensor) -> float:
    """The largest absolute difference of two tensors that are close; NaN and infinity in both count as equal."""
    if x.numel() == 0 or x.dtype is torch.bool:
        return 0.0
    kind = torch.complex128 if x.is_complex() else torch.float64
    x, y = x.to("cpu", kind), y.to("cpu", kind)
    return float(torch.where(x == y, 0.0, (x - y).abs()).nan_to_num(0.0).max())
