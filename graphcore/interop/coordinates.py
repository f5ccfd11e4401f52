"""Which elements of a program's inputs the elements of its results stand for, along each dim.

A dim keeps the coordinate of an input where each of its elements still stands for one element of
that input: for the same one, or for one picked from it by a slice or by positions. Where one
position was picked, the dim is gone, and its coordinate is a scalar. Decided from the user's graph
alone, by the kinds of axes of its ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from graphcore.ir.axes import How, operands, values
from graphcore.ir.graph import Graph
from graphcore.ir.names import Hidden
from graphcore.ir.node import Node
from graphcore.ops import leaf, named
from graphcore.ops.following import Facts, Follower


class Source(NamedTuple):
    """The elements of an input that those of a dim stand for.

    They are along the dim `dim` of the param `number`, at `positions`, a node with one dim, or
    with none where one element was picked; None means all of them, in their order. `name` is that
    of the coordinate, where it is not the dim's.
    """

    number: int
    dim: str
    positions: Node | None = None
    name: str | None = None


Origin = frozenset[Source] | None
"""The elements of inputs that those of a dim stand for; None where they stand for none."""

PICKED = Hidden("picked")
"""Among the dims of a value: the single elements of inputs that the whole of it stands for."""


def sources(graph: Graph) -> list[Facts[Origin]]:
    """The sources of each output; a dim that is missing is new, and takes any coordinate."""
    given: dict[Node, Facts[Origin]] = {
        node: {dim: frozenset([Source(number, dim)]) for dim in node.type.dims}
        for number, node in enumerate(graph.params)
    }
    found = Origins(graph).follow(graph.outputs, given)
    return [found.get(y, [{}])[0] for y in graph.outputs]


class Origins(Follower[Origin]):
    """Follows dims to the inputs that they come from."""

    def __init__(self, graph: Graph) -> None:
        self._outside = frozenset(graph.nodes())
        """The nodes outside of bodies, whose positions can be computed from the inputs."""

    def by_kind(self, node: Node, given: Sequence[Facts[Origin]]) -> list[Facts[Origin]]:
        """Elements that an op moves are lost, unless another operand keeps its own in place."""
        types = operands(node)
        single = both([facts.get(PICKED, frozenset()) for facts in given]) or ()
        whole = {dim for x in types for dim in x.dims or ()}
        results: list[Facts[Origin]] = []
        for y, by_operand in zip(values(node.type), node.op.axes.sources(node), strict=True):
            new: Facts[Origin] = {}
            for axis, dim in enumerate(y.dims or ()):
                kept: list[Origin] = []
                moved = False
                for x, facts, axes in zip(types, given, by_operand, strict=True):
                    match axes[axis]:
                        case (own, How.EACH | How.ALONG):
                            kept.append(facts.get((x.dims or ())[own[0]], frozenset()))
                        case (_, How.MOVED | How.PART):
                            moved = True
                new[dim] = both(kept) if kept or not moved else None
            new[PICKED] = frozenset(source for source in single if source.name not in whole)
            results.append(new)
        if node in self._outside:
            match node.op:
                case named.slice_:
                    results[0] |= slice_sources(node, given[0])
                case named.index | named.squeeze:
                    results[0] |= single_sources(node, given[0], results[0][PICKED])
                case named.gather:
                    results[0] |= gather_sources(node, given, results[0][PICKED])
        return results

    def join_facts(self, node: Node, several: Sequence[Facts[Origin]]) -> Facts[Origin]:
        """A dim has the sources that it has in all values together; single elements may differ."""
        dims = dict.fromkeys(dim for facts in several for dim in facts if dim != PICKED)
        return {dim: both([facts[dim] for facts in several if dim in facts]) for dim in dims}

    def of_steps(self, node: Node, dim: str, sequences: Sequence[Facts[Origin]]) -> Facts[Origin]:
        """The results of all steps are at the positions of the sequences' elements."""
        return {dim: both([facts[dim] for facts in sequences if dim in facts])}


def both(some: Sequence[Origin]) -> Origin:
    """The sources of a dim along which several values are aligned."""
    return None if None in some else frozenset().union(*filter(None, some))


def slice_sources(node: Node, facts: Facts[Origin]) -> Facts[Origin]:
    """The sources along the dims that `named.slice_` cuts."""
    (x,) = node.inputs
    found: Facts[Origin] = {}
    ranges = zip(*(node.attrs[key] for key in ("dims", "starts", "sizes", "steps")), strict=True)
    for dim, start, size, step in ranges:
        cut = {"dims": (dim,), "starts": (start,), "sizes": (size,), "steps": (step,)}
        found[dim] = frozenset(
            source._replace(positions=named.slice_(positions(source, x, dim), **cut))
            for source in facts.get(dim) or ()
        )
    return found


def single_sources(node: Node, facts: Facts[Origin], single: Origin) -> Facts[Origin]:
    """The `single` elements, and those that `named.index` or `named.squeeze` pick."""
    (x,) = node.inputs
    dims = node.attrs["dims"]
    found = set(single or ())
    for dim, at in zip(dims, node.attrs.get("positions", (0,) * len(dims)), strict=True):
        for source in facts.get(dim) or ():
            place = named.index(positions(source, x, dim), dims=(dim,), positions=(at,))
            found.add(source._replace(positions=place, name=source.name or dim))
    return {PICKED: frozenset(found)}


def gather_sources(node: Node, given: Sequence[Facts[Origin]], single: Origin) -> Facts[Origin]:
    """The sources along the dims of `named.gather` that are those of positions, one dim or none."""
    x, *indices = node.inputs
    found: Facts[Origin] = {PICKED: single}
    for dim, index, own in zip(node.attrs["dims"], indices, given[1:], strict=True):
        if len(index.type.dims) < 2:
            (new,) = index.type.dims or (PICKED,)
            some = frozenset(
                source._replace(
                    positions=named.gather(positions(source, x, dim), index, dims=(dim,)),
                    name=source.name if new == dim else source.name or dim,
                )
                for source in given[0].get(dim) or ()
            )
            known = own.get(new) if new != PICKED else None
            found[new] = (found.get(new) or frozenset()) | some | (known or frozenset())
    return found


def positions(source: Source, x: Node, dim: str) -> Node:
    """The positions of a source, as a node whose one dim is `dim` of `x`."""
    if source.positions is None:
        size = x.type.size(dim)
        return leaf.iota(size=size, dtype=np.dtype(np.int64), dims=(dim,))
    (own,) = source.positions.type.dims
    return source.positions if own == dim else named.rename(source.positions, names=((own, dim),))
