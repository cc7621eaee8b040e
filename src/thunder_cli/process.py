"""The worker's process as the front sees it: a stream of events, whatever happens to the process."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

from thunder_cli.events import Event, Failure, Finished, Output, Started, decode
from thunder_cli.job import Job

GRACE = 3.0  # seconds that the worker gets to say where it was when its time was up
DRAIN = 1.0  # seconds to wait for the ends of pipes that a child of the program may hold open


def run(job: Job, environment: dict[str, str]) -> Iterator[Event]:
    """Do the job in a worker, and give its events and the program's output as they come.

    A worker that dies or exceeds the time limit gives a Failure at the end.
    """
    receive, send = os.pipe()
    command = [sys.executable, "-u", "-P", "-m", "thunder_cli.worker", str(send), job.encode()]
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # for the worker, until it can say where it was
    worker = subprocess.Popen(command, env=environment, pass_fds=[send], stdout=subprocess.PIPE)
    os.close(send)
    events: queue.Queue[Event] = queue.Queue()
    told = LineReader(receive, decode, events)
    printed = LineReader(worker.stdout.fileno(), _output, events)
    readers = [told, printed]
    limit = Limit(worker, job.timeout)
    started = finished = False
    handler = signal.signal(signal.SIGINT, lambda *_: limit.interrupt())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    try:
        while worker.poll() is None or any(reader.is_alive() for reader in readers) or not events.empty():
            try:
                event = events.get(timeout=0.05)
            except queue.Empty:
                limit.check()
                if worker.poll() is not None and limit.drained():
                    break
                continue
            if isinstance(event, Started):
                started = True
                limit.begin()
            limit.told |= isinstance(event, Failure) and event.kind == "interrupted"
            if isinstance(event, Finished):
                finished = True
            else:
                yield event
            limit.check()
    finally:
        signal.signal(signal.SIGINT, handler)
        if worker.poll() is None:
            worker.kill()
        worker.wait()
    if printed.rest:
        yield _output(printed.rest)
    if not finished and not limit.told:
        yield _death(worker.returncode, job, limit) if started or limit.asked else _no_start(worker.returncode)


def _output(line: bytes) -> Output:
    return Output(line.decode(errors="replace").rstrip("\r"))


class LineReader(threading.Thread):
    """Puts what comes through a pipe, line by line, on a queue. `rest` is the line that has not ended."""

    def __init__(self, pipe: int, parse: Callable[[bytes], Event], events: "queue.Queue[Event]"):
        super().__init__(daemon=True)
        self.pipe, self.parse, self.events = pipe, parse, events
        self.rest = b""
        self.start()

    def run(self) -> None:
        while chunk := os.read(self.pipe, 1 << 16):
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            for line in lines:
                self.events.put(self.parse(line))


class Limit:
    """The time limit of a worker: first it is asked to say where it is, then killed."""

    def __init__(self, worker: "subprocess.Popen[bytes]", seconds: float | None):
        self.worker, self.seconds = worker, seconds
        self.deadline: float | None = None
        self.asked = self.killed = self.interrupted = self.begun = self.told = False
        self.ended: float | None = None

    def begin(self) -> None:
        """The program starts; what came before, importing torch, does not count."""
        self.begun = True
        if self.seconds is not None and self.deadline is None:
            self.deadline = time.monotonic() + self.seconds

    def check(self) -> None:
        if self.deadline is None or time.monotonic() < self.deadline or self.killed:
            return
        if not self.asked:
            self.asked, self.deadline = True, self.deadline + GRACE
            self.worker.send_signal(signal.SIGUSR1)
        else:
            self.killed = True
            self.worker.kill()

    def interrupt(self) -> None:
        """The user wants an end, as the worker knows: at once if it has not begun or is asked again."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.asked = self.interrupted = True
        self.deadline = time.monotonic() + (GRACE if self.begun else 0.0)

    def drained(self) -> bool:
        """Whether the process ended so long ago that nothing more will come through its pipes."""
        self.ended = self.ended or time.monotonic()
        return time.monotonic() - self.ended > DRAIN


def _death(code: int, job: Job, limit: Limit) -> Failure:
    """Why a worker ended without saying so."""
    program = os.path.basename(job.script) if job.script else job.module
    if limit.interrupted:
        return Failure("interrupted", f"{program} was interrupted.")
    if limit.killed:
        return Failure(
            "program",
            f"{program} was still running after {job.timeout:g} seconds, did not end when asked to, and was killed.\n"
            "It hangs outside of Python code, or catches every exception; a longer time comes with --timeout SECONDS.",
        )
    how = f"was killed by {signal_name(-code)}" if code < 0 else f"ended its process with exit code {code} (os._exit?)"
    hint = "\nIt killed itself, or the system did, as it does when memory runs out." if code == -signal.SIGKILL else ""
    return Failure(
        "program",
        f"{program} {how}.{hint}\nWhat was traced until then is recorded. Run the script without thunder to see "
        "whether it does so alone.",
    )


def _no_start(code: int) -> Failure:
    return Failure(
        "ours", f"the process that traces did not start (exit code {code}); what it said is above.\nTry thunder doctor."
    )


def signal_name(number: int) -> str:
    """`SIGSEGV (Segmentation fault)`"""
    try:
        return f"{signal.Signals(number).name} ({signal.strsignal(number)})"
    except ValueError:
        return f"signal {number}"
