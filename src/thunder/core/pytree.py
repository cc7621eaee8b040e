"""Nested containers: flattening arguments and results into leaves, and paths to the leaves.

optree knows Python's containers. Dataclasses, and the classes that programs register with torch's own pytree (Hugging
Face's outputs), are added when they are met.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import optree
import torch.utils._pytree as torch_pytree

NAMESPACE = "thunder"
_known: set[type] = set()

PyTreeSpec = optree.PyTreeSpec


def tree_flatten(tree: Any) -> tuple[list[Any], PyTreeSpec]:
    """The leaves (None is one) and the structure that `tree_unflatten` takes."""
    while True:
        leaves, spec = optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)
        learnt = [cls for cls in {type(leaf) for leaf in leaves} if _learn(cls)]
        if not learnt:
            return leaves, spec


def tree_flatten_one_level(tree: Any) -> tuple[list[Any], PyTreeSpec]:
    """What a container holds and the structure that `tree_unflatten` takes; of any other object, itself."""
    _learn(type(tree))
    return optree.tree_flatten(tree, is_leaf=lambda x: x is not tree, none_is_leaf=True, namespace=NAMESPACE)


def tree_unflatten(leaves: list[Any], spec: PyTreeSpec) -> Any:
    return optree.tree_unflatten(spec, leaves)


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([function(x) for x in leaves], spec)


@dataclass(frozen=True, slots=True)
class Structured:
    """A container that printed programs build from its leaves by its structure."""

    spec: PyTreeSpec
    leaves: list[Any]


def register_object(cls: type) -> None:
    """Make plain objects of `cls` containers of what their `__dict__` holds."""

    def flatten(x: Any) -> tuple[list[Any], tuple[str, ...]]:
        return list(vars(x).values()), tuple(vars(x))

    def unflatten(names: tuple[str, ...], children: Any) -> Any:
        x = object.__new__(cls)
        vars(x).update(zip(names, children))
        return x

    optree.register_pytree_node(cls, flatten, unflatten, namespace=NAMESPACE)


def _learn(cls: type) -> bool:
    """Register `cls` as a container if it is one that is not known yet."""
    if cls in _known:
        return False
    _known.add(cls)
    if cls in torch_pytree.SUPPORTED_NODES:
        node = torch_pytree.SUPPORTED_NODES[cls]
        optree.register_pytree_node(
            cls,
            lambda x: tuple(node.flatten_fn(x)),
            lambda context, children: node.unflatten_fn(list(children), context),
            namespace=NAMESPACE,
        )
        return True
    if dataclasses.is_dataclass(cls):
        _register_dataclass(cls)
        return True
    return False


def _register_dataclass(cls: type) -> None:
    names = tuple(f.name for f in dataclasses.fields(cls))

    def flatten(x: Any) -> tuple[list[Any], tuple[str, ...]]:
        present = tuple(n for n in names if hasattr(x, n))
        return [getattr(x, n) for n in present], present

    def unflatten(present: tuple[str, ...], children: Any) -> Any:
        x = object.__new__(cls)
        for name, child in zip(present, children):
            object.__setattr__(x, name, child)
        return x

    optree.register_pytree_node(cls, flatten, unflatten, namespace=NAMESPACE)
