"""How much memory a compiled program takes: what is saved for the backward, and what is alive at each line."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod

from thunder.core import prims
from thunder.core.numbers import sizes_in_this_call
from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.symbol import unique_proxies
from thunder.core.trace import Trace
from thunder.core.views import viewed


@dataclass(frozen=True, slots=True)
class LiveBytes:
    """How many bytes of tensors are alive once a statement of a trace has run, before what is then deleted."""

    statement: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Memory:
    """An estimate, from the metadata of the traces, of the memory that a compiled program takes.

    What a kernel takes for itself is not counted, nor is the memory of the graphs that torch keeps of operations it
    differentiates.

    Attributes:
        input_bytes: the tensors that the forward takes: arguments, parameters, buffers.
        saved_bytes: what the forward saves for the backward, besides these.
        forward, backward: what is alive at each statement of the stages that run.
    """

    input_bytes: int
    saved_bytes: int
    forward: tuple[LiveBytes, ...]
    backward: tuple[LiveBytes, ...]

    @property
    def peak_bytes(self) -> int:
        """The most that is alive at once."""
        return max((line.bytes for line in (*self.forward, *self.backward)), default=self.input_bytes)

    def __str__(self) -> str:
        totals = f"inputs {self.input_bytes:,}, saved for the backward {self.saved_bytes:,}, peak {self.peak_bytes:,}"
        lines = [f"{totals} bytes"]
        for name, part in (("forward", self.forward), ("backward", self.backward)):
            lines += [name, *(f"{line.bytes:>16,}  {line.statement}" for line in part)]
        return "\n".join(lines)


def memory(fn: Callable) -> Memory:
    """The memory that `fn`, which `thunder.jit` gave and which has been called, takes as it last ran.

    Raises:
        RuntimeError: if it has not been compiled.
    """
    from thunder.jit import last_backward_traces, last_traces

    traces, backward = last_traces(fn), last_backward_traces(fn)
    if len(traces) < 2:
        raise RuntimeError("nothing is compiled yet: call the function first")
    forward = traces[-1]
    inputs = set(forward.args)
    saved = [p for p in forward.output[1] if p not in inputs] if backward else []
    always = _bytes(inputs)
    return Memory(
        always,
        _bytes(_bases(forward, saved) - inputs),
        tuple(_live(forward, always, inputs)),
        tuple(_live(backward[-1], always, inputs)) if backward else (),
    )


def _bytes(values: Iterable[Proxy]) -> int:
    return sum(prod(sizes_in_this_call(p.shape)) * p.dtype.itemsize for p in values if isinstance(p, TensorProxy))


def _bases(trace: Trace, values: Iterable[Proxy]) -> set[Proxy]:
    """The values that own the memory of `values`."""
    base: dict[Proxy, Proxy] = {}
    for statement in trace.bound_symbols:
        for source in viewed(statement):
            base.update((p, base.get(source, source)) for p in statement.outputs)
    return {base.get(p, p) for p in values}


def _live(trace: Trace, always: int, inputs: set[Proxy]) -> Iterable[LiveBytes]:
    """The bytes alive at each statement; the program's own inputs are alive all the time."""
    base: dict[Proxy, Proxy] = {}
    users: dict[Proxy, set[Proxy]] = {p: {p} for p in trace.args if p not in inputs}
    for statement in trace.bound_symbols:
        if statement.symbol is prims.python_del:
            for p in statement.args:
                owner = base.get(p, p)
                if owner in users:
                    users[owner].discard(p)
                    if not users[owner]:
                        del users[owner]
            continue
        sources = viewed(statement)
        for p in statement.outputs:
            owner = base.get(sources[0], sources[0]) if sources else p
            base[p] = owner
            if owner not in inputs:
                users.setdefault(owner, set()).add(p)
        names = ", ".join(p.name for p in statement.outputs)
        given = ", ".join(p.name for p in unique_proxies((statement.args, statement.kwargs)))
        yield LiveBytes(f"{names} = {statement.symbol.id}({given})", always + _bytes(users))
