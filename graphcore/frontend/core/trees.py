"""Nested lists, tuples and dicts of tensors: flattened, and rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias, TypeVar

from graphcore.ir.errors import GraphTypeError

from .base import Base, Tensor, refusal, wrap
from .lift import shown, single, stranger_cure

Tree: TypeAlias = Any
"""A tensor or number, or nested lists, tuples and dicts of them."""

T = TypeVar("T")
"""A structure that a result mirrors."""

Rebuild = Callable[[Iterable[Any]], Any]
LEAF = None
"""The leaf of a structure, which consists of lists, tuples and dicts."""


def flatten(tree: Any, name: str = "tree") -> tuple[list[Tensor], Rebuild]:
    """The tensors of `tree` in order, and the function that puts values in their place.

    Numbers and arrays with dims become constants. `name` is the name of the tree in errors.

    >>> import graphcore as gc
    >>> from graphcore.frontend.core.trees import flatten
    >>> leaves, rebuild = flatten({"a": gc.tensor("x", {}), "b": [gc.tensor("y", {}), 1]})
    >>> leaves
    [<Tensor x: f64[]>, <Tensor y: f64[]>, <Tensor: i64[]>]
    >>> rebuild("xyz")
    {'a': 'x', 'b': ['y', 'z']}
    """
    leaves: list[Tensor] = []
    structure = take_apart(tree, name, leaves)
    return leaves, partial(unflatten, structure)


def take_apart(tree: Any, path: str, leaves: list[Tensor]) -> Any:
    """The structure of `tree`; its tensors are appended to `leaves`."""
    match tree:
        case dict():
            return {key: take_apart(x, f"{path}[{key!r}]", leaves) for key, x in tree.items()}
        case list() | tuple():
            items = [take_apart(x, f"{path}[{i}]", leaves) for i, x in enumerate(tree)]
            return same_sequence(tree, items)
        case Base():
            leaves.append(wrap(tree.node))
        case _:
            leaves.append(lifted(tree, path))
    return LEAF


def paths(tree: Any, path: str) -> list[tuple[str, Any]]:
    """Every leaf of `tree` with its path.

    >>> from graphcore.frontend.core.trees import paths
    >>> paths({"h": [1, 2]}, "carry")
    [("carry['h'][0]", 1), ("carry['h'][1]", 2)]
    """
    match tree:
        case dict():
            parts = [paths(x, f"{path}[{key!r}]") for key, x in tree.items()]
        case list() | tuple():
            parts = [paths(x, f"{path}[{i}]") for i, x in enumerate(tree)]
        case _:
            return [(path, tree)]
    return [leaf for part in parts for leaf in part]


def lifted(leaf: Any, path: str) -> Tensor:
    """A number or an array with dims as a constant."""
    try:
        return wrap(single(path, leaf))
    except GraphTypeError as error:
        cure = stranger_cure(leaf)
        cure = cure or "nest tensors, numbers and arrays with dims in lists, tuples and dicts"
        if hasattr(leaf, "__array__"):
            cure = "name its axes: gc.constant(array, dims)"
        reason = f"{shown(leaf)} is not a tensor"
        raise refusal(path, reason, cure=cure, kind=GraphTypeError) from error


def same_sequence(template: list[Any] | tuple[Any, ...], items: list[Any]) -> Any:
    """`items` as a sequence of the kind of `template`; a named tuple keeps its class."""
    if isinstance(template, list):
        return items
    return type(template)(*items) if hasattr(template, "_fields") else tuple(items)


def unflatten(structure: Any, values: Iterable[Any]) -> Any:
    """`structure` with its leaves replaced by `values`, in order."""
    return put_together(structure, iter(values))


def put_together(structure: Any, values: Iterator[Any]) -> Any:
    """`structure` with its leaves replaced by the next values."""
    match structure:
        case dict():
            return {key: put_together(part, values) for key, part in structure.items()}
        case list() | tuple():
            return same_sequence(structure, [put_together(part, values) for part in structure])
    return next(values)


def picker(form: Any) -> Callable[[list[Any]], Any]:
    """The function that arranges results in the form of `form`, whose leaves number them."""
    if isinstance(form, int):
        return lambda values: values[form]
    if isinstance(form, dict):
        if list(form.values()) == list(range(len(form))):  # the usual form, for speed
            names = list(form)
            return lambda values: dict(zip(names, values, strict=False))
        parts = {key: picker(part) for key, part in form.items()}
        return lambda values: {key: pick(values) for key, pick in parts.items()}
    picks = [picker(part) for part in form]
    if isinstance(form, list):
        return lambda values: [pick(values) for pick in picks]
    if hasattr(form, "_make"):
        return lambda values: form._make(pick(values) for pick in picks)
    return lambda values: tuple(pick(values) for pick in picks)
