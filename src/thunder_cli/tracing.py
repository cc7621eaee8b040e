"""One call of the entry, traced: what thunder made of it, its result and eager's. Runs in the worker."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import torch

import thunder
import thunder.examine
from thunder.core.errors import ThunderError
from thunder.core.observing import observing
from thunder.core.pytree import tree_flatten
from thunder_cli import trouble
from thunder_cli.arguments import check_runs_when_called, input_values
from thunder_cli.compare import compare, same_randomness
from thunder_cli.describe import describe_decisions, describe_fusions, describe_guards, describe_stage
from thunder_cli.entry import Call, compiled_of, is_jitted, plain
from thunder_cli.errors import CommandError
from thunder_cli.events import Decisions, Event, Guards, Inputs, Progress, Result
from thunder_cli.job import Job
from thunder_cli.journal import Journal, LaterCalls
from thunder_cli.state import State, different, leaves


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
        self.subject: Any = None  # of which later calls can be told what is different
        self.later_calls = LaterCalls(emit)
        if not job.grad:  # then the traced call ran without gradients, which later calls do not
            self.later_calls.reasons.add("grad mode: False -> True")

    def __call__(self, call: Call) -> Any:
        """Trace `call` and run it; gives the program what it goes on with.

        Without `--grad`, the program goes on with the plain result if gradients are on in it: it may need them. Then
        thunder gets the copies, else eager does. Either way each object sees one call. What the program jitted itself
        has no plain result.
        """
        with self.own_failures():
            check_runs_when_called(call)
            self.emit(Inputs(input_values(call), call.origin))
            jitted = is_jitted(call.subject)
            plain_goes_on = torch.is_grad_enabled() and not self.job.grad and not jitted
            copied, why_not = copy_call(call)
            traced, untraced = (copied, call) if plain_goes_on and copied else (call, copied)
            self.state = State(call.subject, (call.args, call.kwargs, plain(call.subject)))
            with same_randomness():
                result = self.run_traced(traced, untraced or call)
            self.finished = True
            with self.grad_mode():
                if self.reason_to_recompile(call) is None:  # else what was traced are copies, which guards tell apart
                    self.subject = call.subject
            if untraced is None:
                self.emit(Result(repr(result), None, f"not compared with eager: {why_not}"))
                return result
            left = self.state.changes()
            self.state.restore()
        eager = untraced.run()
        with self.own_failures():
            equal, words = compare(result, eager)
            if equal and (what := self.left_differently(traced, left, untraced)):
                equal, words = False, what
            self.emit(Result(repr(result), equal, words))
        return eager if untraced is call else result

    def left_differently(self, traced: Call, left: dict[str, Any], untraced: Call) -> str | None:
        """What the traced call has left otherwise than eager: in what it is given, or in what it reaches by name."""
        ends = [leaves((call.args, call.kwargs, plain(call.subject))) for call in (traced, untraced)]
        return different(*ends, compare) or different(left, self.state.changes(), compare)

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

    def run_traced(self, call: Call, untraced: Call) -> Any:
        """Trace and run `call` with thunder; if that fails, `untraced` tells whether the program fails by itself."""
        self.emit(Progress(f"tracing {self.job.entry}"))
        try:
            self.jitted = self.jit(call.subject)
            with self.grad_mode(), observing(Journal(self.emit, self.report)):
                result = self.jitted(*call.args, **call.kwargs)
        except CommandError:
            raise
        except Exception as raised:
            error = raised
        else:
            self.report()
            return result
        self.report()
        self.emit(self.failure(error, untraced))
        raise Failed from error

    def grad_mode(self) -> Any:
        return torch.set_grad_enabled(self.job.grad and torch.is_grad_enabled())

    @contextmanager
    def later(self, call: Call) -> Iterator[None]:
        """Around a later call of the entry: tells why it is, or would be, compiled again.

        What the program jitted is observed. Otherwise the program goes on with the plain entry, and only the guards
        are asked: nothing is run twice.
        """
        if is_jitted(call.subject):
            with observing(self.later_calls):
                yield
            return
        with suppress(Exception), self.grad_mode():  # what fails here is no matter of the program's
            if call.subject == self.subject and (reason := self.reason_to_recompile(call)):
                self.later_calls.recompiled(reason)
        yield

    def reason_to_recompile(self, call: Call) -> str | None:
        return compiled_of(self.jitted).reason_to_recompile(*call.args, **call.kwargs)

    def jit(self, subject: Any) -> Any:
        """What runs `subject` with thunder: itself, if the program jitted it.

        Prints and the like are no reason not to show a trace: they are warned of.
        """
        if self.job.executors is None:
            return subject if is_jitted(subject) else thunder.jit(subject, sharp_edges="warn")
        if is_jitted(subject):
            raise CommandError(
                f"--executors does not apply: the program jits {self.job.entry}.\nGive thunder.jit executors= there."
            )
        return thunder.jit(subject, executors=executors(self.job.executors), sharp_edges="warn")

    def failure(self, error: Exception, untraced: Call) -> Event:
        if isinstance(error, ThunderError):
            return trouble.command_failure(CommandError(str(error), code=3))
        self.state.restore()
        try:
            untraced.run()
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
            if decisions := describe_decisions(computation[0]):
                self.emit(Decisions(decisions))
            self.emit(Guards(describe_guards(prologue[-1])))


def executors(names: list[str]) -> list[Any]:
    try:
        return [thunder.get_executor(name) for name in names]
    except ValueError as error:
        raise CommandError(f"--executors: {error}.") from None


def copy_call(call: Call) -> tuple[Call | None, str]:
    """The same call on copies of everything it is given, or None and why there is none."""
    memo: dict[int, Any] = {}
    for x in tree_flatten((call.args, call.kwargs))[0]:
        if isinstance(x, torch.Tensor) and not x.is_leaf:  # which deepcopy refuses
            memo[id(x)] = x.detach().clone().requires_grad_(x.requires_grad)
    try:
        subject, args, kwargs = copy.deepcopy((plain(call.subject), call.args, call.kwargs), memo)
    except Exception as error:
        return None, f"its inputs cannot be copied ({type(error).__name__}: {error})"
    return replace(call, subject=subject, args=args, kwargs=kwargs), ""
