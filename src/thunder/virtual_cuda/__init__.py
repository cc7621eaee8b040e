"""A CUDA device that is not there: real CUDA tensors, right values and real kernels on a machine without a GPU.

A process is on the virtual device if it was started with `launcher.environment(...)` (or by
`python -m thunder.virtual_cuda`) and has called `activate()`. Importing this package imports no torch.
"""

import os
from typing import TYPE_CHECKING, Literal

from thunder.virtual_cuda.chips import CHIPS, Chip, UnknownChip, find_chip
from thunder.virtual_cuda.launcher import (
    CHIP_VARIABLE,
    DEVICES_VARIABLE,
    LIBRARY_VARIABLE,
    VirtualDeviceError,
    environment,
)

if TYPE_CHECKING:
    import torch

    from thunder.virtual_cuda.launch_records import Launch

__all__ = [
    "CHIPS", "Chip", "UnknownChip", "VirtualDeviceError", "activate", "chip", "devices", "environment", "find_chip",
    "from_host", "host_alias", "is_active", "kind", "launches",
]  # fmt: skip

_active = False


def activate() -> None:
    """Make CUDA operations of this process run on its virtual device. Once is enough; later calls do nothing."""
    global _active
    if _active:
        return
    if chip() is None:
        raise VirtualDeviceError(
            "this process was not started on a virtual device. Start it with `python -m thunder.virtual_cuda`, or with "
            "the environment that thunder.virtual_cuda.environment(chip) returns."
        )
    if kind() == "driver":
        from thunder.virtual_cuda import driver

        driver.activate()
    else:
        from thunder.virtual_cuda import host_tensors

        host_tensors.activate(chip(), devices())
    _active = True


def is_active() -> bool:
    """Whether this process runs on a virtual device: `activate()` was called."""
    return _active


def chip() -> Chip | None:
    """The chip this process was started for, or None."""
    key = os.environ.get(CHIP_VARIABLE)
    return find_chip(key) if key else None


def devices() -> int:
    """How many virtual devices this process was started with."""
    return int(os.environ.get(DEVICES_VARIABLE, "0"))


def kind() -> Literal["driver", "host tensors"] | None:
    """What stands in for CUDA: the driver, under a torch with CUDA, or host tensors; None without a virtual device."""
    if chip() is None:
        return None
    return "driver" if LIBRARY_VARIABLE in os.environ else "host tensors"


def host_alias(tensor: "torch.Tensor") -> "torch.Tensor":
    """A CPU tensor over the bytes of a virtual CUDA tensor, with its shape and strides."""
    from thunder.virtual_cuda import host_memory

    return host_memory.host_alias(tensor)


def from_host(tensor: "torch.Tensor", device: "torch.device | str | int" = "cuda") -> "torch.Tensor":
    """A virtual CUDA tensor with the values, shape and strides of a CPU tensor. Host tensors share bytes."""
    from thunder.virtual_cuda import host_execution

    return host_execution.from_host(tensor, device)


def launches() -> "list[Launch]":
    """The last kernels launched on this process's virtual devices, oldest first. None are without the driver."""
    from thunder.virtual_cuda import launch_records

    return launch_records.read() if kind() == "driver" else []
