"""Which values are stored, and which of them are computed in one loop nest.

A value that is read at one place only, in one nest, is computed where it is read. Stored are the
outputs of the graph, the results of reductions, the values that machine code which stands alone
reads or writes, and all that costs more to compute again at another place than to keep.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from graphcore.ir import Graph, Node, Shape, Trait, TupleType, reached, unwrap
from graphcore.ir.sizes import count
from graphcore.ops import leaf
from graphcore.ops import tensor as t
from graphcore.schedule.order import Finds, finders, found_first, in_order

from .arithmetic import SCALAR
from .builder import WIDTH
from .flops import COSTS, flops
from .joins import is_of_slices
from .loop_axes import is_by_parts, long_axes, space
from .places import counts_through
from .reductions import FOLDS, REDUCTIONS, axes_of, is_small_product
from .routines import ALONE, operands_in_buffers, read_singly
from .rows import Chain, Pair, Rows, is_long
from .writer import Order

DEEPEST = 60
"""How many nodes may be computed from each other without one of them being stored."""
FRAMES = 6
"""The number of nodes that a reduction counts as there: several functions write it."""
MOST_STORED = 12
"""The most values that are stored in one nest: more streams slow each other down."""
READINGS = 16
"""The largest number of readers of a value that are distinguished."""

REPEATING = frozenset({t.expand, t.matvec, t.matmul, t.gather, t.overlap_add})
"""Ops that read a place of an operand many times."""
JOINED = frozenset({t.embed, t.overwrite, t.concat})
"""Ops whose place is looked for in their parts, which costs more than to read it from memory."""


class Nest(NamedTuple):
    """Values whose long axes agree, computed together at each place."""

    roots: list[Node]


class Check(NamedTuple):
    """The positions of a `gather` are checked, whether or not all of them are read."""

    node: Node


Step = Nest | Pair | Rows | Chain | Check | Node
"""A node is a loop, a branch, or machine code that stands alone."""


Shares = Mapping[Node | Check, bool]
"""The values whose steps threads share, and whether they do in every call."""


def first_of(step: Step) -> Node:
    """The node that a step computes, or the first of them."""
    if isinstance(step, Rows | Pair | Chain):
        return next(iter(step.made))
    return (
        step.roots[0] if isinstance(step, Nest) else step.node if isinstance(step, Check) else step
    )


def values_of(step: Step) -> Sequence[Node | Check]:
    """The nodes that a step computes; for a check of positions, the check itself."""
    if isinstance(step, Rows | Pair | Chain):
        return [*step.made]
    return step.roots if isinstance(step, Nest) else [step]


class Plan(NamedTuple):
    """The steps of a graph, and the values they store.

    `last` is the last step that reads each of these; outputs, and values that no step computes, are
    read until the end. `computed` are those that a nest or a routine stores where it is asked to.
    `elsewhere` are values that are stored only as others read them at several places: which ones,
    and whether many of them are read for one.
    """

    steps: list[Step]
    last: dict[Node, int]
    computed: set[Node]
    elsewhere: dict[Node, dict[object, bool]]


def walked(root: Node) -> Node:
    """The node whose places are walked to compute a root: stores move values, loads do not."""
    return root.inputs[0] if is_transposed(root) or counts_through(root) else root


def is_transposed(root: Node) -> bool:
    """Whether a root is walked in the order of its operand, of which it is the transpose.

    Windows that are copied with the places of each side by side read those side by side as well.
    """
    if root.op is not t.transpose:
        return False
    (seen,) = root.inputs
    if seen.op is not t.windows or len(root.type.shape) - 1 not in long_axes(root.type.shape):
        return True
    axes, last = seen.attrs["axes"], root.attrs["perm"][-1] - seen.attrs["axes"][0]
    runs = axes[-1] == seen.inputs[0].type.ndim - 1 and last == len(axes) - 1
    return not runs or seen.attrs["dilations"][-1] != 1


def space_of(root: Node) -> Shape:
    """The sizes of the loops in which a root is computed."""
    return space(walked(root).type.shape)


def keeps_place(node: Node) -> bool:
    """Whether each place is made of the same place of the operands, as far as long axes go."""
    if node.op in SCALAR:
        return True
    if is_alone(node):
        return False
    if is_product_of_few_rows(node):
        return True
    shape, attrs = node.type.shape, node.attrs
    long = set(long_axes(shape))
    if not shape or any(space(x.type.shape) != space(shape) for x in node.inputs):
        return False
    match node.op:
        case t.expand:
            return not set(attrs["axes"]) & long
        case t.transpose:
            before = long_axes(node.inputs[0].type.shape)
            return [attrs["perm"][axis] for axis in long_axes(shape)] == list(before)
        case t.slice_ | t.embed | t.overwrite:
            whole = node.inputs[0].type.shape if node.op is t.slice_ else shape
            part = shape if node.op is t.slice_ else node.inputs[-1].type.shape
            starts, steps = attrs["starts"], attrs["steps"]
            return all(starts[i] == 0 and steps[i] == 1 and part[i] == whole[i] for i in long)
        case t.concat:
            return attrs["axis"] not in long
        case t.reshape:
            before = node.inputs[0].type.shape
            return [n for n in shape if n != 1] == [n for n in before if n != 1]
    if is_short(node):
        return not set(reduced(node)) & set(long_axes(node.inputs[0].type.shape))
    return False


def is_product_of_few_rows(node: Node) -> bool:
    """Whether a small product of two matrices has one long axis, its columns."""
    if node.op is not t.matmul or not is_small_product(node) or node.type.ndim != 2:
        return False
    left, right = [x.type.shape for x in node.inputs]
    return not any(map(is_long, left)) and is_long(right[-1]) and long_axes(node.type.shape) == (1,)


def is_short(node: Node) -> bool:
    """Whether a reduction is of so few places that it is computed like arithmetic."""
    if node.op not in (t.sum_, t.max_, t.min_, t.vecdot, t.matvec):
        return False
    places = count(node.inputs[0].type.shape[axis] for axis in reduced(node))
    return isinstance(places, int) and 0 < places <= WIDTH


def reduced(node: Node) -> tuple[int, ...]:
    """The axes of the first operand that vanish."""
    if node.op in (t.vecdot, t.matvec):
        return (node.inputs[0].type.ndim - 1,)
    return axes_of(node)


def reduces(node: Node) -> bool:
    """Whether a node is a reduction with loops of its own."""
    return node.op in REDUCTIONS and not is_short(node) and not is_small_product(node)


def runs_along_memory(root: Node) -> bool:
    """Whether the lanes of a reduction run best along an axis that vanishes."""
    if not reduces(root):
        return False
    x = root.inputs[0]
    if root.op in (t.matvec, t.vecdot):
        return not (x.op is t.transpose and x.attrs["perm"][-1] != x.type.ndim - 1)
    return root.op is not t.overlap_add and x.type.ndim - 1 in axes_of(root)


def is_alone(node: Node) -> bool:
    """Whether a node is a step of its own: a loop, a branch or a routine."""
    several = isinstance(node.type, TupleType)
    return several or (node.op in ALONE and not is_small_product(node))


def operands(node: Node) -> Sequence[Node]:
    """The operands that a node reads: a routine may read a matrix as its transpose."""
    lying = operands_in_buffers(node) if is_alone(node) else ()
    if node.op is t.matmul and lying:
        return lying
    return [
        x.inputs[0] if x.op is t.transpose and x.inputs[0] in lying and x not in lying else x
        for x in node.inputs
    ]


def plan(
    graph: Graph,
    known: Collection[Node],
    order: Order | None = None,
    again: Mapping[Node, int] | None = None,
) -> Plan:
    """The nests of a graph, with its loops, branches and routines between them.

    No node that is `known`, and none that only these need, is computed. The nodes of `again` are
    computed wherever they are read, if so many places read them at most.
    """
    order = order or Order(in_order(graph.nodes()), frozenset())
    nodes, updates = needed(graph, order.nodes, known), order.updates
    held, elsewhere = stored(graph, nodes, known, updates, again or {})
    finds = finders(nodes)
    steps: list[Step] = []
    place: dict[Node, int] = {}
    last: dict[Node, int] = {}
    checked: set[tuple[object, ...]] = set()
    reading: dict[int, set[Node]] = {}

    def append(step: Step, given: Iterable[Node]) -> int:
        steps.append(step)
        read({y: None for x in given for y in held_below(x, held, finds)}, len(steps) - 1)
        return len(steps) - 1

    def read(stored: Iterable[Node], at: int) -> None:
        for x in stored:
            last[x] = max(last.get(x, 0), at)

    for node in nodes:
        if node in known or node.op in (leaf.project, leaf.constant):
            continue
        if node.op is t.gather:
            key = (*node.inputs[1:], *[node.inputs[0].type.shape[i] for i in node.attrs["axes"]])
            if key not in checked:
                checked.add(key)
                append(Check(node), node.inputs[1:])
        if is_alone(node) or node in updates:
            place[node] = append(node, operands(node))
        elif node in held:
            below = sources(node, held, finds)
            read_below = {x for x, _ in below}
            least = 0
            for x, same in below:
                if (at := place.get(unwrap(x, leaf.project), -1)) >= 0:
                    least = max(least, at if same and joinable(steps[at], node) else at + 1)
            later = range(len(steps) - 1, least - 1, -1)
            place[node] = at = next(
                (
                    at
                    for at in later
                    if joinable(steps[at], node)
                    or (folds_with(steps[at], node) and not read_below.isdisjoint(reading[at]))
                ),
                len(steps),
            )
            reading.setdefault(at, set()).update(read_below)
            if at == len(steps):
                steps.append(Nest([node]))
            else:
                joined = steps[at]
                assert isinstance(joined, Nest)
                joined.roots.append(node)
            read([x for x, _ in below], at)
    for node in place:  # a value that no step reads is given back at once, unless it is a result
        several = isinstance(node.type, TupleType)
        for x in leaf.values(node) if several else [node]:
            last.setdefault(x, place[node])
    last |= dict.fromkeys(graph.outputs, len(steps))
    return Plan(steps, last, set(place), elsewhere)


def needed(graph: Graph, nodes: Sequence[Node], known: Collection[Node]) -> Sequence[Node]:
    """The nodes of a graph in order that its outputs need where some are known."""
    wanted = set(graph.outputs)
    for node in reversed(nodes):
        if node in wanted and node not in known:
            wanted.update(node.inputs)
    return [node for node in nodes if node in wanted]


def joinable(step: Step, node: Node) -> bool:
    """Whether a step is a nest in whose loops a root may be computed as well."""
    if not isinstance(step, Nest):
        return False
    first = step.roots[0]
    if any(reduces(x) or is_by_parts(x) for x in (first, node)):
        return False
    return space_of(first) == space_of(node) and len(step.roots) < MOST_STORED


def folds_with(step: Step, node: Node) -> bool:
    """Whether a step is a nest of reductions with which another can be done in one walk."""
    if not isinstance(step, Nest) or not folds(node):
        return False
    first = step.roots[0]
    return folds(first) and all(
        how(first) == how(node) for how in (space_of, walk_of, runs_along_memory)
    )


def folds(node: Node) -> bool:
    """Whether a reduction can be done together with others."""
    return node.op in FOLDS and node.op is not t.prod and reduces(node)


def walk_of(node: Node) -> tuple[object, ...]:
    """The places that a reduction walks through, which of the axes vanish, and its lanes' size."""
    axes = () if node.op is t.matmul else reduced(node)
    return node.inputs[0].type.shape, axes, node.type.dtype.itemsize


