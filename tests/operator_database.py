"""Torch's operator database against `thunder.jit`: one entry, with its samples of one dtype, compared with eager.

What is compared: values, dtypes, shapes, layout in memory, devices, classes, the arguments afterwards, which outputs
share memory with which arguments and with each other, and errors. Each sample is called as a function, as a method and
in place, as far as torch has these. What rules of ours trace is also run by the primitives that it comes down to.
"""

import copy
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from recorded import layout
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_methods_invocations import (
    foreach_binary_op_db,
    foreach_other_op_db,
    foreach_pointwise_op_db,
    foreach_reduce_op_db,
    foreach_unary_op_db,
    op_db,
)
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._pytree import tree_flatten

import thunder
from thunder.core import prims
from thunder.core.symbol import Tag
from thunder.core.trace import Trace

# `python_ref_db` is left out: what it lists are no public functions. So are entries that make samples on CUDA only.
_FOREACH = (
    *foreach_unary_op_db,
    *foreach_binary_op_db,
    *foreach_pointwise_op_db,
    *foreach_reduce_op_db,
    *foreach_other_op_db,
)
DATABASE: list[OpInfo] = [op for op in (*op_db, *_FOREACH) if not op.name.startswith("torch._scaled_mm")]

# The entries of random operations seed the generator in what they call; here it is seeded before every call.
common_methods_invocations.wrapper_set_seed = lambda function, *args, **kwargs: function(*args, **kwargs)

# Errors about `out=` that are not eager's: mostly none, since the result is converted, as eager often does.
NOT_REFUSED = frozenset({"arange", "complex", "aminmax", "gather", "multinomial", "cat"})

# Operations that no trace holds, and why: they run plainly, with a warning that says so.
NOT_TRACED = {
    **dict.fromkeys(
        ("as_strided_", "squeeze_", "t_", "transpose_", "unsqueeze_"), "changes the shape of a tensor in place"
    ),
    **dict.fromkeys(("resize_", "resize_as_"), "changes the shape and the memory of a tensor in place"),
    **dict.fromkeys(("sparse.mm.reduce", "sparse.sampled_addmm"), "takes sparse tensors, and traces hold dense ones"),
    "addbmm_": "with a result of another shape: fake tensors refuse what eager resizes",
    "to_sparse": "gives a sparse tensor, and traces hold dense ones",
}

# Their values are whatever was in memory.
UNINITIALIZED = frozenset({"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"})

# Composites of ours round after other steps than torch's kernels do.
TOLERANCE = {
    torch.float32: {"rtol": 1.3e-5, "atol": 3e-5},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 3e-2},
    torch.float16: {"rtol": 4e-3, "atol": 4e-3},
}
SEED = 2026


