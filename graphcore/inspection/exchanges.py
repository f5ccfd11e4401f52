"""Which steps of a program bring together elements that lie on several devices.

The kind of an op's axes says so: elements along a batch axis need nothing of each other, those
along an axis that vanishes are joined, and those that move are sent. So nothing here knows ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from graphcore.analysis.values import counts_along
from graphcore.ir import Graph, Node, Trait
from graphcore.ir.axes import (
    AxisKind,
    Contracts,
    How,
    Indexes,
    Joins,
    Overlaps,
    Ranges,
    Receives,
    Reduces,
    Reshapes,
    Source,
    Windows,
)
from graphcore.ir.name_text import show_dim
from graphcore.ops import control

from .axis_labels import Labels, infer_inside, places_of


class Need(Enum):
    """What a step needs of elements on other devices."""

    JOINED = "joins {dim}@{axis}"
    """One value for each device: a part of a sum, a maximum."""
    MOVED = "moves along {dim}@{axis}"
    """Some of their elements: a slice, what is joined one after the other."""
    WHOLE = "needs all {dim}@{axis}"
    """All of them, on every device: a sort, a factor of a matrix, an index."""


class Exchange(NamedTuple):
    """A dim along an axis of a mesh, and what a step needs of the elements along it."""

    need: Need
    dim: str
    axis: str

    def __str__(self) -> str:
        return self.need.value.format(dim=show_dim(self.dim), axis=show_dim(self.axis))


def exchanges(graph: Graph, places: Mapping[str, str]) -> dict[Node, list[Exchange]]:
    """What each node of a graph and of its bodies needs of other devices, if it needs any.

    `places` are the axes of a mesh along which dims lie.
    """
    found: dict[Node, list[Exchange]] = {}
    for _, known in infer_inside(graph):
        for node in known:
            given = [labels for x in node.inputs for labels in known[x]]
            if own := [*dict.fromkeys(of_node(node, given, places))]:
                found.setdefault(node, own)
    return found


def of_node(node: Node, given: Sequence[Labels], places: Mapping[str, str]) -> Iterator[Exchange]:
    """What a node needs of other devices, given the labels of its operands."""
    placed = [places_of(labels, places) for labels in given]
    if not any(axis for own in placed for axis in own):
        return
    if node.op is control.scan:
        n, m = node.attrs["carries"], node.attrs["sequences"]
        for labels, own in zip(given[n : n + m], placed[n : n + m], strict=True):
            if (label := labels[0]) is not None and own[0] is not None:
                yield Exchange(Need.WHOLE, label, own[0])
    if node.op.dialect in ("control", "leaf"):
        return
    sources = node.op.axes.sources(node)
    for k, (labels, own) in enumerate(zip(given, placed, strict=True)):
        for axis, (label, place) in enumerate(zip(labels, own, strict=True)):
            if label is not None and place is not None:
                made = [s for result in sources for s in result[k] if s and axis in s.axes]
                if (need := need_of(node, k, axis, made)) is not None:
                    yield Exchange(need, label, place)


def is_walked(node: Node, operand: int, axis: int) -> bool:
    """Whether positions that an op indexes by just count along an axis of an operand."""
    axes, base = node.attrs["axes"], getattr(node.op.axes, "base", 1)
    counted = dict(zip(axes, map(counts_along, node.inputs[-len(axes) :]), strict=True))
    if operand < base:
        return counted.get(axis) is not None
    return axis in counted.values()


def need_of(node: Node, operand: int, axis: int, made: Sequence[Source]) -> Need | None:
    """What a node needs of elements along an axis of an operand, given the axes made of it."""
    kind: AxisKind = node.op.axes
    hows = {source.how for source in made}
    if isinstance(kind, Indexes | Receives) and is_walked(node, operand, axis):
        return None  # each device reads and writes its own part
    if not made:
        joins = isinstance(kind, Reduces | Contracts | Overlaps | Receives)
        return Need.JOINED if joins or Trait.PRODUCT in node.op.traits else Need.WHOLE
    if hows == {How.EACH} or isinstance(kind, Receives):
        return None
    if isinstance(kind, Ranges):
        return None if hows == {How.ALONG} else Need.MOVED
    if isinstance(kind, Reshapes) and all(source.axes[0] == axis for source in made):
        return None  # what is merged with the axis comes after it, so that parts stay together
    return Need.MOVED if isinstance(kind, Joins | Overlaps | Windows) else Need.WHOLE
