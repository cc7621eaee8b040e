"""A trace as Python source: `print_trace` makes the lines and the context, `compile_trace` the function.

The text with its context is a complete program. Every line knows the bound symbol and the user's line it shows.
"""

import enum
import linecache
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from thunder.core.proxies import NumberProxy, Proxy
from thunder.core.pytree import Structured
from thunder.core.symbol import BoundSymbol, SourceLine, Symbol
from thunder.core.trace import RESERVED_NAMES, Trace

INDENT = "  "

# What a printed trace imports, by the first part of the dotted names it uses.
IMPORTS: dict[str, tuple[str, ...]] = {
    "ltorch": ("import thunder", "import thunder.torch as ltorch"),
    "prims": ("from thunder.core import prims",),
    "torchex": ("from thunder.executors import torchex",),
    "operator": ("import operator",),
    "builtins": ("import builtins",),
}
STANDARD_IMPORTS = ("import torch", "from thunder.executors.torchex import no_autocast")
DECORATORS = ("@torch.no_grad()", "@no_autocast")

# How the statements of a symbol print where that is not `outputs = name(arguments)`.
statement_rules: dict[Symbol, Callable[[BoundSymbol, "Printer"], list[str]]] = {}


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line, what it shows, and how deep in the decomposition that stands (0: a statement)."""

    text: str
    bound_symbol: BoundSymbol | None = None
    source: SourceLine | None = None
    depth: int = 0


@dataclass(frozen=True, slots=True)
class PrintedTrace:
    lines: list[Line]
    context: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Live:
    """An object that a printed program takes from its context, under a name that begins with `stem`."""

    object: Any
    stem: str


class Printer:
    """Prints values and statements, and collects the imports and the context that they need."""

    def __init__(self, names: set[str]):
        self.names = set(names)
        self.imports: dict[str, None] = {}
        self.context: dict[str, Any] = {}
        self._context_names: dict[int, str] = {}
        self._numbers: dict[str, Iterator[int]] = {}

    def value(self, x: Any) -> str:
        """The expression that gives `x` in the printed program."""
        if isinstance(x, Proxy):
            return x.name
        if x is None or x is Ellipsis or (isinstance(x, bool | str | bytes) and type(x) in (bool, str, bytes)):
            return "..." if x is Ellipsis else repr(x)
        if type(x) in (int, float, complex):
            return self.number(x)
        if isinstance(x, torch.dtype | torch.memory_format | torch.layout):
            return str(x)
        if isinstance(x, torch.device):
            return f'torch.device("{x}")'
        if isinstance(x, type) and (path := _type_path(x)) is not None:
            return path
        return self.container(x)

    def number(self, x: float | complex) -> str:
        if isinstance(x, complex):
            return f"complex({self.number(x.real)}, {self.number(x.imag)})"
        if isinstance(x, float) and not math.isfinite(x):
            return f'float("{x}")'
        return repr(x)

    def container(self, x: Any) -> str:
        if isinstance(x, torch.Size) or type(x) is tuple:
            return f"({', '.join(map(self.value, x))}{',' * (len(x) == 1)})"
        if type(x) is list:
            return f"[{', '.join(map(self.value, x))}]"
        if type(x) is dict:
            return f"{{{', '.join(f'{self.value(k)}: {self.value(v)}' for k, v in x.items())}}}"
        if type(x) is slice:
            parts = (x.start, x.stop) if x.step is None else (x.start, x.stop, x.step)
            return f"slice({', '.join(map(self.value, parts))})"
        if isinstance(x, Live):
            return self.context_name(x.object, x.stem)
        if isinstance(x, Structured):
            return f"{self.context_name(x.spec)}.unflatten({self.value(x.leaves)})"
        return self.context_name(x)

    def context_name(self, x: Any, stem: str | None = None) -> str:
        """The name in the context of an object that has no expression: `GELU0` for one of type GELU."""
        if (name := self._context_names.get(id(x))) is None:
            stem = stem or (x.name if isinstance(x, enum.Enum) else getattr(x, "__name__", type(x).__name__))
            stem = stem if stem.isidentifier() else type(x).__name__
            numbers = self._numbers.setdefault(stem, count())
            name = next(f"{stem}{n}" for n in numbers if f"{stem}{n}" not in self.names)
            self.names.add(name)
            self._context_names[id(x)] = name
            self.context[name] = x
        return name

    def symbol(self, symbol: Symbol) -> str:
        """The expression that gives the operation; one without a module comes from the context."""
        if symbol.module is None:
            self.context[symbol.name] = symbol.implementation
        else:
            self.need(symbol.module)
        return symbol.id

    def need(self, module: str) -> None:
        """Have the program import what the first part of `module` is."""
        self.imports.update(dict.fromkeys(IMPORTS.get(module.partition(".")[0], ())))

    def call(self, bound_symbol: BoundSymbol) -> str:
        arguments = [self.value(x) for x in bound_symbol.args]
        arguments += [f"{k}={self.value(v)}" for k, v in bound_symbol.kwargs.items()]
        return f"{self.symbol(bound_symbol.symbol)}({', '.join(arguments)})"

    def target(self, output: Any) -> str:
        """The left side of an assignment of `output`; what is no proxy is dropped."""
        if isinstance(output, Proxy):
            return output.name
        if isinstance(output, tuple | list):
            return f"[{', '.join(map(self.target, output))}]"
        return "_"

    def statement(self, bound_symbol: BoundSymbol) -> list[str]:
        rule = statement_rules.get(bound_symbol.symbol)
        if rule is not None:
            return rule(bound_symbol, self)
        text = self.call(bound_symbol)
        named = [x for x in _flatten(bound_symbol.output) if isinstance(x, Proxy)]
        if not named:
            return [text]
        text = f"{self.target(bound_symbol.output)} = {text}"
        if len(named) == 1 or not bound_symbol.subsymbols:
            text += f"  # {', '.join(map(describe, named))}"
        return [text]


def _type_path(cls: type) -> str | None:
    """The expression that gives a class, for those that a printed program can name."""
    if cls.__module__ == "builtins" and cls.__name__ in RESERVED_NAMES:
        return cls.__name__
    return {torch.Tensor: "torch.Tensor", torch.nn.Parameter: "torch.nn.Parameter"}.get(cls)


def _flatten(tree: Any) -> Iterator[Any]:
    if isinstance(tree, tuple | list):
        for x in tree:
            yield from _flatten(x)
    else:
        yield tree


def describe(proxy: Proxy) -> str:
    """`c: "cuda:0 f32[2, 2]"`"""
    kind = proxy.type_string()
    return f'{proxy.name}: "{kind}"' if kind else proxy.name


def _is_told_elsewhere(p: Proxy) -> bool:
    """Whether the comment of a tensor says what the value is: its size."""
    return isinstance(p, NumberProxy) and p.size is not None and p.size.label == p.name


def print_trace(trace: Trace) -> PrintedTrace:
    """The lines of the program that `trace` is, and the objects that it refers to."""
    printer = Printer(trace.names)
    body = [Line(f"{INDENT}# {describe(p)}") for p in trace.args if not _is_told_elsewhere(p)]
    comments = Printer(trace.names)  # what a comment refers to needs no import
    body += _statements(trace.bound_symbols, printer, comments)
    body.append(Line(f"{INDENT}return {printer.value(trace.output)}"))
    head = list(printer.imports) + (list(STANDARD_IMPORTS) if trace.decorated else ["import torch"])
    head.sort(key=lambda line: (line.startswith("from"), line))
    head += ["", *(DECORATORS if trace.decorated else ())]
    head.append(f"def {trace.name}({', '.join(p.name for p in trace.args)}):")
    return PrintedTrace([Line(text) for text in head] + body, printer.context)


def _statements(
    bound_symbols: Sequence[BoundSymbol], printer: Printer, comments: Printer, depth: int = 0
) -> Iterator[Line]:
    """The statements, under them their decompositions as comments, above them the user's lines where these change.

    A decomposition repeats the user's line only where it holds several of them (a fusion does).
    """
    prefix = INDENT * (depth + 1) + ("# " if depth else "")
    previous: SourceLine | None = None
    show_source = depth == 0 or len({b.source for b in bound_symbols}) > 1
    for bound_symbol in bound_symbols:
        if show_source and bound_symbol.source is not None and bound_symbol.source != previous:
            previous = bound_symbol.source
            yield Line(f"{INDENT * (depth + 1)}# {_source_text(previous)}", None, previous, depth)
        for text in printer.statement(bound_symbol):
            yield Line(prefix + text, bound_symbol, bound_symbol.source, depth)
        yield from _statements(bound_symbol.subsymbols, comments, comments, depth + 1)


def _source_text(source: SourceLine) -> str:
    return f"{source.path}:{source.line}: {source.text}".rstrip()


_serial = count()


def compile_trace(trace: Trace, decorated: bool = True, as_list: bool = False) -> Callable:
    """The function that the printed program defines; tracebacks through it show the program's lines.

    Args:
        decorated: False leaves out the decorators, for a caller that has set the state they set.
        as_list: the function takes a list of the arguments and empties it, so that none outlives its last use.
    """
    printed = print_trace(trace)
    lines = [line.text for line in printed.lines]
    if as_list:
        names = ", ".join(p.name for p in trace.args)
        head = f"def {trace.name}({names}):"
        at = lines.index(head)
        lines[at : at + 1] = [f"def {trace.name}(args):", f"{INDENT}({names},) = args; args.clear()"]
    if not decorated:
        lines = ["" if text in DECORATORS else text for text in lines]
    text = "".join(line + "\n" for line in lines)
    filename = f"<thunder {trace.name} {next(_serial)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace = dict(printed.context)
    exec(compile(text, filename, "exec"), namespace)
    function = namespace[trace.name]
    weakref.finalize(function, linecache.cache.pop, filename, None).atexit = False
    return function
