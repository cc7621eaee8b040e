"""Threads, re-entrance and errors: one tracing never disturbs another, nor what comes after it."""

import copy
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import thunder
from thunder.core.errors import UnsupportedError
from thunder.core.recording import current_recorder
from thunder.frontend.tracing import Traced

X = torch.linspace(-1, 1, 12).reshape(3, 4)
THREADS = 8


@pytest.fixture(autouse=True)
def no_grad():
    with torch.no_grad():
        yield


@pytest.fixture(autouse=True)
def switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(work, count=THREADS):
    """The results of `work(0)`, `work(1)`, ..., each in its thread, all started at the same time."""
    start = threading.Barrier(count)

    def run(i):
        start.wait()
        with torch.no_grad():
            return work(i)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def assert_nothing_is_left():
    assert torch._C._len_torch_function_stack() == 0
    assert current_recorder() is None
    assert sys.getprofile() is None
    if sys.version_info >= (3, 12):
        assert "thunder" not in [sys.monitoring.get_tool(i) for i in range(6)]


def deep(x, n):
    for i in range(n):
        x = torch.tanh(x * 1.1 + i)
    return x


def test_many_threads_compile_one_function_once():
    jitted = thunder.jit(deep)
    for result in at_once(lambda i: jitted(X, 20)):
        torch.testing.assert_close(result, deep(X, 20))
    assert (thunder.cache_misses(jitted), thunder.cache_hits(jitted)) == (1, THREADS - 1)
    assert_nothing_is_left()


def test_each_thread_needs_another_specialization():
    jitted = thunder.jit(deep)
    for _ in range(2):
        for i, result in enumerate(at_once(lambda i: jitted(X + i, 5 + i % 4))):
            torch.testing.assert_close(result, deep(X + i, 5 + i % 4))
    assert thunder.cache_misses(jitted) == 4
    assert thunder.cache_hits(jitted) == 2 * THREADS - 4


def test_different_functions_in_different_threads():
    def program(i):
        layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3 + i % 3)), nn.ReLU())
        jitted = thunder.jit(copy.deepcopy(layers))
        return [(jitted(X), layers(X)) for _ in range(3)], thunder.cache_misses(jitted)

    for pairs, misses in at_once(program):
        assert misses == 1
        for result, expected in pairs:
            torch.testing.assert_close(result, expected)
    assert_nothing_is_left()


def test_what_other_threads_run_is_not_traced():
    """While one thread traces, another runs torch operations and its own Python functions."""
    tracing, done = threading.Event(), threading.Event()

    def slow(x):
        tracing.set()
        done.wait(10)
        return x + 1

    jitted = thunder.jit(slow, debug_options=thunder.DebugOptions(record_history=True))
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: torch.no_grad()(jitted)(X))
        assert tracing.wait(10)
        result = deep(X, 3)
        done.set()
        torch.testing.assert_close(future.result(), X + 1)
    assert type(result) is torch.Tensor
    assert all(e.source.path == "test_threads.py" for e in thunder.last_interpreter_log(jitted))
    assert not any("deep" in str(e) for e in thunder.last_interpreter_log(jitted))
    assert len(thunder.last_traces(jitted)[0].bound_symbols) == 1
    assert_nothing_is_left()


def test_a_jitted_function_within_a_jitted_function_is_inlined():
    inner = thunder.jit(lambda x: x * 2)
    outer = thunder.jit(lambda x: inner(inner(x)) + 1)
    for _ in range(2):
        torch.testing.assert_close(outer(X), X * 4 + 1)
    assert thunder.cache_misses(inner) == thunder.cache_hits(inner) == 0
    assert (thunder.cache_misses(outer), thunder.cache_hits(outer)) == (1, 1)
    torch.testing.assert_close(inner(X), X * 2)


def test_recursion_through_a_jitted_function():
    @thunder.jit
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    for n in (1, 3, 4, 3):
        torch.testing.assert_close(power(X, n), X**n)
    assert (thunder.cache_misses(power), thunder.cache_hits(power)) == (3, 1)

    @thunder.jit
    def plain_power(x, n):
        print(end="")
        return x if n == 1 else x * plain_power(x, n - 1)

    with pytest.warns(UserWarning, match="run plainly"):
        torch.testing.assert_close(plain_power(X, 3), X**3)
    torch.testing.assert_close(plain_power(X, 4), X**4)


