"""What `thunder.jit` promises: the plain callable's results, at every call, or an error that says why."""

import collections
import dataclasses
import gc
import linecache
import time
import weakref

import pytest
import torch

import thunder
from thunder.core.errors import SharpEdgeError, UnsupportedError


def check(program, *args, jitted=None, **kwargs):
    """Plain and jitted give the same."""
    jitted = jitted or thunder.jit(program)
    with torch.no_grad():
        torch.testing.assert_close(jitted(*args, **kwargs), program(*args, **kwargs))
    return jitted


X = torch.linspace(-1, 1, 12).reshape(3, 4)


def test_numbers_strings_and_none_are_guarded_by_value():
    def program(a, n, mode, mask=None):
        y = a * n if mode == "mul" else a + n
        return y if mask is None else torch.where(mask, y, a)

    j = thunder.jit(program)
    for args in [(X, 2, "mul"), (X, 3, "mul"), (X, 2.0, "mul"), (X, 2, "add"), (X, 2, "mul", X > 0), (X, True, "mul")]:
        check(program, *args, jitted=j)
    assert thunder.cache_misses(j) == 6
    check(program, X, 3, "mul", jitted=j)
    assert (thunder.cache_misses(j), thunder.cache_hits(j)) == (6, 1)


def test_metadata_of_tensors_is_guarded():
    def program(a):
        return a.contiguous().view(-1) + a.numel()

    j = thunder.jit(program)
    for a in (X, X[:2], X.double(), X.t(), X.to(torch.int64), X[:0]):
        check(program, a, jitted=j)
    assert thunder.cache_misses(j) == 6


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    scale: float


Point = collections.namedtuple("Point", "x y")


def test_containers_are_guarded_by_structure():
    def program(tree):
        if isinstance(tree, Batch):
            return tree.x * tree.scale
        values = tree.values() if isinstance(tree, dict) else tree
        return sum(values) / len(tree), type(tree) is list

    j = thunder.jit(program)
    mappings = ({"a": X, "b": X}, {("a", 0): X, 0.5: X})
    trees = ([X, X], (X, X), [X, X, X], *mappings, Point(X, X), Batch(X, 2.0), Batch(X, 3.0))
    for tree in trees:
        check(program, tree, jitted=j)
    assert thunder.cache_misses(j) == len(trees)


def test_results_keep_their_structure():
    def program(a):
        return Batch(a + 1, 2.0), Point(a, {"k": [a * 2, None, "s"]}), (), a.shape, a.dtype

    result, expected = thunder.jit(program)(X), program(X)
    assert type(result[0]) is Batch and type(result[1]) is Point
    torch.testing.assert_close(result[0].x, expected[0].x)
    assert result[1].y["k"][1:] == [None, "s"] and result[2:] == expected[2:]


def test_the_same_tensor_twice_is_not_taken_for_two():
    def program(a, b):
        return a is b, a + b

    j = thunder.jit(program)
    for pair in ((X, X), (X, X.clone()), (X, X)):
        assert j(*pair)[0] == program(*pair)[0]


def test_torch_state_is_guarded():
    def program(a):
        return a * (10 if torch.is_grad_enabled() else 1), torch.ones(2)

    j = thunder.jit(program)
    assert j(X)[0][0, 0] == -10
    with torch.no_grad():
        assert j(X)[0][0, 0] == -1
    torch.set_default_dtype(torch.float64)
    try:
        assert j(X)[1].dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_writes_to_arguments_happen():
    def program(a, b):
        a.add_(1)
        a[0] = 7
        b[:, 1:].mul_(a[:, 1:])
        return a * 2, a

    a, b = X.clone(), X.clone()
    c, d = X.clone(), X.clone()
    program(a, b)
    doubled, same = thunder.jit(program)(c, d)
    torch.testing.assert_close((c, d, doubled), (a, b, a * 2))
    assert same is c


def test_views_of_one_base_move_together():
    def program(x):
        y = x * 1
        row, column = y[0], y[:, 0]
        row.add_(10)
        y.mul_(2)
        column.sub_(1)
        return y, row, column, y.t().reshape(-1)

    check(program, X)


@pytest.mark.parametrize("integer", [torch.int64, torch.int8])
def test_what_an_integer_tensor_selects_is_a_view(integer):
    def program(x, i):
        y = x * 1
        row, element = y[i], y[i, i]
        row.add_(10)
        y[i - 1][1:].mul_(2)
        y[:, i] -= 1
        element.mul_(3)
        return y, row, element, y[None, i]

    check(program, X, torch.tensor(1, dtype=integer))

    def of_an_argument(x, i):
        x[i].add_(1)
        return x[i]

    x, y = X.clone(), X.clone()
    row = thunder.jit(of_an_argument)(x, torch.tensor(1, dtype=integer))
    of_an_argument(y, torch.tensor(1))
    row.mul_(2)
    y[1].mul_(2)
    torch.testing.assert_close(x, y)


