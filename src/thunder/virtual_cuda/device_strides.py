"""The strides a CUDA kernel gives its results, where they differ from the CPU's."""

import torch


def restride(operator: torch._ops.OpOverload, tensors: list, host: torch.Tensor) -> torch.Tensor:
    return host
