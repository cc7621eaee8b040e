"""Features of torch that go past its Python API, or that have no rule, trace and give eager's results."""

import warnings

import numpy
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.checkpoint import checkpoint

import thunder
from thunder.core.pytree import tree_flatten

X = torch.linspace(-1, 1, 12).reshape(3, 4)


@torch.jit.script
def scripted(x):
    return x * 2 + 1


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


torch.manual_seed(0)
LSTM, GRU = nn.LSTM(4, 5, batch_first=True), nn.GRU(4, 5, 2)
ENCODER = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True).eval()
ATTENTION = nn.MultiheadAttention(4, 2, batch_first=True).eval()
CONVOLUTIONS = nn.Sequential(
    nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten()
)


def with_out(a):
    result = torch.empty(3, 4)
    torch.add(a, 1, out=result)
    return result


def through_data(a):
    b = a.clone()
    b.data.mul_(2)
    return b


def indexed(a):
    rows, columns = torch.tensor([1, 0]), torch.tensor([0, 1])
    return a[[0, 2]], a[:, None, ..., 1:3], a[-1], a[rows, columns], a[a > 0]


COMPILED = {
    "vmap": lambda a: torch.vmap(lambda row: row * row.sum())(a),
    "vmap of a torch function": lambda a: torch.vmap(torch.dot)(a, a),
    "jacrev": lambda a: torch.func.jacrev(torch.sin)(a[0]),
    "func.grad": lambda a: torch.func.grad(lambda x: (x**3).sum())(a),
    "a scripted function": lambda a: scripted(a) + 1,
    "autograd.Function": lambda a: Doubled.apply(a) + 1,
    "checkpoint": lambda a: checkpoint(lambda x: (x * 2).sin(), a, use_reentrant=False),
    "LSTM": lambda a: LSTM(a[None]),
    "GRU": lambda a: GRU(a),
    "a packed sequence": lambda a: LSTM(pack_padded_sequence(a.expand(2, 3, 4), [3, 2], batch_first=True))[1],
    "TransformerEncoderLayer": lambda a: ENCODER(a[None]),
    "MultiheadAttention": lambda a: ATTENTION(a[None], a[None], a[None]),
    "convolutions": lambda a: CONVOLUTIONS(a[None, None]),
    "einsum": lambda a: torch.einsum("ij,kj->ik", a, a),
    "complex numbers": lambda a: (torch.complex(a, a).abs(), torch.view_as_real(torch.fft.fft(a))),
    "a NumPy array": lambda a: a + torch.from_numpy(numpy.ones((3, 4), "float32")),
    "an ATen operation": lambda a: torch.ops.aten.relu(a),
    "out=": with_out,
    ".data": through_data,
    "sizes": lambda a: (a.new_zeros(a.size()), a.view(a.size(0), -1), a.shape),
    "indexing": indexed,
}


def change_of_shape(a):
    b = a.clone()
    b.t_()
    return b


PLAIN = {
    "a change of shape in place": change_of_shape,
    "jvp": lambda a: torch.func.jvp(torch.sin, (a,), (a,)),
    "jacfwd": lambda a: torch.func.jacfwd(torch.sin)(a[0]),
}


def tensors(tree):
    return [x for x in tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]


def compare(program):
    """Jitted equals eager, twice; whether it was compiled."""
    jitted = thunder.jit(program)
    with torch.no_grad():
        for _ in range(2):
            for actual, expected in zip(tensors(jitted(X)), tensors(program(X)), strict=True):
                torch.testing.assert_close(actual, expected)
    return thunder.compile_stats(jitted).plain is None


@pytest.mark.parametrize("name", COMPILED)
def test_a_feature_is_compiled_and_gives_eagers_results(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert compare(COMPILED[name])


@pytest.mark.parametrize("name", PLAIN)
def test_what_cannot_be_traced_is_run_plainly_with_a_warning(name):
    with pytest.warns(UserWarning, match="is run plainly"):
        assert not compare(PLAIN[name])