def held_below(x: Node, held: set[Node], finds: Finds) -> list[Node]:
    """The stored values that an operand is computed from, or itself if it is stored."""
    if x in held or x.op is leaf.project:
        return [x]
    return [y for y, _ in sources(x, held, finds)]


def sources(node: Node, held: set[Node], finds: Finds) -> dict[tuple[Node, bool], None]:
    """The stored values, and loops that find sizes, below a node; whether at its own place."""
    found = {(loop, False): None for loop in found_first(node, finds)}
    stack = [(x, walked(node) is not node or keeps_place(node)) for x in node.inputs]
    seen = set(stack)
    while stack:
        x, same = stack.pop()
        if x in held or x.op is leaf.project or is_alone(x):
            found[x, same] = None
            continue
        found |= {(loop, False): None for loop in found_first(x, finds)}
        same = same and keeps_place(x)
        for y in x.inputs:
            item = (y, same)
            if item not in seen:
                seen.add(item)
                stack.append(item)
    return found


def readers(nodes: Sequence[Node], updates: Collection[Node]) -> set[Node]:
    """The nodes that read values which an update overwrites, and that later nodes need.

    They are stored before the update, unless the nodes that need them are.
    """
    place = {node: at for at, node in enumerate(nodes)}
    found: set[Node] = set()
    for update in updates:
        over, late = {update.inputs[0]}, place[update]
        waiting = [x for node in nodes[late:] for x in node.inputs if x is not update.inputs[0]]
        early = [x for x in unstored(waiting, updates) if place.get(x, late) < late]
        for node in nodes[:late]:
            if Trait.VIEW in node.op.traits and not over.isdisjoint(node.inputs):
                over.add(node)
        found.update([x for x in early if x not in over and not over.isdisjoint(x.inputs)])
    return found


