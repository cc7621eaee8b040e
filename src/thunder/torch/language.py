"""The operations of the PyTorch language and the tables that say which torch callable each one is.

An operation is a Symbol of module "ltorch". Its meta function takes what the torch callable takes, and is written in
terms of `thunder.clang` and the primitives. Arguments that it does not cover raise NotImplementedError: the call is
then recorded as an opaque one. Arguments that torch refuses raise torch's exception.
"""

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder.core.numbers import as_size
from thunder.core.proxies import NumberProxy, TensorProxy
from thunder.core.symbol import Symbol

Number = bool | int | float | complex

# Every operation by its name: what `thunder.torch` holds.
operations: dict[str, Symbol] = {}

# The operation that a call of a torch callable is recorded as, with the same arguments.
torch_functions: dict[Callable, Symbol] = {}

# Callables that write the result of an operation on their arguments into the first of them: torch.Tensor.add_.
in_place: dict[Callable, Symbol] = {}

# Callables that change the shape and strides of their first argument, not its values: torch.Tensor.squeeze_.
in_place_view: dict[Callable, Symbol] = {}

# Callables that are an operation with their two arguments swapped: torch.Tensor.__rsub__.
reflected: dict[Callable, Symbol] = {}

# Callables with a parameter `inplace`; where that is true, the result is written into the first argument.
inplace_argument: dict[Callable, Symbol] = {}

# Operations that give new values for some of their arguments. The function takes the operation's arguments and returns
# the arguments that are written; if there are any, the operation returns (result, new value of the first, ...).
updates: dict[Symbol, Callable[..., tuple[TensorProxy, ...]]] = {}

# The dotted name under `torch` of the callable that runs an operation: "nn.functional.relu".
stands_for: dict[Symbol, str] = {}

_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}
_CHANGES_SHAPE = frozenset({"detach", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"})


def torchsymbol(*names: str, reflects: Sequence[str] = (), inplace: bool = False) -> Callable[[Callable], Symbol]:
    """Makes the decorated meta function an operation, called as the function without a trailing `_`.

    Args:
        names: dotted names under `torch` of the callables that are recorded as it, first the one that runs it. None
            given: `torch.NAME` and `torch.Tensor.NAME`. Where torch has the in-place form of one (`add_`, `__iadd__`),
            that is entered in `in_place` too.
        reflects: names of the callables that are the operation with swapped arguments.
        inplace: whether the first of the callables has a parameter `inplace`.
    """

    def decorate(meta: Callable) -> Symbol:
        name = meta.__name__.removesuffix("_")
        given = names or tuple(n for n in (name, f"Tensor.{name}") if find(n) is not None)
        symbol = Symbol(name, "ltorch", _with_numpy_names(meta, given))
        operations[name] = symbol
        stands_for[symbol] = given[0]
        for dotted in given:
            _enter(dotted, symbol)
        for dotted in reflects:
            reflected[find(dotted)] = symbol
        if inplace:
            inplace_argument[find(given[0])] = symbol
        return symbol

    return decorate


def _with_numpy_names(meta: Callable, given: Sequence[str]) -> Callable:
    """`meta`, called with NumPy's names of its parameters too, where torch's callables take these: `axis` for `dim`."""
    parameters = inspect.signature(meta).parameters
    names = {theirs: ours for theirs, ours in _NUMPY_NAMES.items() if ours in parameters}
    if not names or all(dotted.startswith("nn.functional") for dotted in given):
        return meta

    @functools.wraps(meta)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {names.get(k, k): v for k, v in kwargs.items()}
        return meta(*args, **kwargs)

    return renamed


def find(dotted: str) -> Callable | None:
    """What `torch.<dotted>` is, or None if this torch has none."""
    try:
        return operator.attrgetter(dotted)(torch)
    except AttributeError:
        return None


def _enter(dotted: str, symbol: Symbol) -> None:
    """Enters a callable and its in-place form in the tables."""
    function = find(dotted)
    if function is not None:  # else it is in-place only (`copy_`), or another version of torch has it
        torch_functions[function] = symbol
    path, _, name = dotted.rpartition(".")
    form = f"__i{name[2:]}" if name.startswith("__") else f"{name}_"
    written = find(f"{path}.{form}".removeprefix("."))
    if written is not None:
        (in_place_view if name in _CHANGES_SHAPE else in_place)[written] = symbol


def is_number(x: Any) -> bool:
    """Whether `x` is a number, or one of a trace."""
    return isinstance(x, bool | int | float | complex | NumberProxy)


def sizes_of(sizes: tuple, named: Sequence[int] | int | None = None) -> tuple[int, ...]:
    """The sizes that `f(2, 3)` or `f((2, 3))` was given, or `f(size=(2, 3))` where `named` is that argument."""
    if named is not None:
        sizes = (named,)
    if len(sizes) == 1 and isinstance(sizes[0], tuple | list):
        sizes = sizes[0]
    return tuple(map(as_size, sizes))


def unsupported(operation: str, **arguments: Any) -> None:
    """NotImplementedError if any of the arguments is given (neither None nor False)."""
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise NotImplementedError(f"{operation} with {name}={value!r}")
