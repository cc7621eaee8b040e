"""Random numbers of a virtual CUDA device: drawn on the host, from the state of the CUDA generator.

The same seed gives the same numbers, saving and restoring the CUDA generator's state repeats them, and the generator of
the host is left as it was.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

_DEFAULT_LOCK = threading.RLock()
_NUMBERS_PER_CALL = 4  # a philox generator's offset moves in multiples of four

# How a CUDA generator becomes one the host's kernels take; a torch without CUDA has generators that are both.
to_host: Callable[[torch.Generator], torch.Generator]


def seeded(generator: torch.Generator) -> torch.Generator:
    """A host generator for one call, seeded by the seed and offset of a CUDA generator, whose offset moves on."""
    offset = generator.get_offset()
    generator.set_offset(offset + _NUMBERS_PER_CALL)
    seed = (generator.initial_seed() + offset * 0x9E3779B97F4A7C15) % (1 << 64)
    return torch.Generator().manual_seed(seed)


to_host = seeded


@contextmanager
def on_host(device: torch.device, kwargs: dict | None) -> Iterator[None]:
    """Make the call that runs inside draw from the device's generator: through `kwargs`, or the host's default."""
    if kwargs is not None:
        kwargs["generator"] = to_host(kwargs.get("generator") or torch.cuda.default_generators[device.index])
        yield
        return
    drawn = to_host(torch.cuda.default_generators[device.index])
    with _DEFAULT_LOCK:
        kept = torch.default_generator.get_state()
        torch.default_generator.set_state(drawn.get_state())
        try:
            yield
            drawn.set_state(torch.default_generator.get_state())
        finally:
            torch.default_generator.set_state(kept)
