"""Multi-head attention of the PyTorch language, as the layers of torch.nn call it; https://arxiv.org/abs/1706.03762"""

import math

import torch

from thunder import clang
from thunder.core import dtypes, prims
from thunder.core.proxies import TensorProxy
from thunder.torch.activations import softmax
from thunder.torch.attention import scaled_dot_product_attention
from thunder.torch.language import torchsymbol
from thunder.torch.matrix import baddbmm, bmm, linear
from thunder.torch.nn import dropout

Tensor = TensorProxy
Optional = TensorProxy | None


@torchsymbol("nn.functional.multi_head_attention_forward")
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Optional,
    in_proj_bias: Optional,
    bias_k: Optional,
    bias_v: Optional,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Optional,
    training: bool = True,
    key_padding_mask: Optional = None,
    need_weights: bool = True,
    attn_mask: Optional = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Optional = None,
    k_proj_weight: Optional = None,
    v_proj_weight: Optional = None,
    static_k: Optional = None,
    static_v: Optional = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[TensorProxy, Optional]:
    """(length, batch, features) attended with `num_heads` heads and projected, and the weights if these are needed."""
    if static_k is not None or static_v is not None or query.ndim not in (2, 3):
        raise NotImplementedError("multi_head_attention_forward with static keys")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, divisible by {num_heads} heads, but got "
            f"{query.shape[-1]}"
        )
    batched = query.ndim == 3
    if not batched:
        query, key, value = _unsqueezed(query, key, value)
        key_padding_mask = None if key_padding_mask is None else clang.unsqueeze(key_padding_mask, 0)
    causal_alone = is_causal and key_padding_mask is None and not need_weights
    mask = None if causal_alone else _as_bias(attn_mask, query.dtype)
    padding = _as_bias(key_padding_mask, query.dtype)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else in_proj_weight
    q, k, v = _projected(query, key, value, weights, in_proj_bias)
    k, v, mask, padding = _with_bias_rows(k, v, bias_k, bias_v, mask, padding)
    q, k, v = (_heads(x, num_heads) for x in (q, k, v))
    if add_zero_attn:
        k, v = (_extended(x, prims.full((x.shape[0], 1, x.shape[2]), 0.0, x.dtype, x.device), 1) for x in (k, v))
        mask, padding = _widened(mask), _widened(padding)
    mask = _merged(mask, padding, q, k, num_heads)
    p = dropout_p if training else 0.0
    out, attention = _attended(q, k, v, mask, p, need_weights, causal_alone, num_heads)
    out = linear(out, out_proj_weight, out_proj_bias)
    if attention is not None and average_attn_weights:
        attention = clang.mean(attention, 1)
    if not batched:
        out = prims.squeeze(out, (1,))
        attention = None if attention is None else prims.squeeze(attention, (0,))
    return out, attention


