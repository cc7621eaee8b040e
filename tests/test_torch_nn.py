"""Products, layers, activations and losses of the PyTorch language against eager PyTorch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from recorded import Recorded, assert_as_eager, assert_close

import thunder
import thunder.torch as ltorch
from thunder.executors import torchex  # noqa: F401
from thunder.torch import torch_functions, updates


def check(function: Callable, *args: Any, **kwargs: Any) -> Recorded:
    """The operation that a call of torch's `function` is recorded as gives what that gives."""
    return assert_as_eager(torch_functions[function], function, *args, **kwargs)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (3,)),
        ((2, 3), (5, 3, 4)),
        ((3,), (5, 3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((1, 2, 3), (5, 3, 4)),
        ((6, 1, 2, 3), (5, 3, 4)),
        ((0, 3), (3, 4)),
        ((2, 0), (0, 4)),
        ((0, 2, 3), (3, 4)),
    ],
    ids=str,
)
def test_matmul_of_every_rank(shapes):
    check(torch.matmul, *map(torch.randn, shapes))


def test_products_that_do_not_fit_raise_torchs_error():
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        Recorded(ltorch.matmul, torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="same dtype"):
        Recorded(ltorch.linear, torch.ones(2, 3), torch.ones(2, 3).double())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("mask", [None, "bool", "float", "causal"])
def test_attention(dtype, mask):
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 5, 8).to(dtype) for _ in range(3))
    attn_mask = {"bool": torch.rand(5, 5) > 0.4, "float": torch.randn(5, 5).to(dtype)}.get(mask)
    if mask == "bool":
        attn_mask[0] = False  # nothing to attend to
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype is torch.bfloat16 else None
    check(
        F.scaled_dot_product_attention,
        q,
        k,
        v,
        attn_mask,
        is_causal=mask == "causal",
        tolerance=tolerance,
    )


def test_attention_is_laid_out_as_torch_does_it():
    rows, columns = torch.randn(2, 5, 3, 4), torch.randn(2, 3, 5, 4)
    packed = torch.randn(2, 5, 9, 4)
    parts = packed[:, :, :3], rows[..., ::2].transpose(1, 2)
    for q in (rows.transpose(1, 2), columns, rows.permute(1, 2, 0, 3), *(x.transpose(1, 2) for x in parts)):
        for mask in (None, torch.zeros(5, 5), torch.zeros(3, 5, 5)):
            mask = None if mask is None or q.shape[-2] != 5 else mask
            check(F.scaled_dot_product_attention, q, q.contiguous(), q, mask)
    heads = thunder.jit(lambda q: F.scaled_dot_product_attention(q, q, q).transpose(1, 2).view(2, 5, 12))
    torch.testing.assert_close(heads(rows.transpose(1, 2)), heads.__wrapped__(rows.transpose(1, 2)))


def test_attention_with_grouped_heads_and_scale():
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8)
    check(F.scaled_dot_product_attention, q, k, v, scale=0.3, enable_gqa=True)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(6, 5), (5,), (2, 5, 3)])
def test_cross_entropy_of_class_indices_and_probabilities(reduction, smoothing, weighted, shape):
    torch.manual_seed(0)
    classes = 0 if len(shape) == 1 else 1
    logits, target = torch.randn(shape), torch.randint(0, 5, [s for d, s in enumerate(shape) if d != classes])
    kwargs = {"reduction": reduction, "label_smoothing": smoothing, "weight": torch.rand(5) if weighted else None}
    check(F.cross_entropy, logits, target, **kwargs)
    check(F.cross_entropy, logits, torch.rand(shape), **kwargs)
    if target.ndim:
        target.view(-1)[0] = -100
        check(F.cross_entropy, logits, target, **kwargs)
        check(F.cross_entropy, logits, torch.full_like(target, -100), **kwargs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 4)])
def test_batch_norm_and_its_running_statistics(dtype, training, shape):
    torch.manual_seed(0)
    x, weight, bias = torch.randn(shape).to(dtype), torch.rand(3), torch.rand(3)
    mean, var = torch.rand(3), torch.rand(3) + 0.5
    args = (x, mean, var, weight, bias, training, 0.2)
    expected_mean, expected_var = mean.clone(), var.clone()
    expected = F.batch_norm(x, expected_mean, expected_var, weight, bias, training, 0.2)
    recorded = Recorded(ltorch.batch_norm, *args)
    for result in (recorded.run(), recorded.run_primitives()):
        assert_close(result, (expected, expected_mean, expected_var) if training else expected)
    proxies = recorded.trace.args
    written = updates[ltorch.batch_norm](*proxies[:5], training)
    assert written == (proxies[1:3] if training else ())


