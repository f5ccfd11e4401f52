"""Second derivatives at a kink that are wrong: no rule follows the function, which is smooth there.

The program is called again with inputs that are moved a little. Where its first derivatives hardly
change, and its second ones are alike in all directions, that limit is the second derivative at the
point itself. So a result of another value there is wrong. Where the directions differ, as for |x|,
there is no such derivative, and a choice is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphcore.ir import Array, Graph, Node, Op
from graphcore.ir.axes import values as types_of
from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphError
from graphcore.ir.graph import bodies_of
from graphcore.ir.help_text import attributes
from graphcore.ir.provenance import Origin, described_by
from graphcore.ops import autodiff, elementwise, named

from . import check
from .blame import Mask, first
from .check import Fault
from .interpreter import Frame, Interpreter, Lower, Run
from .mismatch import Mismatch


def tied(node: Node, operands: Sequence[Array], y: Array) -> Mask:
    """Which extremes several elements equal."""
    dims = node.inputs[0].type.dims or ()
    axes = tuple(map(dims.index, node.attrs["dims"]))
    found: Mask = (operands[0] == np.expand_dims(y, axes)).sum(axes) > 1
    return found


KINKS: dict[Op, Callable[[Node, Sequence[Array], Array], Mask]] = {
    **dict.fromkeys(
        (elementwise.absolute, elementwise.sign, elementwise.hypot, named.norm, named.std),
        lambda node, operands, y: y == 0,
    ),
    **dict.fromkeys(
        (elementwise.maximum, elementwise.minimum, elementwise.fmax, elementwise.fmin),
        lambda node, operands, y: operands[0] == operands[1],
    ),
    **dict.fromkeys((named.max_, named.min_), tied),
}
"""From a node of an op that has a kink, its operands and result to the elements that are at it."""


@attributes(
    name="How the result is written.",
    place="The first such element: its position for each dim.",
    value="Its value.",
    beside="Its value after the inputs are moved a little, to whatever side: the right one.",
    count="The number of such elements.",
    met="The name and the user's line of each op on the way to it that is at a kink.",
)
@dataclass(frozen=True)
class Kink:
    """A result that depends on a second derivative at a kink, where that is wrong."""

    name: str
    place: Mapping[str, int]
    value: complex
    beside: complex
    count: int
    met: tuple[tuple[str, Origin], ...]

    def __str__(self) -> str:
        where = f" at {check.show_place(self.place)}" if self.place else ""
        more = f", and at {self.count - 1:,} more," if self.count > 1 else ""
        value, beside = check.show_value(self.value), check.show_value(self.beside)
        kinks = [
            f"  at a kink: {op} at {line._replace(via=None)}{check.quoted_code(line)}"
            for op, line in self.met[: check.MOST_LINES]
        ]
        cure = "write it without the kink, or as abs(x)**2 or gc.norm(x)**2 outside of loops"
        return "\n".join(
            [
                f"{self.name} is {value}{where}{more} but {beside} close beside it, on all sides",
                *kinks,
                "  cause: no rule follows the function of the kink, which is smooth there",
                f"  cure: {cure} and products of matrices; or move the inputs a little",
            ]
        )

    __repr__ = __str__


class Faults(tuple[Fault | Kink | Mismatch, ...]):
    """Several of them, printed one below the other; of very many only the first ones."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = [str(fault) for fault in self[:SHOWN]]
        if len(self) > SHOWN:
            shown.append(f"… and {len(self) - SHOWN:,} more")
        return "\n\n".join(shown) or "no faults"


SHOWN = 50
"""The faults that are printed."""


def find_kinks(
    graph: Graph,
    arrays: Sequence[Array],
    sizes: Mapping[str, int],
    names: Sequence[str],
    results: Sequence[Array],
    again: Callable[[Sequence[Array]], Sequence[Array]],
    lower: Lower,
) -> list[Kink]:
    """The results of a call that depend on wrong second derivatives at a kink.

    `graph` is the user's, and the next four are as in `check`. `again` calls the program with other
    arguments, and `lower` lowers a graph of named ops and lazy derivatives to plain ops.
    """
    orders = derivative_orders(graph)
    second = {i for i, y in enumerate(graph.outputs) if orders[y] > 1 and is_float(results[i])}
    if not second or graph.ops().isdisjoint(KINKS):
        return []
    eps = max(float(np.finfo(x.dtype).eps) for x in (*arrays, *results) if is_float(x))
    wrong: dict[int, Mask] = {}
    met: list[Node] = []
    try:
        for many in DIRECTIONS_FIRST, DIRECTIONS_LAST:
            near = [again(moved) for moved in moves(graph, arrays, eps, many)]
            every = {i: jumps(results[i], [found[i] for found in near], eps) for i in second}
            wrong = {i: mask for i, mask in every.items() if mask.any()}
            if not wrong:
                return []
        with described_by(graph.trace), np.errstate(all="ignore"):
            interpreter = Interpreter(lower)
            lazy = first_derivatives(graph)
            slopes = []
            for point in (arrays, *moves(graph, arrays, eps, DIRECTIONS_FIRST)):
                frame = interpreter.frame(graph, point, sizes)
                slopes.append([x for node in lazy for x in frame.of(node)])
                if point is arrays:
                    collect(interpreter, frame, met)
            if not continuous(slopes, eps):
                return []
    except GraphError:  # as that of a matrix which is no longer positive definite
        return []
    found = []
    with described_by(graph.trace):
        for i, mask in wrong.items():
            y, at = graph.outputs[i], first(mask)
            value, beside = (check.plain(complex(x[at]) + 0) for x in (results[i], near[-1][i]))
            on_way = differentiated([y])
            ops = dict.fromkeys((node.op.said, node.origin) for node in met if node in on_way)
            if ops:
                place, count = check.place_of(check.labels_in(graph, y, 0), at), int(mask.sum())
                found.append(Kink(names[i], place, value, beside, count, tuple(ops)))
    return found


