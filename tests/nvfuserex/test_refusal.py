"""Why operations are not fused."""

import pytest
import torch
from regions import CUDA, b8, f32, i64

import thunder
from thunder.core import prims
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import BoundSymbol, Symbol
from thunder.core.trace import Trace, record
from thunder.executors.nvfuserex import ex

CPU = torch.device("cpu")


def refusal(build, *inputs: tuple[tuple, torch.dtype, torch.device]) -> str | None:
    trace = Trace("computation")
    proxies = [
        TensorProxy(trace.new_name(f"a{n}"), shape=shape, dtype=dtype, device=device)
        for n, (shape, dtype, device) in enumerate(inputs)
    ]
    with record(trace):
        build(*proxies)
    return ex.refusal(trace.bound_symbols[-1])


MATRIX = ((4, 4), f32, CUDA)


@pytest.mark.parametrize(
    ("build", "inputs", "reason"),
    [
        (prims.neg, [MATRIX], None),
        (prims.neg, [((4,), f32, CPU)], "a0 is on the CPU"),
        (prims.neg, [((0, 4), f32, CUDA)], "a0 has no elements"),
        (prims.neg, [((4,), torch.uint8, CUDA)], "nvFuser does not compute u8"),
        (prims.neg, [((4,), torch.complex64, CUDA)], None),
        (prims.neg, [((4,), torch.complex32, CUDA)], "nvFuser does not compute c32"),
        (prims.expm1, [((4,), torch.complex64, CUDA)], "expm1 of c64"),
        (
            lambda a: prims.pow(a, 1.5),
            [((4,), torch.complex64, CUDA)],
            "nvFuser raises complex tensors to powers that are tensors",
        ),
        (lambda a: prims.convert_element_type(a, torch.int8), [MATRIX], "nvFuser does not compute i8"),
        (prims.exp, [((4,), i64, CUDA)], "exp of i64"),
        (lambda a: prims.sum(a, (0,)), [((4,), b8, CUDA)], "sum of b8"),
        (lambda a: prims.add(a, 1.5), [((4,), i64, CUDA)], "combines integers with a float"),
        (lambda a: prims.add(a, 2**63), [((4,), i64, CUDA)], "a number that nvFuser does not have"),
        (lambda a: prims.mul(a, 1j), [MATRIX], "combines real numbers with a complex one"),
        (
            lambda a: prims.mul(a, complex("inf")),
            [((4,), torch.complex64, CUDA)],
            "a number that nvFuser does not have",
        ),
        (prims.matmul, [MATRIX, MATRIX], "matrix product: torch calls cuBLAS"),
        (lambda a: prims.slice(a, (0, 0), (4, 4), (2, 1)), [MATRIX], "nvFuser slices without steps"),
        (lambda a: prims.slice(a, (0, 0), (4, 1), (1, 1)), [MATRIX], None),
        (
            lambda a: prims.slice(a, (0, 1), (4, 2), (1, 1)),
            [((8, 4), f32, CUDA)],
            "nvFuser mistakes a dimension cropped to one element",
        ),
        (
            lambda a: prims.pad(a, 0, (0, -1), (0, -2)),
            [MATRIX],
            "nvFuser mistakes a dimension cropped to one element",
        ),
        (lambda a: prims.flip(a, (0,)), [MATRIX], "nvFuser has no flip"),
        (lambda a: prims.argmax(a, 0), [MATRIX], None),
        (
            lambda a, i: prims.index(a, (i, i)),
            [MATRIX, ((2, 2), i64, CUDA)],
            "nvFuser takes along one dimension at a time",
        ),
        (
            lambda a, b: prims.slice_scatter(a, b, (0, 0), (4, 4), (2, 1)),
            [MATRIX, ((2, 4), f32, CUDA)],
            "nvFuser slices without steps",
        ),
        (lambda a: prims.cumsum(a, 0), [MATRIX], "nvFuser makes no kernel of it, it calls torch"),
        (lambda a, i: prims.gather(a, 0, i), [MATRIX, ((2, 4), i64, CUDA)], None),
        (
            lambda a, i: prims.gather(a, 0, i),
            [MATRIX, ((4, 2), i64, CUDA)],
            "nvFuser gathers where all sizes but one are the same",
        ),
        (prims.nextafter, [((4,), torch.bfloat16, CUDA)] * 2, "nextafter of bf16"),
        (prims.digamma, [MATRIX], "nvFuser has no digamma"),
        (prims.clone, [MATRIX], None),
        (
            lambda: prims.uniform((4,), 0, 1, f32, CUDA),
            [],
            "random numbers: torch draws them, so that they are eager's",
        ),
        (lambda: prims.full((4,), 1, f32, CUDA), [], None),
        (lambda: prims.full((4,), 1, f32, CPU), [], "t0 is on the CPU"),
        (prims.copy_, [MATRIX, MATRIX], "writes to memory"),
    ],
)
def test_reason(build, inputs: list, reason: str | None):
    assert refusal(build, *inputs) == reason


def test_a_composite_is_refused_for_what_it_is_made_of():
    square = Symbol("square", "ltorch", lambda a: prims.matmul(prims.neg(a), a))
    assert refusal(square, MATRIX) == "matrix product: torch calls cuBLAS"
    twice = Symbol("twice", "ltorch", lambda a: prims.add(prims.neg(a), a))
    assert refusal(twice, MATRIX) is None


def test_an_opaque_call_is_refused():
    trace = Trace("computation")
    a = TensorProxy("a", shape=(4,), dtype=f32, device=CUDA)
    with record(trace):
        out = prims.neg(a)
    reason = "a call of torch's own, not made of primitives"
    assert ex.refusal(BoundSymbol(Symbol("fft", "torch"), (a,), {}, out)) == reason


def test_what_torch_differentiates_is_refused_for_that():
    jitted = thunder.jit(torch.matrix_exp)
    jitted(torch.randn(2, 2, requires_grad=True)).sum().backward()
    for trace in (thunder.last_traces(jitted)[-1], thunder.last_backward_traces(jitted)[-1]):
        call = next(s for s in trace.bound_symbols if "graph" in s.symbol.name)
        assert ex.refusal(call) == "torch differentiates it, and keeps its graph"
