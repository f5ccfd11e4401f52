"""Loops made one, made to remember what another needs, and rid of what nobody needs.

A derivative of a loop is built from the loop's own params and nodes. So whether two loops agree, or
whether one computes again what the other has computed, is a question of identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, NamedTuple

from graphcore.ir.graph import Graph, unknowns_of, with_graphs
from graphcore.ir.node import Attrs, Node, substitute, toposort
from graphcore.ir.provenance import inheriting
from graphcore.ir.sizes import Expression
from graphcore.ir.types import TensorType
from graphcore.ops import control, leaf, tensor

from .plain import refill

LOOPS = frozenset({control.scan, control.while_loop})
LEAVES = frozenset({leaf.full, leaf.constant, leaf.iota, leaf.extent})


class Loop(NamedTuple):
    """A loop taken apart: what each param stands for outside, and what each carry becomes.

    `steps` maps each result of a step, as the node had it, to what it is now.
    """

    node: Node
    attrs: dict[str, Any]
    start: dict[Node, Node]
    update: dict[Node, Node]
    walked: dict[Node, Node]
    captured: dict[Node, Node]
    steps: dict[Node, Node]

    @property
    def params(self) -> tuple[Node, ...]:
        """The params in order."""
        return (*self.start, *self.walked, *self.captured)

    @property
    def tests(self) -> tuple[Node, ...]:
        """What decides whether to go on."""
        predicate = self.attrs.get("predicate")
        return predicate.outputs if predicate else ()

    def role(self, param: Node) -> object:
        """What a param stands for, or None if it is none of this loop."""
        if param in self.start:
            return "carry", self.start[param], self.update[param]
        if param in self.walked:
            return "walked", self.walked[param]
        return ("captured", self.captured[param]) if param in self.captured else None

    @property
    def operands(self) -> tuple[Node, ...]:
        """What the params stand for."""
        return (*self.start.values(), *self.walked.values(), *self.captured.values())

    def build(self, operands: Iterable[Node]) -> Node:
        """The node of these parts on some operands."""
        attrs = self.attrs | {
            "carries": len(self.start),
            "body": Graph(self.params, (*self.update.values(), *self.steps.values())),
        }
        if self.node.op is control.while_loop:
            attrs["predicate"] = Graph(self.params, self.tests)
        else:
            attrs["sequences"] = len(self.walked)
        with inheriting(self.node.origin):
            return Node(self.node.op, tuple(operands), Attrs(attrs))


def apart(node: Node) -> Loop:
    """The parts of a loop."""
    body, n, m = node.attrs["body"], node.attrs["carries"], node.attrs.get("sequences", 0)
    given = list(zip(body.params, node.inputs, strict=True))
    return Loop(
        node,
        dict(node.attrs),
        dict(given[:n]),
        dict(zip(body.params[:n], body.outputs, strict=False)),
        dict(given[n : n + m]),
        dict(given[n + m :]),
        {y: y for y in body.outputs[n:]},
    )


def positions(loop: Loop) -> tuple[dict[Node, int], dict[Node, int]]:
    """Which result the last value of a carry is, by its param, and the values of a step."""
    carries = {param: i for i, param in enumerate(loop.start)}
    return carries, {y: i for i, y in enumerate(loop.steps, len(carries))}


def rebuild(graph: Graph, loops: dict[Node, Loop]) -> Graph:
    """The graph with loops replaced by others, of which several may have become one."""
    done: dict[Node, Node] = {}
    built: dict[int, Node] = {}
    place: dict[Node, tuple[dict[Node, int], dict[Node, int]]] = {}
    entered: set[Node] = set()
    for root in (*graph.params, *graph.outputs):
        stack = [root]
        while stack:
            node = stack[-1]
            loop = loops.get(node)
            needed = loop.operands if loop is not None else node.inputs
            if waiting := [x for x in needed if x not in done]:
                assert node not in entered, f"loops wait for each other at {node.origin}"
                entered.add(node)
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if loop is not None:
                if id(loop) not in built:
                    built[id(loop)] = new = loop.build([done[x] for x in needed])
                    place[new] = positions(loop)
                done[node] = built[id(loop)]
            elif node.op is leaf.project and node.inputs[0] in loops:
                (source,) = node.inputs
                body, i = source.attrs["body"], node.attrs["index"]
                carries, steps = place[done[source]]
                own = i < source.attrs["carries"]
                at = carries[body.params[i]] if own else steps[body.outputs[i]]
                done[node] = done[source][at].label(node.labels)
            else:
                done[node] = node.after(done)
    return Graph(tuple(done[x] for x in graph.params), tuple(done[x] for x in graph.outputs))


# ---- one loop of several


def merge_loops(graph: Graph) -> Graph:
    """Loops that take the same steps become one: a value and its derivative are computed once."""
    loops: dict[Node, Loop] = {}
    kept: list[Loop] = []
    for node in graph.nodes():
        if node.op not in LOOPS:
            continue
        new = apart(node)
        for loop in kept:
            if agree(loop, new) and not leads_to(loop, node, loops):
                if loop.attrs.get("trips", 0) is None:
                    loop.attrs["trips"] = new.attrs["trips"]
                loop.start.update(new.start)
                loop.update.update(new.update)
                loop.walked.update(new.walked)
                loop.captured.update(new.captured)
                loop.steps.update(new.steps)
                new = loop
                break
        else:
            kept.append(new)
        loops[node] = new
    return rebuild(graph, loops) if len(kept) < len(loops) else graph


def leads_to(loop: Loop, node: Node, loops: dict[Node, Loop]) -> bool:
    """Whether a node is made of what the loop computes.

    A loop made of several runs once all that any of them needs is there, so the walk down goes
    through the operands of all of them.
    """
    seen: set[Node] = set()
    stack = list(node.inputs)
    while stack:
        x = stack.pop()
        if x in seen:
            continue
        seen.add(x)
        if (other := loops.get(x)) is loop:
            return True
        stack.extend(x.inputs if other is None else other.operands)
    return False


def agree(a: Loop, b: Loop) -> bool:
    """Whether two loops take the same steps: what one carries the other carries as well."""
    ruled = ("length", "reverse", "checkpoint")
    if a.node.op is not b.node.op or a.tests != b.tests:
        return False
    if any(a.attrs.get(name) != b.attrs.get(name) for name in ruled):
        return False
    trips = {loop.attrs["trips"] for loop in (a, b) if loop.attrs.get("trips") is not None}
    if len(trips) > 1:
        return False
    if not (a.start.keys() <= b.start.keys() or b.start.keys() <= a.start.keys()):
        return False
    return all(b.role(param) in (None, a.role(param)) for param in a.params)


# ---- what is remembered


def save_for_pullbacks(graph: Graph) -> Graph:
    """What an earlier loop has computed at each step is remembered, not computed again."""
    loops = {node: apart(node) for node in graph.nodes() if node.op in LOOPS}
    order = list(loops)
    place = {node: i for i, node in enumerate(order)}
    walking: dict[Node, list[Node]] = {}
    for node, loop in loops.items():
        for x in loop.walked.values():
            walking.setdefault(x, []).append(node)
    for late in reversed(order):
        near = {x.inputs[0] for x in loops[late].walked.values() if x.op is leaf.project}
        for x in loops[late].walked.values():
            near.update(walking[x])
        for early in sorted(near & loops.keys(), key=place.__getitem__):
            if place[early] < place[late]:
                remember(loops, early, late)
    return rebuild(graph, loops)


def remember(loops: dict[Node, Loop], early: Node, late: Node) -> None:
    """Hand on what the body of `late` uses and that of `early` has computed already."""
    source, user = loops[early], loops[late]
    if early.attrs.get("trips", 0) is None:
        return
    shared = {p for p in user.params if stands_alike(loops, source, user, p)}
    outputs = (*user.update.values(), *user.steps.values())
    if not (found := frontier(early, outputs, shared, shared - user.captured.keys())):
        return
    source.steps.update({node: node for node in found if node not in source.steps})
    extended = source.build(source.operands)
    loops[extended] = source
    _, at = positions(source)
    new = {node: new_param(name, node) for name, node in zip(unused("saved", user.params), found)}
    user.walked.update({param: extended[at[node]] for node, param in new.items()})
    rewrite(user, new)


def stands_alike(loops: dict[Node, Loop], source: Loop, user: Loop, param: Node) -> bool:
    """Whether a param of `user` has at each step the value that it has in `source`."""
    if param in user.captured:
        return source.captured.get(param) is user.captured[param]
    if param not in user.walked:
        return False
    given = user.walked[param]
    if source.walked.get(param) is given:
        return True
    if given.op is not leaf.project or loops.get(given.inputs[0]) is not source:
        return False
    at, node = given.attrs["index"], given.inputs[0]
    return at >= node.attrs["carries"] and node.attrs["body"].outputs[at] is param


def frontier(
    early: Node, outputs: Iterable[Node], shared: set[Node], varying: set[Node]
) -> list[Node]:
    """The nodes nearest to `outputs` that `early` has computed, differing from step to step."""
    computed = set(early.attrs["body"].nodes())
    local = found_inside(early.attrs["body"])
    known, changing = set(shared), set(varying)
    for node in toposort(outputs):
        made = node.inputs and all(x in known or x.op in LEAVES for x in node.inputs)
        if made and node in computed:
            known.add(node)
            if not changing.isdisjoint(node.inputs):
                changing.add(node)
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in known and node.inputs:
            if node not in changing:
                continue  # the same at all steps: computed once, outside
            if worth_saving(node, local):
                found[node] = None
                continue
        stack.extend(node.inputs)
    return list(found)


def worth_saving(node: Node, local: set[str]) -> bool:
    """Whether a step's value can be remembered, and is no mere view of another."""
    return (
        isinstance(node.type, TensorType)
        and node.op not in tensor.VIEWS
        and not any(
            size.unknowns & local for size in node.type.shape if isinstance(size, Expression)
        )
    )


