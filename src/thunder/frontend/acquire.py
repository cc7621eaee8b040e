"""One tracing of a program: its arguments become facades, it runs, its result becomes the end of the trace."""

import contextvars
import dataclasses
import inspect
import types
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum, auto
from operator import index
from types import MappingProxyType
from typing import Any

import torch

from thunder.core import prims
from thunder.core.errors import NotRepresentable, NumbersMustBeConstant
from thunder.core.numbers import SymbolicNumber
from thunder.core.options import SharpEdges
from thunder.core.printing import Live
from thunder.core.proxies import NumberProxy, Proxy, TensorProxy
from thunder.core.pytree import Structured, register_object, tree_flatten_one_level
from thunder.core.symbol import BoundSymbol
from thunder.core.trace import Trace, record
from thunder.frontend import effects
from thunder.frontend.aliasing import Handle
from thunder.frontend.arithmetic import Numbers
from thunder.frontend.dependence import (
    CONSTANTS,
    CONTAINERS,
    Attributes,
    Change,
    Dependence,
    attributes_of,
    copy_of,
    is_opaque,
    is_watched,
    refill,
    slots_of,
)
from thunder.frontend.guards import Access, Guard, Prologue
from thunder.frontend.history import History
from thunder.frontend.naming import assign_names
from thunder.frontend.newborn import Newborn
from thunder.frontend.observation import Observer
from thunder.frontend.sharp_edges import SharpEdgePolicy
from thunder.frontend.sizes import Sizes, varying
from thunder.frontend.sources import TensorSources
from thunder.frontend.state_guards import Snapshot, find_tensor, require_state
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
        needs_gradients: whether what comes out must be able to give gradients. The computation then returns two flat
            tuples, and the epilogue makes what the program returns.
        written: the inputs that the epilogue writes to.
        has_numbers: whether numbers that the program took are symbolic in the trace.
        has_effects: whether the program, which raised, had changed state until then.
        sizes: the sizes that are.
        numbers: the numbers of the computation, and what they are in this call.
    """

    computation: Trace = field(default_factory=lambda: Trace("computation"))
    prologue: Trace | None = None
    epilogue: Trace | None = None
    epilogue_inputs: tuple[int, ...] = ()
    inputs: tuple[torch.Tensor | int | float, ...] = ()
    only_once: str | None = None
    history: History | None = None
    needs_gradients: bool = False
    written: tuple[TensorProxy, ...] = ()
    has_numbers: bool = False
    has_effects: bool = False
    sizes: Sizes | None = None
    numbers: dict[NumberProxy, int | float] = field(default_factory=dict)

    @property
    def has_sizes(self) -> bool:
        return self.sizes is not None and self.sizes.are_used


class Symbolic(Enum):
    """Which numbers of the program are symbolic in its trace."""

    NONE = auto()
    OF_TENSORS = auto()  # what `item` gives
    OF_ARGUMENTS_TOO = auto()
    SIZES_TOO = auto()  # those of arguments
    STATE_TOO = auto()  # globals, what closures hold, attributes of the user's objects


def acquire(
    program: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    acquired: Acquired,
    *,
    gradients: bool,
    sharp_edges: SharpEdges,
    around: Callable[[], AbstractContextManager] = nullcontext,
    symbolic: Symbolic = Symbolic.OF_TENSORS,
) -> None:
    """Trace `program(*args, **kwargs)` into `acquired`; when an error comes, what was traced until then stays in it.

    Afterwards, Python state is what it was before.

    Args:
        gradients: whether results that require gradients must be able to give them.
        sharp_edges: what to do about what cannot be guarded.
        around: gives the context that the program runs in.
        symbolic: which numbers are symbolic.

    Raises:
        NotRepresentable: if the program must be run plainly.
        NumbersMustBeConstant: if symbolic numbers do not do.
    """
    context = contextvars.copy_context()  # which takes along what the program writes to context variables
    context.run(_acquire, program, args, kwargs, acquired, gradients, sharp_edges, around, symbolic)


def _acquire(
    program: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    acquired: Acquired,
    gradients: bool,
    sharp_edges: SharpEdges,
    around: Callable[[], AbstractContextManager],
    symbolic: Symbolic,
) -> None:
    dependence = Dependence()
    arguments = _Arguments(program, dependence, symbolic)
    edges = SharpEdgePolicy(sharp_edges, dependence)

    def function_started(frame: types.FrameType) -> None:
        dependence.function_started(frame)
        tracer.numbers.function_started(frame)

    def called(function: Any, first: Any) -> None:
        tracer.numbers.called(function, first)
        edges.called(function, first)

    observer = Observer(is_watched, function_started, called, acquired.history)
    with record(acquired.computation):
        tracer = arguments.tracer = Tracer(acquired.computation, observer, arguments.name_of_captured)
        tracer.numbers = Numbers(tracer, arguments.prologue, is_watched, symbolic is not Symbolic.NONE)
        if symbolic is Symbolic.STATE_TOO:
            dependence.symbolic_number = tracer.numbers.of_argument
        edges.source = lambda: tracer.site().source
        try:
            traced_args, traced_kwargs = arguments.facades_of(args, kwargs)
            dependence.program(program)
            with Newborn() as newborn:
                with around():
                    result = tracer.run(program, traced_args, traced_kwargs)
                dependence.forget(newborn.known())
            ending = _Ending(acquired, tracer, dependence, arguments, result)
            if gradients:
                ending.require_gradients()
            ending.write_computation()
            acquired.written = tuple(i.proxy for i in ending.written)
            tracer.checkpoints.fold()
        except Exception:
            is_written = any(i.handle.storage.version for i in tracer.inputs.values())
            acquired.has_effects = is_written or next(dependence.changes(), None) is not None
            raise
        finally:
            dependence.roll_back()
            arguments.take_back()
            tracer.numbers.is_closed = True
            acquired.has_numbers, acquired.sizes = tracer.numbers.is_used, tracer.numbers.sizes
            numbers, acquired.numbers = tracer.numbers.taken(), tracer.numbers.values()
            acquired.computation.args = (*(i.proxy for i in tracer.inputs.values()), *(p for p, _ in numbers))
            assign_names(acquired.computation, tracer.hints)
    if tracer.numbers.sizes.are_used and tracer.numbers.sizes.are_refused:
        raise NumbersMustBeConstant("sizes have been computed with in C++")
    ending.write_epilogue()
    if acquired.epilogue is not None and _takes_sizes(acquired.epilogue):
        raise NumbersMustBeConstant("a view that is made in the epilogue takes it")
    acquired.prologue = arguments.finish(ending.written, [p for p, _ in numbers])
    acquired.inputs = (*(i.real for i in tracer.inputs.values()), *(x for _, x in numbers))


def _takes_sizes(epilogue: Trace) -> bool:
    """Whether the epilogue uses a size, which it is not given."""
    used = (p for statement in epilogue.bound_symbols for p in statement.inputs)
    return any(isinstance(p, NumberProxy) and p.size is not None and p not in epilogue.args for p in used)


@dataclass(frozen=True, slots=True)
class _Filled:
    """A container of the caller's: itself, or the dictionary of its fields, and what was in it."""

    object: Any
    entries: Any
    before: Any
    access: Access


