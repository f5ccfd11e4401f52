"""The programs that compute a program by blocks, for each pass over the data and set of axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphcore.analysis.instances import Axes
from graphcore.ir import BOOL, Graph, Hidden, Node, TensorType, full_like, toposort
from graphcore.ir.graph import unknowns_of
from graphcore.ir.names import ValueOf
from graphcore.ir.sizes import unknown
from graphcore.ir.trace import Trace
from graphcore.ir.transform import substitute
from graphcore.ops import autodiff, leaf

from .axes import axes_in, refused
from .cuts import Cuts
from .shipped import Shipped
from .walk import cut

Compile = Callable[[Graph], Any]
"""The compiler of a part of a program."""
Lower = Callable[[Graph], Graph]
SIZES = Hidden("positions")
"""The dim of inputs whose size alone is read."""


class Program(NamedTuple):
    """What a block computes in one pass: the values `made`, each an output or a cut."""

    run: Shipped
    params: tuple[Node, ...]
    made: tuple[Node, ...]
    grid: tuple[str, ...]
    number: int
    """The number of the pass; the cuts that it reads are of earlier ones."""


class Plan(NamedTuple):
    """How a program is computed by blocks along some axes."""

    outputs: Sequence[Node]
    cuts: Cuts
    programs: Sequence[Program]

    def axes(self, node: Node) -> Axes:
        """The axes of blocks of a value."""
        return self.cuts.find(node)


def plan(graph: Graph, axes: Sequence[str], compiled: Compile, lowered: Lower) -> Plan:
    """The programs that compute a graph by blocks along `axes`, in order."""
    for node in graph.every_node():
        if node.op is leaf.as_size:
            what = f"{node.inputs[0].said} at {node.origin} computes a size of the program"
            raise refused(what, "keep the size: mask elements, as x.where(mask) does")
    cuts, outputs = cut(graph, axes)
    for y in outputs:
        require_pieces(y, cuts.find(y))
    values = {y: y for y in outputs} | {x: cuts.cuts[x].part for x in cuts.below(*outputs)}
    inputs = (*graph.params, *cuts.totals.values(), *cuts.lifted, *cuts.cuts)
    values, needs = needed(inputs, values, cuts, lowered)
    wanted, level = dict.fromkeys(outputs), dict[Node, int]()
    for x in reversed([*cuts.cuts]):
        if any(x in needs[y] for y in wanted):
            wanted[x] = None
    for x in [*cuts.cuts, *outputs]:
        if x in wanted:
            level[x] = max((level[y] + 1 for y in needs[x]), default=0)
    groups: dict[tuple[int, tuple[str, ...]], list[Node]] = {}
    for x in wanted:
        own = cuts.cuts[x].grid if x in cuts.cuts else axes_in(cuts.find(x))
        grid = tuple(axis for axis in axes if axis in own)
        groups.setdefault((level[x], grid), []).append(x)
    programs = []
    for (number, grid), made in sorted(groups.items()):
        given = {y for x in made for y in needs[x]}
        roots = without([values[x] for x in made], [x for x in cuts.cuts if x not in given])
        params = read_by(roots, graph.params)
        part = Graph(params, tuple(roots))
        run = Shipped(compiled(Graph(params, tuple(roots), Trace(part.lines()))))
        programs.append(Program(run, params, tuple(made), grid, number))
    return Plan(outputs, cuts, programs)


def needed(
    inputs: tuple[Node, ...], values: dict[Node, Node], cuts: Cuts, lowered: Lower
) -> tuple[dict[Node, Node], dict[Node, list[Node]]]:
    """The values, and the cuts that each is computed from.

    What derivatives need is known once they are expanded: that of a mean needs no mean. A cut of
    which every block has the part 0 is left out: that of a Hessian has some.
    """
    found = read([*values.values()], cuts.cuts)
    if not any(own for x, own in zip(values, found, strict=True) if x in cuts.cuts):
        return values, dict(zip(values, found, strict=True))
    zeros: list[Node] = []
    while True:
        roots = without([*values.values()], zeros)
        graph = Graph(inputs, roots)
        plain = lowered(Graph(inputs, roots, Trace(graph.lines())))
        more = [x for x, y in zip(values, plain.outputs, strict=True) if is_zero(cuts, x, y)]
        if not {*more} - {*zeros}:
            break
        zeros = more
    named = dict(zip(plain.params, inputs, strict=True))
    among = [x for x, old in named.items() if old in cuts.cuts]
    found = [[named[x] for x in own] for own in read(plain.outputs, among)]
    return dict(zip(values, roots, strict=True)), dict(zip(values, found, strict=True))


def is_zero(cuts: Cuts, x: Node, plain: Node) -> bool:
    """Whether all blocks add nothing to a cut, by what its part is in a plain graph."""
    zero = plain.op is leaf.full and plain.attrs["value"].item() == 0
    return zero and x in cuts.cuts and cuts.cuts[x].how == "add"


def read(roots: Sequence[Node], among: Any) -> list[list[Node]]:
    """The inputs among some that each value is computed from."""
    found = []
    for root in roots:
        below = set(toposort([root]))
        found.append([x for x in among if x in below])
    return found


def without(roots: Sequence[Node], absent: Sequence[Node]) -> tuple[Node, ...]:
    """Values that some inputs do not change, computed from zeros in place of these.

    Derivatives may be with respect to them, so each stays a value of its own.
    """
    zeros = {x: autodiff.barrier(full_like(x, 0), mark=i) for i, x in enumerate(absent)}
    return substitute(roots, zeros)


def read_by(roots: Sequence[Node], params: Sequence[Node]) -> tuple[Node, ...]:
    """The inputs that values are computed from, and more for sizes that these do not give."""
    found = dict.fromkeys(leaf.inputs_among(toposort(roots)))
    part = Graph((), tuple(roots))
    for name in sorted({name for x in part.every_node() for name in unknowns_of(x)}, key=str):
        if not any(gives(x, name) for x in found):
            found[size_input(name, params)] = None
    return tuple(found)


def size_input(name: str, params: Sequence[Node]) -> Node:
    """An input that gives an unknown size: the user's if it is a value, else one of `SIZES`."""
    if isinstance(name, ValueOf):
        return next(x for x in params if gives(x, name))
    type = TensorType(BOOL, (unknown(name),), (SIZES,))
    return leaf.param(Hidden(f"of size {name}"), type)


def gives(x: Node, name: str) -> bool:
    """Whether an input has a size on its own."""
    if isinstance(name, ValueOf):
        return name == ValueOf(x.attrs["name"]) and not x.type.shape
    return unknown(name) in x.type.shape


def require_pieces(y: Node, found: Axes) -> None:
    """Refuse a result of which blocks do not make one piece along a dim."""
    for dim, along in found.items():
        if along and (not isinstance(along[0], str) or any(isinstance(x, str) for x in along[1:])):
            what = f"{y.said} at {y.origin} has blocks along parts of dim {dim!r}"
            raise refused(what, "leave the dims apart, or stack the one with chunks alone or first")
