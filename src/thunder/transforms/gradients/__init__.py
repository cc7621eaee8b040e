"""Gradient rules, by kind of operation; importing this package fills the table."""

from thunder.transforms.gradients import (  # noqa: F401
    complex_numbers,
    composites,
    elementwise,
    indexing,
    linear,
    pieces,
    reductions,
    shape,
)
from thunder.transforms.gradients.complex_numbers import HOLDS as HOLDS_FOR_COMPLEX_NUMBERS
from thunder.transforms.gradients.table import augmented_rules, by_torch, gradient_rules, rewrites

__all__ = ["HOLDS_FOR_COMPLEX_NUMBERS", "augmented_rules", "by_torch", "gradient_rules", "rewrites"]
