"""The settings of torch that a trace depends on; a trace is reused only where they are equal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd import forward_ad

# What `torch_state` gives, in its order.
STATE_NAMES = (
    "grad mode",
    "inference mode",
    "autocast",
    "the default dtype",
    "the default device",
    "deterministic mode",
    "the number of torch function modes",
    "the number of torch.func transforms",
    "the level of forward-mode differentiation",
)

_are_deterministic = torch.are_deterministic_algorithms_enabled
_default_device = torch._C._get_default_device
_default_dtype = torch.get_default_dtype
_function_modes = torch._C._len_torch_function_stack
_function_transforms = torch._C._functorch.maybe_current_level
_is_any_autocast_enabled = torch._C._is_any_autocast_enabled
_is_grad_enabled = torch.is_grad_enabled
_is_inference_mode_enabled = torch.is_inference_mode_enabled


def torch_state() -> tuple[Any, ...]:
    """What `STATE_NAMES` says."""
    return (
        _is_grad_enabled(),
        _is_inference_mode_enabled(),
        _is_any_autocast_enabled() and autocast_state(),
        _default_dtype(),
        _default_device(),
        _are_deterministic(),
        _function_modes(),
        _function_transforms(),
        forward_ad._current_level,
    )


def is_inside_torch_transform() -> bool:
    """Whether torch.func or forward-mode differentiation transforms what runs now: a trace would not take part."""
    return _function_transforms() is not None or forward_ad._current_level >= 0


def autocast_state() -> tuple[Any, ...]:
    """The kinds of device that autocast is on for, with its dtypes."""
    kinds = ("cpu", "cuda") if _is_any_autocast_enabled() else ()
    return tuple((kind, torch.get_autocast_dtype(kind)) for kind in kinds if torch.is_autocast_enabled(kind))


@contextmanager
def without_autocast() -> Iterator[None]:
    """Autocast is off inside: a trace holds its casts."""
    enabled = [kind for kind, _ in autocast_state()]
    for kind in enabled:
        torch.set_autocast_enabled(kind, False)
    try:
        yield
    finally:
        for kind in enabled:
            torch.set_autocast_enabled(kind, True)


@contextmanager
def same_randomness_after(error: type[Exception]) -> Iterator[None]:
    """If `error` comes, torch's generators are as they were before."""
    on_host, on_devices = torch.get_rng_state(), _device_states()
    try:
        yield
    except error:
        torch.set_rng_state(on_host)
        if on_devices is not None:
            torch.cuda.set_rng_state_all(on_devices)
        raise


def _device_states() -> list[torch.Tensor] | None:
    return torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