class _Arguments:
    """The way in: facades for the tensors among the arguments, and the prologue that fetches them again."""

    def __init__(self, program: Callable, dependence: Dependence, symbolic: Symbolic):
        self.program = program
        self.symbolic_numbers = symbolic not in (Symbolic.NONE, Symbolic.OF_TENSORS)
        self.symbolic_sizes = symbolic in (Symbolic.SIZES_TOO, Symbolic.STATE_TOO)
        self.dependence = dependence
        self.prologue = Prologue()
        self.filled: dict[int, _Filled] = {}  # the caller's containers that hold facades for now, by identity
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
        self.prologue.require_distinct_objects([filled.access for filled in self.filled.values()])
        return traced_args, traced_kwargs

    def argument(self, x: Any, access: Access) -> Any:
        """`x` with facades in the place of tensors; guards say what else was seen of it."""
        if isinstance(x, torch.Tensor):
            return self.tensor(x, access)
        if isinstance(x, list | dict | deque) or (dataclasses.is_dataclass(x) and not isinstance(x, type)):
            return self.container(x, access)
        if isinstance(x, tuple) and not isinstance(x, torch.Size):
            self.prologue.require_container(access, x)
            items = [self.argument(y, access.item(i)) for i, y in enumerate(x)]
            if all(new is old for new, old in zip(items, x)):
                return x
            return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
        if isinstance(x, slice):
            self.prologue.require(access.name, "type(", self.prologue.fetch(access), ") is slice")
            return slice(*(self.argument(getattr(x, n), access.attribute(n)) for n in ("start", "stop", "step")))
        if isinstance(x, set | frozenset):
            self.dependence.note_container(x)
            snapshot = Live(Snapshot(x, self.dependence), f"{access.name}_snapshot")
            self.prologue.require(access.name, snapshot, ".matches(", self.prologue.fetch(access), ")")
            return x
        if is_opaque(x):
            raise NotRepresentable(
                f"The argument {access.name} is a {type(x).__name__}, whose state cannot be guarded.",
                "Pass what is in it.",
            )
        if self.symbolic_numbers and type(x) in (int, float):
            return self.tracer.numbers.of_argument(x, access)
        self.prologue.require_value(access, x)
        return x

    def container(self, x: Any, access: Access) -> Any:
        """The caller's own container, filled with facades until the program has run."""
        if id(x) in self.filled:
            self.prologue.require_same_object(self.filled[id(x)].access, access)
            return x
        is_object = not isinstance(x, list | dict | deque)
        entries = fields_of(x) if is_object else x
        before = dict(entries) if is_object else copy_of(x)
        self.filled[id(x)] = _Filled(x, entries, before, access)
        if is_object:
            self.prologue.require(access.name, "type(", self.prologue.fetch(access), ") is ", type(x))
        else:
            self.prologue.require_container(access, x)
        for key, value in before.items() if isinstance(before, dict) else enumerate(before):
            new = self.argument(value, access.attribute(key) if is_object else access.item(key))
            if new is not value:
                entries[key] = new
        if is_object:
            key = None if entries is attributes_of(x) else id(x)
            kind = type(x).__name__
            self.dependence.store(entries, f"{kind}_state", f"{{}} (attribute of {kind})", key=key)
        else:
            self.dependence.note_container(x)
        return x

    def take_back(self) -> None:
        """The caller's containers hold what they did."""
        for filled in self.filled.values():
            refill(filled.entries, filled.before)

    def is_given(self, x: Any) -> bool:
        """Whether `x` is a container among the arguments, or the dictionary in which one keeps its fields."""
        return id(x) in self.filled or any(x is filled.entries for filled in self.filled.values())

    def tensor(self, x: torch.Tensor, access: Access) -> Traced:
        if id(x) in self.accesses:
            first, facade = self.accesses[id(x)]
            self.prologue.require_same_object(first, access)
            return facade
        handle = self.tracer.input(x, access.name)
        if self.symbolic_sizes:
            self.tracer.numbers.sizes.of_argument(x, handle.value, self.prologue.fetch(access, handle.value))
        facade = self.tracer.facade(handle)
        self.accesses[id(x)] = access, facade
        return facade

    def name_of_captured(self, x: torch.Tensor) -> str:
        access = self.access_of(x)
        self.accesses[id(x)] = access, None
        return access.name

    def access_of(self, x: torch.Tensor) -> Access:
        """Where a tensor that is no argument is kept; one found nowhere is held by the prologue itself."""
        if (owner := self.tracer.gradients.get(id(x))) is not None:
            return self.known_access(owner[1]).attribute("grad")
        return self.sources.find(x) or find_tensor(x, self.dependence) or Access("captured", Live(x, "captured"))

    def known_access(self, x: torch.Tensor) -> Access:
        if id(x) not in self.accesses:
            self.accesses[id(x)] = self.access_of(x), None
        return self.accesses[id(x)][0]

    def require_autograd(self, x: torch.Tensor, name: str, answer: bool) -> None:
        """What the program asked autograd about a tensor has the same answer; of objects, whether one is there."""
        place = (self.prologue.fetch(self.known_access(x)), f".{name}")
        if name != "is_leaf":
            place = (*place, " is None")
        subject = f"{self.known_access(x).name}.{name}"
        self.prologue.require_all([Guard(subject, (*place, f" is {answer}"), place, answer)])

    def finish(self, written: list[Input], numbers: list[NumberProxy]) -> Trace:
        """The prologue: it checks the state and fetches and checks every tensor that the trace used or looked at."""
        inputs = self.tracer.inputs
        arguments = {
            i: (self.prologue.fetch(access),) for i, (access, facade) in self.accesses.items() if facade is not None
        }
        arguments |= {i: (self.prologue.fetch(filled.access),) for i, filled in self.filled.items()}
        self.dependence.stores = {k: s for k, s in self.dependence.stores.items() if not self.is_given(s.entries)}
        require_state(self.prologue, self.dependence, {**inputs, **self.tracer.examined}, arguments)
        outputs = []
        for identity, i in inputs.items():
            access, _ = self.accesses[identity]
            outputs.append(self.prologue.require_tensor(access, i.real, i.proxy, varying(i.proxy.shape)))
        for asked in self.tracer.asked:
            self.require_autograd(*asked)
        for identity, real in self.tracer.examined.items():
            if identity not in inputs:
                self.prologue.require_tensor(self.access_of(real), real)
        if written:
            is_written = [i in written for i in inputs.values()]
            self.prologue.require_memory_of_their_own(
                [p for p, here in zip(outputs, is_written) if here],
                [p for p, here in zip(outputs, is_written) if not here],
            )
        return self.prologue.finish([*outputs, *numbers])


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


