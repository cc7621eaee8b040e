"""Python's arithmetic on tensor proxies, so that rules can be written as formulas: `x * x + 1`.

Comparisons with == are not among them: proxies are compared by identity.
"""

from collections.abc import Callable

from thunder.clang import elementwise
from thunder.core import prims
from thunder.core.proxies import TensorProxy

_BINARY = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
_COMPARISONS = ("ge", "gt", "le", "lt")
_UNARY = {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}


def _swapped(function: Callable) -> Callable:
    return lambda a, b: function(b, a)


def _matmul(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    return prims.matmul(a, b)


def install_operators() -> None:
    """Give TensorProxy its arithmetic."""
    for operator, name in _BINARY.items():
        function = getattr(elementwise, name)
        setattr(TensorProxy, f"__{operator}__", function)
        setattr(TensorProxy, f"__r{operator}__", _swapped(function))
    for name in _COMPARISONS:
        setattr(TensorProxy, f"__{name}__", getattr(elementwise, name))
    for operator, name in _UNARY.items():
        setattr(TensorProxy, f"__{operator}__", getattr(elementwise, name))
    TensorProxy.__matmul__ = _matmul
