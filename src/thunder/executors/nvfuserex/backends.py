"""Who makes a fusion's kernels and its values: nvFuser and a GPU, nvFuser and the virtual device, or neither.

A program is one definition compiled for one kind of inputs. Fusions of the same definition and kind share it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import torch

from thunder import virtual_cuda
from thunder.executors.nvfuserex import version
from thunder.executors.nvfuserex.definition import Definition
from thunder.executors.nvfuserex.facts import TensorFacts

# Runs the region's operations one by one, with torch.
ByTorch = Callable[..., list[torch.Tensor]]

_KERNEL_NAME = re.compile(r"^__global__ void (?:__launch_bounds__\(.*?\) )?(\w+)\(", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a fusion; what the backend cannot tell is None. Shared memory is in bytes."""

    name: str
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    shared_memory: int | None = None
    registers: int | None = None


class RecordedProgram:
    """No nvFuser: the definition is ours, there is no kernel, torch computes the values.

    Attributes:
        cuda_code: nvFuser's kernels; empty if it needs none (it only renames memory), None if nvFuser was not there.
        error: why nvFuser made none, if it failed. Then torch runs the operations.
    """

    def __init__(self, definition: Definition):
        self.definition = definition
        self.cuda_code: str | None = None
        self.kernels: tuple[Kernel, ...] = ()
        self.error: str | None = None

    def text(self) -> str:
        """The definition."""
        return str(self.definition)

    def compile(self, tensors: Sequence[torch.Tensor]) -> None:
        """Compile for inputs like `tensors`."""

    def run(self, tensors: Sequence[torch.Tensor], by_torch: ByTorch) -> list[torch.Tensor]:
        """The outputs for `tensors`, which are like those compiled for."""
        return by_torch(*tensors)


class NativeProgram(RecordedProgram):
    """nvFuser compiles the definition and runs it on a GPU."""

    def __init__(self, definition: Definition):
        super().__init__(definition)
        self.fd: Any = None

    def text(self) -> str:
        """The definition as nvFuser prints it."""
        try:
            return repr(self.fd) if self.fd else str(self.definition)
        except RuntimeError:  # nvFuser 0.2.36 cannot print a padded tensor in another order of dimensions
            return str(self.definition)

    def compile(self, tensors: Sequence[torch.Tensor]) -> None:
        """Compile for inputs like `tensors`."""
        try:
            self.fd = self.fd or nvfuser_definition(self.definition)
            outputs = self.fd.execute(list(tensors))
            code = self.fd.fec.get_cuda_kernel(list(tensors)).replace("// Codegen generated code\n", "")
            self._check(outputs)
        except RuntimeError as error:
            # What follows the message is nvFuser's call stack, different in each process.
            self.error = str(error).partition("\nException raised from")[0].strip()
        else:
            self._compiled(code, outputs)

    def _check(self, outputs: list[torch.Tensor]) -> None:
        """nvFuser 0.2.36 may take a dimension that it crops to one element for one that it can repeat or drop."""
        for n, (expected, output) in enumerate(zip(self.definition.outputs, outputs, strict=True)):
            if expected.shape != output.shape:
                raise RuntimeError(f"output {n} has the shape {tuple(output.shape)} in place of {expected.shape}")

    def _compiled(self, code: str, outputs: list[torch.Tensor]) -> None:
        self.cuda_code = code
        self.kernels = tuple(map(Kernel, _KERNEL_NAME.findall(code)))

    def run(self, tensors: Sequence[torch.Tensor], by_torch: ByTorch) -> list[torch.Tensor]:
        """The outputs for `tensors`, which are like those compiled for."""
        return by_torch(*tensors) if self.error else self.fd.execute(list(tensors))


class VirtualProgram(NativeProgram):
    """nvFuser compiles the definition for a chip that is not there; torch computes the values on the host."""

    # How nvFuser lays out the outputs.
    _output_strides: tuple[tuple[int, ...], ...] | None = None

    def _compiled(self, code: str, outputs: list[torch.Tensor]) -> None:
        self.cuda_code = code
        count = len(_KERNEL_NAME.findall(code))
        self.kernels = tuple(
            Kernel(x.kernel, x.grid, x.block, x.dynamic_shared_memory + (x.static_shared_memory or 0), x.registers)
            for x in (virtual_cuda.launches()[-count:] if count else [])
        )
        self._output_strides = tuple(x.stride() for x in outputs)

    def run(self, tensors: Sequence[torch.Tensor], by_torch: ByTorch) -> list[torch.Tensor]:
        """The outputs for `tensors`, which are like those compiled for."""
        outputs = by_torch(*tensors)
        if self._output_strides is None:
            return outputs
        return [_laid_out(x, strides) for x, strides in zip(outputs, self._output_strides)]


@dataclass(frozen=True, slots=True)
class Backend:
    """How this process makes programs, and why so."""

    name: str
    reason: str
    program: type[RecordedProgram]


@cache
def backend() -> Backend:
    """The backend of this process."""
    kind = virtual_cuda.kind() if virtual_cuda.is_active() else None
    if not version.installed():
        return Backend("recorded", f"nvFuser is not installed; to see kernels: {version.INSTALL}", RecordedProgram)
    if kind == "driver":
        return Backend("virtual", f"nvFuser compiles for {torch.cuda.get_device_name()}", VirtualProgram)
    if kind is None and torch.cuda.is_available():
        return Backend("native", f"nvFuser compiles for {torch.cuda.get_device_name()} and runs on it", NativeProgram)
    return Backend("recorded", "nvFuser is installed, but has no CUDA device to compile for", RecordedProgram)


def nvfuser_definition(definition: Definition) -> Any:
    """nvFuser's own FusionDefinition of the same fusion."""
    nvfuser = version.nvfuser()
    fd = nvfuser.FusionDefinition()
    fd.__enter__()
    try:
        definition.replay(fd, nvfuser.DataType)
    finally:
        fd.__exit__(None, None, None)  # told of an exception it would print it
    return fd


_programs: dict[tuple[str, tuple[TensorFacts, ...]], RecordedProgram] = {}
_PROGRAMS_KEPT = 256
_compiling = Lock()  # one thread at a time: the last launches on the virtual device are then those of its program


def compiled(definition: Definition, tensors: Sequence[torch.Tensor]) -> RecordedProgram:
    """The program of `definition` for inputs like `tensors`, one for all fusions that are the same.

    The layers of a network are the same few fusions again and again, and nvFuser takes most of a second for each.
    """
    key = definition.exact(), tuple(map(TensorFacts.of, tensors))
    with _compiling:
        program = _programs.pop(key, None)
        if program is None:
            program = backend().program(definition)
            program.compile(tensors)
        _programs[key] = program  # the last one used; the first one in the dictionary is the one to forget
        if len(_programs) > _PROGRAMS_KEPT:
            del _programs[next(iter(_programs))]
    return program


def _laid_out(value: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    if value.stride() == strides:
        return value
    return torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device).copy_(value)
