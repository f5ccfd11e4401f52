"""Sums as lists of terms, whatever views, differences and scales they are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from graphcore.ir import Node, Op, Shape, Trait
from graphcore.ops import elementwise as e
from graphcore.ops import leaf, tensor

from . import plain
from .plain import Axes

MOST_TERMS = 32
"""The most terms of a sum that is searched for two parts."""
Fixed = Callable[[Node], bool]
"""Whether a value of a body is the same at all steps."""


class Term(NamedTuple):
    """One term of a sum, with a letter for each of its axes.

    It is `node` after negations, and products with and quotients by numbers: `scales`, in turn.
    """

    node: Node
    letters: Axes
    scales: tuple[tuple[Op, Node | None], ...] = ()

    def of(self, node: Node, *scale: tuple[Op, Node | None]) -> Term:
        """The term of an operand."""
        return Term(node, self.letters, (*scale, *self.scales))

    def parts(self) -> list[Node]:
        """The nodes that it is made of."""
        return [self.node, *[by for _, by in self.scales if by is not None]]

    def value(self) -> Node:
        """The term itself."""
        x = self.node
        for op, by in self.scales:
            x = op(x) if by is None else op(x, plain.expand_to(by, x.type.shape))
        return x


class Part(NamedTuple):
    """The sum of some terms, whose axes have `letters`, in order."""

    terms: Sequence[Term]
    letters: Axes

    @staticmethod
    def of(terms: Sequence[Term]) -> Part:
        """The part that some terms make."""
        return Part(terms, tuple(sorted({letter for term in terms for letter in term.letters})))

    def nodes(self) -> list[Node]:
        """The nodes that it is made of, but for those made of nothing."""
        parts = [y for term in self.terms for y in term.parts()]
        return [y for y in dict.fromkeys(parts) if Trait.FREE not in y.op.traits]

    def value(self, shape: Shape) -> Node:
        """The sum; letters are the numbers of axes of a value of `shape`."""
        first, *rest = [spread(x.value(), x.letters, self.letters, shape) for x in self.terms]
        for x in rest:
            first = first + x
        return first


def spread(x: Node, letters: Axes, wanted: Axes, shape: Shape) -> Node:
    """A value whose axes have `letters`, repeated along all other axes of those `wanted`."""
    order = sorted(range(len(letters)), key=letters.__getitem__)
    new = [axis for axis, letter in enumerate(wanted) if letter not in letters]
    return plain.expand(plain.transpose(x, order), new, tuple(shape[letter] for letter in wanted))


def number_in(x: Node) -> Node | None:
    """The number that a value repeats, if it is one."""
    if x.op is leaf.full:
        return plain.refill(x, ())
    inner = x.inputs[0] if x.op is tensor.expand else x
    return None if inner.type.shape else inner


def split(term: Term) -> list[Term]:
    """The terms whose sum a term is, or one with fewer axes that it repeats; or none."""
    x, letters = term.node, term.letters
    if x.op is e.add:
        return [term.of(y) for y in x.inputs]
    if x.op is e.subtract:
        left, right = x.inputs
        return [term.of(left), term.of(right, (e.negative, None))]
    if x.op is e.negative:
        return [term.of(x.inputs[0], (e.negative, None))]
    if x.op is e.multiply or x.op is e.divide:
        for y, other in (x.inputs, x.inputs[::-1]):
            if x.type.shape and (by := number_in(other)) is not None:
                return [term.of(y, (x.op, by))]
            if x.op is e.divide:
                return []
    if x.op is tensor.expand:
        kept = plain.other_axes(x.attrs["axes"], x.type.ndim)
        return [term._replace(node=x.inputs[0], letters=tuple(letters[axis] for axis in kept))]
    if x.op is tensor.transpose:
        perm = x.attrs["perm"]
        own = tuple(letters[perm.index(axis)] for axis in range(len(perm)))
        return [term._replace(node=x.inputs[0], letters=own)]
    return []


def terms_of(x: Node, fixed: Fixed) -> list[Term] | None:
    """The terms of a sum, those that are the same at all steps whole; None if they are too many."""
    found: list[Term] = []
    stack = [Term(x, tuple(range(x.type.ndim)))]
    while stack:
        term = stack.pop()
        repeats = term.node.op in (tensor.expand, tensor.transpose)
        if (repeats or not fixed(term.node)) and (parts := split(term)):
            stack.extend(reversed(parts))
        else:
            found.append(term)
        if len(found) + len(stack) > MOST_TERMS:
            return None
    return found