def fields_of(x: Any) -> Any:
    """The dictionary in which a dataclass keeps its fields."""
    entries = attributes_of(x)
    return Attributes(x, slots_of(type(x))) if entries is None else entries


class _Ending:
    """The way out: what the computation returns, and the epilogue that writes state and makes the program's result."""

    def __init__(self, acquired: Acquired, tracer: Tracer, dependence: Dependence, arguments: _Arguments, result: Any):
        self.acquired, self.tracer, self.dependence, self.arguments = acquired, tracer, dependence, arguments
        self.templates: dict[int, tuple[Any, Any]] = {}  # of mutable objects, by their identity: (object, template)
        self.shared: set[int] = set()  # ids of the templates that stand in several places
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
        if isinstance(x, SymbolicNumber):
            return x.value if x.is_constant else Handle(x.proxy)
        if isinstance(x, CONSTANTS):
            return Live(torch.Size(map(index, x)), "Size") if isinstance(x, torch.Size) else x
        if self.arguments.is_given(x) and not isinstance(x, tuple):
            self.acquired.only_once = f"it returns or keeps a {type(x).__name__} that it is given"
            return Live(x, type(x).__name__)
        if id(x) in self.dependence.containers:
            self.dependence.pinned.add(id(x))
            return Live(x, type(x).__name__)
        if type(x) is tuple:
            return tuple(self.template(y) for y in x)
        if id(x) in self.templates:
            template = self.templates[id(x)][1]
            self.shared.add(id(template))
            return template
        template = self.new_template(x)
        self.templates[id(x)] = x, template
        return template

    def new_template(self, x: Any) -> Any:
        if type(x) is list:
            return [self.template(y) for y in x]
        if type(x) is dict and all(type(k) in (str, int) for k in x):
            return {k: self.template(v) for k, v in x.items()}
        leaves, spec = flatten_result(x)
        if len(leaves) == 1 and leaves[0] is x:
            return Live(x, getattr(x, "__name__", type(x).__name__))
        return Structured(spec, [self.template(y) for y in leaves])

    def changed_value(self, change: Change) -> Any:
        """The value that a change wrote, as a template. Says why the trace is of no use for other calls, if so."""
        if self.arguments.is_given(change.target):
            self.acquired.only_once = f"it changes {change.subject} that it is given"
        if change.deleted:
            return None
        if change.key is not None or isinstance(change.target, types.CellType):
            if _is_new_object(change.value, self.dependence):
                self.acquired.only_once = (
                    f"it makes a new {type(change.value).__name__} and keeps it in {change.subject}"
                )
            return self.template(change.value)
        self.dependence.pinned.add(id(change.target))
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

    def require_gradients(self) -> None:
        """Find out whether any value that comes out requires gradients."""
        leaf = next((s for s in self.acquired.computation.bound_symbols if s.kwargs.get("requires_grad") is True), None)
        if leaf is not None:
            raise NotRepresentable(
                "The program makes a tensor that requires gradients of its own.",
                "Make it outside of the jitted function.",
                leaf.source,
            )
        values = [h.current() for h in handles_in((self.result, [v for _, v in self.changes]))]
        values += [i.handle.current() for i in self.written]
        # Without gradients, an input that is returned brings its own.
        own = set() if torch.is_grad_enabled() else {i.proxy for i in self.inputs}
        self.acquired.needs_gradients = any(v.requires_grad for v in values if v not in own)

    # ---- the traces ----

    def write_computation(self) -> None:
        """The computation returns what is computed; what must be made of inputs after writes is the epilogue's."""
        values = [v for _, v in self.changes]
        self.needs_epilogue = bool(self.written or self.changes or self.shared) or not is_plain(self.result)
        self.needs_epilogue |= self.acquired.needs_gradients
        if not self.needs_epilogue:
            self.acquired.computation.output = (map_handles(self.result, Handle.current), ())
            return
        self.flat = self.computed(self.result)
        written = [i.handle.current() for i in self.written]
        self.values = tuple(v for v in dict.fromkeys([*written, *self.computed(values)]) if v not in self.flat)
        self.acquired.computation.output = (self.flat, self.values)

    def computed(self, tree: Any) -> tuple[TensorProxy, ...]:
        """The values that the computation returns for a template: those it holds, or that name which view one is."""
        values: list[TensorProxy] = []
        for handle in handles_in(tree):
            values += handle.named_by if self.is_made_in_epilogue(handle) else [handle.current()]
        return tuple(dict.fromkeys(values))

    def is_made_in_epilogue(self, handle: Handle) -> bool:
        """Whether a value is an input, or a view of one, that the epilogue takes as it is in the end.

        With gradients, those of views of inputs are torch's own matter.
        """
        source = handle.base.input
        if source is None or not (self.acquired.needs_gradients or source in self.written):
            return False
        if any(i.proxy in handle.named_by for i in self.written):  # the epilogue would find another index
            return False
        return handle.writable or source in self.written

    def write_epilogue(self) -> None:
        if not self.needs_epilogue:
            return
        given = [*self.flat, *self.values]
        needed = [k for k, i in enumerate(self.inputs) if self.is_needed(i) and i.proxy not in given]
        args = (*given, *(self.inputs[k].proxy for k in needed))
        epilogue = Trace("epilogue", args, names={p.name for p in args}, decorated=False)
        with record(epilogue):
            for i in self.written:
                value = i.handle.current()
                prims.copy_(prims.detach(value) if value in self.tracer.grafted else value, i.proxy)
            self.made: dict[int, Proxy] = {}
            changes = [(change, self.made_in(epilogue, value)) for change, value in self.changes]
            epilogue.output = self.made_in(epilogue, self.result)
        epilogue.bound_symbols += effects.statements(changes, self.dependence)
        self.acquired.epilogue, self.acquired.epilogue_inputs = epilogue, tuple(needed)

    def made_in(self, epilogue: Trace, template: Any) -> Any:
        """The value that a template stands for; one that stands in several places is made once."""

        def shared(tree: Any, value: Any) -> Any:
            if id(tree) not in self.shared or isinstance(value, Live | Proxy):
                return value
            proxy = self.made[id(tree)] = Proxy(epilogue.new_name("made"))
            epilogue.bound_symbols.append(BoundSymbol(effects.make, (value,), {}, proxy))
            return proxy

        return map_handles(template, self.in_epilogue, shared, self.made)

    def is_needed(self, i: Input) -> bool:
        tree = (self.result, [v for _, v in self.changes])
        return i in self.written or any(h.base.input is i for h in handles_in(tree))

    def in_epilogue(self, handle: Handle) -> TensorProxy:
        """The value of a handle: what was computed, or the view that it is of an input that has been written."""
        if not self.is_made_in_epilogue(handle):
            return handle.current()
        if handle.parent is None:
            return handle.input.proxy
        parent = self.in_epilogue(handle.parent)
        view = handle.view(parent)
        carries = self.acquired.needs_gradients and handle.parent.current().requires_grad
        return view if handle.current().requires_grad or not carries else prims.detach(view)


