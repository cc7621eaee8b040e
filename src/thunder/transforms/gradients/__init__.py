"""Gradient rules, by kind of operation; importing this package fills the table."""

from thunder.transforms.gradients import (  # noqa: F401
    composites,
    elementwise,
    indexing,
    linear,
    reductions,
    shape,
)
from thunder.transforms.gradients.table import augmented_rules, by_torch, gradient_rules, rewrites

__all__ = ["augmented_rules", "by_torch", "gradient_rules", "rewrites"]
