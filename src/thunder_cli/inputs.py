"""`--input`: a Python expression, or the short form `f32[2, 2]@cuda`, which is how traces describe tensors.

`check` runs in the front and imports no torch; `make` runs in the worker.
"""

import ast
import re
from typing import TYPE_CHECKING, Any

from thunder_cli.errors import CommandError

if TYPE_CHECKING:
    import torch

# `f32[2, 2]@cuda`, and `cuda:0 f32[2, 2]` as copied from a trace.
_SHORT = re.compile(
    r'"?(?:(?P<before>[a-z]+(?::\d+)?) )?(?P<dtype>[a-z]+\d+\w*)\[(?P<sizes>[\d, ]*)\](?:@(?P<after>\S+?))?"?'
)
LARGEST_INTEGER = 10


def short_form(text: str) -> tuple[str, tuple[int, ...], str] | None:
    """dtype, shape and device of the short form; None if `text` is not one."""
    match = _SHORT.fullmatch(text.strip())
    if match is None or (match["before"] and match["after"]):
        return None
    sizes = [size.strip() for size in match["sizes"].split(",")]
    if sizes[-1] == "":
        sizes.pop()
    if not all(size.isdigit() for size in sizes):
        return None
    return match["dtype"], tuple(map(int, sizes)), match["before"] or match["after"] or "cpu"


def check(text: str) -> None:
    """Raise if `text` is neither the short form nor a Python expression."""
    if short_form(text) is not None:
        return
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        caret = "" if getattr(error, "offset", None) is None else f"\n  {' ' * (error.offset - 1)}^"
        reason = getattr(error, "msg", error)
        raise CommandError(
            f"--input {text!r} does not parse: {reason}.\n  {text.strip()}{caret}\n"
            "Give a Python expression, 'torch.randn(2, 2, device=\"cuda\")', or a type, 'f32[2, 2]@cuda'."
        ) from None


def make(text: str, namespace: dict[str, Any]) -> Any:
    """The value that `text` stands for; names are looked up in `namespace`, then `torch` is known."""
    import torch

    short = short_form(text)
    try:
        if short is not None:
            return tensor(*short)
        return eval(text.strip(), {"torch": torch, **namespace})
    except CommandError:
        raise
    except Exception as error:
        raise CommandError(
            f"--input {text!r} fails: {type(error).__name__}: {error}\n"
            "It is evaluated with the script's own names and torch."
        ) from None


def tensor(dtype_name: str, shape: tuple[int, ...], device: str) -> "torch.Tensor":
    """A tensor with the same contents every time: normal numbers, integers from 0 up, or bits."""
    import torch

    from thunder.core.dtypes import from_short_name

    try:
        dtype = from_short_name(dtype_name)
    except KeyError:
        raise CommandError(
            f"there is no dtype {dtype_name!r}.\nUse the names of traces: f32, bf16, f16, f64, i64, i32, b8, c64, ..."
        ) from None
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point or dtype.is_complex:
        kind = dtype if dtype.is_complex else torch.float32
        value = torch.randn(shape, dtype=kind, generator=generator).to(dtype)
    else:
        largest = 2 if dtype is torch.bool else LARGEST_INTEGER
        value = torch.randint(0, largest, shape, generator=generator).to(dtype)
    return value.to(device)
