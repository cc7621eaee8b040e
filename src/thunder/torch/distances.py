"""A loss whose distance is a function of the program: in torch's own calls, so that both are traced."""

from collections.abc import Callable

import torch


def triplet_margin_with_distance_loss(
    anchor: torch.Tensor,
    positive: torch.Tensor,
    negative: torch.Tensor,
    *,
    distance_function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> torch.Tensor:
    """max(0, margin + distance to the positive - distance to the negative); RuntimeError or ValueError as torch's."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = torch.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = torch.minimum(far, distance(positive, negative))
    loss = torch.clamp_min(margin + near - far, 0)
    return loss if reduction == "none" else torch.sum(loss) if reduction == "sum" else torch.mean(loss)
