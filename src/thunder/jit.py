"""`thunder.jit`: options, the cache of specializations, the path of a call."""

import difflib
import functools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import MethodType
from typing import Any

import torch

import thunder.executors  # noqa: F401  registers the executors
from thunder.core.errors import NotRepresentable, ThunderError, UnsupportedError
from thunder.core.module import ThunderModule
from thunder.core.options import CacheOption, DebugOptions, SharpEdges, resolve
from thunder.core.printing import compile_trace
from thunder.core.recording import current_recorder
from thunder.core.trace import Trace
from thunder.executors.passes import transform_for_execution
from thunder.extend import Executor, get_default_executors, get_executor
from thunder.frontend.acquire import Acquired, acquire
from thunder.frontend.guards import Guard
from thunder.frontend.torch_state import torch_state
from thunder.transforms.dead_code_elimination import dead_code_elimination
from thunder.transforms.del_last_used import del_last_used

Transform = Callable[[Trace], Trace]

# Options of `jit` that executors read, and what they mean.
COMPILE_OPTIONS = {
    "nv_store_fusion_inputs": "keep the inputs of the last call of each fusion, for its repro script",
}


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
    guards: list[Guard]

    def run(self, inputs: tuple[torch.Tensor, ...]) -> Any:
        """What the program returns for tensors that the prologue has fetched."""
        grad_mode = self.state[0]
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


@dataclass
class CompileStats:
    """What happened so far: calls, hits, misses, and the traces of the last compilation or call."""

    cache_hits: int = 0
    cache_misses: int = 0
    specializations: list[Specialization] = field(default_factory=list)
    last_traces: list[Trace] = field(default_factory=list)
    last_prologue_traces: list[Trace] = field(default_factory=list)
    last_epilogue_traces: list[Trace] = field(default_factory=list)
    last_backward_traces: list[Trace] = field(default_factory=list)
    last_tracing_milliseconds: float = 0.0
    last: Specialization | None = None
    plain: ThunderError | None = None

    @property
    def calls(self) -> int:
        return self.cache_hits + self.cache_misses

    def show(self, specialization: Specialization) -> None:
        """Make the traces of a specialization the last ones."""
        self.last = specialization
        self.last_traces = specialization.traces
        self.last_prologue_traces = specialization.prologue_traces
        self.last_epilogue_traces = specialization.epilogue_traces


# What a prologue raises where something that it looks at is not there any more.
_GONE = (KeyError, AttributeError, IndexError, TypeError, ValueError)


