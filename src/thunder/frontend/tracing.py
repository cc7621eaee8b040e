"""The user's program -> trace, by letting CPython run it.

Tensors become `Traced` facades: `torch.Tensor` subclasses without memory. While the program runs, `Tracer` sees every
call of torch's API and records it with the proxies that the facades stand for. What goes past that API (functorch,
scripted functions) arrives in `Traced.__torch_dispatch__` as ATen operations.
"""

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from operator import index
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

import thunder.torch as ltorch
from thunder.core import dtypes, prims
from thunder.core.differentiability import mark_differentiable
from thunder.core.errors import NotRepresentable, UnsupportedError
from thunder.core.numbers import SymbolicSize, sizes_in_this_call
from thunder.core.proxies import TensorProxy
from thunder.core.pytree import tree_flatten, tree_map
from thunder.core.recording import current_recorder, recording
from thunder.core.symbol import BoundSymbol, Symbol, map_proxies, unique_proxies
from thunder.core.trace import Trace
from thunder.core.views import view_steps
from thunder.frontend import module_calls
from thunder.frontend.aliasing import Handle
from thunder.frontend.arithmetic import Numbers
from thunder.frontend.autograd_calls import Checkpoints, FunctionCall, tracing_autograd_calls
from thunder.frontend.evaluation import Evaluation
from thunder.frontend.observation import Observer
from thunder.frontend.opaque import (
    NotInTraces,
    RandomnessError,
    gives_dtypes,
    record_opaque,
    record_opaque_as,
    refuse_gradients,
    without_randomness,
)
from thunder.frontend.provenance import CallSite, call_site
from thunder.frontend.torch_state import autocast_state
from thunder.torch.autocast import UnderAutocast, cast_arguments, concerns
from thunder.torch.language import in_place, in_place_view, inplace_argument, reflected, torch_functions, updates


