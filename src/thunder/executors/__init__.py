"""The executors that come with thunder. Importing this registers them; the last one registered is asked first."""

from thunder.executors import torchex

__all__ = ["torchex"]
