"""Calls of torch operations that have no rule of ours: recorded as one opaque call each.

torch's fake tensors tell what such a call returns, which arguments it writes to and whether it draws random numbers.
This file is the only one that uses fake tensors.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import resolve_name
from torch.utils._python_dispatch import TorchDispatchMode

from thunder.core.dtypes import is_inexact
from thunder.core.proxies import TensorProxy
from thunder.core.pytree import tree_flatten, tree_map, tree_unflatten
from thunder.core.recording import current_recorder
from thunder.core.symbol import Symbol, Tag, unique_proxies
from thunder.core.trace import tensor
from thunder.frontend.torch_state import same_randomness_after


class RandomnessError(Exception):
    """Random numbers were drawn where none may be."""


class NotInTraces(Exception):
    """A call gives what no trace can hold; the message says what."""


@dataclass(frozen=True, slots=True)
class OpaqueOutput:
    """What an opaque call gives.

    Attributes:
        result: what it returns, proxies for tensors.
        written: the position among the tensor arguments and the new value of each that it writes to.
        views: (position of the tensor argument, output) for each output that shares its memory.
    """

    result: Any
    written: list[tuple[int, TensorProxy]]
    views: list[tuple[int, TensorProxy]]


class _EffectObserver(TorchDispatchMode):
    """Notes what an operation does beside giving its result.

    Attributes:
        random: whether it draws random numbers.
        written: the memory that it writes to, as its schemas say. Versions of tensors do not tell of all: those that
            `_foreach` operations write to keep theirs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.random = False
        self.written: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        self.random |= torch.Tag.nondeterministic_seeded in func.tags
        if func._schema.is_mutable:
            self.written.update(memory_of(x) for x in _written_arguments(func._schema, args, kwargs))
        return func(*args, **kwargs)


def memory_of(x: torch.Tensor) -> int:
    """What tensors that share memory have in common."""
    return x.untyped_storage()._cdata


