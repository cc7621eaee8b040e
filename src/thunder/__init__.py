"""thunder: a source-to-source JIT compiler for PyTorch programs. This file is its public API.

Names are imported when first used, so that `import thunder` is cheap and the debugger's front process, which needs
only `thunder.virtual_cuda.chips`, never imports torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from thunder.core.module import ThunderModule
    from thunder.core.options import CacheOption, DebugOptions
    from thunder.extend import get_all_executors, get_default_executors, get_executor
    from thunder.jit import (
        cache_hits,
        cache_misses,
        cache_option,
        compile_data,
        compile_stats,
        jit,
        last_backward_traces,
        last_compile_options,
        last_interpreted_instructions,
        last_interpreter_log,
        last_prologue_traces,
        last_recompile_reason,
        last_traces,
        list_transforms,
        print_last_interpreter_log,
    )
    from thunder.transforms.functional import grad, jvp, value_and_grad, vjp

_HOMES = {
    "thunder.core.module": ("ThunderModule",),
    "thunder.core.options": ("CacheOption", "DebugOptions"),
    "thunder.extend": ("get_all_executors", "get_default_executors", "get_executor"),
    "thunder.jit": (
        "cache_hits",
        "cache_misses",
        "cache_option",
        "compile_data",
        "compile_stats",
        "jit",
        "last_backward_traces",
        "last_compile_options",
        "last_interpreted_instructions",
        "last_interpreter_log",
        "last_prologue_traces",
        "last_recompile_reason",
        "last_traces",
        "list_transforms",
        "print_last_interpreter_log",
    ),
    "thunder.transforms.functional": ("grad", "jvp", "value_and_grad", "vjp"),
}
_SUBPACKAGES = frozenset({"clang", "core", "examine", "executors", "extend", "torch", "transforms", "virtual_cuda"})
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"thunder.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'thunder' has no attribute {name!r}")
    # All names of the module at once: importing `thunder.jit` has bound that name to the module.
    module = import_module(home)
    globals().update({n: getattr(module, n) for n in _HOMES[home]})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
