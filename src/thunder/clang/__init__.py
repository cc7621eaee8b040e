"""The core language: primitives with PyTorch's type promotion, broadcasting and indexing, as plain functions."""

from thunder.clang.elementwise import *  # noqa: F403
from thunder.clang.indexing import *  # noqa: F403
from thunder.clang.operators import install_operators
from thunder.clang.promotion import *  # noqa: F403
from thunder.clang.reductions import *  # noqa: F403
from thunder.clang.shape import *  # noqa: F403

install_operators()
