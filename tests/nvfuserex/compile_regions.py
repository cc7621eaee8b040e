"""Compiles every region with nvFuser on the virtual device, runs the kernels on the host, writes a report as JSON.

Run on the virtual device: compile_regions.py <report> <scratch directory> <C++ compiler, or nothing>.
"""

import json
import sys
from pathlib import Path

import torch
from host_kernel import HostKernel, HostKernels
from regions import Region, regions

from thunder.core.proxies import TensorProxy, is_dense
from thunder.executors import nvfuserex
from thunder.virtual_cuda import from_host

SPECIAL = (0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 1.5, -1.5, 2.5, float("inf"), -float("inf"), float("nan"), 3, -3)
TOLERANCES = {torch.float64: 1e-7, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
TOLERANCES |= {torch.complex128: 1e-7, torch.complex64: 2e-5}


def values(proxy: TensorProxy, seed: int) -> torch.Tensor:
    """Values for an input: special ones where there is room, indices where it is short, no zero among the integers."""
    random = torch.Generator().manual_seed(seed)
    if proxy.dtype.is_complex:
        x = torch.randn(proxy.shape, generator=random, dtype=torch.complex128)
    elif proxy.dtype.is_floating_point:
        x = torch.randn(proxy.shape, generator=random, dtype=torch.float64) * 3
        if proxy.shape == (64,):
            for start in (0, 16):
                x[start : start + 16] = torch.tensor(SPECIAL)[torch.randperm(16, generator=random)]
    elif proxy.dtype is torch.bool:
        x = torch.randint(0, 2, proxy.shape, generator=random)
    elif proxy.numel < 4:
        x = torch.randint(0, 3, proxy.shape, generator=random)
    else:
        x = torch.randint(-5, 5, proxy.shape, generator=random)
        x[x >= 0] += 1
    strided = torch.empty_strided(proxy.shape, proxy.strides, dtype=proxy.dtype)
    if 0 in proxy.strides:
        return x[:1].to(proxy.dtype).expand(proxy.shape)
    return strided.copy_(x)


def compile_region(region: Region) -> tuple[dict, HostKernel | None, list[torch.Tensor], list[torch.Tensor]]:
    """What nvFuser made of a region; a kernel that the host can run, if it is one; inputs and torch's outputs."""
    calls, inputs, outputs = region.record()
    refused = [r for call in calls if (r := nvfuserex.ex.refusal(call))]
    if refused:
        return {"refused": refused}, None, [], []
    fusion_symbol = nvfuserex.ex.fuse("nvFusion0", calls, inputs, outputs)
    tensors = [values(proxy, seed) for seed, proxy in enumerate(inputs)]
    on_device = [from_host(x) for x in tensors]
    results = fusion_symbol(*on_device)
    fusion = fusion_symbol.implementation.last_used
    entry = {"refused": [], "error": fusion.error, "definition": repr(fusion), "kernels": len(fusion.last_kernels)}
    if fusion.error:
        return entry, None, [], []
    made = fusion.program.fd.execute(on_device)
    entry["metadata"] = [[list(x.shape), list(x.stride()), str(x.dtype)] for x in made]
    entry["expected"] = [
        [list(p.shape), list(p.strides if is_dense(p.shape, p.strides) else x.stride()), str(p.dtype)]
        for p, x in zip(outputs, made)
    ]
    kernel = None
    if len(fusion.last_kernels) == 1:
        launch, code = fusion.last_kernels[0], fusion.program.cuda_code
        source = fusion.program.fd.fec.get_cuda_kernel(on_device, True)
        kernel = HostKernel(region.name, code, source, launch.grid, launch.block)
        needs_threads = "reduction::" in code or "persistent" in code
        if needs_threads or kernel.tensors() != len(inputs) + len(outputs):
            kernel = None
    return entry, kernel, tensors, [x.cpu() for x in results]


def difference(expected: torch.Tensor, found: torch.Tensor) -> str | None:
    """How a kernel's output differs from torch's, if it does."""
    tolerance = TOLERANCES.get(expected.dtype, 0)
    try:
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance / 10, equal_nan=True)
    except AssertionError as error:
        return str(error)
    return None


def main(report: str, directory: str, compiler: str) -> None:
    compiled = {name: compile_region(region) for name, region in regions.items()}
    if compiler:
        on_host = HostKernels([kernel for _, kernel, _, _ in compiled.values() if kernel], Path(directory), compiler)
        for name, (entry, kernel, inputs, expected) in compiled.items():
            if kernel:
                found = [torch.empty_strided(x.shape, x.stride(), dtype=x.dtype) for x in expected]
                on_host.run(name, inputs, found)
                entry["differences"] = [d for pair in zip(expected, found) if (d := difference(*pair))]
    Path(report).write_text(json.dumps({name: entry for name, (entry, *_) in compiled.items()}))


main(*sys.argv[1:])
