"""`thunder.jit`: options, the cache of specializations, the path of a call."""

import copy
import dataclasses
import dis
import functools
import inspect
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from types import MethodType
from typing import Any

import torch

import thunder.executors  # noqa: F401  registers the executors
from thunder.core import prims
from thunder.core.errors import NotRepresentable, NumbersMustBeConstant, ThunderError, ValueChanged
from thunder.core.module import ThunderModule
from thunder.core.numbers import is_of_numbers
from thunder.core.observing import current_observer
from thunder.core.options import CacheOption, DebugOptions, SharpEdges, did_you_mean, resolve
from thunder.core.printing import Line, compile_trace, print_trace
from thunder.core.recording import current_recorder
from thunder.core.symbol import BoundSymbol, SourceLine, Tag
from thunder.core.trace import Trace
from thunder.executors import torch_autograd
from thunder.executors.passes import transform_for_execution
from thunder.extend import Executor, OperatorExecutor, get_default_executors, get_executor
from thunder.frontend.acquire import Acquired, Symbolic, acquire
from thunder.frontend.guards import without_guards
from thunder.frontend.history import Entry, History
from thunder.frontend.reasons import guard_failure, state_change
from thunder.frontend.torch_state import (
    is_inside_torch_transform,
    same_randomness_after,
    torch_state,
    without_autocast,
)
from thunder.frontend.tracebacks import hide_internal_frames
from thunder.transforms.autodiff import differentiate
from thunder.transforms.dead_code_elimination import dead_code_elimination
from thunder.transforms.del_last_used import del_last_used

# Where a program decided otherwise than its trace, and how.
Decided = tuple[SourceLine | None, ValueChanged]

# A transform may also have `around_program`, which gives a context that the program runs in, traced or not.
Transform = Callable[[Trace], Trace]

# Options of `jit` that executors read, and what they mean.
COMPILE_OPTIONS = {
    "nv_store_fusion_inputs": "keep the inputs of the last call of each fusion, for its repro script",
}


RECOMPILE_LIMIT = 8  # specializations, before a warning
CHECK_LIMIT = 8  # times that a decision by value may come out otherwise, before the callable runs plainly
FEW = 4  # specializations that are quicker tried than looked up


def fingerprint(args: tuple, kwargs: dict[str, Any], with_numbers: bool) -> tuple[Any, ...]:
    """A key that is the same for any two calls for which one specialization can hold."""
    parts = [_fingerprint(x, with_numbers) for x in (*args, *kwargs.values())]
    return len(args), tuple(kwargs), *parts


def _fingerprint(x: Any, with_numbers: bool) -> Any:
    if isinstance(x, torch.Tensor):
        return (x.shape if with_numbers else x.ndim), x.dtype
    if type(x) in (bool, str, type(None)) or (with_numbers and type(x) is int):
        return type(x), x
    return (float, repr(x)) if with_numbers and type(x) is float else type(x)


