"""`ThunderModule`: what `thunder.jit` makes of an `nn.Module`. Parameters and buffers are the original's own."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch


class ThunderModule(torch.nn.Module):
    """A module that runs compiled. `thunder.jit` makes it; there is no need to do so oneself.

    Args:
        model: the original module.
        compiled_model_call: takes what the module takes, and runs compiled.
    """

    def __init__(self, model: torch.nn.Module, compiled_model_call: Callable):
        super().__init__()
        # Not as a submodule: names of parameters stay those of the original.
        object.__setattr__(self, "_model", model)
        object.__setattr__(self, "_compiled", compiled_model_call)
        self.training = model.training

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_model"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            object.__setattr__(self, name, value)
        elif "_model" in self.__dict__:
            setattr(self._model, name, value)
        else:
            super().__setattr__(name, value)

    def train(self, mode: bool = True) -> "ThunderModule":
        self._model.train(mode)
        object.__setattr__(self, "training", mode)
        return self

    def get_buffer(self, target: str) -> torch.Tensor:
        return self._model.get_buffer(target)

    def get_parameter(self, target: str) -> torch.nn.Parameter:
        return self._model.get_parameter(target)

    def get_submodule(self, target: str) -> torch.nn.Module:
        return self._model.get_submodule(target)

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True, *, persistent: bool | None = None
    ) -> Iterator[tuple[str, torch.Tensor]]:
        """The buffers with their names; only the persistent ones (or the others) where `persistent` is given."""
        kept = set(self._model.state_dict(keep_vars=True)) if persistent is not None else ()
        for name, buffer in self._model.named_buffers(prefix, recurse, remove_duplicate):
            if persistent is None or (name.removeprefix(f"{prefix}." if prefix else "") in kept) == persistent:
                yield name, buffer

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, torch.nn.Parameter]]:
        yield from self._model.named_parameters(prefix, recurse, remove_duplicate)

    def named_modules(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, torch.nn.Module]]:
        yield from self._model.named_modules(*args, **kwargs)

    def named_children(self) -> Iterator[tuple[str, torch.nn.Module]]:
        yield from self._model.named_children()

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        return self._model.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)

    def original_state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """The state as the original module would give it. No transform changes parameters yet, so it is the same."""
        return self.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        return self._model.load_state_dict(state_dict, strict=strict, assign=assign)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Without gradient synchronization in data parallel training, which is not built yet."""
        raise NotImplementedError("ThunderModule.no_sync needs thunder.distributed, which is not built yet")
        yield

    def __repr__(self) -> str:
        return f"ThunderModule({self._model!r})"