def reads_what_it_overwrites(update: Node, updates: Collection[Node]) -> bool:
    """Whether an update computes its new values from the old ones while it overwrites these."""
    old = update.inputs[0]
    return any(old in (x, *x.inputs) for x in unstored(update.inputs[1:2], updates))


def unstored(waiting: Iterable[Node], updates: Collection[Node]) -> list[Node]:
    """These nodes and all nodes below them, down to nodes that are stored in any case."""

    def ends(x: Node) -> bool:
        return is_alone(x) or x in updates

    return [x for x in reached(waiting, lambda x: () if ends(x) else x.inputs) if not ends(x)]


def stored(
    graph: Graph,
    nodes: Sequence[Node],
    known: Collection[Node],
    updates: Collection[Node],
    again: Mapping[Node, int],
) -> tuple[set[Node], dict[Node, dict[object, bool]]]:
    """The nodes that get a buffer, or a register if small; and those read at several places."""
    elsewhere: dict[Node, dict[object, bool]] = {}
    cost: dict[Node, int] = {}
    depth: dict[Node, int] = {}
    held = readers(nodes, updates).union(graph.outputs, known, updates)
    moved: list[Node] = []
    for node in nodes:
        if node in known or node in updates or is_alone(node) or not node.inputs:
            cost[node] = depth[node] = 0
            continue
        below = sum([0 if is_before(x, cost[x]) else cost[x] for x in dict.fromkeys(node.inputs)])
        cost[node] = 1 if reduces(node) else min(below + flops(node), 10_000)
        depth[node] = (FRAMES if node.op in REDUCTIONS else 1) + max(depth[x] for x in node.inputs)
        if depth[node] > DEEPEST:
            held.add(node)
        if node in held:
            depth[node] = 0
    readings: dict[Node, dict[object, bool]] = {}
    for node in reversed(nodes):
        if node in known or node.op is leaf.project:
            continue
        if is_alone(node):
            held.update(operands_in_buffers(node))
            held.update([x for x in read_singly(node) if is_worth_lanes(x, cost[x])])
        if (is_alone(node) and not isinstance(node.type, TupleType)) or reduces(node):
            held.add(node)
        keys = readings.get(node, {})
        if is_alone(node) or reduces(node) or node in updates:
            keys = {node: False}
        elif node not in held and node.op is t.expand:
            if is_kept(node.inputs[0], cost[node], keys):  # which has fewer places
                held.add(node.inputs[0])
        elif node in held:
            keys = {space_of(node): False}
        elif of_many_places(node) and (
            cost[node] > COSTS.additions_again or node.inputs[0].op in JOINED
        ):
            held.add(node.inputs[0])
        elif is_kept(node, cost[node], keys) and len(keys) > again.get(node, 0):
            if is_moved(node):
                moved.append(node)
            else:
                elsewhere[node] = keys
            held.add(node)
            keys = {space_of(node): False}
        elif counts_through(node) and not is_free(node.inputs[0]):
            held.add(node.inputs[0])  # whose places are read without a division
        same = node not in updates and (
            keeps_place(node) or (node in held and walked(node) is not node)
        )
        for i, x in enumerate(operands(node)):
            if not x.inputs or x in known:
                continue
            own = readings.setdefault(x, {})
            for key in [*keys][:READINGS]:
                if same:
                    own.setdefault(key, False)
                else:
                    own[node, i, key] = node.op in REPEATING
                if is_short(node):
                    own[node, -1, key] = False
    for node in reversed(moved):
        if lies_stored(node, held):
            held.discard(node)
    return held, elsewhere


