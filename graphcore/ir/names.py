"""Names that differ from all in use: primed ones for users, hidden ones, those of values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from .interning import Interned

Name = TypeVar("Name", bound=str)


class Hidden(str):
    """A name made by the library: equal to other hidden names of its text, and to no string.

    Dims and sizes that exist only between two steps of a function are named so.

    >>> Hidden("step") == "step", Hidden("step") == Hidden("step"), str(Hidden("step"))
    (False, True, 'step')
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hidden) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__  # which Python remembers for each string


class ValueOf(Hidden):
    """The name of an unknown size: the value of the input of this name, an integer.

    >>> ValueOf("n") == "n", ValueOf("n") == Hidden("n"), ValueOf("n") == ValueOf("n")
    (False, False, True)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueOf) and str.__eq__(self, other)

    __hash__ = str.__hash__


class Computed(Hidden):
    """The name of an unknown size that a program computes, told apart by `key`.

    Equal names are one object, which keeps the node whose value the size is.

    >>> Computed("kept", "1") is Computed("kept", "1"), Computed("kept", "1") == "kept"
    (True, False)
    """

    __slots__ = ("__weakref__", "key", "node")
    key: str
    node: Any

    def __new__(cls, text: str, key: str, node: Any = None) -> Computed:
        """The one name of this text and key."""
        found = _computed.get((text, key))
        if found is None:
            new = str.__new__(cls, text)
            new.key, new.node = key, None
            found = _computed.add((text, key), new)
        if node is not None:
            found.node = node
        return found

    @staticmethod
    def in_use() -> bool:
        """Whether there is such a name, which is quicker to know than to look for one."""
        return len(_computed) > 0

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return Computed, (str(self), self.key, self.node)


_computed: Interned[Computed] = Interned()


def apart(name: Name, in_use: Iterable[str]) -> Name:
    """`name`, with as many primes as it takes to differ from all names in use; hidden if it is.

    >>> apart("row", ["col", "row"]), apart(Hidden("row"), ["col"])
    ("row'", 'row')
    """
    kind, shown = type(name), set(map(str, in_use))
    while str(name) in shown:
        name = kind(f"{name}'")
    return name


def all_apart(names: Mapping[str, Name], in_use: Collection[str]) -> dict[str, Name]:
    """Several names, made to differ from those in use and from one another.

    >>> all_apart({"i": "i", "i'": "i'"}, ["i", "i'"]) == {"i": "i''", "i'": "i'''"}
    True
    """
    found: dict[str, Name] = {}
    for key, name in names.items():
        found[key] = apart(name, (*in_use, *found.values()))
    return found


def hidden_names(names: Iterable[str], in_use: Collection[str]) -> dict[str, Hidden]:
    """A hidden name for each, made to differ from those in use and from one another."""
    return all_apart({name: Hidden(name) for name in names}, in_use)


def spell_name(name: str) -> str:
    """A name as a Python expression, by which a hidden one differs from a user's.

    >>> spell_name("step"), spell_name(Hidden("step"))
    ("'step'", "Hidden('step')")
    """
    if isinstance(name, Computed):
        return f"Computed({str(name)!r}, {name.key!r})"
    return f"{type(name).__name__}({str(name)!r})" if isinstance(name, Hidden) else repr(name)