def _is_new_object(x: Any, dependence: Dependence) -> bool:
    """Whether `x` is an object with a state of its own that was not there before."""
    if isinstance(x, (torch.Tensor, type, types.ModuleType, types.FunctionType, *CONSTANTS, *CONTAINERS)):
        return False
    return x in dependence.made or not dependence.has_met(x)


def map_handles(
    tree: Any,
    function: Callable[[Handle], Any],
    finish: Callable[[Any, Any], Any] = lambda tree, value: value,
    known: Mapping[int, Any] = MappingProxyType({}),
) -> Any:
    """The same template with handles replaced.

    Args:
        finish: what becomes of a mutable part; takes the part and its new value.
        known: the values of parts that have been seen, by identity.
    """
    if isinstance(tree, Handle):
        return function(tree)
    if type(tree) is tuple:
        return tuple(map_handles(x, function, finish, known) for x in tree)
    if id(tree) in known:
        return known[id(tree)]
    if type(tree) is list:
        return finish(tree, [map_handles(x, function, finish, known) for x in tree])
    if type(tree) is dict:
        return finish(tree, {k: map_handles(v, function, finish, known) for k, v in tree.items()})
    if isinstance(tree, Structured):
        return finish(tree, Structured(tree.spec, [map_handles(x, function, finish, known) for x in tree.leaves]))
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
    """What an object holds and its structure, one level of it; objects that hold traced tensors are opened."""
    leaves, spec = tree_flatten_one_level(result)
    if len(leaves) == 1 and leaves[0] is result and _holds_traced(result, set()):
        cls = type(result)
        if cls.__new__ is not object.__new__ or any(base.__dict__.get("__slots__") for base in cls.__mro__):
            raise NotRepresentable(
                f"The function returns a {cls.__name__} that holds tensors, and thunder cannot make another one.",
                "Return its tensors in a tuple, list or dict.",
            )
        register_object(cls)
        return tree_flatten_one_level(result)
    return leaves, spec


def _holds_traced(x: Any, seen: set[int]) -> bool:
    """Whether a facade can be reached from a plain object through attributes and containers."""
    if isinstance(x, Traced | SymbolicNumber):
        return True
    if id(x) in seen or isinstance(x, torch.Tensor | torch.nn.Module | type):
        return False
    seen.add(id(x))
    if isinstance(x, tuple | list):
        return any(_holds_traced(y, seen) for y in x)
    if isinstance(x, dict):
        return any(_holds_traced(y, seen) for y in x.values())
    return any(_holds_traced(y, seen) for y in getattr(x, "__dict__", {}).values())
