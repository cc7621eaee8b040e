"""Which values of a trace derivatives go through: those that depend on a value that requires gradients."""

from collections.abc import Iterable

from thunder.core import memory_prims, prims
from thunder.core.dtypes import is_inexact
from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.symbol import BoundSymbol

# Differentiation stops here.
STOPS = frozenset({prims.detach, memory_prims.bitcast})

# Their results require gradients wherever an input does, also where what they compute passes none on: a count of
# elements that are not zero, say. The gradients are zero.
REQUIRE = frozenset(
    f"ltorch.{name}" for name in ("cat", "cdist", "copysign", "dist", "fill", "norm", "vector_norm", "zero")
)

# Of their results the first one alone is differentiable.
FIRST_ONLY = frozenset({"ltorch.native_layer_norm"})


def differentiable_outputs(bound_symbol: BoundSymbol, active: set[Proxy]) -> list[TensorProxy]:
    """The outputs of a call that depend, by floating point operations, on the values in `active`.

    An opaque call says itself, by `requires_grad` of its outputs, which of them do.
    """
    if not active.intersection(bound_symbol.inputs) or bound_symbol.symbol in STOPS:
        return []
    outputs = [p for p in bound_symbol.outputs if isinstance(p, TensorProxy) and is_inexact(p.dtype)]
    if bound_symbol.symbol.id in FIRST_ONLY:
        return outputs[:1]
    if bound_symbol.symbol.id in REQUIRE:
        return outputs
    if bound_symbol.subsymbols:
        inner = set(active.intersection(bound_symbol.inputs))
        for sub in bound_symbol.subsymbols:
            inner.update(differentiable_outputs(sub, inner))
        return [p for p in outputs if p in inner]
    if bound_symbol.symbol.module != "prims":
        return [p for p in outputs if p.requires_grad]
    return outputs


def mark_differentiable(bound_symbols: Iterable[BoundSymbol]) -> None:
    """Set `requires_grad` of what the calls compute from values that require gradients."""
    for bound_symbol in bound_symbols:
        active: set[Proxy] = {p for p in bound_symbol.inputs if isinstance(p, TensorProxy) and p.requires_grad}
        if active:
            for p in differentiable_outputs(bound_symbol, active):
                p.requires_grad = True
