"""`thunder targets`: the devices that `--target` takes, with the figures of the chips."""

import json as json_module
from dataclasses import asdict

from thunder.virtual_cuda.chips import CHIPS, Chip
from thunder_cli.commands.trace import JSON, NO_COLOR
from thunder_cli.device import DEFAULT_CHIP, has_gpu
from thunder_cli.render.printer import Printer
from thunder_cli.render.table import print_table

HEADER = ("chip", "name", "compute", "SMs", "memory", "bandwidth", "f32", "bf16", "f64")


def targets(json: JSON = False, no_color: NO_COLOR = False) -> None:
    """List the devices that thunder trace --target takes."""
    if json:
        for chip in CHIPS.values():
            print(json_module.dumps(asdict(chip)))
        return
    printer = Printer(no_color)
    print_table(printer, HEADER, [row(chip) for chip in CHIPS.values()])
    here = "the GPU that is here" if has_gpu() else "a GPU, and there is none here"
    printer.line(f"\ncuda   {here}")
    printer.line("cpu    no CUDA device")
    printer.line(f"auto   {'cuda' if has_gpu() else DEFAULT_CHIP} here (the default)")


def row(chip: Chip) -> list[str]:
    rates = [f"{rate / 1e12:g} TFLOP/s" for rate in (chip.peak_fp32, chip.peak_bf16, chip.peak_fp64)]
    compute = "{}.{}".format(*chip.compute_capability)
    memory, bandwidth = f"{chip.memory >> 30} GB", f"{chip.memory_bandwidth / 1e9:g} GB/s"
    return [chip.key, chip.name, compute, str(chip.multiprocessors), memory, bandwidth, *rates]
