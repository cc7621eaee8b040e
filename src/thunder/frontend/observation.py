"""Which of the user's functions run while a program is traced, and what they call.

By `sys.monitoring` from Python 3.12 on, by `sys.setprofile` and `sys.settrace` before. This file is the only one that
knows them.
"""

import sys
import threading
from collections.abc import Callable
from inspect import CO_VARARGS
from types import CodeType, FrameType, FunctionType, MethodType, SimpleNamespace
from typing import Any, Protocol

OnFunction = Callable[[FrameType], None]
OnCall = Callable[[Any, Any], None]
Watched = Callable[[CodeType], bool]


class Steps(Protocol):
    """What is told of every step of watched code, where that is asked for."""

    def entered(self, frame: FrameType) -> None: ...

    def line(self, frame: FrameType, number: int) -> None: ...

    def instruction(self, frame: FrameType, offset: int) -> None: ...

    def called(self, frame: FrameType, function: Any) -> None: ...


class Profiling:
    """Observes by `sys.setprofile`, which calls back for everything: pause it where the user's code does not run.

    Args:
        watched: says of code whether it is observed.
        on_function: is given the frame of each function of watched code that starts.
        on_call: is given each function that watched code calls, and its first argument.
        steps: is told of more, by `sys.settrace`.
    """

    def __init__(self, watched: Watched, on_function: OnFunction, on_call: OnCall, steps: Steps | None = None):
        self.watched, self.on_function, self.on_call, self.steps = watched, on_function, on_call, steps
        self.is_active = False

    def __enter__(self) -> "Profiling":
        self.outer, self.outer_trace = sys.getprofile(), sys.gettrace()
        self.is_active = True
        if self.steps is not None:
            sys.settrace(self.step)
        sys.setprofile(self.callback)
        return self

    def __exit__(self, *exc: object) -> None:
        self.is_active = False
        if self.outer is None or callable(self.outer):
            sys.setprofile(self.outer)
        else:
            self.outer.enable()  # cProfile's, which is no Python function
        if self.steps is not None:
            sys.settrace(self.outer_trace)

    def pause(self) -> None:
        if self.is_active:
            sys.setprofile(None)

    def resume(self) -> None:
        if self.is_active:
            sys.setprofile(self.callback)

    def callback(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            is_watched = self.watched(frame.f_code)
            if is_watched:
                self.on_function(frame)
            caller = frame.f_back
            while caller is not None and caller.f_code.co_filename.endswith(_WRAPPERS):
                caller = caller.f_back
            if caller is not None and self.watched(caller.f_code):
                function, first = _called_function(frame)
                if self.steps is not None and not is_watched:
                    self.steps.called(caller, function)
                self.on_call(function, first)
        elif event == "c_call" and self.watched(frame.f_code):
            if self.steps is not None:
                self.steps.called(frame, argument)
            self.on_call(argument, getattr(argument, "__self__", None))

    def step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if sys.getprofile() is None or not self.watched(frame.f_code):  # paused, or a library's
            return None
        if event == "call":
            frame.f_trace_opcodes = True
            self.steps.entered(frame)
        elif event == "line":
            self.steps.line(frame, frame.f_lineno)
        elif event == "opcode":
            self.steps.instruction(frame, frame.f_lasti)
        return self.step


# Where torch wraps functions that its compiler leaves alone, such as `torch.manual_seed`.
_WRAPPERS = ("torch/_compile.py", "torch/_dynamo/eval_frame.py")


def _called_function(frame: FrameType) -> tuple[Any, Any]:
    """The function that runs in a frame, or what is known of it, and its first argument."""
    code = frame.f_code
    first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
    if not code.co_argcount and code.co_flags & CO_VARARGS:
        first = next(iter(frame.f_locals.get(code.co_varnames[code.co_kwonlyargcount], ())), None)
    function = frame.f_globals.get(code.co_name)
    if getattr(function, "__code__", None) is code:
        return function, first
    for name in code.co_freevars:
        if isinstance(wrapped := frame.f_locals.get(name), FunctionType):  # a decorator's closure
            return wrapped, first
    module = frame.f_globals.get("__name__")
    return SimpleNamespace(__name__=code.co_name, __qualname__=code.co_qualname, __module__=module), first


class Monitoring:
    """Observes by `sys.monitoring`, which forgets code that is not watched. Arguments as those of `Profiling`."""

    def __init__(self, watched: Watched, on_function: OnFunction, on_call: OnCall, steps: Steps | None = None):
        self.watched, self.on_function, self.on_call, self.steps = watched, on_function, on_call, steps
        self.paused = False

    def __enter__(self) -> "Monitoring":
        self.outer = _tool.add(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _tool.remove(self.outer)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False


class _Tool:
    """Our tool of `sys.monitoring`: the threads that trace share it, and each hears of what it runs itself."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.observers: dict[int, Monitoring] = {}  # by thread
        self.codes: dict[int, CodeType] = {}  # watched code that has started; by identity, since equal code is not one
        self.id = 0

    def add(self, observer: Monitoring) -> Monitoring | None:
        """The current thread's observer is now this one; returns the one before."""
        thread = threading.get_ident()
        with self.lock:
            outer = self.observers.get(thread)
            if not self.observers:
                self.start()
            self.observers[thread] = observer
            sys.monitoring.restart_events()
        return outer

    def remove(self, outer: Monitoring | None) -> None:
        """The current thread's observer is the one before again; without any, monitoring ends."""
        with self.lock:
            del self.observers[threading.get_ident()]
            if outer is not None:
                self.observers[threading.get_ident()] = outer
            if not self.observers:
                self.stop()

    def start(self) -> None:
        monitoring, events = sys.monitoring, sys.monitoring.events
        free = [i for i in (3, 4, 0, 1, 2, 5) if monitoring.get_tool(i) is None]
        if not free:
            raise RuntimeError("thunder needs a tool of sys.monitoring to trace, and others use all six")
        self.id = free[0]
        monitoring.use_tool_id(self.id, "thunder")
        self.callbacks = {
            events.PY_START: self.started,
            events.CALL: self.called,
            events.LINE: self.line,
            events.INSTRUCTION: self.instruction,
        }
        for event, callback in self.callbacks.items():
            monitoring.register_callback(self.id, event, callback)
        monitoring.set_events(self.id, events.PY_START)

    def stop(self) -> None:
        monitoring = sys.monitoring
        monitoring.set_events(self.id, 0)
        for code in self.codes.values():
            monitoring.set_local_events(self.id, code, 0)
        self.codes.clear()
        for event in self.callbacks:
            monitoring.register_callback(self.id, event, None)
        monitoring.free_tool_id(self.id)

    @property
    def observer(self) -> Monitoring | None:
        """Who observes what the current thread runs now."""
        observer = self.observers.get(threading.get_ident())
        return None if observer is None or observer.paused else observer

    def started(self, code: CodeType, offset: int) -> Any:
        observer = self.observer
        if observer is None:
            return None
        if not observer.watched(code):
            return sys.monitoring.DISABLE
        self.observe(code, observer)
        observer.on_function(sys._getframe(1))
        if observer.steps is not None:
            observer.steps.entered(sys._getframe(1))
        return None

    def observe(self, code: CodeType, observer: Monitoring) -> None:
        events = sys.monitoring.events
        wanted = events.CALL
        if observer.steps is not None:
            wanted |= events.LINE | events.INSTRUCTION
        known = sys.monitoring.get_local_events(self.id, code)
        if wanted | known != known:
            self.codes[id(code)] = code
            sys.monitoring.set_local_events(self.id, code, wanted | known)

    def called(self, code: CodeType, offset: int, function: Any, first: Any) -> None:
        observer = self.observer
        if observer is None:
            return
        plain = function.__func__ if isinstance(function, MethodType) else function
        if observer.steps is not None and not (isinstance(plain, FunctionType) and observer.watched(plain.__code__)):
            observer.steps.called(sys._getframe(1), function)
        observer.on_call(function, first)

    def line(self, code: CodeType, number: int) -> None:
        observer = self.observer
        if observer is not None and observer.steps is not None:
            observer.steps.line(sys._getframe(1), number)

    def instruction(self, code: CodeType, offset: int) -> None:
        observer = self.observer
        if observer is not None and observer.steps is not None:
            observer.steps.instruction(sys._getframe(1), offset)


_tool = _Tool()
Observer = Monitoring if sys.version_info >= (3, 12) else Profiling
