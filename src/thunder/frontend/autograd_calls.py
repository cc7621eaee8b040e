"""`torch.autograd.Function` and `torch.utils.checkpoint` in a program that is traced.

Torch's Python API does not show these calls to function modes, so torch's own functions are replaced while a program is
traced: in the thread that traces, they tell the tracer; in others, they do what they always do. This file is the only
one that does so.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils.checkpoint as torch_checkpoint
from torch.autograd import Function
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.nn.modules._functions import BackwardHookFunction

from thunder.core.region import region, used_outside
from thunder.core.trace import Trace

_apply = Function.__dict__["apply"].__func__
_without_reentrant = torch_checkpoint._checkpoint_without_reentrant_generator
_enter_hooks = saved_tensors_hooks.__enter__
_lock = threading.Lock()
_tracers: dict[int, Any] = {}  # by thread


def current_tracer() -> Any:
    """The tracer of the program that this thread traces, None if it traces none."""
    return _tracers.get(threading.get_ident())


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """What an `autograd.Function` does, called."""

    cls: type

    @property
    def __name__(self) -> str:
        return self.cls.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _apply(self.cls, *args, **kwargs)


def _traced_apply(cls: type, *args: Any, **kwargs: Any) -> Any:
    tracer = current_tracer()
    if tracer is None or tracer.is_unobserved:
        return _apply(cls, *args, **kwargs)
    if cls is BackwardHookFunction:
        raise tracer.hook("A backward hook of a module")
    if cls is torch_checkpoint.CheckpointFunction:
        function, _, *rest = args
        with tracer.checkpoints.region():
            return function(*rest)
    if torch.is_grad_enabled() and tracer.any_requires_grad((args, kwargs)):
        return tracer.record_function(FunctionCall(cls), args, kwargs)
    return _apply(cls, *args, **kwargs)


def _traced_without_reentrant(*args: Any, **kwargs: Any) -> Iterator[None]:
    tracer = current_tracer()
    if tracer is None:
        yield from _without_reentrant(*args, **kwargs)
        return
    with tracer.checkpoints.region():
        yield


def _traced_enter_hooks(self: saved_tensors_hooks) -> None:
    tracer = current_tracer()
    if tracer is not None and torch.is_grad_enabled() and type(self) is not save_on_cpu:  # that changes no values
        raise tracer.hooks_of_saved_tensors()
    _enter_hooks(self)


@contextmanager
def tracing_autograd_calls(tracer: Any) -> Iterator[None]:
    """Inside, calls of this thread that torch does not show are shown to `tracer`."""
    with _lock:
        outer = current_tracer()
        _tracers[threading.get_ident()] = tracer
        Function.apply = classmethod(_traced_apply)
        torch_checkpoint._checkpoint_without_reentrant_generator = _traced_without_reentrant
        saved_tensors_hooks.__enter__ = _traced_enter_hooks
    try:
        yield
    finally:
        with _lock:
            if outer is not None:
                _tracers[threading.get_ident()] = outer
            else:
                del _tracers[threading.get_ident()]
            if not _tracers:
                Function.apply = classmethod(_apply)
                torch_checkpoint._checkpoint_without_reentrant_generator = _without_reentrant
                saved_tensors_hooks.__enter__ = _enter_hooks


class Checkpoints:
    """The checkpointed parts of a program that is traced: what is computed again for the backward."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.depth = 0
        self.found: list[tuple[int, int]] = []  # first and behind the last statement

    @contextmanager
    def region(self) -> Iterator[None]:
        start = len(self.trace.bound_symbols)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
        if not self.depth and len(self.trace.bound_symbols) > start:
            self.found.append((start, len(self.trace.bound_symbols)))

    def fold(self) -> None:
        """Make each part one operation of the trace, which is complete."""
        statements = self.trace.bound_symbols
        for start, end in reversed(self.found):
            inside, rest = statements[start:end], statements[end:]
            outputs = used_outside(inside, rest, self.trace.output)
            name = self.trace.numbered_name("checkpoint")
            statements[start:end] = [region(name, inside, outputs)]