class Traced(torch.Tensor):
    """Stands for a tensor while the program is traced: it has metadata and no memory."""

    _handle: Handle
    _tracer: "Tracer"

    @staticmethod
    def __new__(cls, handle: Handle, tracer: "Tracer") -> "Traced":
        proxy = handle.value
        shape, strides = sizes_in_this_call(proxy.shape), sizes_in_this_call(proxy.strides)
        self = torch.Tensor._make_wrapper_subclass(cls, shape, strides=strides, dtype=proxy.dtype, device=proxy.device)
        self._handle, self._tracer = handle, tracer
        return self

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        tracer = _tracer_of(args, kwargs)
        if tracer.thread != threading.get_ident():
            return tracer.recall(func, args, kwargs or {})
        return tracer.record(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return _tracer_of(args, kwargs).record_aten(func, args, kwargs or {})


def _stranger(x: Any) -> UnsupportedError:
    name = x._handle.value.name if isinstance(x, Traced) else "A tensor"
    return UnsupportedError(
        f"{name} stands for a tensor of a program that is traced elsewhere: in another thread, or before.",
        "Hand tensors from one call to another, or to threads, outside of the jitted function.",
    )


def _tracer_of(args: tuple, kwargs: dict | None) -> "Tracer":
    leaves, _ = tree_flatten((args, kwargs))
    return next(x._tracer for x in leaves if isinstance(x, Traced))


# Questions about a tensor that its metadata answers.
METADATA_METHODS = {
    getattr(torch.Tensor, name)
    for name in (
        "__len__", "dim", "ndimension", "size", "stride", "numel", "nelement", "element_size",
        "is_contiguous", "is_floating_point", "is_complex", "is_signed", "get_device", "is_same_size",
        "is_pinned", "dim_order", "_is_view", "__hash__",
    )
} | {torch.is_floating_point, torch.is_complex, torch.numel, torch.is_signed, torch.is_same_size}  # fmt: skip
METADATA_PROPERTIES = {
    "shape", "dtype", "ndim", "device", "layout", "itemsize", "nbytes", "is_cuda", "is_cpu", "is_meta", "is_sparse",
    "is_sparse_csr", "is_quantized", "is_nested", "is_mps", "is_xpu", "is_xla", "is_ipu", "is_hpu", "is_mtia",
    "is_vulkan", "is_maia", "is_mkldnn", "__class__", "__doc__",
}  # fmt: skip

SIZE_PROPERTIES = {"shape", "nbytes"}
INDEPENDENT_OF_SIZES = {
    getattr(torch.Tensor, name)
    for name in (
        "dim", "ndimension", "element_size", "is_floating_point", "is_complex", "is_signed", "get_device", "is_conj",
        "is_neg", "is_pinned", "_is_view", "__hash__",
    )
} | {torch.is_floating_point, torch.is_complex, torch.is_signed, torch.is_conj, torch.is_neg}  # fmt: skip

# The answer depends on values.
VALUE_METHODS = {
    getattr(torch.Tensor, name)
    for name in ("__bool__", "__int__", "__float__", "__complex__", "__index__", "item", "tolist", "is_nonzero")
} | {torch.is_nonzero}
COMPARISONS = {torch.equal, torch.allclose, torch.Tensor.equal, torch.Tensor.allclose}

# The answer depends on how the tensor was made.
MEMORY_METHODS = {torch.is_inference, torch.Tensor.is_inference, torch.Tensor.storage_offset}

# torch may put off conjugating complex numbers, and traces do not tell where it does.
LAZINESS_METHODS = {torch.is_conj, torch.Tensor.is_conj, torch.is_neg, torch.Tensor.is_neg}

# They change the shape or the memory of their first argument in place.
SHAPE_METHODS = {getattr(torch.Tensor, name) for name in ("as_strided_", "resize_", "resize_as_", "set_")}

# Ways out of torch.
FOREIGN_METHODS = {
    getattr(torch.Tensor, name)
    for name in ("numpy", "__array__", "untyped_storage", "storage", "__dlpack__", "share_memory_")
}

# torch calls without tensor arguments that make tensors: recorded as opaque calls where they have no rule.
FACTORY_NAMES = {
    "linspace", "logspace", "randperm", "tril_indices", "triu_indices", "hann_window", "hamming_window",
    "bartlett_window", "blackman_window", "kaiser_window", "empty_strided", "normal", "from_numpy", "frombuffer",
    "asarray", "range", "eye", "complex", "cartesian_prod", "sparse_coo_tensor", "tensor", "as_tensor", "zeros", "ones",
    "full", "empty", "arange", "rand", "randn", "randint", "scalar_tensor", "fftfreq", "rfftfreq", "vander",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """A tensor that the trace takes: the real one, the proxy of the value it came with, and its handle."""

    real: torch.Tensor
    proxy: TensorProxy
    handle: Handle


class _RunNatively(Exception):
    """The call is for functorch, which will come back with ATen operations on facades."""


class Tracer(TorchFunctionMode):
    """Records the torch calls of the program that runs under it."""

    numbers: Numbers

    def __init__(self, trace: Trace, observer: Observer, locate: Callable[[torch.Tensor], str]):
        super().__init__()
        self.trace = trace
        self.observer = observer
        self.locate = locate  # gives the name of a real tensor that is no argument
        self.inputs: dict[int, Input] = {}  # the real tensors met, by identity
        self.evaluation = Evaluation(trace, self.real_input)
        self.examined: dict[int, torch.Tensor] = {}  # real tensors of which only metadata was asked
        self.asked: list[tuple[torch.Tensor, str, Any]] = []  # attributes of real tensors, and what they were
        self.gradients: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # read from .grad, and whose they are
        self.grafted: set[TensorProxy] = set()  # values written under no_grad to what requires gradients
        self.checkpoints = Checkpoints(trace)
        self.hints: list[tuple[BoundSymbol, CallSite]] = []
        self.start: Any = None
        self.thread: int | None = None  # in which the program runs, while it does
        self.is_unobserved = False

    def run(self, program: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What the program returns, its torch calls recorded."""
        self.start = sys._getframe()
        self.thread = threading.get_ident()
        recorder = current_recorder()
        recorder.calls_of_program = self.call_of_program
        try:
            with self, self.observer, tracing_autograd_calls(self):
                return program(*args, **kwargs)
        finally:
            self.thread = recorder.calls_of_program = None

    # ---- values ----

    def input(self, real: torch.Tensor, name: str) -> Handle:
        """The handle of a real tensor that the trace takes as input; its facade has the metadata of `real`."""
        if isinstance(real, Traced):
            raise _stranger(real)
        if is_lazy(real):
            raise NotRepresentable(
                f"{name} is a parameter of a lazy module, which its first call makes.",
                "Nothing is to be done: this call runs plainly, the next one is compiled.",
                self.site().source,
                once=True,
            )
        if real.layout is not torch.strided or real.is_quantized or real.is_nested:
            kind = "quantized" if real.is_quantized else "nested" if real.is_nested else str(real.layout)
            raise NotRepresentable(
                f"{name} is a {kind} tensor, and traces hold dense tensors.",
                "Make it dense outside of the jitted function, or leave the function uncompiled.",
                self.site().source,
            )
        proxy = TensorProxy(
            self.trace.new_name(name),
            shape=real.shape,
            strides=real.stride(),
            dtype=real.dtype,
            device=real.device,
            requires_grad=real.requires_grad,
        )
        handle = Handle(proxy)
        handle.input = self.inputs[id(real)] = Input(real, proxy, handle)
        return handle

    def real_input(self, proxy: TensorProxy) -> torch.Tensor:
        return next(i.real for i in self.inputs.values() if i.proxy is proxy)

    def handle_of(self, x: torch.Tensor) -> Handle:
        if isinstance(x, Traced):
            if x._tracer is not self:
                raise _stranger(x)
            return x._handle
        if (known := self.inputs.get(id(x))) is not None:
            return known.handle
        if torch._C._functorch.is_functorch_wrapped_tensor(x):
            raise _RunNatively
        return self.input(x, self.locate(x))

    def proxies(self, x: Any) -> Any:
        """Nested arguments with facades and real tensors replaced by the proxies of their present values."""
        if isinstance(x, torch.Tensor):
            return self.handle_of(x).current()
        kind = type(x)
        if kind is tuple or kind is list:
            return kind([self.proxies(y) for y in x])
        if kind is dict:
            return {k: self.proxies(v) for k, v in x.items()}
        if kind is slice and (x.start is not None or x.stop is not None or x.step is not None):
            return slice(self.proxies(x.start), self.proxies(x.stop), self.proxies(x.step))
        if isinstance(x, tuple | list | dict) and kind is not torch.Size:
            return tree_map(lambda y: self.proxies(y) if isinstance(y, torch.Tensor) else y, x)
        return x

    def facade(self, handle: Handle) -> Traced:
        facade = Traced(handle, self)
        if handle.input is not None and isinstance(handle.input.real, torch.nn.Parameter):
            facade._is_param = True  # what `isinstance` asks for
        return facade

    # ---- calls ----

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self.record(func, args, kwargs or {})

    def record(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Do what the call `func(*args, **kwargs)` means while tracing; returns facades for tensors."""
        with self.unobserved(), torch._C.DisableTorchFunctionSubclass():
            try:
                return self._record(func, args, kwargs)
            except _RunNatively:
                return func(*args, **kwargs)

    def record_function(self, func: FunctionCall, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Record a call of an `autograd.Function`, with its own backward."""
        with self.unobserved(), torch._C.DisableTorchFunction():
            return self.opaque(func, args, kwargs)

    def rewritten(self, start: int) -> None:
        """The statements from `start` on are other ones now."""
        self.evaluation.seen = min(self.evaluation.seen, start)
        self.checkpoints.found = [part for part in self.checkpoints.found if part[1] <= start]

    def any_requires_grad(self, tree: Any) -> bool:
        tensors = [x for x in tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]
        return any(
            self.handle_of(x).current().requires_grad if isinstance(x, Traced) else x.requires_grad for x in tensors
        )

    def gradients_inside(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        if any(map(torch._C._functorch.is_functorch_wrapped_tensor, tensors)):
            raise _RunNatively
        raise NotRepresentable(
            f"{_called(func)} inside the jitted function asks for gradients while it runs.",
            "Compute gradients outside of the jitted function.",
            self.site().source,
        )

    def forward_mode(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        raise NotRepresentable(
            "Derivatives in forward mode inside the jitted function go along with its tensors, unseen.",
            "Compute them outside of the jitted function.",
            self.site().source,
        )

    def hook_inside(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        raise self.hook(f"{_called(func)} inside the jitted function")

    def hook(self, what: str) -> NotRepresentable:
        way_out = "Register it on what goes into the jitted function, or comes out of it."
        return NotRepresentable(f"{what} asks for gradients of what is computed inside.", way_out, self.site().source)

    def hooks_of_saved_tensors(self) -> NotRepresentable:
        return NotRepresentable(
            "saved_tensors_hooks see what torch saves for its backward, and a compiled backward saves other tensors.",
            "Enter them around the call of the jitted function.",
            self.site().source,
        )

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        """What runs inside is not the program."""
        if self.is_unobserved:
            yield
            return
        self.is_unobserved = True
        self.observer.pause()
        try:
            yield
        finally:
            self.observer.resume()
            self.is_unobserved = False

    @contextmanager
    def program_runs(self) -> Iterator[None]:
        """Inside of what is not the program, the program runs again: a function that it gave to one of torch's."""
        self.is_unobserved = False
        self.observer.resume()
        try:
            with self:
                yield
        finally:
            self.observer.pause()
            self.is_unobserved = True

    def recall(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What a facade can still tell where its program does not run: in another thread, or later."""
        handler = _handlers.get(func)
        if handler is Tracer.text:
            return _describe(args[0]._handle.value)
        is_read = getattr(func, "__name__", "") == "__get__"
        if handler is Tracer.metadata or (is_read and getattr(func.__self__, "__name__", "") in METADATA_PROPERTIES):
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        raise _stranger(args[0])

    def _record(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        if self.numbers.is_used and func not in torch_functions and func not in in_place and func not in reflected:
            args, kwargs = self.numbers.constants((args, kwargs))
        if (handler := _handlers.get(func)) is not None:
            return handler(self, func, args, kwargs)
        if "out" in kwargs:
            kwargs = dict(kwargs)
            if kwargs["out"] is not None:
                return self.with_out(func, args, kwargs)
            del kwargs["out"]
        if (symbol := torch_functions.get(func)) is not None:
            if func in inplace_argument:
                args, kwargs, inplace = _without_inplace(func, args, kwargs)
                if inplace:
                    return self.write(args[0], symbol, func, args, kwargs)
            return self.call(symbol, func, args, kwargs)
        if (symbol := in_place.get(func)) is not None:
            return self.write(args[0], symbol, func, args, kwargs)
        if (symbol := reflected.get(func)) is not None:
            if symbol is ltorch.matmul and not isinstance(args[1], torch.Tensor):
                return NotImplemented  # Python has an error for it
            return self.call(symbol, func, args[::-1], kwargs)
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__", "__delete__"):
            return self.property(func, name, args)
        leaves, _ = tree_flatten((args, kwargs))
        if name in FACTORY_NAMES or any(isinstance(x, torch.Tensor) for x in leaves):
            return self.opaque(func, args, kwargs)
        return func(*args, **kwargs)

    # ---- calls that are no operations ----

    def metadata(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        self.examine(args[0])
        if isinstance(args[0], Traced) and has_sizes(proxy := args[0]._handle.value):
            if func in answers and "memory_format" not in kwargs:
                return answers[func](proxy, *args[1:], **kwargs)
            if func not in INDEPENDENT_OF_SIZES:
                self.fix_sizes((args, kwargs))
        return func(*args, **kwargs)

    def fix_sizes(self, tree: Any) -> None:
        """The sizes of tensors are conditions from now on."""
        for x in tree_flatten(tree)[0]:
            proxy = x._handle.value if isinstance(x, Traced) else x
            if isinstance(proxy, TensorProxy):
                tuple(map(index, (*proxy.shape, *proxy.strides)))

    def value(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A question about a tensor's value: answered by the real one; the trace holds where it is the same."""
        proxy = self.handle_of(args[0]).current()
        answer = func(self.evaluation.value_of(proxy), *args[1:], **kwargs)
        if not self.evaluation.is_constant(proxy):
            before = len(self.trace.bound_symbols)
            if func is torch.Tensor.item and (number := self.numbers.of_tensor(proxy, answer)) is not None:
                self.stamp(before, {})
                return number
            prims.check_value(proxy, answer)
            self.stamp(before, {})
        return answer

    def kept_memory(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A question about the memory of a tensor, which compiled results need not have as eager's do."""
        if not isinstance(args[0], Traced):
            self.examine(args[0])
            return func(*args, **kwargs)
        raise NotRepresentable(
            f"{_called(func)} asks how the memory of a tensor came to be.",
            "Ask outside of the jitted function.",
            self.site().source,
        )

    def laziness(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> bool:
        x = args[0]
        if not isinstance(x, Traced) or not x.is_complex():
            return self.metadata(func, args, kwargs)
        raise NotRepresentable(
            f"{_called(func)} asks whether torch has put off a conjugation, which compiled programs do elsewhere.",
            "Ask outside of the jitted function.",
            self.site().source,
        )

    def is_set_to(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Whether two tensors are the same elements of one memory."""
        a, b = map(self.handle_of, args)
        if a is b or a.storage is not b.storage:
            return a is b
        return self.kept_memory(func, args, kwargs)

    def comparison(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Whether tensors are equal, or close: a question about the value of what compares them."""
        a, b = args[:2]
        close = func in (torch.allclose, torch.Tensor.allclose)
        if not close and (a.shape != b.shape or a.dtype != b.dtype):
            self.examine(a), self.examine(b)
            return False
        same = self.record(torch.isclose if close else torch.eq, args, kwargs)
        return self.value(torch.Tensor.__bool__, (self.record(torch.all, (same,), {}),), {})

    def contains(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> bool:
        same = self.record(torch.eq, args, {})
        return self.value(torch.Tensor.__bool__, (self.record(torch.any, (same,), {}),), {})

    def foreign(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        raise UnsupportedError(
            f"{_called(func)} leaves torch: what it gives has no place in a trace.",
            "Call it outside of the jitted function.",
            self.site().source,
        )

    def pickled(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        raise NotRepresentable(
            "A tensor is pickled, or copied by copy.copy, as no operation of torch does it.",
            "Use .clone() or .detach(), or do it outside of the jitted function.",
            self.site().source,
        )

    def deep_copy(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        x, known = args
        if id(x) not in known:
            known[id(x)] = self.record(torch.clone, (x,), {})
        return known[id(x)]

    def address(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        raise NotRepresentable(
            f"{_called(func)} asks where a tensor is in memory, which is elsewhere at each call.",
            "Ask outside of the jitted function.",
            self.site().source,
        )

    def change_of_shape(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        raise NotRepresentable(
            f"{_called(func)} changes the shape of a tensor in place, which is not built yet.",
            f"Use {_called(func).replace('_(', '(')}, which gives a new view.",
            self.site().source,
        )

    def setitem(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
        self.write(args[0], ltorch.setitem, func, args, kwargs)

    def text(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> str:
        return _describe(self.handle_of(args[0]).current())

    def requires_grad_(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
        x, requires_grad = args[0], (*args[1:], *kwargs.values(), True)[0]
        if self.handle_of(x).current().requires_grad != requires_grad:
            raise NotRepresentable(
                f"requires_grad_({requires_grad}) inside the jitted function is not built yet.",
                "Set it before the call.",
                self.site().source,
            )
        return x

    def record_aten(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An ATen operation on facades that torch's Python API did not show."""
        if func is torch.ops.aten.detach.default:
            return self.record(torch.Tensor.detach, args, kwargs)
        self.numbers.sizes.are_refused = True  # C++ computes with the numbers that they are now
        try:
            with self.unobserved(), torch._C.DisableTorchFunction():
                return self.opaque(func, args, kwargs)
        except _RunNatively:
            raise UnsupportedError(
                f"{func} mixes tensors of functorch with tensors of the trace.",
                "Jit the function that is transformed rather than its transformation.",
                self.site().source,
            ) from None

    def call(self, symbol: Symbol, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Record a call of an operation that has a rule."""
        handles: dict[TensorProxy, torch.Tensor] = {}
        statements = self.trace.bound_symbols
        before = len(statements)
        self.note_handles((args, kwargs), handles)
        proxy_args, proxy_kwargs = self.proxies(args), self.proxies(kwargs)
        if len(statements) > before:  # views of what has been written were made again
            self.stamp(before, handles)
            before = len(statements)
        autocast = autocast_state()
        try:
            if autocast:
                given = (proxy_args, proxy_kwargs)
                proxy_args, proxy_kwargs = cast_arguments(symbol, autocast, proxy_args, proxy_kwargs)
            out = symbol(*proxy_args, **proxy_kwargs)
            if autocast and concerns(autocast, given) and not gives_dtypes(func, *given, out):
                raise NotImplementedError("autocast casts inside of the operation")
        except (NotImplementedError, TypeError) as e:
            if isinstance(e, UnsupportedError):
                raise
            self.numbers.take_back(before)
            return self.opaque(func, args, kwargs)
        except Exception as e:
            self.numbers.take_back(before)
            self.annotate(e)
            raise
        if symbol.is_prim and symbol.module != "prims" and torch.is_grad_enabled():  # an operator from outside
            _follow_gradients(statements[before:])
        self.stamp(before, handles)
        bound_symbol = statements[-1] if len(statements) > before else None
        if symbol in updates and (targets := updates[symbol](*proxy_args, **proxy_kwargs)):
            out, *values = out
            for target, value in zip(targets, values):
                value.requires_grad = False  # these are statistics
                self.assign(handles[target], value)
        return self.wrap(out, bound_symbol, handles)

    def call_of_program(self, symbol: Symbol, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Record a call of an operation that the program makes by its symbol: `thunder.torch.add(a, b)`."""
        if symbol.implementation is None:
            raise UnsupportedError(
                f"{symbol.id} runs nothing.", "Register an operator with a function that runs it.", self.site().source
            )
        with self.unobserved(), torch._C.DisableTorchFunction():
            return self.call(symbol, symbol.implementation, args, kwargs)

    def opaque(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Record a call that has no rule."""
        args, kwargs = self.numbers.constants((args, kwargs))
        self.fix_sizes((args, kwargs))
        handles: dict[TensorProxy, torch.Tensor] = {}
        self.note_handles((args, kwargs), handles)
        proxy_args, proxy_kwargs = self.proxies(args), self.proxies(kwargs)
        before = len(self.trace.bound_symbols)
        if concerns(autocast_state(), (proxy_args, proxy_kwargs)):
            func = UnderAutocast(func, autocast_state())
        try:
            out = record_opaque(func, proxy_args, proxy_kwargs)
        except NotInTraces as e:
            way_out = "Call it outside of the jitted function."
            raise NotRepresentable(f"{_called(func)} {e}.", way_out, self.site().source) from None
        except Exception:  # eager tells whether it is an error, or fake tensors cannot tell what the call gives
            return self.opaque_by_value(func, proxy_args, proxy_kwargs, handles)
        self.stamp(before, handles)
        tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor)]
        for position, value in out.written:
            self.assign(tensors[position], value)
        written = {value: tensors[position] for position, value in out.written}
        result = self.wrap(out.result, None, {**handles, **written})
        for position, proxy in out.views:
            self.mark_opaque_view(result, proxy, tensors[position])
        return result

    def opaque_by_value(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], handles: dict[TensorProxy, torch.Tensor]
    ) -> Any:
        """Record a call whose output's shape depends on values: as it is in this call, with a check of it."""
        values = {p: self.evaluation.value_of(p) for p in unique_proxies((args, kwargs))}
        real, owners = self.real_result(func, args, kwargs, values)
        before = len(self.trace.bound_symbols)
        result = record_opaque_as(func, args, kwargs, real)
        constant = all(map(self.evaluation.is_constant, values))
        values_of = tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, real)
        self.evaluation.bind(result, values_of, constant)
        self.evaluation.note_producers()
        for p in () if constant else unique_proxies(result):
            prims.check_shape(p, p.shape)
        self.stamp(before, {})
        wrapped = self.wrap(result, None, {})
        for proxy, owner in zip(unique_proxies(result), owners):
            if owner is not None:
                self.mark_opaque_view(wrapped, proxy, handles[owner])
        return wrapped

    def real_result(
        self, func: Callable, args: tuple, kwargs: dict[str, Any], values: dict[TensorProxy, torch.Tensor]
    ) -> tuple[Any, list[TensorProxy | None]]:
        """What the call gives for copies of these values, which require gradients as the proxies do.

        It must neither write to them nor draw random numbers. Beside the result: for each tensor of it, the argument
        that it shares memory with, if any.
        """
        copies = {p: value.detach().clone() for p, value in values.items()}
        for p in (p for p in copies if p.requires_grad):
            copies[p].requires_grad_()
        versions = [x._version for x in copies.values()]
        real_args, real_kwargs = map_proxies((args, kwargs), copies)
        try:
            with recording(None), without_randomness():
                real = func(*real_args, **real_kwargs)
        except RandomnessError:
            raise self.not_by_value(func, "draws random numbers") from None
        except Exception as e:
            self.annotate(e)
            raise
        if [x._version for x in copies.values()] != versions:
            raise self.not_by_value(func, "writes to its arguments")
        memory = {x.untyped_storage().data_ptr(): p for p, x in copies.items() if x.numel()}
        tensors = {id(x): x for x in tree_flatten(real)[0] if isinstance(x, torch.Tensor)}
        return real, [
            memory.get(x.untyped_storage().data_ptr()) if x.layout is torch.strided else None for x in tensors.values()
        ]

    def not_by_value(self, func: Callable, what: str) -> NotRepresentable:
        return NotRepresentable(
            f"What {_called(func)} gives depends on values, and it {what}.",
            "Do it outside of the jitted function.",
            self.site().source,
        )

    def mark_opaque_view(self, result: Any, proxy: TensorProxy, of: torch.Tensor) -> None:
        """The output `proxy` shares the memory of `of` in a way that writes cannot follow."""
        for x in tree_flatten(result)[0]:
            if isinstance(x, Traced) and x._handle.value is proxy:
                parent = self.handle_of(of)
                x._handle = Handle.of_view(proxy, parent, self.refuse_stale_view, None)

    def refuse_stale_view(self, _: TensorProxy) -> TensorProxy:
        raise NotRepresentable(
            "A tensor was written to after a view of it was made that thunder cannot follow.",
            "Clone the view, or make it after the write.",
            self.site().source,
        )

    # ---- writes ----

    def write(self, x: Any, symbol: Symbol, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An in-place call: the functional operation's result becomes the value of `x`."""
        if symbol is ltorch.abs and x.is_complex():
            raise self.annotated(RuntimeError("In-place abs is not supported for complex tensors."))
        out = self.call(symbol, func, args, kwargs)
        if isinstance(out, Traced) and not (isinstance(x, Traced) and out._handle is x._handle):
            self.assign(x, self.converted(out._handle.current(), self.handle_of(x).current(), func))
        return x

    def converted(self, value: TensorProxy, like: TensorProxy, func: Callable) -> TensorProxy:
        """`value` in the dtype of the tensor that it is written to; refuses what torch refuses."""
        if value.shape != like.shape:
            raise self.annotated(
                RuntimeError(
                    f"output with shape {list(like.shape)} doesn't match the broadcast shape {list(value.shape)}"
                )
            )
        if value.dtype == like.dtype:
            return value
        if dtypes.category(value.dtype) > dtypes.category(like.dtype) and func is not torch.Tensor.copy_:
            raise self.annotated(
                RuntimeError(f"result type {value.dtype} can't be cast to the desired output type {like.dtype}")
            )
        before = len(self.trace.bound_symbols)
        out = ltorch.to(value, like.dtype)
        self.stamp(before, {})
        return out

    def assign(self, x: torch.Tensor, value: TensorProxy) -> None:
        handle = self.handle_of(x)
        if not handle.writable:
            raise NotRepresentable(
                "An in-place operation writes to a view that thunder cannot follow to its base.",
                "Use the operation that returns a new tensor, or write to the base.",
                self.site().source,
            )
        self.refuse_leaf(handle)
        before = len(self.trace.bound_symbols)
        handle.write(self.with_history(handle, value))
        self.stamp(before, {})

    def refuse_leaf(self, handle: Handle) -> None:
        """Torch's error where the program writes to a leaf that requires gradients, which its backward would miss."""
        source = handle.base.input
        if source is None or not (source.real.requires_grad and torch.is_grad_enabled()) or handle.is_cut_off():
            return
        self.asked.append((source.real, "is_leaf", source.real.is_leaf))
        if source.real.is_leaf:
            what = "a leaf Variable" if handle.parent is None else "a view of a leaf Variable"
            raise self.annotated(RuntimeError(f"{what} that requires grad is being used in an in-place operation."))

    def with_history(self, handle: Handle, value: TensorProxy) -> TensorProxy:
        """`value`, which a tensor gets by a write, with the gradients that this tensor then has."""
        if handle.parent is not None and (not torch.is_grad_enabled() or handle.is_cut_off()):
            if handle.base.current().requires_grad:
                raise NotRepresentable(
                    "A tensor that requires gradients is written to through a view that is detached, or without them.",
                    "Write to the tensor itself.",
                    self.site().source,
                )
            return value
        old = handle.current()
        if not old.requires_grad or value.requires_grad:
            return value
        if torch.is_grad_enabled():
            value = prims.overwrite(value, old)
            value.requires_grad = True
            return value
        value = prims.graft(value, old)  # eager does not see the write: gradients pass
        value.requires_grad = True
        self.grafted.add(value)
        return value

    def with_out(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        if torch.is_grad_enabled() and self.any_requires_grad((args, kwargs)):
            try:
                refuse_gradients(func, self.proxies(args), self.proxies(kwargs))
            except RuntimeError as e:
                raise self.annotated(e) from None
        out = kwargs.pop("out")
        result = self._record(func, args, kwargs)
        given = out if isinstance(out, tuple | list) else (out,)
        results = result if isinstance(result, tuple | list) else (result,)
        for target, value in zip(given, results):
            new, old = self.handle_of(value).current(), self.handle_of(target).current()
            if new.shape != old.shape:
                raise NotRepresentable(
                    f"out= is given a tensor of shape {list(old.shape)} for a result of shape {list(new.shape)}, "
                    "and torch gives the tensor another size.",
                    "Pass one of the result's shape.",
                    self.site().source,
                )
            self.assign(target, self.converted(new, old, func))
        return out

    # ---- properties ----

    def property(self, func: Callable, kind: str, args: tuple) -> Any:
        name = getattr(func.__self__, "__name__", "")
        x = args[0]
        if kind != "__get__":
            raise NotRepresentable(
                f"Setting the attribute .{name} of a tensor is not built yet.",
                "Write the values with copy_, or set it outside of the jitted function.",
                self.site().source,
            )
        if name in METADATA_PROPERTIES:
            self.examine(x)
            if name in SIZE_PROPERTIES and isinstance(x, Traced) and has_sizes(proxy := x._handle.value):
                return torch.Size(proxy.shape) if name == "shape" else proxy.numel * proxy.dtype.itemsize
            return func(*args)
        if name == "requires_grad":
            return self.handle_of(x).current().requires_grad if isinstance(x, Traced) else func(*args)
        if name in ("grad", "_grad", "is_leaf", "grad_fn"):
            return self.of_autograd(name, func, x)
        if name in ("_base", "_backward_hooks", "_post_accumulate_grad_hooks", "output_nr"):
            return None if isinstance(x, Traced) else func(*args)
        if name == "_version":
            return self.handle_of(x).storage.version
        if name == "data":
            return self.record(torch.Tensor.detach, args, {})
        return self.opaque(func, args, {})

    def of_autograd(self, name: str, func: Callable, x: torch.Tensor) -> Any:
        """What torch's autograd knows of a tensor: asked of the real one, and by the prologue of every later call."""
        handle = self.handle_of(x) if isinstance(x, Traced) else None
        real = x if handle is None else handle.input and handle.input.real
        if name in ("grad", "_grad"):
            if real is None:
                return None
            answer = func(real)
            self.asked.append((real, name, answer is None))
            if answer is not None:
                self.gradients[id(answer)] = answer, real
            return answer
        if real is None or (handle is not None and handle.current() is not handle.input.proxy):
            answer = self.handle_of(x).current().requires_grad
            is_known = name == "is_leaf" or not answer
            answer = not answer if name == "is_leaf" else None
        else:
            answer = func(real)
            is_known = name == "is_leaf" or answer is None
            self.asked.append((real, name, answer is None if name == "grad_fn" else answer))
        if not is_known:
            raise NotRepresentable(
                "The program asks how a tensor was computed (grad_fn).",
                "Ask outside of the jitted function.",
                self.site().source,
            )
        return answer

    def examine(self, x: Any) -> None:
        """The program asked for metadata of a real tensor: the trace depends on it."""
        if not isinstance(x, Traced) and isinstance(x, torch.Tensor):
            self.examined.setdefault(id(x), x)

    # ---- results ----

    def note_handles(self, tree: Any, handles: dict[TensorProxy, torch.Tensor]) -> None:
        """Which tensor each argument proxy stands for, so that a call that returns its argument gives it back."""
        if isinstance(tree, torch.Tensor):
            handles[self.handle_of(tree).current()] = tree
        elif isinstance(tree, tuple | list):
            for x in tree:
                self.note_handles(x, handles)
        elif isinstance(tree, dict):
            for x in tree.values():
                self.note_handles(x, handles)

    def wrap(self, out: Any, bound_symbol: BoundSymbol | None, given: dict[TensorProxy, torch.Tensor]) -> Any:
        """Facades for the proxies that a call returned."""
        if isinstance(out, TensorProxy):
            return given[out] if out in given else self.facade(self.new_handle(out, bound_symbol, given, None))
        if isinstance(out, tuple | list):
            items = [
                self.facade(self.new_handle(x, bound_symbol, given, i))
                if isinstance(x, TensorProxy) and x not in given
                else self.wrap(x, bound_symbol, given)
                for i, x in enumerate(out)
            ]
            if type(out) in (tuple, list):
                return type(out)(items)
            return type(out)(*items) if hasattr(out, "_fields") else type(out)(items)
        return out

    def new_handle(
        self, proxy: TensorProxy, bound_symbol: BoundSymbol | None, given: dict, position: int | None
    ) -> Handle:
        """The handle of a call's output: a view of an argument, or new memory."""
        if bound_symbol is not None:
            for x in bound_symbol.inputs:
                steps = view_steps(bound_symbol, x, proxy)
                if steps is not None and x in given:
                    view = _replay(bound_symbol, x, position, steps)
                    return Handle.of_view(proxy, self.handle_of(given[x]), view, steps)
        return Handle(proxy)

    def stamp(self, before: int, given: dict[TensorProxy, torch.Tensor]) -> None:
        """Give the statements recorded since `before` the user's line, and note what its variables are."""
        new = self.trace.bound_symbols[before:]
        if not new:
            return
        site = self.site()
        for statement in new:
            statement.source = site.source
        if torch.is_grad_enabled():
            mark_differentiable(new)
        self.hints.append((new[-1], site))

    def site(self) -> CallSite:
        return call_site(sys._getframe(1), self.start)

    # ---- errors ----

    def annotate(self, e: Exception) -> None:
        """Add the user's line to an error that eager would raise too."""
        source = self.site().source
        if source is not None and not getattr(e, "__notes__", None):
            e.add_note(f"{source.path}:{source.line}  {source.text.strip()}")

    def annotated(self, e: Exception) -> Exception:
        self.annotate(e)
        return e


_Handler = Callable[[Tracer, Callable, tuple, dict[str, Any]], Any]

# What calls that are no operations mean while tracing.
_handlers: dict[Callable, _Handler] = {
    **dict.fromkeys(METADATA_METHODS, Tracer.metadata),
    **dict.fromkeys(VALUE_METHODS, Tracer.value),
    **dict.fromkeys(COMPARISONS, Tracer.comparison),
    **dict.fromkeys(FOREIGN_METHODS, Tracer.foreign),
    **dict.fromkeys(LAZINESS_METHODS, Tracer.laziness),
    **module_calls.HANDLERS,
    torch.Tensor.data_ptr: Tracer.address,
    torch.Tensor.__reduce_ex__: Tracer.pickled,
    torch.Tensor.__deepcopy__: Tracer.deep_copy,
    torch.Tensor.__contains__: Tracer.contains,
    torch.Tensor.is_set_to: Tracer.is_set_to,
    **dict.fromkeys(MEMORY_METHODS, Tracer.kept_memory),
    **dict.fromkeys(SHAPE_METHODS | in_place_view.keys(), Tracer.change_of_shape),
    **dict.fromkeys((torch.Tensor.__repr__, torch.Tensor.__format__, torch.Tensor.__str__), Tracer.text),
    torch.Tensor.__setitem__: Tracer.setitem,
    torch.Tensor.requires_grad_: Tracer.requires_grad_,
    torch.Tensor.backward: Tracer.gradients_inside,
    torch.Tensor.register_hook: Tracer.hook_inside,
    torch.Tensor.retain_grad: Tracer.hook_inside,
    torch.Tensor.register_post_accumulate_grad_hook: Tracer.hook_inside,
    torch._make_dual: Tracer.forward_mode,
    torch.autograd.grad: Tracer.gradients_inside,
    torch.autograd.backward: Tracer.gradients_inside,
}


def has_sizes(proxy: TensorProxy) -> bool:
    """Whether sizes of a tensor may be others at a later call."""
    return any(isinstance(x, SymbolicSize) for x in proxy.shape)


def _size(proxy: TensorProxy, dim: int | None = None) -> Any:
    return torch.Size(proxy.shape) if dim is None else proxy.shape[dim]


def _stride(proxy: TensorProxy, dim: int | None = None) -> Any:
    return proxy.strides if dim is None else proxy.strides[dim]


# What a tensor whose sizes are symbolic says of itself.
answers: dict[Callable, Callable[..., Any]] = {
    torch.Tensor.size: _size,
    torch.Tensor.stride: _stride,
    torch.Tensor.is_contiguous: lambda proxy: proxy.is_contiguous,
    torch.Tensor.__len__: lambda proxy: index(proxy.shape[0]),
    **dict.fromkeys((torch.Tensor.numel, torch.Tensor.nelement, torch.numel), lambda proxy: proxy.numel),
}


def _replay(
    bound_symbol: BoundSymbol, of: TensorProxy, position: int | None, steps: Sequence[BoundSymbol]
) -> Callable[[TensorProxy], TensorProxy]:
    """Makes the view again, from another value of the tensor that it is a view of."""

    def view(value: TensorProxy) -> TensorProxy:
        if bound_symbol.inputs != (of,):  # which may be gone
            for step in steps:
                value = step.symbol(value, *step.args[1:])
            return value
        call = bound_symbol.with_values({of: value})
        out = call.symbol(*call.args, **call.kwargs)
        return out if position is None else out[position]

    return view


@cache
def _inplace_position(func: Callable) -> int:
    return list(inspect.signature(func).parameters).index("inplace")


def _without_inplace(func: Callable, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any], bool]:
    """The arguments without the one called `inplace`, and what it was."""
    if "inplace" in kwargs:
        return args, {k: v for k, v in kwargs.items() if k != "inplace"}, kwargs["inplace"]
    position = _inplace_position(func) if len(args) > 1 else len(args)
    return args[:position] + args[position + 1 :], kwargs, args[position] if position < len(args) else False


def _follow_gradients(operators: list[BoundSymbol]) -> None:
    """Derivatives go through operators that are not ours: torch's autograd tells them from what runs these."""
    for statement in operators:
        if any(p.requires_grad for p in statement.inputs if isinstance(p, TensorProxy)):
            for p in statement.outputs:
                if isinstance(p, TensorProxy):
                    p.requires_grad = dtypes.is_inexact(p.dtype)


def _called(func: Callable) -> str:
    name = getattr(func, "__name__", str(func))
    return {"__bool__": "bool(tensor)", "__int__": "int(tensor)", "__float__": "float(tensor)"}.get(name, f"{name}()")


def _describe(proxy: TensorProxy) -> str:
    return f"<traced tensor {proxy.name}: {proxy.type_string()}>"