DIRECTIONS_FIRST, DIRECTIONS_LAST = 1, 16
"""The directions of the smaller step in which a call is moved at first, and before it is blamed."""


def is_float(x: Array) -> bool:
    """Whether an array has elements that may have derivatives."""
    return differentiable(x.dtype) and x.size > 0


def derivative_orders(graph: Graph) -> dict[Node, int]:
    """How many derivatives, at most, each node is a derivative of."""
    found: dict[Node, int] = {}
    for node in graph.nodes():
        inside = [max(derivative_orders(body).values(), default=0) for body in bodies_of(node)]
        below = max((found[x] for x in node.inputs), default=0)
        found[node] = below + max(inside, default=0) + (node.op in autodiff.LAZY)
    return found


def first_derivatives(graph: Graph) -> list[Node]:
    """The lazy derivatives of a graph that are not derivatives of others."""
    lazy = {node: None for node in graph.nodes() if node.op in autodiff.LAZY}
    return [node for node in lazy if lazy.keys().isdisjoint(Graph((), node.inputs).nodes())]


def differentiated(outputs: Sequence[Node]) -> set[Node]:
    """The nodes from which floats lead to the outputs, those in bodies of loops included."""
    found: set[Node] = set()
    stack = list(outputs)
    while stack:
        x = stack.pop()
        if x not in found and any(differentiable(type.dtype) for type in types_of(x.type)):
            found.add(x)
            stack += [*x.inputs, *(y for body in bodies_of(x) for y in body.outputs)]
    return found


def moves(graph: Graph, arrays: Sequence[Array], eps: float, many: int) -> Iterator[list[Array]]:
    """The arguments of a call in which those by which is differentiated are moved a little.

    Once by a larger step and `many` times by a smaller one, each to both sides.
    """
    roots: list[Node] = []
    for node in graph.nodes():
        if node.op in autodiff.LAZY:
            roots += autodiff.group(node, node.inputs)[1]
        elif any(not body.ops().isdisjoint(autodiff.LAZY) for body in bodies_of(node)):
            roots += node.inputs
    moving = set(Graph((), tuple(roots)).nodes())
    rng = np.random.default_rng(0)
    for power, signs in [(3 / 8, [1.0]), *[(1 / 2, [1.0, -1.0])] * many]:
        steps = [
            eps**power * rng.uniform(0.5, 1.0, x.shape) * rng.choice(signs, x.shape) for x in arrays
        ]
        for side in (1, -1):
            yield [
                moved(x, side * step) if param in moving and is_float(x) else x
                for param, x, step in zip(graph.params, arrays, steps, strict=True)
            ]


def moved(x: Array, step: Array) -> Array:
    """x + step |x|, with the largest |x| where that is 0."""
    size = np.abs(x)
    scale = size[np.isfinite(size)].max(initial=0.0) or 1.0
    turn = 0.8 + 0.6j if x.dtype.kind == "c" else 1.0
    return np.asarray(x + turn * step * np.where(size == 0, scale, size), x.dtype)


def jumps(before: Array, near: Sequence[Array], eps: float) -> Mask:
    """The elements unlike those after all moves; none unless all elements are alike after these."""
    nothing: Mask = np.zeros(before.shape, bool)
    if any(x.shape != before.shape for x in near):
        return nothing
    with np.errstate(all="ignore"):
        spread = np.max([np.abs(x - near[0]) for x in near], 0)
        away = np.min([np.abs(x - before) for x in near], 0)
        most = np.max(np.abs(near), 0)
        noise = eps**0.5 * np.max(most)
        if not (spread <= np.maximum(most / 20, noise)).all():
            return nothing
        least = np.maximum(noise, eps**0.5 * np.abs(before).max())
        found: Mask = (away > 10 * spread) & (away > np.maximum(1e-3 * most, least))
    return found


def continuous(points: Sequence[Sequence[Array]], eps: float) -> bool:
    """Whether values hardly change by the smaller steps, less than by the larger one."""
    for before, *near in zip(*points, strict=True):
        if any(x.shape != before.shape for x in near):
            return False
        with np.errstate(all="ignore"):
            far = [float(np.max(np.abs(x - before), initial=0.0)) for x in near]
            noise = eps**0.75 * float(np.max(np.abs(before), initial=0.0))
        if not max(far[2:]) <= max(max(far[:2]) / 2, noise):
            return False
    return True


def collect(interpreter: Interpreter, frame: Frame, met: list[Node]) -> None:
    """Enter the nodes of a frame, and of all steps of its loops, that are at a kink."""
    for node in interpreter.order(frame.graph):
        found = frame.results[node]
        if isinstance(found, Run):
            if not found.body.ops().isdisjoint(KINKS):
                for number in range(len(found.given)):
                    collect(interpreter, interpreter.step(found, number), met)
        elif node.op in KINKS and differentiable(found[0].dtype):
            operands = [array for x in node.inputs for array in frame.of(x)]
            if KINKS[node.op](node, operands, found[0]).any():
                met.append(node)
