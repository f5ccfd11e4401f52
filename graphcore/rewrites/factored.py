"""Products as lists of factors, whatever views, quotients and sums they are written with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from graphcore.ir import Node, full_like, unwrap
from graphcore.ir.sizes import same
from graphcore.ops import elementwise as e
from graphcore.ops import leaf, tensor

from . import plain
from .einsums import unfold
from .engine import RuleSet
from .plain import Axes

products = RuleSet()


class Factor(NamedTuple):
    """One factor of a product, with a letter for each of its axes."""

    node: Node
    letters: Axes
    conjugated: bool = False
    inverted: bool = False

    def of(self, node: Node, letters: Axes | None = None) -> Factor:
        """Another factor in place of this one."""
        return self._replace(node=node, letters=self.letters if letters is None else letters)

    def value(self) -> Node:
        """The factor itself."""
        conjugates = self.conjugated and self.node.type.dtype.kind == "c"
        value = e.conjugate(self.node) if conjugates else self.node
        return full_like(value, 1) / value if self.inverted else value


def split(factor: Factor, fresh: Iterator[int]) -> list[Factor]:
    """The factors whose product a factor is, summed over the letters that are new; or none."""
    x, letters = factor.node, factor.letters
    if x.op is e.multiply:
        return [factor.of(y) for y in x.inputs]
    if x.op is e.divide:
        above, below = (factor.of(y) for y in x.inputs)
        return [above, below._replace(inverted=not factor.inverted)]
    if x.op is e.square:
        (y,) = x.inputs
        if y.op is e.absolute:
            y = y.inputs[0]
            return [factor.of(y), factor.of(y)._replace(conjugated=not factor.conjugated)]
        return [factor.of(y)] * 2
    if x.op is e.negative:
        return [factor.of(x.inputs[0]), Factor(plain.full(-1, x.type.dtype), ())]
    if x.op is e.conjugate:
        return [factor.of(x.inputs[0])._replace(conjugated=not factor.conjugated)]
    if x.op is e.cast and (x.inputs[0].type.dtype.kind, x.type.dtype.kind) == ("f", "c"):
        return [factor.of(x.inputs[0])]
    if x.op is tensor.expand:
        kept = plain.other_axes(x.attrs["axes"], x.type.ndim)
        return [factor.of(x.inputs[0], tuple(letters[axis] for axis in kept))]
    if x.op is leaf.full and letters:
        return [factor.of(plain.refill(x, ()), ())]
    if x.op is tensor.transpose:
        perm = x.attrs["perm"]
        return [factor.of(x.inputs[0], tuple(letters[perm.index(i)] for i in range(len(perm))))]
    if x.op is tensor.softmax and x.attrs["axes"] == (x.type.ndim - 1,):
        (y,), axes = x.inputs, x.attrs["axes"]
        return [factor.of(e.exp(y - plain.unsum(tensor.logsumexp(y, axes=axes), axes, y)))]
    if x.op is tensor.sum_ and not factor.inverted:
        old, axes = iter(letters), range(x.inputs[0].type.ndim)
        own = tuple(next(fresh) if axis in x.attrs["axes"] else next(old) for axis in axes)
        return [factor.of(x.inputs[0], own)]
    if x.op is tensor.einsum and not factor.inverted:
        return [factor.of(y, own) for y, own in unfold(x, letters, fresh)]
    return []


@products.on(tensor.einsum, under=[tensor.scatter, e.cast])
def einsum_of_diagonal(node: Node) -> Node | None:
    """einsum(diag(x), y) = einsum(x, y), in which the rows and columns of the diagonal are one"""
    operands, result = node.attrs["operands"], node.attrs["result"]
    for i, (x, letters) in enumerate(zip(node.inputs, operands, strict=True)):
        made = unwrap(x, e.cast)
        if made.op is not tensor.scatter or not is_diagonal(made):
            continue
        axes: Axes = made.attrs["axes"]
        kept, gone = sorted((letters[axis] for axis in axes), key=lambda k: k not in result)
        rest = [operands[:i], operands[i + 1 :]]
        if gone in result or any({kept, gone} <= {*own} for side in rest for own in side):
            continue
        own = kept, *(letters[axis] for axis in range(x.type.ndim) if axis not in axes)
        letters_left = (*rest[0], own, *rest[1])
        return tensor.einsum(
            *node.inputs[:i],
            plain.cast(made.inputs[0], x.type.dtype),
            *node.inputs[i + 1 :],
            operands=tuple(tuple(kept if k == gone else k for k in own) for own in letters_left),
            result=result,
        )
    return None


def is_diagonal(x: Node) -> bool:
    """Whether a scatter puts values on the diagonal of two axes, all of it."""
    values, *places = x.inputs
    if len(places) != 2 or places[0] is not places[1] or places[0].op is not leaf.iota:
        return False
    return all(same(values.type.shape[0], x.type.shape[axis]) for axis in x.attrs["axes"])
