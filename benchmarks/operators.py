"""What it costs to trace one call of torch, with its decomposition, against torch's fake tensors on the same call."""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

import thunder
from benchmarks.measure import Row, best_seconds
from thunder.core.proxies import TensorProxy
from thunder.core.pytree import tree_map
from thunder.core.trace import Trace, record
from thunder.torch import torch_functions

X, IMAGE, SEQUENCE = torch.randn(8, 16), torch.randn(2, 4, 16, 16), torch.randn(2, 8, 16)
HEADS, INDEX, LABELS = torch.randn(2, 4, 8, 16), torch.arange(8), torch.arange(8) % 16
ROW, SQUARE = torch.randn(16), torch.randn(16, 16)

CALLS: list[tuple[Callable, tuple[Any, ...], dict[str, Any]]] = [
    *((getattr(torch, name), (X,), {}) for name in ("abs", "exp", "log", "sin", "tanh", "sqrt", "sigmoid", "erf")),
    *((getattr(torch, name), (X, X), {}) for name in ("add", "sub", "mul", "div", "maximum", "pow", "eq", "atan2")),
    *((getattr(torch, name), (X, ROW), {}) for name in ("add", "mul")),
    *((getattr(torch, name), (X, 2.5), {}) for name in ("add", "mul", "pow", "remainder")),
    *((getattr(torch, name), (X, 1), {}) for name in ("sum", "mean", "var", "amax", "argmax", "cumsum", "softmax")),
    *((getattr(F, name), (X,), {}) for name in ("relu", "gelu", "silu", "elu", "softplus", "hardswish", "mish")),
    *((getattr(torch.Tensor, name), (X,), {}) for name in ("float", "half", "t", "contiguous", "clone", "flatten")),
    (torch.where, (X > 0, X, X), {}),
    (torch.matmul, (X, SQUARE), {}),
    (torch.bmm, (SEQUENCE, SEQUENCE.transpose(1, 2)), {}),
    (torch.addmm, (ROW, X, SQUARE), {}),
    (torch.einsum, ("ij,jk->ik", X, SQUARE), {}),
    (torch.cat, ([X, X], 0), {}),
    (torch.stack, ([X, X], 0), {}),
    (torch.split, (X, 4), {}),
    (torch.chunk, (X, 2), {}),
    (torch.transpose, (X, 0, 1), {}),
    (torch.permute, (SEQUENCE, (2, 0, 1)), {}),
    (torch.reshape, (SEQUENCE, (16, 16)), {}),
    (torch.unsqueeze, (X, 0), {}),
    (torch.squeeze, (X[:, :1], 1), {}),
    (torch.Tensor.expand, (ROW, 8, 16), {}),
    (torch.flip, (X, (0,)), {}),
    (torch.roll, (X, 1, 0), {}),
    (torch.tril, (SQUARE,), {}),
    (torch.gather, (X, 1, LABELS[:, None]), {}),
    (torch.index_select, (X, 0, INDEX), {}),
    (torch.scatter, (X, 1, LABELS[:, None], X), {}),
    (torch.topk, (X, 3), {}),
    (torch.sort, (X,), {}),
    (torch.masked_fill, (X, X > 0, 0.0), {}),
    (torch.clamp, (X, -1, 1), {}),
    (torch.lerp, (X, X, 0.5), {}),
    (torch.Tensor.__getitem__, (X, (slice(1, 5), None, 3)), {}),
    (torch.Tensor.__getitem__, (X, INDEX), {}),
    (torch.zeros_like, (X,), {}),
    (torch.arange, (8,), {}),
    (torch.full, ((2, 3), 1.0), {}),
    (F.linear, (X, SQUARE, ROW), {}),
    (F.embedding, (INDEX, X), {}),
    (F.layer_norm, (X, (16,), ROW, ROW), {}),
    (F.rms_norm, (X, (16,), ROW), {}),
    (F.group_norm, (IMAGE, 2), {}),
    (F.batch_norm, (IMAGE, torch.zeros(4), torch.ones(4)), {}),
    (F.conv2d, (IMAGE, torch.randn(3, 4, 3, 3)), {}),
    (F.max_pool2d, (IMAGE, 2), {}),
    (F.avg_pool2d, (IMAGE, 2), {}),
    (F.adaptive_avg_pool2d, (IMAGE, 1), {}),
    (F.interpolate, (IMAGE,), {"scale_factor": 2.0}),
    (F.pad, (IMAGE, (1, 1)), {}),
    (F.scaled_dot_product_attention, (HEADS, HEADS, HEADS), {}),
    (F.dropout, (X, 0.1), {}),
    (F.cross_entropy, (X, LABELS), {}),
    (F.mse_loss, (X, X), {}),
    (F.nll_loss, (X, LABELS), {}),
    (F.binary_cross_entropy_with_logits, (X, X.sigmoid()), {}),
    (F.log_softmax, (X, -1), {}),
    (F.normalize, (X,), {}),
    (F.cosine_similarity, (X, X), {}),
    (F.glu, (X,), {}),
    (F.one_hot, (LABELS, 16), {}),
]


def traced(symbol: Any, args: tuple, kwargs: dict[str, Any]) -> Callable[[], Any]:
    """Records the call; what there is of tensors is proxies already."""

    def proxy(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        return TensorProxy("x", shape=x.shape, strides=x.stride(), dtype=x.dtype, device=x.device)

    args, kwargs = tree_map(proxy, (args, kwargs))

    def run() -> Any:
        with record(Trace("computation")):
            return symbol(*args, **kwargs)

    return run


def faked(function: Callable, args: tuple, kwargs: dict[str, Any], mode: FakeTensorMode) -> Callable[[], Any]:
    args, kwargs = tree_map(lambda x: mode.from_tensor(x) if isinstance(x, torch.Tensor) else x, (args, kwargs))

    def run() -> Any:
        with mode:
            return function(*args, **kwargs)

    return run


def measured() -> Iterator[tuple[str, float, float]]:
    """The name of each call, seconds to trace it, and those that fake tensors take."""
    mode = FakeTensorMode()
    for function, args, kwargs in CALLS:
        symbol = torch_functions[function]
        runs = traced(symbol, args, kwargs), faked(function, args, kwargs, mode)
        ours, theirs = best_seconds(*runs, repeats=5, number=20)
        yield symbol.name, ours, theirs


if __name__ == "__main__":
    torch.set_num_threads(1)
    thunder.jit(lambda x: x + 1)(X)
    rows = list(measured())
    ratio = statistics.median(ours / theirs for _, ours, theirs in rows)
    ours, theirs = (statistics.median(row[i] for row in rows) for i in (1, 2))
    print(Row(f"trace a call, median of {len(rows)}", ours, "FakeTensor", theirs, 1.0))
    print(f"median of the ratios {ratio:.2f}; the slowest: ", end="")
    print(", ".join(f"{name} {s * 1e6:.0f} us" for name, s, _ in sorted(rows, key=lambda row: -row[1])[:5]))
    print(f"median of {ours * 1e6:.0f} us a call (150 us allowed) {'ok' if ours <= 150e-6 else 'OVER'}")
