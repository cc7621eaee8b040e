"""The functional transforms, under the name by which users of the peer import them."""

from typing import Any

NAMES = ["grad", "jvp", "value_and_grad", "vjp"]


def __getattr__(name: str) -> Any:
    from thunder.transforms import functional

    if name in NAMES:
        return getattr(functional, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
