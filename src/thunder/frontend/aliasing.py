"""Which values of a trace share memory, so that a write through one is seen through the others.

A trace is functional: it has no writes. Every tensor the program holds is a `Handle`; a write gives the handle a new
value, and the tensors it is a view of, or that are views of the same base, get theirs when they are next read.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

from thunder import clang
from thunder.core import memory_prims, prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import BoundSymbol, Symbol
from thunder.torch.memory import fits_in, scattered, written_windows


class Storage:
    """Memory that handles share; `version` counts the writes."""

    __slots__ = ("version",)

    def __init__(self) -> None:
        self.version = 0


class Handle:
    """A tensor that the program holds.

    Attributes:
        value: the proxy it had when last read; `current` gives the one it has now.
        parent: the handle it is a view of, None for a base.
        view: makes the view from the parent's value.
        steps: the primitives that the view consists of, from the parent's value on; None if writes cannot follow them.
        input: for a base that came from outside the trace, which input it is.
    """

    __slots__ = ("input", "parent", "seen", "steps", "storage", "value", "view")

    def __init__(self, value: TensorProxy):
        self.value = value
        self.parent: Handle | None = None
        self.view: Callable[[TensorProxy], TensorProxy] | None = None
        self.steps: list[BoundSymbol] | None = []
        self.storage = Storage()
        self.seen = 0
        self.input: Any = None

    @classmethod
    def of_view(
        cls,
        value: TensorProxy,
        parent: "Handle",
        view: Callable[[TensorProxy], TensorProxy],
        steps: list[BoundSymbol] | None,
    ) -> "Handle":
        self = cls(value)
        self.parent, self.view, self.steps = parent, view, steps
        self.storage, self.seen = parent.storage, parent.storage.version
        return self

    @property
    def base(self) -> "Handle":
        handle = self
        while handle.parent is not None:
            handle = handle.parent
        return handle

    @property
    def writable(self) -> bool:
        """Whether a write through this view can be told to its base."""
        if self.parent is None:
            return True
        return self.steps is not None and all(map(_is_writable, self.steps)) and self.parent.writable

    @property
    def named_by(self) -> list[TensorProxy]:
        """The tensors whose values say what the view shows, and what those it is a view of."""
        own = [x for step in self.steps or () for x in step.args[1:] if isinstance(x, TensorProxy)]
        return own if self.parent is None else own + self.parent.named_by

    @property
    def is_detached(self) -> bool:
        """Whether the view is one that gradients do not go through."""
        return any(step.symbol is prims.detach for step in self.steps or ())

    def is_cut_off(self) -> bool:
        """Whether gradients do not go through the view, or through one that it is a view of."""
        return self.is_detached or (self.parent is not None and self.parent.is_cut_off())

    def current(self) -> TensorProxy:
        """The proxy of the tensor's present value; records the view again if its base was written."""
        if self.seen != self.storage.version:
            assert self.parent is not None and self.view is not None
            base = self.parent.current()
            self.value = self.view(base)
            self.value.requires_grad = base.requires_grad and not self.is_detached
            self.seen = self.storage.version
        return self.value

    def write(self, value: TensorProxy) -> None:
        """The tensor has `value` now, and so has the part of its base that it shows."""
        written = [(self, value)]
        handle = self
        while handle.parent is not None:
            value = written_through(handle.steps or [], handle.parent.current(), value)
            handle = handle.parent
            written.append((handle, value))
        self.storage.version += 1
        for handle, value in written:
            handle.value, handle.seen = value, self.storage.version


def written_through(steps: Sequence[BoundSymbol], base: TensorProxy, value: TensorProxy) -> TensorProxy:
    """`base` with `value` in the place that the view of `steps` shows."""
    befores = [base]
    for step in steps[:-1]:
        befores.append(step.symbol(befores[-1], *step.args[1:]))
    for step, before in zip(reversed(steps), reversed(befores)):
        value = _inverse[step.symbol](before, value, *step.args[1:])
    return value


def _is_writable(step: BoundSymbol) -> bool:
    """Whether a view shows elements of what it is a view of, each once."""
    if step.symbol is memory_prims.unfold:
        a, _, size, distance = step.args
        return a.ndim > 0 and size <= distance
    if step.symbol is memory_prims.as_strided:
        a, sizes, strides, offset = step.args
        return offset is None and fits_in(a, sizes, strides)
    return True


def _unbroadcast(before: TensorProxy, value: TensorProxy, shape: Sequence[int], dims: Sequence[int]) -> TensorProxy:
    if prod(shape) != before.numel:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    return prims.reshape(value, before.shape)


def _reshape_back(before: TensorProxy, value: TensorProxy, *_: Any) -> TensorProxy:
    return prims.reshape(value, before.shape)


def _unpermute(before: TensorProxy, value: TensorProxy, dims: Sequence[int]) -> TensorProxy:
    return prims.permute(value, tuple(dims.index(d) for d in range(len(dims))))


def _slice_back(before: TensorProxy, value: TensorProxy, starts: Any, ends: Any, steps: Any) -> TensorProxy:
    return prims.slice_scatter(before, value, starts, ends, steps)


def _set_diagonal(before: TensorProxy, value: TensorProxy, offset: int, dim1: int, dim2: int) -> TensorProxy:
    return clang.diagonal_scatter(before, value, offset, dim1, dim2)


def _scatter(before: TensorProxy, value: TensorProxy, sizes: Sequence[int], strides: Sequence[int], _: None) -> Any:
    return scattered(before, value, sizes, strides)


def _fold(before: TensorProxy, value: TensorProxy, dim: int, size: int, step: int) -> TensorProxy:
    return written_windows(before, value, dim, size, step, False)


def _set_selected(before: TensorProxy, value: TensorProxy, index: TensorProxy, dim: int) -> TensorProxy:
    return prims.index_put(before, (None,) * dim + (clang.convert(index, torch.int64),), value, False)


_inverse: dict[Symbol, Callable[..., TensorProxy]] = {
    prims.broadcast_in_dim: _unbroadcast,
    prims.reshape: _reshape_back,
    prims.squeeze: _reshape_back,
    prims.detach: lambda before, value: value,
    prims.permute: _unpermute,
    prims.slice_prim: _slice_back,
    prims.select: _set_selected,
    prims.diagonal: _set_diagonal,
    memory_prims.as_strided: _scatter,
    memory_prims.bitcast: lambda before, value, _: memory_prims.bitcast(value, before.dtype),
    memory_prims.unfold: _fold,
    prims.imag: lambda before, value: prims.complex(prims.real(before), value),
    prims.real: lambda before, value: prims.complex(value, prims.imag(before)),
    prims.view_as_real: lambda before, value: prims.view_as_complex(value),
    prims.view_as_complex: lambda before, value: prims.view_as_real(value),
}
