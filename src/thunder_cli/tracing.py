"""One call of the entry, traced: what thunder made of it, its result and eager's. Runs in the worker."""

import copy
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

import thunder
import thunder.examine
from thunder.core.devices import to_device
from thunder.core.dtypes import short_name
from thunder.core.errors import ThunderError
from thunder.core.pytree import tree_flatten
from thunder_cli import entry, trouble
from thunder_cli.compare import compare, same_randomness
from thunder_cli.describe import describe_fusions, describe_guards, describe_stage
from thunder_cli.errors import CommandError
from thunder_cli.events import Event, Guards, Inputs, Progress, Result
from thunder_cli.job import Job
from thunder_cli.journal import journal


class Failed(BaseException):
    """Ends the user's program: thunder could not trace the entry. Not theirs to catch."""


class Tracing:
    """Traces one call, and reports stages and fusions as they become known.

    Args:
        job: what was asked for.
        emit: takes the events.
    """

    def __init__(self, job: Job, emit: Callable[[Event], None]):
        self.job, self.emit = job, emit
        self.jitted: Any = None
        self.stages_sent: set[tuple[str, int]] = set()
        self.fusions_sent: set[str] = set()
        self.guards_sent = self.finished = False

    def __call__(self, call: entry.Call) -> Any:
        """Trace `call` and run it; gives the program what it goes on with.

        Without `--grad`, the program goes on with the plain result if gradients are on in it: it may need them. Then
        thunder gets the copies, else eager does. Either way each object sees one call. What the program jitted itself
        has no plain result.
        """
        with self.own_failures():
            self.emit(Inputs(input_values(call), call.origin))
            jitted = entry.is_jitted(call.subject)
            plain_goes_on = torch.is_grad_enabled() and not self.job.grad and not jitted
            copied, why_not = copy_call(call)
            traced, plain = (copied, call) if plain_goes_on and copied else (call, copied)
            with same_randomness():
                result = self.run_traced(traced, plain or call)
            self.finished = True
            if plain is None:
                self.emit(Result(repr(result), None, f"not compared with eager: {why_not}"))
                return result
        eager = plain.run()
        with self.own_failures():
            self.emit(Result(repr(result), *compare(result, eager)))
        return eager if plain is call else result

    @contextmanager
    def own_failures(self) -> Iterator[None]:
        """What is raised inside is no error of the program's, and ends it."""
        try:
            yield
        except CommandError as error:
            self.emit(trouble.command_failure(error))
            raise Failed from error
        except Exception as error:
            self.emit(trouble.our_failure(error, f"recording {self.job.entry}"))
            raise Failed from error

    def run_traced(self, call: entry.Call, plain: entry.Call) -> Any:
        """Trace and run `call` with thunder; if that fails, `plain` tells whether the program fails by itself."""
        self.emit(Progress(f"tracing {self.job.entry}"))
        try:
            self.jitted = call.subject if entry.is_jitted(call.subject) else self.jit(call.subject)
            with torch.set_grad_enabled(self.job.grad and torch.is_grad_enabled()), journal(self.emit), self.watched():
                result = self.jitted(*call.args, **call.kwargs)
        except CommandError:
            raise
        except Exception as raised:
            error = raised
        else:
            self.report()
            return result
        self.report()
        self.emit(self.failure(error, plain))
        raise Failed from error

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Inside, stages are reported when there are all of them, before they run, which may end the process."""
        compiled = entry.compiled_of(self.jitted)
        done = threading.Event()

        def compile(*args: Any) -> Any:
            specialization = type(compiled).compile(compiled, *args)
            self.report()
            threading.Thread(target=self.tell_fusions, args=(done,), daemon=True).start()
            return specialization

        compiled.compile = compile
        try:
            yield
        finally:
            done.set()
            del compiled.compile

    def tell_fusions(self, done: threading.Event) -> None:
        """Tell how many fusions have been compiled, until `done`."""
        wrappers = [wrapper for _, wrapper in thunder.examine.get_fusions(thunder.last_traces(self.jitted)[-1])]
        while wrappers and not done.wait(0.1):
            compiled = sum(wrapper.last_used is not None for wrapper in wrappers)
            self.emit(Progress(f"compiling fusions: {compiled} of {len(wrappers)}"))

    def jit(self, subject: Any) -> Any:
        options = {} if self.job.executors is None else {"executors": executors(self.job.executors)}
        return thunder.jit(subject, **options)

    def failure(self, error: Exception, plain: entry.Call) -> Event:
        if isinstance(error, ThunderError):
            return trouble.command_failure(CommandError(str(error), code=3))
        try:
            plain.run()
        except Exception as own:
            return trouble.program_failure(own)
        if isinstance(error, NotImplementedError):
            return trouble.command_failure(CommandError(f"thunder cannot do this yet: {error}", code=3))
        return trouble.our_failure(error, f"tracing {self.job.entry}")

    def report(self, final: bool = False) -> None:
        """Send the stages and fusions that are new; fusions once they have run, or in the `final` report."""
        if self.jitted is None:
            return
        statistics = thunder.compile_stats(self.jitted)
        computation = thunder.last_traces(self.jitted) or []
        backward = thunder.last_backward_traces(self.jitted) or []
        prologue = thunder.last_prologue_traces(self.jitted) or []
        for traces in (prologue, computation, backward, statistics.last_epilogue_traces or []):
            for index, trace in enumerate(traces):
                if (trace.name, index) not in self.stages_sent:
                    self.stages_sent.add((trace.name, index))
                    self.emit(describe_stage(trace, index))
        for traces in filter(None, (computation, backward)):
            for fusion in describe_fusions(traces[-1]):
                if fusion.path not in self.fusions_sent and (final or fusion.definition is not None):
                    self.fusions_sent.add(fusion.path)
                    self.emit(fusion)
        if prologue and not self.guards_sent:
            self.guards_sent = True
            self.emit(Guards(describe_guards(prologue[-1])))


def executors(names: list[str]) -> list[Any]:
    try:
        return [thunder.get_executor(name) for name in names]
    except ValueError as error:
        raise CommandError(f"--executors: {error}.") from None


def copy_call(call: entry.Call) -> tuple[entry.Call | None, str]:
    """The same call on copies of everything it is given, or None and why there is none."""
    memo: dict[int, Any] = {}
    for x in tree_flatten((call.args, call.kwargs))[0]:
        if isinstance(x, torch.Tensor) and not x.is_leaf:  # which deepcopy refuses
            memo[id(x)] = x.detach().clone().requires_grad_(x.requires_grad)
    subject = call.subject
    if entry.is_jitted(subject):
        subject = thunder.compile_data(subject).fn
    try:
        subject, args, kwargs = copy.deepcopy((subject, call.args, call.kwargs), memo)
    except Exception as error:
        return None, f"its inputs cannot be copied ({type(error).__name__}: {error})"
    return replace(call, subject=subject, args=args, kwargs=kwargs), ""


def input_values(call: entry.Call) -> dict[str, str]:
    """What each parameter is given, in a few words."""
    signature = entry.signature_of(call.subject, call.method)
    if signature is None:
        return {str(i): describe_input(x) for i, x in enumerate(call.args)}
    try:
        arguments = signature.bind(*call.args, **call.kwargs).arguments
    except TypeError:  # which the call itself will say better
        arguments = {**dict(enumerate(call.args)), **call.kwargs}
    return {str(name): describe_input(x) for name, x in arguments.items()}


def check_arity(call: entry.Call) -> None:
    """Raise if the entry does not take the inputs that it was given by --input or example_inputs."""
    signature = entry.signature_of(call.subject, call.method)
    if signature is None:
        return
    try:
        signature.bind(*call.args, **call.kwargs)
    except TypeError as error:
        raise CommandError(
            f"the inputs from {call.origin} do not fit: {error}.\n{entry.definition_line(call.subject)}"
            f"It takes {signature}, and got {len(call.args) + len(call.kwargs)}."
        ) from None


def plural(noun: str, count: int) -> str:
    return noun if count == 1 else noun + "s"


def describe_input(x: Any) -> str:
    """`"cuda:0 f32[2, 2]"`, a number as it is, and how many tensors are in a container."""
    if isinstance(x, torch.Tensor):
        return f'"{to_device(x)} {short_name(x.dtype)}[{", ".join(map(str, x.shape))}]"'
    if x is None or isinstance(x, bool | int | float | complex | str):
        return repr(x)
    leaves = tree_flatten(x)[0]
    tensors = sum(isinstance(leaf, torch.Tensor) for leaf in leaves)
    return f"{type(x).__name__} with {tensors} {plural('tensor', tensors)}" if tensors else type(x).__name__


def check_required(call: entry.Call, name: str, program: str) -> None:
    """Raise if the entry needs inputs: nothing gave it any."""
    signature = entry.signature_of(call.subject, call.method)
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [] if signature is None else signature.parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind not in kinds]
    if required:
        times = {1: "once", 2: "twice"}.get(len(required), f"{len(required)} times")
        raise CommandError(
            f"{name} asks for {len(required)} {plural('input', len(required))} and got none.\n"
            f"{entry.definition_line(call.subject)}"
            f"Give them with --input ({times}), define example_inputs() in {program}, "
            f"or let the script call {name} itself."
        )
