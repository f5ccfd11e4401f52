"""Sizes while JAX traces: all are numbers, but for the elements that padded axes really have.

XLA has no arrays of a size that is found while a program runs, as the trips of a `while_loop` are.
An axis of such a size is padded: it has room for a fixed number of elements, and the count of those
that it has is a traced number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax.numpy as jnp

from graphcore.ir import Size
from graphcore.ir.sizes import Atom, evaluate, unknowns

Range = tuple[int, int]
"""The least and the greatest number that a size may be."""


class Sizes:
    """The sizes of one tracing.

    Parameters
    ----------
    known
        The unknown sizes that are numbers, by name.
    capacities
        How many elements there is room for, by the names of the sizes that are counted.
    """

    def __init__(self, known: Mapping[str, int], capacities: Mapping[str, int]) -> None:
        self.known, self.capacities = dict(known), dict(capacities)
        self.counts: dict[str, Any] = {}
        """The counts that are found by now, as traced numbers."""

    def is_padded(self, size: Size) -> bool:
        """Whether an axis of this size has room for more elements than it has."""
        return bool(self.counts) and not unknowns(size).isdisjoint(self.counts)

    def in_memory(self, size: Size) -> int:
        """The size of an axis in memory: of a padded one the most elements that it may have."""
        return max(self._range(size)[1], 0) if self.is_padded(size) else evaluate(size, self.known)

    def count(self, size: Size) -> Any:
        """How many elements an axis has: a traced number where it is padded."""
        if isinstance(size, int) or not self.is_padded(size):
            return evaluate(size, self.known)
        total: Any = 0
        for monomial, coefficient in size.terms:
            term: Any = coefficient
            for atom, power in monomial:
                term = term * self._count_of(atom) ** power
            total = total + term
        return total

    def _count_of(self, atom: Atom) -> Any:
        """An unknown, or an operation on two sizes, as a number."""
        if not atom.operands:
            return self.counts[atom.name] if atom.name in self.counts else self.known[atom.name]
        return TRACED[atom.name](*map(self.count, atom.operands))

    def _range(self, size: Size) -> Range:
        """Between which numbers a size lies, whatever the counts are."""
        if isinstance(size, int) or not self.is_padded(size):
            return (number := evaluate(size, self.known)), number
        low = high = 0
        for monomial, coefficient in size.terms:
            term = coefficient, coefficient
            for atom, power in monomial:
                for _ in range(power):
                    term = ends(a * b for a in term for b in self._range_of(atom))
            low, high = low + term[0], high + term[1]
        return low, high

    def _range_of(self, atom: Atom) -> Range:
        if not atom.operands:
            if atom.name in self.counts:
                return 0, self.capacities[atom.name]
            return self.known[atom.name], self.known[atom.name]
        a, b = map(self._range, atom.operands)
        match atom.name:
            case "min":
                return min(a[0], b[0]), min(a[1], b[1])
            case "max":
                return max(a[0], b[0]), max(a[1], b[1])
            case "%":
                return 0, max(b[1] - 1, 0)
        return ends(x // max(y, 1) for x in a for y in b)


def ends(numbers: Iterable[int]) -> Range:
    """The least and the greatest of some numbers."""
    found = [*numbers]
    return min(found), max(found)


TRACED: dict[str, Callable[[Any, Any], Any]] = {
    "//": lambda a, b: jnp.floor_divide(a, jnp.maximum(b, 1)),
    "%": lambda a, b: jnp.remainder(a, jnp.maximum(b, 1)),
    "min": jnp.minimum,
    "max": jnp.maximum,
}
"""The operations on sizes for traced numbers; the call has checked that none divides by 0."""
