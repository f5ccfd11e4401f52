"""Where a program is cut: what blocks compute of a reduction, and the value of all of them.

The value is an input of the rest of the program, which so sees blocks nowhere but along dims, where
they are apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphcore.analysis.dataflow import Known
from graphcore.analysis.instances import Axes
from graphcore.ir import INT, DType, Hidden, Node, Size, TensorType, reached
from graphcore.ops import elementwise, leaf

from .axes import BlockAxes, sizes_along


class Cut(NamedTuple):
    """A value that is combined, by the ufunc `how`, from the `part` that each block computes."""

    part: Node
    how: str
    grid: frozenset[str]
    """The axes along which there are blocks of the part."""


class Cuts:
    """The cuts of a program, the inputs that its rest has more, and the axes of its values."""

    def __init__(self, axes: Sequence[str]) -> None:
        self.axes = BlockAxes(axes)
        self.known: Known[Axes] = {}
        self.cuts: dict[Node, Cut] = {}
        self.totals = {
            axis: leaf.param(Hidden(f"size of {axis}"), TensorType(INT, (), ())) for axis in axes
        }
        """The whole size of each axis."""
        self.lifted: dict[Node, Node] = {}
        """Constants with an element for each position along an axis, by the input that they are."""

    def find(self, node: Node) -> Axes:
        """The axes of blocks of a value."""
        if node.op is leaf.input_ and node not in self.known:
            made: Axes = {
                dim: (axis,)
                for dim, size in node.type.sizes.items()
                for axis, whole in self.axes.sizes.items()
                if size is whole
            }
            self.known[node] = [self.axes.complete(node, node.type, made)]
        return self.axes.find(node, self.known)[0]

    def cut(self, part: Node, how: str, grid: frozenset[str], found: Axes) -> Node:
        """The value that is combined from `part`; `found` are its axes of blocks."""
        wanted = Cut(part, how, grid)
        for made, own in self.cuts.items():
            if own == wanted:
                return made
        made = leaf.param(Hidden(f"of all blocks {len(self.cuts)}"), part.type)
        self.known[made] = [found]
        self.cuts[made] = wanted
        return made

    def input_like(self, constant: Node, sizes: Mapping[str, Size]) -> Node:
        """The input that stands for a constant with these sizes."""
        type = TensorType.of(constant.type.dtype, dict(sizes))
        made = leaf.param(Hidden(f"constant {len(self.lifted)}"), type)
        self.lifted[made] = constant
        return made

    def count(self, x: Node, over: Sequence[str]) -> Node:
        """The number of elements of `x` over some dims, an integer."""
        number = leaf.extent(size=1, dtype=INT, dims=())
        for dim in over:
            axes, rest = sizes_along(self.find(x), dim, x.type.size(dim))
            factors = [*(self.totals[axis] for axis in axes)]
            if rest != 1:
                factors.append(leaf.extent(size=rest, dtype=INT, dims=()))
            for factor in factors:
                number = elementwise.multiply(number, factor)
        return number

    def below(self, *roots: Node) -> list[Node]:
        """The cuts that some values are computed from, in the order in which they were made."""
        cuts = self.cuts
        found = reached(roots, lambda x: [cuts[x].part] if x in cuts else x.inputs)
        return [x for x in cuts if x in found]


def cast(x: Node, dtype: DType) -> Node:
    """`x` in `dtype`."""
    return x if x.type.dtype == dtype else elementwise.cast(x, dtype=dtype)
