"""Records one call of a symbol on real arguments as a trace, and runs what was recorded."""

from collections.abc import Callable
from typing import Any

import torch

from thunder.core import prims
from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.symbol import BoundSymbol, Tag
from thunder.core.trace import Trace, record


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """Nested tuples, lists, dicts and slices with `function` applied to what they hold."""
    if isinstance(tree, tuple) and not isinstance(tree, torch.Size):
        return tuple(map_leaves(function, x) for x in tree)
    if isinstance(tree, list):
        return [map_leaves(function, x) for x in tree]
    if isinstance(tree, dict):
        return {k: map_leaves(function, v) for k, v in tree.items()}
    if isinstance(tree, slice):
        return slice(*(map_leaves(function, x) for x in (tree.start, tree.stop, tree.step)))
    return function(tree)


class Recorded:
    """The trace of `symbol(*args, **kwargs)`, where each tensor among the arguments is an input.

    Attributes:
        trace: the computation, which returns what the symbol returned, as tuples and lists.
        inputs: the tensors, in the order of the trace's arguments.
    """

    def __init__(self, symbol: Callable, *args: Any, **kwargs: Any):
        self.trace = Trace("computation")
        self.inputs: list[torch.Tensor] = []
        self.proxies: dict[int, TensorProxy] = {}
        args, kwargs = map_leaves(self._proxy, args), map_leaves(self._proxy, kwargs)
        self.trace.args = tuple(self.proxies.values())
        with record(self.trace):
            self.trace.output = map_leaves(lambda x: x, symbol(*args, **kwargs))

    def _proxy(self, x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) not in self.proxies:
            self.inputs.append(x)
            name = self.trace.new_name("input")
            self.proxies[id(x)] = TensorProxy(
                name, shape=x.shape, dtype=x.dtype, device=x.device, strides=x.stride(), requires_grad=x.requires_grad
            )
        return self.proxies[id(x)]

    def run(self) -> Any:
        """What the printed program returns."""
        return self.trace.python_callable()(*self.inputs)

    def run_primitives(self) -> Any:
        """The output, computed by the primitives that the call comes down to, one after the other."""
        values: dict[Proxy, Any] = dict(zip(self.trace.args, self.inputs))

        def value(x: Any) -> Any:
            return values[x] if isinstance(x, Proxy) else x

        with torch.no_grad():
            for bound_symbol in self.trace.bound_symbols:
                for leaf in bound_symbol.leaves():
                    assert leaf.symbol.is_prim
                    result = leaf.symbol(*map_leaves(value, leaf.args), **map_leaves(value, leaf.kwargs))
                    self._assign(values, leaf.output, result)
        return map_leaves(value, self.trace.output)

    def _assign(self, values: dict[Proxy, Any], output: Any, result: Any) -> None:
        if isinstance(output, Proxy):
            values[output] = result
            assert_described(output, result)
        elif isinstance(output, tuple | list):
            for one, x in zip(output, result):
                self._assign(values, one, x)


def assert_described(proxy: TensorProxy, tensor: torch.Tensor) -> None:
    """`proxy` says of the value what is true of `tensor`."""
    assert proxy.shape == tensor.shape, f"{proxy}: {tuple(tensor.shape)}"
    assert proxy.dtype == tensor.dtype, f"{proxy}: {tensor.dtype}"
    assert proxy.device == tensor.device


def layout(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The strides that say where elements lie: those of dimensions of more than one."""
    if 0 in shape:
        return ()
    return tuple(stride for size, stride in zip(shape, strides) if size > 1)


def assert_as_eager(
    symbol: Callable,
    function: Callable,
    *args: Any,
    strides: bool = True,
    exact: bool = False,
    tolerance: dict[str, float] | None = None,
    **kwargs: Any,
) -> Recorded:
    """Recorded, run as a program and run by its primitives, `symbol` gives what torch's `function` gives."""
    with torch.no_grad():
        expected = function(*args, **kwargs)
    recorded = Recorded(symbol, *args, **kwargs)
    assert_same_metadata(recorded.trace.output, expected, strides)
    assert_same_aliasing(recorded, recorded.trace.output, expected)
    tolerance = {"rtol": 0, "atol": 0} if exact else tolerance or {}
    for actual in (recorded.run(), recorded.run_primitives()):
        assert_close(actual, expected, **tolerance)
    return recorded


def assert_same_metadata(output: Any, expected: Any, strides: bool = True) -> None:
    if isinstance(expected, tuple | list):
        assert len(output) == len(expected)
        for one, other in zip(output, expected):
            assert_same_metadata(one, other, strides)
    elif isinstance(expected, torch.Tensor):
        assert_described(output, expected)
        if strides:
            assert layout(output.shape, output.strides) == layout(expected.shape, expected.stride()), (
                f"strides of {output}: {output.strides}, eager {expected.stride()}"
            )


def assert_close(actual: Any, expected: Any, **tolerance: float | None) -> None:
    if isinstance(expected, tuple | list):
        for one, other in zip(actual, expected):
            assert_close(one, other, **tolerance)
    elif isinstance(expected, torch.Tensor):
        torch.testing.assert_close(actual, expected, equal_nan=True, check_stride=False, **tolerance)


def aliased_input(recorded: Recorded, output: TensorProxy) -> TensorProxy | None:
    """The input whose memory `output` shares, as the primitives tell it."""
    base: dict[Proxy, Proxy] = {}
    for bound_symbol in recorded.trace.bound_symbols:
        for leaf in bound_symbol.leaves():
            if is_view(leaf):
                base[leaf.output] = base.get(leaf.args[0], leaf.args[0])
    found = base.get(output, output)
    return found if found in recorded.trace.args else None


def is_view(leaf: BoundSymbol) -> bool:
    """Whether the output of a primitive shares memory with its first argument."""
    if leaf.symbol is prims.reshape:
        a, shape = leaf.args
        return prims.view_strides(a.shape, a.strides, shape) is not None
    return leaf.has_tag(Tag.VIEW)


def assert_same_aliasing(recorded: Recorded, output: Any, expected: Any) -> None:
    """Outputs share memory with the inputs that eager's outputs share memory with."""
    if isinstance(expected, tuple | list):
        for one, other in zip(output, expected):
            assert_same_aliasing(recorded, one, other)
    elif isinstance(expected, torch.Tensor) and expected.numel():
        storage = expected.untyped_storage().data_ptr()
        shared = [p for p, x in zip(recorded.trace.args, recorded.inputs) if x.untyped_storage().data_ptr() == storage]
        found = aliased_input(recorded, output)
        assert (found in shared) if shared else (found is None), f"{output} shares memory with {found}, eager: {shared}"
