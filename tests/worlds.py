"""Two worlds, plain and jitted: the same program and the same steps in each must show the same results and state."""

import contextlib
import functools
import gc
import linecache
import textwrap
import types
import warnings
import weakref
from collections import deque
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import thunder
from thunder.frontend import tracing
from thunder.frontend.dependence import attributes_of

CONSTANTS = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Size)
Compiled = type(thunder.jit(len))


def read_rows(table: Path) -> dict[str, tuple[str, list[str], bool]]:
    """The rows of a table by name: the program, the steps, and whether it is run plainly."""
    rows = {}
    for row in ("\n" + table.read_text()).split("\n== ")[1:]:
        heading, _, text = row.partition("\n")
        program, _, steps = text.partition("\n--\n")
        name = heading.removesuffix(" (plainly)")
        rows[name] = program, steps.strip().splitlines(), name != heading
    return rows


def run_world(
    program: str, steps: list[str], jitted: bool, cache: str = "constant values"
) -> tuple[Any, Any]:
    """What the steps showed and the state they left; and the callable `f` that the program made.

    A step that is an expression is evaluated twice, and each value is shown; any other is executed.
    """
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    world: dict[str, Any] = {"__name__": "world", "torch": torch, "nn": torch.nn, "x": x}
    world["jit"] = functools.partial(thunder.jit, cache=cache) if jitted else lambda fn: fn
    world["plain"] = (lambda fn: thunder.compile_data(fn).fn) if jitted else lambda fn: fn
    torch.manual_seed(0)
    torch.utils.hooks.RemovableHandle.next_id = 10_000
    shown: list[Any] = []
    filename = f"<world {abs(hash(program))}>"
    text = textwrap.dedent(program).strip() + "\n"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), world)
    f = world["f"] = world["jit"](world["f"])
    try:
        for step in steps:
            try:
                call = compile(step.strip(), "<step>", "eval")
            except SyntaxError:
                exec(compile(step.strip(), "<step>", "exec"), world)
                continue
            for _ in range(2):
                shown.append(outcome(call, world))
    finally:
        reset_torch()
    portrait = Portrait()
    hidden = {"jit", "plain", "torch", "nn", *(name for name in world if name.startswith("__"))}
    state = {name: value for name, value in world.items() if name not in hidden}
    return [shown, portrait.of(state), torch.rand(2).tolist()], f


def outcome(call: Any, world: dict[str, Any]) -> Any:
    """The portrait of what a call gives at once, before later calls write to it; or the error that it raises."""
    try:
        return Portrait().of(eval(call, world))
    except Exception as e:
        return type(e).__name__


def reset_torch() -> None:
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.use_deterministic_algorithms(False)


class Portrait:
    """A picture of a value and all it holds, to be compared: what is one object or shares memory is seen to be so."""

    def __init__(self) -> None:
        self.met: dict[int, Any] = {}
        self.storages: dict[int, int] = {}

    def of(self, x: Any) -> Any:
        if isinstance(x, CONSTANTS):
            return type(x).__name__, repr(x)
        if isinstance(x, thunder.ThunderModule):
            x = x._model
        if isinstance(x, Compiled):
            x = x.data.fn
        if isinstance(x, types.ModuleType) and x.__spec__ is not None:
            return "module", x.__name__
        if id(x) in self.met:
            return "the same as", list(self.met).index(id(x))
        self.met[id(x)] = x
        if isinstance(x, torch.Tensor):
            return self.tensor(x)
        if isinstance(x, dict):
            return type(x).__name__, [(self.of(k), self.of(v)) for k, v in x.items()], self.attributes(x)
        if isinstance(x, set | frozenset):
            return type(x).__name__, sorted(repr(self.of(y)) for y in x)
        if isinstance(x, list | tuple | deque):
            return type(x).__name__, [self.of(y) for y in x], self.attributes(x)
        if isinstance(x, types.FunctionType):
            cells = [c.cell_contents for c in x.__closure__ or () if c != types.CellType()]
            return "function", x.__name__, self.of(cells), self.of(vars(x))
        if isinstance(x, type):
            entries = {k: v for k, v in vars(x).items() if isinstance(v, (*CONSTANTS, list, dict, torch.Tensor))}
            return "class", x.__name__, {k: self.of(v) for k, v in entries.items() if not k.startswith("__")}
        return type(x).__name__, self.attributes(x)

    def tensor(self, x: torch.Tensor) -> Any:
        assert not isinstance(x, tracing.Traced), "a recording tensor has got out"
        storage = self.storages.setdefault(x.untyped_storage()._cdata, len(self.storages))
        values = x.detach().to(torch.complex128 if x.is_complex() else torch.float64)
        values = [f"{v:.4g}" for v in (values.reshape(-1) + 0).tolist()]
        return type(x).__name__, x.dtype, tuple(x.shape), x.stride(), x.requires_grad, storage, values

    def attributes(self, x: Any) -> Any:
        slots = [n for cls in type(x).__mro__ for n in getattr(cls, "__slots__", ()) if not n.startswith("__")]
        held = {n: getattr(x, n) for n in slots if hasattr(x, n)}
        held |= {n: v for n, v in (attributes_of(x) or {}).items() if n not in ("__wrapped__", "_compiled")}
        return {n: self.of(v) for n, v in sorted(held.items())}


@contextlib.contextmanager
def no_recording_tensor_left():
    """After the context, no facade that was made in it is alive."""
    made: list[weakref.ref] = []
    facade_of = tracing.Tracer.facade

    def facade(*args: Any) -> tracing.Traced:
        new = facade_of(*args)
        made.append(weakref.ref(new))
        return new

    with mock.patch.object(tracing.Tracer, "facade", facade):
        yield
    if any(facade() is not None for facade in made):
        gc.collect()
    left = [facade() for facade in made if facade() is not None]
    assert not left, [type(r) for r in gc.get_referrers(left[0])]


def compare_worlds(program: str, steps: list[str], *, plainly: bool = False, retraced: bool = False) -> None:
    """Plain and jitted show the same; the jitted one compiles and uses again, unless it is said to do otherwise."""
    with torch.no_grad():
        expected, _ = run_world(program, steps, jitted=False)
        with warnings.catch_warnings(record=True) as caught, no_recording_tensor_left():
            warnings.simplefilter("always")
            found, f = run_world(program, steps, jitted=True)
    assert found == expected
    ran_plainly = [str(w.message) for w in caught if "is run plainly" in str(w.message)]
    assert bool(ran_plainly) == plainly, ran_plainly
    assert plainly or retraced or thunder.cache_hits(f) > 0, "never used again"
