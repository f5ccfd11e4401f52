"""Where a node of a loop's body is computed: before the loop, at each step, or after the loop.

once before    body(carry, k): f(k)            -> computed once, captured
steps before   body(carry, x[t]): f(x[t], k)   -> f(x, k) of all steps at once, a sequence
steps after    result y[t] = f(a[t])           -> f(a) of all steps at once, of what steps recorded
sums after     carry total + f(a[t])           -> f(a) of all steps at once, summed over them
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from graphcore.ir.graph import Graph, may_raise_inside, with_graphs
from graphcore.ir.node import Node, toposort
from graphcore.ir.provenance import inheriting
from graphcore.ir.sizes import Size, lower_bound, upper_bound
from graphcore.ir.trace import Rule
from graphcore.ir.transform import substitute, transform
from graphcore.ir.types import TensorType
from graphcore.ops import control, elementwise, leaf, tensor
from graphcore.ops.control import Loop, Operand
from graphcore.ops.leaf import values
from graphcore.rewrites.plain import pick

from .batching import contraction, on_all_steps, works_on_all_steps
from .view import LEAVES, LOOPS, depends_on, new_params, replaced, trip_counts_inside

FEW = 4
"""Values of all steps may take at most this multiple of the memory that is held already."""
REPEATED = frozenset({tensor.expand})
"""Ops that are free at each step, but not outside, where what they repeat would be a sequence."""
REDUCING = frozenset({tensor.sum_, tensor.max_, tensor.min_, tensor.any_, tensor.all_})
Varies = Callable[[Node], bool]
"""Whether a value differs from step to step."""


def hoist(graph: Graph) -> Graph:
    """Move work out of the loops of a graph, the inner ones first."""
    if LOOPS.isdisjoint(graph.ops()):
        return graph

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node.op in LOOPS:
            return outside, leaf.tuple_(*outside(Node(node.op, inputs, with_graphs(node, hoist))))
        return (pick, pick(node, *inputs)) if node.op is leaf.project else None

    return transform(graph, visit, bodies=hoist)


def outside(node: Node) -> list[Node]:
    """The results of a loop, computed outside of it as far as they can be."""
    local = trip_counts_inside(node.attrs["body"])
    loop = once_before(Loop.of(node), local)
    if node.op is control.while_loop:
        with inheriting(node.origin):
            return values(loop.build())
    loop = steps_before(loop, local)
    late = Late(loop, local)
    late.move_results()
    late.move_sums()
    return late.results(node)


# ---- before the loop


def fixed(loop: Loop, local: set[str]) -> set[Node]:
    """The nodes inside whose value is the same at all steps, and that can be computed outside.

    What may raise is not, unless it is computed whether there are steps or not.
    """
    found = set(loop.params.captured)
    sure = computed_anyway(loop)
    for node in toposort(loop.roots):
        known = all(x in found or x.op in LEAVES for x in node.inputs)
        if (
            node.inputs
            and known
            and not depends_on(node, local)
            and (node in sure or not may_raise_inside(node))
        ):
            found.add(node)
    return found


def computed_anyway(loop: Loop) -> set[Node]:
    """The nodes of a body that are computed at least once."""
    if loop.condition is not None:
        return set(toposort([loop.condition]))
    least = lower_bound(loop.settings["length"])
    return set(toposort(loop.roots)) if least is not None and least >= 1 else set()


def nearest(loop: Loop, some: Collection[Node]) -> list[Node]:
    """Of `some` nodes those that others use; ops that are not worth a param are looked through."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(loop.roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        worth = node.inputs and node.op not in REPEATED and isinstance(node.type, TensorType)
        if node in some and worth:
            found[node] = None
            continue
        stack.extend(node.inputs)
    return list(found)


def once_before(loop: Loop, local: set[str]) -> Loop:
    """f(k) is computed once, and captured."""
    new = new_params("fixed", loop, nearest(loop, fixed(loop, local)))
    found = substitute(new, dict(loop.captured))
    more = map(Operand, new.values(), found)
    return replaced(loop._replace(captured=(*loop.captured, *more)), new)


def steps_before(loop: Loop, local: set[str]) -> Loop:
    """f(x[t], k) is computed for all steps at once, a sequence."""
    steps, same = loop.settings["length"], fixed(loop, local)
    at_once: dict[Node, Node] = dict(loop.sequences)
    captured = dict(loop.captured)
    held = {x.type.count for x in loop.operands.all}
    for node in toposort(loop.roots):
        own = [x in at_once for x in node.inputs]
        if not works_on_all_steps(node) or not any(own) or depends_on(node, local):
            continue
        known = all(x in at_once or x in same or x.op in LEAVES for x in node.inputs)
        if known and no_larger(node, own, steps, held):
            given = [at_once.get(x) or substitute([x], captured)[0] for x in node.inputs]
            at_once[node] = on_all_steps(node, given, own, steps)
    new = new_params("each", loop, nearest(loop, at_once.keys() - {*loop.params.sequences}))
    more = [Operand(param, at_once[node]) for node, param in new.items()]
    return replaced(loop._replace(sequences=(*loop.sequences, *more)), new)


