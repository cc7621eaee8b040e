"""Operations of the PyTorch language, called in the ways that torch's callables are, against eager PyTorch."""

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from recorded import Recorded, assert_as_eager

import thunder.torch as ltorch
from thunder.executors import torchex  # noqa: F401
from thunder.torch import in_place, in_place_view, inplace_argument, reflected, torch_functions

T = torch.Tensor
X = torch.arange(24.0).reshape(2, 3, 4) / 7 - 1
M = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
LAYOUTS = {"dense": X, "permuted": X.permute(2, 0, 1), "strided": X[:, ::2], "expanded": X[:1].expand(3, 3, 4)}


def name_of(x):
    """The name of a test's parameter, the same in every process."""
    return getattr(x, "__name__", str(x)[:40])


def check(function: Callable, *args: Any, **kwargs: Any) -> Recorded:
    """The operation that a call of torch's `function` is recorded as gives what that gives."""
    return assert_as_eager(torch_functions[function], function, *args, **kwargs)


# ---- how callables are called ----

METHODS = [
    (T.view, (4, 6)),
    (T.view, ((6, 4),)),
    (T.view, (-1,)),
    (T.view, (2, -1)),
    (T.reshape, (-1, 4)),
    (T.reshape, ([24],)),
    (torch.reshape, ((3, 8),)),
    (T.permute, (2, 0, 1)),
    (T.permute, ((-1, 0, 1),)),
    (T.expand, (5, -1, -1, -1)),
    (T.expand, (2, 3, 4)),
    (T.expand, ((1, 2, 3, 4),)),
    (T.repeat, (2, 1, 1)),
    (T.repeat, (1, 1, 1)),
    (T.repeat, ((2, 1, 2, 1),)),
    (T.flatten, ()),
    (T.flatten, (1,)),
    (T.flatten, (0, 1)),
    (T.unflatten, (2, (2, 2))),
    (T.unflatten, (-1, (-1, 2))),
    (T.transpose, (0, -1)),
    (T.T.__get__, ()),
    (T.mT.__get__, ()),
    (torch.movedim, (0, 2)),
    (torch.movedim, ((0, 1), (1, 0))),
    (T.squeeze, ()),
    (T.squeeze, (0,)),
    (T.unsqueeze, (0,)),
    (T.unsqueeze, (-1,)),
    (T.narrow, (1, 1, 2)),
    (T.select, (1, -1)),
    (T.unbind, ()),
    (T.unbind, (2,)),
    (T.split, (2, 1)),
    (T.split, ([1, 2], 1)),
    (T.chunk, (3, 2)),
    (torch.tensor_split, (3, 2)),
    (torch.tensor_split, ((1, 3), 2)),
    (T.flip, (0, 1)),
    (T.flip, ([2],)),
    (T.roll, (1, 0)),
    (T.roll, (5,)),
    (T.tile, (2,)),
    (T.expand_as, (torch.ones(5, 2, 3, 4),)),
    (T.view_as, (torch.ones(6, 4),)),
    (T.reshape_as, (torch.ones(24),)),
    (T.to, (torch.float64,)),
    (T.to, ("cpu",)),
    (T.to, ("cpu", torch.int64)),
    (T.to, (torch.device("cpu"), torch.float16, False, True)),
    (T.to, (torch.ones(1, dtype=torch.float64),)),
    (T.to, (torch.float32,)),
    (T.to, (torch.float32, False, True)),
    (T.type, (torch.float64,)),
    (T.type_as, (torch.ones(1, dtype=torch.int32),)),
    (T.float, ()),
    (T.double, ()),
    (T.half, ()),
    (T.bfloat16, ()),
    (T.long, ()),
    (T.int, ()),
    (T.bool, ()),
    (T.cpu, ()),
    (T.clone, ()),
    (T.contiguous, ()),
    (T.detach, ()),
    (T.new_zeros, (2, 3)),
    (T.new_ones, ((2,),)),
    (T.new_full, ((2, 3), 7)),
    (T.sum, ()),
    (T.sum, (1,)),
    (T.sum, ((0, 1), True)),
    (T.mean, (-1,)),
    (T.var, ()),
    (T.var, (False,)),
    (T.var, (1, False)),
    (T.std, ((0, 1),)),
    (T.max, ()),
    (T.min, (1,)),
    (T.max, (1, True)),
    (T.norm, ()),
    (T.norm, (1, 0)),
    (T.softmax, (-1,)),
    (T.softmax, (-1, torch.float64)),
    (F.softmax, (-1, 3, torch.float64)),
    (torch.log_softmax, (1, torch.float64)),
    (T.add, (2,)),
    (T.__rsub__, (2,)),
    (T.__pow__, (2,)),
    (T.masked_fill, (X > 0, -1.0)),
    (T.argmax, ()),
    (T.argmax, (1, True)),
    (T.cumsum, (1,)),
    (T.topk, (2,)),
    (T.sort, (1, True)),
    (T.clamp, (-0.5, 0.5)),
    (T.all, ()),
    (T.any, (1,)),
    (T.tril, ()),
    (T.triu, (1,)),
    (T.where, (X > 0, 3.0)),
    (T.ravel, ()),
]


