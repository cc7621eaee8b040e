"""Under cache="symbolic values" the sizes of tensors are symbolic: one trace for all that the program treats alike."""

import copy
import gc
import json
import math
import weakref

import pytest
import torch
import torch.nn.functional as F
from test_symbolic_values import same
from torch import nn

import thunder
from thunder.examine import memory
from thunder_cli.describe import describe_stage


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


def check(program, calls):
    """That each call gives, and writes, what the plain program does; returns the jitted one."""
    jitted = thunder.jit(program, cache="symbolic values")
    for args in calls:
        theirs = copy.deepcopy(args)
        same(jitted(*args), program(*theirs))
        same(args, theirs)
    assert thunder.compile_stats(jitted).plain is None
    return jitted


def of_sizes(*shapes):
    return [(torch.randn(shape),) for shape in shapes]


# Programs of a tensor of shape [n, 6], and how often they are compiled for n = 3, 4, 3, 5, 7.
PROGRAMS = {
    "x * 2 + x.relu()": 1,
    "x @ x.T": 1,
    "x.sum(0, keepdim=True) / x.size(0)": 1,
    "x.mean(), x.std(), x.var(0)": 1,
    "x.softmax(0)": 1,
    "F.layer_norm(x, x.shape[1:])": 1,
    "x.sum() / x.numel()": 1,
    "torch.cat([x, x, x])": 1,
    "torch.stack([x, x], 1)": 1,
    "x.view(x.shape[0], 2, -1).transpose(0, 1).reshape(2, -1)": 1,
    "x.reshape(-1, 2), x.flatten(), x.view(-1)": 1,
    "x[:, None] * x[None]": 1,
    "x[:, 1:-1], x[-1], x[1:], x[:2], x[::2]": 1,
    "x[x.shape[0] // 2 :]": 1,
    "x[:100]": 1,
    "x.unsqueeze(0).expand(3, -1, -1)": 1,
    "x.repeat(2, 1), x.tile(2)": 1,
    "x.chunk(2, 1), x.split(2, 1), x.unbind(1)": 1,
    "F.pad(x, (1, 2)), x.roll(1, 0), x.flip(0)": 1,
    "torch.zeros(x.shape), torch.ones_like(x), x.new_zeros(x.size(0), 2), torch.eye(x.shape[0])": 1,
    "torch.arange(x.shape[0]), torch.arange(1, 2 * x.shape[0], 2)": 1,
    "torch.tril(torch.ones(x.shape[0], x.shape[0]))": 1,
    "x.sort(1)[0], x.topk(2, 1)[1], x.argmax(1), x.cumsum(0)": 1,
    "torch.einsum('ab,cb->ac', x, x)": 1,
    "F.cross_entropy(x, torch.zeros(x.size(0), dtype=torch.long))": 1,
    "x * x.shape[0], x.shape[0] / 2, x.shape[0] ** 0.5, divmod(x.shape[0], 2)": 1,
    "x.shape[0], x.numel(), x.stride(), x.T.is_contiguous(), x.nbytes, math.prod(x.shape), sum(x.shape)": 1,
    "isinstance(x.shape, torch.Size), isinstance(x.shape[0], int), x.shape == (3, 6)": 2,
    "x if x.shape[0] > 4 else x + 1": 2,
    "x + 1 if x.shape[0] % 2 == 0 else x": 2,
    "min(x.shape[0], 4), max(2, x.shape[0])": 2,
    "max(x.shape)": 2,
    "[x + i for i in range(x.shape[0])]": 4,
    "list(x), len(x)": 4,
    "f'{x.shape}', str(x.shape[0]), repr(x.size())": 4,
    "x.shape, x.shape[:1], tuple(x.shape) + (1,)": 4,
    "{x.shape[0]: x}, x.shape in {(3, 6)}": 4,
    "math.sqrt(x.shape[0]), int(x.shape[0]), float(x.shape[0]), [0] * x.shape[0]": 4,
    "torch.tensor(x.shape), torch.tensor([x.shape[0]])": 4,
    "torch.vmap(lambda row: row * 2)(x)": 4,
    "F.interpolate(x[None, None], scale_factor=2)": 4,
}


@pytest.mark.parametrize("text", PROGRAMS)
def test_a_trace_holds_for_all_sizes_that_the_program_treats_alike(text):
    program = eval(f"lambda x: ({text})", {"torch": torch, "F": F, "math": math})
    jitted = check(program, of_sizes(*((n, 6) for n in (3, 4, 3, 5, 7))))
    assert thunder.cache_misses(jitted) == PROGRAMS[text]


def test_sizes_of_nothing_and_one_are_constants():
    jitted = check(lambda x, y: x + y, [(torch.ones(n, 3), torch.ones(4, 3)) for n in (4, 1, 4, 1)])
    assert thunder.cache_misses(jitted) == 2
    assert thunder.last_recompile_reason(jitted) == "dimension 0 of x: 4 -> 1"
    assert thunder.cache_misses(check(lambda x: x.sum(0), of_sizes((3, 2), (0, 2), (1, 2), (0, 2), (5, 2)))) == 3


def test_sizes_that_must_be_equal_are_a_condition():
    jitted = check(lambda x, y: x + y, [(torch.ones(n, m), torch.ones(n, m)) for n, m in ((2, 3), (4, 5), (3, 3))])
    assert thunder.cache_misses(jitted) == 1
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        jitted(torch.ones(3, 3), torch.ones(4, 3))
    same(jitted(torch.ones(1, 3), torch.ones(4, 3)), torch.full((4, 3), 2.0))


