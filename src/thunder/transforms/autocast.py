"""Autocast as a transform: the casts that torch.autocast would make, put into a trace."""

from collections.abc import Callable
from typing import Any

import torch

import thunder.torch as ltorch
from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.symbol import BoundSymbol, map_proxies, unique_proxies
from thunder.core.trace import PassTimer, Trace, TraceRecorder, record
from thunder.torch.autocast import Autocast, cast_arguments

NAME = "Autocast"


def autocast(dtype: torch.dtype = torch.bfloat16) -> Callable[[Trace], Trace]:
    """The transform that has a computation run as under `torch.autocast` with `dtype`, on the CPU and on CUDA.

    A cast that the program itself makes and that did nothing when it was traced is not in the trace, so it does not
    undo one of autocast's. Calls that cannot be recorded again, of operations without a rule, run in the dtypes that
    they were recorded with.

    Args:
        dtype: torch.bfloat16 or torch.float16.

    Raises:
        ValueError: for another dtype.
    """
    if dtype not in (torch.bfloat16, torch.float16):
        raise ValueError(f"autocast takes torch.bfloat16 or torch.float16, not {dtype}")
    state = (("cpu", dtype), ("cuda", dtype))

    def transform(trace: Trace) -> Trace:
        with PassTimer() as timer:
            result = trace.derived([], NAME)
            with record(result) as recorder:
                rewriter = _Rewriter(state, recorder)
                for statement in trace.bound_symbols:
                    rewriter.rewrite(statement)
            result.output = map_proxies(trace.output, rewriter.values)
            return timer.stamp(result)

    transform.__name__ = "autocast"
    return transform


class _Rewriter:
    """Records statements again, with the casts before them.

    Attributes:
        values: what stands for the values that have another dtype now.
    """

    def __init__(self, state: Autocast, recorder: TraceRecorder):
        self.state, self.recorder = state, recorder
        self.values: dict[Proxy, Proxy] = {}

    def rewrite(self, statement: BoundSymbol) -> None:
        statements = self.recorder.scopes[-1]
        before = len(statements)
        args, kwargs = map_proxies((statement.args, statement.kwargs), self.values)
        if _can_be_recorded(statement):
            args, kwargs = cast_arguments(statement.symbol, self.state, args, kwargs)
            if unique_proxies((args, kwargs)) == statement.inputs:
                statements.append(statement)
            else:
                self.record(statement, args, kwargs)
        else:
            recorded = {new: self.in_dtype(new, old) for old, new in self.values.items() if old in statement.inputs}
            args, kwargs = map_proxies((args, kwargs), recorded)
            statements.append(statement.replaced(args=args, kwargs=kwargs))
        for new in statements[before:]:
            new.source = new.source or statement.source

    def record(self, statement: BoundSymbol, args: Any, kwargs: Any) -> None:
        """Record the operation on values of other dtypes; what it gives keeps its name."""
        output = statement.symbol(*args, **kwargs)
        cut_off = any(p.requires_grad for p in statement.inputs if isinstance(p, TensorProxy))
        for old, new in zip(unique_proxies(statement.output), unique_proxies(output), strict=True):
            if cut_off and isinstance(new, TensorProxy) and not old.requires_grad and new.dtype.is_floating_point:
                new = ltorch.detach(new)  # it was computed without gradients
            if new not in unique_proxies((args, kwargs)):
                new.name = old.name
            self.values[old] = new

    def in_dtype(self, new: Proxy, old: Proxy) -> Proxy:
        return ltorch.to(new, old.dtype) if isinstance(new, TensorProxy) and new.dtype != old.dtype else new


def _can_be_recorded(statement: BoundSymbol) -> bool:
    """Whether calling the operation again tells what it gives: rules do, of primitives and of what they make."""
    return statement.symbol.module in ("ltorch", "prims") and statement.symbol.meta is not None
