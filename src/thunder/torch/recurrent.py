"""Cells of recurrent layers in the PyTorch language. Whole recurrent layers are left to torch's kernels."""

from collections.abc import Callable, Sequence

from thunder import clang
from thunder.core.proxies import TensorProxy
from thunder.torch.language import torchsymbol
from thunder.torch.matrix import linear

Bias = TensorProxy | None


def _check(input: TensorProxy, hx: TensorProxy, w_ih: TensorProxy, w_hh: TensorProxy) -> None:
    fits = input.ndim == hx.ndim == 2 and input.shape[1] == w_ih.shape[1] and hx.shape[1] == w_hh.shape[1]
    if not fits or input.shape[0] != hx.shape[0]:
        raise NotImplementedError("a recurrent cell with sizes that do not fit")


def _gates(
    input: TensorProxy, hx: TensorProxy, w_ih: TensorProxy, w_hh: TensorProxy, b_ih: Bias, b_hh: Bias, n: int
) -> tuple[list[TensorProxy], list[TensorProxy]]:
    """The input's and the state's share of each of `n` gates."""
    _check(input, hx, w_ih, w_hh)
    size = hx.shape[1]
    shares = linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh)
    first, second = ([clang.slice_dim(x, 1, i * size, (i + 1) * size) for i in range(n)] for x in shares)
    return first, second


def _simple_cell(name: str, activation: Callable[[TensorProxy], TensorProxy]) -> None:
    def cell(
        input: TensorProxy,
        hx: TensorProxy,
        w_ih: TensorProxy,
        w_hh: TensorProxy,
        b_ih: Bias = None,
        b_hh: Bias = None,
    ) -> TensorProxy:
        _check(input, hx, w_ih, w_hh)
        return activation(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))

    cell.__name__ = name
    torchsymbol(name)(cell)


_simple_cell("rnn_tanh_cell", clang.tanh)
_simple_cell("rnn_relu_cell", lambda x: clang.maximum(x, 0))


@torchsymbol("gru_cell")
def gru_cell(
    input: TensorProxy,
    hx: TensorProxy,
    w_ih: TensorProxy,
    w_hh: TensorProxy,
    b_ih: Bias = None,
    b_hh: Bias = None,
) -> TensorProxy:
    """https://arxiv.org/abs/1406.1078"""
    (i_r, i_z, i_n), (h_r, h_z, h_n) = _gates(input, hx, w_ih, w_hh, b_ih, b_hh, 3)
    reset, update = clang.sigmoid(i_r + h_r), clang.sigmoid(i_z + h_z)
    new = clang.tanh(i_n + reset * h_n)
    return new + update * (hx - new)


@torchsymbol("lstm_cell")
def lstm_cell(
    input: TensorProxy,
    hx: Sequence[TensorProxy],
    w_ih: TensorProxy,
    w_hh: TensorProxy,
    b_ih: Bias = None,
    b_hh: Bias = None,
) -> tuple[TensorProxy, TensorProxy]:
    """https://doi.org/10.1162/neco.1997.9.8.1735"""
    h, c = hx
    first, second = _gates(input, h, w_ih, w_hh, b_ih, b_hh, 4)
    i, f, g, o = (a + b for a, b in zip(first, second))
    new = clang.sigmoid(f) * c + clang.sigmoid(i) * clang.tanh(g)
    return clang.sigmoid(o) * clang.tanh(new), new
