"""Regions: nodes that run together as machine code, each region one `kernel` node.

The body of a kernel is a closed graph. Its params are numbered, so that equal regions, such as the
layers of a network, have equal bodies: a backend compiles each body once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from graphcore.ir import Graph, Node, Rule, Trait, TupleType, reached
from graphcore.ir.graph import bodies_of, has_effect, unknowns_of, with_bodies
from graphcore.ir.provenance import inheriting
from graphcore.ir.transform import keep_node, substitute, transform
from graphcore.ops import leaf
from graphcore.ops.schedule import kernel

from .buffers import is_result
from .order import finders, found_first, in_order, sizes_in, updates

Computes = Callable[[Node], bool]
"""Whether machine code computes a node, its bodies aside."""


class Region(NamedTuple):
    """A body, the values it is given, and the nodes that its outputs stand for."""

    body: Graph
    operands: tuple[Node, ...]
    outputs: tuple[Node, ...]


def with_kernels(graph: Graph, computes: Computes) -> Graph:
    """The graph whose nodes are kernels wherever there is machine code: the whole graph, or parts.

    The bodies of loops and branches that hold a node without machine code have kernels of their
    own.
    """
    if all(map(computes, graph.every_node())):
        return as_one(graph)
    return in_parts(graph, computes, ())


def as_one(graph: Graph) -> Graph:
    """A graph as one kernel, which is given the params and gives the outputs as they are."""
    if not graph.outputs:
        return graph
    with inheriting(graph.outputs[0]):
        whole = kernel(*graph.params, body=Graph(graph.params, graph.outputs))
    values = []
    for i, y in enumerate(graph.outputs):
        with inheriting(y):
            values.append(whole[i])
    return Graph(graph.params, tuple(values))


def in_parts(graph: Graph, computes: Computes, hosted: Collection[Node]) -> Graph:
    """A graph with kernels between the nodes that have no machine code, or are to be `hosted`."""

    def inside(node: Node, body: Graph) -> Graph:
        carried = zip(body.params, body.outputs[: node.attrs.get("carries", 0)], strict=False)
        own = {update for param, y in carried for update in updates(y, param)}
        return in_parts(body, computes, own)

    native: dict[Node, bool] = {}
    alone: list[list[Node]] = []
    for node in graph.nodes():
        held = [x for body in bodies_of(node) for x in body.every_node()]
        native[node] = node not in hosted and all(map(computes, (node, *held)))
        if native[node] and has_effect(node):  # a kernel at most of its own: the order stays
            native[node] = False
            alone += [[node]] if held else []
    for group in alone:
        group += [x for x in graph.nodes() if x.op is leaf.project and x.inputs[0] is group[0]]
    found = groups(graph, native) + alone
    while leaking := leaks(graph, found):
        native |= dict.fromkeys(leaking, False)
        alone = [group for group in alone if group[0] not in leaking]
        found = groups(graph, native) + alone
    return enclose(graph, [group for group in found if is_worth_it(group)], inside)


def is_given(node: Node) -> bool:
    """Whether a node is an operand of kernels that nothing computes."""
    return node.op in (leaf.input_, leaf.constant)


def is_repeated(node: Node) -> bool:
    """Whether a node costs nothing, so that each kernel that reads it, and the host, repeats it."""
    free = Trait.FREE in node.op.traits and node.op is not leaf.constant  # which lies in memory
    return free or (Trait.VIEW in node.op.traits and node.op is not leaf.project)


def groups(graph: Graph, native: Mapping[Node, bool]) -> list[list[Node]]:
    """The native nodes that can run together, in order."""
    nodes = in_order(graph.nodes())
    stage = late(nodes, stages(nodes, native), native)
    found: dict[int, list[Node]] = {}
    for node in nodes:
        if is_native(node, native):
            found.setdefault(stage[node], []).append(node)
    return [found[number] for number in sorted(found)]


def stages(nodes: Sequence[Node], native: Mapping[Node, bool]) -> dict[Node, int]:
    """The stage of each node: that of its operands, or the next where the host reads a kernel.

    The native nodes of one stage are one kernel: numbered so, no kernel waits for itself. An effect
    waits for the one before: otherwise it might need a kernel that needs a later effect.
    """
    finds, before = finders(nodes), list[Node]()
    stage: dict[Node, int] = {}
    after: dict[Node, int] = {}  # the stage of the nodes of the host that can read a node
    for node in nodes:
        needed = [*node.inputs, *found_first(node, finds)]
        if has_effect(node):
            needed += before[-1:]
            before.append(node)
        ready = max([after[x] for x in needed], default=0)
        if is_repeated(node) or is_native(node, native):
            stage[node] = max([stage[x] for x in needed], default=0)
            after[node] = ready if is_repeated(node) else stage[node] + 1
        else:
            stage[node] = after[node] = ready
    return stage


def late(
    nodes: Sequence[Node], stage: dict[Node, int], native: Mapping[Node, bool]
) -> dict[Node, int]:
    """The same stages, but nodes computed from params and leaves alone wait until they are read."""
    if finders(nodes):  # which compute sizes that are read as well
        return stage
    early: set[Node] = set()
    for node in nodes:
        may = is_given(node) or is_repeated(node) or (native[node] and not bodies_of(node))
        if may and early.issuperset(node.inputs):
            early.add(node)
    read: dict[Node, int] = {}
    for node in reversed(nodes):
        if is_repeated(node):
            reads = read.get(node)
        else:
            if node in early:
                stage[node] = read.get(node, stage[node])
            reads = stage[node] if is_native(node, native) else stage[node] - 1
        if reads is not None:
            read.update((x, min(reads, read.get(x, reads))) for x in node.inputs)
    return stage


def is_native(node: Node, native: Mapping[Node, bool]) -> bool:
    """Whether a kernel can compute a node; what projects it goes where several values are."""
    if node.op is leaf.project:
        return native[node.inputs[0]]
    return native[node] and not is_given(node) and not is_repeated(node)


def sizes_read(node: Node) -> set[str]:
    """The unknown sizes in a node and in its operands, which may be views of others."""
    views = reached(node.inputs, lambda x: x.inputs if is_repeated(x) else ())
    return sizes_in(node).union(*map(unknowns_of, views))


def leaks(graph: Graph, groups: Sequence[Collection[Node]]) -> list[Node]:
    """The loops in groups that find a size which is needed elsewhere: they have to run on the host.

    All loops that find one size, and all nodes that need it, are in one group, or no such loop is
    in any.
    """
    finds = finders(graph.nodes())
    if not finds:
        return []
    number = {node: i for i, group in enumerate(groups) for node in group}
    outputs = {*graph.outputs}
    needed: dict[str, set[int | None]] = {name: set() for name in finds}  # None: on the host
    for node in graph.nodes():
        for name in sizes_read(node) & finds.keys():
            if node in outputs and (is_repeated(node) or name in unknowns_of(node)):
                needed[name].add(None)
            if not is_repeated(node):
                needed[name].add(number.get(node))
    apart = [loop for name, loops in finds.items() if len(needed[name]) > 1 for loop in loops]
    return [loop for loop in dict.fromkeys(apart) if loop in number]


def is_worth_it(group: Sequence[Node]) -> bool:
    """Whether a group is more than one call into NumPy, or a few operations on single numbers."""
    work = 0.0
    for node in group:
        if bodies_of(node):
            return True
        if node.op is not leaf.project:
            single = all(map(is_number, (node, *node.inputs)))
            work += 0.1 if single else 1
    return work >= 2


def is_number(node: Node) -> bool:
    """Whether the value of a node is a single number: neither an array nor several values."""
    return not isinstance(node.type, TupleType) and not node.type.shape


def bases(nodes: Iterable[Node]) -> list[Node]:
    """The values that nodes are computed from through views alone, in order of first use."""
    found: dict[Node, None] = {}
    waiting = [*nodes][::-1]
    while waiting:
        x = waiting.pop()
        if is_repeated(x):
            waiting += x.inputs[::-1]
        else:
            found[x] = None
    return list(found)


def operands_of(nodes: Collection[Node]) -> list[Node]:
    """The values that a region of these nodes is given, in order of first use."""
    own = {*nodes}
    return [x for x in bases([x for node in nodes for x in node.inputs]) if x not in own]


def body_of(operands: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """The closed graph from operands to outputs, with params that only their number tells apart."""
    done = {
        x: leaf.input_(name=f"operand{i}", dtype=x.type.dtype, shape=x.type.shape, dims=None)
        for i, x in enumerate(operands)
    }
    params = tuple(done.values())
    return Graph(params, substitute(outputs, done))


def regions(graph: Graph, groups: Iterable[Sequence[Node]]) -> list[Region]:
    """The regions of groups of nodes of a graph."""
    chosen = [({*group}, operands_of(group)) for group in groups]
    inside = {node for own, _ in chosen for node in own}
    rest = [x for node in graph.nodes() if not is_held(node, inside) for x in node.inputs]
    read = {*bases([*rest, *graph.outputs])}.union(*[operands for _, operands in chosen])
    bodies: dict[Graph, Graph] = {}
    found = []
    for (_, operands), group in zip(chosen, groups, strict=True):
        outputs = tuple([y for y in group if y in read])
        body = body_of(operands, outputs)
        found.append(Region(bodies.setdefault(body, body), tuple(operands), outputs))
    return found


def is_held(node: Node, inside: Collection[Node]) -> bool:
    """Whether a node is computed in a kernel, or repeated by each of its readers."""
    return node in inside or is_repeated(node)


def enclose(
    graph: Graph, groups: Sequence[Sequence[Node]], inside: Callable[[Node, Graph], Graph]
) -> Graph:
    """The graph with one kernel node for each group; `inside` changes other bodies."""
    found = regions(graph, groups)
    place = {y: (region, i) for region in found for i, y in enumerate(region.outputs)}

    def operands(node: Node) -> tuple[Node, ...]:
        return place[node][0].operands if node in place else node.inputs

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node in place:
            region, i = place[node]
            return enclose, kernel(*inputs, body=region.body)[i]
        attrs = with_bodies(node, partial(inside, node))
        return None if attrs is node.attrs else (enclose, Node(node.op, inputs, attrs))

    return transform(graph, visit, operands=operands)


def without_kernels(graph: Graph) -> Graph:
    """The same graph with the nodes of every kernel's body in its place."""
    if kernel not in graph.ops():
        return graph
    inlined = inline(graph, {})
    return Graph(inlined.params, inlined.outputs, graph.trace)


