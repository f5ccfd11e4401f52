"""Where results hang on the derivative that is chosen at a kink or a tie.

The operands of each op that is at such an edge are moved a little to one side. Where the derivative
is exact, as that of a smooth function of a norm, the results move a little as well. Where they jump
however small the move is, they hang on the choice. All that is no float, as the condition of a
`where`, stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from graphcore.ir.axes import values as types_of
from graphcore.ir.dtypes import INT, differentiable
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node, full_like
from graphcore.ir.op import Op
from graphcore.ir.provenance import Origin, described_by
from graphcore.ir.trace import Rule
from graphcore.ir.transform import transform
from graphcore.ops import autodiff, elementwise, leaf, named, tensor

from .interpreter import Again, Array, Frame, Interpreter, Outputs, Run, one_node
from .text import few, one_line

Count: TypeAlias = "Callable[[Node, Sequence[Array], Array], int]"
"""From a node, its operands and its result to the number of elements that are at the edge."""


class Kind(NamedTuple):
    """What an edge is: where it lies, what is chosen there, and how many elements are there."""

    where: str
    convention: str
    elements: Count


def zeros(node: Node, operands: Sequence[Array], y: Array) -> int:
    """The elements that are 0."""
    return int(np.count_nonzero(y == 0))


def equal(node: Node, operands: Sequence[Array], y: Array) -> int:
    """The elements for which both operands are equal."""
    return int(np.count_nonzero((operands[0] == operands[1]) & (y == y)))


def several_extremes(node: Node, operands: Sequence[Array], y: Array) -> int:
    """The elements that equal more than one of those that they are chosen from."""
    axes = axes_of(node)
    tied = (operands[0] == np.expand_dims(y, axes)).sum(axes)
    return int(np.count_nonzero(tied > 1))


def reached_again(node: Node, operands: Sequence[Array], y: Array) -> int:
    """The elements that equal the extreme of those before them."""
    found = 0
    for axis in axes_of(node):
        ys, xs = np.moveaxis(y, axis, 0), np.moveaxis(operands[0], axis, 0)
        found += int(np.count_nonzero((xs[1:] == ys[1:]) & (ys[1:] == ys[:-1])))
    return found


def equal_neighbours(node: Node, operands: Sequence[Array], y: Array) -> int:
    """The elements of a sorted array that equal the one before."""
    ys = np.moveaxis(y, axes_of(node)[0], 0)
    return int(np.count_nonzero(ys[1:] == ys[:-1]))


def axes_of(node: Node) -> tuple[int, ...]:
    """The axes of the operand along which a node works."""
    dims = node.inputs[0].type.dims
    return tuple(map(dims.index, node.attrs.get("dims") or (node.attrs["dim"],)))


ZERO, SHARED = "taken as 0", "shared evenly among the tied"
EDGES: dict[Op, Kind] = {
    elementwise.absolute: Kind("the operand is 0", ZERO, zeros),
    elementwise.hypot: Kind("both operands are 0", ZERO, zeros),
    named.norm: Kind("all operands are 0", ZERO, zeros),
    named.std: Kind("all operands are equal", ZERO, zeros),
    **dict.fromkeys(
        (elementwise.maximum, elementwise.minimum, elementwise.fmax, elementwise.fmin),
        Kind("both operands are equal", SHARED, equal),
    ),
    **dict.fromkeys(
        (named.max_, named.min_), Kind("several operands are extreme", SHARED, several_extremes)
    ),
    **dict.fromkeys(
        (named.cummax, named.cummin), Kind("an extreme is reached again", SHARED, reached_again)
    ),
    named.sort: Kind("operands are equal", "that of a stable sort", equal_neighbours),
}
"""The ops whose derivative is a choice where operands are at an edge."""


@dataclass(frozen=True)
class Edge:
    """A kink or a tie at which a derivative is a choice that results hang on: no fault, but a note.

    Attributes
    ----------
    op
        The op that is at the edge.
    line
        The user's line.
    code
        The text of that line, "" if it is not known.
    where
        What makes it an edge, such as "the operand is 0".
    count
        The number of elements at the edge, in all steps of loops.
    convention
        The derivative that is chosen there.
    results
        The results of the call that hang on the choice.
    """

    op: str
    line: Origin
    code: str
    where: str
    count: int
    convention: str
    results: tuple[str, ...]

    def __str__(self) -> str:
        code = f": {one_line(self.code, 100)}" if self.code else ""
        return "\n".join(
            [
                f"{self.op} is at an edge: {self.where} ({self.count:,} of its elements)",
                f"  written at {self.line._replace(via=None)}{code}",
                f"  results that hang on its derivative there: {few(self.results, 8)}",
                f"  convention: the derivative is {self.convention}",
            ]
        )

    __repr__ = __str__


class Met(NamedTuple):
    """How many elements of a node are at an edge, and the largest number among its operands."""

    elements: int = 0
    scale: float = 0.0


def find_edges(
    graph: Graph,
    arrays: Sequence[Array],
    sizes: Mapping[str, int],
    names: Sequence[str],
    compute: Again,
    derivatives: Outputs,
) -> list[Edge]:
    """The edges of a call whose choice of a derivative results hang on, in the program's order.

    Parameters
    ----------
    graph
        The user's graph.
    arrays, sizes
        The checked arguments of the call and the unknown sizes.
    names
        The names of the outputs.
    compute, derivatives
        Compute single nodes, and the outputs of a graph of lazy derivatives.
    """
    ops = graph.ops()
    if ops.isdisjoint(autodiff.LAZY) or ops.isdisjoint(EDGES):
        return []
    quiet = without_prints(graph)
    met: dict[Node, Met] = {}
    with described_by(quiet.trace):
        interpreter = Interpreter(one_node(compute), derivatives)
        collect(interpreter, interpreter.frame(quiet, arrays, sizes), met)
        lines = {node: node.origin._replace(via=None) for node in met}
    if not met:
        return []
    moves = Moves(quiet, names, lambda moved: derivatives(moved, arrays, sizes))
    found: dict[tuple[Op, Origin], set[str]] = {}
    for group in groups(met, lambda node: operands_of(node)[:1]):
        parts = groups(group, lambda node: (node.op, lines[node]))
        if len(parts) > 1 and not moves.hanging(group):
            continue  # one makes up for another, as in max(x, 0) + log1p(exp(-abs(x)))
        for part in parts:
            node = next(iter(part))
            found.setdefault((node.op, lines[node]), set()).update(moves.hanging(part))
    counts: dict[tuple[Op, Origin], int] = {}
    for node, (count, _) in met.items():
        key = node.op, lines[node]
        counts[key] = min(count, counts.get(key, count))
    return [
        Edge(
            op.said,
            line,
            line.code,
            EDGES[op].where,
            count,
            EDGES[op].convention,
            tuple(name for name in names if name in found[op, line]),
        )
        for (op, line), count in counts.items()
        if found.get((op, line))
    ]


def groups(met: Mapping[Node, Met], key: Callable[[Node], Any]) -> list[dict[Node, Met]]:
    """Nodes in groups of equal keys."""
    found: dict[Any, dict[Node, Met]] = {}
    for node, about in met.items():
        found.setdefault(key(node), {})[node] = about
    return list(found.values())


class Moves:
    """The outputs of a graph as operands of some nodes are moved.

    Parameters
    ----------
    graph, names
        The graph, and the names of its outputs.
    outputs
        Computes the outputs of such a graph.
    """

    def __init__(
        self, graph: Graph, names: Sequence[str], outputs: Callable[[Graph], list[Array]]
    ) -> None:
        self.graph, self.names, self.outputs = graph, names, outputs
        self.before = outputs(graph)

    def hanging(self, met: Mapping[Node, Met]) -> set[str]:
        """The outputs that hang on the derivatives that are chosen for some nodes."""
        left, far = [*range(len(self.names))], self.before
        for step, scale in STEPS:
            near = self.outputs(move(self.graph, met, step, scale))
            left = [i for i in left if jumps(self.before[i], far[i], near[i])]
            if not left:
                break
            far = near
        return {self.names[i] for i in left}


STEPS = (1.0, 1.0), (1 / 16, 1.0), (1 / 16, 1e-8)
"""The moves of operands, ever smaller ones: of all of them, and then also of those that are 0."""


def without_prints(graph: Graph) -> Graph:
    """A graph that prints nothing."""

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        return (without_prints, inputs[0]) if node.op in PRINTS else None

    return transform(graph, visit, bodies=without_prints)


PRINTS = frozenset({named.print_, tensor.print_})


def collect(interpreter: Interpreter, frame: Frame, met: dict[Node, Met]) -> None:
    """Enter the nodes of a frame, and of all steps of its loops, that are at an edge."""
    for node in interpreter.order(frame.graph):
        found = frame.results[node]
        if isinstance(found, Run):
            if not found.body.ops().isdisjoint(EDGES):
                for number in range(len(found.given)):
                    collect(interpreter, interpreter.step(found, number), met)
        elif node.op in EDGES and differentiable(found[0].dtype):
            operands = [array for x in node.inputs for array in frame.of(x)]
            if count := EDGES[node.op].elements(node, operands, found[0]):
                known = met.get(node, Met())
                sizes = [np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in operands]
                met[node] = Met(known.elements + count, float(max(known.scale, *sizes)))


def move(graph: Graph, met: Mapping[Node, Met], step: float, scale: float) -> Graph:
    """`graph` with the operands of some nodes moved up a little: by `step` times that.

    All that is no float stays as it was.
    """

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node in met:
            size, moving = scale * (met[node].scale or 1.0), operands_of(node)
            given = zip(node.inputs, inputs, strict=True)
            moved = [
                moved_operand(x, size, step / (1 + moving.index(old))) if old in moving else x
                for old, x in given
            ]
            return move, Node(node.op, tuple(moved), node.attrs)
        if not any(differentiable(type.dtype) for type in types_of(node.type)):
            return move, node
        return None

    return transform(graph, visit, bodies=partial(move, met=met, step=step, scale=scale))


def operands_of(node: Node) -> tuple[Node, ...]:
    """The operands that are moved: all but numbers of the program, if there are others."""
    moving = tuple(x for x in node.inputs if x.op not in (leaf.full, leaf.constant))
    return moving or node.inputs


def moved_operand(x: Node, scale: float, step: float) -> Node:
    """x + step |x| ramp, with `scale` for |x| where that is 0: ramp falls from 1, but not to 0."""
    dtype = x.type.dtype
    if not differentiable(dtype):
        return x
    ramp = full_like(x, 1.0)
    for k, (dim, extent) in enumerate(x.type.sizes.items(), 1):
        at = elementwise.cast(leaf.iota(size=extent, dtype=INT, dims=(dim,)), dtype=dtype)
        ramp = ramp - at * 0.5**k / leaf.extent(size=extent, dtype=dtype, dims=())
    size = elementwise.cast(elementwise.absolute(x), dtype=dtype)
    size = elementwise.where(elementwise.equal(x, full_like(x, 0)), full_like(x, scale), size)
    return x + autodiff.stop_gradient(size * ramp * (step * float(np.finfo(dtype).eps) ** 0.25))


def jumps(before: Array, far: Array, near: Array) -> bool:
    """Whether an element is away from `before` after a near move, and hardly less than after far"""
    if not differentiable(before.dtype) or not before.size:
        return False
    with np.errstate(all="ignore"):
        away = np.abs(near - before)
        most = np.abs(np.where(np.isfinite(before), before, 0)).max()
        least = np.finfo(before.dtype).eps ** 0.5 * most
        own = 0.01 * np.maximum(np.abs(before), np.abs(near))
        found = (away > np.abs(far - before) / 2) & (away > own) & (away > least)
    return bool(found.any())