def no_larger(node: Node, stacked: Sequence[bool], steps: Size, held: Collection[Size]) -> bool:
    """Whether all steps' results are products, or take but a few times the memory of an operand.

    That is an operand of the node, or one of the loop, of which there are as many values as `held`
    says.
    """
    if node.op is tensor.einsum:
        letters = {i for operand in node.attrs["operands"] for i in operand}
        return len(letters) > len(node.attrs["result"])
    size = node.type.count
    own = (x for x, yes in zip(node.inputs, stacked, strict=True) if yes)
    return any(no_more(size, FEW * x.type.count) for x in own) or any(
        no_more(steps * size, FEW * whole) for whole in held
    )


# ---- after the loop


class Sum(NamedTuple):
    """A carry that only adds a term up: the terms of all steps are summed after the loop.

    `given` are the values that steps record or read, from which `roots` of all steps are computed:
    the term, or the operands of a contraction, which sums over the steps as well. `views` are
    applied to the sum.
    """

    term: Node
    contracts: bool
    given: Sequence[Node]
    roots: Sequence[Node]
    views: Sequence[Node]


class Late:
    """What of a scan no later step needs, and the values that steps record to compute it after."""

    def __init__(self, loop: Loop, local: set[str]) -> None:
        self.loop, self.local = loop, local
        self.sequences, self.captured = dict(loop.sequences), dict(loop.captured)
        same = fixed(loop, local)
        self.varies: Varies = lambda x: x not in same and x.op not in LEAVES
        self.recorded: dict[Node, None] = dict.fromkeys(loop.results)
        self.after: dict[Node, list[Node]] = {}
        self.sums: dict[Node, Sum] = {}

    def move_results(self) -> None:
        """Results that no carry needs, if as little is recorded for them as they are."""
        late = self.computed_late(self.loop.results, self.loop.updates)
        for y in reversed([*self.recorded]):
            if y not in late and y not in self.sequences:
                continue
            del self.recorded[y]
            given = list(self.sources(y, late))
            new = self.unrecorded(given)
            if y in self.sequences or (no_more(count_of(new), y.type.count) and not single(given)):
                self.recorded.update(dict.fromkeys(new))
                self.after[y] = given
            else:
                self.recorded[y] = None

    def move_sums(self) -> None:
        """Carries that only add up."""
        roots = (*self.loop.updates, *self.recorded)
        used = Counter(roots)
        used.update(x for node in toposort(roots) for x in node.inputs)
        added = {x.param: addend(x.param, x.update, used) for x in self.loop.carries}
        terms = {param: term for param, term in added.items() if term is not None}
        others = [x.update for x in self.loop.carries if x.param not in terms]
        late = self.computed_late(terms.values(), (*others, *self.recorded))
        while found := {
            param: total
            for param, term in terms.items()
            if param not in self.sums and (total := self.total_of(term, late)) is not None
        }:  # what one of them has recorded may be all that another needs
            self.sums |= found

    def computed_late(self, terms: Iterable[Node], needed: Iterable[Node]) -> set[Node]:
        """The nodes that no step needs, and that take no more memory for all steps at once."""
        early = set(toposort(needed))
        late: set[Node] = set()
        for node in toposort(terms):
            if (
                node in early
                or not works_on_all_steps(node)
                or not any(map(self.varies, node.inputs))
            ):
                continue
            if stays_small(node, self.varies) and not depends_on(node, self.local):
                late.add(node)
        return late

    def sources(self, part: Node, late: set[Node]) -> dict[Node, None]:
        """The nearest nodes below that steps must record, or that are sequences."""
        found: dict[Node, None] = {}
        stack, seen = [part], {part}
        while stack:
            x = stack.pop()
            if x in self.sequences or x not in late:
                found[x] = None
                continue
            below = [y for y in x.inputs if self.varies(y) and y not in seen]
            seen.update(below)
            stack += below
        return found

    def unrecorded(self, some: Iterable[Node]) -> list[Node]:
        """Those of some nodes whose values of all steps are not there yet."""
        return [x for x in some if x not in self.sequences and x not in self.recorded]

    def total_of(self, term: Node, late: set[Node]) -> Sum | None:
        """How one term is summed, from as little recorded as it takes; None if not worth it."""
        views = []
        while term.op in (tensor.reshape, tensor.transpose, elementwise.negative):
            views.append(term)
            (term,) = term.inputs
        contracts = term.op in (tensor.einsum, tensor.sum_)
        parts = [term]
        if contracts or term in late:
            parts = [x for x in term.inputs if self.varies(x)]
        if not parts or not self.varies(term):
            return None
        if not contracts and term.type.dtype.kind not in "fc":
            return None
        alike = parts if term.op.pointwise else ()  # as large as the term

        def memory(some: Iterable[Node]) -> Size:
            return count_of(term if x in alike else x for x in some)

        deep = {part: self.sources(part, late) for part in parts}
        shallow = {
            x: y if no_more(memory(self.unrecorded(y)), memory([x])) else {x: None}
            for x, y in deep.items()
        }
        for chosen in (deep, shallow):
            given = list(dict.fromkeys(x for sources in chosen.values() for x in sources))
            new = self.unrecorded(given)
            most = parts if contracts else [x for x in given if x not in new]
            if no_more(memory(new), memory(most)):
                break
        else:
            if not contracts:
                return None
        if single([term, *given]):
            return None
        self.recorded.update(dict.fromkeys(new))
        return Sum(term, contracts, given, parts if contracts else [term], views[::-1])

    def results(self, old: Node) -> list[Node]:
        """The results of the loop, what was moved computed after it."""
        carries = tuple(x for x in self.loop.carries if x.param not in self.sums)
        loop = self.loop._replace(carries=carries, results=tuple(self.recorded))
        with inheriting(old.origin):
            made = loop.build()
        last = {x.param: made[i] for i, x in enumerate(carries)}
        each = {y: made[i] for i, y in enumerate(self.recorded, len(carries))} | self.sequences
        carried = [
            x.start + self.summed(self.sums[x.param], each)
            if x.param in self.sums
            else last[x.param]
            for x in self.loop.carries
        ]
        found = {y: self.at_once(given, [y], each)[y] for y, given in self.after.items()}
        return [*carried, *[found[y] if y in found else each[y] for y in self.loop.results]]

    def at_once(
        self, given: Iterable[Node], roots: Sequence[Node], each: Mapping[Node, Node]
    ) -> dict[Node, Node]:
        """The values of all steps of some roots, and of all that they are made of."""
        done = {x: each[x] for x in given}
        for x in above(given, roots, self.varies):
            xs, own = self.operands(x, done)
            done[x] = on_all_steps(x, xs, own, self.loop.settings["length"])
        return done

    def operands(self, node: Node, done: Mapping[Node, Node]) -> tuple[list[Node], list[bool]]:
        """The operands of a node outside of the loop, and which of them are of all steps."""
        xs = [done.get(x) or substitute([x], self.captured)[0] for x in node.inputs]
        return xs, [x in done for x in node.inputs]

    def summed(self, total: Sum, each: Mapping[Node, Node]) -> Node:
        """The sum of a term over all steps."""
        done = self.at_once(total.given, total.roots, each)
        if total.contracts:
            found = over_steps(total.term, *self.operands(total.term, done))
        else:
            found = tensor.sum_(done[total.term], axes=(0,))
        for view in total.views:
            found = Node(view.op, (found,), view.attrs)
        return found