class Compiled:
    """A callable that compiles what it is called with, once for each specialization."""

    def __init__(self, data: CompileData):
        self.data, self.stats = data, CompileStats()
        functools.update_wrapper(self, data.fn)

    def __get__(self, instance: Any, owner: type | None = None) -> Callable:
        """A jitted function in a class is a method."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_recorder() is not None or self.stats.plain is not None:
            return self.data.fn(*args, **kwargs)  # another jitted function is being traced: part of it
        state = torch_state()
        stats = self.stats
        for specialization in stats.specializations:
            if specialization.state != state:
                continue
            try:
                inputs = specialization.prologue(args, kwargs)
            except _GONE:
                continue
            if inputs is not None:
                stats.cache_hits += 1
                if specialization is not stats.last:
                    stats.show(specialization)
                return specialization.run(inputs)
        try:
            specialization, inputs = self.compile(state, args, kwargs)
        except NotRepresentable as e:
            reason = e.error
        else:
            return specialization.run(inputs)
        self.run_plainly_from_now_on(reason)
        return self.data.fn(*args, **kwargs)

    def run_plainly_from_now_on(self, reason: ThunderError) -> None:
        self.stats.plain = reason
        name = getattr(self.data.fn, "__qualname__", type(self.data.fn).__name__)
        warnings.warn(f"{name} is run plainly, not compiled.\n{reason}", stacklevel=3)

    # ---- a cache miss ----

    def compile(
        self, state: tuple, args: tuple, kwargs: dict[str, Any]
    ) -> tuple[Specialization, tuple[torch.Tensor, ...]]:
        self.stats.cache_misses += 1
        start = time.perf_counter()
        self.refuse_autocast()
        acquired = Acquired()
        traces = self.stats.last_traces = [acquired.computation]
        self.stats.last_prologue_traces, self.stats.last_epilogue_traces, self.stats.last = [], [], None
        gradients = torch.is_grad_enabled() and not self.data.disable_torch_autograd
        acquire(self.data.fn, args, kwargs, acquired, gradients=gradients, sharp_edges=self.data.sharp_edges)
        self.stats.last_prologue_traces = [acquired.prologue]
        self.stats.last_epilogue_traces = [acquired.epilogue] if acquired.epilogue else []
        for transform in self.passes():
            traces.append(transform(traces[-1]))
        self.stats.last_tracing_milliseconds = (time.perf_counter() - start) * 1e3
        specialization = Specialization(
            state,
            compile_trace(acquired.prologue),
            compile_trace(traces[-1], decorated=False),
            compile_trace(acquired.epilogue) if acquired.epilogue else None,
            acquired.epilogue_inputs,
            self.stats.last_prologue_traces,
            traces,
            self.stats.last_epilogue_traces,
            acquired.guards,
        )
        if self.data.cache_option is CacheOption.CONSTANT_VALUES and acquired.only_once is None:
            self.stats.specializations.insert(0, specialization)
        return specialization, acquired.inputs

    def passes(self) -> Sequence[Transform]:
        """From the acquired trace to the one that runs."""
        execution = functools.partial(transform_for_execution, executors=self.data.executors)
        return [dead_code_elimination, *map(_named, self.data.transforms), execution, del_last_used]

    def refuse_autocast(self) -> None:
        if torch._C._is_any_autocast_enabled():
            raise UnsupportedError(
                "Autocast is on, and tracing under autocast is not built yet.",
                "Call the jitted function outside of torch.autocast, with inputs in the dtype it should compute in.",
            )


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
    executors: Sequence[Executor | str] | None = None,
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
        cache: "constant values" compiles once for each value of what is no tensor; "no caching" compiles at each call.
        transforms: functions from trace to trace, run before the transform for execution.
        debug_options: see `thunder.DebugOptions`.
        sharp_edges: what to do where a program reads something that cannot be guarded.
        disable_torch_autograd: results carry no gradients, whatever the inputs say.
        compile_options: options that executors read: `nv_store_fusion_inputs`.

    Raises:
        ValueError: for an option that is none.
        NotImplementedError: for an option that is not built yet.
    """
    if fn is None:
        return functools.partial(
            jit, executors=executors, cache=cache, transforms=transforms, debug_options=debug_options,
            sharp_edges=sharp_edges, disable_torch_autograd=disable_torch_autograd, **compile_options,
        )  # fmt: skip
    if not callable(fn):
        raise TypeError(f"thunder.jit takes a function or a module, not {fn!r}")
    _check_compile_options(compile_options)
    data = CompileData(
        fn=fn,
        executors=_resolve_executors(executors),
        cache_option=_built(resolve(cache, CacheOption, "cache")),
        transforms=tuple(transforms or ()),
        debug_options=debug_options or DebugOptions(),
        sharp_edges=_built(resolve(sharp_edges, SharpEdges, "sharp_edges")),
        disable_torch_autograd=disable_torch_autograd,
        compile_options=compile_options,
    )
    compiled = Compiled(data)
    if isinstance(fn, torch.nn.Module):
        return ThunderModule(fn, compiled)
    return compiled


_NOT_BUILT = (CacheOption.SAME_INPUT, CacheOption.SYMBOLIC_VALUES, SharpEdges.WARN, SharpEdges.ERROR)


def _built(option: Any) -> Any:
    if option in _NOT_BUILT:
        raise NotImplementedError(f"{option.value!r} is not built yet")
    return option


def _check_compile_options(options: dict[str, Any]) -> None:
    for name in options:
        if name not in COMPILE_OPTIONS:
            close = difflib.get_close_matches(name, (*COMPILE_OPTIONS, *jit.__kwdefaults__), 1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(COMPILE_OPTIONS)}"
            raise ValueError(f"thunder.jit has no option {name!r}: {hint}")


def _resolve_executors(executors: Sequence[Executor | str] | None) -> tuple[Executor, ...]:
    chosen = list(get_default_executors()) if executors is None else list(executors)
    resolved = [get_executor(e) if isinstance(e, str) else e for e in chosen]
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