def test_what_a_program_that_raises_did_until_then_is_done():
    def program(x, counts):
        counts.append(len(counts))
        x.add_(1)
        if len(counts) > 1:
            raise KeyError("enough")
        return x * 2

    outcomes = []
    for call in (program, thunder.jit(program)):
        x, counts = X.clone(), []
        call(x, counts)
        for _ in range(2):
            with pytest.raises(KeyError, match="enough"):
                call(x, counts)
        outcomes.append((x, torch.tensor(counts)))
    torch.testing.assert_close(*outcomes)


def test_running_statistics_are_updated():
    def run(wrap):
        torch.manual_seed(0)
        net = torch.nn.BatchNorm1d(4).train()
        call = wrap(net)
        with torch.no_grad():
            results = [call(X), call(X * 2)]
        return results, net.running_mean, net.running_var, net.num_batches_tracked

    torch.testing.assert_close(run(thunder.jit), run(lambda net: net))


def test_random_numbers_are_eagers():
    def program(a):
        return torch.nn.functional.dropout(a, 0.5) + torch.rand(4) + torch.rand_like(a)

    torch.manual_seed(3)
    expected = program(X), torch.rand(2)
    torch.manual_seed(3)
    torch.testing.assert_close((thunder.jit(program)(X), torch.rand(2)), expected)


def test_an_operation_without_a_rule_is_traced():
    def program(a):
        return torch.special.entr(a.abs()), torch.fft.fft(a).abs(), torch.linalg.inv(a[:3, :3] + torch.eye(3) * 4)

    check(program, X)


def test_a_result_that_is_a_view_of_an_argument_shares_its_memory():
    x = X.clone()
    y = thunder.jit(lambda a: a.t()[1:])(x)
    y.zero_()
    assert x[:, 1:].abs().sum() == 0


def test_two_equal_results_are_two_tensors():
    first, second = thunder.jit(lambda a: (a + 1, a + 1))(X)
    first.zero_()
    torch.testing.assert_close(second, X + 1)


def test_a_way_out_of_torch_is_refused_with_the_users_line():
    def program(a):
        return a.numpy()

    with pytest.raises(UnsupportedError, match=r"test_jit.py:\d+  return a.numpy\(\)\nnumpy\(\) leaves torch"):
        thunder.jit(program)(X)


def test_what_was_traced_before_an_error_stays_available():
    def program(a):
        b = a + 1
        return b.numpy()

    j = thunder.jit(program)
    with pytest.raises(UnsupportedError):
        j(X)
    (stage,) = thunder.last_traces(j)
    assert [p.name for b in stage.bound_symbols for p in b.outputs] == ["b"]


def test_what_eager_refuses_is_refused_with_its_error_and_the_users_line():
    def program(a):
        return a @ a

    with pytest.raises(RuntimeError) as e:
        thunder.jit(program)(X)
    assert any("test_jit.py" in note and "return a @ a" in note for note in e.value.__notes__)


def test_the_program_may_catch_eagers_error():
    def program(a):
        try:
            return a.view(5, 5)
        except RuntimeError:
            return a + 1

    check(program, X)


def test_without_torch_autograd_results_carry_no_gradients():
    net = torch.nn.Linear(4, 4)
    result = thunder.jit(net, disable_torch_autograd=True)(X)
    assert not result.requires_grad
    torch.testing.assert_close(result, net(X).detach())


def test_nothing_of_tracing_stays_behind_after_an_error():
    def program(a):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        thunder.jit(program)(X)
    assert type(torch.ones(2) + 1) is torch.Tensor
    check(lambda a: a + 1, X)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"cache": "sometimes"}, ValueError, "constant values"),
        ({"sharp_edges": "blunt"}, ValueError, "'allow', 'warn', 'error'"),
        ({"nv_store_fusion_input": True}, ValueError, "did you mean 'nv_store_fusion_inputs'"),
        ({"executors": ["nvfuse"]}, ValueError, "nvfuser"),
    ],
)
def test_an_option_that_is_wrong_is_refused_by_name(options, error, message):
    with pytest.raises(error, match=message):
        thunder.jit(lambda a: a, **options)


def test_a_users_transform_is_a_stage_of_its_own():
    def swap_nothing(trace):
        return trace.derived(trace.bound_symbols, "Swap nothing")

    j = thunder.jit(lambda a: a + 1, transforms=[swap_nothing])
    j(X)
    assert [t.constructed_by for t in thunder.last_traces(j)][2] == "Swap nothing"
    assert thunder.list_transforms(j) == [swap_nothing]


