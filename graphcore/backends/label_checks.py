"""What a call checks of the labels of its arguments: those of one dim are equal, in one order.

Labels are the indexes of DataArrays. A dim without labels agrees with all. Exported programs have
these definitions in their file, so they need neither a graph nor xarray.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graphcore.ir.errors import GraphError

from .argument_checks import Parameter, quote, refusal

Index = Any
"""An index of xarray: the labels of a dim."""
NONE: Mapping[Any, Index] = {}


class Along(NamedTuple):
    """A dim, the parameters that have it with one size, and constants whose labels are known.

    A constant is an index, and the words for it in an error.
    """

    dim: str
    parameters: tuple[int, ...]
    constants: tuple[tuple[Index, str], ...] = ()


def indexes_of(value: Any) -> Mapping[Any, Index]:
    """The labels of an argument by dim; that of xarray's own attribute takes 3 us for a look."""
    found: Mapping[Any, Index] | None = getattr(value, "_indexes", None)
    return found if isinstance(found, dict) else getattr(value, "xindexes", NONE)


class KnownLabels:
    """The labels of a constant of an exported program, as text."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = labels

    def equals(self, other: Index) -> bool:
        """Whether an index has labels that read the same."""
        return [*map(str, other.to_pandas_index())] == [*map(str, self.labels)]

    def to_pandas_index(self) -> Sequence[str]:
        """The labels."""
        return self.labels


class Compared:
    """Indexes that were found equal, as long as they are there: equal ones have one token."""

    def __init__(self) -> None:
        self.tokens: dict[int, object] = {}
        self.held: dict[int, weakref.ref[Any]] = {}

    def enter(self, index: Index, token: object) -> object:
        """Give an index a token until it is gone."""
        key = id(index)

        def forget(_: object) -> None:
            self.tokens.pop(key, None)
            self.held.pop(key, None)

        self.held[key] = weakref.ref(index, forget)
        self.tokens[key] = token
        return token

    def equal(self, first: Index, other: Index) -> bool:
        """Whether two indexes have equal labels in one order; nan equals itself."""
        if first is other:
            return True
        token = self.tokens.get(id(first))
        if token is not None and token is self.tokens.get(id(other)):
            return True
        if not equal_labels(first, other):
            return False
        self.enter(other, token or self.enter(first, object()))
        return True


COMPARED = Compared()


def equal_labels(first: Index, other: Index) -> bool:
    """Whether two indexes have equal labels, compared one by one."""
    try:
        return bool(first.equals(other))
    except NotImplementedError:  # an index of one's own, which is equal to itself alone
        return False


class LabelChecks:
    """The labels that a call must have."""

    def __init__(self, parameters: Sequence[Parameter], dims: Sequence[Along]) -> None:
        self.parameters, self.dims = parameters, dims
        self.tokens = COMPARED.tokens
        self.usual = [
            (along.dim, along.parameters, along.constants[0][0] if along.constants else None)
            for along in dims
        ]

    def agree(self, values: Sequence[Any]) -> None:
        """Refuse arguments whose labels of one dim differ."""
        found = [getattr(value, "_indexes", NONE) for value in values]
        tokens = self.tokens
        try:
            for dim, numbers, first in self.usual:
                for number in numbers:
                    index = found[number].get(dim)
                    if index is first or index is None:
                        continue
                    if first is None:
                        first = index
                    elif tokens[id(first)] is not tokens[id(index)]:
                        raise KeyError(dim)
            return
        except (KeyError, AttributeError):  # not known to be equal
            pass
        self.compare(values)

    def compare(self, values: Sequence[Any]) -> None:
        """Compare labels one by one; those of different numbers belong to different sizes."""
        for along in self.dims:
            firsts: dict[int, tuple[Index, str]] = {}
            for index, words in self.given(along, values):
                first, of = firsts.setdefault(length(index), (index, words))
                if not COMPARED.equal(first, index):
                    raise self.refusal(along.dim, of, first, words, index)

    def given(self, along: Along, values: Sequence[Any]) -> Iterator[tuple[Index, str]]:
        """The labels of constants and arguments along a dim, with the words for each."""
        yield from along.constants
        for number in along.parameters:
            index = indexes_of(values[number]).get(along.dim)
            if index is not None:
                yield index, f"input {self.parameters[number].shown}"

    def refusal(self, dim: str, of: str, first: Index, other: str, index: Index) -> GraphError:
        """The error for labels that differ."""
        cure = (
            "align them before the call, a, b = xr.align(a, b, join='inner'); or compute by "
            f"position, a.drop_vars({quote(dim)}) for one of them, or gc.compile(..., "
            "join='override')"
        )
        reason = f"labels of dim {quote(dim)} differ"
        return refusal(reason, *differences(of, first, other, index), cure=cure)


def differences(of: str, first: Index, other: str, index: Index) -> list[str]:
    """A line for each of two indexes, with the first label that differs."""
    left, right = (list(map(str, each.to_pandas_index())) for each in (first, index))
    pairs = enumerate(zip(left, right, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), 0)
    return [
        f"{words} has {show_labels(labels, at)}" for words, labels in ((of, left), (other, right))
    ]


def show_labels(labels: Sequence[str], at: int) -> str:
    """Some labels: those around a position."""
    start = max(at - 1, 0)
    few = [f"{'... ' if start else ''}{labels[start]:.40}"] if labels else []
    few += [f"{label:.40}" for label in labels[start + 1 : start + 4]]
    more = " ..." if len(labels) > start + 4 else ""
    return f"{', '.join(few)}{more} ({len(labels)} labels)"


def length(index: Index) -> int:
    """The number of labels."""
    return len(index.to_pandas_index())
