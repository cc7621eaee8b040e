"""The torch executor: runs every operation of the PyTorch language by the torch function it stands for, every primitive
by a torch function or one of this file. Nothing here changes an argument.

Importing this file also gives the symbols their implementations, so that the text of every trace can be executed.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

import thunder.torch as ltorch
from thunder.core import memory_prims, prims, window_prims
from thunder.core.errors import ValueChanged
from thunder.core.symbol import Symbol
from thunder.extend import OperatorExecutor, register_executor
from thunder.torch.language import find, inplace_argument, is_number, operations, stands_for

ex = OperatorExecutor("torch", version=torch.__version__)
register_executor(ex, default=True)

_AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "xla")


def no_autocast(function: Callable) -> Callable:
    """`function` with autocast off on every device type: a trace holds the casts that it needs."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not torch._C._is_any_autocast_enabled():
            return function(*args, **kwargs)
        enabled = [d for d in _AUTOCAST_DEVICES if torch.is_autocast_enabled(d)]
        for device_type in enabled:
            torch.set_autocast_enabled(device_type, False)
        try:
            return function(*args, **kwargs)
        finally:
            for device_type in enabled:
                torch.set_autocast_enabled(device_type, True)

    return call


def runs(symbol: Symbol, function: Callable | str, checker: Callable[..., bool] | None = None) -> None:
    """Run `symbol` by `function`: one of this file, or the dotted name of a torch callable."""
    if isinstance(function, str):
        name, module, function = function, "torch", find(function)
    else:
        name, module = function.__name__.removesuffix("_"), "torchex"
    operator = ex.register_operator(name, fn=function, like=symbol, module=module, tags=tuple(symbol.tags))
    ex.register_implementation(symbol, operator, checker=checker)
    if symbol.implementation is None:
        symbol.implementation = function


def implements(*symbols: Symbol) -> Callable[[Callable], Callable]:
    """Makes the decorated function what runs the symbols."""

    def decorate(function: Callable) -> Callable:
        for symbol in symbols:
            runs(symbol, function)
        return function

    return decorate


# ---- primitives: shape ----


@implements(prims.broadcast_in_dim)
def broadcast_in_dim(a: torch.Tensor, shape: Sequence[int], dims: Sequence[int]) -> torch.Tensor:
    sizes = [1] * len(shape)
    for size, d in zip(a.shape, dims):
        sizes[d] = size
    return a.reshape(sizes).expand(shape)


@implements(prims.slice_prim)
def slice_prim(a: torch.Tensor, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]) -> torch.Tensor:
    return a[tuple(map(slice, starts, ends, steps))]


@implements(prims.pad)
def pad(a: torch.Tensor, value: Any, low: Sequence[int], high: Sequence[int]) -> torch.Tensor:
    sizes = [n for before, behind in zip(reversed(low), reversed(high)) for n in (before, behind)]
    return torch.constant_pad_nd(a, sizes, value)


