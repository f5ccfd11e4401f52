"""Loops that take the same steps are merged, record values for later ones, and lose dead parts.

A derivative of a loop is built from the loop's own params and nodes. So whether two loops agree, or
whether one computes again what the other has computed, is a question of identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graphcore.ir import Expression, Graph, Node, TensorType, Trait, reached, toposort
from graphcore.ir.provenance import inheriting
from graphcore.ops import leaf
from graphcore.ops.control import LOOPS, Carry, Loop, LoopOperand
from graphcore.rewrites.plain import refill

from . import view
from .zeros import zeros_known


def tidy_bodies(graph: Graph) -> Graph:
    """`tidy_body`, applied to the body of every loop and branch."""
    return view.inside_as_well(tidy_body, graph)


def tidy_body(graph: Graph) -> Graph:
    """Loops that agree become one, later loops read values that earlier ones computed.

    Results, carries and operands that nothing needs are dropped.
    """
    if LOOPS.isdisjoint(graph.ops()):
        return graph
    return tidy_bodies(save_for_pullbacks(merge_loops(prune_loops(graph))))


# ---- one loop of several


def merge_loops(graph: Graph) -> Graph:
    """Loops that take the same steps become one: a value and its derivative are computed once."""
    loops: dict[Node, Loop] = {}
    keys: dict[Node, Node] = {}
    for node in graph.nodes():
        if node.op not in LOOPS:
            continue
        new = Loop.of(node)
        keys[node] = node
        for key, loop in loops.items():
            if agree(loop, new) and not leads_to(key, node, loops, keys):
                keys[node], new = key, join_loops(loop, new)
                break
        loops[keys[node]] = new
    if len(loops) == len(keys):
        return graph
    return view.with_loops(
        graph, loops, {node: moved_results(node, key, loops) for node, key in keys.items()}
    )


def join_loops(a: Loop, b: Loop) -> Loop:
    """The loop that makes the steps of two that agree."""
    settings = a.settings
    if settings.get("trips", 0) is None:
        settings = {**settings, "trips": b.settings["trips"]}
    return a._replace(
        settings=settings,
        carries=tuple(dict.fromkeys((*a.carries, *b.carries))),
        sequences=tuple(dict.fromkeys((*a.sequences, *b.sequences))),
        captured=tuple(dict.fromkeys((*a.captured, *b.captured))),
        results=tuple(dict.fromkeys((*a.results, *b.results))),
    )


def moved_results(node: Node, key: Node, loops: Mapping[Node, Loop]) -> view.Moved:
    """The indices of the results of a loop among those of the merged loop."""
    old, new = Loop.of(node), loops[key]
    carries = {carry: i for i, carry in enumerate(new.carries)}
    results = {y: i for i, y in enumerate(new.results, len(carries))}
    found = [*[carries[carry] for carry in old.carries], *[results[y] for y in old.results]]
    return view.Moved(key, dict(enumerate(found)))


def leads_to(
    first: Node, node: Node, loops: Mapping[Node, Loop], keys: Mapping[Node, Node]
) -> bool:
    """Whether a node depends on the loop that takes the place of `first`.

    A loop made of several runs once all operands of all of them are there.
    """
    found = reached(node.inputs, lambda x: loops[keys[x]].operands.all if x in keys else x.inputs)
    return any(keys.get(x) is first for x in found)


def agree(a: Loop, b: Loop) -> bool:
    """Whether two loops take the same steps: a param of both stands for the same in both."""
    names = ("length", "reverse", "checkpoint")
    if a.op is not b.op or a.condition is not b.condition:
        return False
    if any(a.settings.get(name) != b.settings.get(name) for name in names):
        return False
    trips = {loop.settings["trips"] for loop in (a, b) if loop.settings.get("trips") is not None}
    if len(trips) > 1:
        return False
    carried, also = set(a.params.carries), set(b.params.carries)
    if not (carried <= also or also <= carried):
        return False
    stands_for, as_well = roles(a), roles(b)
    return all(as_well.get(param, role) == role for param, role in stands_for.items())


def roles(loop: Loop) -> dict[Node, tuple[str, Carry | LoopOperand]]:
    """The value that each param of a loop stands for."""
    groups: dict[str, tuple[Carry | LoopOperand, ...]]
    groups = {"carry": loop.carries, "sequence": loop.sequences, "captured": loop.captured}
    return {x.param: (name, x) for name, group in groups.items() for x in group}


# ---- values recorded for later loops


def save_for_pullbacks(graph: Graph) -> Graph:
    """Values that an earlier loop has computed at each step are recorded, not computed again.

    Parts of loops that nothing depends on any more are left out.
    """
    loops = {node: Loop.of(node) for node in graph.nodes() if node.op in LOOPS}
    keys = {node: node for node in loops}
    order = {node: i for i, node in enumerate(loops)}
    readers: dict[Node, list[Node]] = {}
    for node, loop in loops.items():
        for x in loop.operands.sequences:
            readers.setdefault(x, []).append(node)
    for late in reversed(order):
        sequences = loops[late].operands.sequences
        near = {x.inputs[0] for x in sequences if x.op is leaf.project}
        for x in sequences:
            near.update(readers[x])
        for early in sorted(near & order.keys(), key=order.__getitem__):
            if order[early] < order[late]:
                record_for(early, late, loops, keys)
    return prune(graph, loops, keys)


def record_for(early: Node, late: Node, loops: dict[Node, Loop], keys: dict[Node, Node]) -> None:
    """Have the loop `early` record values that `late` would compute again, and `late` read them."""
    source, user = loops[early], loops[late]
    if early.attrs.get("trips", 0) is None:
        return
    alike = same_at_each_step(early, source, user, keys)
    found = frontier(early, user.outputs, alike, alike - {*user.params.captured})
    if not found:
        return
    more = [node for node in found if node not in source.results]
    loops[early] = source = source._replace(results=(*source.results, *more))
    with inheriting(early):
        extended = source.build()
    keys[extended] = early
    at = {y: i for i, y in enumerate(source.results, len(source.carries))}
    new = view.new_params("saved", user, found)
    saved = [LoopOperand(param, extended[at[node]]) for node, param in new.items()]
    user = user._replace(sequences=(*user.sequences, *saved))
    loops[late] = view.replaced(user, new, record_for)


def same_at_each_step(
    early: Node, source: Loop, user: Loop, keys: Mapping[Node, Node]
) -> set[Node]:
    """The params of `user` that have at each step the value that they have in `source`."""
    sequences, captured = set(source.sequences), set(source.captured)
    found = {x.param for x in user.captured if x in captured}
    for x in user.sequences:
        if x in sequences:
            found.add(x.param)
        elif x.value.op is leaf.project and keys.get(x.value.inputs[0]) is early:
            body, index = x.value.inputs[0].attrs["body"], x.value.attrs["index"]
            if index >= len(source.carries) and body.outputs[index] is x.param:
                found.add(x.param)
    return found


def frontier(
    early: Node, outputs: Iterable[Node], shared: set[Node], varying: set[Node]
) -> list[Node]:
    """The nodes nearest to `outputs` that `early` has computed, differing from step to step."""
    computed = set(early.attrs["body"].nodes())
    local = view.trip_counts_inside(early.attrs["body"])
    known, changing = set(shared), set(varying)
    for node in toposort(outputs):
        given = all(x in known or Trait.FREE in x.op.traits for x in node.inputs)
        if node.inputs and given and node in computed:
            known.add(node)
            if not changing.isdisjoint(node.inputs):
                changing.add(node)
    fixed = known - changing  # the same at all steps: computed once, outside
    return view.wanted_below(
        outputs,
        lambda node: node in known and bool(node.inputs) and worth_saving(node, local),
        fixed.__contains__,
    )


def worth_saving(node: Node, local: set[str]) -> bool:
    """Whether a step's value can be recorded, and is no mere view of another."""
    return (
        isinstance(node.type, TensorType)
        and Trait.VIEW not in node.op.traits
        and not any(
            size.unknowns & local for size in node.type.shape if isinstance(size, Expression)
        )
    )


