"""What operations do that torch's operator database does not show: writes to parts, noise, views of new kinds."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import thunder


def by_rule(program: Callable, *args: Any) -> None:
    """Jitted, `program` gives what eager gives with the same random numbers, and every operation of it has a rule."""
    torch.manual_seed(0)
    expected = program(*(x.clone() for x in args))
    jitted = thunder.jit(program)
    torch.manual_seed(0)
    torch.testing.assert_close(jitted(*(x.clone() for x in args)), expected, equal_nan=True)
    trace = thunder.last_traces(jitted)[0]
    assert {s.symbol.module for s in trace.bound_symbols} <= {"ltorch", "prims"}, trace


AT, COLUMN = torch.tensor([0, 2]), torch.tensor([[1], [3]])
OF_4, OF_6 = torch.tensor([True, False, True, False]), torch.tensor([1, 0, 0, 1, 1, 0]).bool()
WRITES = [
    ((AT,), 7.5),
    ((slice(None), AT), torch.ones(2, 6)),
    ((AT, slice(1, 3)), torch.ones(2, 1, 6)),
    ((0, AT), 7.5),
    ((slice(None), AT, 0), 7.5),
    ((AT, slice(None), AT), 7.5),
    ((0, slice(None), AT), 7.5),
    ((COLUMN, AT), 7.5),
    ((None, AT), 7.5),
    ((slice(0, 4, 2), AT), 7.5),
    ((slice(-3, None), -AT - 1), 7.5),
    ((OF_4,), torch.ones(2, 5, 6)),
    ((0, slice(None), OF_6), torch.ones(5, 3)),
    ((OF_4, slice(1, 3)), 7.5),
    ((..., OF_6), 7.5),
    ((OF_4, AT[:1]), 7.5),
    (([0, 2], [1, 1]), 7.5),
]


@pytest.mark.parametrize("index, value", WRITES, ids=range(len(WRITES)))
def test_assignment_to_tensors_masks_slices_and_integers_mixed(index, value):
    def program(x):
        x = x * 1
        x[index] = value
        return x

    by_rule(program, torch.arange(120.0).reshape(4, 5, 6))


def test_an_index_that_does_not_fit_raises_torchs_error():
    def program(x):
        x[AT, torch.tensor([0, 1, 2])] = 1.0
        return x

    with pytest.raises(IndexError):
        thunder.jit(program)(torch.ones(4, 5))


def _scaled_diagonal(x):
    y = x.clone()
    y.diagonal().mul_(3)
    y.diagonal(1)[1:3] = 5
    return y


def _parts(x):
    y = torch.complex(x, x)
    y.real.mul_(2)
    y.imag[0] = 1
    return y


def _view_after_a_write(x):
    y = x.clone()
    diagonal = y.diagonal()
    y.add_(1)
    return diagonal * 2


def _written_input(x):
    x.diagonal().zero_()
    return x * 1


@pytest.mark.parametrize("program", [_scaled_diagonal, _parts, _view_after_a_write, _written_input])
def test_writes_through_views_of_new_kinds(program):
    by_rule(program, torch.arange(36.0).reshape(6, 6))


X = torch.randn(4, 6, 5, 5, generator=torch.Generator().manual_seed(0))
NOISE = {
    "dropout1d": (F.dropout1d, X[0]),
    "dropout1d of one sample": (F.dropout1d, X[0, 0]),
    "dropout2d": (F.dropout2d, X),
    "dropout3d": (F.dropout3d, X[:, :, None]),
    "dropout3d of one sample": (F.dropout3d, X),
    "alpha_dropout": (F.alpha_dropout, X),
    "feature_alpha_dropout": (F.feature_alpha_dropout, X),
}


@pytest.mark.parametrize("name", NOISE)
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropouts_drop_what_eager_drops(name, p):
    function, x = NOISE[name]
    by_rule(lambda x: function(x * 1, p, True), x)


@pytest.mark.parametrize("name", ["dropout2d", "alpha_dropout", "feature_alpha_dropout"])
def test_dropouts_of_another_layout_drop_what_eager_drops_in_training_too(name):
    function, x = NOISE[name]
    x = x.to(memory_format=torch.channels_last).requires_grad_()
    torch.manual_seed(0)
    expected = function(x, 0.5, True)
    torch.manual_seed(0)
    actual = thunder.jit(lambda x: function(x, 0.5, True))(x)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("hard", [False, True])
def test_gumbel_softmax_draws_what_eager_draws(hard):
    by_rule(lambda x: F.gumbel_softmax(x, 0.7, hard, dim=1), X)


def test_random_numbers_are_eagers():
    by_rule(lambda x: (torch.bernoulli(x.sigmoid()), torch.randint_like(x, 3, 9), F.rrelu(x)), X)
    by_rule(lambda x: (torch.bernoulli(x, 0.3), x.bernoulli(0.7), x.clone().exponential_(2.0)), X)


def test_places_in_a_triangle():
    by_rule(lambda x: x[torch.tril_indices(3, 4, -1)[0], torch.triu_indices(3, 4)[1][:3]], X)
    assert thunder.jit(lambda x: (torch.tril_indices(40, 40), x))(X)[0].shape == (2, 820)


@pytest.mark.parametrize("invert", [False, True])
def test_elements_among_others(invert):
    by_rule(lambda x: torch.isin(x.round(), torch.tensor([[0.0, 1.0], [2.0, 3.0]]), invert=invert), X)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_of_images_on_every_side(mode):
    by_rule(lambda x: F.pad(x, (1, 2, 3, 0), mode=mode), X)


def test_lp_pooling():
    by_rule(lambda x: (F.lp_pool1d(x[0], 2, 3), F.lp_pool2d(x, 3, 2, stride=1, ceil_mode=True)), X)


@pytest.mark.parametrize("align_corners", [False, True])
def test_an_image_seen_through_an_affine_grid(align_corners):
    theta = torch.tensor([[[0.9, 0.1, 0.2], [-0.2, 1.1, 0.0]]]).expand(4, 2, 3)

    def program(x, theta):
        grid = F.affine_grid(theta, list(x.shape), align_corners)
        return F.grid_sample(x, grid, align_corners=align_corners)

    by_rule(program, X, theta)
