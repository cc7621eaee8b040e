"""Calls that layers of torch.nn make and that are no single operation.

They scale weights in place before they read them, ask whether a fast path is open, or call a function of the program.
"""

from collections.abc import Callable
from typing import Any

import torch

from thunder.core.errors import NotRepresentable
from thunder.torch.distances import triplet_margin_with_distance_loss
from thunder.torch.language import torch_functions


def embedding(tracer: Any, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A lookup; torch first scales rows that are too long, in place and out of autograd's sight."""
    if (longest := kwargs.get("max_norm")) is not None:
        with torch.no_grad():
            tracer.record(torch.embedding_renorm_, (args[1], args[0], longest, kwargs.get("norm_type", 2.0)), {})
        kwargs = {**kwargs, "max_norm": None}
    symbol = torch_functions.get(func)
    return tracer.opaque(func, args, kwargs) if symbol is None else tracer.call(symbol, func, args, kwargs)


def left_aligned(tracer: Any, func: Callable, args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether what a mask holds for stands in front in each row: then an encoder makes a nested tensor of it."""
    mask = args[1]
    parts = [tracer.record(torch.narrow, (mask, 1, start, mask.shape[1] - 1), {}) for start in (1, 0)]
    fits = tracer.record(torch.all, (tracer.record(torch.le, tuple(parts), {}),), {})
    if tracer.value(torch.Tensor.__bool__, (fits,), {}) and not torch.is_grad_enabled():
        raise NotRepresentable(
            "A transformer encoder puts its input into a nested tensor, and traces hold dense tensors.",
            "Make the encoder with enable_nested_tensor=False; the outputs that the mask hides are others then.",
            tracer.site().source,
        )
    return False


def triplet_loss(tracer: Any, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """A loss that calls a function of the program: it is traced, not the call."""
    with tracer.program_runs():
        return triplet_margin_with_distance_loss(*args, **kwargs)


HANDLERS: dict[Callable, Callable[..., Any]] = {
    torch.nn.functional.embedding: embedding,
    torch.nn.functional.embedding_bag: embedding,
    torch._nested_tensor_from_mask_left_aligned: left_aligned,
    torch.nn.functional.triplet_margin_with_distance_loss: triplet_loss,
}