def found_inside(body: Graph) -> set[str]:
    """The numbers of trips that loops inside a body find out anew at each step."""
    found: set[str] = set()
    if control.while_loop not in body.ops():
        return found
    for node in body.every_node():
        if isinstance(trips := node.attrs.get("trips"), Expression):
            found |= trips.unknowns
    return found


def speaks_of(node: Node, local: set[str]) -> bool:
    """Whether a node speaks of one of the numbers that `found_inside` found."""
    return bool(local) and not local.isdisjoint(unknowns_of(node))


def unused(name: str, params: Iterable[Node]) -> Iterator[str]:
    """Names for new params beside others: `name 0`, `name 1`, ..."""
    taken = {param.attrs["name"] for param in params}
    return (numbered for i in count() if (numbered := f"{name} {i}") not in taken)


def new_param(name: str, node: Node) -> Node:
    """A param for the value of `node`."""
    type = node.type
    param: Node = leaf.input_(name=name, dtype=type.dtype, shape=type.shape, dims=None)
    return param.label(node.labels)


def rewrite(loop: Loop, new: dict[Node, Node]) -> None:
    """Replace nodes in the body of a loop."""
    if not new:
        return
    inside = (*loop.update.values(), *loop.steps.values(), *loop.tests)
    changed = dict(zip(inside, substitute(inside, new), strict=True))
    for part in (loop.update, loop.steps):
        part.update({key: changed[value] for key, value in part.items()})
    if loop.tests:
        tests = tuple(changed[test] for test in loop.tests)
        loop.attrs["predicate"] = Graph(loop.params, tests)


