"""The walk that cuts a program at its reductions over blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphcore.analysis.instances import Mixed
from graphcore.ir import Graph, Node, Size
from graphcore.ir.provenance import described_by, inheriting
from graphcore.ir.sizes import unknown
from graphcore.ops import autodiff, leaf, named

from .axes import refused_mixture
from .cuts import Cuts
from .derivatives import derivative
from .reductions import reduce, reduced_dims

Equal = Mapping[tuple[str, Size], Size]
"""The size of an axis, for a dim of a size that must equal it."""


def cut(graph: Graph, axes: Sequence[str]) -> tuple[Cuts, list[Node]]:
    """The cuts of a program whose inputs come in blocks along `axes`, and its outputs.

    Refused, with the line, where blocks mix.
    """
    cuts, equal = Cuts(axes), equal_sizes(graph, axes)
    new: dict[Node, Node] = {}
    with described_by(graph.trace):
        try:
            for node in graph.nodes():
                with inheriting(node):
                    new[node] = visit(cuts, equal, node, [new[x] for x in node.inputs])
        except Mixed as mixed:
            raise refused_mixture(mixed) from None
    return cuts, [new[y] for y in graph.outputs]


def visit(cuts: Cuts, equal: Equal, node: Node, inputs: Sequence[Node]) -> Node:
    """What a node of the user's program becomes."""
    if node.op in autodiff.LAZY:
        return derivative(cuts, node, inputs)
    made = rebuilt(cuts, equal, node, inputs)
    if over := reduced_dims(cuts, made):
        return reduce(cuts, made, over)
    cuts.find(made)
    return made


def rebuilt(cuts: Cuts, equal: Equal, node: Node, inputs: Sequence[Node]) -> Node:
    """The same op on new operands; a constant along an axis becomes an input."""
    if not equal or node.op not in (leaf.constant, leaf.full, named.broadcast):
        return node.with_inputs(*inputs)
    sizes = {dim: equal.get((dim, size), size) for dim, size in node.type.sizes.items()}
    shape = tuple(sizes.values())
    if shape == node.type.shape:
        return node.with_inputs(*inputs)
    if node.op is leaf.constant:
        return cuts.input_like(node, sizes)
    if node.op is leaf.full:
        return leaf.full(**{**node.attrs, "shape": shape})
    return named.broadcast(*inputs, dims=node.attrs["dims"], sizes=shape)


def equal_sizes(graph: Graph, axes: Sequence[str]) -> dict[tuple[str, Size], Size]:
    """The declared sizes that must equal that of an axis, by dim: those of constants."""
    sizes, found = {*map(unknown, axes)}, dict[tuple[str, Size], Size]()
    for node in graph.every_node():
        for need in node.needs:
            for size, other in ((need.left, need.right), (need.right, need.left)):
                if need.relation == "==" and isinstance(other, int) and size in sizes:
                    found[need.dim, other] = size
    return found
