"""Axes as they lie: values that are computed of each other, element by element, have one order.

The dims of a result come in the order in which its operands are written: `p * x` of p[z] and
x[row, z] is [z, row]. That need not be the order in which operands lie and results are stored. So
the members of a group all get the order in which transposes cost least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from graphcore.ir import Graph, Node, Rule
from graphcore.ir.axes import Reduces, at
from graphcore.ir.transform import transform
from graphcore.ops import leaf, tensor

from .einsums import sum_axes
from .engine import RuleSet, simplify
from .loops.view import inside_as_well
from .motion import in_order
from .plain import Axes, expand, other_axes, transpose
from .tidy import tidy

as_they_lie = RuleSet()

MOVES = frozenset({tensor.slice_, tensor.embed, tensor.concat})
"""Ops that compute with axes in any order, as elementwise ones do."""
ROUNDS = 4
"""The most times that groups are looked for."""
MATRICES = {tensor.matmul: 2, tensor.matvec: 1}
"""How many operands of a product are matrices, which it reads as their transposes as well."""


class End(NamedTuple):
    """A value that a group reads, or one of its own as others read it: the group's axes of it.

    The last `free` of them may have any order.
    """

    value: Node
    axes: Axes
    is_result: bool = False
    free: int = 0

    def cost(self, order: Axes) -> int:
        """What a transpose costs, if it has its axes in another order than the group.

        Reads that are far apart cost more than stores of results, which can be tiled. One place has
        no order.
        """
        own = [axis for axis, n in zip(self.axes, self.value.type.shape, strict=True) if n != 1]
        held = [axis for axis in own if axis in self.axes[: len(self.axes) - self.free]]
        there = [axis for axis in order if axis in own]
        if held == there[: len(held)]:
            return 0
        return 2 if self.is_result or own[-1] == there[-1] else 3


class Group(NamedTuple):
    """Nodes that are computed of each other: which axes of the group those of each member are.

    `large` are its ends, `small` those that it reads repeated along further axes. `over` has the
    axes over which members are reduced, and `transposes` what each transpose costs now.
    """

    members: dict[Node, Axes]
    large: set[End]
    small: set[End]
    over: list[Axes]
    transposes: dict[Node, int]

    def best_order(self) -> Axes | None:
        """The order in which transposes cost least, if that is less than now.

        Of several it is one in which reductions run along memory, then that of most members.
        """

        def cost(order: Axes) -> tuple[int, ...]:
            across = sum(order[-1] not in axes for axes in self.over)
            return (
                sum(end.cost(order) for end in self.large),
                sum(end.cost(order) > 0 for end in self.small) + across,
                sum(axes != order for axes in self.members.values()),
            )

        found = {*self.members.values(), *(end.axes for end in self.large)}
        best = min(sorted(found), key=cost)
        return best if cost(best)[0] < sum(self.transposes.values()) else None


def align_axes(graph: Graph) -> Graph:
    """The graph whose elementwise values have their axes in the order of what lies in memory.

    A group in another order shows others another order, where its reductions are read.
    """
    rules = as_they_lie | tidy
    for _ in range(ROUNDS):
        if (new := align_once(graph)) is graph:
            break
        graph = simplify(new, rules)
    return graph


@as_they_lie.on(tensor.matvec, under=[tensor.transpose])
def product_as_it_lies(node: Node) -> Node | None:
    """transpose(x) @ v = sum(x * v) where x would be copied, as its last axis is of the batch"""
    x, v = node.inputs
    rank = x.type.ndim
    if x.op is not tensor.transpose or rank == 2:
        return None
    perm = x.attrs["perm"]
    if perm.index(rank - 1) >= rank - 2 or x.inputs[0].type.shape[-1] == 1:
        return None
    back = [perm.index(axis) for axis in range(rank)]
    repeated = expand(v, [rank - 2], x.type.shape)
    summed = perm[-1]
    found = sum_axes(x.inputs[0] * transpose(repeated, back), [summed])
    left = other_axes((summed,), rank)
    return transpose(found, [left.index(axis) for axis in perm[:-1]])


@as_they_lie.on(tensor.scatter, tensor.scatter_prod)
def scatter_to_rows(node: Node) -> Node | None:
    """scatter(u, i) to columns = transpose(scatter(u, i) to rows): updates lie side by side"""
    axes, rank = node.attrs["axes"], node.type.ndim
    left = other_axes(axes, rank)
    if rank - 1 not in axes or all(node.type.shape[axis] == 1 for axis in left):
        return None
    order = *axes, *left
    shape = tuple([node.type.shape[axis] for axis in order])
    made = node.op(*node.inputs, axes=tuple(range(len(axes))), shape=shape)
    if node.labels is not None:
        made = made.label(tuple([node.labels[axis] for axis in order]))
    return transpose(made, [order.index(axis) for axis in range(rank)])


@as_they_lie.on(tensor.gather, under=[tensor.transpose])
def gather_of_rows(node: Node) -> Node | None:
    """transpose(x)[:, i] = x[i], where the values at a position lie side by side in x"""
    x, *positions = node.inputs
    if x.op is not tensor.transpose:  # only positions are transposed
        return None
    perm, axes = x.attrs["perm"], node.attrs["axes"]
    left = [perm[axis] for axis in other_axes(axes, len(perm))]
    if left != sorted(left) or len(perm) - 1 not in left or len(perm) - 1 not in axes:
        return None
    return tensor.gather(x.inputs[0], *positions, axes=tuple(perm[axis] for axis in axes))


def align_once(graph: Graph) -> Graph:
    """The graph with the groups there are in their best orders."""
    if tensor.transpose not in graph.ops():
        return inside_as_well(align_axes, graph) if graph.bodies() else graph
    perms: dict[Node, Axes] = {}
    for group in groups(graph):
        if (order := group.best_order()) is not None:
            for node, axes in group.members.items():
                perms[node] = tuple(map(axes.index, order))

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        perm = perms.get(node, ())
        if perm == tuple(range(len(perm))):
            return None
        return align_axes, in_order(node, [transpose(x, perm) for x in inputs], perm)

    return transform(graph, visit, bodies=align_axes)


def groups(graph: Graph) -> Iterator[Group]:
    """The groups of a graph with transposes, each from its first member on."""
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes():
        for x in dict.fromkeys(node.inputs):
            readers.setdefault(x, []).append(node)
    seen = set[Node]()
    for node in graph.nodes():
        if is_member(node) and node not in seen:
            group = Group({node: tuple(range(node.type.ndim))}, set(), set(), [], {})
            waiting = [node]
            while waiting:
                member = waiting.pop()
                waiting += read(member, group)
                waiting += shown(member, group, readers, graph.outputs)
            seen.update(group.members)
            if group.transposes:
                yield group


def is_member(node: Node) -> bool:
    """Whether a node is computed of elements that stand like its own, in any order of axes."""
    return (node.op.pointwise or node.op in MOVES) and node.type.ndim > 1


def read(member: Node, group: Group) -> list[Node]:
    """The new members that a member reads; other operands are ends of the group."""
    axes, new = group.members[member], []
    for x in member.inputs:
        end = lying(x, axes)
        source = end.value
        if source.op is tensor.expand:
            kept = other_axes(source.attrs["axes"], len(axes))
            group.small.add(lying(source.inputs[0], [end.axes[axis] for axis in kept]))
            continue
        if is_member(source):
            if source not in group.members:
                group.members[source] = end.axes
                new.append(source)
            elif group.members[source] != end.axes:  # as of x + xᵀ: a transpose in any order
                continue
        elif source.op is leaf.full:
            continue
        else:
            group.large.add(end)
        if source is not x and (cost := end.cost(axes)):
            group.transposes[x] = cost
    return new


def lying(x: Node, axes: Sequence[int]) -> End:
    """The operand of a transpose, or the value itself, where x has these axes."""
    if x.op is not tensor.transpose:
        return End(x, tuple(axes))
    perm = x.attrs["perm"]
    own = tuple([axes[perm.index(axis)] for axis in range(len(perm))])
    return End(x.inputs[0], own)


def rows_read(reader: Node, axes: Axes) -> End:
    """What a gather reads best: its positions along the first axes, as `gather_of_rows` lets it."""
    x, *_ = reader.inputs
    along = reader.attrs["axes"]
    left = other_axes(along, len(axes))
    order = (*along, *left) if len(left) == 1 else tuple(range(len(axes)))
    return End(transpose(x, order), tuple([axes[axis] for axis in order]))


def shown(
    member: Node, group: Group, readers: Mapping[Node, Sequence[Node]], results: Sequence[Node]
) -> list[Node]:
    """The new members that read a member; where others do, there is an end of the group."""
    axes, new = group.members[member], []
    for x in (member, *[x for x in readers.get(member, ()) if x.op is tensor.transpose]):
        own = axes if x is member else tuple([axes[axis] for axis in x.attrs["perm"]])
        ends = [End(x, own, is_result=True)] if x in results else []
        for reader in readers.get(x, ()):
            if isinstance(reader.op.axes, Reduces):
                over = at(x.type, reader.attrs[reader.op.axes.attr])
                group.over.append(tuple([own[axis] for axis in over]))
            elif is_member(reader):
                if reader not in group.members:
                    group.members[reader] = own
                    new.append(reader)
            elif reader.op is tensor.gather and x is reader.inputs[0]:
                ends.append(rows_read(reader, own))
            elif reader.op not in (tensor.transpose, tensor.expand):
                is_matrix = x in reader.inputs[: MATRICES.get(reader.op, 0)]
                ends.append(End(x, own, free=2 if is_matrix else 0))
        group.large.update(ends)
        if cost := max([end.cost(axes) for end in ends], default=0):
            group.transposes.setdefault(x, cost)
    return new
