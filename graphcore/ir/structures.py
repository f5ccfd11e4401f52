"""Structures: nested lists, tuples, dicts, dataclasses and registered classes, whatever they hold.

One level of a structure is a `Branch`: its parts, and all that is needed to build it again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple


class Registered(NamedTuple):
    """How objects of a class are taken apart and built."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, tuple[Any, ...]], Any]


REGISTERED: dict[type, Registered] = {}
"""The classes whose objects are structures because a user says so."""


@dataclasses.dataclass(frozen=True, slots=True)
class Branch:
    """One level of a structure.

    Attributes
    ----------
    kind
        The class of what it builds.
    keys
        The key of each part: of a dict, a field, or a position.
    parts
        The parts, or what takes their place.
    rest
        All else that the object consists of, which takes no other value.
    """

    kind: type
    keys: tuple[Any, ...]
    parts: tuple[Any, ...]
    rest: Any = None

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The parts, each with what follows the name of the whole in a path."""
        for key, part in zip(self.keys, self.parts, strict=True):
            yield f".{key}" if self.has_fields else f"[{key!r}]", part

    @property
    def has_fields(self) -> bool:
        """Whether it is a dataclass."""
        return hasattr(self.kind, "__dataclass_fields__") and self.kind not in REGISTERED

    @property
    def outline(self) -> tuple[type, tuple[Any, ...], Any]:
        """All but the parts: structures of equal outlines are alike on this level."""
        return self.kind, self.keys, self.rest

    def with_parts(self, parts: Iterable[Any]) -> Branch:
        """The same level with other parts."""
        return Branch(self.kind, self.keys, tuple(parts), self.rest)

    def build(self) -> Any:
        """The list, tuple, dict or object of these parts."""
        if self.kind in REGISTERED:
            return REGISTERED[self.kind].unflatten(self.rest, self.parts)
        if self.kind is dict:
            return dict(zip(self.keys, self.parts, strict=True))
        if hasattr(self.kind, "_make"):
            return self.kind._make(self.parts)
        if issubclass(self.kind, list | tuple):
            return self.kind(self.parts)
        new = object.__new__(self.kind)  # not by __init__, which may check or change values
        for name, value in (*zip(self.keys, self.parts, strict=True), *self.rest):
            object.__setattr__(new, name, value)
        return new


def branch(tree: Any) -> Branch | None:
    """One level of `tree`; None for a leaf."""
    kind = type(tree)
    if kind in REGISTERED:
        parts, rest = REGISTERED[kind].flatten(tree)
        parts = tuple(parts)
        return Branch(kind, tuple(range(len(parts))), parts, rest)
    if isinstance(tree, dict):
        return Branch(dict, tuple(tree), tuple(tree.values()))
    if isinstance(tree, list):
        return Branch(list, tuple(range(len(tree))), tuple(tree))
    if isinstance(tree, tuple):
        return Branch(
            kind if hasattr(tree, "_fields") else tuple, tuple(range(len(tree))), tuple(tree)
        )
    if hasattr(kind, "__dataclass_fields__") and not hasattr(tree, "dims"):
        moving, fixed = fields(kind)
        rest = tuple((name, getattr(tree, name)) for name in fixed)
        return Branch(kind, moving, tuple(getattr(tree, name) for name in moving), rest)
    return None


def fields(kind: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the fields of a dataclass: parts, and those that are `static` by metadata."""
    known = dataclasses.fields(kind)
    fixed = tuple(field.name for field in known if field.metadata.get("static"))
    return tuple(field.name for field in known if field.name not in fixed), fixed


def stand_in(name: str, moving: Sequence[str], fixed: Sequence[str]) -> type:
    """A dataclass for one that a file cannot hold: of its name and fields, `fixed` are static."""
    static = dataclasses.field(metadata={"static": True})
    parts: list[Any] = [*moving, *((field, Any, static) for field in fixed)]
    return dataclasses.make_dataclass(name, parts)


def outline(tree: Any, leaf: Callable[[Any, str], None], path: str = "") -> Branch | None:
    """The structure of `tree` with None for its leaves, each of which `leaf` is given in order."""
    level = branch(tree)
    if level is None:
        leaf(tree, path)
        return None
    return level.with_parts([outline(part, leaf, path + key) for key, part in level])


def fill(structure: Branch | None, values: Iterator[Any]) -> Any:
    """`structure` built with the next values in place of its leaves."""
    if structure is None:
        return next(values)
    return structure.with_parts([fill(part, values) for part in structure.parts]).build()


def number_leaves(structure: Branch | None, numbers: Iterator[int] | None = None) -> Any:
    """A form: lists, tuples and dicts that number the leaves; objects stay branches."""
    numbers = count() if numbers is None else numbers
    if structure is None:
        return next(numbers)
    form = structure.with_parts([number_leaves(part, numbers) for part in structure.parts])
    native = structure.kind is dict or issubclass(structure.kind, list | tuple)
    return form.build() if native and structure.kind not in REGISTERED else form


def static_values(structure: Branch | None) -> list[Any]:
    """The static values of every level that has some, in order."""
    if structure is None:
        return []
    inner = [rest for part in structure.parts for rest in static_values(part)]
    return inner if structure.rest in (None, ()) else [structure.rest, *inner]


def level_of(form: Any) -> Branch | None:
    """One level of a form."""
    return form if isinstance(form, Branch) else branch(form)


def levels(form: Any) -> Any:
    """A form whose levels are all branches."""
    level = level_of(form)
    return form if level is None else level.with_parts(map(levels, level.parts))


def leaves(tree: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every leaf of a structure, or number of a form, with its path.

    >>> leaves({"h": [1, 2]}, "carry")
    [("carry['h'][0]", 1), ("carry['h'][1]", 2)]
    """
    level = level_of(tree)
    if level is None:
        return [(path, tree)]
    return [found for key, part in level for found in leaves(part, path + key)]
