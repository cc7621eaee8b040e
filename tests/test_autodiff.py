"""Jitted programs give eager's gradients."""

import gc
import weakref
from collections import namedtuple

import pytest
import torch
import torch.nn.functional as F
from gradients import assert_same_gradients, differentiated, stage_gradients
from torch.autograd import forward_ad
from torch.testing import assert_close

import thunder


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def leaf(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype, requires_grad=True)


def scaled_by_its_sum(x):
    return x * x.sum(), x / x.sum(), x - x.mean(), x * x[0]


def without_gradients_beside_it(x):
    with torch.no_grad():
        mask = x.sigmoid()
    return (x * mask).sum() + mask.sum(), mask


def views_of_all_kinds(x):
    y = x * 2
    return x, x.t(), x.detach(), y, y[0], y.view(-1), x.expand(2, *x.shape), x.diagonal(), x.view_as(y)


def detached_inside(x):
    y = x.exp()
    return y * y.detach(), x.detach() * 2


def written_in_place(x):
    y = x * 2
    y[0] = x[1]
    y += 1
    z = y.view(-1)
    z[2:5] *= 3
    y.clamp_(max=4)
    return y.sin(), z


def written_without_gradients(x):
    y = x.sin()
    with torch.no_grad():
        y.clamp_(0, 0.5)
    return y * y


def integers_too(x):
    values, indices = x.topk(2)
    return values, indices, x.argmax(), (x > 0)


def branches_on_a_value(x):
    return x * 2 if x.sum() > 0 else x * 3


def convolution(x):
    image = x.reshape(1, 1, *x.shape)
    weight = x[:2, :2].reshape(1, 1, 2, 2)
    return F.max_pool2d(F.conv2d(image, weight, stride=1, padding=1), 2)


def without_a_rule(x):
    return torch.special.i0(x) + torch.cumprod(x, 0) + torch.logcumsumexp(x, 1), torch.linalg.inv(x)


def checkpointed(x):
    return torch.utils.checkpoint.checkpoint(lambda y: (y.sin() * y).tanh(), x, use_reentrant=False) * x


def checkpointed_with_dropout(x):
    def part(y):
        return F.dropout(y.sin(), 0.5) * torch.bernoulli(y.detach().sigmoid()) * F.dropout(y, 0.5)

    return torch.utils.checkpoint.checkpoint(part, x, use_reentrant=False) * x


def dropout(x):
    return F.dropout(F.dropout(x, 0.3) * 2, 0.5)


