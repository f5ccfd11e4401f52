"""Work moved out of loops: what is the same at all steps, or needs no carry, and sums of products.

invariant      body(carry, k): f(k)            -> once, before the loop
step by step   body(carry, x[t]): f(x[t], k)   -> f(x, k) for all steps at once, before the loop
summed up      total + f(a[t])                 -> f(a), summed over steps, after the loop
"""

from __future__ import annotations

from graphcore.ir.graph import Graph, with_graphs
from graphcore.ir.node import Node, substitute, toposort
from graphcore.ir.op import Op
from graphcore.ir.provenance import inherit
from graphcore.ir.types import TensorType
from graphcore.ops import control
from graphcore.ops.leaf import values

from .loops import (
    LOOPS,
    Loop,
    apart,
    found_inside,
    new_param,
    positions,
    rewrite,
    speaks_of,
    unused,
)
from .stacked import LEAVES, REPEATED, STACKED, inside, invariants, no_larger
from .totals import After, results_after, summed


def hoist(graph: Graph) -> Graph:
    """Move work out of the loops of a graph, the inner ones first."""
    if LOOPS.isdisjoint(graph.ops()):
        return graph
    done: dict[Node, Node] = {}
    before = inherit(None)
    try:
        for node in graph.nodes():
            if node in done:
                continue
            inherit(node.origin)
            new = Node(node.op, tuple([done[x] for x in node.inputs]), with_graphs(node, hoist))
            done[node] = new.label(node.labels)
            if node.op in LOOPS:
                done.update(zip(values(node), outside(new), strict=True))
    finally:
        inherit(before)
    return Graph(tuple(done[x] for x in graph.params), tuple(done[x] for x in graph.outputs))


def outside(node: Node) -> list[Node]:
    """The results of a loop, computed outside of it as far as they can be."""
    loop, body, n = apart(node), node.attrs["body"], node.attrs["carries"]
    lift_invariants(loop)
    sums: dict[Node, After] = {}
    late: dict[Node, After] = {}
    if node.op is control.scan:
        lift_steps(loop)
        late = results_after(loop)
        sums = summed(loop)
    starts = {param: loop.start.pop(param) for param in sums}
    for param in sums:
        del loop.update[param]
    new = loop.build(loop.operands)
    carries, steps = positions(loop)
    last = [
        starts[param] + sums[param](new, loop) if param in sums else new[carries[param]]
        for param in body.params[:n]
    ]
    each = [late[y](new, loop) if y in late else new[steps[y]] for y in body.outputs[n:]]
    return [*last, *each]


# ---- before the loop


def nearest(loop: Loop, some: set[Node], through: frozenset[Op]) -> list[Node]:
    """Of `some` nodes those that others use, looking through ops that are not worth a param."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(inside(loop))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        worth = node.inputs and node.op not in through and isinstance(node.type, TensorType)
        if node in some and worth:
            found[node] = None
            continue
        stack.extend(node.inputs)
    return list(found)


def lift_invariants(loop: Loop) -> None:
    """f(k) is computed once, and captured."""
    found = nearest(loop, invariants(loop), REPEATED)
    new = {node: new_param(name, node) for name, node in zip(unused("fixed", loop.params), found)}
    values = substitute(found, loop.captured)
    loop.captured.update(zip(new.values(), values, strict=True))
    rewrite(loop, new)


def lift_steps(loop: Loop) -> None:
    """f(x[t], k) is computed for all steps at once, and walked."""
    steps, local = loop.attrs["length"], found_inside(loop.node.attrs["body"])
    fixed = invariants(loop)
    at_once: dict[Node, Node] = dict(loop.walked)
    there = {x.type.count for x in loop.operands}
    for node in toposort(inside(loop)):
        own = [x in at_once for x in node.inputs]
        if node.op not in STACKED or not any(own) or speaks_of(node, local):
            continue
        known = all(x in at_once or x in fixed or x.op in LEAVES for x in node.inputs)
        if known and no_larger(node, own, steps, there):
            given = [at_once.get(x) or substitute([x], loop.captured)[0] for x in node.inputs]
            at_once[node] = STACKED[node.op](node, given, own, steps)
    found = nearest(loop, at_once.keys() - loop.walked.keys(), REPEATED)
    new = {node: new_param(name, node) for name, node in zip(unused("each", loop.params), found)}
    loop.walked.update({param: at_once[node] for node, param in new.items()})
    rewrite(loop, new)