@dataclass(slots=True)
class Specialization:
    """One compiled program: under what it holds, how to run it, how it came to be."""

    state: tuple[Any, ...]
    prologue: Callable
    computation: Callable
    epilogue: Callable | None
    epilogue_inputs: tuple[int, ...]
    prologue_traces: list[Trace]
    traces: list[Trace]
    epilogue_traces: list[Trace]
    backward: torch_autograd.Backward | None = None
    may_start_over: bool = False
    computes_numbers: bool = False

    def __post_init__(self) -> None:
        leaves = [leaf.symbol for statement in self.traces[0].bound_symbols for leaf in statement.leaves()]
        checks = not {prims.check_value, prims.check_shape}.isdisjoint(leaves)
        self.computes_numbers = any(map(is_of_numbers, leaves))
        self.may_start_over = (checks or self.computes_numbers) and any(Tag.RANDOM in symbol.tags for symbol in leaves)

    def run(self, inputs: tuple[torch.Tensor, ...]) -> Any:
        """What the program returns for tensors that the prologue has fetched.

        Raises:
            ValueChanged: if the program would decide otherwise; nothing has happened then.
        """
        if self.may_start_over:
            with same_randomness_after(ValueChanged):
                return self.run_checked(inputs)
        return self.run_checked(inputs) if self.computes_numbers else self.run_once(inputs)

    def run_checked(self, inputs: tuple[torch.Tensor, ...]) -> Any:
        """As `run_once`; arithmetic of numbers that raises is a decision, for the program may catch it."""
        try:
            return self.run_once(inputs)
        except (ArithmeticError, ValueError) as e:
            line = self.line_of(e)
            if line is None or line.bound_symbol is None or not is_of_numbers(line.bound_symbol.symbol):
                raise
            raise ValueChanged("a number", type(e).__name__).with_traceback(e.__traceback__) from None

    def line_of(self, error: Exception) -> Line | None:
        """The line of the computation from which an error comes."""
        frames = traceback.walk_tb(error.__traceback__)
        numbers = [number for frame, number in frames if frame.f_code is self.computation.__code__]
        return print_trace(self.traces[-1]).lines[numbers[-1] - 1] if numbers else None

    def site_of(self, change: ValueChanged) -> SourceLine | None:
        """The user's line at which the program decided otherwise."""
        line = self.line_of(change)
        return line.source if line else None

    def run_once(self, inputs: tuple[torch.Tensor, ...]) -> Any:
        if torch._C._is_any_autocast_enabled():
            with without_autocast():
                return self.run_once(inputs)
        if self.backward is not None:
            outputs = torch_autograd.call(self.computation, self.backward, inputs)
            return self.epilogue(*outputs, *[inputs[i] for i in self.epilogue_inputs])
        grad_mode = torch.is_grad_enabled()
        if grad_mode:
            torch._C._set_grad_enabled(False)
        try:
            result, values = self.computation(*inputs)
            if self.epilogue is None:
                return result
            return self.epilogue(*result, *values, *[inputs[i] for i in self.epilogue_inputs])
        finally:
            if grad_mode:
                torch._C._set_grad_enabled(True)


class _RaisesAfterEffects(Exception):
    """The program raised while it was traced, and had changed state until then."""


@dataclass
class CompileData:
    """How a callable is compiled: what was given to `thunder.jit`."""

    fn: Callable
    executors: tuple[Executor, ...]
    cache_option: CacheOption
    transforms: tuple[Transform, ...]
    debug_options: DebugOptions
    sharp_edges: SharpEdges
    disable_torch_autograd: bool
    compile_options: dict[str, Any]

    def has_own_implementation(self, operation: BoundSymbol) -> bool:
        """Whether an executor other than torch's runs the operation by one of its own."""
        own = (e for e in self.executors if isinstance(e, OperatorExecutor) and e.name != "torch")
        return any(e.implementation(operation) is not None for e in own)


@dataclass
class CompileStats:
    """What happened so far: calls, hits, misses, and the traces of the last compilation or call."""

    cache_hits: int = 0
    cache_misses: int = 0
    specializations: list[Specialization] = field(default_factory=list)
    last_traces: list[Trace] = field(default_factory=list)
    last_prologue_traces: list[Trace] = field(default_factory=list)
    last_epilogue_traces: list[Trace] = field(default_factory=list)
    last_tracing_milliseconds: float = 0.0
    last: Specialization | None = None
    plain: ThunderError | None = None
    last_recompile_reason: str | None = None
    failed_checks: Counter[SourceLine | None] = field(default_factory=Counter)
    compiled_for_one_call: int = 0
    numbers_are_constant: bool = True
    last_history: History | None = None
    _by_fingerprint: dict[Any, list[Specialization]] = field(default_factory=dict)

    def keep(self, specialization: Specialization, args: tuple, kwargs: dict[str, Any]) -> None:
        # In this order: a thread that counts it must find it.
        key = fingerprint(args, kwargs, self.numbers_are_constant)
        self._by_fingerprint.setdefault(key, []).insert(0, specialization)
        self.specializations.insert(0, specialization)

    def candidates(self, args: tuple, kwargs: dict[str, Any]) -> Sequence[Specialization]:
        """The specializations that may hold for these arguments, the newest first."""
        if len(self.specializations) <= FEW:
            return self.specializations
        return self._by_fingerprint.get(fingerprint(args, kwargs, self.numbers_are_constant), ())

    @property
    def last_backward_traces(self) -> list[Trace]:
        return self.last.backward.traces if self.last is not None and self.last.backward is not None else []

    @property
    def calls(self) -> int:
        return self.cache_hits + self.cache_misses

    def show(self, specialization: Specialization) -> None:
        """Make the traces of a specialization the last ones."""
        self.last = specialization
        self.last_traces = specialization.traces
        self.last_prologue_traces = specialization.prologue_traces
        self.last_epilogue_traces = specialization.epilogue_traces


