"""The worker: loads the user's program in this process, traces its entry, and sends events to the front.

Started as `python -P -m thunder_cli.worker FD JOB`, where FD is the pipe for events.
"""

import os
import platform
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import thunder
import thunder.virtual_cuda
from thunder_cli import inputs, trouble
from thunder_cli.errors import CommandError
from thunder_cli.events import Event, Failure, Finished, Progress, Started, encode
from thunder_cli.job import Job
from thunder_cli.script import Program, as_module
from thunder_cli.target import Target, no_such_entry

if TYPE_CHECKING:
    from thunder_cli.tracing import Tracing

TIMEOUT_SIGNAL = signal.SIGUSR1


class TimedOut(BaseException):
    """The front's time limit has passed. Not the program's to catch."""


class Channel:
    """The pipe to the front. What the program starts does not inherit it."""

    def __init__(self, descriptor: int):
        os.set_inheritable(descriptor, False)
        self.file = os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace")
        self.process = os.getpid()
        self.lock = threading.Lock()

    def emit(self, event: Event) -> None:
        if os.getpid() == self.process:  # not a forked child of the program
            with self.lock:
                self.file.write(encode(event) + "\n")
                self.file.flush()


def main() -> None:
    channel = Channel(int(sys.argv[1]))
    job = Job.decode(sys.argv[2])
    signal.signal(TIMEOUT_SIGNAL, _raise_timed_out)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # which the front has blocked until here
        work(job, channel.emit)
    except KeyboardInterrupt:
        channel.emit(Failure("interrupted", f"{job.script or job.module}: interrupted before it started."))
    except Exception as error:
        channel.emit(trouble.our_failure(error, "starting"))
    channel.emit(Finished())


def _raise_timed_out(*_: Any) -> None:
    raise TimedOut


def work(job: Job, emit: Callable[[Event], None]) -> None:
    """Do the job, and report how that went."""
    emit(Progress("importing torch"))
    thunder.jit  # noqa: B018  the function, before an import of the module of that name hides it
    from thunder_cli.tracing import Failed, Tracing

    if job.virtual:
        thunder.virtual_cuda.activate()
    emit(started(job))
    tracing = Tracing(job, emit)
    failure = None
    try:
        run_program(job, tracing, emit)
    except Failed:
        pass
    except BaseException as error:
        failure = program_end(error, job, tracing)
    try:
        tracing.report(final=True)
    except Exception as error:
        failure = failure or trouble.our_failure(error, "recording what was traced")
    if failure is not None:
        emit(failure)


def started(job: Job) -> Started:
    """What this process is and runs on."""
    import torch

    from thunder.executors.nvfuserex.backends import backend
    from thunder.executors.nvfuserex.version import version

    chosen = backend()
    versions = {"thunder": thunder.__version__, "torch": torch.__version__, "nvFuser": version()}
    versions["Python"] = platform.python_version()
    target = str(Target(job.script, job.module, job.entry))
    return Started(target, job.device, job.virtual, f"{chosen.name}: {chosen.reason}", versions)


def run_program(job: Job, tracing: "Tracing", emit: Callable[[Event], None]) -> None:
    """Load the user's program, and trace its entry on the inputs that the job, the program or its own call gives."""
    from thunder_cli.arguments import check_arity, check_required
    from thunder_cli.entry import Call, entry_object
    from thunder_cli.watch import Watch

    program = Program(job)
    emit(Progress(f"running {program.name}"))
    name, *path = job.entry.split(".")
    if job.inputs or program.defines("example_inputs"):
        namespace = program.load() if program.defines(name) else program.run(name, lambda value: value)
        args, kwargs, origin = supplied_inputs(job, namespace)
    else:
        watch = Watch(name, path, tracing, tracing.later)
        with watch.jit_calls():
            namespace = program.run(name, watch.bound)
        if watch.done:
            return
        args, kwargs, origin = (), {}, "nothing: it takes none"
    if name not in namespace:
        raise no_such_entry(program.target, program.source)
    subject, method = entry_object(namespace, name, path)
    call = Call(subject, args, kwargs, origin, method)
    if not args and not kwargs:
        check_required(call, job.entry, program.name)
    check_arity(call)
    tracing(call)


def supplied_inputs(job: Job, namespace: dict[str, Any]) -> tuple[tuple, dict[str, Any], str]:
    """Positional and keyword inputs from --input or else from the program's `example_inputs`, and which of the two."""
    if job.inputs:
        return tuple(inputs.make(text, namespace) for text in job.inputs), {}, "--input"
    given = namespace["example_inputs"]()
    if isinstance(given, dict):
        return (), given, "example_inputs()"
    return tuple(given) if isinstance(given, tuple | list) else (given,), {}, "example_inputs()"


def program_end(error: BaseException, job: Job, tracing: "Tracing") -> Failure | None:
    """The failure that the end of the program by an exception is, if it is one."""
    where = trouble.user_line(error) or job.script or job.module
    if isinstance(error, CommandError):
        return trouble.command_failure(error)
    if isinstance(error, TimedOut):
        return Failure(
            "program",
            f"{where}: still running after {job.timeout:g} seconds.\n"
            "It hangs there, or needs longer: give it time with --timeout SECONDS.",
        )
    if isinstance(error, KeyboardInterrupt):
        return Failure("interrupted", f"{where}: interrupted.")
    if isinstance(error, SystemExit):
        if tracing.finished and error.code in (None, 0):
            return None
        when = f"while {job.entry} was traced" if tracing.jitted is not None else f"before {job.entry} was called"
        when = f"after {job.entry} was traced" if tracing.finished else when
        return Failure("program", f"{where}: the program ended itself with sys.exit({error.code!r}) {when}.")
    failure = trouble.program_failure(error)
    if isinstance(error, ImportError) and "no known parent package" in str(error) and job.script is not None:
        failure.message += as_module(job.script, job.entry)
    return failure


if __name__ == "__main__":
    main()