def stays_small(node: Node, varies: Varies) -> bool:
    """Whether the values of all steps take no more memory than those that they are made of."""
    own = [x.inputs[0] if x.op in REPEATED else x for x in node.inputs if varies(x)]
    if node.op is tensor.einsum:
        pairs = zip(node.attrs["operands"], node.inputs, strict=True)
        return any(varies(x) and {*letters} >= {*node.attrs["result"]} for letters, x in pairs)
    return node.op in REPEATED | REDUCING or no_more(node.type.count, count_of(own))


def above(given: Iterable[Node], roots: Iterable[Node], varies: Varies) -> list[Node]:
    """What is made of given nodes, and of what does not vary, on the way to `roots`."""
    seen, made = set(given), set()
    stack = list(roots)
    while stack:
        x = stack.pop()
        if x not in seen and varies(x):
            seen.add(x)
            made.add(x)
            stack += x.inputs
    return [x for x in toposort(roots) if x in made]


def single(some: Iterable[Node]) -> bool:
    """Whether all are single numbers: a step costs less with them than a call for all steps."""
    return not any(x.type.shape for x in some)


def over_steps(node: Node, xs: Sequence[Node], stacked: Sequence[bool]) -> Node:
    """A contraction or a sum, over the first axis of stacked operands as well."""
    if node.op is tensor.sum_:
        return tensor.sum_(xs[0], axes=(0, *[axis + 1 for axis in node.attrs["axes"]]))
    return contraction(node, xs, stacked, over_steps=True)


def addend(param: Node, update: Node, used: Counter[Node]) -> Node | None:
    """What each step adds to a carry that nothing else depends on."""
    if used[param] != 1 or used[update] != 1:
        return None
    if update.op not in (elementwise.add, elementwise.subtract) or param not in update.inputs:
        return None
    left, right = update.inputs
    if update.op is elementwise.subtract:
        if right is param:
            return None
        right = -right
    return right if left is param else left


def count_of(some: Iterable[Node]) -> Size:
    """How many values there are in all."""
    total: Size = 0
    for x in some:
        total = total + x.type.count
    return total


def no_more(a: Size, b: Size) -> bool:
    """Whether `a` is provably not above `b`."""
    most = upper_bound(a - b)
    return most is not None and most <= 0
