"""`--target`: which device the worker runs on, and the environment it is started with. Imports no torch."""

import ctypes
import os

from thunder.virtual_cuda.chips import CHIPS, UnknownChip, find_chip
from thunder.virtual_cuda.launcher import VirtualDeviceError, environment
from thunder_cli.errors import CommandError

DEFAULT_CHIP = "h100"


def choose(target: str) -> tuple[str, bool]:
    """The device that `target` means here, a chip's key, `cuda` or `cpu`, and whether it is virtual."""
    if target == "cpu":
        return "cpu", False
    if target in ("auto", "cuda"):
        if has_gpu():
            return "cuda", False
        if target == "cuda":
            raise CommandError(
                f"there is no CUDA GPU here.\nWithout --target cuda, the program runs on a virtual {DEFAULT_CHIP}; "
                f"--target takes any of {', '.join(CHIPS)}."
            )
        return DEFAULT_CHIP, True
    try:
        find_chip(target)
    except UnknownChip as error:
        raise CommandError(
            f"--target: {error}\nBesides chips it takes auto, cuda and cpu; see thunder targets."
        ) from None
    return target, True


def has_gpu() -> bool:
    """Whether the CUDA driver is here and sees a GPU."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def worker_environment(device: str, virtual: bool) -> dict[str, str]:
    """The environment variables of a process on that device."""
    if virtual:
        try:
            return environment(device)
        except VirtualDeviceError as error:
            raise CommandError(f"{error}\n--target cpu runs the program without a CUDA device.") from None
    return {**os.environ, "CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else dict(os.environ)
