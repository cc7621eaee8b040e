"""The core language against PyTorch: broadcasting, shapes, indexing, reductions, operators."""

import pytest
import torch
from recorded import Recorded, assert_as_eager

from thunder import clang
from thunder.core.proxies import TensorProxy
from thunder.executors import torchex  # noqa: F401

X = torch.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((0,), (1,)), ((2, 0), (1, 1)), ((1,), (5, 1, 2)), ((3,), (3,))],
)
def test_elementwise_operands_are_broadcast_as_by_torch(shapes):
    assert clang.broadcast_shapes(*shapes) == torch.broadcast_shapes(*shapes)
    assert_as_eager(clang.add, torch.add, *map(torch.randn, shapes))


def test_shapes_that_do_not_broadcast_raise_torchs_error():
    with pytest.raises(RuntimeError) as theirs:
        torch.ones(2, 3) + torch.ones(4)
    with pytest.raises(RuntimeError) as ours:
        clang.broadcast_shapes((2, 3), (4,))
    assert str(ours.value) == str(theirs.value)


def test_tensors_on_two_devices_are_refused_unless_one_is_a_cpu_scalar():
    def proxy(name, shape, device):
        return TensorProxy(name, shape=shape, dtype=torch.float32, device=torch.device(device))

    assert clang.common_device([proxy("a", (), "cpu"), proxy("b", (2,), "cuda:0")]) == torch.device("cuda:0")
    with pytest.raises(RuntimeError, match="same device"):
        clang.common_device([proxy("a", (2,), "cpu"), proxy("b", (2,), "cuda:0")])


@pytest.mark.parametrize(
    "formula",
    [
        lambda a, b: a + b,
        lambda a, b: 1 - a * b,
        lambda a, b: 2 / a,
        lambda a, b: a // b + a % b,
        lambda a, b: a**2 - 2**b,
        lambda a, b: -abs(a) @ b.T if isinstance(a, torch.Tensor) else -abs(a) @ clang.transpose(b, 0, 1),
        lambda a, b: (a > b) & (a >= 1) | ~(a < b) ^ (b <= 0),
    ],
)
def test_operators_of_proxies_are_those_of_tensors(formula):
    assert_as_eager(formula, formula, torch.rand(3, 4) + 0.5, torch.rand(3, 4) + 0.5)


def test_proxies_are_compared_by_identity():
    a = TensorProxy("a", shape=(2,), dtype=torch.float32, device=torch.device("cpu"))
    b = TensorProxy("a", shape=(2,), dtype=torch.float32, device=torch.device("cpu"))
    assert a == a and a != b and len({a, b}) == 2


INDICES = [
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(0, 10, 2),
    slice(3, 1),
    slice(-2, -1),
    None,
    ...,
    (),
    (..., 0),
    (0, ..., 1),
    (slice(None), 1),
    (None, 0, None),
    (1, slice(1, 3), None, slice(None, None, 3)),
    (0, 0, 0),
    (..., None),
    (None, ..., slice(1, 2)),
    (slice(0, 0),),
    (slice(None), slice(None), slice(None)),
]


@pytest.mark.parametrize("key", INDICES, ids=str)
@pytest.mark.parametrize("x", [X, X.permute(2, 0, 1), X[:, ::2]], ids=["dense", "permuted", "strided"])
def test_basic_indexing_gives_torchs_view(x, key):
    def index(a, *_):
        return clang.basic_index(a, clang.parse_index(a.shape, key))

    assert_as_eager(index, lambda a: a[key], x, exact=True)


@pytest.mark.parametrize("key", [5, -3, (0, 0, 0, 0), (0, 3), slice(None, None, -1), (slice(0, 2, 0),)], ids=str)
def test_indices_that_torch_refuses_raise_its_exception(key):
    with pytest.raises((IndexError, ValueError)) as theirs:
        X[key]
    with pytest.raises(theirs.type):
        clang.parse_index(X.shape, key)


def test_dimensions_out_of_range_raise_torchs_error():
    with pytest.raises(IndexError) as theirs:
        torch.sum(torch.ones(2, 2), 2)
    with pytest.raises(IndexError) as ours:
        clang.canonical_dim(2, 2)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "all", "any", "mean", "var"])
@pytest.mark.parametrize("dims", [None, 0, -1, (0, 2), (), (1,)], ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_over_dimensions(name, dims, keepdim):
    def reference(a):
        if name == "prod":  # torch's takes one dimension
            out = a
            for d in sorted(clang.canonical_dims(dims, a.ndim), reverse=True):
                out = torch.prod(out, d, keepdim=True)
            return out if keepdim else out.reshape([s for s, t in zip(out.shape, a.shape) if not (s == 1 != t)])
        return getattr(torch, name)(a, clang.canonical_dims(dims, a.ndim), keepdim=keepdim)

    def reduce(a):
        return getattr(clang, name)(a, dims, keepdim)

    assert_as_eager(reduce, reference, torch.randn(2, 3, 4))


def test_low_precision_means_are_rounded_once():
    x = torch.rand(1000).bfloat16()
    expected = x.float().mean().bfloat16()
    assert Recorded(clang.mean, x).run_primitives() == expected


def test_sum_to_undoes_a_broadcast():
    x = torch.randn(4, 2, 3)
    for shape in [(2, 3), (1, 3), (4, 1, 1), (3,), (), (4, 2, 3)]:
        assert_as_eager(lambda a, s=shape: clang.sum_to(a, s), lambda a, s=shape: a.sum_to_size(s), x)
