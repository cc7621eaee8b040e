"""One tracing of a program: its arguments become facades, it runs, its result becomes the end of the trace."""

import copy
import dataclasses
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from thunder.core import prims
from thunder.core.errors import NotRepresentable, UnsupportedError
from thunder.core.options import SharpEdges
from thunder.core.printing import Live
from thunder.core.proxies import TensorProxy
from thunder.core.pytree import Structured, register_object, tree_flatten
from thunder.core.trace import Trace, record
from thunder.frontend import effects
from thunder.frontend.aliasing import Handle
from thunder.frontend.dependence import CONSTANTS, CONTAINERS, Change, Dependence, copy_of, is_watched
from thunder.frontend.guards import Access, Prologue
from thunder.frontend.history import History
from thunder.frontend.naming import assign_names
from thunder.frontend.newborn import Newborn
from thunder.frontend.observation import Observer
from thunder.frontend.sharp_edges import SharpEdgePolicy
from thunder.frontend.sources import TensorSources
from thunder.frontend.state_guards import find_tensor, require_state
from thunder.frontend.tracing import Input, Traced, Tracer


@dataclass(slots=True)
class Acquired:
    """What one tracing gave.

    Attributes:
        prologue: checks what the trace depended on and fetches the computation's inputs.
        computation: takes the inputs; returns (result, values to write back).
        epilogue: takes the results, the values to write back and the inputs at `epilogue_inputs`, all flat; writes back
            and returns what the program returns. None where the computation's result is that and nothing is written.
        inputs: the tensors of this call that the computation takes.
        only_once: why the trace cannot stand for another call, if it cannot.
        history: what ran while tracing, where that is recorded.
    """

    computation: Trace = field(default_factory=lambda: Trace("computation"))
    prologue: Trace | None = None
    epilogue: Trace | None = None
    epilogue_inputs: tuple[int, ...] = ()
    inputs: tuple[torch.Tensor, ...] = ()
    only_once: str | None = None
    history: History | None = None


def acquire(
    program: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    acquired: Acquired,
    *,
    gradients: bool,
    sharp_edges: SharpEdges,
) -> None:
    """Trace `program(*args, **kwargs)` into `acquired`; when an error comes, what was traced until then stays in it.

    After an error, Python state is what it was before.

    Args:
        gradients: whether results that require gradients must be able to give them.
        sharp_edges: what to do about what cannot be guarded.

    Raises:
        NotRepresentable: if the program must be run plainly.
    """
    dependence = Dependence()
    arguments = _Arguments(program, dependence)
    edges = SharpEdgePolicy(sharp_edges)
    observer = Observer(is_watched, dependence.function_started, edges.called, acquired.history)
    with record(acquired.computation):
        tracer = arguments.tracer = Tracer(acquired.computation, observer, arguments.name_of_captured)
        edges.source = lambda: tracer.site().source
        try:
            traced_args, traced_kwargs = arguments.facades_of(args, kwargs)
            dependence.program(program)
            with Newborn() as newborn:
                result = tracer.run(program, traced_args, traced_kwargs)
                dependence.forget(newborn.ids())
            ending = _Ending(acquired, tracer, dependence, arguments, result)
            if gradients:
                ending.refuse_gradients()
            ending.write_computation()
        except BaseException:
            dependence.roll_back()
            raise
        finally:
            acquired.computation.args = tuple(i.proxy for i in tracer.inputs.values())
            assign_names(acquired.computation, tracer.hints)
    ending.write_epilogue()
    arguments.prologue.require_all(edges.guards())
    acquired.prologue = arguments.finish()
    acquired.inputs = tuple(i.real for i in tracer.inputs.values())


