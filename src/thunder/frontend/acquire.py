"""One tracing of a program: its arguments become facades, it runs, its result becomes the end of the trace."""

import copy
import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from thunder.core import prims
from thunder.core.errors import UnsupportedError
from thunder.core.proxies import TensorProxy
from thunder.core.pytree import Structured, register_object, tree_flatten, tree_unflatten
from thunder.core.trace import Trace, record
from thunder.frontend.aliasing import Handle
from thunder.frontend.guards import Access, Prologue
from thunder.frontend.naming import assign_names
from thunder.frontend.sources import TensorSources
from thunder.frontend.tracing import Input, Traced, Tracer


@dataclass(slots=True)
class Acquired:
    """What one tracing gave.

    Attributes:
        prologue: checks what the trace depended on and fetches the computation's inputs.
        computation: takes the inputs; returns (result, values to write back).
        epilogue: takes the results, the values to write back and the inputs at `epilogue_inputs`, all flat; writes back
            and returns what the program returns. None where the computation's result is that and nothing is written.
    """

    computation: Trace = field(default_factory=lambda: Trace("computation"))
    prologue: Trace | None = None
    epilogue: Trace | None = None
    epilogue_inputs: tuple[int, ...] = ()


def acquire(program: Callable, args: tuple, kwargs: dict[str, Any], acquired: Acquired, *, gradients: bool) -> None:
    """Trace `program(*args, **kwargs)` into `acquired`; when an error comes, what was traced until then stays in it.

    Args:
        gradients: whether results that require gradients must be able to give them.
    """
    arguments = _Arguments(program)
    with record(acquired.computation):
        tracer = arguments.tracer = Tracer(acquired.computation, arguments.name_of_captured)
        try:
            traced_args, traced_kwargs = arguments.facades_of(args, kwargs)
            result = tracer.run(program, traced_args, traced_kwargs)
            ending = _Ending(acquired, tracer, result)
            if gradients:
                ending.refuse_gradients()
            ending.write_computation()
        finally:
            acquired.computation.args = tuple(i.proxy for i in tracer.inputs.values())
            assign_names(acquired.computation, tracer.hints)
    ending.write_epilogue()
    acquired.prologue = arguments.finish()


class _Arguments:
    """The way in: facades for the tensors among the arguments, and the prologue that fetches them again."""

    def __init__(self, program: Callable):
        self.program = program
        self.prologue = Prologue()
        self.sources = TensorSources(program)
        self.accesses: dict[int, tuple[Access, Traced | None]] = {}  # by identity of the real tensor
        self.tracer: Tracer

    def facades_of(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        self.prologue.require_call(args, kwargs)
        names = parameter_names(self.program, len(args))
        positional = (self.prologue.args.item(i).named(name) for i, name in enumerate(names))
        traced_args = tuple(self.argument(x, access) for x, access in zip(args, positional))
        traced_kwargs = {k: self.argument(x, self.prologue.kwargs.item(k).named(k)) for k, x in kwargs.items()}
        self.prologue.require_distinct_objects([access for access, _ in self.accesses.values()])
        return traced_args, traced_kwargs

    def argument(self, x: Any, access: Access) -> Any:
        """`x` with facades in the place of tensors; guards say what else was seen of it."""
        if isinstance(x, torch.Tensor):
            return self.tensor(x, access)
        if isinstance(x, tuple | list | dict) and not isinstance(x, torch.Size):
            self.prologue.require_container(access, x)
            keys = list(x) if isinstance(x, dict) else range(len(x))
            return _with_items(x, [self.argument(x[k], access.item(k)) for k in keys])
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            self.prologue.require(access.name, "type(", self.prologue.fetch(access), ") is ", type(x))
            return _with_fields(x, {n: self.argument(v, access.attribute(n)) for n, v in vars(x).items()})
        self.prologue.require_value(access, x)
        return x

    def tensor(self, x: torch.Tensor, access: Access) -> Traced:
        if id(x) in self.accesses:
            first, facade = self.accesses[id(x)]
            self.prologue.require_same_object(first, access)
            return facade
        facade = self.tracer.facade(self.tracer.input(x, access.name))
        self.accesses[id(x)] = access, facade
        return facade

    def name_of_captured(self, x: torch.Tensor) -> str:
        access = self.sources.find(x)
        self.accesses[id(x)] = access, None
        return access.name

    def finish(self) -> Trace:
        """The prologue: it fetches and checks every tensor that the trace used or looked at."""
        outputs = []
        for identity, i in self.tracer.inputs.items():
            access, _ = self.accesses[identity]
            outputs.append(self.prologue.require_tensor(access, i.real, i.proxy))
        for identity, real in self.tracer.examined.items():
            if identity not in self.tracer.inputs:
                self.prologue.require_tensor(self.sources.find(real), real)
        return self.prologue.finish(outputs)


def parameter_names(program: Callable, count: int) -> list[str]:
    """The names of the first `count` positional parameters; those of `*args` are numbered."""
    call = program.forward if isinstance(program, torch.nn.Module) else program
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in kinds][:count]
    rest = next((p.name for p in parameters if p.kind is inspect.Parameter.VAR_POSITIONAL), "arg")
    return names + [f"{rest}_{i}" for i in range(count - len(names))]


def _with_items(x: Any, items: list[Any]) -> Any:
    """A container like `x` with other items."""
    if isinstance(x, dict):
        new = {} if type(x) is dict else copy.copy(x)
        new.update(zip(x, items))
        return new
    if isinstance(x, list):
        new = [] if type(x) is list else copy.copy(x)
        new[:] = items
        return new
    return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)