def test_a_thunder_module_shows_the_original():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).eval()
    j = thunder.jit(net)
    assert isinstance(j, thunder.ThunderModule)
    assert j.get_parameter("0.weight") is net[0].weight and j.get_buffer("1.running_mean") is net[1].running_mean
    assert j.get_submodule("1") is net[1]
    assert [n for n, _ in j.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert list(j.state_dict()) == list(net.state_dict()) == list(j.original_state_dict())
    state = {k: torch.zeros_like(v) for k, v in net.state_dict().items()}
    j.load_state_dict(state)
    assert net[0].weight.abs().sum() == 0


def test_every_name_of_the_api_is_importable():
    for name in thunder.__all__:
        assert getattr(thunder, name) is not None


def test_one_executor_may_be_given_by_its_name():
    jitted = thunder.jit(lambda a: a + 1, executors="torch")
    torch.testing.assert_close(jitted(X), X + 1)


def test_generators_and_async_functions_are_refused_by_name():
    def generator(a):
        yield a

    async def coroutine(a):
        return a

    for function in (generator, coroutine):
        with pytest.raises(NotImplementedError, match="generator or async"):
            thunder.jit(function)


def test_questions_about_traces_say_what_they_take():
    with pytest.raises(TypeError, match=r"thunder.last_traces\(fn\)\[-1\]"):
        thunder.examine.get_fusions(thunder.jit(lambda a: a))


def prints(a):
    print("here")
    return a + 1


def reads_the_clock(a):
    return a * 0 + int(time.time() > 0)


def seeds(a):
    torch.manual_seed(0)
    return a + 1


def makes_a_generator(a):
    return a + torch.rand(2, generator=torch.Generator().manual_seed(0))


def test_a_program_that_seeds_a_generator_of_its_own_draws_the_same_at_each_call():
    with pytest.warns(UserWarning, match="is run plainly, not compiled"):
        jitted = check(makes_a_generator, torch.zeros(2))
    assert torch.equal(jitted(torch.zeros(2)), makes_a_generator(torch.zeros(2)))


@pytest.mark.parametrize("program", [prints, reads_the_clock, seeds])
def test_a_sharp_edge_is_run_plainly_warned_of_or_refused_with_the_users_line(program):
    with pytest.warns(UserWarning, match=r"is run plainly, not compiled.\ntest_jit.py:\d+"):
        jitted = check(program, X)
    assert thunder.compile_stats(jitted).plain is not None
    with pytest.warns(UserWarning, match=r"^test_jit.py:\d+"):
        jitted = check(program, X, jitted=thunder.jit(program, sharp_edges="warn"))
    assert thunder.compile_stats(jitted).plain is None
    with pytest.raises(SharpEdgeError, match=r"test_jit.py:\d+"):
        thunder.jit(program, sharp_edges="error")(X)


def test_a_callable_that_is_dropped_leaves_nothing_behind():
    before = set(linecache.cache)
    jitted = thunder.jit(lambda x: x + 1)
    with torch.no_grad():
        jitted(torch.ones(2))
    assert any(name.startswith("<thunder ") for name in set(linecache.cache) - before)
    kept = weakref.ref(jitted)
    del jitted
    gc.collect()
    assert kept() is None
    assert not [name for name in set(linecache.cache) - before if name.startswith("<thunder ")]


def test_gradients_that_a_program_reads_are_those_of_each_call():
    def trained(wrap):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 2)
        x, seen = torch.ones(1, 2, requires_grad=True), []

        def step(x):
            with torch.no_grad():
                for p in model.parameters():
                    if p.grad is not None:
                        p.sub_(p.grad * 0.1)
            return x.grad * 2 if x.grad is not None else x * 0, x.is_leaf

        call = wrap(step)
        for k in range(4):
            model.zero_grad(set_to_none=k % 2 == 0)
            if k == 2:
                x.grad = None
            if k < 3:
                model(x * 1 if k == 1 else x.detach()).sum().backward()
            seen += [call(x), call(x * 2)[1]]
        return seen, [p.detach() for p in model.parameters()]

    expected, found = trained(lambda f: f), trained(thunder.jit)
    torch.testing.assert_close(found[1], expected[1])
    for (a, is_leaf), (b, was_leaf) in zip(found[0][::2], expected[0][::2], strict=True):
        torch.testing.assert_close(a, b)
        assert is_leaf == was_leaf
    assert found[0][1::2] == expected[0][1::2] == [False] * 4


@pytest.mark.parametrize("part", [lambda w: w, lambda w: w[0]])
def test_a_write_to_a_leaf_raises_where_it_happens(part):
    def program(w, log):
        try:
            part(w).add_(1)
        except RuntimeError as e:
            log.append(str(e))
        return w * 2

    logs = [], []
    for call, log in zip((program, thunder.jit(program)), logs):
        for w in (X.clone(), X.clone().requires_grad_(), X.clone().requires_grad_() * 1):
            call(w, log)
    assert logs[0] == logs[1] and len(logs[0]) == 1


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_a_program_that_steps_an_optimizer_is_run_plainly(optimizer):
    def trained(wrap):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 2)
        chosen = optimizer(model.parameters(), lr=0.1, **({"momentum": 0.9} if optimizer is torch.optim.SGD else {}))
        call = wrap(lambda: chosen.step())
        for _ in range(3):
            chosen.zero_grad()
            model(X[:, :2]).sum().backward()
            call()
        return [p.detach() for p in model.parameters()]

    with pytest.warns(UserWarning, match="steps an optimizer"):
        found = trained(thunder.jit)
    torch.testing.assert_close(found, trained(lambda f: f))
