"""Along which dims of each value of a program blocks lie, and where an op would mix blocks.

A block has the elements of each input at some positions along an axis, which is named by its
unknown size. A dim is one of blocks if each of its elements is computed from elements of inputs at
the same position. That is followed through all nodes, those of integers included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graphcore.analysis.dataflow import Forward, Known
from graphcore.analysis.instances import Along, Axes, Instances, Mixed, instance_axes
from graphcore.analysis.paths import between
from graphcore.backends.boundary import unknown_in
from graphcore.ir import Graph, Node, Size, TensorType
from graphcore.ir.axes import Source, operands, values
from graphcore.ir.errors import GraphError, GraphValueError
from graphcore.ir.sizes import unknown, unknowns
from graphcore.ops import autodiff, control, leaf, named

REPEATS = frozenset({leaf.full, named.broadcast})
"""Ops whose new dims have equal elements, and so may have any number of them."""
SIZED = REPEATS | {leaf.input_, named.unstack}
"""Ops whose attrs may name the size of an axis: a block has its own, and they fit it."""


def refused(reason: str, cure: str) -> GraphError:
    """The error for a program or arguments that cannot be computed by blocks."""
    return GraphValueError(f"over_blocks: {reason}\n  cure: {cure}")


class OfSize(Mixed):
    """The size of an axis is a number in the program, and a block has another one."""


def refused_mixture(mixed: Mixed) -> GraphError:
    """The error for a program that brings blocks together."""
    what = f"{mixed.node.said} at {mixed.node.origin} {mixed.how}"
    one = f"array.chunk({{{mixed.axis!r}: -1}})"
    if isinstance(mixed, OfSize):
        return refused(
            what, f"pass what depends on it as an input, use mean, or give one chunk: {one}"
        )
    return refused(
        f"{what}, so that blocks along {mixed.axis!r} mix",
        f"give that dim of the arguments one chunk: {one}; or let the program take it last, by "
        "sum, mean, min, max, any or all, outside of loops",
    )


class BlockAxes(Instances):
    """Follows the axes of blocks through all nodes of a graph."""

    def __init__(self, axes: Iterable[str]) -> None:
        super().__init__({axis: unknown(axis) for axis in axes})

    def reads(self, node: Node) -> Sequence[Node]:
        """All operands."""
        return node.inputs

    def after(self, node: Node, given: Sequence[Axes], known: Known[Axes]) -> Sequence[Axes]:
        """The axes of the results of a node; Mixed is raised where it brings blocks together."""
        if node.op in autodiff.LAZY:
            made = self.derivative(node, given)
        else:
            made = list(Forward.after(self, node, given, known))
            if node.op is control.custom:
                self.check_rule(node, given, made)
            elif node.op is control.while_loop:  # all elements take its steps together
                self.of_outputs(node.attrs["predicate"], self.given_to_bodies(node, given))
        if node.op not in SIZED:
            for axis in sorted(unknown_in(node.attrs.values()) & self.sizes.keys()):
                raise OfSize(node, axis, f"uses the size {axis!r}, and a block has another one")
        pairs = zip(values(node.type), made, strict=True)
        return [self.complete(node, type, found) for type, found in pairs]

    def complete(self, node: Node, type: TensorType, found: Axes) -> Axes:
        """The axes of a value, those of its repeated elements included."""
        whole = dict(found)
        for dim, size in type.sizes.items():
            own = unknowns(size) & self.sizes.keys()
            have = instance_axes(found.get(dim, ()))
            if own == {*have}:
                continue
            if have:
                raise Mixed(node, have[0], f"has the size {size} along dim {dim!r}")
            (axis, *_) = sorted(own)
            if node.op not in REPEATS or size is not unknown(axis):
                raise Mixed(node, axis, f"makes a dim {dim!r} of size {size}")
            whole[dim] = (axis,)
        every = [axis for along in whole.values() for axis in instance_axes(along)]
        for axis in every:
            if every.count(axis) > 1:
                raise Mixed(node, axis, "has it along two dims")
        return whole

    def by_kind(self, node: Node, given: Sequence[Axes]) -> list[Axes]:
        """Dims that meet are of the same blocks."""
        made = super().by_kind(node, given)
        for y, found, by_operand in zip(
            values(node.type), made, node.op.axes.sources(node), strict=True
        ):
            for x, own, sources in zip(operands(node), given, by_operand, strict=True):
                for dim, source in zip(y.dims or (), sources, strict=True):
                    if isinstance(source, Source) and len(source.axes) == 1 and found.get(dim):
                        self.require_met(node, x, own, (x.dims or ())[source.axes[0]], found[dim])
        return made

    def require_met(self, node: Node, x: TensorType, own: Axes, dim: str, along: Along) -> None:
        """Refuse a dim of an operand that meets one of blocks and has no blocks itself."""
        if own.get(dim) != along:
            size = x.size(dim)
            raise Mixed(node, instance_axes(along)[0], f"brings it together with a size {size}")

    def reduced(
        self, node: Node, given: Sequence[Axes], over: Sequence[str]
    ) -> tuple[Axes, list[str]]:
        """The axes of the result of a reduction over some dims, and those that vanish."""
        for dim in over:
            several = [
                own.get(dim, ())
                for x, own in zip(operands(node), given, strict=True)
                if dim in (x.dims or ())
            ]
            for own in several:
                if own != several[0]:
                    axis = instance_axes(own or several[0])[0]
                    raise Mixed(node, axis, "brings it together with another dim")
        gone = [axis for own in given for dim in over for axis in instance_axes(own.get(dim, ()))]
        left = [{dim: along for dim, along in own.items() if dim not in over} for own in given]
        (made,) = self.by_kind(node, left)
        return self.complete(node, node.type, made), list(dict.fromkeys(gone))

    def check_rule(self, node: Node, given: Sequence[Axes], made: Sequence[Axes]) -> None:
        """The rule of a function must not mix blocks; what all of them share may get their sum."""
        rule = node.attrs["rule"]
        params = [*given, *made, *made]
        for share, axes in zip(rule.outputs, given, strict=True):
            try:
                self.of_outputs(Graph(rule.params, (share,)), params)
            except Mixed as mixed:
                if axes or mixed.node is not share or share.op not in (named.sum_, named.dot):
                    raise

    def derivative(self, node: Node, given: Sequence[Axes]) -> list[Axes]:
        """The axes of tangents are those of results, those of cotangents those of `wrt`.

        Refused where cotangents are summed over blocks.
        """
        results, sources, _ = autodiff.group(node, given)
        ys, wrt, _ = autodiff.group(node, node.inputs)
        if node.op is autodiff.pushforward:
            return [dict(own) for own in results]
        for y, own in zip(ys, results, strict=True):
            path = between([y], wrt)
            for x, known in zip(wrt, sources, strict=True):
                more = axes_in(own) - axes_in(known)
                if x in path and more:
                    raise Mixed(node, sorted(more)[0], "sums over it")
        return [dict(own) for own in sources]


def axes_in(found: Axes) -> set[str]:
    """The axes of blocks that a value has."""
    return {axis for along in found.values() for axis in instance_axes(along)}


def sizes_along(found: Mapping[str, Along], dim: str, size: Size) -> tuple[list[str], Size]:
    """The number of elements along a dim: the axes of blocks in it, and the rest of its size."""
    axes, rest = instance_axes(found.get(dim, ())), [size]
    if axes:
        rest = [part for part in found[dim] if not isinstance(part, str)]
    number: Size = 1
    for part in rest:
        number = number * part
    return axes, number