class _Arguments:
    """The way in: facades for the tensors among the arguments, and the prologue that fetches them again."""

    def __init__(self, program: Callable, dependence: Dependence):
        self.program = program
        self.dependence = dependence
        self.prologue = Prologue()
        self.originals: dict[int, tuple[Any, Any]] = {}  # containers that the program got a copy of: (copy, original)
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
            new = _with_items(x, [self.argument(x[k], access.item(k)) for k in keys])
            self.originals[id(new)] = new, x
            self.dependence.containers[id(new)] = new, copy_of(new)
            return new
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
        access = self.access_of(x)
        self.accesses[id(x)] = access, None
        return access.name

    def access_of(self, x: torch.Tensor) -> Access:
        """Where a tensor that is no argument is kept; one found nowhere is held by the prologue itself."""
        return self.sources.find(x) or find_tensor(x, self.dependence) or Access("captured", Live(x, "captured"))

    def finish(self) -> Trace:
        """The prologue: it checks the state and fetches and checks every tensor that the trace used or looked at."""
        inputs = self.tracer.inputs
        arguments = {
            i: (self.prologue.fetch(access),) for i, (access, facade) in self.accesses.items() if facade is not None
        }
        require_state(self.prologue, self.dependence, {**inputs, **self.tracer.examined}, arguments)
        outputs = []
        for identity, i in inputs.items():
            access, _ = self.accesses[identity]
            outputs.append(self.prologue.require_tensor(access, i.real, i.proxy))
        for identity, real in self.tracer.examined.items():
            if identity not in inputs:
                self.prologue.require_tensor(self.access_of(real), real)
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
        return dict(zip(x, items)) if type(x) is dict else _with_values(x, items)
    if isinstance(x, list):
        new = [] if type(x) is list else copy.copy(x)
        new[:] = items
        return new
    return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)


def _with_values(x: dict, items: list[Any]) -> dict:
    """A dictionary of a class of its own, with other values, also where attributes hold them as well."""
    new = copy.copy(x)
    attributes = getattr(new, "__dict__", {})
    for key, value, item in zip(x, list(x.values()), items):
        dict.__setitem__(new, key, item)
        attributes.update({name: item for name, held in attributes.items() if held is value})
    return new


def _with_fields(x: Any, values: dict[str, Any]) -> Any:
    new = copy.copy(x)
    for name, value in values.items():
        object.__setattr__(new, name, value)
    return new


class _Ending:
    """The way out: what the computation returns, and the epilogue that writes state and makes the program's result."""

    def __init__(self, acquired: Acquired, tracer: Tracer, dependence: Dependence, arguments: _Arguments, result: Any):
        self.acquired, self.tracer, self.dependence, self.arguments = acquired, tracer, dependence, arguments
        self.result = self.template(result)
        self.changes = [(change, self.changed_value(change)) for change in dependence.changes()]
        self.inputs = list(tracer.inputs.values())
        self.written = [i for i in self.inputs if i.handle.current() is not i.proxy]
        self.refuse_overlap()

    # ---- values in terms of handles ----

    def template(self, x: Any) -> Any:
        """`x` with handles in the place of tensors; containers that were there before stay themselves."""
        if isinstance(x, torch.Tensor):
            return self.tracer.handle_of(x)
        if isinstance(x, CONSTANTS):
            return x
        if id(x) in self.dependence.containers and id(x) not in self.arguments.originals:
            return Live(x, type(x).__name__)
        if type(x) in (tuple, list):
            return type(x)(self.template(y) for y in x)
        if type(x) is dict and all(type(k) in (str, int) for k in x):
            return {k: self.template(v) for k, v in x.items()}
        leaves, spec = flatten_result(x)
        if len(leaves) == 1 and leaves[0] is x:
            return Live(x, getattr(x, "__name__", type(x).__name__))
        return Structured(spec, [self.template(y) for y in leaves])

    def changed_value(self, change: Change) -> Any:
        """The value that a change wrote, as a template. Says why the trace is of no use for other calls, if so."""
        if id(change.target) in self.arguments.originals:
            self.acquired.only_once = f"it changes {change.subject} that it is given"
        if change.deleted:
            return None
        if change.key is not None or isinstance(change.target, types.CellType):
            if _is_new_object(change.value, self.dependence):
                self.acquired.only_once = (
                    f"it makes a new {type(change.value).__name__} and keeps it in {change.subject}"
                )
            return self.template(change.value)
        items = copy_of(change.target)
        if isinstance(items, dict):
            return {k: self.template(v) for k, v in items.items()}
        return [self.template(v) for v in items]

    # ---- what is refused ----

    def refuse_overlap(self) -> None:
        """A write to one of two inputs that share memory would not be seen through the other."""
        storages = [i.real.untyped_storage()._cdata for i in self.inputs]
        for i in self.written:
            if storages.count(i.real.untyped_storage()._cdata) > 1:
                raise NotRepresentable(
                    f"The program writes to {i.proxy.name}, which shares memory with another input.",
                    "Pass one of them as a copy.",
                )

    def refuse_gradients(self) -> None:
        values = [h.current() for h in handles_in((self.result, [v for _, v in self.changes]))]
        if any(v.requires_grad for v in [*values, *(i.handle.value for i in self.written)]):
            raise UnsupportedError(
                "A result of this function requires gradients, and gradients are not built yet.",
                "Call it under torch.no_grad(), or jit it with disable_torch_autograd=True.",
            )

    # ---- the traces ----

    def write_computation(self) -> None:
        """The computation returns what is computed; what must be made of inputs after writes is the epilogue's."""
        values = [v for _, v in self.changes]
        self.needs_epilogue = bool(self.written or self.changes) or not is_plain(self.result)
        if not self.needs_epilogue:
            self.acquired.computation.output = (map_handles(self.result, Handle.current), ())
            return
        self.flat = self.computed(self.result)
        written = [i.handle.current() for i in self.written]
        self.values = tuple(v for v in dict.fromkeys([*written, *self.computed(values)]) if v not in self.flat)
        self.acquired.computation.output = (self.flat, self.values)

    def computed(self, tree: Any) -> tuple[TensorProxy, ...]:
        return tuple(dict.fromkeys(h.current() for h in handles_in(tree) if h.base.input not in self.written))

    def write_epilogue(self) -> None:
        if not self.needs_epilogue:
            return
        given = [*self.flat, *self.values]
        needed = [k for k, i in enumerate(self.inputs) if self.is_needed(i) and i.proxy not in given]
        args = (*given, *(self.inputs[k].proxy for k in needed))
        epilogue = Trace("epilogue", args, names={p.name for p in args}, decorated=False)
        with record(epilogue):
            for i in self.written:
                prims.copy_(i.handle.current(), i.proxy)
            changes = [(change, map_handles(value, self.in_epilogue)) for change, value in self.changes]
            epilogue.output = map_handles(self.result, self.in_epilogue)
        changes = [(self.on_original(change), value) for change, value in changes]
        epilogue.bound_symbols += effects.statements(changes, self.dependence)
        self.acquired.epilogue, self.acquired.epilogue_inputs = epilogue, tuple(needed)

    def on_original(self, change: Change) -> Change:
        """The change of the caller's container rather than of the copy that the program got."""
        pair = self.arguments.originals.get(id(change.target))
        return change if pair is None else dataclasses.replace(change, target=pair[1])

    def is_needed(self, i: Input) -> bool:
        tree = (self.result, [v for _, v in self.changes])
        return i in self.written or any(h.base.input is i for h in handles_in(tree))

    def in_epilogue(self, handle: Handle) -> TensorProxy:
        """The value of a handle: what was computed, or the view that it is of an input that has been written."""
        if handle.base.input not in self.written:
            return handle.current()
        if handle.parent is None:
            return handle.input.proxy
        return handle.view(self.in_epilogue(handle.parent))


