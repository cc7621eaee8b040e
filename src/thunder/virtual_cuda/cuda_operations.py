"""Operations that only CUDA has, written with operations that the host has."""

from collections.abc import Callable

IMPLEMENTATIONS: dict[str, Callable] = {}
