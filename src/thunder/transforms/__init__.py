"""From trace to trace: the passes, one file each, and those that one passes to `thunder.jit(transforms=[...])`."""

from thunder.transforms.autocast import autocast

__all__ = ["autocast"]
