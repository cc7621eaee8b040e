"""Layers of torch.nn, jitted, give what eager gives, in training and in evaluation; so do custom operators."""

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing._internal.common_modules import ModuleInfo, module_db
from torch.utils._pytree import tree_flatten, tree_map

import thunder

SAMPLES = 2
SEED = 2026

# They draw numbers that decide by value.
RUN_PLAINLY = {"nn.FractionalMaxPool2d"}


def cases() -> Iterator:
    for info in module_db:
        for training in (True, False) if info.train_and_eval_differ else (True,):
            yield pytest.param(info, training, id=f"{info.name}-{'train' if training else 'eval'}")


def call(function: Callable, args: Any, kwargs: Any) -> Any:
    """What a call gives with the same random numbers each time, or the error it raises."""
    torch.manual_seed(SEED)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs)
        except Exception as e:
            return e


def assert_same(actual: Any, expected: Any) -> None:
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        assert isinstance(actual, type(expected)), actual
        return
    for a, b in zip(tree_flatten(actual)[0], tree_flatten(expected)[0], strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a, b, equal_nan=True, rtol=1.3e-5, atol=1e-5)
        else:
            assert a == b


def as_eager(module: nn.Module, *args: Any, calls: int = 2, **kwargs: Any) -> Any:
    """The jitted module, called, does what the module does: results, its own state and its arguments."""
    eager, jitted = copy.deepcopy(module), thunder.jit(module)
    for _ in range(calls):
        given, kept = (copy.deepcopy((args, kwargs)) for _ in range(2))
        assert_same(call(jitted, *given), call(eager, *kept))
        assert_same(given, kept)
        assert_same(dict(module.state_dict()), dict(eager.state_dict()))
    return jitted


def ran_compiled(jitted: Any) -> bool:
    return thunder.compile_stats(jitted).last is not None


@pytest.mark.parametrize("info, training", list(cases()))
def test_a_layer_on_torchs_samples(info: ModuleInfo, training: bool):
    torch.manual_seed(SEED)
    options = {"device": "cpu", "dtype": torch.float32, "requires_grad": False, "training": training}
    samples = list(info.module_inputs_func(info, **options))
    random.Random(info.name).shuffle(samples)
    for sample in [s for s in samples if s.forward_input is not None][:SAMPLES]:
        made, given = sample.constructor_input, sample.forward_input
        module = info.module_cls(*made.args, **made.kwargs).train(training)
        jitted = as_eager(module, *given.args, calls=2, **given.kwargs)
        failed = isinstance(call(module, given.args, given.kwargs), Exception)
        assert ran_compiled(jitted) or failed or info.name in RUN_PLAINLY


def gradients(module: nn.Module, function: Callable, args: Any, kwargs: Any) -> list[torch.Tensor | None]:
    """What a call gives, and the gradients of its arguments and of the parameters: zeros where there are none."""
    torch.manual_seed(SEED)
    args, kwargs = tree_map(
        lambda x: x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x,
        (args, kwargs),
    )
    outputs = [x for x in tree_flatten(function(*args, **kwargs))[0] if isinstance(x, torch.Tensor)]
    given = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, torch.Tensor) and x.requires_grad]
    inputs = [*given, *module.parameters()]
    differentiable = [x for x in outputs if x.requires_grad]
    weights = [torch.linspace(0.5, 1, x.numel(), dtype=x.dtype).view(x.shape) for x in differentiable]
    found = torch.autograd.grad(differentiable, inputs, weights, allow_unused=True) if differentiable else []
    return [*outputs, *(torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found))]


@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
@pytest.mark.filterwarnings("ignore")
def test_gradients_of_a_layer_on_torchs_samples(info: ModuleInfo):
    torch.manual_seed(SEED)
    options = {"device": "cpu", "dtype": torch.float64, "requires_grad": True, "training": True}
    samples = [s for s in info.module_inputs_func(info, **options) if s.forward_input is not None]
    sample = random.Random(info.name).choice(samples)
    made, given = sample.constructor_input, sample.forward_input
    module = info.module_cls(*made.args, **made.kwargs).double()
    eager = copy.deepcopy(module)
    expected = gradients(eager, eager, given.args, given.kwargs)
    actual = gradients(module, thunder.jit(module), given.args, given.kwargs)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, equal_nan=True, check_stride=False)


def test_a_batch_of_nothing_is_normalized_as_in_eager():
    layer = nn.BatchNorm1d(5)
    eager, x = copy.deepcopy(layer), torch.randn(0, 5, 9, requires_grad=True)
    assert_same(gradients(layer, thunder.jit(layer), (x,), {}), gradients(eager, eager, (x,), {}))
    assert_same(dict(layer.named_buffers()), dict(eager.named_buffers()))


def test_gradients_are_zero_where_no_target_counts_as_in_eager():
    loss, x = nn.CrossEntropyLoss(), torch.randn(3, 5, requires_grad=True)
    for found in (gradients(loss, f, (x, torch.full((3,), -100)), {}) for f in (loss, thunder.jit(loss))):
        assert found[0].isnan() and not found[1].any()


