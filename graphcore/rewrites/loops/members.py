"""Regions of a graph that compute each member of a batch from this member alone.

Such a region is a batched `while_loop`, all loops that read what it records of its steps, and the
nodes between these. Only sums over members may leave it that are no values of members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphcore.analysis.batch_axes import BatchAxes, Place, Slot
from graphcore.analysis.cost import representative
from graphcore.analysis.values import is_zero
from graphcore.ir import Graph, Node, Size, Trait, toposort
from graphcore.ir.axes import Inserts, Joins, Permutes, Pointwise, Ranges, Reduces, Reshapes
from graphcore.ir.graph import WITH_BODIES
from graphcore.ir.op import may_raise
from graphcore.ops import control, elementwise, leaf, tensor
from graphcore.ops.control import LOOPS, Carry, Loop
from graphcore.rewrites.plain import transpose

from . import view

KINDS = (Pointwise, Inserts, Joins, Permutes, Ranges, Reduces, Reshapes)
"""Ops that compute the same bits as quickly for some members as for all."""


class Region(NamedTuple):
    """Loops and the nodes between them; `size` members lie along the `batch` axis."""

    loop: Node
    nodes: Sequence[Node]
    outputs: Sequence[Node]
    """Those that are used outside."""
    masks: Mapping[Node, Node]
    """For each `while_loop` what says which members go on."""
    axes: BatchAxes
    batch: Slot
    size: Size

    def axis(self, node: Node, place: Place = None) -> int | None:
        """The axis along which members lie; None if the value is the same for all members."""
        return self.axes.axis(node, place, self.batch)

    def is_sum(self, node: Node, place: Place = None) -> bool:
        """Whether a node is a sum over all members."""
        over = node.attrs["axes"] if node.op is tensor.sum_ else ()
        return any(self.axis(x, place) in over for x in node.inputs)


def region_of(loop: Node, graph: Graph) -> Region | None:
    """The region of a batched loop; None if members may mix in it, or if there are none."""
    nodes = region_nodes(loop, graph)
    inside = set(nodes)
    masks = {x: mask for x in nodes if x.op is control.while_loop and (mask := mask_of(Loop.of(x)))}
    if loop not in masks:
        return None
    uses = [x for y in graph.nodes() if y not in inside for x in y.inputs]
    outputs = [x for x in dict.fromkeys([*uses, *graph.outputs]) if x in inside]
    axes, mask = BatchAxes(nodes), masks[loop]
    shape = mask.type.shape
    for axis in sorted(range(len(shape)), key=lambda axis: -representative(shape[axis])):
        slot = loop, mask, axis
        found = Region(loop, nodes, outputs, masks, axes, slot, shape[axis])
        if all(is_apart(x, found) for x in nodes) and may_leave(found):
            return found
    return None


def region_nodes(loop: Node, graph: Graph) -> list[Node]:
    """A loop, what depends on its number of steps, all results of loops, and nodes between."""
    found: list[Node] = []
    inside = {loop}
    while len(inside) > len(found):
        found = [x for x in graph.nodes() if x in inside]
        names = set().union(*map(trip_counts, found))
        core = {x for x in graph.nodes() if x is loop or depend_on((x, *x.inputs), names)}
        above = set(toposort(core))
        inside = set(core)
        for x in graph.nodes():
            if (x in above or x.op is leaf.project) and not inside.isdisjoint(x.inputs):
                inside.add(x)
    return found


def trip_counts(node: Node) -> frozenset[str]:
    """The names of the unknown number of steps of a loop."""
    trips = node.attrs.get("trips")
    return frozenset() if trips is None else trips.unknowns


def depend_on(nodes: Sequence[Node], names: set[str]) -> bool:
    """Whether the type or the attrs of one of some nodes contain one of some unknown sizes."""
    return any(view.depends_on(node, names) for node in nodes)


def mask_of(loop: Loop) -> Node | None:
    """What says of each member whether it goes on; the carries of those that do not stay."""
    going, found = loop.condition, None
    while going is not None and going.op is tensor.any_:
        (going,) = going.inputs
        if all(stays(carry, going) for carry in loop.carries):
            found = going
    return found


def stays(carry: Carry, going: Node) -> bool:
    """Whether a carry stays as it is where a member does not go on."""
    return where_stopped(carry.update, going) is carry.param


def where_stopped(x: Node, going: Node) -> Node:
    """The value that `x` has where a member does not go on."""
    if x.op is tensor.transpose:
        return transpose(where_stopped(x.inputs[0], going), x.attrs["perm"])
    if x.op is elementwise.add:  # of a choice, the derivative is a sum of two choices
        parts = [y for y in (where_stopped(y, going) for y in x.inputs) if not is_zero(y)]
        return parts[0] if len(parts) == 1 else x
    if x.op is elementwise.where:
        mask, chosen, other = x.inputs
        stopped = where_stopped(other, going)
        if going in conditions(mask) or where_stopped(chosen, going) is stopped:
            return stopped
    return x


def conditions(mask: Node) -> list[Node]:
    """Masks that hold for each member for which a mask holds."""
    through = {tensor.expand, tensor.transpose, elementwise.logical_and, elementwise.bitwise_and}
    parts = mask.inputs if mask.op in through else ()
    return [mask, *(one for x in parts for one in conditions(x))]


def is_apart(node: Node, region: Region, place: Place = None) -> bool:
    """Whether a node computes each member from this member alone, and outside nobody notices it."""
    if place is None and node.op in LOOPS:
        return loop_is_apart(node, region)
    if place is None and (node.op is leaf.project or region.is_sum(node)):
        return True
    if node.op.dialect in WITH_BODIES or Trait.EFFECT in node.op.traits or may_raise(node):
        return False
    own = region.axis(node, place)
    if own is None:
        return all(region.axis(x, place) is None for x in node.inputs)
    if not node.inputs:
        return node.op in (leaf.input_, leaf.full)
    alike = node.type.shape[own] == region.size and isinstance(node.op.axes, KINDS)
    return alike and region.axes.is_apart(node, place, region.batch)


def loop_is_apart(node: Node, region: Region) -> bool:
    """Whether each member takes the steps of a loop by itself; a scan may add sums over members."""
    loop, adding = Loop.of(node), set[Node]()
    roots = list(loop.results)
    for carry in loop.carries:
        if region.axis(carry.param, node) is not None:
            roots.append(carry.update)
            continue
        if carry.start in region.nodes:
            return False
        if carry.update is carry.param:
            continue
        terms = terms_of(carry.update)
        sums = [x for x in terms if region.is_sum(x, node)]
        if loop.condition is not None or [x for x in terms if x not in sums] != [carry.param]:
            return False
        adding |= {carry.param, *sums, *added_in(carry.update)}
    if loop.condition is not None:
        if (mask := region.masks.get(node)) is None:
            return False
        adding |= set(toposort([loop.condition])) - set(toposort([mask]))
        roots.append(mask)
    below = toposort([*roots, *(x for y in adding if region.is_sum(y, node) for x in y.inputs)])
    return adding.isdisjoint(below) and all(is_apart(x, region, node) for x in below)


def terms_of(x: Node) -> list[Node]:
    """The terms of a sum of several."""
    return [y for part in x.inputs for y in terms_of(part)] if x.op is elementwise.add else [x]


def added_in(x: Node) -> list[Node]:
    """The additions of a sum of several."""
    return [x, *(y for part in x.inputs for y in added_in(part))] if x.op is elementwise.add else []


def is_total(x: Node, region: Region) -> bool:
    """Whether a value outside of loops is a sum over all members."""
    carried = x.op is leaf.project and x.attrs["index"] < len(Loop.of(x.inputs[0]).carries)
    return region.is_sum(x) or (carried and region.axis(x) is None)


def may_leave(region: Region) -> bool:
    """Whether only values of members and sums over them are used outside, and sums nowhere else."""
    totals = {x for x in region.nodes if is_total(x, region)}
    own = all(y in totals or region.axis(y) is not None for y in region.outputs)
    return own and not any(x in totals for node in region.nodes for x in node.inputs)
