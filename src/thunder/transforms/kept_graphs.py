"""Operations without a gradient rule: torch's autograd differentiates them.

Such an operation runs on detached inputs with autograd on, and hands its graph on to the backward, which torch walks.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder.core.proxies import Proxy, TensorProxy
from thunder.core.pytree import tree_flatten, tree_map, tree_unflatten
from thunder.core.recording import current_recorder
from thunder.core.symbol import BoundSymbol, Symbol, Tag
from thunder.core.trace import tensor


class GraphProxy(Proxy):
    """The autograd graph of one operation, as a value of a trace."""

    def type_string(self) -> str:
        return "autograd graph"


class Graph:
    """The inputs and outputs of an operation that autograd has recorded."""

    def __init__(self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]):
        self.inputs, self.outputs = inputs, outputs

    def gradients(self, grads: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
        """The gradients of the inputs for those of the outputs; zeros where an input has no part in them."""
        pairs = [(out, g) for out, g in zip(self.outputs, grads) if g is not None and out.requires_grad]
        if not pairs:
            return [torch.zeros_like(x) for x in self.inputs]
        outputs, given = zip(*pairs)
        found = torch.autograd.grad(outputs, self.inputs, given, retain_graph=True, allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, self.inputs)]


class WithGraph:
    """Runs a function and returns its result and its graph.

    Args:
        positions: where, among the leaves of its arguments, the tensors are that need gradients.
    """

    def __init__(self, function: Callable, positions: tuple[int, ...]):
        self.function, self.positions = function, positions

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Graph]:
        leaves, spec = tree_flatten((args, kwargs))
        inputs = []
        for i in self.positions:
            leaves[i] = leaves[i].detach().requires_grad_()
            inputs.append(leaves[i])
        args, kwargs = tree_unflatten(leaves, spec)
        with torch.enable_grad():
            result = self.function(*args, **kwargs)
        outputs = [x for x in tree_flatten(result)[0] if isinstance(x, torch.Tensor)]
        detached = tree_map(lambda x: x.detach() if isinstance(x, torch.Tensor) else x, result)
        return detached, Graph(inputs, outputs)

    def __repr__(self) -> str:
        return f"WithGraph({getattr(self.function, '__name__', self.function)})"


def graph_backward(graph: Graph, grads: Sequence[torch.Tensor | None]) -> list[torch.Tensor]:
    """The gradients of an operation's inputs from its graph and the gradients of its outputs."""
    return graph.gradients(grads)


def with_kept_graph(statement: BoundSymbol, active: set[Proxy]) -> tuple[BoundSymbol, Callable[[list[Any]], list]]:
    """The statement that runs in the place of `statement`, and its pullback.

    The pullback takes the gradients of the tensors of the output, and gives (argument, gradient) pairs.
    """
    leaves, _ = tree_flatten((statement.args, statement.kwargs))
    positions = tuple(i for i, x in enumerate(leaves) if isinstance(x, Proxy) and x in active)
    inputs = [leaves[i] for i in positions]
    recorder = current_recorder()
    stem = statement.symbol.name.rpartition(".")[2]
    implementation = WithGraph(statement.symbol.implementation, positions)
    tags = tuple({tag for leaf in statement.leaves() for tag in leaf.symbol.tags} & {Tag.RANDOM})
    name = recorder.context_name(f"{stem}_with_graph", implementation)
    symbol = Symbol(name, None, is_prim=True, tags=tags, implementation=implementation)
    graph = GraphProxy(recorder.trace.new_name(f"{stem}_graph"))
    kept = BoundSymbol(symbol, statement.args, statement.kwargs, (statement.output, graph), (), statement.source)

    def infer(graph: GraphProxy, grads: Any) -> list[TensorProxy]:
        return [tensor(x) for x in inputs]

    def pullback(grads: list[Any]) -> list[tuple[Proxy, TensorProxy]]:
        name = current_recorder().context_name("graph_backward", graph_backward)
        backward = Symbol(name, None, infer, is_prim=True, implementation=graph_backward)
        return list(zip(inputs, backward(graph, tuple(grads))))

    return kept, pullback
