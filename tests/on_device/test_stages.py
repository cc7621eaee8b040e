"""Every stage of every fixture is a program, and gives what eager PyTorch gives."""

import ast

import pytest
import torch

import thunder
from thunder.core.printing import print_trace
from thunder.core.pytree import tree_flatten

PROGRAMS = {"first": "foo", "quickstart": "foo", "mlp": "model", "gpt": "model", "closure": "scaled"}


@pytest.fixture(params=PROGRAMS)
def program(request, load_fixture):
    module = load_fixture(request.param)
    entry = getattr(module, PROGRAMS[request.param])
    inputs = module.example_inputs() if hasattr(module, "example_inputs") else (module.a, module.b)
    return entry, inputs


def tensors(tree):
    return [x for x in tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]


def assert_equal(actual, expected):
    """Within what fusing and another order of operations may change in float32."""
    actual, expected = tensors(actual), tensors(expected)
    assert len(actual) == len(expected) > 0
    for a, e in zip(actual, expected):
        assert (a.shape, a.dtype, a.device) == (e.shape, e.dtype, e.device)
        torch.testing.assert_close(a.cpu(), e.cpu(), rtol=2e-5, atol=2e-5)


def execute(trace, inputs):
    """Run the printed text, with the context and nothing else, on the inputs."""
    printed = print_trace(trace)
    namespace = dict(printed.context)
    exec("".join(line.text + "\n" for line in printed.lines), namespace)
    return namespace[trace.name](*inputs)


def test_every_stage_is_a_program_that_gives_eagers_results(program):
    entry, inputs = program
    with torch.no_grad():
        expected = entry(*inputs)
        jitted = thunder.jit(entry)
        assert_equal(jitted(*inputs), expected)
        (prologue,) = thunder.last_prologue_traces(jitted)
        computation_inputs = execute(prologue, (inputs, {}))
        assert computation_inputs is not None
        stages = thunder.last_traces(jitted)
        assert len(stages) == 4
        for stage in stages:
            result, _ = execute(stage, computation_inputs)
            assert_equal(result, expected)
            assert_equal(stage.python_callable()(*computation_inputs)[0], expected)


def test_a_cache_hit_gives_the_same(program):
    entry, inputs = program
    with torch.no_grad():
        jitted = thunder.jit(entry)
        first = jitted(*inputs)
        second = jitted(*inputs)
    assert (thunder.cache_misses(jitted), thunder.cache_hits(jitted)) == (1, 1)
    assert_equal(second, first)


def test_no_name_of_a_stage_is_undefined(program):
    entry, inputs = program
    with torch.no_grad():
        jitted = thunder.jit(entry)
        jitted(*inputs)
    for stage in thunder.last_traces(jitted):
        assert undefined_names(stage) == set()


def undefined_names(trace):
    """Names that the text reads and neither it nor its context defines."""
    tree = ast.parse(trace.canonical())
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    defined = {n.id for n in names if isinstance(n.ctx, ast.Store)} | set(trace.python_ctx())
    defined |= {a.arg for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) for a in n.args.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {(a.asname or a.name).split(".")[0] for a in node.names}
    builtins = {"slice", "float", "complex", "None", "True", "False"}
    return {n.id for n in names if isinstance(n.ctx, ast.Load)} - defined - builtins


def test_names_survive_from_the_first_stage_to_the_last(program):
    entry, inputs = program
    with torch.no_grad():
        jitted = thunder.jit(entry)
        jitted(*inputs)
    acquired, *later = thunder.last_traces(jitted)
    known = {p.name for b in acquired.bound_symbols for leaf in [b, *b.leaves()] for p in (*leaf.outputs, *leaf.inputs)}
    for stage in later:
        assert {p.name for b in stage.bound_symbols for p in (*b.outputs, *b.inputs)} <= known


def test_the_seeds_second_example_has_its_four_stages(load_fixture):
    module = load_fixture("quickstart")
    jitted = thunder.jit(module.foo)
    c, f = jitted(module.a, module.b)
    assert (c.tolist(), f.tolist()) == ([[4.0, 4.0]] * 2, [[12.0, 12.0]] * 2)
    acquired, dce, execution, deleted = thunder.last_traces(jitted)
    assert [s.constructed_by for s in (acquired, dce, execution, deleted)] == [
        None, "Dead Code Elimination", "Transform for execution", "Delete Last Used",
    ]  # fmt: skip
    assert [b.symbol.id for b in acquired.bound_symbols] == ["ltorch.add", "ltorch.add", "ltorch.mul", "ltorch.mul"]
    assert [b.outputs[0].name for b in dce.bound_symbols] == ["c", "d", "f"]
    assert [b.symbol.id for b in execution.bound_symbols] == ["nvFusion0"]
    (fusion,) = execution.bound_symbols
    assert [p.name for p in fusion.inputs] == ["a", "b"] and [p.name for p in fusion.outputs] == ["c", "f"]
    assert repr(execution.python_ctx()) == "{'nvFusion0': FusionDefinitionWrapper(nvFusion0: (add, mul))}"
    assert "del a, b" in deleted.canonical()
    (replaced,) = [e for e in execution.events if e.kind == "replaced"]
    assert (replaced.values, replaced.into) == (("d",), "c")
    (removed,) = dce.events
    assert (removed.kind, removed.values, removed.reason) == ("removed", ("e",), "result never used")
    assert str(removed.source) == "quickstart.py:6:    e = a * a"
