"""Work moved out of loops, to where `Placement` puts it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial

from graphcore.analysis.cost import TargetCosts
from graphcore.ir import Graph, Node, Rule, reached, toposort
from graphcore.ir.graph import with_bodies
from graphcore.ir.provenance import inheriting
from graphcore.ir.trace import Record, current_trace
from graphcore.ir.transform import substitute, transform
from graphcore.ops import leaf, tensor
from graphcore.ops.control import LOOPS, Loop, LoopOperand

from .batching import contraction, on_all_steps
from .placement import Placement, Sum, nearest_of
from .sharing import needed_parts
from .view import new_params, replaced


def hoist(graph: Graph, costs: TargetCosts) -> Graph:
    """Move work out of the loops of a graph, the inner ones first."""
    if LOOPS.isdisjoint(graph.ops()):
        return graph
    used: dict[Node, set[int]] = {}
    for node in graph.nodes():
        if node.op is leaf.project:
            used.setdefault(node.inputs[0], set()).add(node.attrs["index"])
    inside = partial(hoist, costs=costs)

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node]:
        new = Node(node.op, inputs, with_bodies(node, inside))
        return outside, leaf.tuple_(*outside(new, used.get(node, set()), costs))

    return transform(graph, visit, at=LOOPS, bodies=inside)


def outside(node: Node, used: Container[int], costs: TargetCosts) -> list[Node]:
    """The results of a loop, computed outside of it as far as that is worth it.

    Only the results numbered in `used` are read; in place of other carries their starts are given.
    What the loop no longer needs is left out of it at once, so that it is built only once.
    """
    loop = Loop.of(node)
    place = Placement(loop, node.attrs["body"], costs)
    out = Outside(place)
    left = loop._replace(
        carries=tuple(x for x in loop.carries if x.param not in place.sums),
        results=tuple(place.recorded),
    )
    read = {x.param for i, x in enumerate(loop.carries) if i in used}
    n, m = len(left.carries), len(left.results)
    wanted = [i for i, x in enumerate(left.carries) if x.param in read]
    kept, index = needed_parts(out.given_to(left), [*wanted, *range(n, n + m)])
    with inheriting(node):
        made = kept.build()
    last = {left.carries[i].param: made[index[i]] for i in wanted}
    recorded = {y: made[index[i]] for i, y in enumerate(left.results, n)}
    each = recorded | {x: out.before[x] for x in place.before}
    each |= {y: out.at_once(given, [y], each)[y] for y, given in place.again.items()}
    last |= {
        x.param: x.start + out.sum_term(place.sums[x.param], each)
        for x in loop.carries
        if x.param in place.sums and x.param in read
    }
    carried = [last.get(x.param, x.start) for x in loop.carries]
    after = {y: out.at_once(given, [y], each)[y] for y, given in place.after.items()}
    return [*carried, *[after[y] if y in after else each[y] for y in loop.results]]


class Outside:
    """The values of nodes of a body outside of its loop."""

    def __init__(self, place: Placement) -> None:
        self.place, self.loop = place, place.loop
        self.captured = dict(self.loop.captured)
        self.before = dict(self.loop.sequences)
        for node in place.before:
            if node not in self.before:
                self.before[node] = self.of_all_steps(node, self.before)

    def given_to(self, left: Loop) -> Loop:
        """A loop in which values that are computed before it are captured, or sequences."""
        once = nearest_of(self.loop.roots, self.place.once)
        sequences = self.place.before.keys() - {*self.loop.params.sequences}
        each = nearest_of(self.loop.roots, sequences, set(once))
        fixed, stepped = new_params("fixed", left, once), new_params("each", left, each)
        captured = map(LoopOperand, fixed.values(), substitute(once, self.captured))
        more = [LoopOperand(param, self.before[node]) for node, param in stepped.items()]
        given = left._replace(
            captured=(*left.captured, *captured), sequences=(*left.sequences, *more)
        )
        return replaced(given, fixed | stepped, outside)

    def at_once(
        self, given: Iterable[Node], roots: Sequence[Node], each: Mapping[Node, Node]
    ) -> dict[Node, Node]:
        """The values of all steps of some roots, and of all that they are made of."""
        done = {x: each[x] for x in given}

        def unmade(xs: Iterable[Node]) -> list[Node]:
            return [x for x in xs if x not in done and self.place.varies(x)]

        needed = reached(unmade(roots), lambda x: unmade(x.inputs))
        beyond = {y for x in needed for y in x.inputs} - needed.keys()
        for x in toposort([x for x in roots if x in needed], beyond):
            done[x] = self.of_all_steps(x, done)
        return done

    def of_all_steps(self, node: Node, done: Mapping[Node, Node]) -> Node:
        """A node batched over all steps, given its operands batched; it keeps the node's line."""
        xs, own = self.operands(node, done)
        with inheriting(node):
            made = on_all_steps(node, xs, own, self.loop.settings["length"])
        current_trace().records.append(Record(on_all_steps, node, made))
        return made

    def operands(self, node: Node, done: Mapping[Node, Node]) -> tuple[list[Node], list[bool]]:
        """The operands of a node outside of the loop, and which of them are of all steps."""
        xs = [done.get(x) or substitute([x], self.captured)[0] for x in node.inputs]
        return xs, [x in done for x in node.inputs]

    def sum_term(self, total: Sum, each: Mapping[Node, Node]) -> Node:
        """The sum of a term over all steps."""
        done = self.at_once(total.given, total.roots, each)
        with inheriting(total.term):
            if total.contracts:
                found = over_steps(total.term, *self.operands(total.term, done))
            else:
                found = tensor.sum_(done[total.term], axes=(0,))
            for view in total.views:
                found = Node(view.op, (found,), view.attrs)
        current_trace().records.append(Record(over_steps, total.term, found))
        return found


def over_steps(node: Node, xs: Sequence[Node], stacked: Sequence[bool]) -> Node:
    """A contraction or a sum, over the first axis of stacked operands as well."""
    if node.op is tensor.sum_:
        return tensor.sum_(xs[0], axes=(0, *[axis + 1 for axis in node.attrs["axes"]]))
    return contraction(node, xs, stacked, over_steps=True)
