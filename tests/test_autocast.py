"""Under autocast, around or inside of the program, results have eager's dtypes and values, and so have gradients."""

import copy

import pytest
import torch
import torch.nn.functional as F
import transformers
from gradients import differentiated
from torch import nn

import thunder


def leaf(*shape):
    return torch.randn(shape, requires_grad=True)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def small_network(x, w):
    h = F.layer_norm(F.gelu(x @ w), (8,))
    h = F.linear(h, w) + x
    return F.cross_entropy(h, torch.arange(8)), h, F.softmax(h @ w, -1), torch.cat([h, h @ w])


def losses(x, w):
    y = x @ w
    return F.mse_loss(y, x), F.smooth_l1_loss(y, x), y.norm(), y.prod(), y.exp().sum(), y.float().cumsum(0)


def without_rules(x, w):
    return torch.special.i0(x @ w), torch.chain_matmul(x, w, x), torch.linalg.inv(x @ w + torch.eye(8))


def integers_and_doubles(x, w):
    return x.double() @ w.double(), (x @ w).argmax(), x @ w > 0


def attention(x, w):
    q = (x @ w).view(1, 2, 8, 4)
    return F.scaled_dot_product_attention(q, q, x.view(1, 2, 8, 4)), torch.einsum("ij,jk->ik", x, w)


PROGRAMS = (small_network, losses, without_rules, integers_and_doubles, attention)


@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
@pytest.mark.parametrize("where", ["around", "inside"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_dtypes_values_and_gradients_are_eagers(program, where):
    def inside(*args):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return program(*args)

    args = leaf(8, 8), leaf(8, 8)
    expected = differentiated(inside, args)
    jitted = thunder.jit(inside if where == "inside" else program)

    def call(*args):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=where == "around"):
            return jitted(*args)

    for _ in range(2):
        actual = differentiated(call, args)
        for a, b in zip((*actual[0], *actual[1]), (*expected[0], *expected[1]), strict=True):
            torch.testing.assert_close(a, b, rtol=5e-2, atol=5e-2)
    assert thunder.cache_misses(jitted) == 1 and thunder.compile_stats(jitted).plain is None


def test_casts_are_seen_in_the_trace():
    jitted = thunder.jit(lambda x, w: x @ w)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert jitted(leaf(2, 2), leaf(2, 2)).dtype is torch.bfloat16
    text = thunder.last_traces(jitted)[0].canonical()
    assert text.count("ltorch.to(") == 2 and "cpu bf16[2, 2]" in text


def test_autocast_and_its_dtype_are_guarded():
    jitted, x = thunder.jit(lambda x: x @ x), torch.randn(2, 2)
    assert jitted(x).dtype is torch.float32
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            assert jitted(x).dtype is dtype and torch.is_autocast_enabled("cpu")
    assert thunder.cache_misses(jitted) == 3


def test_switched_off_inside_it_is_off():
    def program(x):
        with torch.autocast("cpu", enabled=False):
            y = x @ x
        return y, y @ x

    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert [y.dtype for y in thunder.jit(program)(torch.randn(2, 2))] == [torch.float32, torch.bfloat16]


def frozen_features(x, w):
    with torch.no_grad():
        h = x @ w
    return F.linear(h, w), h


def asking(x, w):
    y = x @ w
    return y.float() if y.dtype is torch.bfloat16 else y, torch.tensor(torch.is_autocast_enabled("cpu"))


@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
@pytest.mark.parametrize("program", [*PROGRAMS, frozen_features, asking])
def test_as_a_transform_it_gives_eagers_dtypes_values_and_gradients(program):
    def under_autocast(*args):
        # The cache of casts of torch 2.10 keeps, from the part without gradients, a weight that has none.
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
            return program(*args)

    args = leaf(8, 8), leaf(8, 8)
    jitted = thunder.jit(program, transforms=[thunder.transforms.autocast(torch.bfloat16)])
    expected = differentiated(under_autocast, args)
    for _ in range(2):
        torch.testing.assert_close(differentiated(jitted, args), expected, rtol=5e-2, atol=5e-2)
    assert thunder.cache_misses(jitted) == 1 and not torch.is_autocast_enabled("cpu")
    assert "torch.bfloat16" in thunder.last_traces(jitted)[0].canonical()


def test_as_a_transform_it_is_on_also_where_the_program_is_run_plainly_or_within_another():
    jitted = thunder.jit(lambda x: (x @ x, x.data_ptr()), transforms=[thunder.transforms.autocast(torch.bfloat16)])
    with pytest.warns(UserWarning, match="run plainly"):
        assert jitted(torch.ones(2, 2))[0].dtype is torch.bfloat16
    inner = thunder.jit(lambda x: x @ x, transforms=[thunder.transforms.autocast(torch.float16)])
    a, b = thunder.jit(lambda x: (inner(x), x @ x))(torch.ones(2, 2))
    assert (a.dtype, b.dtype) == (torch.float16, torch.float32)


def test_as_a_transform_it_refuses_other_dtypes():
    with pytest.raises(ValueError, match="float64"):
        thunder.transforms.autocast(torch.float64)


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution, self.normalization, self.linear = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(F.relu(self.normalization(self.convolution(x))).mean((2, 3)))


def small_gpt2():
    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 50, "n_positions": 16}
    rest = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **rest))


def loss_of_words(model):
    words = torch.arange(16).reshape(2, 8)
    return model(words, labels=words).loss


def loss_of_images(model):
    return model(torch.linspace(-1, 1, 384).reshape(2, 3, 8, 8)).float().pow(2).mean()


@pytest.mark.parametrize("build, loss_of", [(small_gpt2, loss_of_words), (Convolutional, loss_of_images)])
def test_as_a_transform_it_trains_models_as_eager_under_autocast(build, loss_of):
    plain = build()
    model = copy.deepcopy(plain)
    jitted = thunder.jit(model, transforms=[thunder.transforms.autocast(torch.bfloat16)])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = loss_of(plain)
    expected.backward()
    loss = loss_of(jitted)
    loss.backward()
    torch.testing.assert_close(loss, expected, rtol=1e-2, atol=1e-3)
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=2e-2, atol=1e-3)
    for a, b in zip(model.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)
    assert thunder.compile_stats(jitted).plain is None


def test_steps_with_a_gradient_scaler_are_eagers_also_those_that_infinity_skips():
    def steps(model, call):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
        seen = []
        for factor in (1.0, 1.0, float("inf"), 1.0, 1.0):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = call(factor * torch.ones(2, 3, 8, 8)).float().pow(2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            seen += [loss.detach(), torch.tensor(scaler.get_scale())]
        return seen

    plain = Convolutional()
    model = copy.deepcopy(plain)
    jitted = thunder.jit(model)
    expected, found = steps(plain, plain), steps(model, jitted)
    assert expected[5] == 2.0**9
    torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-2, atol=1e-3)
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)
    assert thunder.compile_stats(jitted).plain is None
