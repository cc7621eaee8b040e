"""Executors and operators: the classes to make one's own with, and the registry of those there are.

An executor runs operations. An `OperatorExecutor` runs single ones; a `FusionExecutor` compiles regions of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from thunder.core.symbol import BoundSymbol, Symbol, Tag

_executors: dict[str, "Executor"] = {}
_default: list["Executor"] = []


class Executor:
    """Something that runs operations; subclass one of the two below."""

    def __init__(self, name: str, *, version: str | None = None):
        self.name = name
        self.version = version

    def __repr__(self) -> str:
        return f"thunder.extend.{type(self).__name__}({self.name!r})"


@dataclass(frozen=True, slots=True)
class Implementation:
    """How an executor runs an operation.

    Attributes:
        symbol: what is called instead, with the same arguments.
        checker: given the operation's arguments (proxies), says whether this implementation can take them.
    """

    symbol: Symbol
    checker: Callable[..., bool] | None = None


class OperatorExecutor(Executor):
    """Runs single operations, each by a function of its own."""

    def __init__(self, name: str, *, version: str | None = None):
        super().__init__(name, version=version)
        self.implementations: dict[Symbol, Implementation] = {}

    def register_operator(
        self,
        name: str,
        *,
        fn: Callable,
        like: Symbol | None = None,
        meta: Callable | None = None,
        module: str | None = None,
        tags: tuple[Tag, ...] = (),
    ) -> Symbol:
        """A new operation that `fn` runs; its metadata is that of the operation `like`, or `meta`'s."""
        if (like is None) == (meta is None):
            raise ValueError(f"operator {name!r} needs either like= or meta=")
        rule = meta if like is None else like.meta
        tags = tags or tuple(like.tags if like else ())
        return Symbol(name, module, rule, is_prim=True, tags=tags, implementation=fn)

    def register_implementation(
        self, symbol: Symbol, operator: Symbol, *, checker: Callable[..., bool] | None = None
    ) -> None:
        """Run `symbol` by calling `operator` with the same arguments, where `checker` (if any) allows."""
        self.implementations[symbol] = Implementation(operator, checker)

    def implementation(self, bound_symbol: BoundSymbol) -> Symbol | None:
        """The operation that runs this call, or None."""
        found = self.implementations.get(bound_symbol.symbol)
        if found is None:
            return None
        if found.checker is not None and not found.checker(*bound_symbol.args, **bound_symbol.kwargs):
            return None
        return found.symbol


class FusionExecutor(Executor):
    """Compiles regions of operations into one."""

    fusion_prefix = "fusion"

    def refusal(self, bound_symbol: BoundSymbol) -> str | None:
        """Why this call cannot be part of a fusion, in a few words; None if it can."""
        raise NotImplementedError

    def fuse(
        self,
        name: str,
        region: Sequence[BoundSymbol],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        **options: Any,
    ) -> Symbol:
        """The operation called `name` that takes `inputs`, runs `region` (primitives, in order), gives `outputs`.

        Inputs and outputs are proxies; the operation's implementation takes tensors and returns a list of tensors.
        `options` are the compile options that `thunder.jit` was given; an executor heeds those that it knows.
        """
        raise NotImplementedError


def register_executor(executor: Executor, *, default: bool = False) -> Executor:
    """Make `executor` known by its name; `default` puts it before the default executors there are."""
    _executors[executor.name] = executor
    if default:
        _default.insert(0, executor)
    return executor


def get_executor(name: str) -> Executor:
    """The registered executor called `name`; ValueError names those there are."""
    try:
        return _executors[name]
    except KeyError:
        raise ValueError(f"no executor is called {name!r}; there are {', '.join(sorted(_executors))}") from None


def get_all_executors() -> tuple[Executor, ...]:
    return tuple(_executors.values())


def get_default_executors() -> tuple[Executor, ...]:
    """The executors that `thunder.jit` uses where it is not told, first choice first."""
    return tuple(_default)
