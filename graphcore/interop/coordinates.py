"""Which dims of a program's results are dims of its inputs, place by place.

A dim keeps the coordinate of an input where each of its places is still the same place of that
input. Decided from the user's graph alone: a dim that an op does not mention is batch, so it is
followed through; one that an op mentions is lost, unless `PLACES` says what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.types import TupleType
from graphcore.ops import autodiff, leaf, named

Source = tuple[int, str]
"""The number of a param, and one of its dims."""

Sources = dict[str, frozenset[Source] | None]
"""For each dim of a tensor the dims it is, place by place; None where places have changed."""


Rule = Callable[[Node, Sequence[Any]], Any]
"""From the sources of the operands to those of the result, or of each result."""


def sources(graph: Graph) -> list[Sources]:
    """The sources of each output."""
    found: dict[Node, Any] = {
        node: {dim: frozenset([(number, dim)]) for dim in node.type.dims}
        for number, node in enumerate(graph.params)
    }
    for node in graph.nodes():
        if node not in found:
            rule: Rule = PLACES.get(node.op, followed)
            found[node] = rule(node, [found[x] for x in node.inputs])
    return [found[y] for y in graph.outputs]


def followed(node: Node, given: Sequence[Sources]) -> Any:
    """What becomes of dims by default: those that the attrs mention are lost."""
    lost = set(mentioned(tuple(node.attrs.values())))
    made = [
        {dim: None if dim in lost else joined(dim, given) for dim in part.dims}
        for part in getattr(node.type, "items", [node.type])
    ]
    return made if isinstance(node.type, TupleType) else made[0]


def mentioned(value: object) -> Iterator[str]:
    """The words in an attr."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from mentioned(part)


def joined(dim: str, given: Sequence[Sources]) -> frozenset[Source] | None:
    """The sources of a dim on which operands are aligned."""
    every: set[Source] = set()
    for known in given:
        if dim in known:
            some = known[dim]
            if some is None:
                return None
            every |= some
    return frozenset(every)


def aligned(node: Node, given: Sequence[Sources]) -> Sources:
    """All places stay where they are, whatever the attrs mention."""
    return {dim: joined(dim, given) for dim in node.type.dims}


def renamed(node: Node, given: Sequence[Sources]) -> Sources:
    """The same places under other names."""
    return dict(zip(node.type.dims, given[0].values(), strict=True))


def changed_in_part(node: Node, given: Sequence[Sources]) -> Sources:
    """The dims of the first operand at which others come stay its own."""
    inside = node.attrs["dims"]
    return {dim: joined(dim, given[:1] if dim in inside else given) for dim in node.type.dims}


def picked(node: Node, given: Sequence[Sources]) -> Sources:
    """Positions bring their dims; one that bears the name of the dim it picks from is lost."""
    gone = node.attrs["dims"]
    return {dim: None if dim in gone else joined(dim, given) for dim in node.type.dims}


def searched(node: Node, given: Sequence[Sources]) -> Sources:
    """The dim that is searched vanishes, and may be a dim of what is looked for."""
    x, values = given
    rest = {dim: some for dim, some in x.items() if dim != node.attrs["dim"]}
    return aligned(node, [rest, values])


def spread(node: Node, given: Sequence[Sources]) -> Sources:
    """The dims in which values come to places are new; those of operands that remain are batch."""
    new = node.attrs["dims"]
    return {dim: frozenset() if dim in new else joined(dim, given) for dim in node.type.dims}


def nowhere(node: Node, given: Sequence[Sources]) -> Sources:
    """What is made of nothing has no coordinates, and takes any."""
    return dict.fromkeys(node.type.dims, frozenset())


PLACES: dict[Op, Rule] = {
    **dict.fromkeys((leaf.constant, leaf.full, leaf.iota, leaf.extent), nowhere),
    **dict.fromkeys((named.cumsum, named.cumprod, named.cummax, named.cummin), aligned),
    **dict.fromkeys((named.softmax, named.log_softmax, named.logcumsumexp), aligned),
    **dict.fromkeys((named.transpose, named.broadcast), aligned),
    **dict.fromkeys((named.put, named.scatter_max, named.scatter_min), changed_in_part),
    named.overwrite: changed_in_part,
    **dict.fromkeys((named.embed, named.scatter), spread),
    named.rename: renamed,
    named.gather: picked,
    named.searchsorted: searched,
    leaf.tuple_: lambda node, given: list(given),
    leaf.project: lambda node, given: given[0][node.attrs["index"]],
    # a cotangent has the places of what it is taken by, a tangent those of the result
    autodiff.pullback: lambda node, given: given[node.attrs["ys"] :][: node.attrs["wrt"]],
    autodiff.pushforward: lambda node, given: given[: node.attrs["ys"]],
}