class Interrupt(BaseException):
    pass


def raises(error):
    def program(x):
        y = x + 1
        if error is not None:
            raise error
        return y @ y

    return program


@pytest.mark.parametrize("error", [ValueError("mine"), Interrupt(), KeyboardInterrupt(), GeneratorExit(), None])
@pytest.mark.parametrize("record", [False, True])
def test_an_error_while_tracing_leaves_nothing_behind(error, record):
    jitted = thunder.jit(raises(error), debug_options=thunder.DebugOptions(record_history=record))
    for _ in range(2):
        with pytest.raises(RuntimeError if error is None else type(error)):
            jitted(X)
        assert_nothing_is_left()
    torch.testing.assert_close(thunder.jit(deep)(X, 2), deep(X, 2))


def test_an_error_in_an_inner_jitted_function_leaves_the_outer_tracing_intact():
    inner = thunder.jit(raises(ValueError("mine")))

    def program(x):
        try:
            inner(x)
        except ValueError:
            x = x * 3
        return x + 1

    torch.testing.assert_close(thunder.jit(program)(X), X * 3 + 1)
    assert_nothing_is_left()


def test_errors_in_many_threads():
    def work(i):
        jitted = thunder.jit(raises(ValueError(str(i))) if i % 2 else deep)
        try:
            return jitted(X, 3) if i % 2 == 0 else jitted(X)
        except ValueError as e:
            return str(e)

    results = at_once(work)
    assert results[1::2] == [str(i) for i in range(1, THREADS, 2)]
    for result in results[::2]:
        torch.testing.assert_close(result, deep(X, 3))
    assert_nothing_is_left()


def test_a_facade_that_got_out_turns_nothing_on():
    kept = []

    class Sink:
        __slots__ = ()

        def keep(self, x, _append=kept.append):
            _append(x)

    def program(x):
        Sink().keep(x + 1)
        return x * 2

    thunder.jit(program)(X)
    for facade in kept:
        if isinstance(facade, Traced):
            repr(facade)
    assert_nothing_is_left()


def test_a_facade_is_refused_where_its_program_does_not_run():
    kept = []

    def program(x):
        y = x + 1
        with ThreadPoolExecutor(1) as pool:
            for work in (lambda: y + 1, lambda: thunder.jit(deep)(y, 2)):
                with pytest.raises(UnsupportedError, match="traced elsewhere"):
                    pool.submit(work).result()
            assert pool.submit(lambda: (y.shape, y.dtype)).result() == (X.shape, X.dtype)
            kept.append(pool.submit(repr, y).result())
        return y * 2

    torch.testing.assert_close(thunder.jit(program)(X), (X + 1) * 2)
    assert "traced tensor" in kept[0]


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.options = {"factor": 2}

    def forward(self, x, n):
        for _ in range(n):
            x = torch.tanh(self.layer(x)) * self.options["factor"]
        return x


def test_hits_and_compilations_of_many_threads_do_not_mix():
    """Each has its own guards: a hit in one thread shows its traces while another thread compiles."""
    module = Shared()
    jitted = [thunder.jit(module) for _ in range(2)]
    expected = {n: module(X, n) for n in range(1, 7)}

    def work(i):
        for k in range(24):
            n = 1 + (5 * i + 7 * k) % 6
            torch.testing.assert_close(jitted[k // 6 % 2](X, n), expected[n])

    at_once(work)
    assert [thunder.cache_misses(j) for j in jitted] == [6, 6]
    assert_nothing_is_left()


def test_asking_what_is_newborn_disturbs_no_other_thread_while_a_hook_audits_the_process():
    """Hooks run Python at many calls of C functions, and so let the other threads go on in the midst of them."""
    code = """
import sys, threading
from thunder.frontend.newborn import Newborn
sys.addaudithook(lambda *event: None)
sys.setswitchinterval(1e-6)
done, failures = threading.Event(), []

def make_tuples():
    try:
        while not done.is_set():
            for _ in range(1000):
                tuple(p for p in [1, 2, 3, object()] if p)
    except SystemError as e:
        failures.append(e)

threads = [threading.Thread(target=make_tuples) for _ in range(3)]
for t in threads:
    t.start()
for _ in range(2000):
    with Newborn() as newborn:
        made = [[] for _ in range(1000)]
        newborn.known()
done.set()
for t in threads:
    t.join()
sys.exit(bool(failures))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