@implements(prims.graft, prims.overwrite)
def graft(a: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return a.detach()


@implements(prims.contiguous)
def contiguous(a: torch.Tensor) -> torch.Tensor:
    return a.clone(memory_format=torch.contiguous_format)


@implements(prims.view_as_real)
def view_as_real(a: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(a.resolve_conj())


# ---- primitives: numbers where torch takes tensors only ----


def _tensors(a: Any, b: Any) -> list[torch.Tensor]:
    """Both as tensors: a number becomes one like the other."""
    like = b if is_number(a) else a
    return [torch.full((), x, dtype=like.dtype, device=like.device) if is_number(x) else x for x in (a, b)]


@implements(prims.maximum)
def maximum(a: Any, b: Any) -> torch.Tensor:
    return torch.maximum(*_tensors(a, b))


@implements(prims.minimum)
def minimum(a: Any, b: Any) -> torch.Tensor:
    return torch.minimum(*_tensors(a, b))


@implements(prims.atan2)
def atan2(a: Any, b: Any) -> torch.Tensor:
    return torch.atan2(*_tensors(a, b))


# ---- primitives: indexing ----


@implements(prims.select, prims.take)
def take(a: torch.Tensor, index: torch.Tensor, dim: int) -> torch.Tensor:
    return a[(slice(None),) * dim + (index,)]


@implements(prims.index)
def index(a: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> torch.Tensor:
    return a[tuple(slice(None) if i is None else i for i in indices)]


@implements(prims.index_put)
def index_put(a: torch.Tensor, indices: Sequence, values: torch.Tensor, accumulate: bool) -> torch.Tensor:
    return torch.ops.aten.index_put(a, indices, values, accumulate)  # torch.index_put refuses None


@implements(prims.slice_scatter)
def slice_scatter(
    a: torch.Tensor, value: torch.Tensor, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]
) -> torch.Tensor:
    out = a.clone()
    out[tuple(map(slice, starts, ends, steps))] = value
    return out


# ---- primitives: reductions; torch takes no dimensions to mean all of them ----


@implements(prims.sum_prim)
def sum_prim(a: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    return torch.sum(a, dims, dtype=a.dtype) if dims else a.clone()


@implements(prims.prod_prim)
def prod_prim(a: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    for d in sorted(dims, reverse=True):
        a = torch.prod(a, d, dtype=a.dtype)
    return a if dims else a.clone()


def _over_dims(symbol: Symbol, function: Callable) -> Callable:
    def reduce(a: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
        return function(a, dims) if dims else a.clone()

    reduce.__name__ = reduce.__qualname__ = f"{symbol.name}_prim"
    runs(symbol, reduce)
    return reduce


amax_prim = _over_dims(prims.amax, torch.amax)
amin_prim = _over_dims(prims.amin, torch.amin)
any_prim = _over_dims(prims.any_prim, torch.any)
all_prim = _over_dims(prims.all_prim, torch.all)


@implements(prims.var)
def var(a: torch.Tensor, dims: Sequence[int], correction: float) -> torch.Tensor:
    return torch.var(a, dims, correction=correction)


@implements(prims.var_mean)
def var_mean(a: torch.Tensor, dims: Sequence[int], correction: float) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.var_mean(a, dims, correction=correction)


@implements(prims.cumsum)
def cumsum(a: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.cumsum(a, dim, dtype=a.dtype)


@implements(prims.cumprod)
def cumprod(a: torch.Tensor, dim: int) -> torch.Tensor:
    return torch.cumprod(a, dim, dtype=a.dtype)


@implements(prims.searchsorted)
def searchsorted(
    sorted_sequence: torch.Tensor, values: torch.Tensor, right: bool, dtype: torch.dtype, sorter: torch.Tensor | None
) -> torch.Tensor:
    return torch.searchsorted(sorted_sequence, values, right=right, out_int32=dtype is torch.int32, sorter=sorter)


@implements(prims.scatter_reduce)
def scatter_reduce(
    a: torch.Tensor, dim: int, index: torch.Tensor, value: torch.Tensor, reduce: str, include_self: bool
) -> torch.Tensor:
    return torch.scatter_reduce(a, dim, index, value, reduce, include_self=include_self)


# ---- primitives: pooling; torch has a function for each number of dimensions ----


def _over_last(name: str, dims: Sequence[int]) -> Callable:
    return getattr(torch.nn.functional, f"{name}{len(dims)}d")


@implements(window_prims.max_pool)
def max_pool(a: torch.Tensor, kernel: Sequence[int], *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return _over_last("max_pool", kernel)(a, kernel, *rest, return_indices=True)


@implements(window_prims.avg_pool)
def avg_pool(a: torch.Tensor, kernel: Sequence[int], *rest: Any) -> torch.Tensor:
    return _over_last("avg_pool", kernel)(a, kernel, *(rest[:-1] if len(kernel) == 1 else rest))


@implements(window_prims.adaptive_avg_pool)
def adaptive_avg_pool(a: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    return _over_last("adaptive_avg_pool", sizes)(a, sizes)


@implements(window_prims.adaptive_max_pool)
def adaptive_max_pool(a: torch.Tensor, sizes: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    return _over_last("adaptive_max_pool", sizes)(a, sizes, return_indices=True)


@implements(prims.sort)
def sort(a: torch.Tensor, dim: int, descending: bool, stable: bool) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.sort(a, dim=dim, descending=descending, stable=stable)


# ---- primitives: factories ----


@implements(prims.full)
def full(shape: Sequence[int], value: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.full(shape, value, dtype=dtype, device=device)


@implements(prims.iota)
def iota(length: int, start: Any, step: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """As torch.arange, whose own count of the elements is not trusted with floating point steps."""
    end = start + step * length if isinstance(step, int) else start + step * max(length - 0.5, 0)
    return torch.arange(start, end, step, dtype=dtype, device=device)


@implements(prims.tensor_from_sequence)
def tensor_from_sequence(sequence: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.tensor(sequence, dtype=dtype, device=device)


@implements(prims.uniform)
def uniform(shape: Sequence[int], low: float, high: float, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=device).uniform_(low, high)


@implements(prims.normal)
def normal(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=device).normal_()


@implements(prims.exponential)
def exponential(shape: Sequence[int], rate: float, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=device).exponential_(rate)


@implements(prims.random_integers)
def random_integers(
    shape: Sequence[int], low: int, high: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device=device).random_(low, high)


@implements(prims.dropout_mask)
def dropout_mask(a: torch.Tensor, probability: float) -> torch.Tensor:
    """Draws the numbers that torch's dropout draws, so that the same seed drops the same elements."""
    if a.is_cuda:
        return torch.native_dropout(a, probability, True)[1]
    return torch.empty_like(a).bernoulli_(1 - probability).bool()


@implements(prims.item)
def item(a: torch.Tensor) -> int | float:
    return a.item()


@implements(prims.check_value)
def check_value(a: torch.Tensor | int | float, expected: Any) -> None:
    """ValueChanged if Python would see `a` as another value than `expected`."""
    now = a.tolist() if isinstance(expected, list) else type(expected)(a)
    same = now == expected or (now != now and expected != expected)  # NaN is as expected
    if not same or (now == 0 and str(now) != str(expected)):  # and -0.0 is not 0.0
        raise ValueChanged(expected, now)


@implements(prims.check_shape)
def check_shape(a: torch.Tensor, shape: Sequence[int]) -> None:
    """ValueChanged if `a` has another shape."""
    if a.shape != tuple(shape):
        raise ValueChanged(tuple(shape), tuple(a.shape))


@implements(prims.copy_)
def copy_(a: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
    with torch.set_grad_enabled(torch.is_grad_enabled() and a.requires_grad):
        return to.copy_(a)


# ---- operations of the PyTorch language that are no function of torch's ----


@implements(ltorch.setitem)
def setitem(self: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    out = self.clone()
    out[index] = value
    return out


@implements(ltorch.copy)
def copy(self: torch.Tensor, src: Any, non_blocking: bool = False) -> torch.Tensor:
    return torch.empty_like(self).copy_(src) if isinstance(src, torch.Tensor) else torch.full_like(self, src)


@implements(ltorch.uniform)
def uniform_like(self: torch.Tensor, low: float = 0.0, high: float = 1.0, *, generator: None = None) -> torch.Tensor:
    return torch.empty_like(self).uniform_(low, high)


@implements(ltorch.normal)
def normal_like(self: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: None = None) -> torch.Tensor:
    return torch.empty_like(self).normal_(mean, std)


@implements(ltorch.exponential)
def exponential_like(self: torch.Tensor, lambd: float = 1.0, *, generator: None = None) -> torch.Tensor:
    return torch.empty_like(self).exponential_(lambd)


@implements(ltorch.root)
def root(a: torch.Tensor, degree: float) -> torch.Tensor:
    return torch.sqrt(a) if degree == 2 else torch.pow(a, 1 / degree)


@implements(ltorch.T)
def T(self: torch.Tensor) -> torch.Tensor:
    return torch.permute(self, tuple(reversed(range(self.ndim))))


@implements(ltorch.mT, ltorch.mH, ltorch.H)
def mT(self: torch.Tensor) -> torch.Tensor:
    return self.transpose(-2, -1)


@implements(ltorch.batch_norm)
def batch_norm(
    input: torch.Tensor,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if not training or running_mean is None or running_var is None:
        return torch.nn.functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    mean, var = running_mean.clone(), running_var.clone()
    out = torch.nn.functional.batch_norm(input, mean, var, weight, bias, training, momentum, eps)
    return out, mean, var


@implements(ltorch.instance_norm)
def instance_norm(
    input: torch.Tensor,
    running_mean: torch.Tensor | None = None,
    running_var: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    function = torch.nn.functional.instance_norm
    if not use_input_stats or running_mean is None or running_var is None:
        return function(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
    mean, var = running_mean.clone(), running_var.clone()
    return function(input, mean, var, weight, bias, use_input_stats, momentum, eps), mean, var


def _div(input: Any, other: Any, *, rounding_mode: str | None = None) -> torch.Tensor:
    if is_number(input) and rounding_mode is None:
        return other.__rtruediv__(input)  # rounds twice, and so does `2 / x`
    return torch.div(input, other, rounding_mode=rounding_mode)


def _view(self: torch.Tensor, *shape: Any, size: Any = None, dtype: torch.dtype | None = None) -> torch.Tensor:
    if dtype is not None or isinstance(shape[0] if shape else None, torch.dtype):
        return self.view(shape[0] if dtype is None else dtype)
    return self.reshape(*shape) if size is None else self.reshape(size)


def _fmod(a: Any, b: Any) -> torch.Tensor:
    return torch.fmod(a, b) if is_number(b) else torch.fmod(*_tensors(a, b))


def _comparison(function: Callable, mirrored: Callable) -> Callable:
    """`function`, which takes a number only behind the tensor; `mirrored` is the same with the operands exchanged."""
    return lambda a, b: mirrored(b, a) if is_number(a) else function(a, b)


def _softmax(function: Callable) -> Callable:
    """nn.functional's softmax or log_softmax, called as torch's too: the dtype behind the dimension, or `axis`."""

    def run(input: torch.Tensor, dim: Any = None, *rest: Any, **named: Any) -> torch.Tensor:
        if rest and isinstance(rest[-1], torch.dtype):
            named["dtype"] = rest[-1]
        return function(input, named.pop("axis", dim), **named)

    return run


# ---- what a torch callable of another name runs ----

_ELSEWHERE: dict[Symbol, str] = {
    memory_prims.bitcast: "Tensor.view",
    memory_prims.unfold: "Tensor.unfold",
    prims.convert_element_type: "Tensor.to",
    prims.convolution_backward: "ops.aten.convolution_backward",
    prims.device_put: "Tensor.to",
    prims.embedding: "nn.functional.embedding",
    prims.flash_attention: "ops.aten._scaled_dot_product_flash_attention_for_cpu",
    prims.flash_attention_backward: "ops.aten._scaled_dot_product_flash_attention_for_cpu_backward",
    window_prims.grid_sample: "nn.functional.grid_sample",
    prims.embedding_backward: "ops.aten.embedding_dense_backward",
    prims.linear: "nn.functional.linear",
    ltorch.zero: "zeros_like",
}

# ---- what runs where torch takes no number in front of the tensor ----

_NUMBER_IN_FRONT: dict[Symbol, Callable] = {
    prims.eq: _comparison(torch.eq, torch.eq),
    prims.ge: _comparison(torch.ge, torch.le),
    prims.gt: _comparison(torch.gt, torch.lt),
    prims.le: _comparison(torch.le, torch.ge),
    prims.lt: _comparison(torch.lt, torch.gt),
    prims.ne: _comparison(torch.ne, torch.ne),
    prims.fmod: _fmod,
}


def _not_in_place(symbol: Symbol) -> Callable[..., bool]:
    """A checker that refuses a call with a true `inplace`: such a call would change its argument."""
    signature = inspect.signature(symbol.meta)
    return lambda *args, **kwargs: not signature.bind(*args, **kwargs).arguments.get("inplace", False)


def _register_the_rest() -> None:
    ltorch.div.implementation = _div
    runs(ltorch.div, "div", lambda input, other, **_: not is_number(input))
    for symbol in (ltorch.softmax, ltorch.log_softmax):
        symbol.implementation = _softmax(find(stands_for[symbol]))
        runs(symbol, stands_for[symbol], lambda input, dim=None, *rest, axis=None, **_: not rest and axis is None)
    ltorch.view.implementation = _view  # the layout of a fusion's output may differ from the one that was traced
    runs(ltorch.view, "Tensor.reshape", lambda self, *shape, **named: not (named or torch.dtype in map(type, shape)))
    for name, symbol in prims.special_functions.items():
        runs(symbol, name if find(name) is not None else f"special.{name}")
    for symbol, name in _ELSEWHERE.items():
        runs(symbol, name)
    for symbol, function in _NUMBER_IN_FRONT.items():
        symbol.implementation = function
        runs(symbol, symbol.name, lambda a, b: not is_number(a))
    for symbol in prims.all_prims.values():
        if symbol not in ex.implementations and find(symbol.name) is not None:
            runs(symbol, symbol.name)
    written = set(inplace_argument.values())
    for symbol in operations.values():
        if symbol not in ex.implementations:
            runs(symbol, stands_for[symbol], _not_in_place(symbol) if symbol in written else None)


_register_the_rest()
