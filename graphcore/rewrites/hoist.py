"""Work moved out of loops: what is the same at all steps, or needs no carry, and sums of products.

invariant      body(carry, k): f(k)            -> once, before the loop
step by step   body(carry, x[t]): f(x[t], k)   -> f(x, k) for all steps at once, before the loop
summed up      total + einsum(a[t], b[t])      -> einsum(a, b), summed over steps, after the loop
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphcore.ir.graph import Graph, with_graphs
from graphcore.ir.node import Attrs, Node, substitute, toposort
from graphcore.ir.op import Op
from graphcore.ir.provenance import inherit
from graphcore.ir.sizes import Size, upper_bound
from graphcore.ir.types import TensorType
from graphcore.ops import control, elementwise, leaf, tensor
from graphcore.ops.control import spoken

from .loops import LOOPS, VIEWS, Loop, apart, found_inside, new_param, rewrite
from .plain import expand, reshape, transpose

Stacked = Callable[[Node, Sequence[Node], Sequence[bool], Size], Node]
"""(node, operands, which have a new first axis, its size) -> the node on all steps at once"""


def on_each(node: Node, xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> Node:
    """Operands that are the same at all steps are repeated."""
    return Node(node.op, tuple(repeated(xs, stacked, steps)), node.attrs)


def repeated(xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> list[Node]:
    """All operands with the new first axis."""
    return [
        x if own else expand(x, [0], (steps, *x.type.shape))
        for x, own in zip(xs, stacked, strict=True)
    ]


def axes_later(node: Node, xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> Node:
    """Axes stand one place later."""
    moved = {
        name: tuple(axis + 1 for axis in value) if isinstance(value, tuple) else value + 1
        for name, value in node.attrs.items()
        if name in ("axes", "axis")
    }
    return Node(node.op, tuple(repeated(xs, stacked, steps)), Attrs(node.attrs | moved))


def ranges_later(node: Node, xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> Node:
    """The whole of the new axis."""
    first = {"starts": 0, "steps": 1, "sizes": steps, "shape": steps}
    wider = {name: (first[name], *value) for name, value in node.attrs.items() if name in first}
    return Node(node.op, tuple(xs), Attrs(node.attrs | wider))


def einsum_letter(node: Node) -> int:
    """A letter that stands in none of its operands."""
    return 1 + max((i for letters in node.attrs["operands"] for i in letters), default=-1)


def stacked_einsum(node: Node, xs: Sequence[Node], stacked: Sequence[bool], steps: Size) -> Node:
    """A letter of its own for the steps."""
    new, pairs = einsum_letter(node), zip(node.attrs["operands"], stacked, strict=True)
    operands = tuple((new, *letters) if own else letters for letters, own in pairs)
    return tensor.einsum(*xs, operands=operands, result=(new, *node.attrs["result"]))


STACKED: dict[Op, Stacked] = {
    **dict.fromkeys(tensor.POINTWISE, on_each),
    **dict.fromkeys((tensor.sum_, tensor.max_, tensor.min_, tensor.any_, tensor.all_), axes_later),
    **dict.fromkeys((tensor.prod, tensor.cumsum, tensor.cumprod, tensor.concat), axes_later),
    **dict.fromkeys((tensor.softmax, tensor.log_softmax, tensor.logsumexp), axes_later),
    **dict.fromkeys((tensor.argmax, tensor.argmin, tensor.expand), axes_later),
    tensor.slice_: ranges_later,
    tensor.embed: ranges_later,
    tensor.einsum: stacked_einsum,
    tensor.reshape: lambda node, xs, stacked, steps: reshape(xs[0], (steps, *node.type.shape)),
    tensor.transpose: lambda node, xs, stacked, steps: transpose(
        xs[0], (0, *[axis + 1 for axis in node.attrs["perm"]])
    ),
}
"""How an op works on all steps at once. An op that is not here stays in its loop."""

LEAVES = frozenset({leaf.full, leaf.constant, leaf.iota, leaf.extent})
RISKY = frozenset({tensor.gather, tensor.scatter})
"""Ops that refuse some values: they are not computed unless a step computes them."""


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
                done.update(zip(results(node), outside(new), strict=True))
    finally:
        inherit(before)
    return Graph(tuple(done[x] for x in graph.params), tuple(done[x] for x in graph.outputs))


def results(node: Node) -> list[Node]:
    """The values of a node of several."""
    return [node[i] for i in range(len(node.type.items))]


def outside(node: Node) -> list[Node]:
    """The results of a loop, computed outside of it as far as they can be."""
    loop, body, n = apart(node), node.attrs["body"], node.attrs["carries"]
    lift_invariants(loop)
    sums: dict[Node, Callable[[Node, Loop], Node]] = {}
    if node.op is control.scan:
        lift_steps(loop)
        sums = {param: total for param in loop.start if (total := summed(loop, param)) is not None}
    starts = {param: loop.start.pop(param) for param in sums}
    for param in sums:
        del loop.update[param]
    new = loop.build(loop.operands)
    carries = list(loop.start)
    last = [
        starts[param] + sums[param](new, loop) if param in sums else new[carries.index(param)]
        for param in body.params[:n]
    ]
    return [*last, *[all_steps(y, new, loop) for y in body.outputs[n:]]]


def all_steps(step: Node, node: Node, loop: Loop) -> Node:
    """The values of one result of all steps."""
    return node[len(loop.start) + list(loop.steps).index(step)]


# ---- before the loop


def invariants(loop: Loop) -> set[Node]:
    """The nodes inside whose value is the same at all steps, and that can be computed outside."""
    fixed, local = set(loop.captured), found_inside(loop.node.attrs["body"])
    for node in toposort(inside(loop)):
        known = all(x in fixed or x.op in LEAVES for x in node.inputs)
        if node.inputs and known and node.op not in RISKY and local.isdisjoint(spoken(node)):
            fixed.add(node)
    return fixed


def inside(loop: Loop) -> tuple[Node, ...]:
    """What a body comes down to."""
    return (*loop.update.values(), *loop.steps.values(), *loop.tests)


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
    new: dict[Node, Node] = {}
    for node in nearest(loop, invariants(loop), frozenset({tensor.expand})):
        (value,) = substitute([node], loop.captured)
        new[node] = new_param("fixed", node, loop.params)
        loop.captured[new[node]] = value
    rewrite(loop, new)


def lift_steps(loop: Loop) -> None:
    """f(x[t], k) is computed for all steps at once, and walked."""
    steps, local = loop.attrs["length"], found_inside(loop.node.attrs["body"])
    fixed = invariants(loop)
    at_once: dict[Node, Node] = dict(loop.walked)
    for node in toposort(inside(loop)):
        own = [x in at_once for x in node.inputs]
        known = all(x in at_once or x in fixed or x.op in LEAVES for x in node.inputs)
        fits = node.op in STACKED and no_larger(node, own) and local.isdisjoint(spoken(node))
        if any(own) and known and fits:
            given = [at_once.get(x) or substitute([x], loop.captured)[0] for x in node.inputs]
            at_once[node] = STACKED[node.op](node, given, own, steps)
    new: dict[Node, Node] = {}
    for node in nearest(loop, at_once.keys() - loop.walked.keys(), VIEWS):
        new[node] = new_param("each", node, loop.params)
        loop.walked[new[node]] = at_once[node]
    rewrite(loop, new)


def no_larger(node: Node, stacked: Sequence[bool]) -> bool:
    """Whether all steps' results take no more room than what they are made of, or are products."""
    if node.op is tensor.einsum:
        letters = {i for operand in node.attrs["operands"] for i in operand}
        return len(letters) > len(node.attrs["result"])
    own = (x for x, yes in zip(node.inputs, stacked, strict=True) if yes)
    return any(upper_bound(node.type.count - x.type.count) in (0, None) for x in own)