# ---- parts that nothing needs


def prune_loops(graph: Graph) -> Graph:
    """Results, carries and operands that nothing depends on are left out, as are zeros carried."""
    if LOOPS.isdisjoint(graph.ops()):
        return graph
    graph = zeros_known(graph)
    loops = {node: Loop.of(node) for node in graph.nodes() if node.op in LOOPS}
    return prune(graph, loops, {node: node for node in loops})


def prune(graph: Graph, loops: Mapping[Node, Loop], keys: Mapping[Node, Node]) -> Graph:
    """The graph with `loops` in place of its own, without the parts that nothing depends on.

    `keys` has the loop of the graph for each node that stands for it, itself among them.
    """
    new: dict[Node, Loop] = {}
    indices: dict[Node, Mapping[int, int]] = {}
    live, used = set(graph.outputs), dict[Node, set[int]]()

    def read(x: Node) -> None:
        if x.op is leaf.project and (key := keys.get(x.inputs[0])) is not None:
            used.setdefault(key, set()).add(x.attrs["index"])

    for node in reversed(graph.nodes()):
        if node in used:
            left, indices[node] = needed_parts(loops[node], sorted(used[node]))
            if left != Loop.of(node):
                new[node] = left
            for x in left.operands.all:
                live.add(x)
                read(x)
        elif node in live:
            live.update(node.inputs)
            read(node)
    places = {node: view.Moved(key, indices[key]) for node, key in keys.items() if key in new}
    return view.with_loops(graph, new, places) if new else graph


