"""A traced program: calls of operations in order, names, what made it and what that did."""

import keyword
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import torch

from thunder.core.numbers import as_size, sizes_by_value
from thunder.core.observing import current_observer
from thunder.core.proxies import NumberProxy, Proxy, TensorProxy
from thunder.core.recording import current_recorder, recording
from thunder.core.symbol import BoundSymbol, SourceLine, Symbol

if TYPE_CHECKING:
    from thunder.core.printing import Line

# Names that printed traces use for themselves; a value is never called one of them.
RESERVED_NAMES = frozenset(
    {"thunder", "torch", "ltorch", "prims", "no_autocast", "computation", "prologue", "epilogue", "backward"}
    | {"args", "kwargs", "operator", "builtins", "abs"}
    | {"slice", "id", "type", "len", "bool", "int", "float", "complex", "str", "bytes"}
    | {"tuple", "list", "dict", "set", "range"}
    | set(keyword.kwlist)
)


@dataclass(frozen=True, slots=True)
class Event:
    """What a pass did to one operation, and why.

    Attributes:
        kind: removed (from the program), replaced (its value, by another that was there), claimed (given to an
            executor), fused, refused (by a fusing executor; the reason says why), moved, inserted.
        operation: what was called, as traces print it.
        values: names of the operation's outputs.
        by: the executor or rule that acted.
        reason: why, in a few words.
        into: the fusion or the value that the operation or its value became part of, if any.
        source: the user's line.
    """

    kind: Literal["removed", "replaced", "claimed", "fused", "refused", "moved", "inserted"]
    operation: str
    values: tuple[str, ...]
    by: str
    reason: str
    into: str | None = None
    source: SourceLine | None = None

    @classmethod
    def of(cls, kind: str, bound_symbol: BoundSymbol, *, by: str, reason: str, into: str | None = None) -> "Event":
        """The event that happened to `bound_symbol`."""
        names = tuple(p.name for p in bound_symbol.outputs)
        return cls(kind, bound_symbol.symbol.id, names, by, reason, into, bound_symbol.source)


@dataclass(slots=True)
class Trace:
    """A program of bound symbols.

    Attributes:
        name: the name of the function it prints as: computation, prologue, epilogue or backward.
        args: the function's parameters.
        bound_symbols: its statements, in order.
        output: what it returns: proxies and Python values, nested in tuples, lists and dicts.
        constructed_by: the pass that made it, None for the trace acquired from the program.
        milliseconds: how long that took.
        events: what that pass did.
        unfused: for each operation outside of a fusion, as the executors run it, why it is (events of the kind
            "refused"); passes that follow keep it.
        names: names in use, so that passes can find new ones.
        decorated: whether it runs under `torch.no_grad` and `no_autocast`.
    """

    name: str
    args: tuple[Proxy, ...] = ()
    bound_symbols: list[BoundSymbol] = field(default_factory=list)
    output: Any = None
    constructed_by: str | None = None
    milliseconds: float = 0.0
    events: list[Event] = field(default_factory=list)
    unfused: list[Event] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    decorated: bool = True
    _callable: Callable | None = None

    def new_name(self, prefix: str) -> str:
        """`prefix` if it is a free name, else with the first free number behind; takes it."""
        name, n = prefix, 0
        while name in self.names or name in RESERVED_NAMES:
            n += 1
            name = f"{prefix}_{n}"
        self.names.add(name)
        return name

    def numbered_name(self, prefix: str) -> str:
        """The first free name of `prefix0, prefix1, ...`; takes it."""
        n = 0
        while f"{prefix}{n}" in self.names:
            n += 1
        self.names.add(f"{prefix}{n}")
        return f"{prefix}{n}"

    def lines(self) -> "list[Line]":
        """The printed lines, each with the bound symbol and user source line that it shows."""
        from thunder.core.printing import print_trace

        return print_trace(self).lines

    def canonical(self) -> str:
        """The trace as a Python program: the same text for the same program, wherever and whenever it is traced."""
        return "".join(line.text + "\n" for line in self.lines())

    def __str__(self) -> str:
        if self.constructed_by is None:
            return self.canonical()
        took = f"(took {round(self.milliseconds)} milliseconds)"
        return f"# Constructed by {self.constructed_by} {took}\n{self.canonical()}"

    __repr__ = __str__

    def python(self) -> str:
        """Same as `str(trace)`."""
        return str(self)

    def python_ctx(self) -> dict[str, Any]:
        """The live objects that the printed program refers to by name, without its imports."""
        from thunder.core.printing import print_trace

        return print_trace(self).context

    def python_callable(self) -> Callable:
        """The printed program, compiled, as a function of the trace's arguments."""
        if self._callable is None:
            from thunder.core.printing import compile_trace

            self._callable = compile_trace(self)
        return self._callable

    def derived(self, bound_symbols: Sequence[BoundSymbol], constructed_by: str, **changes: Any) -> "Trace":
        """A new trace with these statements and everything else, but for `changes`, as here."""
        fields = {"args": self.args, "output": self.output, "decorated": self.decorated, "names": set(self.names)}
        fields |= {"bound_symbols": list(bound_symbols), "constructed_by": constructed_by}
        fields |= {"unfused": list(self.unfused)}
        return Trace(self.name, **{**fields, **changes})


