"""How a compiled program takes part in torch's autograd: one `torch.autograd.Function` that runs its two traces."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder.core.errors import UnsupportedError
from thunder.core.proxies import TensorProxy
from thunder.core.trace import Trace
from thunder.executors.torchex import no_autocast
from thunder.transforms.autodiff import Differentiated

keeps_graph = torch._C._autograd._get_current_graph_task_keep_graph


class Backward:
    """The backward computations of a specialization: one for each set of outputs that gradients come to.

    Args:
        differentiated: the program's forward and backward.
        stages: makes of the first stage of a backward all its stages.
        compiled: makes of a trace the function that it is.
    """

    def __init__(
        self,
        differentiated: Differentiated,
        stages: Callable[[Trace], list[Trace]],
        compiled: Callable[[Trace], Callable],
    ):
        self.differentiated, self.stages, self.compiled = differentiated, stages, compiled
        self.needs_gradient = tuple(p.requires_grad for p in differentiated.outputs)
        self.is_tensor = tuple(isinstance(p, TensorProxy) for p in differentiated.saved)
        self.variants: dict[tuple[bool, ...], tuple[list[Trace], Callable, tuple[int, ...]]] = {}
        self.last = self.needs_gradient

    def variant(self, given: tuple[bool, ...]) -> tuple[list[Trace], Callable, tuple[int, ...]]:
        """The stages of the backward for gradients of these outputs, its function, and which saved values it takes."""
        if given not in self.variants:
            trace, used = self.differentiated.backward(given)
            traces = self.stages(trace)
            self.variants[given] = traces, self.compiled(traces[-1]), used
        return self.variants[given]

    @property
    def traces(self) -> list[Trace]:
        """The stages of the backward that last ran; before one ran, of that for all outputs."""
        return self.variant(self.last)[0]

    def run(self, saved: list[Any], grads: Sequence[torch.Tensor | None]) -> tuple[torch.Tensor | None, ...]:
        """The gradients of the inputs. Empties `saved`, so that each tensor is free once it has been used."""
        self.last = tuple(g is not None for g in grads)
        if not any(self.last):
            return (None,) * len(self.differentiated.inputs)
        _, function, used = self.variant(self.last)
        arguments = [*(saved[i] for i in used), *(g for g in grads if g is not None)]
        saved.clear()
        return function(arguments)


class CompiledFunction(torch.autograd.Function):
    """Runs the forward of a program, and its backward when gradients come."""

    @staticmethod
    def forward(ctx: Any, run: Callable, backward: Backward, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        (result, values), saved = run(*inputs)
        given = {id(x) for x in inputs if isinstance(x, torch.Tensor)}
        outputs = tuple(x.view_as(x) if id(x) in given else x for x in (*result, *values))
        ctx.backward_of = backward
        ctx.save_for_backward(*[x for x, is_tensor in zip(saved, backward.is_tensor) if is_tensor])
        ctx.objects = [x for x, is_tensor in zip(saved, backward.is_tensor) if not is_tensor]
        without = [x for x, needs in zip(outputs, backward.needs_gradient) if not needs]
        ctx.mark_non_differentiable(*[x for x in without if isinstance(x, torch.Tensor)])
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise UnsupportedError(
                "Gradients of gradients (create_graph=True) through a jitted function are not built.",
                "Call the function itself where you differentiate twice.",
            )
        backward = ctx.backward_of
        tensors, objects = iter(ctx.saved_tensors), iter(ctx.objects)
        saved = [next(tensors if is_tensor else objects) for is_tensor in backward.is_tensor]
        del tensors, objects
        if not keeps_graph():
            ctx.maybe_clear_saved_tensors()
            ctx.objects = ()
        return None, None, *no_autocast(backward.run)(saved, grads)


def call(run: Callable, backward: Backward, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """What the program returns, with gradients: also of what it computes with them enabled where they are not."""
    if torch.is_grad_enabled():
        return CompiledFunction.apply(run, backward, *inputs)
    with torch.enable_grad():
        return CompiledFunction.apply(run, backward, *inputs)
