"""The PyTorch language: each operation is a Symbol called as in torch, `thunder.torch.add`. See language.py."""

from thunder.torch import (
    activations,
    attention,
    comparison,
    contraction,
    conversion,
    elementwise,
    factories,
    indexing,
    joining,
    language,
    losses,
    matrix,
    nn,
    normalization,
    random,
    reductions,
    shape,
    special,
)
from thunder.torch.language import (
    in_place,
    in_place_view,
    inplace_argument,
    reflected,
    torch_functions,
    torchsymbol,
    updates,
)

# The modules that define the operations; their names are here too: `thunder.torch.add`.
ROOMS = (
    activations,
    attention,
    comparison,
    contraction,
    conversion,
    elementwise,
    factories,
    indexing,
    joining,
    losses,
    matrix,
    nn,
    normalization,
    random,
    reductions,
    shape,
    special,
)
__all__ = [  # noqa: PLE0604
    "in_place",
    "in_place_view",
    "inplace_argument",
    "reflected",
    "torch_functions",
    "torchsymbol",
    "updates",
    *language.operations,
]
globals().update(language.operations)
