"""Structures of tensors: flattened, and rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from graphcore.ir import structures
from graphcore.ir.errors import GraphError, GraphTypeError
from graphcore.ir.structures import Branch

from .base import Base, Tensor, type_refusal, wrap
from .lift import describe, single, stranger_cure

Tree: TypeAlias = Any
"""A tensor, number or array with dims; or nested lists, tuples, dicts, dataclasses and objects of
registered classes (`gc.tree.register`) that hold them."""

T = TypeVar("T")
"""A structure that a result mirrors."""

paths = structures.leaves


class Rebuild:
    """Puts values in the place of the leaves of a structure, in order."""

    def __init__(self, structure: Branch | None) -> None:
        self.structure = structure

    def __call__(self, values: Iterable[Any]) -> Any:
        """The structure with these values."""
        return structures.fill(self.structure, iter(values))

    def form(self) -> Any:
        """The structure with the numbers of its leaves."""
        return structures.number_leaves(self.structure)

    @property
    def static(self) -> list[Any]:
        """The values in the structure that are not leaves, such as static fields of dataclasses."""
        return structures.static_values(self.structure)


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
    found: list[Tensor] = []

    def add(leaf: Any, path: str) -> None:
        found.append(wrap(leaf.node) if isinstance(leaf, Base) else lift_leaf(leaf, path))

    structure = structures.outline(tree, add, name)
    return found, Rebuild(structure)


def lift_leaf(leaf: Any, path: str) -> Tensor:
    """A number or an array with dims as a constant."""
    try:
        with naming_path(path):
            return wrap(single(leaf))
    except GraphTypeError as error:
        cure = stranger_cure(leaf)
        cure = cure or "nest tensors, numbers and arrays with dims in lists, tuples and dicts"
        if hasattr(leaf, "__array__"):
            cure = "name its axes: gc.constant(array, dims)"
        raise type_refusal(f"{path}: {describe(leaf)} is not a tensor", cure=cure) from error


@contextmanager
def naming_path(path: str) -> Iterator[None]:
    """Errors in this block name the path to a leaf."""
    try:
        yield
    except GraphError as error:
        name, _, reason = str(error).partition(": ")
        raise type(error)(f"{name}: {path}: {reason}") from error.__cause__


def picker(form: Any) -> Callable[[list[Any]], Any]:
    """The function that arranges results in a form, whose leaves number them."""
    if isinstance(form, int):
        return lambda values: values[form]
    level = structures.level_of(form)
    assert level is not None
    if level.kind is dict and level.parts == tuple(range(len(form))):  # the usual form, for speed
        names = level.keys
        return lambda values: dict(zip(names, values, strict=False))
    picks = [picker(part) for part in level.parts]
    if (kind := level.kind) in (list, tuple):
        return lambda values: kind([pick(values) for pick in picks])
    return lambda values: level.with_parts([pick(values) for pick in picks]).build()