@pytest.mark.parametrize("function, args", METHODS, ids=name_of)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_methods_on_every_layout(function, args, layout):
    x = LAYOUTS[layout]
    symbol = torch_functions.get(function)
    if symbol is None:
        args, symbol = (*args, x), reflected[function]
        function, x, args = torch.sub, args[0], args[1:]
    try:
        function(x, *args)
    except (RuntimeError, IndexError) as e:
        with pytest.raises(type(e)):
            Recorded(symbol, x, *args)
    else:
        assert_as_eager(symbol, function, x, *args)


KEYWORDS = [
    (torch.reshape, {"shape": (6, 4)}),
    (torch.sum, {"axis": 1, "keepdims": True}),
    (torch.mean, {"axis": (0, 1)}),
    (torch.softmax, {"axis": -1}),
    (torch.add, {"other": numpy.float64(2.5)}),
    (T.view, {"size": (4, 6)}),
    (T.permute, {"dims": (1, 0, 2)}),
    (torch.permute, {"dims": (1, 0, 2)}),
    (T.sum, {"dim": 1}),
    (T.to, {"dtype": torch.float64}),
    (T.to, {"device": "cpu", "copy": True}),
    (T.sum, {"dim": (0, 1), "dtype": torch.float64}),
    (torch.add, {"other": 2, "alpha": 3}),
    (torch.sub, {"other": X, "alpha": 0.5}),
    (torch.div, {"other": 2, "rounding_mode": "floor"}),
    (torch.div, {"other": 0.3, "rounding_mode": "trunc"}),
    (torch.round, {"decimals": 1}),
    (torch.clamp, {"min": 0}),
    (torch.clamp, {"max": torch.zeros(4)}),
    (torch.var, {"dim": 0, "correction": 0}),
    (torch.std, {"correction": 2}),
    (F.softmax, {"dim": 1}),
    (F.softmax, {"dim": -1, "dtype": torch.float64}),
    (torch.flip, {"dims": (0,)}),
    (T.expand, {"size": (2, 3, 4)}),
    (torch.linalg.vector_norm, {"ord": 3, "dim": (0, 1)}),
    (torch.zeros_like, {"dtype": torch.int64}),
    (torch.full_like, {"fill_value": 2}),
    (torch.logsumexp, {"dim": (1, 2)}),
    (F.gelu, {"approximate": "tanh"}),
    (F.normalize, {"dim": -1}),
    (torch.max, {"dim": 1, "keepdim": True}),
    (F.pad, {"pad": (1, 2, -1, 0), "value": 3.0}),
    (F.elu, {"alpha": 0.5}),
    (T.reshape, {"shape": (4, 6)}),
    (T.repeat, {"repeats": (2, 1, 1)}),
]


@pytest.mark.parametrize("function, kwargs", KEYWORDS, ids=name_of)
def test_keyword_arguments(function, kwargs):
    check(function, X, **kwargs)