def _unsqueezed(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One sample as a batch; what is the same tensor stays the same."""
    made: dict[TensorProxy, TensorProxy] = {}
    for x in (query, key, value):
        if x not in made:
            made[x] = clang.unsqueeze(x, 1)
    return made[query], made[key], made[value]


def _as_bias(mask: Optional, dtype: torch.dtype) -> Optional:
    """What is added to the scores: minus infinity where a bool mask forbids."""
    if mask is None or dtypes.is_float(mask.dtype):
        return mask
    if mask.dtype is not torch.bool:
        raise AssertionError(f"only bool and floating types of masks are supported, not {mask.dtype}")
    zero = prims.full(mask.shape, 0.0, dtype, mask.device)
    return clang.where(mask, -math.inf, zero)


def _projected(query: Tensor, key: Tensor, value: Tensor, weights: Tensor | tuple, bias: Optional) -> list[Tensor]:
    if isinstance(weights, TensorProxy):
        size = weights.shape[0] // 3
        if query is key and key is value:  # one product for all three
            together = linear(query, weights, bias)
            return [clang.slice_dim(together, 2, i * size, (i + 1) * size) for i in range(3)]
        weights = tuple(clang.slice_dim(weights, 0, i * size, (i + 1) * size) for i in range(3))
    size = weights[0].shape[0]
    parts = [None if bias is None else clang.slice_dim(bias, 0, i * size, (i + 1) * size) for i in range(3)]
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, parts)]


def _extended(a: Tensor, more: Tensor, dim: int) -> Tensor:
    return prims.cat([a, more], dim)


def _widened(bias: Optional) -> Optional:
    """Room for one key more, which nothing forbids."""
    if bias is None:
        return None
    low = (0,) * bias.ndim
    return prims.pad(bias, 0.0, low, (*low[1:], 1))


def _with_bias_rows(
    k: Tensor, v: Tensor, bias_k: Optional, bias_v: Optional, mask: Optional, padding: Optional
) -> tuple[Tensor, Tensor, Optional, Optional]:
    """The keys and values with a learned one more."""
    if bias_k is None or bias_v is None:
        return k, v, mask, padding
    rows = (clang.expand_to(x, (1, k.shape[1], x.shape[-1])) for x in (bias_k, bias_v))
    k, v = (_extended(x, row, 0) for x, row in zip((k, v), rows))
    return k, v, _widened(mask), _widened(padding)


def _heads(a: Tensor, heads: int) -> Tensor:
    """(length, batch, features) as (batch * heads, length, features of a head)."""
    length, batch, features = a.shape
    return clang.transpose(prims.reshape(a, (length, batch * heads, features // heads)), 0, 1)


def _merged(mask: Optional, padding: Optional, q: Tensor, k: Tensor, heads: int) -> Optional:
    """Both masks as one, of (1 or batch * heads, queries or 1, keys)."""
    shape = (q.shape[1], k.shape[1])
    if mask is not None:
        mask = clang.unsqueeze(mask, 0) if mask.ndim == 2 else mask
        if mask.shape[1:] != shape or mask.shape[0] not in (1, q.shape[0]):
            raise RuntimeError(f"The shape of the attn_mask is {list(mask.shape)}, but should be {shape}.")
    if padding is None:
        return mask
    batch = q.shape[0] // heads
    if padding.shape != (batch, shape[1]):
        raise AssertionError(f"expecting key_padding_mask shape of {(batch, shape[1])}, but got {padding.shape}")
    spread = prims.broadcast_in_dim(padding, (batch, heads, 1, shape[1]), (0, 3))
    spread = prims.reshape(spread, (batch * heads, 1, shape[1]))
    return spread if mask is None else mask + spread


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Optional, p: float, need_weights: bool, causal: bool, heads: int
) -> tuple[Tensor, Optional]:
    """(length, batch, features) of what each query attends to, and the weights."""
    rows, queries, size = q.shape
    batch = rows // heads
    if need_weights:
        scaled, keys = q * math.sqrt(1.0 / size), clang.transpose(k, 1, 2)
        attention = softmax(bmm(scaled, keys) if mask is None else baddbmm(mask, scaled, keys), -1)
        attention = dropout(attention, p) if p > 0.0 else attention
        out = clang.transpose(bmm(attention, v), 0, 1)
        out = prims.reshape(out, (queries, batch, heads * size))
        return out, prims.reshape(attention, (batch, heads, queries, k.shape[1]))
    if mask is not None:
        mask = clang.unsqueeze(mask, 0) if mask.shape[0] == 1 else prims.reshape(mask, (batch, heads, *mask.shape[1:]))
        mask = clang.expand_to(mask, (*mask.shape[:2], queries, k.shape[1]))
    q, k, v = (prims.reshape(x, (batch, heads, *x.shape[1:])) for x in (q, k, v))
    out = scaled_dot_product_attention(q, k, v, mask, p, causal)
    return prims.reshape(prims.permute(out, (2, 0, 1, 3)), (queries, batch, heads * size)), None