def _with_fields(x: Any, values: dict[str, Any]) -> Any:
    new = copy.copy(x)
    for name, value in values.items():
        object.__setattr__(new, name, value)
    return new


class _Ending:
    """The way out: what the computation returns, and the epilogue that makes the program's result of it."""

    def __init__(self, acquired: Acquired, tracer: Tracer, result: Any):
        self.acquired, self.tracer = acquired, tracer
        self.inputs = list(tracer.inputs.values())
        leaves, self.spec = flatten_result(result)
        self.leaves = [tracer.handle_of(x) if isinstance(x, torch.Tensor) else x for x in leaves]
        self.inputs = list(tracer.inputs.values())  # a captured tensor may have been returned as it is
        self.written = [i for i in self.inputs if i.handle.current() is not i.proxy]
        self.refuse_overlap()

    def refuse_overlap(self) -> None:
        """A write to one of two inputs that share memory would not be seen through the other."""
        storages = [i.real.untyped_storage()._cdata for i in self.inputs]
        for i in self.written:
            if storages.count(i.real.untyped_storage()._cdata) > 1:
                raise UnsupportedError(
                    f"The program writes to {i.proxy.name}, which shares memory with another input.",
                    "Pass one of them as a copy.",
                )

    def refuse_gradients(self) -> None:
        values = [h.current() for h in self.leaves if isinstance(h, Handle)] + [i.handle.value for i in self.written]
        if any(v.requires_grad for v in values):
            raise UnsupportedError(
                "A result of this function requires gradients, and gradients are not built yet.",
                "Call it under torch.no_grad(), or jit it with disable_torch_autograd=True.",
            )

    def returned(self, handle: Handle) -> Any:
        """The proxy that the computation returns for a result; the handle itself if the epilogue must make it."""
        return handle if handle.base.input in self.written else handle.current()

    def write_computation(self) -> None:
        self.results = [self.returned(x) if isinstance(x, Handle) else x for x in self.leaves]
        values = [i.handle.current() for i in self.written]
        plain = tree_unflatten(self.results, self.spec)
        self.needs_epilogue = bool(values) or not is_plain(plain)
        if self.needs_epilogue:
            self.flat = tuple(dict.fromkeys(x for x in self.results if isinstance(x, TensorProxy)))
            self.values = tuple(v for v in dict.fromkeys(values) if v not in self.flat)
            self.acquired.computation.output = (self.flat, self.values)
        else:
            self.acquired.computation.output = (plain, ())

    def write_epilogue(self) -> None:
        if not self.needs_epilogue:
            return
        given = [*self.flat, *self.values]
        needed = [k for k, i in enumerate(self.inputs) if self.needs(i) and i.proxy not in given]
        args = (*given, *(self.inputs[k].proxy for k in needed))
        epilogue = Trace("epilogue", args, names={p.name for p in args}, decorated=False)
        with record(epilogue):
            for i in self.written:
                prims.copy_(i.handle.current(), i.proxy)
            results = [_on_input(x) if isinstance(x, Handle) else x for x in self.results]
        plain = tree_unflatten(results, self.spec)
        epilogue.output = plain if is_plain(plain) else Structured(self.spec, results)
        self.acquired.epilogue, self.acquired.epilogue_inputs = epilogue, tuple(needed)

    def needs(self, i: Input) -> bool:
        return i in self.written or any(isinstance(x, Handle) and x.base.input is i for x in self.results)


def _on_input(handle: Handle) -> TensorProxy:
    """The view that `handle` is, of the input itself."""
    if handle.parent is None:
        return handle.input.proxy
    return handle.view(_on_input(handle.parent))


def is_plain(tree: Any) -> bool:
    """Whether a printed program can write the container as it is."""
    if isinstance(tree, TensorProxy) or tree is None or type(tree) in (bool, int, float, complex, str, bytes):
        return True
    if type(tree) in (tuple, list):
        return all(map(is_plain, tree))
    if type(tree) is dict:
        return all(type(k) in (str, int) for k in tree) and all(map(is_plain, tree.values()))
    return False


def flatten_result(result: Any) -> tuple[list[Any], Any]:
    """The leaves and structure of what the program returned; objects that hold traced tensors are opened."""
    while True:
        leaves, spec = tree_flatten(result)
        holders = {type(x) for x in leaves if not isinstance(x, torch.Tensor) and _holds_traced(x, set())}
        if not holders:
            return leaves, spec
        for cls in holders:
            if cls.__new__ is not object.__new__ or hasattr(cls, "__slots__"):
                raise UnsupportedError(
                    f"The function returns a {cls.__name__} that holds tensors, and thunder cannot make another one.",
                    "Return its tensors in a tuple, list or dict.",
                )
            register_object(cls)


def _holds_traced(x: Any, seen: set[int]) -> bool:
    """Whether a facade can be reached from a plain object through attributes and containers."""
    if isinstance(x, Traced):
        return True
    if id(x) in seen or isinstance(x, torch.Tensor | torch.nn.Module | type):
        return False
    seen.add(id(x))
    if isinstance(x, tuple | list):
        return any(_holds_traced(y, seen) for y in x)
    if isinstance(x, dict):
        return any(_holds_traced(y, seen) for y in x.values())
    return any(_holds_traced(y, seen) for y in getattr(x, "__dict__", {}).values())