def test_a_cache_that_grows_is_compiled_once():
    def attend(cache, new):
        cache = torch.cat([cache, new], 1)
        scores = new @ cache.transpose(1, 2) / cache.shape[1]
        mask = torch.arange(cache.shape[1]) <= cache.shape[1] - 1
        return cache, scores.masked_fill(~mask, -math.inf).softmax(-1) @ cache, cache[:, -1]

    jitted, cache = thunder.jit(attend, cache="symbolic values"), torch.randn(2, 2, 4)
    for _ in range(7):
        new = torch.randn(2, 1, 4)
        expected = attend(cache, new)
        same(jitted(cache, new), expected)
        cache = expected[0]
    assert thunder.cache_misses(jitted) == 1


def test_layers_of_batches_of_all_sizes_are_compiled_once():
    layers = {
        "linear": (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), (8,)),
        "convolution": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2), nn.Flatten()), (3, 8, 8)),
        "attention": (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), (5, 16)),
    }
    for name, (layer, shape) in layers.items():
        jitted = thunder.jit(layer.eval(), cache="symbolic values")
        for n in (2, 3, 6, 4):
            x = torch.randn(n, *shape)
            torch.testing.assert_close(jitted(x), layer(x), rtol=1e-4, atol=1e-5)
        assert thunder.cache_misses(jitted) == 1, name


def test_writes_through_views_follow_the_sizes():
    def program(x, y):
        x[:, : y.shape[1]].mul_(2)
        x.add_(y.sum())
        return x.sum(), x.shape[1] * 2

    calls = [(torch.randn(n, 6), torch.randn(n, 3)) for n in (2, 3, 2, 4)]
    assert thunder.cache_misses(check(program, calls)) == 1
    check(lambda x: (x.view(-1).mul_(2), x.t()), of_sizes((2, 6), (3, 6), (4, 6)))


def test_tensors_that_are_not_row_major_have_constant_sizes():
    jitted = check(lambda x: x * 2 + x.sum(0), [(torch.randn(6, n).T,) for n in (3, 4, 3)] + of_sizes((3, 6), (5, 6)))
    assert thunder.cache_misses(jitted) == 3
    jitted = check(lambda x: x.view(-1), of_sizes((3, 6), (4, 6)))
    with pytest.raises(RuntimeError, match="view"):
        jitted(torch.randn(6, 4).T)


def test_numbers_and_sizes_compute_with_each_other():
    def program(x, n, s):
        rows = x.shape[0]
        return x * n / rows + s * x.shape[1], n + rows, rows * s, n < rows, x.max().item() * rows

    jitted = check(program, [(torch.randn(m, 4), n, s) for m, n, s in ((5, 2, 0.5), (5, 3, 1.5), (5, 4, 2.5))])
    assert thunder.cache_misses(jitted) == 1
    check(lambda x, n: (x[:n], x[n:], torch.zeros(n, x.shape[0])), [(torch.randn(5, 2), n) for n in (1, 3, 2, 9)])


def test_where_gradients_are_needed_sizes_are_constants():
    with torch.enable_grad():
        jitted = thunder.jit(lambda x: (x * x).mean() * x.shape[0], cache="symbolic values")
        for n in (2, 3, 2):
            x = torch.randn(n, 4, requires_grad=True)
            jitted(x).backward()
            torch.testing.assert_close(x.grad, 2 * x.detach() / 4)
        assert thunder.cache_misses(jitted) == 2


def test_the_trace_is_as_long_as_that_of_constants():
    def lines(**options):
        jitted = thunder.jit(lambda x, y: (x + y).softmax(-1).sum(0), **options)
        jitted(torch.ones(1, 4), torch.ones(3, 4))
        return thunder.last_traces(jitted)[0].canonical().splitlines()

    symbolic = lines(cache="symbolic values")
    assert len(symbolic) <= len(lines()) + 1  # the size that the softmax is over, as an input
    assert '  # y: "cpu f32[y_0, x_1]"' in symbolic


def test_old_specializations_are_found_among_many_whatever_the_sizes():
    jitted = thunder.jit(lambda x, name: x * len(name), cache="symbolic values")
    for n in (2, 3):
        for i in range(6):
            same(jitted(torch.ones(n, 2), "a" * i), torch.full((n, 2), float(i)))
    assert (thunder.cache_misses(jitted), thunder.cache_hits(jitted)) == (6, 6)


def test_a_compiled_program_keeps_no_argument():
    jitted, x = thunder.jit(lambda x: x * x.shape[0], cache="symbolic values"), torch.ones(3, 2)
    jitted(x)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None
    assert "x_0" in str(thunder.last_traces(jitted)[0])


def test_tools_tell_of_the_sizes_of_the_call():
    jitted = check(lambda x: (x.view(x.shape[0], 2, -1) * 2).sum(0), of_sizes((3, 4)))
    stage = json.loads(json.dumps(vars(describe_stage(thunder.last_traces(jitted)[0], 0))))
    assert stage["values"]["x"] == {"type": "cpu f32[x_0, x_1]", "strides": [4, 1]}
    assert memory(jitted).input_bytes == 3 * 4 * 4
