"""How a tensor lies in memory, in nvFuser's terms: which dimensions are contiguous, in which order, which repeat."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Layout:
    """What nvFuser compiles a fusion for, of an input's sizes and strides.

    Attributes:
        symbolic_shape: 1 where the size is 1, else -1.
        contiguity: of the dimensions from the slowest to the fastest varying, whether one goes on where the next faster
            one ends; None for a dimension that is one element, or one element repeated.
        stride_order: for each dimension how many vary faster; empty if each varies slower than those behind it.
    """

    symbolic_shape: tuple[int, ...]
    contiguity: tuple[bool | None, ...]
    stride_order: tuple[int, ...]

    @classmethod
    def of(cls, shape: Sequence[int], strides: Sequence[int]) -> "Layout":
        """The layout of a tensor with elements."""
        # Slowest first. A repeated dimension has no place of its own; it stays behind the one before it.
        keys: list[int] = []
        for d, stride in enumerate(strides):
            repeated = shape[d] == 1 or stride == 0
            keys.append((keys[-1] if keys else max(strides, default=0) + 1) if repeated else stride)
        order = sorted(range(len(shape)), key=lambda d: (-keys[d], d))
        contiguity: list[bool | None] = [None] * len(shape)
        step = 1
        for place in range(len(order) - 1, -1, -1):
            d = order[place]
            if shape[d] == 1 or strides[d] == 0:
                continue
            contiguity[place] = strides[d] == step
            step = strides[d] * shape[d]
        stride_order = [0] * len(shape)
        for place, d in enumerate(order):
            stride_order[d] = len(order) - 1 - place
        in_order = order == list(range(len(shape)))
        symbolic = tuple(1 if size == 1 else -1 for size in shape)
        return cls(symbolic, tuple(contiguity), () if in_order else tuple(stride_order))

    def is_repeated(self, dimension: int) -> bool:
        """Whether a dimension is one element, or one element repeated."""
        faster = self.stride_order[dimension] if self.stride_order else len(self.contiguity) - 1 - dimension
        return self.contiguity[len(self.contiguity) - 1 - faster] is None

    def keywords(self) -> dict[str, Any]:
        """The arguments of nvFuser's define_tensor."""
        keywords = {"shape": list(self.symbolic_shape), "contiguity": list(self.contiguity)}
        return {**keywords, "stride_order": list(self.stride_order)} if self.stride_order else keywords

    def arguments(self) -> str:
        return f"shape={list(self.symbolic_shape)}, contiguity={list(self.contiguity)}"

    def order_argument(self) -> str:
        return f", stride_order={list(self.stride_order)}" if self.stride_order else ""
