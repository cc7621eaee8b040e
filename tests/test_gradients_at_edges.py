"""Gradients at zeros, ties, borders of pieces and great arguments are eager's: where formulas give 0 times infinity."""

import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from operator_database import DATABASE, full_name
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo

import thunder

POINTS = torch.tensor([0.0, 0.5, -0.5, 1, -1, 2, -2, 3, -3, 6, -6, 20, -20, 100, -100, 1e-3])
PAIRS = [x.contiguous() for x in torch.broadcast_tensors(POINTS[:, None], POINTS[None])]
ROWS = torch.tensor([[0.0, 0, 1], [1, 1, 1], [0, 2, 0], [-1, 3, 3], [0, 0, 0]])

# They take more arguments, or give more than a tensor.
OTHERS = {"fill", "frexp", "mvlgamma", "nn.functional.prelu", "nn.functional.threshold", "polygamma"}
OTHERS.add("special.polygamma")

UNARY = [op for op in DATABASE if isinstance(op, UnaryUfuncInfo) and op.supports_autograd and op.name not in OTHERS]
BINARY = [op for op in DATABASE if isinstance(op, BinaryUfuncInfo) and op.supports_autograd]


def assert_as_eager(function: Callable, *inputs: torch.Tensor) -> None:
    """Gradients of the sum of what the function gives; what eager does not differentiate is passed over."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = torch.autograd.grad(function(*inputs).sum(), inputs, allow_unused=True)
        except RuntimeError:
            return
        actual = torch.autograd.grad(thunder.jit(function)(*inputs).sum(), inputs, allow_unused=True)
    for a, b, x in zip(actual, expected, inputs):
        a, b = (torch.zeros_like(x) if g is None else g for g in (a, b))
        torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("op", UNARY, ids=full_name)
def test_of_functions_of_one_argument(op: UnaryUfuncInfo):
    assert_as_eager(op.op, POINTS)


@pytest.mark.parametrize("op", BINARY, ids=full_name)
def test_of_functions_of_two_arguments(op: BinaryUfuncInfo):
    assert_as_eager(op.op, *PAIRS)


ACTIVATIONS = (
    *("celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish"),
    *("relu", "relu6", "selu", "sigmoid", "silu", "softplus", "softshrink", "softsign", "tanh", "tanhshrink"),
)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_of_activations(name: str):
    assert_as_eager(getattr(F, name), POINTS)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.elu(x, 0.5),
        lambda x: F.celu(x, alpha=2.0),
        lambda x: F.softplus(x, 2, 6),
        lambda x: F.hardtanh(x, -2, 3),
        lambda x: F.softshrink(x, 2),
        lambda x: F.threshold(x, 0.5, 7.0),
        lambda x: F.gelu(x, approximate="tanh"),
        lambda x: torch.logit(x, eps=1e-3),
        lambda x: x.clamp(-1, 3),
    ],
)
def test_of_activations_with_arguments(function: Callable):
    assert_as_eager(function, POINTS)


LOSSES = ("binary_cross_entropy_with_logits", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss")
LOSSES += ("poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss")


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_of_losses(name: str, reduction: str):
    assert_as_eager(lambda x, y: getattr(F, name)(x, y, reduction=reduction), *PAIRS)


def test_of_losses_of_infinite_differences():
    x, y = torch.tensor([0.0, float("inf"), -1.0, 2.0]), torch.tensor([float("inf"), 0.0, -float("inf"), 2.5])
    for function in (F.huber_loss, F.smooth_l1_loss, lambda x, y: F.smooth_l1_loss(x, y[:1], beta=0.0)):
        assert_as_eager(function, x, y)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_of_the_cross_entropy_of_certain_events(reduction: str):
    p = torch.tensor([0.0, 1, 0.5, 0.25])
    x, y = (x.contiguous() for x in torch.broadcast_tensors(p[:, None], p[None]))
    assert_as_eager(lambda x, y: F.binary_cross_entropy(x, y, reduction=reduction), x, y)
    assert_as_eager(lambda x, y: F.binary_cross_entropy(x, y, weight=p[:, None], reduction=reduction), x, y)


@pytest.mark.parametrize(
    "function",
    [
        *(lambda x, p=p: torch.linalg.vector_norm(x, p, dim=1) for p in (2, 1, 3, 1.5, 0.5, float("inf"), -1)),
        lambda x: x.norm(),
        lambda x: torch.norm(x, dim=1),
        lambda x: torch.linalg.norm(x),
        lambda x: torch.linalg.norm(x, 1),
        lambda x: torch.linalg.matrix_norm(x, float("inf")),
        lambda x: F.normalize(x, dim=1),
        lambda x: F.pairwise_distance(x, x.detach(), eps=0),
        lambda x: F.cosine_similarity(x, x.detach() + 1),
        lambda x: F.triplet_margin_loss(x, x.detach(), x.detach(), eps=0),
        lambda x: torch.cdist(x, x.detach()),
        lambda x: torch.dist(x, x.detach()),
        lambda x: torch.renorm(x, 2, 0, 0.5),
        lambda x: F.lp_pool1d(x[None], 2, 2),
        lambda x: x.std(1),
        lambda x: torch.std_mean(x, 1)[0],
        lambda x: F.instance_norm(x[None]),
    ],
)
def test_of_norms_of_nothing_but_zeros(function: Callable):
    assert_as_eager(function, ROWS)
    assert_as_eager(function, torch.zeros(3, 4))


@pytest.mark.parametrize("name", ["amax", "amin", "cumprod", "logsumexp", "max", "median", "prod", "var"])
def test_of_reductions_of_zeros_and_ties(name: str):
    def reduced(x):
        out = getattr(torch, name)(x, dim=1)
        return out if isinstance(out, torch.Tensor) else out[0]

    assert_as_eager(reduced, ROWS)
