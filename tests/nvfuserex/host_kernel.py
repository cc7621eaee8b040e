"""Runs nvFuser's generated kernels on the CPU: an oracle for what a translation computes, where there is no GPU.

The kernel's text is compiled for the host as it stands, together with nvFuser's own helper functions out of the
complete source that it hands to NVRTC. What this file adds is the machine around them: indices, memory, rounding to
half types, and reductions over a block of one thread. Mathematical functions are the host's.
"""

import ctypes
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import torch

_MACHINE = Path(__file__).with_name("host_kernel.h")
_SIGNATURE = re.compile(r"__global__ void (?:__launch_bounds__\(.*?\) )?(\w+)\((.*?)\) \{")
_PARAMETER = re.compile(r"Tensor<([\w:<>]+), (\d+), (\d+)> (\w+)")

# Where nvFuser's scalar functions and Welford's updates stand in its source.
_HELPERS = (
    ("__device__ constexpr int ceilDiv(", "// Return the current value of the cycle counter"),
    ("// Basic utility for welford update.", "// [Z,Y,X]_THREADS is the number"),
)


def _between(text: str, first: str, behind: str) -> str:
    start = text.index(first)
    return text[start : text.index(behind, start)]


@dataclass(frozen=True)
class HostKernel:
    """One kernel of one definition; `source` is all that NVRTC got, `code` the kernel alone."""

    name: str
    code: str
    source: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    def wrapper(self) -> str:
        """C++ that defines the kernel, and a C function called as the definition that runs it."""
        function, parameters = _SIGNATURE.search(self.code).groups()
        arguments, offset = [], 0
        for n, (kind, ndim, allocated, _) in enumerate(_PARAMETER.findall(parameters)):
            arguments.append(f"Tensor<{kind}, {ndim}, {allocated}>(data[{n}], shapes + {offset}, strides + {offset})")
            offset += int(ndim)
        code = self.code.replace("alignas(128) extern __shared__ char array[];", "static char array[1 << 16];")
        return (
            f"namespace nvf::definition_{self.name} {{\n{code}\n"
            f'extern "C" void run_{self.name}(void** data, const int* shapes, const int* strides) {{\n'
            f"  for_each_thread([&] {{ {function}({', '.join(arguments)}); }});\n}}\n}}\n"
        )

    def tensors(self) -> int:
        """How many tensors the kernel takes."""
        return len(_PARAMETER.findall(_SIGNATURE.search(self.code)[2]))

    def is_reduction(self) -> bool:
        """Whether threads work together; then each block gets one thread."""
        return "Reduce" in self.code or "Welford" in self.code


class HostKernels:
    """Several kernels, compiled together by the host's C++ compiler."""

    def __init__(self, kernels: list[HostKernel], directory: Path, compiler: str):
        self.kernels = {kernel.name: kernel for kernel in kernels}
        helpers = "".join(_between(kernels[0].source, *ends) for ends in _HELPERS)
        text = _MACHINE.read_text().replace("// HELPERS", helpers) + "".join(k.wrapper() for k in kernels)
        path = directory / "kernels.cpp"
        path.write_text(text)
        library = directory / "kernels.so"
        command = [
            compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-w",
            "-ffp-contract=off",
            "-std=c++20",
            str(path),
            "-o",
            str(library),
        ]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(library))

    def run(self, name: str, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> None:
        """Run a kernel on CPU tensors, writing into `outputs`."""
        kernel, tensors = self.kernels[name], [*inputs, *outputs]
        grid, block = kernel.grid, kernel.block
        if kernel.is_reduction():
            grid, block = (grid[0] * block[0] * block[1] * block[2], grid[1], grid[2]), (1, 1, 1)
        self.library.set_launch((ctypes.c_int * 6)(*grid, *block))
        sizes = [n for x in tensors for n in x.shape]
        strides = [n for x in tensors for n in x.stride()]
        data = (ctypes.c_void_p * len(tensors))(*(x.data_ptr() for x in tensors))
        function = getattr(self.library, f"run_{name}")
        function(data, (ctypes.c_int * len(sizes))(*sizes), (ctypes.c_int * len(strides))(*strides))
