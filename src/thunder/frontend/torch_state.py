"""The settings of torch that a trace depends on; a trace is reused only where they are equal."""

from typing import Any

import torch

_are_deterministic = torch.are_deterministic_algorithms_enabled
_default_device = torch._C._get_default_device
_default_dtype = torch.get_default_dtype
_function_modes = torch._C._len_torch_function_stack
_is_any_autocast_enabled = torch._C._is_any_autocast_enabled
_is_grad_enabled = torch.is_grad_enabled
_is_inference_mode_enabled = torch.is_inference_mode_enabled


def torch_state() -> tuple[Any, ...]:
    """Grad mode first; autocast, default dtype and device, deterministic mode, how many function modes are on."""
    return (
        _is_grad_enabled(),
        _is_inference_mode_enabled(),
        _is_any_autocast_enabled(),
        _default_dtype(),
        _default_device(),
        _are_deterministic(),
        _function_modes(),
    )
