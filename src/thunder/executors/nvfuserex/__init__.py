"""The executor that fuses operations into kernels by nvFuser.

Importing it imports neither nvFuser nor touches a device; the first fusion that runs does.
"""

from thunder.executors.nvfuserex import repro
from thunder.executors.nvfuserex.backends import Backend, Kernel, backend
from thunder.executors.nvfuserex.fusion import Fusion, FusionDefinitionWrapper, NvFuserExecutor
from thunder.executors.nvfuserex.version import version
from thunder.extend import register_executor

__all__ = [
    "Backend",
    "Fusion",
    "FusionDefinitionWrapper",
    "Kernel",
    "NvFuserExecutor",
    "backend",
    "ex",
    "repro",
    "version",
]

ex = register_executor(NvFuserExecutor("nvfuser"), default=True)
