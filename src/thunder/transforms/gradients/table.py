"""The table of gradient rules. A rule belongs to a symbol: a primitive, or a composite that has a better one.

A rule is recorded in terms of `thunder.clang` and the primitives. A symbol without a rule differentiates through what
it is made of.
"""

from collections.abc import Callable
from typing import Any

from thunder.core.symbol import Symbol

Pullback = Callable[..., Any]

# (gradient of the output, output, *arguments of the call) -> gradients of the arguments, in their order: a tensor, None
# for no gradient, or a sequence of these for an argument that is one. Where the output is a tuple, so is the gradient,
# with None for what no gradient came to.
gradient_rules: dict[Symbol, Callable[..., Any]] = {}

# (needs_gradient, *arguments of the call) -> (output, pullback). What the rule records runs in the place of the call;
# the pullback takes the gradient of the output and gives those of the arguments, as above. None: the rule does not
# cover the call, which is differentiated by what it is made of. `needs_gradient(x)` tells of an argument.
augmented_rules: dict[Symbol, Callable[..., tuple[Any, Pullback] | None]] = {}

# (*arguments of the call) -> output, in terms of other operations, which stand in the place of the call where it is
# differentiated. None: the call stays as it is.
rewrites: dict[Symbol, Callable[..., Any]] = {}

# Operations that torch differentiates by kernels that the rules do not reach.
by_torch: set[Symbol] = set()


def gradient(*symbols: Symbol) -> Callable[[Callable], Callable]:
    """Makes the decorated function the gradient rule of the symbols."""

    def decorate(rule: Callable) -> Callable:
        gradient_rules.update(dict.fromkeys(symbols, rule))
        return rule

    return decorate


def augmented(*symbols: Symbol) -> Callable[[Callable], Callable]:
    """Makes the decorated function the rule of symbols whose forward must give more than their output."""

    def decorate(rule: Callable) -> Callable:
        augmented_rules.update(dict.fromkeys(symbols, rule))
        return rule

    return decorate


def rewrite(*symbols: Symbol) -> Callable[[Callable], Callable]:
    """Makes the decorated function what the symbols are where they are differentiated."""

    def decorate(rule: Callable) -> Callable:
        rewrites.update(dict.fromkeys(symbols, rule))
        return rule

    return decorate