@dataclass
class Outcome:
    """What came of the samples of one entry and dtype.

    Attributes:
        samples, passed: how many there were, and how many were as eager in every form.
        how: for each form and way in which calls of it were traced (`way_traced`), how many.
        failures: a text for each sample that was not as eager.
    """

    samples: int = 0
    passed: int = 0
    how: dict[tuple[str, str], int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


class Difference(Exception):
    """The compiled callable does not do what eager does."""


def full_name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def forms(op: OpInfo) -> dict[str, Callable]:
    """The callables of an entry that take its samples."""
    found = {"function": op.op, "method": op.method_variant, "in place": op.inplace_variant}
    return {name: f for name, f in found.items() if f is not None and (name == "function" or f is not op.op)}


def check(op: OpInfo, dtype: torch.dtype, limit: int | None = None) -> Outcome:
    """Compare with eager on the samples of `dtype` on the CPU; with a limit, on as many of them, drawn with a seed."""
    outcome = Outcome()
    torch.manual_seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
        if limit is not None:
            random.Random(full_name(op)).shuffle(samples)
        for i, sample in enumerate(samples[:limit]):
            outcome.samples += 1
            try:
                for form, function in forms(op).items():
                    jitted = thunder.jit(function)
                    compare(op, function, jitted, sample, TOLERANCE.get(dtype, {}))
                    way = way_traced(jitted)
                    outcome.how[form, way] = outcome.how.get((form, way), 0) + 1
                    if way in ("rule", "decomposition") and not _is_random(jitted):
                        form = f"{form} by primitives"
                        by_primitives = thunder.jit(function, transforms=[to_primitives])
                        compare(op, function, by_primitives, sample, TOLERANCE.get(dtype, {}))
            except Exception as e:
                text = f"{type(e).__name__}: {e}" if not isinstance(e, Difference) else str(e)
                outcome.failures.append(f"{full_name(op)} {dtype} {i} {form}: {text}")
            else:
                outcome.passed += 1
    return outcome


def compare(op: OpInfo, function: Callable, jitted: Callable, sample: SampleInput, tolerance: dict[str, float]) -> None:
    """Difference if `jitted` does not do what `function` does."""
    expected_args, actual_args = (_copied(((sample.input, *sample.args), sample.kwargs)) for _ in range(2))
    expected = _call(function, *expected_args)
    actual = _call(jitted, *actual_args)
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        if not isinstance(actual, type(expected)):
            raise Difference(f"{_said(actual)}, eager: {_said(expected)}")
        return
    values = op.name not in UNINITIALIZED
    assert_same("result", actual, expected, tolerance, values)
    assert_same("argument", actual_args, expected_args, tolerance, values)
    if (aliasing := _aliasing(actual, actual_args)) != (eager := _aliasing(expected, expected_args)):
        raise Difference(f"aliasing: {aliasing}, eager: {eager}")
    assert_described(jitted, actual)


def assert_described(jitted: Callable, result: Any) -> None:
    """Difference if the trace says of its result what is not true of it."""
    stats = thunder.compile_stats(jitted)
    if stats.last is None or stats.last_epilogue_traces:
        return
    proxies = tree_flatten(stats.last_traces[0].output[0])[0]
    for p, x in zip(proxies, tree_flatten(result)[0]):
        if isinstance(x, torch.Tensor):
            said = (p.dtype, tuple(p.shape), str(p.device), layout(p.shape, p.strides))
            if said != (known := (x.dtype, tuple(x.shape), str(x.device), layout(x.shape, x.stride()))):
                raise Difference(f"the trace says {said} of what is {known}")


def to_primitives(trace: Trace) -> Trace:
    """Every operation replaced by the primitives that it comes down to."""
    return trace.derived([leaf for s in trace.bound_symbols for leaf in s.leaves()], "Primitives")


def _is_random(jitted: Callable) -> bool:
    statements = thunder.last_traces(jitted)[0].bound_symbols
    return any(Tag.RANDOM in leaf.symbol.tags for s in statements for leaf in s.leaves())


def _copied(arguments: Any) -> Any:
    """A copy with strides and shared memory as in `arguments`."""
    sparse = [x for x in tree_flatten(arguments)[0] if isinstance(x, torch.Tensor) and x.layout is not torch.strided]
    return copy.deepcopy(arguments, {id(x): x.clone() for x in sparse})


def _call(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What a call returns, or the error it raises."""
    torch.manual_seed(SEED)
    try:
        with torch.no_grad():
            return function(*args, **kwargs)
    except Exception as e:
        return e


def _said(x: Any) -> str:
    return f"{type(x).__name__}: {x}"[:600] if isinstance(x, Exception) else "no error"


def way_traced(jitted: Callable) -> str:
    """How the call was compiled: by a "rule", a "decomposition" into rules, as "opaque" calls, or run "plainly"."""
    stats = thunder.compile_stats(jitted)
    if stats.last is None:
        return "refused" if stats.plain is None else "plainly"
    statements = [s for s in stats.last_traces[0].bound_symbols if s.symbol is not prims.check_shape]
    if any(leaf.symbol.module not in ("ltorch", "prims") for s in statements for leaf in s.leaves()):
        return "opaque"
    return "rule" if len(statements) <= 1 else "decomposition"


def assert_same(what: str, actual: Any, expected: Any, tolerance: dict[str, float], values: bool = True) -> None:
    """Difference if two nested structures differ in structure, leaves or the tensors' values and metadata."""
    actual_leaves, actual_spec = tree_flatten(actual)
    expected_leaves, expected_spec = tree_flatten(expected)
    if actual_spec != expected_spec:
        raise Difference(f"{what}: {actual_spec}, eager: {expected_spec}")
    for a, b in zip(actual_leaves, expected_leaves):
        if not isinstance(b, torch.Tensor):
            if type(a) is not type(b) or (type(b).__eq__ is not object.__eq__ and a != b and a == a):
                raise Difference(f"{what}: {a!r}, eager: {b!r}")
            continue
        if description(a) != description(b):
            raise Difference(f"{what}: {description(a)}, eager: {description(b)}")
        if values:
            assert_close(what, a, b, tolerance)


def assert_close(what: str, a: torch.Tensor, b: torch.Tensor, tolerance: dict[str, float]) -> None:
    if b.dtype.itemsize == 1 and b.dtype.is_floating_point:  # float8: torch compares few of them
        a, b = a.float(), b.float()
    try:
        torch.testing.assert_close(
            a, b, equal_nan=True, check_stride=False, **(tolerance if b.dtype in TOLERANCE else {})
        )
    except AssertionError as e:
        raise Difference(f"{what}: {str(e).splitlines()[0]} {' '.join(str(e).splitlines()[2:4])}") from None


def description(x: Any) -> tuple:
    """What must be equal of a tensor besides its values."""
    if not isinstance(x, torch.Tensor):
        return (type(x),)
    strides: Any = None
    if x.layout is torch.strided:
        strides = layout(x.shape, x.stride())
    return type(x).__name__, x.dtype, tuple(x.shape), str(x.device), x.layout, strides, x.is_conj(), x.is_neg()


def _aliasing(result: Any, arguments: Any) -> list[tuple]:
    """For each tensor of the result: what it is among the arguments and results before it, or shares memory with."""
    given = [x for x in tree_flatten(arguments)[0] if isinstance(x, torch.Tensor)]
    found = []
    for x in tree_flatten(result)[0]:
        if isinstance(x, torch.Tensor):
            same = [i for i, y in enumerate(given) if x is y]
            shared = [(i, x.storage_offset()) for i, y in enumerate(given) if _share_memory(x, y)]
            found.append((same, shared))
            given.append(x)
    return found


def _share_memory(x: torch.Tensor, y: torch.Tensor) -> bool:
    if x.layout is not torch.strided or y.layout is not torch.strided:
        return False
    storage = x.untyped_storage()
    return storage.nbytes() > 0 and storage.data_ptr() == y.untyped_storage().data_ptr()


def check_errors(op: OpInfo) -> Outcome:
    """Compare with eager on arguments that eager refuses: an exception of the same type.

    What depends on values (an index out of bounds) is refused when the operation runs, all else while tracing.
    """
    outcome = Outcome()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, error in enumerate(op.error_inputs("cpu")):
            sample, outcome.samples = error.sample_input, outcome.samples + 1
            arguments = ((sample.input, *sample.args), sample.kwargs)
            eager, ours = (_call(function, *_copied(arguments)) for function in (op.op, thunder.jit(op.op)))
            if not isinstance(eager, Exception) or type(ours) is type(eager):
                outcome.passed += 1
            else:
                outcome.failures.append(f"{full_name(op)} {i}: {_said(ours)}, eager: {_said(eager)}")
    return outcome
