"""Devices in a trace are `torch.device` objects with an index where the device type has one."""

from typing import Any

import torch

cpu = torch.device("cpu")


def to_device(x: Any) -> torch.device:
    """The device that `x` (a device, a string, an index, a tensor or proxy, None) means, with its index."""
    if x is None:
        device = torch.get_default_device()
    elif isinstance(x, torch.device):
        device = x
    elif isinstance(x, str | int):
        device = torch.device(x)
    else:
        device = x.device
    if device.type == "cuda" and device.index is None:
        index = torch.cuda.current_device() if torch.cuda.is_available() else 0
        return torch.device("cuda", index)
    return device


def to_torch_device(x: Any) -> torch.device:
    """Same as `to_device`: the devices of traces are torch's own."""
    return to_device(x)