def test_a_distance_that_is_a_module_is_traced_and_trained():
    class Loss(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(4, 3)
            self.loss = nn.TripletMarginWithDistanceLoss(distance_function=self.distance, swap=True)

        def distance(self, a, b):
            return (self.net(a) - self.net(b)).square().sum(-1)

        def forward(self, *samples):
            return self.loss(*samples)

    torch.manual_seed(SEED)
    module, samples = Loss(), [torch.randn(5, 4, requires_grad=True) for _ in range(3)]
    jitted = thunder.jit(module)
    assert_same(gradients(module, jitted, samples, {}), gradients(module, module, samples, {}))
    assert {s.symbol.module for s in thunder.last_traces(jitted)[0].bound_symbols} <= {"ltorch", "prims"}


@pytest.mark.parametrize("layer", [nn.Embedding, nn.EmbeddingBag])
@pytest.mark.parametrize("norm_type", [1.0, 2.0])
def test_rows_that_are_too_long_are_scaled_and_trained(layer, norm_type):
    torch.manual_seed(SEED)
    module, index = layer(10, 3, max_norm=0.5, norm_type=norm_type), torch.tensor([[1, 2], [2, 7]])
    eager = copy.deepcopy(module)
    jitted = thunder.jit(module)
    for _ in range(2):
        assert_same(gradients(module, jitted, (index,), {}), gradients(eager, eager, (index,), {}))
        assert_same(dict(module.state_dict()), dict(eager.state_dict()))
    assert ran_compiled(jitted)


@pytest.mark.parametrize("hidden", [[[0, 0, 1], [0, 1, 1]], [[0, 0, 1], [1, 0, 0]]], ids=["in front", "not in front"])
@pytest.mark.filterwarnings("ignore")
def test_an_encoder_that_nests_tensors_gives_what_it_gives_in_eager(hidden):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=True).eval()
    mask = torch.tensor(hidden).bool()
    as_eager(encoder, torch.randn(2, 3, 8), src_key_padding_mask=mask)


def test_a_lazy_module_gets_its_parameters_at_the_first_call_and_is_compiled_at_the_next():
    lazy = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    jitted, x = thunder.jit(lazy), torch.randn(2, 3, 6, 6)
    call(jitted, (x,), {})
    assert type(lazy[4]) is nn.Linear and not ran_compiled(jitted)
    expected = copy.deepcopy(lazy)
    assert_same(call(jitted, (x,), {}), call(expected, (x,), {}))
    assert ran_compiled(jitted)


@pytest.mark.parametrize("layer", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("enforce_sorted", [True, False])
def test_recurrent_layers_take_packed_sequences(layer, enforce_sorted):
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer(4, 5, num_layers=2, bidirectional=True, batch_first=True)

        def forward(self, x, lengths):
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=enforce_sorted)
            out, state = self.layer(packed)
            return pad_packed_sequence(out, batch_first=True), state

    lengths = [3, 2, 1] if enforce_sorted else [2, 3, 1]
    jitted = as_eager(Packed(), torch.randn(3, 3, 4), lengths)
    assert ran_compiled(jitted)


MASK = torch.tensor([[False, False, True], [False, False, False]])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
@pytest.mark.parametrize("training", [False, True])
def test_transformer_layers_whose_fast_path_is_open(norm_first, mask, training):
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(training)
    causal = nn.Transformer.generate_square_subsequent_mask(3)
    kwargs = {"none": {}, "padding": {"src_key_padding_mask": MASK}, "causal": {"mask": causal, "is_causal": True}}
    jitted = as_eager(encoder, torch.randn(2, 3, 8), **kwargs[mask])
    assert ran_compiled(jitted)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: parametrizations.weight_norm(nn.Linear(3, 4)),
        lambda: nn.utils.weight_norm(nn.Conv1d(3, 4, 2)),
        lambda: parametrizations.spectral_norm(nn.Linear(3, 4)),
        lambda: nn.utils.spectral_norm(nn.Linear(3, 4)),
        lambda: parametrizations.orthogonal(nn.Linear(3, 3)),
    ],
    ids=["weight_norm", "weight_norm by hooks", "spectral_norm", "spectral_norm by hooks", "orthogonal"],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_parametrizations(make, training):
    with torch.no_grad():  # so that what hooks computed can be copied
        module = make().train(training)
    as_eager(module, torch.randn(2, 3, 3))


def test_a_parametrization_of_ones_own():
    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

    module = nn.Linear(3, 3)
    parametrize.register_parametrization(module, "weight", Symmetric())
    assert ran_compiled(as_eager(module, torch.randn(2, 3)))


IN_PLACE = [
    *(nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.SiLU, nn.Mish, nn.Hardsigmoid),
    *(nn.Hardswish, nn.Dropout, nn.Dropout1d, nn.AlphaDropout, nn.FeatureAlphaDropout),
]


@pytest.mark.parametrize("layer", IN_PLACE)
def test_layers_in_place_write_to_their_input(layer):
    jitted = as_eager(layer(inplace=True), torch.randn(2, 3, 4))
    assert ran_compiled(jitted)


# ---- operators of one's own ----


@torch.library.custom_op("thunder_tests::scaled_sine", mutates_args=())
def scaled_sine(x: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.from_numpy(x.detach().numpy().copy()).sin() * scale


@scaled_sine.register_fake
def _(x, scale):
    return torch.empty_like(x)


@torch.library.custom_op("thunder_tests::clip_in_place", mutates_args=("x",))
def clip_in_place(x: torch.Tensor) -> None:
    x.clamp_(0, 1)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def _with_a_custom_operator(x):
    return scaled_sine(x + 1, 2.0) * 2


def _with_a_custom_operator_that_writes(x):
    y = x * 2
    clip_in_place(y)
    return y + 1


def _with_a_function_of_its_own(x):
    return Cube.apply(x * 2) + 1


PROGRAMS = [_with_a_custom_operator, _with_a_custom_operator_that_writes, _with_a_function_of_its_own]


@pytest.mark.parametrize("program", PROGRAMS)
def test_custom_operators_are_compiled(program):
    x, jitted = torch.randn(3, 4), thunder.jit(program)
    for _ in range(2):
        torch.testing.assert_close(jitted(x), program(x))
    assert ran_compiled(jitted)
