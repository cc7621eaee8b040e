"""Executors and operators: the classes to make one's own with, and the registry of those there are.

An executor runs operations. An `OperatorExecutor` runs single ones; a `FusionExecutor` compiles regions of them.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
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
        replaces: Callable | str | None = None,
    ) -> Symbol:
        """A new operation that `fn` runs; jitted programs call it as a function.

        Args:
            like, meta: its metadata is that of the operation `like`, or what `meta` makes: it takes the operation's
                arguments, proxies for tensors, and returns proxies (`thunder.core.trace.tensor`).
            replaces: a torch callable, or its name ("torch.nn.functional.relu"), calls of which become calls of this
                operation in every program that is jitted from now on.

        Raises:
            ValueError: neither or both of `like` and `meta` are given, the name is no identifier, or torch has no such
                callable.
        """
        if not all(map(str.isidentifier, name.split("."))):
            raise ValueError(f"{name!r} is no name that a trace could print")
        if (like is None) == (meta is None):
            raise ValueError(f"operator {name!r} needs either like= or meta=")
        rule = meta if like is None else like.meta
        tags = tags or tuple(like.tags if like else ())
        symbol = Symbol(name, module, rule, is_prim=True, tags=tags, implementation=fn)
        if replaces is not None:
            _language().torch_functions[_callable(replaces)] = symbol
        return symbol

    def register_implementation(
        self, symbol: Symbol | str, operator: Symbol, *, checker: Callable[..., bool] | None = None
    ) -> None:
        """Run `symbol` by calling `operator` with the same arguments, where `checker` (if any) allows.

        `symbol` may be the name of the torch callable that is recorded as it: "torch.nn.functional.layer_norm". Where
        gradients are needed `operator` runs in the forward, and what `symbol` is made of is differentiated.

        Raises:
            ValueError: torch has no such callable, or it is recorded as no operation of its own.
            TypeError: `operator` is not what `register_operator` gave.
        """
        if not isinstance(operator, Symbol):
            raise TypeError(f"{operator!r} is no operator; register_operator makes one")
        if isinstance(symbol, str):
            found = _language().torch_functions.get(_callable(symbol))
            if found is None:
                raise ValueError(
                    f"{symbol} is recorded as no operation of its own; register an operator that replaces it"
                )
            symbol = found
        self.implementations[symbol] = Implementation(operator, checker)

    def implementation(self, bound_symbol: BoundSymbol) -> Symbol | None:
        """The operation that runs this call, or None."""
        found = self.implementations.get(bound_symbol.symbol)
        if found is None:
            return None
        if found.checker is not None and not found.checker(*bound_symbol.args, **bound_symbol.kwargs):
            return None
        return found.symbol


def _language() -> ModuleType:
    """The tables of torch's callables. They are not imported with this file, whose users they may be."""
    return importlib.import_module("thunder.torch.language")


def _callable(function: Callable | str) -> Callable:
    """The torch callable of a dotted name, or the callable itself."""
    if not isinstance(function, str):
        return function
    found = _language().find(function.removeprefix("torch."))
    if found is None:
        raise ValueError(f"torch has no {function}")
    return found


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
