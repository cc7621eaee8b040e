"""Under autocast, around or inside of the program, results have eager's dtypes and values, and so have gradients."""

import pytest
import torch
import torch.nn.functional as F
from gradients import differentiated

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
