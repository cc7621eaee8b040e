"""Operations that only CUDA has kernels for, written with operations that the host has.

Each takes and returns host tensors, under its ATen name in `IMPLEMENTATIONS`. None is differentiated through: autograd
is above, and calls the backward operations that are also here.
"""

from collections.abc import Callable

import torch
from torch import Tensor

aten = torch.ops.aten

# ---- scaled dot product attention: one computation behind CUDA's three fused kernels ----


class _Attention:
    """The probabilities of one attention, from which both the output and the gradients follow."""

    def __init__(self, query, key, value, bias, dropout_p, is_causal, scale, seed):
        self.query, self.key, self.value = query.float(), key.float(), value.float()
        groups = query.size(1) // key.size(1)
        self.key, self.value = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (self.key, self.value))
        self.groups = groups
        self.scale = query.size(-1) ** -0.5 if scale is None else scale
        scores = self.query @ self.key.transpose(-2, -1) * self.scale
        if bias is not None:
            scores = scores + bias
        if is_causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
        self.logsumexp = scores.logsumexp(-1)
        self.probabilities = (scores - self.logsumexp.unsqueeze(-1)).exp().nan_to_num(0.0)
        self.kept = 1.0
        if dropout_p:
            drawn = torch.rand(scores.shape, generator=torch.Generator().manual_seed(int(seed)))
            self.kept = (drawn >= dropout_p) / (1 - dropout_p)

    def output(self) -> Tensor:
        return (self.probabilities * self.kept) @ self.value

    def gradients(self, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """With respect to query, key, value and the scores."""
        grad = grad.float()
        of_value = (self.probabilities * self.kept).transpose(-2, -1) @ grad
        of_probabilities = grad @ self.value.transpose(-2, -1) * self.kept
        mean = (of_probabilities * self.probabilities).sum(-1, keepdim=True)
        of_scores = self.probabilities * (of_probabilities - mean)
        of_query = of_scores @ self.key * self.scale
        of_key = of_scores.transpose(-2, -1) @ self.query * self.scale
        return of_query, self._ungrouped(of_key), self._ungrouped(of_value), of_scores

    def _ungrouped(self, grad: Tensor) -> Tensor:
        return grad.unflatten(1, (-1, self.groups)).sum(2) if self.groups > 1 else grad


def _seed(dropout_p: float) -> Tensor:
    return torch.randint(1 << 62, ()) if dropout_p else torch.zeros((), dtype=torch.int64)


def _flash_attention(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    seed, nothing = _seed(dropout_p), torch.empty(0)
    attention = _Attention(query, key, value, None, dropout_p, is_causal, scale, seed)
    state = torch.stack([seed, torch.zeros_like(seed)]).to(torch.uint64)
    output = attention.output().to(query.dtype)
    lengths = query.size(2), key.size(2)
    return output, attention.logsumexp, None, None, *lengths, state, torch.empty((), dtype=torch.uint64), nothing


def _flash_attention_backward(
    grad, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed,
    philox_offset, *, scale=None,
):  # fmt: skip
    attention = _Attention(query, key, value, None, dropout_p, is_causal, scale, philox_seed.flatten()[0])
    return tuple(g.to(query.dtype) for g in attention.gradients(grad)[:3])


def _efficient_attention(
    query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, *, scale=None
):  # fmt: skip
    seed = _seed(dropout_p)
    attention = _Attention(query, key, value, attn_bias, dropout_p, is_causal, scale, seed)
    length = query.size(2)  # the kernel writes rows of a multiple of 32
    padded = torch.nn.functional.pad(attention.logsumexp, (0, -length % 32), value=torch.inf)
    logsumexp = padded if compute_log_sumexp else padded[..., :0]
    return attention.output().to(query.dtype), logsumexp, seed, torch.zeros((), dtype=torch.int64)


def _efficient_attention_backward(
    grad, query, key, value, attn_bias, out, logsumexp, philox_seed, philox_offset, dropout_p, grad_input_mask,
    is_causal=False, *, scale=None,
):  # fmt: skip
    attention = _Attention(query, key, value, attn_bias, dropout_p, is_causal, scale, philox_seed)
    *grads, of_scores = attention.gradients(grad)
    of_bias = of_scores.sum_to_size(attn_bias.shape) if grad_input_mask[3] else torch.empty(0)
    return tuple(g.to(query.dtype) for g in (*grads, of_bias))


def _cudnn_attention(
    query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, return_debug_mask=False, *,
    scale=None,
):  # fmt: skip
    seed = _seed(dropout_p)
    attention = _Attention(query, key, value, attn_bias, dropout_p, is_causal, scale, seed)
    logsumexp = attention.logsumexp.unsqueeze(-1) if compute_log_sumexp else torch.empty(0)
    offset, output = torch.zeros((), dtype=torch.int64), attention.output().to(query.dtype)
    return output, logsumexp, None, None, query.size(2), key.size(2), seed, offset, torch.empty(0)


def _cudnn_attention_backward(
    grad, query, key, value, out, logsumexp, philox_seed, philox_offset, attn_bias, cum_seq_q, cum_seq_k, max_q, max_k,
    dropout_p, is_causal, *, scale=None,
):  # fmt: skip
    attention = _Attention(query, key, value, attn_bias, dropout_p, is_causal, scale, philox_seed)
    return tuple(g.to(query.dtype) for g in attention.gradients(grad)[:3])


# ---- recurrent cells ----


def _sum(*terms: Tensor | None) -> Tensor:
    return sum(term for term in terms if term is not None)


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    i, f, g, o = _sum(input_gates, hidden_gates, input_bias, hidden_bias).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def _lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    i, f, g, o = workspace.chunk(4, 1)
    grad_hy = torch.zeros_like(cy) if grad_hy is None else grad_hy
    of_cy = grad_hy * o * (1 - cy.tanh() ** 2) + (0 if grad_cy is None else grad_cy)
    of_i, of_f, of_g = of_cy * g * i * (1 - i), of_cy * cx * f * (1 - f), of_cy * i * (1 - g * g)
    of_o = grad_hy * cy.tanh() * o * (1 - o)
    of_gates = torch.cat([of_i, of_f, of_g, of_o], 1)
    return of_gates, of_cy * f, of_gates.sum(0) if has_bias else None


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    input_r, input_z, input_n = _sum(input_gates, input_bias).chunk(3, 1)
    hidden_r, hidden_z, hidden_n = _sum(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (input_r + hidden_r).sigmoid(), (input_z + hidden_z).sigmoid()
    n = (input_n + r * hidden_n).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hx, hidden_n], 1)


def _gru_cell_backward(grad_hy, workspace, has_bias):
    r, z, n, hx, hidden_n = workspace.chunk(5, 1)
    of_z = grad_hy * (hx - n) * z * (1 - z)
    of_n = grad_hy * (1 - z) * (1 - n * n)
    of_r = of_n * hidden_n * r * (1 - r)
    of_input, of_hidden = torch.cat([of_r, of_z, of_n], 1), torch.cat([of_r, of_z, of_n * r], 1)
    biases = (of_input.sum(0), of_hidden.sum(0)) if has_bias else (None, None)
    return of_input, of_hidden, grad_hy * z, *biases


# ---- the rest ----


def _rms_norm_backward(grad, input, normalized_shape, rstd, weight, output_mask):
    dims = list(range(-len(normalized_shape), 0))
    normalized, grad32 = input.float() * rstd, grad.float()
    scaled = grad32 if weight is None else grad32 * weight
    of_input = rstd * (scaled - normalized * (scaled * normalized).mean(dims, keepdim=True))
    of_weight = None
    if output_mask[1] and weight is not None:
        of_weight = (grad32 * normalized).sum_to_size(normalized_shape).to(weight.dtype)
    return of_input.to(input.dtype) if output_mask[0] else None, of_weight


def _fused_dropout(self, p, generator=None):
    kept = torch.rand(self.shape, generator=generator) < p
    return self * kept / p, kept.to(torch.uint8)


def _histc(self: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Of integers too, which the host's kernel does not count."""
    return aten.histc(self.double(), bins, min, max).to(self.dtype)


def _in_dtype(operator: Callable) -> Callable:
    """A matrix product that accumulates and returns another dtype than its factors have."""

    def product(*args):
        *tensors, dtype = args
        return operator(*(tensor.to(dtype) for tensor in tensors))

    return product


IMPLEMENTATIONS: dict[str, Callable] = {
    "_scaled_dot_product_flash_attention": _flash_attention,
    "_scaled_dot_product_flash_attention_backward": _flash_attention_backward,
    "_scaled_dot_product_efficient_attention": _efficient_attention,
    "_scaled_dot_product_efficient_attention_backward": _efficient_attention_backward,
    "_scaled_dot_product_cudnn_attention": _cudnn_attention,
    "_scaled_dot_product_cudnn_attention_backward": _cudnn_attention_backward,
    "_thnn_fused_lstm_cell": _lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "_thnn_fused_gru_cell": _gru_cell,
    "_thnn_fused_gru_cell_backward": _gru_cell_backward,
    "_fused_rms_norm_backward": _rms_norm_backward,
    "_fused_dropout": _fused_dropout,
    "histc": _histc,
    "_masked_scale": lambda self, mask, scale: self * mask * scale,
    "_use_cudnn_ctc_loss": lambda *args: False,
    "_use_cudnn_ctc_loss.Tensor": lambda *args: False,
    "_use_miopen_ctc_loss": lambda *args: False,
    "_use_miopen_ctc_loss.Tensor": lambda *args: False,
    "mm.dtype": _in_dtype(aten.mm),
    "bmm.dtype": _in_dtype(aten.bmm),
}
