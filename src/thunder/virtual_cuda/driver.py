"""Virtual CUDA tensors on a torch that was built with CUDA and runs on the virtual driver."""

import torch

from thunder.virtual_cuda import host_execution
from thunder.virtual_cuda.host_memory import copy_bytes


def activate() -> None:
    """Compute on the host what torch would compute with its own CUDA kernels, which the driver refuses."""
    host_execution.register(_owned)


def _owned(host: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A host result in memory that torch's CUDA allocator owns, so that its memory figures are true."""
    output = torch.empty_strided(host.shape, host.stride(), dtype=host.dtype, device=device)
    copy_bytes(output, host)
    return output