# ---- after the loop


def summed(loop: Loop, param: Node) -> Callable[[Node, Loop], Node] | None:
    """How a carry that only adds up is computed after the loop, from what it adds up."""
    if (term := added(loop, param)) is None:
        return None
    views = []
    while term.op in (tensor.reshape, tensor.transpose):
        views.append(term)
        (term,) = term.inputs
    if term.op not in (tensor.einsum, tensor.sum_):
        return None
    fixed = invariants(loop)
    own = [x not in fixed and x.op not in LEAVES for x in term.inputs]
    if not any(own):
        return None
    for x, yes in zip(term.inputs, own, strict=True):
        if yes and x not in loop.walked:
            loop.steps[x] = x

    def total(node: Node, loop: Loop) -> Node:
        given = [
            substitute([x], loop.captured)[0] if not yes
            else loop.walked[x] if x in loop.walked else all_steps(x, node, loop)
            for x, yes in zip(term.inputs, own, strict=True)
        ]  # fmt: skip
        found = over_steps(term, given, own)
        for view in reversed(views):
            found = Node(view.op, (found,), view.attrs)
        return found

    return total


def over_steps(node: Node, xs: Sequence[Node], stacked: Sequence[bool]) -> Node:
    """A contraction or a sum, over the first axis of stacked operands as well."""
    if node.op is tensor.sum_:
        return tensor.sum_(xs[0], axes=(0, *[axis + 1 for axis in node.attrs["axes"]]))
    new, pairs = einsum_letter(node), zip(node.attrs["operands"], stacked, strict=True)
    operands = tuple((new, *letters) if own else letters for letters, own in pairs)
    return tensor.einsum(*xs, operands=operands, result=node.attrs["result"])


def added(loop: Loop, param: Node) -> Node | None:
    """What each step adds to a carry that nothing else depends on."""
    update = loop.update[param]
    if update.op is not elementwise.add or param not in update.inputs:
        return None
    left, right = update.inputs
    term = right if left is param else left
    others = (y for p, y in loop.update.items() if p is not param)
    if param in toposort([term, *others, *loop.steps.values(), *loop.tests]):
        return None
    return term
