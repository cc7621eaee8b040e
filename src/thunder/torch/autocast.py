"""`torch.autocast` around or inside a program: the casts that torch makes in front of operations, as operations.

The tables are those of https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference. What a table would get
wrong shows: torch's fake tensors tell the dtypes of the results; then the call is recorded as one under autocast.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import thunder.torch as ltorch
from thunder.core.proxies import TensorProxy
from thunder.core.pytree import tree_map
from thunder.core.symbol import Symbol, unique_proxies

Autocast = tuple[tuple[str, torch.dtype], ...]  # the kinds of device that it is on for, each with its dtype


def _symbols(names: str) -> frozenset[Symbol]:
    return frozenset(found for name in names.split() if (found := ltorch.language.operations.get(name)) is not None)


_LOWER = _symbols(
    """addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d einsum linear
    matmul mm scaled_dot_product_attention"""
)
_FULL = {
    "cpu": _symbols(
        """binary_cross_entropy binary_cross_entropy_with_logits cdist grid_sample huber_loss kl_div l1_loss mse_loss
        nll_loss prod quantile smooth_l1_loss soft_margin_loss trace"""
    ),
    "cuda": _symbols(
        """acos asin binary_cross_entropy_with_logits cdist cosh cosine_similarity cumprod cumsum dist erfinv exp expm1
        group_norm kl_div l1_loss layer_norm log log10 log1p log2 log_softmax logsumexp mse_loss nll_loss norm pow prod
        reciprocal rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin softplus sum tan vector_norm"""
    ),
}
_LOWER_ON_CUDA = _symbols("addmv addr chain_matmul dot mv outer prelu")
_FULL["cpu"] |= _symbols("cross_entropy")  # its last step is nll_loss
_FULL["cuda"] |= _symbols("cross_entropy")


def cast_arguments(symbol: Symbol, state: Autocast, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of an operation in the dtype that autocast gives them; records the casts."""
    for kind, lower in state:
        if symbol in _LOWER or (kind == "cuda" and symbol in _LOWER_ON_CUDA):
            dtype = lower
        elif symbol in _FULL[kind]:
            dtype = torch.float32
        else:
            continue
        args, kwargs = tree_map(lambda x, k=kind, d=dtype: _cast(x, k, d), (args, kwargs))
    return args, kwargs


def _cast(x: Any, kind: str, dtype: torch.dtype) -> Any:
    if not isinstance(x, TensorProxy) or x.device.type != kind or not x.dtype.is_floating_point:
        return x
    return x if x.dtype in (torch.float64, dtype) else ltorch.to(x, dtype)


def concerns(state: Autocast, arguments: Any) -> bool:
    """Whether autocast may cast any of the arguments."""
    kinds = {kind for kind, _ in state}
    return bool(kinds) and any(x.device.type in kinds and x.dtype.is_floating_point for x in unique_proxies(arguments))


@dataclass(frozen=True, slots=True)
class UnderAutocast:
    """A function that runs under autocast."""

    function: Callable
    state: Autocast

    @property
    def __name__(self) -> str:
        return getattr(self.function, "__name__", "operation")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._entered(0, args, kwargs)

    def _entered(self, position: int, args: tuple, kwargs: dict[str, Any]) -> Any:
        if position == len(self.state):
            return self.function(*args, **kwargs)
        kind, dtype = self.state[position]
        with torch.autocast(kind, dtype=dtype, cache_enabled=False):
            return self._entered(position + 1, args, kwargs)