def needed_parts(loop: Loop, used: Iterable[int]) -> tuple[Loop, dict[int, int]]:
    """The parts of a loop that its results `used` depend on, and the new indices of these."""
    n, old = len(loop.carries), loop
    loop = with_constants(loop)
    results = dict(zip(old.results, loop.results, strict=True))
    kept = list(dict.fromkeys(old.results[i - n] for i in used if i >= n))
    roots = [results[y] for y in kept]
    updates = {carry.param: carry.update for carry in loop.carries}
    carried = {loop.carries[i].param for i in used if i < n}
    tests = () if loop.condition is None else (loop.condition,)
    needed = reached(
        [*tests, *roots, *[updates[param] for param in carried]],
        lambda x: (updates[x],) if x in updates else x.inputs,
    )
    carried.update(needed.keys() & updates.keys())
    counting = counters(loop)
    if counting and needed.keys().isdisjoint(counting):
        needed[counting[0]] = None  # the loop that finds the number of steps must come first
    loop = loop._replace(
        carries=tuple(x for x in loop.carries if x.param in carried),
        sequences=tuple(x for x in loop.sequences if x.param in needed),
        captured=tuple(x for x in loop.captured if x.param in needed),
        results=tuple(roots),
    )
    place = {x.param: i for i, x in enumerate(loop.carries)}
    at = {y: i for i, y in enumerate(kept, len(place))}
    return loop, {i: place[old.carries[i].param] if i < n else at[old.results[i - n]] for i in used}


def counters(loop: Loop) -> list[Node]:
    """The params fed by values that the forward loop, of as many steps, recorded."""
    length = loop.settings.get("length")
    return [
        param
        for param, x in loop.sequences
        if x.op is leaf.project and x.inputs[0].attrs.get("trips", 0) is length
    ]


def with_constants(loop: Loop) -> Loop:
    """The loop whose body has the constants that are given to it."""
    new = {p: x for p, x in loop.captured if x.op is leaf.full}
    new |= {p: refill(x, x.type.shape[1:]) for p, x in loop.sequences if x.op is leaf.full}
    return view.replaced(loop, new, with_constants)
