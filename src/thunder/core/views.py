"""Which values of a trace are views of others."""

from thunder.core import prims
from thunder.core.numbers import sizes_by_value
from thunder.core.proxies import TensorProxy
from thunder.core.symbol import BoundSymbol, Tag


def view_steps(bound_symbol: BoundSymbol, of: TensorProxy, output: TensorProxy) -> list[BoundSymbol] | None:
    """The view primitives that lead from `of` to `output` inside a call, or None if memory is not shared."""
    producers = {p: leaf for leaf in bound_symbol.leaves() for p in leaf.outputs}
    steps: list[BoundSymbol] = []
    value = output
    while value is not of:
        leaf = producers.get(value)
        if leaf is None or not shares_memory(leaf):
            return None
        steps.append(leaf)
        value = leaf.args[0]
    return steps[::-1]


def shares_memory(leaf: BoundSymbol) -> bool:
    """Whether a primitive's output is a view of its first argument."""
    if leaf.symbol is prims.reshape:
        a, shape = sizes_by_value(leaf.args)
        return prims.view_strides(a.shape, a.strides, shape) is not None
    return Tag.VIEW in leaf.symbol.tags


def viewed(bound_symbol: BoundSymbol) -> tuple[TensorProxy, ...]:
    """The inputs of a call that some output of it shares memory with."""
    if not any(shares_memory(leaf) for leaf in bound_symbol.leaves()):
        return ()
    tensors = [x for x in bound_symbol.inputs if isinstance(x, TensorProxy)]
    outputs = [x for x in bound_symbol.outputs if isinstance(x, TensorProxy)]
    return tuple(x for x in tensors if any(view_steps(bound_symbol, x, out) is not None for out in outputs))
