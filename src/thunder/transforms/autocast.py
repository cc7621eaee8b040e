"""Autocast as a transform: the casts that torch.autocast makes, in the trace of a program that does not ask for it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from thunder.core.trace import Trace


class autocast:
    """The transform that has a program run as under `torch.autocast` with `dtype`, on the CPU and on CUDA.

    The program is acquired under autocast, so that its trace has the casts, eager's, from the first stage on; a cast
    that the program makes itself is one of them even where it did nothing before, and a program that asks whether
    autocast is on is told so.

    Args:
        dtype: torch.bfloat16 or torch.float16.

    Raises:
        ValueError: for another dtype.
    """

    def __init__(self, dtype: torch.dtype = torch.bfloat16):
        if dtype not in (torch.bfloat16, torch.float16):
            raise ValueError(f"autocast takes torch.bfloat16 or torch.float16, not {dtype}")
        self.dtype = dtype

    @contextmanager
    def around_program(self) -> Iterator[None]:
        """Autocast is on inside, for each kind of device there is."""
        kinds = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
        with ExitStack() as stack:
            for kind in kinds:
                stack.enter_context(torch.autocast(kind, dtype=self.dtype))
            yield

    def __call__(self, trace: Trace) -> Trace:
        return trace
