"""Where a cotangent or tangent may hold zeros that stand for values left out.

Where a program leaves a value out (by a slice, a choice, a maximum), the cotangent of that value is
exactly 0 and must stay 0 even where it meets an infinite or undefined derivative. Few ops make such
zeros: those whose kind of axes puts elements among zeros. Every other op passes them on, so that no
op can be forgotten:

- a product has those of each factor,
- a sum of terms has them only where all terms do,
- a contraction has those that do not vary along the axes summed over: where zeros vary along an
  axis, some elements along it are expected to be left,
- any other op may have those of each operand.

A sum of no terms and the last value of a loop of no steps are such zeros as well, where a size may
be 0: what the sum or the steps would have been multiplied by counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from typing import TypeAlias

import numpy as np

from graphcore.ir import Expression, Node, Op, Size, TensorType, Trait
from graphcore.ir.axes import (
    Contracts,
    How,
    Matrices,
    Opaque,
    Overlaps,
    Pointwise,
    Ranges,
    Receives,
    Source,
    values,
)
from graphcore.ir.dtypes import differentiable
from graphcore.ir.sizes import lower_bound
from graphcore.ops import autodiff, elementwise, leaf, tensor
from graphcore.ops.outside import Calls

from .dataflow import Forward, Known
from .values import is_zero

Pattern: TypeAlias = frozenset[int | Expression]
"""The axes along which some elements are left out and others are not, and sizes that are 0."""
Omits: TypeAlias = frozenset[Pattern]
"""The patterns of zeros that a value may hold: a zero belongs to one of them at least."""

NOTHING: Omits = frozenset()
NONE: tuple[Omits, ...] = (NOTHING,)
"""The zeros of a node whose one value holds none."""
WHOLE: Omits = frozenset({frozenset[int | Expression]()})
"""All elements together may be left out, or nothing is known of the pattern."""
MOST_PATTERNS = 8
"""The most patterns that are kept for one value; more of them become the unknown one, `WHOLE`."""


def may_omit(x: Node, known: Known[Omits] | None = None) -> bool:
    """Whether `x`, a cotangent or tangent, may hold zeros that stand for values left out.

    `known` holds the patterns of a graph's params. The cotangents given to a lazy derivative are
    not known yet: they have a barrier above them, and are expected to hold such zeros.
    """
    return bool(omits(x, known))


def omits(x: Node, known: Known[Omits] | None = None) -> Omits:
    """The patterns of zeros that `x` may hold."""
    return (OMISSIONS.facts(x) if known is None else OMISSIONS.find(x, known))[0]


class Omissions(Forward[Omits]):
    """The patterns of zeros that values may hold: `MOST_PATTERNS`, or the unknown one."""

    subject = "values left out"
    unknown = NOTHING

    def join(self, node: Node, several: Sequence[Omits]) -> Omits:
        """Those of the start of a carry, and those that a step adds."""
        start, more = several
        return with_more(start, more)

    def chosen(self, node: Node, index: Omits, several: Sequence[Omits]) -> Omits:
        """Those of all branches."""
        return limit(union(several))

    def one_step(self, node: Node, x: Node, fact: Omits) -> Omits:
        """A pattern that varies along a sequence may leave out the step."""
        return frozenset(moved_axes(pattern - {0}, -1) for pattern in fact)

    def all_steps(self, node: Node, fact: Omits, given: Sequence[Omits]) -> Omits:
        """The results of all steps have a new first axis."""
        return frozenset(frozenset({0, *moved_axes(pattern, 1)}) for pattern in fact)

    def last(
        self, node: Node, given: Sequence[Omits], params: Sequence[Omits], made: Sequence[Omits]
    ) -> Sequence[Omits]:
        """Those that a step makes, and those of the start where there may be no step."""
        made = made[: node.attrs["carries"]]
        if not may_be_zero(steps := node.attrs.get("length", 0)):
            return made
        unchanged = zeros_without(steps)
        return [
            limit(y | {pattern | unchanged for pattern in start})
            for y, start in zip(made, given, strict=False)
        ]

    def of_node(self, node: Node, given: Sequence[Omits], known: Known[Omits]) -> Sequence[Omits]:
        """The patterns of each value of `node`, given those of its operands."""
        op, own = node.op, [*given]
        if (only_passes_on(op) and not any(own)) or is_discrete(node):
            return NONE
        if op is tensor.recurrence:
            own[0] = NOTHING  # a factor of 0 drops the earlier terms, but not this one
        if op in autodiff.KINKED:
            return (own[0],)
        if not any(own):
            return (made_by(node),) * len(values(node.type))
        if op is elementwise.where:
            return (choice_patterns(node, own),)
        if op in elementwise.UFUNC:
            alone, together = zeros_of(op, len(own))
            shared = everywhere(own) if together else NOTHING
            return (limit(shared | union([own[i] for i in alone])),)
        if op in autodiff.LAZY or is_unknown_cotangent(node) or isinstance(op.axes, Opaque):
            return (WHOLE,) * len(values(node.type))
        made = patterns_made(node)
        pairs = zip(values(node.type), op.axes.sources(node), strict=True)
        return [
            with_elements(
                made.union(*[moved_patterns(node, x, of) for x, of in zip(own, by) if x]), type
            )
            for type, by in pairs
        ]


OMISSIONS = Omissions()


@cache
def only_passes_on(op: Op) -> bool:
    """Whether the one value of an op has no zeros of this kind unless an operand has some."""
    makes = op is tensor.where_greater or isinstance(
        op.axes, (Calls, Opaque, Ranges, Overlaps, Receives)
    )
    return op.dialect in ("elementwise", "tensor") and not makes and not is_sum(op)


@cache
def is_sum(op: Op) -> bool:
    """Whether an op adds up elements, or products of them."""
    return op is tensor.sum_ or Trait.PRODUCT in op.traits


def is_discrete(node: Node) -> bool:
    """Whether `node` is integers or bool, which are no cotangents."""
    return isinstance(node.type, TensorType) and not differentiable(node.type.dtype)


def made_by(node: Node) -> Omits:
    """The patterns of zeros that `node` may hold if none of its operands has any."""
    zero = node.op is leaf.full and is_zero(node)
    if zero or node.op in autodiff.LAZY or is_unknown_cotangent(node):
        return WHOLE
    return limit(patterns_made(node))


def is_unknown_cotangent(node: Node) -> bool:
    """Whether `node` is a cotangent or tangent that its lazy derivative is given from outside."""
    return node.op is autodiff.barrier and node.inputs[0].op is leaf.input_


def union(several: Iterable[Omits]) -> Omits:
    """The patterns that at least one of several values may hold."""
    return frozenset().union(*several)


def everywhere(terms: Sequence[Omits]) -> Omits:
    """The patterns of zeros that all terms share: one pattern of each term, their axes together."""
    if len(set(terms)) == 1:
        return terms[0]
    return frozenset(frozenset().union(*patterns) for patterns in product(*terms))


def limit(patterns: Iterable[Pattern]) -> Omits:
    """The patterns, or the unknown one in their place if they are too many."""
    found = frozenset(patterns)
    return found if len(found) <= MOST_PATTERNS else WHOLE


def with_more(known: Omits, more: Omits) -> Omits:
    """Patterns with others, which never become fewer once the unknown one is among them."""
    joined = limit(known | more)
    return known if joined == WHOLE <= known else joined


def choice_patterns(node: Node, given: Sequence[Omits]) -> Omits:
    """A choice has the zeros of both values, and a value that is 0 has them as the condition.

    A condition on sizes alone leaves no elements out: it says what a sum over no places is.
    """
    condition, *parts = node.inputs
    way = NOTHING if is_of_sizes(condition) else frozenset({varying_axes(condition)})
    return limit(union(way if is_zero(x) else own for x, own in zip(parts, given[1:])))


def is_of_sizes(x: Node, depth: int = 4) -> bool:
    """Whether `x` is computed from sizes and numbers alone, as a comparison of a size with 0 is."""
    if x.op is leaf.extent or x.op is leaf.full:
        return True
    through = depth and (x.op.pointwise or x.op is tensor.expand)
    return bool(through) and all(is_of_sizes(y, depth - 1) for y in x.inputs)


def patterns_made(node: Node) -> Omits:
    """The patterns of the zeros that an op makes itself, by putting elements among them."""
    kind = node.op.axes
    if isinstance(kind, Ranges) and kind.hows == (How.WITHIN,):
        return frozenset(frozenset({axis}) for axis in kind.ranges(node))
    if isinstance(kind, Overlaps):
        return frozenset(frozenset({axis}) for axis in node.attrs["axes"])
    if isinstance(kind, Receives) and not kind.base:
        return frozenset({frozenset(node.attrs["axes"])})
    if node.op is tensor.where_greater:
        return frozenset({varying_axes(node.inputs[1]) | varying_axes(node.inputs[2])})
    return sums_of_nothing(node) if is_sum(node.op) else NOTHING


def sums_of_nothing(node: Node) -> Omits:
    """The patterns of a sum: all of its elements are 0 where an axis that it sums over has none."""
    ((*sources,),) = node.op.axes.sources(node)
    gone = {
        size
        for x, own in zip(node.inputs, sources, strict=True)
        for axis, size in enumerate(x.type.shape)
        if not any(source and axis in source.axes for source in own)
    }
    return with_elements({zeros_without(size) for size in gone if may_be_zero(size)}, node.type)


def may_be_zero(size: Size) -> bool:
    """Whether a size may be 0."""
    return size == 0 if isinstance(size, int) else (lower_bound(size) or 0) < 1


def zeros_without(size: Size) -> Pattern:
    """The pattern of a value that is left out whole where a size is 0."""
    return frozenset(() if isinstance(size, int) else (size,))


def with_elements(patterns: Iterable[Pattern], type: TensorType) -> Omits:
    """The patterns by which a value has elements: not those of a size that it has itself."""
    own = {size for size in type.shape if isinstance(size, Expression)}
    return limit(pattern for pattern in patterns if own.isdisjoint(pattern))


def moved_patterns(node: Node, patterns: Omits, sources: Sequence[Source | None]) -> Omits:
    """The patterns of an operand, in a result whose axes come from its axes as `sources` says."""
    kept = {axis for source in sources if source for axis in source.axes}
    mixing = isinstance(node.op.axes, (Contracts, Matrices))
    parts = [(pattern, sizes_of(pattern)) for pattern in patterns]
    return frozenset(
        sizes.union(
            axis for axis, source in enumerate(sources) if source and pattern & {*source.axes}
        )
        for pattern, sizes in parts
        if not (mixing and pattern - sizes - kept)
    )


def sizes_of(pattern: Pattern) -> Pattern:
    """The sizes in a pattern."""
    return frozenset(part for part in pattern if not isinstance(part, int))


def varying_axes(x: Node, depth: int = 8) -> Pattern:
    """The axes along which `x` may vary: not those along which it is repeated."""
    everything = frozenset(range(x.type.ndim))
    if x.op is leaf.full:
        return frozenset()
    if not depth or (not isinstance(x.op.axes, Pointwise) and x.op is not tensor.expand):
        return everything
    own = [varying_axes(y, depth - 1) for y in x.inputs]
    if x.op is tensor.expand:
        kept = [axis for axis in range(x.type.ndim) if axis not in x.attrs["axes"]]
        return frozenset(kept[axis] for axis in own[0])
    return frozenset().union(*own)


@cache
def zeros_of(op: Op, operands: int) -> tuple[Sequence[int], bool]:
    """Which operands of an elementwise op make it 0 if one alone is 0, and whether all together do.

    A product is 0 where one factor is, a sum where all terms are, and an exponential nowhere. That
    is computed, so no op can be forgotten; a special function is expected to be 0 where any is.
    """
    ufunc = elementwise.UFUNC[op]
    if isinstance(ufunc, str) or "d" * operands not in [t.split("->")[0] for t in ufunc.types]:
        return range(operands), True
    with np.errstate(all="ignore"):
        ones = [0.7] * operands
        alone = [i for i in range(operands) if ufunc(*ones[:i], 0.0, *ones[i + 1 :]) == 0]
        return alone, bool(ufunc(*[0.0] * operands) == 0)


def moved_axes(pattern: Pattern, by: int) -> Pattern:
    """The pattern with each axis so many places further."""
    return frozenset(part + by if isinstance(part, int) else part for part in pattern)
