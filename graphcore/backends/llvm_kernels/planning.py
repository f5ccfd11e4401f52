"""The plan of least cost: which nests share rows, and which values are computed again.

A value that several nests read is stored by the first of them, as a rule. A reverse pass reads many
such values of the program: masks, activations, parts of sums. Where a store and loads from memory
take longer than to compute a value again from what is stored anyway, no buffer is taken for it.

    nest: m = where(x > 0, x, 0.1 * x), s = sum(m * m);  nest: m * g(s)
        becomes   nest: s = sum(m * m);  nest: m * g(s), each with an m of its own

All values of a graph are decided on together, by measured costs: see `kept`. Results have the same
bits, as the same ops compute them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from itertools import accumulate

from graphcore.analysis.cost import bytes_of, elements
from graphcore.analysis.cuts import kept
from graphcore.ir import Graph, Node, Trait
from graphcore.ops import leaf
from graphcore.ops import tensor as t

from .chains import in_chains
from .flops import COSTS
from .nests import REPEATING, Nest, Plan, Step, plan, reduces, walked
from .rows import Pair, Rows, pair_of, runs_inside
from .writer import Order


def best_plan(graph: Graph, known: Collection[Node], order: Order | None = None) -> Plan:
    """The plan of a graph in which values are computed again where that takes less time.

    Values that are made in rows stay: only one row of them is stored. So do all where others that
    they are computed from would be stored instead, or would take more memory until they are read.
    """
    first = in_rows(plan(graph, known, order))
    rows = made_in_rows(first)
    places = {
        x: len(keys)
        for x, keys in first.elsewhere.items()
        if x not in rows and not any(map(is_many, keys.items()))
    }
    again = computed_again(places, first.computed.union(known))
    if not again:
        return in_chains(first)
    second = in_rows(plan(graph, known, order, {x: places[x] for x in again}))
    less = extra_bytes(second, first) < extra_bytes(first, second)
    less = less and memory(second) <= memory(first)
    return in_chains(second if less and made_in_rows(second) == rows else first)


def is_many(place: tuple[object, bool]) -> bool:
    """Whether many places of a value are read for one of the reader."""
    key, many = place
    if many or not isinstance(key, tuple) or not key or not isinstance(key[0], Node):
        return many
    reader, _, further = key
    return reader.op is t.windows or reader.op in REPEATING or is_many((further, False))


def made_in_rows(plan: Plan) -> set[Node]:
    """The values that are computed row by row."""
    return {x for step in plan.steps if isinstance(step, Rows | Pair) for x in step.made}


def extra_bytes(plan: Plan, other: Plan) -> int:
    """The bytes of all values that a plan stores and another does not."""
    return sum([bytes_of(x.type) for x in plan.computed - other.computed])


def memory(plan: Plan) -> int:
    """The most bytes that stored values take at once, at sizes that count as typical."""
    change = Counter[int]()
    for at, step in enumerate(plan.steps):
        if isinstance(step, Nest | Rows | Pair):
            for x in step.roots if isinstance(step, Nest) else step.made:
                change[at] += bytes_of(x.type)
                change[plan.last[x] + 1] -= bytes_of(x.type)
    return max(accumulate([change[at] for at in sorted(change)]), default=0)


def computed_again(places: dict[Node, int], stored: Collection[Node]) -> list[Node]:
    """The values, each read at so many places, that cost less to compute there than to store.

    Those that lie in a cache are read about as quickly as they are computed: they stay.
    """
    keep: dict[Node, int] = {}
    again: dict[Node, int] = {}
    operands: dict[Node, list[Node]] = {}
    for node, n in places.items():
        if known_bytes(node) <= COSTS.bytes_in_cache:
            continue
        keep[node] = time_to_store(node) + (n - 1) * time_to_read(node)
        if (made := computing(node, stored)) is not None:
            spent, operands[node] = made
            again[node] = (n - 1) * (spent + sum(map(time_to_read, operands[node])))
    stay = kept(keep, operands, keep, again)
    return [x for x in again if x not in stay]


def computing(node: Node, stored: Collection[Node]) -> tuple[int, list[Node]] | None:
    """The picoseconds to compute a value from stored ones, and these; None if it never is."""
    spent, read = 0, dict[Node, None]()
    waiting, seen = [node], {node}
    while waiting:
        x = waiting.pop()
        if (each := COSTS.again(x)) is None:
            return None
        spent += each * elements(x.type)
        for y in x.inputs:
            if y in seen or Trait.FREE in y.op.traits:
                continue
            seen.add(y)
            if y in stored or not y.inputs or y.op is leaf.project:
                read[y] = None
            else:
                waiting.append(y)
    return spent, [*read]


def time_to_read(node: Node) -> int:
    """The picoseconds to read a stored value."""
    return bytes_of(node.type) * COSTS.read(known_bytes(node)) if node.type.shape else 0


def time_to_store(node: Node) -> int:
    """The picoseconds to store a value."""
    return bytes_of(node.type) * COSTS.write(known_bytes(node))


def known_bytes(node: Node) -> int:
    """How many bytes a value takes; 0 where its sizes are not known."""
    known = all(isinstance(size, int) for size in node.type.shape)
    return bytes_of(node.type) if known else 0


def in_rows(plan: Plan) -> Plan:
    """The same plan in which nests of the same rows that follow each other are one step."""
    groups: list[Step] = []
    for step in plan.steps:
        if isinstance(step, Nest) and not any(walked(root) is not root for root in step.roots):
            before = groups[-1] if groups else None
            if isinstance(before, Rows) and (pair := pair_of(before.nests, step.roots)):
                groups[-1] = pair
                continue
            if isinstance(before, Rows) and before.takes(step.roots):
                continue
            first = step.roots[0]
            begun = Rows(first.type.shape)
            if reduces(first) and runs_inside(first) and begun.works and begun.takes(step.roots):
                groups.append(begun)
                continue
        groups.append(step)
    steps: list[Step] = []
    number: list[int] = []
    for step in groups:
        parts: list[Step] = [step]
        if isinstance(step, Rows):
            after = [Nest(roots) for roots in step.leave_last()]
            rows = [step] if step.gain else [Nest(roots) for roots in step.nests]
            parts = [*rows, *after]
        for part in parts:
            number += [len(steps)] * (len(part.nests) if isinstance(part, Rows | Pair) else 1)
            steps.append(part)
    last = {x: number[at] if at < len(number) else len(steps) for x, at in plan.last.items()}
    for at, step in enumerate(steps):
        if isinstance(step, Rows):
            step.own = frozenset([x for x in step.made if last[x] == at])
    return plan._replace(steps=steps, last=last)
