"""Operations (`Symbol`) and calls of them in a trace (`BoundSymbol`)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from thunder.core.proxies import Proxy
from thunder.core.recording import current_recorder


class Tag(Enum):
    """What a transformation must know of an operation besides its metadata."""

    VIEW = auto()  # the output shares memory with the first argument
    SHAPE_ONLY = auto()  # moves or renames elements, computes nothing
    RANDOM = auto()  # reads and advances a random number generator
    EFFECT = auto()  # does something that no output shows; never removed, merged or reordered
    REDUCTION = auto()


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's program; `path` is relative to the program, never absolute."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.text}"


class Symbol:
    """An operation.

    Calling it while a trace is recorded records the call; calling it otherwise runs it (if an executor gave it an
    implementation, see `thunder.executors`).

    Args:
        name: how the operation is called, without its module.
        module: the name the operation is reached by in printed traces ("ltorch", "prims", "torch"), or None for an
            operation that lives in the trace's context (a fusion).
        meta: takes what the operation takes and returns proxies for what it returns. For a primitive it computes
            metadata; for a composite it calls the operations it is made of.
        is_prim: whether the operation has no decomposition.
        implementation: runs the operation on real values.
    """

    __slots__ = ("implementation", "is_prim", "meta", "module", "name", "tags")

    def __init__(
        self,
        name: str,
        module: str | None,
        meta: Callable | None = None,
        *,
        is_prim: bool = False,
        tags: tuple[Tag, ...] = (),
        implementation: Callable | None = None,
    ):
        self.name = name
        self.module = module
        self.meta = meta
        self.is_prim = is_prim
        self.tags = frozenset(tags)
        self.implementation = implementation

    @property
    def id(self) -> str:
        """`ltorch.add`: unique among operations that are not in a trace's context, and how traces print it."""
        return f"{self.module}.{self.name}" if self.module else self.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = current_recorder()
        if recorder is not None:
            return recorder.call(self, args, kwargs)
        if self.implementation is not None:
            return self.implementation(*args, **kwargs)
        if self.meta is not None and not self.is_prim:
            return self.meta(*args, **kwargs)
        raise NotImplementedError(f"{self.id} has no implementation: no executor that is imported runs it")

    def __repr__(self) -> str:
        return f"<Symbol {self.id}>"


class BoundSymbol:
    """One call of an operation in a trace.

    Attributes:
        args, kwargs: proxies and Python values, nested in tuples, lists and dicts.
        output: a proxy, or a nested structure of proxies and Python values.
        subsymbols: the calls that this one is made of, in order.
        source: the line of the user's program that made the call.
    """

    __slots__ = ("_inputs", "_outputs", "args", "kwargs", "output", "source", "subsymbols", "symbol")

    def __init__(
        self,
        symbol: Symbol,
        args: tuple,
        kwargs: dict[str, Any],
        output: Any,
        subsymbols: tuple["BoundSymbol", ...] = (),
        source: SourceLine | None = None,
    ):
        self.symbol = symbol
        self.args = args
        self.kwargs = kwargs
        self.output = output
        self.subsymbols = subsymbols
        self.source = source
        self._inputs: tuple[Proxy, ...] | None = None
        self._outputs: tuple[Proxy, ...] | None = None

    @property
    def inputs(self) -> tuple[Proxy, ...]:
        """The proxies among the arguments, each once, in order."""
        if self._inputs is None:
            self._inputs = unique_proxies((self.args, self.kwargs))
        return self._inputs

    @property
    def outputs(self) -> tuple[Proxy, ...]:
        """The proxies in the output that are not among the inputs, each once, in order."""
        if self._outputs is None:
            given = set(self.inputs)
            self._outputs = tuple(p for p in unique_proxies(self.output) if p not in given)
        return self._outputs

    def has_tag(self, tag: Tag) -> bool:
        return tag in self.symbol.tags

    @property
    def has_effect(self) -> bool:
        """Whether running the call does more than give its outputs."""
        return any(Tag.EFFECT in b.symbol.tags or Tag.RANDOM in b.symbol.tags for b in self.leaves())

    def leaves(self) -> Iterator["BoundSymbol"]:
        """The primitives (or opaque calls) that this call comes down to, in order."""
        if not self.subsymbols:
            yield self
        for sub in self.subsymbols:
            yield from sub.leaves()

    def replaced(self, **changes: Any) -> "BoundSymbol":
        """A copy with some attributes changed."""
        fields = {k: getattr(self, k) for k in ("symbol", "args", "kwargs", "output", "subsymbols", "source")}
        return BoundSymbol(**{**fields, **changes})

    def with_values(self, mapping: dict[Proxy, Any]) -> "BoundSymbol":
        """A copy, subsymbols included, in which the keys of `mapping` are replaced by its values."""
        if not mapping:
            return self
        return BoundSymbol(
            self.symbol,
            map_proxies(self.args, mapping),
            map_proxies(self.kwargs, mapping),
            map_proxies(self.output, mapping),
            tuple(sub.with_values(mapping) for sub in self.subsymbols),
            self.source,
        )

    def __repr__(self) -> str:
        given, made = (", ".join(p.name for p in proxies) for proxies in (self.inputs, self.outputs))
        return f"<{made} = {self.symbol.id}({given})>"


def unique_proxies(tree: Any) -> tuple[Proxy, ...]:
    """The proxies in nested tuples, lists, dicts and slices, each once, in order."""
    found: dict[Proxy, None] = {}
    _collect(tree, found)
    return tuple(found)


def _collect(tree: Any, found: dict[Proxy, None]) -> None:
    if isinstance(tree, Proxy):
        found[tree] = None
    elif isinstance(tree, tuple | list):
        for x in tree:
            _collect(x, found)
    elif isinstance(tree, dict):
        for x in tree.values():
            _collect(x, found)
    elif isinstance(tree, slice):
        _collect((tree.start, tree.stop, tree.step), found)


def map_proxies(tree: Any, mapping: dict[Proxy, Any]) -> Any:
    """The same nested structure with proxies replaced by what `mapping` gives for them, if anything."""
    if isinstance(tree, Proxy):
        return mapping.get(tree, tree)
    if isinstance(tree, tuple):
        mapped = [map_proxies(x, mapping) for x in tree]
        if hasattr(tree, "n_sequence_fields"):  # torch.return_types
            return type(tree)(mapped)
        return type(tree)(*mapped) if hasattr(tree, "_fields") else tuple(mapped)
    if isinstance(tree, list):
        return [map_proxies(x, mapping) for x in tree]
    if isinstance(tree, dict):
        return {k: map_proxies(v, mapping) for k, v in tree.items()}
    if isinstance(tree, slice):
        return slice(*(map_proxies(x, mapping) for x in (tree.start, tree.stop, tree.step)))
    return tree