FACTORIES = [
    (torch.zeros, (2, 3)),
    (torch.ones, ((2, 3),)),
    (torch.full, ((2,), 3)),
    (torch.full, ((2, 2), 0.5)),
    (torch.arange, (5,)),
    (torch.arange, (1, 6, 2)),
    (torch.arange, (0, 1, 0.1)),
    (torch.arange, (5, 0, -1)),
    (torch.eye, (3,)),
    (torch.eye, (2, 4)),
    (torch.linspace, (0, 1, 7)),
    (torch.tensor, ([[1, 2], [3, 4]],)),
    (torch.tensor, (2.5,)),
    (torch.tensor, ([True, False],)),
    (torch.as_tensor, ([1.5, 2],)),
    (torch.scalar_tensor, (3,)),
    (torch.tensor, ([],)),
    (torch.full, ((2,), True)),
]


@pytest.mark.parametrize("function, args", FACTORIES, ids=name_of)
def test_factories(function, args):
    check(function, *args)


def test_factories_take_dtype_and_device():
    check(torch.zeros, 2, dtype=torch.int32, device="cpu")
    check(torch.arange, 3, dtype=torch.float64)
    check(torch.tensor, [1, 2], dtype=torch.bfloat16)


def test_a_factory_follows_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        check(torch.ones, 2)
        check(torch.arange, 0.0, 1.0, 0.25)
    finally:
        torch.set_default_dtype(torch.float32)


RANDOM = [
    (torch.rand, (2, 3)),
    (torch.randn, ((4,),)),
    (torch.randint, (10, (5,))),
    (torch.randint, (-3, 3, (5,))),
    (torch.rand_like, (X,)),
    (torch.randn_like, (X,)),
]


@pytest.mark.parametrize("function, args", RANDOM, ids=name_of)
def test_random_numbers_are_those_that_eager_draws(function, args):
    torch.manual_seed(3)
    expected = function(*args)
    recorded = Recorded(torch_functions[function], *args)
    for run in (recorded.run, recorded.run_primitives):
        torch.manual_seed(3)
        torch.testing.assert_close(run(), expected, rtol=0, atol=0)


# ---- indexing ----

INDEX = torch.tensor([1, 0, -1])
ADVANCED = [
    INDEX,
    [0, 1],
    (INDEX, INDEX),
    (slice(None), INDEX),
    (..., INDEX),
    (INDEX[:, None], INDEX),
    (INDEX[:, None],),
    (0, INDEX),
    (slice(0, 1), INDEX),
    (None, INDEX),
    (INDEX, slice(None), INDEX),
    (slice(None), [0, 2], [1, 1]),
]


@pytest.mark.parametrize("key", ADVANCED, ids=str)
def test_indexing_with_integer_tensors_and_lists(key):
    check(T.__getitem__, X, key, exact=True, strides=False)


@pytest.mark.parametrize("key", [torch.tensor(1), (..., torch.tensor(-1))], ids=str)
def test_indexing_with_a_tensor_of_one_number_is_a_view(key):
    check(T.__getitem__, X, key, exact=True)


def test_masks_are_left_to_the_opaque_call():
    with pytest.raises(NotImplementedError):
        Recorded(ltorch.getitem, X, X > 0)


ASSIGNED = [
    (0, 1.0),
    (slice(None), 2),
    ((0, 0, 0), torch.tensor(5.0)),
    ((..., 0), torch.ones(2, 3)),
    ((slice(None), slice(0, 3, 2)), torch.ones(4)),
    ((0, slice(1, 3)), torch.ones(1, 2, 4)),
    (X > 0, 0.0),
    (X > 0, torch.tensor(9.0)),
    (X[..., 0] > 0, torch.arange(4.0)),
    (X > 0, torch.arange(float((X > 0).sum()))),
    (torch.tensor([0, 1]), 3.0),
    ((slice(None), INDEX), torch.ones(3, 4)),
    (None, 1),
    ((slice(None), None, 0), torch.ones(2, 1, 4)),
    (..., torch.arange(4, dtype=torch.int64)),
    ([1], 2.0),
]