def is_worth_lanes(node: Node, cost: int) -> bool:
    """Whether it takes less to store a value, computed by lanes, than to compute it singly."""
    return cost > COSTS.additions_again and bool(node.inputs) and not is_before(node, cost)


def is_moved(node: Node) -> bool:
    """Whether a node is a part of one tensor, or a tensor rolled: reading it there is as cheap."""
    if node.op is t.slice_:
        return set(node.attrs["steps"]) <= {1}
    return (node.op is t.reshape and not counts_through(node)) or is_of_slices(node)


def lies_stored(node: Node, held: set[Node]) -> bool:
    """Whether a tensor that is moved by one operation, or two, can be read from where it lies."""
    node, rolls = node.inputs[0], int(node.op is t.concat)
    while node not in held and node.inputs and is_moved(node):
        node, rolls = node.inputs[0], rolls + (node.op is t.concat)
    return rolls <= 2 and (node in held or not node.inputs or node.op is leaf.project)


def of_many_places(node: Node) -> bool:
    """Whether a node is windows of many places: each place of its operand is read many times."""
    places = count(node.attrs["sizes"]) if node.op is t.windows else 0
    return not isinstance(places, int) or places > WIDTH


def is_before(node: Node, cost: int) -> bool:
    """Whether all that a value costs is computed before the loops that repeat it."""
    if node.op is not t.expand:
        return False
    return not node.inputs[0].type.shape or (cost > COSTS.additions_again and not keeps_place(node))


def is_free(node: Node) -> bool:
    """Whether a node is the same number everywhere, or stored anyway."""
    return not node.inputs or (node.op is t.expand and is_free(node.inputs[0]))


def is_kept(node: Node, cost: int, keys: dict[object, bool]) -> bool:
    """Whether it costs less to store a value than to compute it wherever it is read."""
    again = cost > COSTS.additions_again and any(keys.values())
    return bool(node.type.shape and node.inputs) and (
        again or cost * (len(keys) - 1) > COSTS.additions_again
    )