_INSIDE_TRANSFORM = (
    "The call is inside of torch.func or of forward-mode differentiation, in which traces do not take part.\n"
    "Jit the transformed function, thunder.jit(torch.func.grad(f)), or use thunder.grad or thunder.jvp."
)

# What a prologue raises where something that it looks at is not there any more.
_GONE = (KeyError, AttributeError, IndexError, TypeError, ValueError, ArithmeticError, RuntimeError)


class Compiled:
    """A callable that compiles what it is called with, once for each specialization."""

    def __init__(self, data: CompileData):
        is_symbolic = data.cache_option is CacheOption.SYMBOLIC_VALUES
        self.data, self.stats = data, CompileStats(numbers_are_constant=not is_symbolic)
        self.lock = threading.RLock()  # one thread compiles at a time; calls that find what they need do not wait
        self.torch_state = tuple if data.cache_option is CacheOption.SAME_INPUT else torch_state
        self.contexts = [t.around_program for t in data.transforms if hasattr(t, "around_program")]
        functools.update_wrapper(self, data.fn)

    def __get__(self, instance: Any, owner: type | None = None) -> Callable:
        """A jitted function in a class is a method."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_recorder() is not None:
            return self.run_plainly(args, kwargs)  # being traced as part of another jitted function
        try:
            stats, decided = self.stats, None
            if stats.plain is not None:
                return self.run_plainly(args, kwargs)
            state, known = self.torch_state(), len(stats.specializations)
            for specialization in stats.candidates(args, kwargs):
                if specialization.state != state:
                    continue
                try:
                    inputs = specialization.prologue(args, kwargs)
                except _GONE:
                    continue
                if inputs is None:
                    continue
                try:
                    result = specialization.run(inputs)
                except ValueChanged as change:
                    decided = decided or (specialization.site_of(change), change)
                    continue
                stats.cache_hits += 1
                if specialization is not stats.last:
                    stats.show(specialization)
                return result
            return self.miss(state, args, kwargs, known, decided)
        except BaseException as e:
            self.hide_internal_frames(e)
            raise  # unlike `raise e`, this leaves out the present frame too

    @contextmanager
    def around_program(self) -> Iterator[None]:
        """What transforms want around the program wherever it runs, traced or plainly."""
        with ExitStack() as stack:
            for context in self.contexts:
                stack.enter_context(context())
            yield

    def run_plainly(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if not self.contexts:
            return self.data.fn(*args, **kwargs)
        with self.around_program():
            return self.data.fn(*args, **kwargs)

    def hide_internal_frames(self, error: BaseException) -> None:
        """Let an error that leaves the call show the user's frames only, unless the debug options say otherwise."""
        if not self.data.debug_options.show_internal_frames:
            hide_internal_frames(error)

    # ---- copies ----

    def compiling(self, fn: Callable) -> "Compiled":
        """A callable of its own that compiles `fn` in the same way."""
        return type(self)(dataclasses.replace(self.data, fn=fn))

    def __copy__(self) -> "Compiled":
        return self.compiling(self.data.fn)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Compiled":
        return self.compiling(copy.deepcopy(self.data.fn, memo))

    def __reduce_ex__(self, protocol: int) -> Any:
        """Pickled is what is compiled and how, by the name if it has one, not what has been compiled."""
        if _named_object(self.data.fn) is self:
            return self.data.fn.__qualname__
        options = {f.name: getattr(self.data, f.name) for f in dataclasses.fields(self.data)}
        fn, extra = options.pop("fn"), options.pop("compile_options")
        options["cache"] = options.pop("cache_option")
        options["executors"] = [e.name for e in self.data.executors]
        return functools.partial(jit, **options, **extra), (fn,)

    # ---- a cache miss ----

    def miss(self, state: tuple, args: tuple, kwargs: dict[str, Any], known: int, decided: Decided | None) -> Any:
        """Compile for these arguments, and run.

        Args:
            known: how many specializations have been tried.
            decided: where and what the first of them, whose prologue held, decided otherwise.
        """
        if is_inside_torch_transform():
            warnings.warn(f"{self.name} is run plainly this time.\n{_INSIDE_TRANSFORM}", stacklevel=3)
            return self.run_plainly(args, kwargs)
        with self.lock:
            is_outdated = len(self.stats.specializations) != known or self.stats.plain is not None
            if not is_outdated and not (decided and self.gives_up(decided[0])):
                try:
                    if known:
                        self.note_recompilation(self.reason_of_miss(state, args, kwargs, decided))
                    specialization, inputs = self.compile(state, args, kwargs)
                except NotRepresentable as e:
                    if e.once:
                        return self.run_plainly(args, kwargs)
                    self.run_plainly_from_now_on(e.error)
                except _RaisesAfterEffects:
                    return self.run_plainly(args, kwargs)  # which has the effects, and raises
        if is_outdated or self.stats.plain is not None:  # another thread has compiled, or it cannot be compiled
            return self(*args, **kwargs)
        return specialization.run(inputs)

    def reason_to_recompile(self, *args: Any, **kwargs: Any) -> str | None:
        """Why a call with these arguments would be compiled anew; None if it would not, decisions by value aside."""
        state = self.torch_state()
        for specialization in self.stats.candidates(args, kwargs):
            with suppress(*_GONE):
                if specialization.state == state and specialization.prologue(args, kwargs) is not None:
                    return None
        return self.reason_of_miss(state, args, kwargs) if self.stats.specializations else None

    def reason_of_miss(self, state: tuple, args: tuple, kwargs: dict[str, Any], decided: Decided | None = None) -> str:
        """What was decided otherwise, or why the newest specialization does not hold."""
        if decided is not None:
            source, change = decided
            return f"{source or 'a decision'}: {change.expected!r} -> {change.now!r}"
        last = self.stats.specializations[0]
        if last.state != state:
            return state_change(last.state, state)
        return guard_failure(last.prologue_traces[0], args, kwargs)

    def note_recompilation(self, reason: str) -> None:
        """Keep the reason, and warn of it where that happens too often."""
        self.stats.last_recompile_reason = reason
        current_observer().recompiled(reason)
        if len(self.stats.specializations) == RECOMPILE_LIMIT:
            warnings.warn(
                f"{self.name} is recompiled for the {RECOMPILE_LIMIT}th time: {reason}\n"
                "Each value compiles anew; make it a tensor, or keep it the same.",
                stacklevel=4,
            )

    def gives_up(self, source: SourceLine | None) -> bool:
        """Count a decision for which no specialization is there; whether that is too often to go on compiling."""
        self.stats.failed_checks[source] += 1
        if self.stats.failed_checks[source] <= CHECK_LIMIT:
            return False
        error = ThunderError(
            f"What the program decides by a value came out otherwise {CHECK_LIMIT} times.",
            "Decide by tensor operations (torch.where, masks), or outside of the jitted function.",
            source,
        )
        self.run_plainly_from_now_on(error)
        return True

    def run_plainly_from_now_on(self, reason: ThunderError) -> None:
        self.stats.plain = reason
        if not current_observer().given_up(reason):
            warnings.warn(f"{self.name} is run plainly, not compiled.\n{reason}", stacklevel=4)

    @property
    def name(self) -> str:
        return getattr(self.data.fn, "__qualname__", type(self.data.fn).__name__)

    def compile(
        self, state: tuple, args: tuple, kwargs: dict[str, Any]
    ) -> tuple[Specialization, tuple[torch.Tensor, ...]]:
        start = time.perf_counter()
        choices = self.choices()
        acquired = self.acquire(args, kwargs, choices)
        try:
            specialization = self.specialization(state, acquired, start)
        except Exception:
            if not acquired.has_numbers:
                raise
            acquired = self.acquire(args, kwargs, choices[2:] if acquired.has_sizes else choices[-1:])
            specialization = self.specialization(state, acquired, start)
        self.stats.cache_misses += 1  # a call that cannot be compiled is none
        self.stats.show(specialization)  # hits of other threads may have shown theirs meanwhile
        self.keep(specialization, acquired, args, kwargs)
        current_observer().compiled()
        return specialization, acquired.inputs

    def choices(self) -> list[Symbolic]:
        """Which numbers are to be symbolic, the first choice first; the last one always does."""
        if self.stats.numbers_are_constant:
            return [Symbolic.OF_TENSORS, Symbolic.NONE]
        with_sizes = [Symbolic.STATE_TOO, Symbolic.SIZES_TOO]
        if self.data.transforms:  # which take sizes for constants
            with_sizes = []
        return [*with_sizes, Symbolic.OF_ARGUMENTS_TOO, Symbolic.NONE]

    def specialization(self, state: tuple, acquired: Acquired, start: float) -> Specialization:
        """The compiled program; all of its stages."""
        traces = self.stats.last_traces = [acquired.computation]  # hits of other threads may have shown theirs
        prologue_traces = self.stats.last_prologue_traces = [acquired.prologue]
        if self.data.cache_option is CacheOption.SAME_INPUT:
            prologue_traces.append(without_guards(acquired.prologue))
        epilogue_traces = self.stats.last_epilogue_traces = [acquired.epilogue] if acquired.epilogue else []
        backward = None
        for transform in (dead_code_elimination, *map(_named, self.data.transforms)):
            if (new := transform(traces[-1])) is not traces[-1]:
                traces.append(new)
        if acquired.needs_gradients:
            known = {p for statement in traces[0].bound_symbols for p in statement.outputs}
            differentiated = differentiate(
                traces[-1], acquired.written, known, self.data.has_own_implementation, acquired.numbers
            )
            traces.append(differentiated.forward)
            backward = torch_autograd.Backward(differentiated, self.stages, compile_backward)
        traces += self.stages(traces[-1])[1:]
        self.stats.last_tracing_milliseconds = (time.perf_counter() - start) * 1e3
        specialization = Specialization(
            state,
            compile_trace(prologue_traces[-1]),
            compile_trace(traces[-1], decorated=False),
            compile_trace(acquired.epilogue) if acquired.epilogue else None,
            acquired.epilogue_inputs,
            prologue_traces,
            traces,
            epilogue_traces,
            backward,
        )
        acquired.sizes.fix()
        return specialization

    def acquire(self, args: tuple, kwargs: dict[str, Any], choices: Sequence[Symbolic]) -> Acquired:
        """The program for these arguments; with numbers as constants where symbolic ones do not do."""
        for choice in choices:
            self.stats.last_history = History() if self.data.debug_options.record_history else None
            acquired = Acquired(history=self.stats.last_history)
            self.stats.last_traces = [acquired.computation]
            self.stats.last_prologue_traces, self.stats.last_epilogue_traces, self.stats.last = [], [], None
            gradients = not (self.data.disable_torch_autograd or torch.is_inference_mode_enabled())
            edges, around = self.data.sharp_edges, self.around_program
            try:
                acquire(
                    self.data.fn, args, kwargs, acquired,
                    gradients=gradients, sharp_edges=edges, around=around, symbolic=choice,
                )  # fmt: skip
            except (Exception, NotRepresentable, NumbersMustBeConstant) as e:
                if choice is not Symbolic.NONE and acquired.has_numbers:
                    continue
                if acquired.has_effects and not isinstance(e, ThunderError):
                    raise _RaisesAfterEffects from e
                raise
            if not (acquired.needs_gradients and acquired.has_sizes):
                break
        return acquired

    def keep(self, specialization: Specialization, acquired: Acquired, args: tuple, kwargs: dict[str, Any]) -> None:
        """Use the specialization for later calls, if it can stand for them."""
        if self.data.cache_option is CacheOption.NO_CACHING:
            return
        if acquired.only_once is None:
            self.stats.keep(specialization, args, kwargs)
            return
        self.stats.compiled_for_one_call += 1
        if self.stats.compiled_for_one_call > CHECK_LIMIT:
            way_out = "Keep such state outside of the jitted function."
            raise NotRepresentable(f"Every call must be compiled anew: {acquired.only_once}.", way_out)

    def stages(self, trace: Trace) -> list[Trace]:
        """From a trace to the one that runs."""
        execution = transform_for_execution(trace, self.data.executors, self.data.compile_options)
        return [trace, execution, del_last_used(execution)]


