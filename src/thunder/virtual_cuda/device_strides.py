"""The strides a CUDA kernel gives its results, for the operations whose CPU kernels give others.

torch's fake tensors know them: the operation is run on fake CUDA tensors, once for each kind of arguments.
"""

import threading
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

# Found by comparing the host's results with fake CUDA tensors' over torch's operator database.
DIFFER = frozenset(
    {"_linalg_svd", "linalg_eig", "linalg_solve_triangular", "_fft_c2c", "_fft_c2r", "_fft_r2c", "channel_shuffle",
     "native_batch_norm", "_native_batch_norm_legit", "max_unpool2d", "replication_pad2d",
     "replication_pad2d_backward", "upsample_bilinear2d", "_scaled_dot_product_flash_attention",
     "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
     "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward",
     "_scaled_dot_product_cudnn_attention_backward"}
)  # fmt: skip

_known: dict[Any, list[tuple | None]] = {}
_asking = threading.local()


def restride(operator: torch._ops.OpOverload, args: tuple, kwargs: dict, result: Any) -> Any:
    """The host's result of `operator(*args, **kwargs)` on CUDA tensors, laid out as CUDA would."""
    leaves, structure = tree_flatten(result)
    strides = _strides(operator, args, kwargs)
    if strides is None or len(strides) != len(leaves):
        return result
    return tree_unflatten([_laid_out(leaf, wanted) for leaf, wanted in zip(leaves, strides)], structure)


def _laid_out(leaf: Any, wanted: tuple | None) -> Any:
    if wanted is None or leaf.shape != wanted[0] or leaf.stride() == wanted[1]:
        return leaf
    return torch.empty_strided(*wanted, dtype=leaf.dtype).copy_(leaf)


def _strides(operator: torch._ops.OpOverload, args: tuple, kwargs: dict) -> list[tuple | None] | None:
    """For each leaf of the result its shape and strides on CUDA; None where fake tensors do not know."""
    if getattr(_asking, "now", False):  # dispatch modes are switched off, so that fake tensors came back here
        return None
    leaves, structure = tree_flatten((args, kwargs))
    key = (operator, structure, tuple(map(_metadata, leaves)))
    if key not in _known:
        _asking.now = True
        try:
            _known[key] = _ask(operator, args, kwargs)
        finally:
            _asking.now = False
    return _known[key]


def _metadata(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.stride(), leaf.dtype, leaf.device
    return type(leaf), leaf


def _ask(operator: torch._ops.OpOverload, args: tuple, kwargs: dict) -> list[tuple | None] | None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def fake(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device)

    with FakeTensorMode():
        try:
            result = operator(*tree_map(fake, args), **tree_map(fake, kwargs))
        except Exception:  # whatever it is that fake tensors cannot do: the host's strides stay
            return None
    return [(x.shape, x.stride()) if isinstance(x, torch.Tensor) else None for x in tree_flatten(result)[0]]
