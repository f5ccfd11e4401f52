"""Factors and divisors that a sum repeats: they are taken out of it, or given to a smaller operand.

    Σ_j x[i, j] / s[i]              becomes   (Σ_j x[i, j]) / s[i]
    Σ_j (x[i, j] / s[j]) * y[j]     becomes   Σ_j x[i, j] * (y[j] / s[j])

All is equal in real arithmetic; in floating point it is rounded elsewhere, and a value between may
overflow, or be a quotient by 0, in one of them alone. Only values that nothing else needs are taken
apart, and only where fewer values are scaled for certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphcore.analysis.values import is_finite, is_real, is_zero
from graphcore.ir import Graph, Node, Rule, Size
from graphcore.ir.sizes import count
from graphcore.ir.transform import transform
from graphcore.ops import leaf
from graphcore.ops.elementwise import divide, multiply
from graphcore.ops.tensor import einsum, expand, matvec, sum_, vecdot

from . import plain
from .plain import Axes, other_axes

SUMS = frozenset({sum_, einsum, vecdot, matvec})
SCALING = frozenset({multiply, divide})


def scale_less(graph: Graph) -> Graph:
    """The graph in which sums scale as few values as they can."""
    ops = graph.ops()
    if ops.isdisjoint(SUMS) or ops.isdisjoint(SCALING):
        return graph
    uses = graph.uses()

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        alone = [uses[x] == 1 and x.op in SCALING for x in node.inputs]
        new = scaled_later(node.with_inputs(*inputs), alone) if any(alone) else None
        return None if new is None else (scaled_later, new)

    return transform(graph, visit, at=SUMS, bodies=scale_less)


def scaled_later(node: Node, alone: Sequence[bool]) -> Node | None:
    """Σ x / s = (Σ x) / s, and Σ (x / s) y = Σ x (y / s); with products by s as well"""
    if not is_real(node):
        return None
    operands, result = letters_of(node)
    for at, (y, own) in enumerate(zip(node.inputs, operands, strict=True)):
        if not alone[at] or y.op not in SCALING or y.type.dtype != node.type.dtype:
            continue
        for x, scale, axes in scales(y):
            letters, inputs = tuple(own[axis] for axis in axes), [*node.inputs]
            inputs[at] = x
            if {*letters} <= {*result} and is_smaller(node, result, y, own):
                total = node.with_inputs(*inputs)
                found = y.op(total, spread(scale, letters, total, result))
                sure = is_finite(scale) and (y.op is multiply or is_nonzero(scale))
                return (
                    found
                    if sure
                    else plain.unless_empty(count_of_terms(node, operands, result), found)
                )
            for other, theirs in enumerate(operands):
                if {*letters} <= {*theirs} < {*own}:
                    z = inputs[other]
                    inputs[other] = y.op(z, spread(scale, letters, z, theirs))
                    return node.with_inputs(*inputs)
    return None


def letters_of(node: Node) -> tuple[Sequence[Axes], Axes]:
    """A sum as an einsum: the letters of the axes of its operands, and of its result."""
    if node.op is einsum:
        return node.attrs["operands"], node.attrs["result"]
    rank = node.inputs[0].type.ndim
    every = tuple(range(rank))
    if node.op is matvec:
        return [every, (*every[:-2], rank - 1)], every[:-1]
    gone = node.attrs["axes"] if node.op is sum_ else (rank - 1,)
    return [every] * len(node.inputs), tuple(other_axes(gone, rank))


def scales(y: Node) -> Iterator[tuple[Node, Node, Axes]]:
    """A product or quotient as a value, one that is repeated to scale it, and the axes of that."""
    for i, scale in enumerate(y.inputs):
        if y.op is divide and i == 0:
            continue
        if scale.op is expand:
            axes = tuple(other_axes(scale.attrs["axes"], scale.type.ndim))
            yield y.inputs[1 - i], scale.inputs[0], axes
        elif scale.op is leaf.full:
            yield y.inputs[1 - i], plain.refill(scale, ()), ()


def is_nonzero(scale: Node) -> bool:
    """Whether a value is a number that is not 0."""
    return scale.op is leaf.full and not is_zero(scale)


def spread(scale: Node, letters: Axes, like: Node, theirs: Axes) -> Node:
    """A value repeated along the axes of another one that it lacks."""
    ordered = plain.transpose(scale, [letters.index(k) for k in theirs if k in letters])
    lost = [axis for axis, letter in enumerate(theirs) if letter not in letters]
    return plain.expand(ordered, lost, like.type.shape)


def is_smaller(x: Node, letters: Axes, y: Node, own: Axes) -> bool:
    """Whether `x` is known to have fewer values than `y`, by the letters of their axes."""
    if {*letters} < {*own}:
        return True
    some, more = x.type.count, y.type.count
    return isinstance(some, int) and isinstance(more, int) and some < more


def count_of_terms(node: Node, operands: Sequence[Axes], result: Axes) -> Size:
    """How many values are added up for each one of the result."""
    sizes: dict[int, Size] = {}
    for x, letters in zip(node.inputs, operands, strict=True):
        sizes |= zip(letters, x.type.shape, strict=True)
    return count(size for letter, size in sizes.items() if letter not in result)