# ---- what nobody needs


def prune_loops(graph: Graph) -> Graph:
    """Results, carries and operands that nothing depends on are left out."""
    loops: dict[Node, Loop] = {}
    live = set(graph.outputs)
    for node in reversed(graph.nodes()):
        if node.op in LOOPS:
            used = [i for i in range(len(node.type.items)) if node[i] in live]
            if used:
                loops[node] = loop = needed(apart(node), used)
                live.update(loop.operands)
        elif node in live:
            live.update(node.inputs)
    return rebuild(graph, loops)


def needed(loop: Loop, used: Iterable[int]) -> Loop:
    """The loop with what the results `used` depend on, and nothing else."""
    n, outputs = loop.node.attrs["carries"], loop.node.attrs["body"].outputs
    inline(loop)
    steps = {outputs[i]: loop.steps[outputs[i]] for i in used if i >= n}
    starts = list(loop.start)
    carried = {starts[i] for i in used if i < n}
    while True:
        roots = (*loop.tests, *steps.values(), *(loop.update[p] for p in carried))
        reached = set(toposort(roots))
        more = reached.intersection(loop.start) - carried
        if not more:
            break
        carried |= more

    counting = counters(loop)
    if counting and reached.isdisjoint(counting):
        reached.add(
            counting[0]
        )  # who goes by a number of trips must lead to the loop that finds it

    def only(parts: dict[Node, Node], kept: set[Node]) -> dict[Node, Node]:
        return {param: value for param, value in parts.items() if param in kept}

    return loop._replace(
        start=only(loop.start, carried),
        update=only(loop.update, carried),
        walked=only(loop.walked, reached),
        captured=only(loop.captured, reached),
        steps=steps,
    )


def counters(loop: Loop) -> list[Node]:
    """The params that walk what was recorded by the loop whose trips this one counts."""
    length = loop.attrs.get("length")
    return [
        param
        for param, x in loop.walked.items()
        if x.op is leaf.project and x.inputs[0].attrs.get("trips", 0) is length
    ]


def inline(loop: Loop) -> None:
    """Constants that are handed to a body stand in it instead."""
    new = {p: x for p, x in loop.captured.items() if x.op is leaf.full}
    new |= {p: refill(x, x.type.shape[1:]) for p, x in loop.walked.items() if x.op is leaf.full}
    rewrite(loop, new)


def tidy_loops(graph: Graph) -> Graph:
    """All of it, and the same inside of loops and branches."""
    if LOOPS.isdisjoint(graph.ops()):
        return graph
    graph = prune_loops(save_for_pullbacks(merge_loops(prune_loops(graph))))
    done: dict[Node, Node] = {}
    for node in graph.nodes():
        inputs = tuple(done[x] for x in node.inputs)
        with inheriting(node.origin):
            done[node] = Node(node.op, inputs, with_graphs(node, tidy_loops)).label(node.labels)
    return Graph(tuple(done[x] for x in graph.params), tuple(done[x] for x in graph.outputs))