def compile_backward(trace: Trace) -> Callable:
    """The function that `trace` is, of a list of its arguments, which it empties."""
    return compile_trace(trace, decorated=False, as_list=True)


def _named_object(fn: Callable) -> Any:
    """What is found under the name of a function."""
    found: Any = sys.modules.get(getattr(fn, "__module__", None))
    for name in getattr(fn, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found


def _named(transform: Transform) -> Transform:
    """A user's transform, with its name on the trace it makes."""

    def apply(trace: Trace) -> Trace:
        new = transform(trace)
        if not isinstance(new, Trace):
            raise TypeError(f"the transform {transform_name(transform)} gave a {type(new).__name__}, not a Trace")
        if new is not trace and new.constructed_by in (None, trace.constructed_by):
            new.constructed_by = transform_name(transform)
        return new

    return apply


def transform_name(transform: Transform) -> str:
    return getattr(transform, "__name__", type(transform).__name__)


def jit(
    fn: Callable | None = None,
    /,
    *,
    executors: Sequence[Executor | str] | Executor | str | None = None,
    cache: CacheOption | str = CacheOption.CONSTANT_VALUES,
    transforms: Sequence[Transform] | None = None,
    debug_options: DebugOptions | None = None,
    sharp_edges: SharpEdges | str = SharpEdges.ALLOW,
    disable_torch_autograd: bool = False,
    **compile_options: Any,
) -> Callable:
    """Compile a function or a module just in time.

    The result is called as the original. What it is first called with is traced and compiled; later calls for which
    the same holds run what was compiled.

    Args:
        fn: a function, or an `nn.Module` (the result is then a `ThunderModule`). Left out, `jit` is a decorator.
        executors: who may run operations, first choice first, as executors or their names; torch is always the last.
        cache: "constant values" compiles once for each value of what is no tensor; "no caching" compiles at each call;
            "same input" compiles at the first call and checks nothing at the others: you promise that all that the
            program depends on, but for the values of tensors, stays as it is; "symbolic values" takes ints and floats
            for inputs, among the arguments and in globals, closures and attributes of the user's objects, and the sizes
            of row-major tensors among the arguments but for 0 and 1. It compiles anew only where the program decides
            otherwise by one (compares it, counts to it, makes a text of it). Where gradients are needed, sizes and
            numbers that are no arguments are constants, and so are those that the rule of a gradient decides by.
        transforms: functions from trace to trace, run before the transform for execution.
        debug_options: see `thunder.DebugOptions`.
        sharp_edges: what to do where a program has an effect that a trace cannot repeat, or reads what cannot be
            guarded: "allow" runs it plainly, with one warning; "warn" compiles it with a warning; "error" refuses it.
        disable_torch_autograd: results carry no gradients, whatever the inputs say.
        compile_options: options that executors read: `nv_store_fusion_inputs`.

    Raises:
        ValueError: for an option that is none.
    """
    if fn is None:
        return functools.partial(
            jit, executors=executors, cache=cache, transforms=transforms, debug_options=debug_options,
            sharp_edges=sharp_edges, disable_torch_autograd=disable_torch_autograd, **compile_options,
        )  # fmt: skip
    if not callable(fn):
        raise TypeError(f"thunder.jit takes a function or a module, not {fn!r}")
    if inspect.isgeneratorfunction(fn) or inspect.iscoroutinefunction(fn) or inspect.isasyncgenfunction(fn):
        raise NotImplementedError("thunder.jit of a generator or async function is not built; jit what it calls")
    _check_compile_options(compile_options)
    data = CompileData(
        fn=fn,
        executors=_resolve_executors(executors),
        cache_option=resolve(cache, CacheOption, "cache"),
        transforms=tuple(transforms or ()),
        debug_options=debug_options or DebugOptions(),
        sharp_edges=resolve(sharp_edges, SharpEdges, "sharp_edges"),
        disable_torch_autograd=disable_torch_autograd,
        compile_options=compile_options,
    )
    compiled = Compiled(data)
    if isinstance(fn, torch.nn.Module):
        return ThunderModule(fn, compiled)
    return compiled


def _check_compile_options(options: dict[str, Any]) -> None:
    for name in options:
        if name not in COMPILE_OPTIONS:
            options = (*COMPILE_OPTIONS, *jit.__kwdefaults__)
            hint = did_you_mean(name, options, otherwise=f"there are {', '.join(COMPILE_OPTIONS)}")
            if name in DebugOptions.list_options():
                hint = f"it is one of debug_options, thunder.DebugOptions({name}=...)"
            raise ValueError(f"thunder.jit has no option {name!r}: {hint}")


def _resolve_executors(executors: Sequence[Executor | str] | Executor | str | None) -> tuple[Executor, ...]:
    if isinstance(executors, str | Executor):
        executors = [executors]
    chosen = list(get_default_executors()) if executors is None else list(executors)
    resolved = [get_executor(e) if isinstance(e, str) else e for e in chosen]
    for e in resolved:
        if not isinstance(e, Executor):
            raise TypeError(f"executors are thunder.extend.Executor or their names, not {e!r}")
    torch_executor = get_executor("torch")
    return tuple(resolved if torch_executor in resolved else [*resolved, torch_executor])


# ---- questions about compiled callables ----


def _compiled_of(fn: Callable) -> Compiled:
    compiled = fn._compiled if isinstance(fn, ThunderModule) else fn
    if not isinstance(compiled, Compiled):
        raise TypeError(f"{fn!r} is not a function or module that thunder.jit gave")
    return compiled


def compile_data(fn: Callable) -> CompileData:
    """How `fn` is compiled."""
    return _compiled_of(fn).data


def compile_stats(fn: Callable) -> CompileStats:
    """What happened to `fn` so far."""
    return _compiled_of(fn).stats


def last_traces(fn: Callable) -> list[Trace]:
    """The stages of the computation that last ran or was compiled, the acquired one first.

    After an error: the stages there were until then.
    """
    return _compiled_of(fn).stats.last_traces


def last_prologue_traces(fn: Callable) -> list[Trace]:
    """The stages of the prologue: the guards, and where the computation's inputs come from."""
    return _compiled_of(fn).stats.last_prologue_traces


def last_backward_traces(fn: Callable) -> list[Trace]:
    """The stages of the backward computation; none where no gradients were needed."""
    return _compiled_of(fn).stats.last_backward_traces


def cache_option(fn: Callable) -> CacheOption:
    return _compiled_of(fn).data.cache_option


def cache_hits(fn: Callable) -> int:
    """How many calls found what they needed compiled."""
    return _compiled_of(fn).stats.cache_hits


def cache_misses(fn: Callable) -> int:
    """How many calls had to compile."""
    return _compiled_of(fn).stats.cache_misses


def last_recompile_reason(fn: Callable) -> str | None:
    """Why `fn` was last compiled again: what was different, with both values. None if it was not."""
    return _compiled_of(fn).stats.last_recompile_reason


def last_interpreted_instructions(fn: Callable) -> list[dis.Instruction]:
    """The instructions of the program and of torch's layers that ran while `fn` was last traced.

    Raises:
        RuntimeError: if that was not recorded.
    """
    return _last_history(fn).instructions


def last_interpreter_log(fn: Callable) -> list[Entry]:
    """The calls and lines of the last tracing of `fn`, and the calls of what is not the user's code, each nested.

    Raises:
        RuntimeError: if that was not recorded.
    """
    return _last_history(fn).log


def print_last_interpreter_log(fn: Callable) -> None:
    """Print `last_interpreter_log(fn)`, indented as it is nested."""
    for entry in last_interpreter_log(fn):
        print(entry)


def _last_history(fn: Callable) -> History:
    compiled = _compiled_of(fn)
    if not compiled.data.debug_options.record_history:
        way_out = "thunder.jit(fn, debug_options=thunder.DebugOptions(record_history=True))"
        raise RuntimeError(f"What ran while {compiled.name} was traced was not recorded. Ask for it: {way_out}")
    if compiled.stats.last_history is None:
        raise RuntimeError(f"{compiled.name} has not been traced yet: call it first")
    return compiled.stats.last_history


def list_transforms(fn: Callable) -> list[Transform]:
    """The transforms that were given to `thunder.jit`."""
    return list(_compiled_of(fn).data.transforms)


def last_compile_options(fn: Callable) -> None:
    """Print the compile options that `fn` was given, and what each means."""
    given = _compiled_of(fn).data.compile_options
    if not given:
        print("No compile options were given.")
    for name, value in given.items():
        print(f"{name}={value!r}: {COMPILE_OPTIONS[name]}")
