"""Random numbers of the PyTorch language."""

from collections.abc import Sequence
from typing import Any

import torch

from thunder import clang
from thunder.core import prims
from thunder.core.devices import to_device
from thunder.core.proxies import TensorProxy
from thunder.torch.factories import checked
from thunder.torch.language import in_place, is_number, sizes_of, torchsymbol, unsupported


def _draw(
    name: str, shape: Sequence[int], dtype: torch.dtype, device: torch.device, requires_grad: bool = False
) -> TensorProxy:
    """Numbers between 0 and 1 for rand, of mean 0 and variance 1 for randn."""
    if not dtype.is_floating_point:
        raise NotImplementedError(f"{name} of {dtype}")
    if name == "rand":
        out = prims.uniform(tuple(shape), 0.0, 1.0, dtype, device)
    else:
        out = prims.normal(tuple(shape), dtype, device)
    out.requires_grad = requires_grad
    return out


def _distribution(name: str) -> None:
    def factory(
        *sizes: int | Sequence[int],
        size: Sequence[int] | None = None,
        generator: torch.Generator | None = None,
        out: None = None,
        dtype: torch.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool | None = False,
        requires_grad: bool = False,
        names: Any = None,
    ) -> TensorProxy:
        checked(name, layout, pin_memory, names)
        unsupported(name, generator=generator)
        return _draw(name, sizes_of(sizes, size), dtype or torch.get_default_dtype(), to_device(device), requires_grad)

    def like(
        input: TensorProxy,
        *,
        dtype: torch.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool | None = False,
        requires_grad: bool = False,
        memory_format: Any = None,
        generator: torch.Generator | None = None,
    ) -> TensorProxy:
        checked(f"{name}_like", layout, pin_memory, memory_format=memory_format)
        unsupported(f"{name}_like", generator=generator)
        where = input.device if device is None else to_device(device)
        return _draw(name, input.shape, dtype or input.dtype, where, requires_grad)

    factory.__name__, like.__name__ = name, f"{name}_like"
    torchsymbol(name)(factory)
    torchsymbol(f"{name}_like")(like)


_distribution("rand")
_distribution("randn")


def _check_range(low: int, high: Any) -> None:
    if not is_number(high) or low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")


@torchsymbol("randint")
def randint(
    low: int,
    high: int | Sequence[int],
    size: Sequence[int] | None = None,
    *,
    generator: torch.Generator | None = None,
    out: None = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
) -> TensorProxy:
    """`randint(high, size)` or `randint(low, high, size)`: integers from low (0) up to high, which is left out"""
    checked("randint", layout, pin_memory)
    unsupported("randint", generator=generator)
    if size is None:
        low, high, size = 0, low, high
    _check_range(low, high)
    return prims.random_integers(sizes_of((size,)), low, high, dtype or torch.int64, to_device(device))


@torchsymbol("randint_like")
def randint_like(
    input: TensorProxy,
    low: int = 0,
    high: int | None = None,
    *,
    generator: torch.Generator | None = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool | None = False,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> TensorProxy:
    """`randint_like(x, high)` or `randint_like(x, low, high)`: integers in the shape and dtype of `input`"""
    checked("randint_like", layout, pin_memory, memory_format=memory_format)
    unsupported("randint_like", generator=generator)
    if high is None:
        low, high = 0, low
    _check_range(low, high)
    where = input.device if device is None else to_device(device)
    out = prims.random_integers(input.shape, low, high, dtype or input.dtype, where)
    out.requires_grad = requires_grad
    return out


@torchsymbol("bernoulli")
def bernoulli(input: TensorProxy, p: float | None = None, *, generator: torch.Generator | None = None) -> TensorProxy:
    """1 with the chance that each element of `input` is (or `p`, if told), else 0"""
    unsupported("bernoulli", generator=generator)
    if not input.dtype.is_floating_point or not (p is None or (is_number(p) and 0 <= p <= 1)):
        raise NotImplementedError(f"bernoulli of {input.dtype}, or with chances of another tensor")
    return prims.bernoulli(input if p is None else prims.full(input.shape, float(p), input.dtype, input.device))


@torchsymbol("Tensor.bernoulli")
def tensor_bernoulli(self: TensorProxy, p: Any = None, *, generator: torch.Generator | None = None) -> TensorProxy:
    """`x.bernoulli()` and `x.bernoulli(p)`."""
    return bernoulli.meta(self, p, generator=generator)


# Without a chance, `bernoulli_` takes 0.5 and `bernoulli` what is there: two operations.
del in_place[torch.Tensor.bernoulli_]


@torchsymbol("Tensor.exponential")
def exponential(self: TensorProxy, lambd: float = 1.0, *, generator: torch.Generator | None = None) -> TensorProxy:
    """What `exponential_` writes: random numbers with the density lambd * exp(-lambd * x)."""
    unsupported("exponential_", generator=generator)
    if not self.dtype.is_floating_point or lambd <= 0 or not self.is_contiguous:
        raise NotImplementedError(f"exponential_ of {self.dtype} with lambd={lambd}")
    return prims.exponential(self.shape, float(lambd), self.dtype, self.device)


@torchsymbol("Tensor.uniform")
def uniform(
    self: TensorProxy, low: float = 0.0, high: float = 1.0, *, generator: torch.Generator | None = None
) -> TensorProxy:
    """What `uniform_` writes: random numbers from [low, high)."""
    unsupported("uniform_", generator=generator)
    return prims.uniform(self.shape, float(low), float(high), self.dtype, self.device)


@torchsymbol("Tensor.normal")
def normal(
    self: TensorProxy, mean: float = 0.0, std: float = 1.0, *, generator: torch.Generator | None = None
) -> TensorProxy:
    """What `normal_` writes: random numbers of this mean and standard deviation."""
    unsupported("normal_", generator=generator)
    drawn = prims.normal(self.shape, self.dtype, self.device)
    drawn = drawn if std == 1 else clang.mul(drawn, std)
    return drawn if mean == 0 else clang.add(drawn, mean)