@pytest.mark.parametrize("key, value", ASSIGNED, ids=lambda x: str(x)[:30].replace("\n", ""))
@pytest.mark.parametrize("layout", ["dense", "permuted"])
def test_assignment_to_an_index(key, value, layout):
    x = X if layout == "dense" else X.clone().as_strided((2, 3, 4), (1, 2, 6))

    def assign(a, key, value):
        out = a.clone()
        out[key] = value
        return out

    before = x.clone()
    assert_as_eager(ltorch.setitem, assign, x, key, value, exact=True)
    assert torch.equal(x, before)


# ---- results ----


def test_named_results_keep_torchs_types():
    for name, args in {"max": (1,), "min": (1,), "sort": (), "topk": (2,)}.items():
        trace_output = []

        def keep(*a, name=name, out=trace_output):
            out.append(getattr(ltorch, name)(*a))
            return tuple(out[0])

        Recorded(keep, X, *args)
        assert type(trace_output[0]) is getattr(torch.return_types, name)
        assert trace_output[0].values is trace_output[0][0] and trace_output[0].indices is trace_output[0][1]


@pytest.mark.parametrize(
    "call",
    [
        ltorch.contiguous,
        lambda x: ltorch.to(x, torch.float32),
        ltorch.float,
        lambda x: ltorch.type_as(x, x),
        lambda x: ltorch.dropout(x, 0.5, False),
        ltorch.cpu,
        ltorch.positive,
        lambda x: ltorch.flatten(x, 1, 1),
    ],
)
def test_operations_that_return_their_argument_record_nothing(call):
    recorded = Recorded(call, X)
    assert recorded.trace.output is recorded.trace.args[0]
    assert not recorded.trace.bound_symbols


def test_views_that_torch_refuses_are_refused():
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        Recorded(ltorch.view, X.transpose(0, 2), 24)
    with pytest.raises(RuntimeError, match="invalid for input of size"):
        Recorded(ltorch.view, X, 5, 5)
    with pytest.raises(NotImplementedError):
        Recorded(ltorch.view, X, torch.complex64)


