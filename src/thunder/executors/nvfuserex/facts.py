"""What a fusion is compiled for, of a tensor that it takes."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """All of an input but its values."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    @classmethod
    def of(cls, x: torch.Tensor) -> "TensorFacts":
        return cls(tuple(x.shape), tuple(x.stride()), x.dtype, x.device)

    @property
    def bytes(self) -> int:
        """How much memory the elements take; repeated ones count once."""
        elements = 1
        for size, stride in zip(self.shape, self.strides):
            elements *= size if stride else 1
        return elements * self.dtype.itemsize
