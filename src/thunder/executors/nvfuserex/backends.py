"""Who makes a fusion's kernel and its values: nvFuser and a GPU, nvFuser and the virtual device, or neither.

A program is one definition, made ready by a backend. Each gives outputs, and the kernel where there is one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from thunder import virtual_cuda
from thunder.executors.nvfuserex import version
from thunder.executors.nvfuserex.definition import Definition

OnHost = Callable[..., list[torch.Tensor]]

_KERNEL_NAME = re.compile(r"__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a fusion; what the backend cannot tell is None."""

    name: str
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    shared_memory: int | None = None
    registers: int | None = None


@dataclass(slots=True)
class Compiled:
    """What a definition was compiled to for one set of input shapes.

    Attributes:
        cuda_code: nvFuser's kernels, None if there are none.
        error: why nvFuser made none, if it was asked.
        output_strides: how nvFuser lays out the outputs, if they are not its own.
    """

    cuda_code: str | None = None
    kernels: tuple[Kernel, ...] = ()
    error: str | None = None
    output_strides: list[tuple[int, ...]] | None = None


class NativeProgram:
    """nvFuser compiles the definition and runs it on a GPU."""

    def __init__(self, definition: Definition, on_host: OnHost):
        self.fd = nvfuser_definition(definition)

    def text(self) -> str:
        return repr(self.fd)

    def compile(self, tensors: Sequence[torch.Tensor]) -> tuple[Compiled, list[torch.Tensor]]:
        """Compile for inputs like `tensors`; also gives the outputs for them."""
        outputs = self.fd.execute(list(tensors))
        code = self.fd.fec.get_cuda_kernel(list(tensors))
        return Compiled(code, tuple(map(Kernel, _KERNEL_NAME.findall(code)))), outputs

    def run(self, compiled: Compiled, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return self.fd.execute(list(tensors))


class VirtualProgram:
    """nvFuser compiles the definition for a chip that is not there; torch computes the values on the host."""

    def __init__(self, definition: Definition, on_host: OnHost):
        self.fd = nvfuser_definition(definition)
        self.on_host = on_host

    def text(self) -> str:
        return repr(self.fd)

    def compile(self, tensors: Sequence[torch.Tensor]) -> tuple[Compiled, list[torch.Tensor]]:
        """Compile for inputs like `tensors`; also gives the outputs for them."""
        try:
            compiled = self._compile(list(tensors))
        except RuntimeError as error:
            compiled = Compiled(error=str(error))
        return compiled, self.run(compiled, tensors)

    def _compile(self, tensors: list[torch.Tensor]) -> Compiled:
        outputs = self.fd.execute(tensors)
        code = self.fd.fec.get_cuda_kernel(tensors)
        kernels = tuple(map(_launched, virtual_cuda.launches()[-len(_KERNEL_NAME.findall(code)) :]))
        return Compiled(code, kernels, output_strides=[x.stride() for x in outputs])

    def run(self, compiled: Compiled, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        outputs = self.on_host(*tensors)
        if compiled.output_strides is None:
            return outputs
        return [_laid_out(x, strides) for x, strides in zip(outputs, compiled.output_strides)]


class RecordedProgram:
    """No nvFuser: the definition is ours, there is no kernel, torch computes the values."""

    def __init__(self, definition: Definition, on_host: OnHost):
        self.definition = definition
        self.on_host = on_host

    def text(self) -> str:
        return str(self.definition)

    def compile(self, tensors: Sequence[torch.Tensor]) -> tuple[Compiled, list[torch.Tensor]]:
        """There is nothing to compile; gives the outputs for `tensors`."""
        return Compiled(), self.run(Compiled(), tensors)

    def run(self, compiled: Compiled, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return self.on_host(*tensors)


Program = NativeProgram | VirtualProgram | RecordedProgram


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to make programs, and why this process has it."""

    name: str
    reason: str
    program: Callable[[Definition, OnHost], Program]


@cache
def backend() -> Backend:
    """The backend of this process."""
    kind = virtual_cuda.kind() if virtual_cuda.is_active() else None
    if not version.installed():
        return Backend("recorded", f"nvFuser is not installed; to see kernels: {version.INSTALL}", RecordedProgram)
    if kind == "driver":
        chip = virtual_cuda.chip()
        return Backend("virtual", f"nvFuser compiles for a virtual {chip.name}", VirtualProgram)
    if kind is None and torch.cuda.is_available():
        return Backend("native", f"nvFuser runs on {torch.cuda.get_device_name()}", NativeProgram)
    return Backend(
        "recorded", "nvFuser is installed, but there is no CUDA device that it can compile for", RecordedProgram
    )


def nvfuser_definition(definition: Definition) -> Any:
    """nvFuser's own FusionDefinition of the same fusion."""
    nvfuser = version.nvfuser()
    fd = nvfuser.FusionDefinition()
    fd.__enter__()
    try:
        definition.replay(fd, nvfuser.DataType)
    finally:
        fd.__exit__(None, None, None)  # given an exception it would print it
    return fd


def _launched(launch: Any) -> Kernel:
    shared_memory = launch.dynamic_shared_memory + (launch.static_shared_memory or 0)
    return Kernel(launch.kernel, launch.grid, launch.block, shared_memory, launch.registers)


def _laid_out(value: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    if value.stride() == strides:
        return value
    return torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device).copy_(value)