def inline(graph: Graph, done: dict[Node, Node]) -> Graph:
    """The graph without kernels, and in `done` what takes the place of each node."""

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node.op is kernel:
            body = without_kernels(node.attrs["body"])
            values = substitute(body.outputs, dict(zip(body.params, inputs, strict=True)))
            return without_kernels, leaf.tuple_(*values)
        return None

    return transform(graph, visit, bodies=without_kernels, done=done)


def stands_for(node: Node) -> Node:
    """The node of the graph without kernels that a node stands for: the one a kernel computes."""
    if not is_result(node):
        return node
    called = node.inputs[0]
    return in_place(called)[called.attrs["body"].outputs[node.attrs["index"]]]


def in_place(called: Node) -> Mapping[Node, Node]:
    """The nodes of the graph without kernels that the nodes in the body of a kernel stand for.

    Nodes inside of the body, such as in that of a loop, stand for themselves.
    """
    became: dict[Node, Node] = {}
    body, operands = inline(called.attrs["body"], became), without_kernels(Graph((), called.inputs))
    done = dict(zip(body.params, operands.outputs, strict=True))
    transform(body, keep_node, at=(), done=done)
    return {node: done[new] for node, new in became.items() if new in done} | done


def sizes_needed(body: Graph) -> tuple[str, ...]:
    """The unknown sizes that a body has to be given: all but those that its loops find."""
    named = dict.fromkeys(
        name for node in body.every_node() for name in sorted(unknowns_of(node), key=repr)
    )
    found = finders(body.every_node())
    return tuple([name for name in named if name not in found])