def _written_arguments(schema: Any, args: tuple, kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    for i, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[i] if i < len(args) else kwargs.get(argument.name)
            yield from (x for x in tree_flatten(given)[0] if isinstance(x, torch.Tensor))


@contextmanager
def without_randomness() -> Iterator[None]:
    """RandomnessError if random numbers were drawn inside; generators are then as they were."""
    with _EffectObserver() as observer, same_randomness_after(RandomnessError):
        yield
        if observer.random:
            raise RandomnessError


def record_opaque(func: Callable, args: tuple, kwargs: dict[str, Any]) -> OpaqueOutput:
    """Record the call `func(*args, **kwargs)`; tensors among the arguments are proxies.

    Raises:
        NotInTraces: if the call gives sparse tensors, say, or changes the shape of its arguments.
        Exception: what eager raises for these arguments, or that fake tensors cannot tell what the call gives.
    """
    leaves, spec = tree_flatten((args, kwargs))
    positions = [i for i, x in enumerate(leaves) if isinstance(x, TensorProxy)]
    misjudged = func in _MISJUDGED and all(leaves[i].device.type == "cpu" for i in positions)
    mode = nullcontext() if misjudged else FakeTensorMode(allow_non_fake_inputs=True)
    with torch._C.DisableTorchFunction(), _without_log(), mode:
        fakes = [_fake(leaves[i]) for i in positions]
        for fake in fakes if misjudged else ():
            fake.untyped_storage().fill_(0)
        if torch.is_grad_enabled():
            fakes = [_requiring_gradients(x) if leaves[i].requires_grad else x for i, x in zip(positions, fakes)]
        before = [fake._version for fake in fakes]
        filled = list(leaves)
        for i, fake in zip(positions, fakes):
            filled[i] = fake
        fake_args, fake_kwargs = tree_unflatten([_on_fake_device(x) for x in filled], spec)
        with _EffectObserver() as observer:
            out = func(*fake_args, **fake_kwargs)
        written = tuple(i for i, x in enumerate(fakes) if x._version != before[i] or memory_of(x) in observer.written)
        for i, fake in zip(positions, fakes):
            if (fake.shape, fake.stride()) != (leaves[i].shape, leaves[i].strides):
                raise NotInTraces("changes the shape or strides of a tensor in place")
    on = _device_of_results(leaves)
    recorded = _record(func, args, kwargs, out, fakes, written, observer.random, on)
    if _is_below_autograd():
        _take_for_differentiable((recorded.result, [p for _, p in recorded.written]), (args, kwargs))
    return recorded


def gives_dtypes(func: Callable, args: tuple, kwargs: dict[str, Any], out: Any) -> bool:
    """Whether fake tensors say that the call gives tensors of the dtypes of `out`."""
    leaves, spec = tree_flatten((args, kwargs))
    if not _CUDA_IS_BUILT and any(isinstance(x, TensorProxy) and x.device.type == "cuda" for x in leaves):
        return True
    with torch._C.DisableTorchFunction(), _without_log(), FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        fakes = [_fake(x) if isinstance(x, TensorProxy) else x for x in leaves]
        args, kwargs = tree_unflatten(fakes, spec)
        try:
            found = tree_flatten(func(*args, **kwargs))[0]
        except Exception:  # they cannot tell
            return False
    given = [x.dtype for x in found if isinstance(x, torch.Tensor)]
    return given == [p.dtype for p in unique_proxies(out)][: len(given)]


def refuse_gradients(func: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
    """Raise the RuntimeError of torch, if it has one, about gradients of the call, which has `out=`."""
    leaves, spec = tree_flatten((args, kwargs))
    with torch._C.DisableTorchFunction(), _without_log(), FakeTensorMode(allow_non_fake_inputs=True):
        fakes = [_fake_with_gradients(x) if isinstance(x, TensorProxy) else _on_fake_device(x) for x in leaves]
        args, kwargs = tree_unflatten(fakes, spec)
        try:
            func(*args, **kwargs)
        except Exception as e:  # of others, eager or the call without `out=` tells
            if isinstance(e, RuntimeError) and "support automatic differentiation" in str(e):
                raise


def record_opaque_as(func: Callable, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    """Record the call as one that returns what `result` is; gives proxies for its tensors, which tell of gradients."""
    result = _record(func, args, kwargs, result, [], (), False, None).result
    if _is_below_autograd():
        _take_for_differentiable(result, (args, kwargs))
    return result


def _take_for_differentiable(result: Any, arguments: Any) -> None:
    """Every result of floating point numbers requires gradients if an argument does."""
    if torch.is_grad_enabled() and any(p.requires_grad for p in unique_proxies(arguments)):
        for p in unique_proxies(result):
            p.requires_grad = is_inexact(p.dtype)


def _is_below_autograd() -> bool:
    """Whether torch is inside of an operation that it differentiates, where tensors do not tell."""
    return torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.AutogradFunctionality)


@contextmanager
def _without_log() -> Iterator[None]:
    """Fake tensors do not print what they cannot tell: it is no matter of the user's."""
    was_disabled, _LOG.disabled = _LOG.disabled, True
    try:
        yield
    finally:
        _LOG.disabled = was_disabled


# On the CPU, fake tensors tell other strides or dtypes than eager's: these run on real tensors, of zeros.
_MISJUDGED = (
    {torch._foreach_pow}
    | {getattr(torch.fft, name) for name in torch.fft.__all__ if "shift" not in name}
    | {getattr(torch.nn.functional, f"max_unpool{n}d") for n in (1, 2, 3)}
)

_LOG = logging.getLogger("torch._subclasses.fake_tensor")

# A torch without CUDA cannot run some operations even on fake tensors that say they are on a CUDA device.
_CUDA_IS_BUILT = torch.backends.cuda.is_built()


def _fake(proxy: TensorProxy) -> torch.Tensor:
    device = _on_fake_device(proxy.device)
    return torch.empty_strided(proxy.shape, proxy.strides, dtype=proxy.dtype, device=device)


class _Computed(torch.autograd.Function):
    """Its output requires gradients and is no leaf, so that operations may write to it."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(x)
        return x


def _requiring_gradients(fake: torch.Tensor) -> torch.Tensor:
    return _Computed.apply(fake, torch.empty(0, requires_grad=True))


def _fake_with_gradients(proxy: TensorProxy) -> torch.Tensor:
    fake = _fake(proxy)
    return _requiring_gradients(fake) if proxy.requires_grad else fake


def _on_fake_device(x: Any) -> Any:
    """`x`, or the CPU where it is a CUDA device that this torch does not know."""
    if isinstance(x, torch.device) and x.type == "cuda" and not _CUDA_IS_BUILT:
        return torch.device("cpu")
    return x


def _device_of_results(leaves: list[Any]) -> torch.device | None:
    """The device of the results where fake tensors cannot tell: the one asked for, or the arguments' CUDA device."""
    if _CUDA_IS_BUILT:
        return None
    asked = [x for x in leaves if isinstance(x, torch.device)]
    given = [x.device for x in leaves if isinstance(x, TensorProxy) and x.device.type == "cuda"]
    return next(iter(asked + given), None)


def _record(
    func: Callable,
    args: tuple,
    kwargs: dict,
    out: Any,
    fakes: list,
    written: tuple[int, ...],
    random: bool,
    on: torch.device | None,
) -> OpaqueOutput:
    memories = {memory_of(fake): i for i, fake in enumerate(fakes)}
    made: dict[int, TensorProxy] = {}
    views: list[tuple[int, TensorProxy]] = []

    def proxy_of(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) not in made:
            if x.layout is not torch.strided:
                raise NotInTraces(f"gives a tensor with the layout {x.layout}")
            made[id(x)] = tensor(shape=x.shape, dtype=x.dtype, device=on or x.device, strides=x.stride())
            made[id(x)].requires_grad = x.requires_grad
            if (owner := memories.get(memory_of(x))) is not None and owner not in written:
                views.append((owner, made[id(x)]))
        return made[id(x)]

    def infer(*_: Any, **__: Any) -> Any:
        results = tree_map(proxy_of, out)
        return (results, tuple(proxy_of(fakes[i]) for i in written)) if written else results

    result = _symbol(func, written, random, infer)(*args, **kwargs)
    if not written:
        return OpaqueOutput(result, [], views)
    result, values = result
    return OpaqueOutput(result, list(zip(written, values)), views)


def _symbol(func: Callable, written: tuple[int, ...], random: bool, infer: Callable) -> Symbol:
    """The operation that runs `func` without writing to its arguments."""
    tags = (Tag.RANDOM,) if random else ()
    path = _public_path(func)
    if not written and path is not None:
        name = path.removeprefix("torch.")
        return Symbol(name, "torch", infer, is_prim=True, tags=tags, implementation=func)
    stem = (path or getattr(func, "__name__", "operation")).rpartition(".")[2]
    implementation = _functional(func, written) if written else func
    name = current_recorder().context_name(stem if stem.isidentifier() else "operation", implementation)
    return Symbol(name, None, infer, is_prim=True, tags=tags, implementation=implementation)


@cache
def _functional(func: Callable, written: tuple[int, ...]) -> "Functional":
    return Functional(func, written)


@cache
def _public_path(func: Callable) -> str | None:
    """`torch.special.entr`: the dotted name that gives `func`, if there is one."""
    path = f"torch.ops.{func}" if isinstance(func, torch._ops.OpOverload) else resolve_name(func)
    if path is None or not path.startswith("torch."):
        return None
    found: Any = torch
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return path if found == func else None


class Functional:
    """Runs a function that writes to arguments on copies of these; returns its result and the copies."""

    def __init__(self, func: Callable, written: tuple[int, ...]):
        self.func, self.written = func, written

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, tuple[torch.Tensor, ...]]:
        leaves, spec = tree_flatten((args, kwargs))
        positions = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
        copies = []
        for i in self.written:
            leaves[positions[i]] = leaves[positions[i]].clone()
            copies.append(leaves[positions[i]])
        args, kwargs = tree_unflatten(leaves, spec)
        return self.func(*args, **kwargs), tuple(copies)

    def __repr__(self) -> str:
        return f"Functional({getattr(self.func, '__name__', self.func)})"