class PassTimer:
    """Times a pass: `with PassTimer() as timer: ...; timer.stamp(trace)`."""

    def __enter__(self) -> "PassTimer":
        self.start = perf_counter()
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def stamp(self, trace: Trace) -> Trace:
        trace.milliseconds = (perf_counter() - self.start) * 1e3
        return trace


class TraceRecorder:
    """Records the symbols called in this thread into a trace (see `record`)."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.scopes: list[list[BoundSymbol]] = [trace.bound_symbols]
        self.observer = current_observer()
        self.counter = 0
        self.context_names: dict[Callable, str] = {}
        # Takes the calls of symbols that the traced program itself makes, on what it holds in place of tensors.
        self.calls_of_program: Callable[[Symbol, tuple, dict[str, Any]], Any] | None = None
        # Puts the names of numbers in their place, where the program holds numbers that the trace has names for.
        self.named: Callable[[Any], Any] | None = None

    def context_name(self, stem: str, implementation: Callable) -> str:
        """The name of an operation that lives in the trace's context, one for each implementation."""
        if implementation not in self.context_names:
            self.context_names[implementation] = self.trace.numbered_name(stem)
        return self.context_names[implementation]

    def call(self, symbol: Symbol, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Infer what `symbol` returns, record the call, return proxies."""
        if self.calls_of_program is not None and len(self.scopes) == 1 and _has_tensor((args, kwargs)):
            return self.calls_of_program(symbol, args, kwargs)
        if self.named is not None:
            args, kwargs = sizes_by_value((args, kwargs))
        if symbol.is_prim:
            output = symbol.meta(*args, **kwargs)
            self.keep(self.call_of(symbol, args, kwargs, output))
            return output
        scope: list[BoundSymbol] = []
        self.scopes.append(scope)
        try:
            output = symbol.meta(*args, **kwargs)
        finally:
            self.scopes.pop()
        if scope:  # an operation that returned what it was given did nothing
            self.keep(self.call_of(symbol, args, kwargs, output, tuple(scope)))
        return output

    def call_of(
        self, symbol: Symbol, args: tuple, kwargs: dict[str, Any], output: Any, subsymbols: tuple[BoundSymbol, ...] = ()
    ) -> BoundSymbol:
        if self.named is not None:
            args, kwargs, output = self.named((args, kwargs, output))
        return BoundSymbol(symbol, args, kwargs, output, subsymbols)

    def keep(self, statement: BoundSymbol) -> None:
        self.scopes[-1].append(statement)
        if len(self.scopes) == 1:
            self.observer.recorded(self.trace, statement)

    def new_name(self) -> str:
        """The next `t0, t1, ...` that is free."""
        while True:
            name = f"t{self.counter}"
            self.counter += 1
            if name not in self.trace.names:
                self.trace.names.add(name)
                return name


def _has_tensor(tree: Any) -> bool:
    """Whether nested arguments hold a tensor, which is no proxy."""
    if isinstance(tree, tuple | list):
        return any(map(_has_tensor, tree))
    if isinstance(tree, dict):
        return any(map(_has_tensor, tree.values()))
    return isinstance(tree, torch.Tensor)


@contextmanager
def record(trace: Trace) -> Iterator[TraceRecorder]:
    """Calls of symbols inside the context become statements of `trace`."""
    recorder = TraceRecorder(trace)
    with recording(recorder):
        yield recorder


def tensor(
    like: TensorProxy | None = None,
    *,
    shape: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    strides: Sequence[int] | None = None,
) -> TensorProxy:
    """A new tensor of the trace that is being recorded; what is not given is as in `like` (strides: contiguous)."""
    recorder = current_recorder()
    assert recorder is not None, "proxies are made while a trace is recorded"
    if recorder.named is not None:
        shape, strides = (x if x is None else tuple(map(as_size, x)) for x in (shape, strides))
    return TensorProxy(
        recorder.new_name(),
        shape=like.shape if shape is None else shape,
        dtype=like.dtype if dtype is None else dtype,
        device=like.device if device is None else device,
        strides=strides,
    )


def number(kind: type) -> NumberProxy:
    """A new number of the trace that is being recorded."""
    return NumberProxy(current_recorder().new_name(), kind)
