"""A `ThunderModule` is used as the module it was made of; a plain copy of that module says what is right."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn

import thunder

X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("scale", torch.full((4,), 2.0))
        self.register_buffer("shift", torch.full((4,), 0.5), persistent=False)
        self.factor = 1.5

    def forward(self, x, *, twice=False):
        y = self.drop(self.norm(self.first(x))) * self.scale + self.shift
        return y * self.factor * (2 if twice else 1)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(self.embedding(x))


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def pair(cls=Net):
    """A plain module, and a jitted one with the same state."""
    torch.manual_seed(0)
    plain = cls().eval()
    return plain, thunder.jit(copy.deepcopy(plain))


def check(plain, jitted, x=X, **kwargs):
    """Results, random numbers and the whole state are the same."""
    torch.manual_seed(1)
    expected = plain(x, **kwargs)
    torch.manual_seed(1)
    torch.testing.assert_close(jitted(x, **kwargs), expected)
    torch.testing.assert_close(jitted.state_dict(), plain.state_dict())


def test_names_and_state_are_the_originals():
    plain, jitted = pair()
    model = jitted._model
    assert isinstance(jitted, nn.Module)
    for method in ("named_parameters", "named_buffers", "named_modules", "named_children"):
        assert dict(getattr(jitted, method)()) == dict(getattr(model, method)())
        assert dict(getattr(jitted, method)()).keys() == dict(getattr(plain, method)()).keys()
    for method in ("parameters", "buffers", "modules", "children"):
        assert list(map(id, getattr(jitted, method)())) == list(map(id, getattr(model, method)()))
    assert jitted.get_parameter("first.weight") is model.first.weight
    assert jitted.get_buffer("norm.running_mean") is model.norm.running_mean
    assert jitted.get_submodule("first") is model.first and jitted.get_submodule("") is jitted
    assert list(jitted.state_dict()) == list(jitted.original_state_dict()) == list(plain.state_dict())
    assert list(jitted.state_dict(prefix="p.")) == list(plain.state_dict(prefix="p."))
    assert jitted.state_dict(keep_vars=True)["scale"] is model.scale
    for call in (lambda m: m.get_parameter("scale"), lambda m: m.get_buffer("no"), lambda m: m.get_submodule("no")):
        with pytest.raises(AttributeError):
            call(jitted)
    with pytest.raises(NotImplementedError, match="no_sync"):
        jitted.no_sync()


def test_named_buffers_by_persistence():
    _, jitted = pair()
    assert dict(jitted.named_buffers(persistent=False)).keys() == {"shift"}
    names = {"scale", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert dict(jitted.named_buffers(persistent=True)).keys() == names
    assert set(dict(jitted.named_buffers("m", persistent=True))) == {f"m.{n}" for n in names}
    assert dict(jitted.named_buffers(recurse=False)).keys() == {"scale", "shift"}


def test_train_and_eval_switch_the_original_and_trace_again():
    plain, jitted = pair()
    for mode in ("eval", "train", "train", "eval"):
        assert getattr(jitted, mode)() is jitted
        getattr(plain, mode)()
        assert jitted.training is jitted._model.norm.training is (mode == "train")
        check(plain, jitted)
    assert (thunder.cache_misses(jitted), thunder.cache_hits(jitted)) == (2, 2)


def test_attributes_are_the_originals():
    plain, jitted = pair()
    check(plain, jitted)
    for m in (plain, jitted):
        m.factor = 3.0
        m.scale = torch.full((4,), 7.0)
        m.first = nn.Linear(4, 4)
        nn.init.ones_(m.first.weight), nn.init.zeros_(m.first.bias)
    assert jitted.factor == jitted._model.factor == 3.0 and jitted.first is jitted._model.first
    assert type(jitted._model).__name__ == "Net" and "factor" in dir(jitted)
    check(plain, jitted)
    for m in (plain, jitted):
        m.first.weight = nn.Parameter(torch.full((4, 4), 0.5))
        m.register_buffer("extra", torch.ones(2))
        m.add_module("more", nn.ReLU())
        del m.drop
        m.drop = nn.Identity()
    check(plain, jitted)
    with pytest.raises(AttributeError, match=r"Net.*nothing"):
        _ = jitted.nothing
    del jitted.factor
    assert not hasattr(jitted._model, "factor")


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("assign", [True, False])
def test_load_state_dict(strict, assign):
    plain, jitted = pair()
    check(plain, jitted)
    new = {k: torch.rand_like(v.double()).to(v.dtype) for k, v in plain.state_dict().items()}
    weight = jitted.first.weight
    for m in (plain, jitted):
        m.load_state_dict(new, strict=strict, assign=assign)
    check(plain, jitted)
    assert (jitted.first.weight is weight) is not assign
    more = {**new, "extra": X}
    del more["scale"]
    if not strict:
        keys = jitted.load_state_dict(more, strict=False)
        assert (keys.missing_keys, keys.unexpected_keys) == (["scale"], ["extra"])
        return
    with pytest.raises(RuntimeError, match=r"Missing key.*scale[\s\S]*Unexpected key.*extra|Unexpected[\s\S]*Missing"):
        jitted.load_state_dict(more)


CONVERSIONS = {
    "to": lambda m: m.to(torch.float64),
    "double": lambda m: m.double(),
    "bfloat16": lambda m: m.bfloat16(),
    "half": lambda m: m.half(),
    "requires_grad_": lambda m: m.requires_grad_(False),
    "apply": lambda m: m.apply(lambda x: nn.init.ones_(x.weight) if isinstance(x, nn.Linear) else None),
    "zero_grad": lambda m: m.zero_grad() or m,
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_after_jit(name):
    plain, jitted = pair()
    check(plain, jitted)
    CONVERSIONS[name](plain)
    assert CONVERSIONS[name](jitted) is jitted
    check(plain, jitted, X.to(plain.first.weight.dtype))
    assert [(p.dtype, p.requires_grad) for p in jitted.parameters()] == [
        (p.dtype, p.requires_grad) for p in plain.parameters()
    ]


def test_methods_that_the_originals_class_overrides():
    class Stubborn(nn.Linear):
        def train(self, mode=True):
            return super().train(False)

        def state_dict(self, *args, **kwargs):
            return {"w": self.weight}

    jitted = thunder.jit(Stubborn(4, 4))
    assert jitted.train() is jitted and not jitted.training
    assert list(jitted.state_dict()) == ["w"]


def test_tied_weights_stay_one():
    plain, jitted = pair(Tied)
    tokens = torch.tensor([[0, 3], [4, 1]])
    check(plain, jitted, tokens)
    assert len(list(jitted.parameters())) == 1
    for m in (plain, jitted):
        m.double()
        m.head.weight.mul_(2)
        assert m.head.weight is m.embedding.weight
    check(plain, jitted, tokens)
    for m in (plain, jitted):
        m.head.weight = nn.Parameter(m.head.weight + 1)
    check(plain, jitted, tokens)
    for m in (plain, jitted):
        m.embedding.weight = m.head.weight
    check(plain, jitted, tokens)


def test_hooks_run():
    plain, jitted = pair()
    check(plain, jitted)
    handles = []
    for m in (plain, jitted):
        handles.append(m.register_forward_hook(lambda module, args, output: output + 1))
        handles.append(m.register_forward_pre_hook(lambda module, args: (args[0] * 3,)))
        handles.append(m.first.register_forward_hook(lambda module, args, output: output * args[0].mean()))
    check(plain, jitted)
    torch.testing.assert_close(jitted.forward(X), plain.forward(X))
    for handle in handles:
        handle.remove()
    check(plain, jitted)


def test_what_hooks_read_and_hooks_of_all_modules():
    plain, jitted = pair()
    factors = [1.0]
    for m in (plain, jitted):
        m.first.register_forward_hook(lambda module, args, output, factors=factors: output * factors[0])
        m.norm.register_forward_hook(lambda module, args, output: output * factors[0])
    check(plain, jitted)
    factors[0] = 3.0
    check(plain, jitted)
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, output: output + 1)
    check(plain, jitted)
    handle.remove()
    check(plain, jitted)


def test_another_class_or_forward_of_a_layer():
    class Negative(nn.Linear):
        def forward(self, x):
            return -super().forward(x)

    plain, jitted = pair()
    check(plain, jitted)
    for m in (plain, jitted):
        m.first.__class__ = Negative
    check(plain, jitted)
    for m in (plain, jitted):
        m.first.forward = lambda x, layer=m.first: x @ layer.weight
    check(plain, jitted)
    for m in (plain, jitted):
        del m.first.forward
        nn.utils.parametrizations.weight_norm(m.first)
    check(plain, jitted)


def test_forward_is_compiled_and_can_be_replaced():
    plain, jitted = pair()
    for _ in range(2):
        torch.testing.assert_close(jitted.forward(X, twice=True), plain.forward(X, twice=True))
    assert thunder.cache_hits(jitted.forward) == 1
    for m in (plain, jitted):
        inner = m.forward
        m.forward = lambda x, inner=inner: inner(x) + 1
    check(plain, jitted)


def test_an_optimizer_sees_the_parameters():
    plain, jitted = pair()
    check(plain, jitted)
    for m in (plain, jitted):
        optimizer = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
        for p in m.parameters():
            p.grad = torch.ones_like(p)
        optimizer.step()
        m.zero_grad()
        assert all(p.grad is None for p in m.parameters())
    check(plain, jitted)
    assert thunder.cache_hits(jitted) == 1


def test_deep_copies_are_independent():
    plain, jitted = pair()
    check(plain, jitted)
    copied = copy.deepcopy(jitted)
    assert isinstance(copied, thunder.ThunderModule) and copied.first.weight is not jitted.first.weight
    copied.first.weight.zero_()
    check(plain, jitted)
    plain.first.weight.zero_()
    check(plain, copied)
    assert (thunder.cache_misses(copied), thunder.cache_misses(jitted)) == (1, 1)
    both = copy.deepcopy({"module": jitted, "parameter": jitted.first.weight, "function": thunder.jit(jitted.forward)})
    assert both["module"].first.weight is both["parameter"]
    assert copy.copy(jitted).first is jitted.first


def test_pickle_keeps_the_module_and_how_it_is_compiled():
    plain, jitted = pair()
    jitted = thunder.jit(jitted._model, cache="no caching", executors=["torch"])
    check(plain, jitted)
    file = io.BytesIO()
    torch.save(jitted, file)
    file.seek(0)
    for loaded in (pickle.loads(pickle.dumps(jitted)), torch.load(file, weights_only=False)):
        assert thunder.cache_option(loaded) is thunder.CacheOption.NO_CACHING
        assert [e.name for e in thunder.compile_data(loaded).executors] == ["torch"]
        check(plain, loaded)


@thunder.jit
def double(x):
    return x * 2


def plain_function(x):
    return x * 3


def test_pickle_of_jitted_functions():
    assert pickle.loads(pickle.dumps(double)) is double
    loaded = pickle.loads(pickle.dumps(thunder.jit(plain_function)))
    torch.testing.assert_close(loaded(X), X * 3)


class Holder(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.inner(x))


def test_as_a_submodule():
    plain, jitted = pair()
    last = Holder(None).last
    holders = [Holder(plain), Holder(jitted), thunder.jit(Holder(copy.deepcopy(jitted)))]
    for holder in holders:
        holder.last.load_state_dict(last.state_dict())
        holder.eval()
    for holder in holders[1:]:
        assert list(holder.state_dict()) == list(holders[0].state_dict())
        assert dict(holder.named_parameters()).keys() == dict(holders[0].named_parameters()).keys()
        check(holders[0], holder)
    for holder in holders:
        holder.double().inner.factor = 4.0
        holder.load_state_dict({k: v + 1 for k, v in holder.state_dict().items()})
    for holder in holders[1:]:
        check(holders[0], holder, X.double())
    for holder in holders:
        holder.train()
    assert jitted.training
    holders[0].inner.drop.p = holders[1].inner.drop.p = 0.0
    check(holders[0], holders[1], X.double())
    assert thunder.cache_misses(jitted) == 3


def test_jit_of_a_jitted_module():
    plain, jitted = pair()
    twice = thunder.jit(jitted)
    check(plain, twice)
    plain.factor = twice.factor = 9.0
    check(plain, twice)
    assert jitted.factor == 9.0 and thunder.cache_misses(jitted) == 0


def test_functional_call():
    plain, jitted = pair()
    check(plain, jitted)
    values = {k: torch.rand_like(v) for k, v in plain.named_parameters()}
    expected = torch.func.functional_call(plain, values, (X,))
    torch.testing.assert_close(torch.func.functional_call(jitted, values, (X,)), expected)
    check(plain, jitted)


def test_containers():
    layers = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).eval()
    plain, jitted = layers, thunder.jit(copy.deepcopy(layers))
    assert len(jitted) == 3 and jitted[0] is jitted._model[0] and list(jitted) == list(jitted._model)
    assert jitted[1] in jitted and bool(jitted) and bool(thunder.jit(nn.Linear(1, 1)))
    check(plain, jitted)
    for m in (plain, jitted):
        m[1] = nn.Tanh()
    check(plain, jitted)
    for m in (plain, jitted):
        del m[2]
        m.append(nn.Sigmoid())
    check(plain, jitted)


def test_repr():
    plain, jitted = pair()
    assert repr(jitted) == f"ThunderModule({plain!r})"
    assert repr(thunder.jit(nn.ReLU())) == "ThunderModule(ReLU())"


def test_a_method_that_calls_the_module_runs_it_compiled():
    class Base(nn.Module):
        def twice(self, x):
            return self(self(x))

    class Model(Base):
        def __init__(self):
            super().__init__()
            self.fc, self.count = nn.Linear(3, 3), 0

        def forward(self, x):
            return self.fc(x)

        def twice(self, x):
            self.count += 1
            return super().twice(x)

    model = Model()
    jitted, x = thunder.jit(model), torch.randn(2, 3)
    with torch.no_grad():
        torch.testing.assert_close(jitted.twice(x), model.twice(x), rtol=0, atol=0)
    assert (thunder.cache_misses(jitted), thunder.cache_hits(jitted), model.count) == (1, 1, 2)
