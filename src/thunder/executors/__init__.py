"""The executors that come with thunder. Importing this registers them; the last one registered is asked first."""

from thunder.executors import torchex  # isort: skip
from thunder.executors import nvfuserex

__all__ = ["nvfuserex", "torchex"]