def test_embedding_with_a_padding_row():
    index, weight = torch.tensor([[0, 2], [1, -1 + 4]]), torch.randn(4, 3)
    check(F.embedding, index, weight, padding_idx=1)
    check(F.embedding, index, weight, padding_idx=-1)
    with pytest.raises(NotImplementedError):
        Recorded(ltorch.embedding, index, weight, max_norm=1.0)


ACTIVATIONS = [
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "selu",
    "silu",
    "mish",
    "softplus",
    "hardtanh",
    "hardswish",
    "hardsigmoid",
    "logsigmoid",
    "gelu",
    "softsign",
    "tanhshrink",
    "sigmoid",
    "tanh",
]


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_activations_at_extremes(name, dtype):
    x = torch.tensor([0.0, -0.0, 1.5, -1.5, 30.0, -30.0, 3.0, -3.0, float("inf"), float("-inf"), float("nan")]).to(
        dtype
    )
    if name == "gelu":  # torch's kernel for AVX-512 gives NaN at infinity, its others infinity
        x = x[~x.isinf()]
    check(getattr(F, name), x)


@pytest.mark.parametrize(
    "name", ["maximum", "minimum", "clamp", "amax", "max", "softmax", "relu", "sign", "argmax", "sort"]
)
def test_nan_is_passed_on_as_by_torch(name):
    x = torch.tensor([1.0, float("nan"), -2.0, 0.0])
    args = {"maximum": (x.flip(0),), "minimum": (x.flip(0),), "clamp": (-1, 1), "softmax": (0,)}.get(name, ())
    check(getattr(torch, name), x, *args)


def test_integers_divide_as_in_torch():
    a, b = torch.tensor([7, -7, 7, -7, 0]), torch.tensor([2, 2, -2, -2, 3])
    for mode in (None, "floor", "trunc"):
        check(torch.div, a, b, rounding_mode=mode)
    check(torch.floor_divide, a, b)
    check(torch.remainder, a, b)
    check(torch.fmod, a, b)


def test_a_number_divided_by_a_tensor_is_rounded_as_by_torch():
    x = torch.rand(1000) + 0.1
    assert_as_eager(ltorch.div, lambda a, b: a / b, 3, x, exact=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout_drops_what_eager_drops(dtype, p):
    x = torch.randn(100, generator=torch.Generator().manual_seed(0)).to(dtype)
    torch.manual_seed(1)
    expected = F.dropout(x, p)
    recorded = Recorded(ltorch.dropout, x, p)
    for run in (recorded.run, recorded.run_primitives):
        torch.manual_seed(1)
        torch.testing.assert_close(run(), expected, rtol=0, atol=0)
    assert not Recorded(ltorch.dropout, x, p, False).trace.bound_symbols


EQUATIONS = [
    "ij,jk->ik",
    "bij,bjk->bik",
    "bhqd,bhkd->bhqk",
    "ij->ji",
    "ij->",
    "ij->j",
    "i,j->ij",
    "ij,ij->",
    "bij,kj->bik",
    "ij,j",
    "ij,jk,kl->il",
    "abc,cd,bd->ad",
    "ij,kl->ijkl",
    "i,i->",
    "bqhd,bkhd->bhqk",
]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation):
    sizes = dict(zip("abcdefhijklqk", (2, 3, 4, 5, 2, 3, 2, 3, 4, 5, 2, 3, 4)))
    operands = [torch.randn([sizes[x] for x in labels]) for labels in equation.split("->")[0].split(",")]
    check(torch.einsum, equation, *operands, strides=False)


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("iij->ji", [(3, 3, 2)]),
        ("...i,...i->...", [(2, 3), (2, 3)]),
        ("...ij,jk", [(5, 2, 3), (3, 4)]),
        ("b...,b...->...", [(2, 3, 1), (2, 3, 4)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
    ],
)
def test_einsum_of_diagonals_ellipses_and_broadcast_subscripts(equation, shapes):
    check(torch.einsum, equation, *map(torch.randn, shapes), strides=False)


def test_einsum_of_lists_of_labels():
    a, b = torch.randn(2, 3), torch.randn(3, 4)
    check(torch.einsum, a, [0, 1], b, [1, 2], [2, 0], strides=False)


@pytest.mark.parametrize("which", ["input", "weight", "neither"])
def test_convolution_keeps_the_channels_last_layout(which):
    x, weight = torch.randn(2, 4, 6, 6), torch.randn(8, 4, 3, 3)
    if which == "input":
        x = x.to(memory_format=torch.channels_last)
    if which == "weight":
        weight = weight.to(memory_format=torch.channels_last)
    check(F.conv2d, x, weight, torch.randn(8), padding=1)
    check(F.batch_norm, x, torch.zeros(4), torch.ones(4))
    check(F.group_norm, x, 2)