def _is_new_object(x: Any, dependence: Dependence) -> bool:
    """Whether `x` is an object with a state of its own that was not there before."""
    if isinstance(x, (torch.Tensor, type, types.ModuleType, types.FunctionType, *CONSTANTS, *CONTAINERS)):
        return False
    return id(x) in dependence.made or not dependence.has_met(x)


def map_handles(tree: Any, function: Callable[[Handle], Any]) -> Any:
    """The same template with handles replaced."""
    if isinstance(tree, Handle):
        return function(tree)
    if type(tree) in (tuple, list):
        return type(tree)(map_handles(x, function) for x in tree)
    if type(tree) is dict:
        return {k: map_handles(v, function) for k, v in tree.items()}
    if isinstance(tree, Structured):
        return Structured(tree.spec, [map_handles(x, function) for x in tree.leaves])
    return tree


def handles_in(tree: Any) -> list[Handle]:
    found: list[Handle] = []
    map_handles(tree, found.append)
    return found


def is_plain(tree: Any) -> bool:
    """Whether a printed program can write the template as it is, with nothing but tensors and literals."""
    if isinstance(tree, Handle) or tree is None or type(tree) in (bool, int, float, complex, str, bytes):
        return True
    if type(tree) in (tuple, list):
        return all(map(is_plain, tree))
    return type(tree) is dict and all(map(is_plain, tree.values()))


def flatten_result(result: Any) -> tuple[list[Any], Any]:
    """The leaves and structure of an object; objects that hold traced tensors are opened."""
    while True:
        leaves, spec = tree_flatten(result)
        holders = {type(x) for x in leaves if not isinstance(x, torch.Tensor) and _holds_traced(x, set())}
        if not holders:
            return leaves, spec
        for cls in holders:
            if cls.__new__ is not object.__new__ or any(base.__dict__.get("__slots__") for base in cls.__mro__):
                raise NotRepresentable(
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