@pytest.mark.parametrize(
    "function, args",
    [
        (torch.cat, ([X, X[0]],)),
        (torch.stack, ([X, X[0]],)),
        (torch.sum, (X, 3)),
        (torch.neg, (X > 0,)),
        (torch.mm, (X, X)),
        (torch.sub, (X > 0, X > 0)),
        (torch.t, (X,)),
        (T.expand, (X, 3, 3, 4)),
        (torch.mean, (X.long(),)),
        (torch.split, (X, -1)),
        (torch.chunk, (X, 0)),
        (torch.pow, (X.long(), -1)),
        (F.glu, (X[..., :3],)),
        (F.layer_norm, (X, (5,))),
        (torch.addcdiv, (X.long(),) * 3),
        (F.nll_loss, (X[0], torch.tensor([1, 2]))),
        (F.dropout, (X, 2.0)),
        (torch.amax, (torch.ones(0), 0)),
        (torch.arange, (1, 0)),
        (torch.where, (X, X, X)),
        (torch.gather, (X, 5, X.long())),
        (T.permute, (X, 0, 0, 1)),
        (T.permute, (X, 0, 1)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_torch_refuses_raises_torchs_exception(function, args):
    with pytest.raises(Exception) as theirs:
        function(*args)
    with pytest.raises(theirs.type):
        Recorded(torch_functions[function], *args)


# ---- tables ----


def test_in_place_callables_are_their_functional_operations():
    for name in (
        "add_",
        "__iadd__",
        "mul_",
        "relu_",
        "masked_fill_",
        "clamp_",
        "fill_",
        "zero_",
        "copy_",
        "scatter_",
        "tril_",
        "exp_",
    ):
        symbol = in_place[getattr(T, name)]
        assert symbol.name.removesuffix("_") == name.strip("_").removeprefix("i") or name == "__iadd__"
    assert in_place[torch.relu_] is ltorch.relu
    assert in_place[T.__itruediv__] is ltorch.div
    assert in_place_view[T.squeeze_] is ltorch.squeeze and T.squeeze_ not in in_place


def test_in_place_callables_write_what_their_operation_gives():
    mask, other = X > 0, torch.rand(2, 3, 4)
    calls = {
        "add_": (other,),
        "mul_": (2,),
        "clamp_": (-0.5, 0.5),
        "masked_fill_": (mask, 3.0),
        "fill_": (7,),
        "zero_": (),
        "copy_": (other,),
        "exp_": (),
        "sub_": (other[0],),
        "tril_": (),
        "addcmul_": (other, other),
        "lerp_": (other, 0.3),
    }
    for name, args in calls.items():
        method = getattr(T, name)
        assert_as_eager(in_place[method], lambda a, *rest, method=method: method(a.clone(), *rest), X, *args)


def test_copy_converts_and_broadcasts():
    assert_as_eager(ltorch.copy, lambda a, b: a.clone().copy_(b), X.long(), torch.rand(4))
    assert_as_eager(ltorch.copy, lambda a, b: a.clone().copy_(b), X, X)


def test_reflected_callables_are_operations_with_swapped_arguments():
    x = torch.rand(3) + 0.5
    for name in ("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rfloordiv__", "__rmod__", "__rpow__"):
        method = getattr(T, name)
        assert_as_eager(reflected[method], lambda a, b, m=method: m(b, a), 2, x)


def test_callables_with_an_inplace_argument_are_listed():
    for function in (F.relu, F.relu6, F.elu, F.silu, F.leaky_relu, F.dropout, F.hardtanh, F.hardswish, F.mish):
        assert inplace_argument[function] is torch_functions[function]
        assert "inplace" in inspect.signature(inplace_argument[function].meta).parameters


def test_meta_functions_have_no_out_argument_that_is_honoured():
    recorded = Recorded(ltorch.zeros, 2, out=None)
    assert recorded.trace.output.shape == (2,)


def test_many_torch_callables_have_an_operation():
    assert len(set(torch_functions.values())) >= 200


@pytest.mark.parametrize("name", ["add", "mul", "where", "sum", "softmax", "layer_norm", "matmul"])
def test_operations_on_empty_and_scalar_tensors(name):
    function = {"softmax": F.softmax, "layer_norm": F.layer_norm}.get(name) or getattr(torch, name)
    for shape in [(0,), (0, 3), (3, 0), ()]:
        x = torch.ones(shape)
        args = {
            "add": (x,),
            "mul": (2,),
            "where": (x,),
            "softmax": (0,),
            "layer_norm": (shape[-1:],),
            "matmul": (x.mT if x.ndim > 1 else x,),
        }
        call = (x > 0, x, x) if name == "where" else (x, *args.get(name, ()))
        try:
            function(*call)
        except (RuntimeError, IndexError):
            continue
        check(function, *call)


def test_strides_of_elementwise_results_are_torchs():
    layouts = [
        X,
        X.permute(2, 1, 0).contiguous().permute(2, 1, 0),
        X.permute(1, 0, 2).contiguous().permute(1, 0, 2),
        X[:1],
        X[:, :1],
        X[0, 0],
    ]
    for a, b in itertools.product(layouts, layouts):
        check(torch.add, a, b)
        check(torch.where, a > 0, a, b)


@pytest.mark.parametrize(
    "name, args", [("uniform_", ()), ("uniform_", (-1, 1)), ("normal_", ()), ("normal_", (2.0, 0.5))]
)
def test_random_writes_are_those_that_eager_draws(name, args):
    method = getattr(T, name)
    torch.manual_seed(3)
    expected = method(X.clone(), *args)
    recorded = Recorded(in_place[method], X, *args)
    for run in (recorded.run, recorded.run_primitives):
        torch.manual_seed(3)
        torch.testing.assert_close(run(), expected)