class Squared(torch.autograd.Function):
    """A square whose gradient is not the true one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 10 * ctx.saved_tensors[0]


def with_a_backward_of_its_own(x):
    return Squared.apply(x.sin()) + x


PROGRAMS = (
    scaled_by_its_sum,
    without_gradients_beside_it,
    views_of_all_kinds,
    detached_inside,
    written_in_place,
    written_without_gradients,
    integers_too,
    branches_on_a_value,
    convolution,
    without_a_rule,
    checkpointed,
    checkpointed_with_dropout,
    dropout,
    with_a_backward_of_its_own,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_are_eagers(program):
    assert_same_gradients(program, leaf(4, 4))


def mlp(x, w, b):
    h = F.gelu(F.linear(x, w, b))
    h = F.layer_norm(h, h.shape[-1:], b, b)
    return F.cross_entropy(F.softmax(h, -1) @ w, torch.tensor([0, 1, 2])), h


def test_every_stage_of_the_backward_gives_eagers_gradients():
    args = (leaf(3, 4), leaf(4, 4), leaf(4))
    jitted = assert_same_gradients(mlp, *args)
    _, expected, _ = differentiated(mlp, args)
    backward = thunder.last_backward_traces(jitted)
    assert [t.constructed_by for t in backward] == ["Backward", "Transform for execution", "Delete Last Used"]
    generator = torch.Generator().manual_seed(0)
    grads = {
        p.name: torch.rand(p.shape, generator=generator, dtype=p.dtype)
        for p in backward[0].args
        if p.name.startswith("grad_")
    }
    found = stage_gradients(jitted, [x.detach() for x in args], grads)
    assert len(found) == 9
    for gradients in found:
        assert_close(list(gradients), expected)


def test_backward_operations_carry_the_line_of_their_forward_operation():
    jitted = thunder.jit(mlp)
    jitted(leaf(3, 4), leaf(4, 4), leaf(4))
    for trace in thunder.last_backward_traces(jitted)[:2]:
        lines = {s.source.text.strip() for s in trace.bound_symbols}
        assert lines == {line.strip() for line in (
            "h = F.gelu(F.linear(x, w, b))",
            "h = F.layer_norm(h, h.shape[-1:], b, b)",
            "return F.cross_entropy(F.softmax(h, -1) @ w, torch.tensor([0, 1, 2])), h",
        )}  # fmt: skip


def test_a_name_is_one_value_in_forward_and_backward():
    jitted = thunder.jit(lambda x: F.silu(x).sin())
    x = leaf(3)
    jitted(x)
    forward, backward = thunder.last_traces(jitted)[-1], thunder.last_backward_traces(jitted)[0]
    saved = {p.name for p in forward.output[1]}
    assert saved == {p.name for p in backward.args if not p.name.startswith("grad_")} == {"x", "t0"}


def test_gradients_accumulate_and_hooks_run():
    net, seen = torch.nn.Linear(3, 3), []
    net.weight.register_hook(lambda g: seen.append(g.clone()) or g * 2)
    net.bias.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    jitted, x = thunder.jit(net), torch.randn(2, 3)
    for _ in range(2):
        jitted(x).sum().backward()
    expected = x.sum(0).expand(3, 3)
    assert_close(net.weight.grad, expected * 4)
    assert_close(net.bias.grad, torch.full((3,), 4.0))
    assert len(seen) == 4 and thunder.cache_misses(jitted) == 1


def test_a_retained_graph_gives_its_gradients_again_and_a_freed_one_refuses():
    x = leaf(3)
    loss = thunder.jit(lambda x: (torch.special.i0(x) * x).sum())(x)
    (first,) = torch.autograd.grad(loss, x, retain_graph=True)
    (second,) = torch.autograd.grad(loss, x)
    assert_close(first, second)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, x)


def test_inputs_that_are_no_leaves_pass_gradients_on():
    x = leaf(3)
    thunder.jit(lambda y: y.sin().sum())(x * 2).backward()
    assert_close(x.grad, 2 * (2 * x.detach()).cos())


def test_an_input_that_plays_no_part_gets_no_gradient():
    x, y, z = leaf(3), leaf(3), leaf(3)
    first, _ = thunder.jit(lambda x, y, z: (x * 2, y * 3))(x, y, z)
    first.sum().backward()
    assert x.grad is not None and y.grad is None and z.grad is None


def test_tensors_in_containers_get_gradients():
    Pair = namedtuple("Pair", "first second")

    def program(d):
        return d["list"][0] * 2 + d["pair"].second.sin()

    d = {"list": [leaf(3)], "pair": Pair(leaf(3), leaf(3))}
    thunder.jit(program)(d).sum().backward()
    assert_close(d["list"][0].grad, torch.full((3,), 2.0, dtype=torch.float64))
    assert_close(d["pair"].second.grad, d["pair"].second.detach().cos())
    assert d["pair"].first.grad is None


def test_twice_differentiated_is_refused_by_name():
    x = leaf(3)
    jitted = thunder.jit(lambda x: x.sin().sum())
    with pytest.raises(NotImplementedError, match="create_graph"):
        torch.autograd.grad(jitted(x), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="create_graph"):
        torch.autograd.functional.hessian(jitted, x.detach())


def forward_mode(f, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, torch.ones_like(x)))).tangent


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f, x: torch.func.grad(f)(x),
        lambda f, x: torch.func.vmap(f)(x),
        lambda f, x: torch.func.jvp(f, (x,), (torch.ones_like(x),)),
        lambda f, x: torch.func.hessian(f)(x),
        forward_mode,
    ],
)
def test_inside_of_torchs_own_transforms_a_call_is_run_plainly_with_a_warning(transformed):
    jitted, x = thunder.jit(lambda x: (x.sin() * x).sum()), torch.rand(2, 3)
    assert_close(jitted(x), (x.sin() * x).sum())
    with pytest.warns(UserWarning, match="plainly this time"):
        actual = transformed(jitted, x)
    assert_close(actual, transformed(jitted.__wrapped__, x))
    jitted(x)
    assert (thunder.cache_misses(jitted), thunder.cache_hits(jitted)) == (1, 1)


def overwritten_by_zeros(x, w):
    y = x * 2
    y.zero_()
    return y


def overwritten_by_a_number(x, w):
    y = x * 2
    return y.fill_(3.0) + w


def overwritten_by_a_scalar_tensor(x, w):
    y = x * 2
    return y.fill_(w.sum())


def overwritten_by_a_tensor(x, w):
    y = x * 2
    return y.copy_(w)


def overwritten_by_a_constant(x, w):
    y = x * 2
    y[:] = 1.0
    return y.copy_(w.detach()) + w


def overwritten_in_part_by_foreach(x, w):
    first, second = x * 2, w * 3
    torch._foreach_mul_([first[0], second], 2.0)
    torch._foreach_add_([first], [w])
    return first, second


@pytest.mark.parametrize(
    "program",
    [
        overwritten_by_zeros,
        overwritten_by_a_number,
        overwritten_by_a_scalar_tensor,
        overwritten_by_a_tensor,
        overwritten_by_a_constant,
        overwritten_in_part_by_foreach,
    ],
)
def test_what_is_overwritten_has_eagers_gradients_zeros_where_these_are(program):
    args = leaf(3, 3), leaf(3, 3)
    _, expected, _ = differentiated(program, args)
    _, found, _ = differentiated(thunder.jit(program), args)
    assert [g is None for g in found] == [g is None for g in expected]
    assert_close([g for g in found if g is not None], [g for g in expected if g is not None])


def test_gradients_enabled_inside_of_no_grad_are_kept():
    def program(x, w):
        y = x * w
        with torch.enable_grad():
            z = x * w
        return y, z, x

    x, w = leaf(3), leaf(3)
    jitted = thunder.jit(program)
    for _ in range(2):
        with torch.no_grad():
            y, z, same = jitted(x, w)
            assert not torch.is_grad_enabled()
        assert (y.requires_grad, z.requires_grad, same is x) == (False, True, True)
        assert_close(torch.autograd.grad(z.sum(), (x, w)), (w.detach(), x.detach()))
    with torch.no_grad():
        assert thunder.jit(lambda x: (x, x * 2))(x)[0] is x


@pytest.mark.parametrize("call", [torch.add, torch.cat, torch.max])
def test_out_with_tensors_that_require_gradients_is_refused_as_by_torch(call):
    def program(x, out):
        if call is torch.cat:
            return torch.cat([x, x], out=out)
        return torch.add(x, 1, out=out) if call is torch.add else torch.max(x, 0, out=(out, torch.empty(0).long()))

    errors = []
    for f in (program, thunder.jit(program)):
        with pytest.raises(RuntimeError, match="automatic differentiation") as e:
            f(leaf(3), torch.empty(6 if call is torch.cat else 3, dtype=torch.float64))
        errors.append(str(e.value))
    assert errors[0] == errors[1]


def test_a_saved_input_that_is_written_before_the_backward_is_an_error():
    x, w = leaf(3), leaf(3)
    loss = thunder.jit(lambda x, w: (x * w).sum())(x, w)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_an_input_that_is_written_in_place_gets_its_history():
    x = leaf(3)

    def program(y):
        y.mul_(2)
        return y.sin()

    y, z = x * 1, x * 1
    a, b = program(y), thunder.jit(program)(z)
    (g,), (h,) = (torch.autograd.grad((out, v), x, (torch.ones(3), torch.ones(3))) for out, v in ((a, y), (b, z)))
    assert_close(g, h)
    with pytest.raises(RuntimeError, match="leaf"):
        thunder.jit(program)(x)


def test_whether_inputs_require_gradients_is_guarded():
    jitted = thunder.jit(lambda x, y: x * y)
    x, y = leaf(3), torch.randn(3, dtype=torch.float64)
    assert jitted(x, y).requires_grad and not jitted(x.detach(), y).requires_grad
    with torch.no_grad():
        assert not jitted(x, y).requires_grad
    assert thunder.cache_misses(jitted) == 3 and jitted(x, y).requires_grad and thunder.cache_misses(jitted) == 3


def computes_gradients(x):
    y = x.detach().requires_grad_()
    (y * y).sum().backward()
    return x * y.grad


def hooks_a_tensor(x):
    y = x * 2
    y.register_hook(lambda g: g * 3)
    return y.sin()


class Hooked(torch.nn.Module):
    def forward(self, x):
        return x * x


hooked = Hooked()
hooked.register_full_backward_hook(lambda module, of_inputs, of_outputs: (of_inputs[0] * 2,))


def writes_behind_autograd(x):
    y = x * 2
    y.data.mul_(3)
    return y * y


def writes_to_a_view_without_gradients(x):
    y = x * 2
    with torch.no_grad():
        y[0].zero_()
    return y * y


@pytest.mark.filterwarnings("ignore:.*is run plainly")
@pytest.mark.parametrize(
    "program",
    [computes_gradients, hooks_a_tensor, hooked, writes_behind_autograd, writes_to_a_view_without_gradients],
)
def test_what_asks_for_gradients_inside_is_run_plainly(program):
    assert_same_gradients(program, leaf(3, 3), plain=True)


def test_values_that_a_transform_has_made_are_differentiated():
    def to_primitives(trace):
        return trace.derived([leaf for s in trace.bound_symbols for leaf in s.leaves()], "Primitives")

    x = leaf(3, 3)
    thunder.jit(lambda x: F.gelu(x) * x.softmax(-1), transforms=[to_primitives])(x).sum().backward()
    y = x.detach().requires_grad_()
    (F.gelu(y) * y.softmax(-1)).sum().backward()
    assert_close(x.grad, y.grad)


def test_saved_tensors_are_free_once_the_backward_has_run():
    x = leaf(3)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(weakref.ref(t)) or t, lambda t: t):
        loss = thunder.jit(lambda x: x.exp().sin().sum())(x)
    assert any(ref() is not None and ref() is not x for ref in saved)
    loss.backward()
    gc.collect()
    assert all(ref() is None or ref() is x for ref in saved)


def test_a_module_trains_as_in_eager_with_batch_norm_and_dropout():
    def losses(jit):
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Dropout(0.2),
            torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4),
        )  # fmt: skip
        step = thunder.jit(net) if jit else net
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        x, y = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
        found = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = F.cross_entropy(step(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            found.append(loss.item())
        return found, [*net.parameters(), *net.buffers()]

    expected, actual = losses(False), losses(True)
    assert_close(actual[0], expected[0])
    assert_close(actual[1], expected[1])


def test_shapes_that_depend_on_values_are_differentiated():
    assert_same_gradients(lambda x: x[x.detach() > 0] * 2, leaf(4, 4))


def saved_by(program, *args):
    jitted = thunder.jit(program)
    jitted(*args)
    return {p.name: p.numel * p.dtype.itemsize for p in thunder.last_traces(jitted)[-1].output[1]}


def test_cheap_chains_are_computed_again_rather_than_saved():
    def program(x, w):
        mask = F.dropout(x @ w, 0.5)
        return ((mask * 2 + 1).t() @ w).relu() @ w

    saved = saved_by(program, leaf(8, 8), leaf(8, 8))
    assert sorted(saved.values()) == [64, 512, 512, 512, 512]  # the mask, x, w, what is dropped from, what relu gives
    assert_same_gradients(program, leaf(8, 8), leaf(8, 8))


def test_inputs_that_are_written_are_not_saved_for_what_they_were():
    def program(x):
        x.mul_(2)
        return x.relu() * x

    assert "x" not in saved_by(program, leaf(3) * 1)


def test_a_chain_of_a_thousand_operations_differentiates():
    def program(x):
        for _ in range(600):
            x = torch.sin(x) * x
        return x.sum()

    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    thunder.jit(program)(x).backward()
    program(y).backward()
    assert_close(x.grad, y.grad)


def rotated(x, angles):
    """Rotary embeddings by complex numbers, as LLaMA's first code has them."""
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@pytest.mark.parametrize(
    "program",
    [
        rotated,
        lambda x, a: torch.view_as_real(torch.complex(x[:, :4], a) / torch.complex(a, x[:, 4:])),
        lambda x, a: (torch.complex(x[:, :4], a) * (2 - 1j)).conj_physical().imag + x[:, 4:],
        lambda x, a: (x[:, :4] * torch.complex(a, a)).real.sum(0),
    ],
)
def test_gradients_through_complex_numbers_are_by_rule(program):
    x, a = torch.randn(3, 8, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    jitted = assert_same_gradients(program, x.requires_grad_(), a.requires_grad_())
    assert "with_graph" not in str(thunder.last_traces(jitted)[-1])
