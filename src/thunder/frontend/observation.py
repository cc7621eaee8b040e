"""Which of the user's functions run while a program is traced, and what they call.

By `sys.monitoring` from Python 3.12 on, by `sys.setprofile` before. This file is the only one that knows either.
"""

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

OnFunction = Callable[[FrameType], None]
OnCall = Callable[[Any, Any], None]
Watched = Callable[[CodeType], bool]


class Profiling:
    """Observes by `sys.setprofile`, which calls back for everything: pause it where the user's code does not run."""

    def __init__(self, watched: Watched, on_function: OnFunction, on_call: OnCall):
        self.watched, self.on_function, self.on_call = watched, on_function, on_call

    def __enter__(self) -> "Profiling":
        self.outer = sys.getprofile()
        sys.setprofile(self.callback)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.setprofile(self.outer)

    def pause(self) -> None:
        sys.setprofile(None)

    def resume(self) -> None:
        sys.setprofile(self.callback)

    def callback(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            if self.watched(frame.f_code):
                self.on_function(frame)
                caller = frame.f_back
                if caller is not None and self.watched(caller.f_code):
                    self.on_call(frame.f_code, None)
        elif event == "c_call" and self.watched(frame.f_code):
            self.on_call(argument, getattr(argument, "__self__", None))


class Monitoring:
    """Observes by `sys.monitoring`, which forgets code that is not watched."""

    def __init__(self, watched: Watched, on_function: OnFunction, on_call: OnCall):
        self.watched, self.on_function, self.on_call = watched, on_function, on_call

    def __enter__(self) -> "Monitoring":
        monitoring = sys.monitoring
        self.thread = threading.get_ident()
        self.paused = False
        self.codes: set[CodeType] = set()
        self.tool = next(i for i in (3, 4, 0, 1, 2, 5) if monitoring.get_tool(i) is None)
        monitoring.use_tool_id(self.tool, "thunder")
        monitoring.register_callback(self.tool, monitoring.events.PY_START, self.started)
        monitoring.register_callback(self.tool, monitoring.events.CALL, self.called)
        monitoring.set_events(self.tool, monitoring.events.PY_START)
        monitoring.restart_events()
        return self

    def __exit__(self, *exc: object) -> None:
        monitoring = sys.monitoring
        monitoring.set_events(self.tool, 0)
        for code in self.codes:
            monitoring.set_local_events(self.tool, code, 0)
        for event in (monitoring.events.PY_START, monitoring.events.CALL):
            monitoring.register_callback(self.tool, event, None)
        monitoring.free_tool_id(self.tool)

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def started(self, code: CodeType, offset: int) -> Any:
        if self.paused or threading.get_ident() != self.thread:
            return None
        if not self.watched(code):
            return sys.monitoring.DISABLE
        if code not in self.codes:
            self.codes.add(code)
            sys.monitoring.set_local_events(self.tool, code, sys.monitoring.events.CALL)
        self.on_function(sys._getframe(1))
        return None

    def called(self, code: CodeType, offset: int, function: Any, first: Any) -> None:
        if not self.paused and threading.get_ident() == self.thread:
            self.on_call(function, first)


Observer = Monitoring if sys.version_info >= (3, 12) else Profiling
