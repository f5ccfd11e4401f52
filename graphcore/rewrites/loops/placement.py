"""Where each node of a loop's body is computed: one decision, before anything is moved.

once      f(k), of captured values      -> once before the loop, captured
before    f(x[t], k), of sequences      -> of all steps at once before the loop, a sequence
inside    f(carry, ...)                 -> at each step
after     result y[t] = f(a[t])         -> of all steps at once after it, of what steps recorded
          carry total + f(a[t])         -> the same, summed over the steps

A node computed of all steps at once costs one call instead of one a step, and memory for the
values of all steps. So the decision is about memory: nodes that no step needs, or that need no
carry, are computed at once if their values, or those that steps must record for them, take no more
memory than what is held anyway. Sizes are compared as polynomials: where neither is provably
larger, nodes stay inside. With numbers for unknown sizes a loop of a million steps would hold what
one of a hundred can; in run time the two differ by less than 5 % (gpt, kalman).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from graphcore.analysis.cost import TargetCosts
from graphcore.ir import Graph, Node, Size, TensorType, Trait, reached, toposort, unwrap
from graphcore.ir.axes import Indexes, Receives, Reduces
from graphcore.ir.graph import has_effect, may_raise_inside
from graphcore.ir.node import inputs_of
from graphcore.ir.sizes import lower_bound, upper_bound
from graphcore.ops import control, elementwise, leaf, tensor
from graphcore.ops.control import Loop

from .batching import works_on_all_steps
from .view import depends_on, trip_counts_inside, wanted_below

VIEWS_OF_SUMS = frozenset({tensor.reshape, tensor.transpose, elementwise.negative})
"""Ops that are applied to a sum over steps instead of to each term."""
REPEATED = frozenset({elementwise.add, elementwise.subtract, elementwise.multiply, tensor.expand})
"""Ops that are computed again in less time than their results are stored and read."""


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


class Steps:
    """The nodes that each step of a loop computes; `once` are the same at all steps.

    These can be computed outside of the loop.
    """

    def __init__(self, loop: Loop, body: Graph) -> None:
        self.loop, self.trip_counts = loop, trip_counts_inside(body)
        self.nodes = toposort(loop.roots)
        self.once = self.computed_once()

    def varies(self, node: Node) -> bool:
        """Whether a value differs from step to step."""
        return node not in self.once and not self.is_free(node)

    def is_free(self, node: Node) -> bool:
        """Whether a value is made of nothing, not even of a size that each step finds anew."""
        return Trait.FREE in node.op.traits and not depends_on(node, self.trip_counts)

    def computed_anyway(self) -> set[Node]:
        """The nodes that are computed at least once."""
        if self.loop.condition is not None:
            return set(reached([self.loop.condition], inputs_of))
        least = lower_bound(self.loop.settings["length"])
        return set(self.nodes) if least is not None and least >= 1 else set()

    def computed_once(self) -> set[Node]:
        """The nodes whose value is the same at all steps, and that can be computed outside.

        What may raise is not, unless it is computed whether there are steps or not.
        """
        found = set(self.loop.params.captured)
        sure = self.computed_anyway()
        for node in self.nodes:
            known = node.inputs and all(x in found or self.is_free(x) for x in node.inputs)
            known = known and not depends_on(node, self.trip_counts) and not has_effect(node)
            if known and (node in sure or not refuses(node)):
                found.add(node)
        return found


class Placement(Steps):
    """Where the nodes of a body are computed.

    `once` and `before` are computed before the loop, once and of all steps; `before` has the params
    of sequences as well. Steps record the values `recorded`. Of these, and of `before`, results are
    computed `after` the loop: for each the nearest nodes given; and so are the `sums`, by the param
    of their carry. Values `again` are computed by steps and once more after the loop, each of the
    nodes given, as it is larger than these. All else is computed at each step.
    """

    def __init__(self, loop: Loop, body: Graph, costs: TargetCosts) -> None:
        super().__init__(loop, body)
        self.costs = costs
        self.before = dict.fromkeys(loop.params.sequences)
        self.recorded = dict.fromkeys(loop.results)
        self.after: dict[Node, list[Node]] = {}
        self.sums: dict[Node, Sum] = {}
        self.again: dict[Node, list[Node]] = {}
        if loop.op is control.scan:
            self.place_before()
            self.place_results()
            self.place_sums()
            self.place_again()

    def at_once(self, node: Node) -> bool:
        """Whether an op can be computed of all steps at once.

        What may raise stays in the loop, so that the error says in which step; and so does what
        reads values of a size that each step finds anew, as steps cannot record these.
        """
        found = any(depends_on(x, self.trip_counts) for x in (node, *node.inputs))
        return works_on_all_steps(node) and not (found or refuses(node) or has_effect(node))

    # ---- before the loop

    def place_before(self) -> None:
        """f(x[t], k), where values of all steps take but a few times the memory of operands."""
        steps, once = self.loop.settings["length"], nearest_of(self.loop.roots, self.once)
        counters = {x.param for x in self.loop.sequences if control.is_counter(x.value)}
        arrays = [x for x in self.loop.operands.all if not control.is_counter(x)]
        held = {self.costs.values_held, *[x.type.count for x in (*arrays, *once)]}
        held |= {steps * y.type.count for y in self.loop.results}
        for node in self.nodes:
            if not self.at_once(node) or self.before.keys().isdisjoint(node.inputs):
                continue
            if not all(x in self.before or not self.varies(x) for x in node.inputs):
                continue
            own = [x for x in node.inputs if x in self.before and x not in counters]
            size, most = node.type.count, self.costs.memory_of_steps
            limits = [(size, x.type.count) for x in own] + [(steps * size, n) for n in held]
            if node.op is tensor.einsum:
                worth = is_larger_product(node)
            else:
                worth = any(no_more(taken, most * n) for taken, n in limits)
            if worth:
                self.before[node] = None

    # ---- after the loop

    def place_results(self) -> None:
        """Compute a result after the loop if what must be recorded for it is no larger."""
        late = self.unneeded_nodes(self.loop.results, self.loop.updates)
        for y in reversed([*self.recorded]):
            if y not in late and y not in self.before:
                continue
            del self.recorded[y]
            given = self.sources(y, late)
            new = self.unrecorded_nodes(given)
            if y in self.before or (no_more(count_of(new), y.type.count) and not single(given)):
                self.recorded.update(dict.fromkeys(new))
                self.after[y] = given
            else:
                self.recorded[y] = None

    def place_sums(self) -> None:
        """Turn accumulating carries into sums after the loop, under the same limit of memory."""
        roots = (*self.loop.updates, *self.recorded)
        used = Counter(roots)
        used.update(x for node in toposort(roots) for x in node.inputs)
        added = {x.param: addend(x.param, x.update, used) for x in self.loop.carries}
        terms = {param: term for param, term in added.items() if term is not None}
        others = [x.update for x in self.loop.carries if x.param not in terms]
        late = self.unneeded_nodes(terms.values(), (*others, *self.recorded))
        while found := {
            param: total
            for param, term in terms.items()
            if param not in self.sums and (total := self.sum_of(term, late)) is not None
        }:  # what one of them has recorded may be all that another needs
            self.sums |= found

    def place_again(self) -> None:
        """Record x instead of x + k that has more axes, where k is there after the loop anyway."""
        cheap = {x for x in self.nodes if x.op in REPEATED and self.at_once(x)}
        for y in [x for x in self.recorded if x in cheap]:
            given = self.sources(y, cheap)
            new = self.unrecorded_nodes(given)
            if len(new) == 1 and new[0].type.ndim < y.type.ndim:
                del self.recorded[y]
                self.recorded[new[0]] = None
                self.again[y] = given

    def unneeded_nodes(self, terms: Iterable[Node], needed: Iterable[Node]) -> set[Node]:
        """The nodes that no step needs, and that take no more memory for all steps at once."""
        early = reached(needed, inputs_of)
        return {
            node
            for node in toposort(terms)
            if node not in early
            and any(map(self.varies, node.inputs))
            and self.at_once(node)
            and self.stays_small(node)
        }

    def stays_small(self, node: Node) -> bool:
        """Whether the values of all steps take no more memory than those they are made of."""
        own = [unwrap(x, tensor.expand) for x in node.inputs if self.varies(x)]
        if node.op is tensor.einsum:
            pairs = zip(node.attrs["operands"], node.inputs, strict=True)
            result = {*node.attrs["result"]}
            return any(self.varies(x) and {*letters} >= result for letters, x in pairs)
        free = node.op is tensor.expand or isinstance(node.op.axes, Reduces)
        return free or no_more(node.type.count, count_of(own))

    def sources(self, part: Node, late: set[Node]) -> list[Node]:
        """The nearest nodes below that steps must record, or that are known before the loop."""
        return wanted_below(
            [part], lambda x: x in self.before or x not in late, lambda x: not self.varies(x)
        )

    def unrecorded_nodes(self, some: Iterable[Node]) -> list[Node]:
        """Those of some nodes whose values of all steps are not there yet."""
        return [x for x in some if x not in self.before and x not in self.recorded]

    def sum_of(self, term: Node, late: set[Node]) -> Sum | None:
        """The way to sum a term after the loop that records least; None if not worth it."""
        views = []
        while term.op in VIEWS_OF_SUMS and term not in self.before:
            views.append(term)
            (term,) = term.inputs
        contracts = term.op in (tensor.einsum, tensor.sum_) and term not in self.before
        contracts = contracts and self.at_once(term)
        parts = [term]
        if contracts or term in late - self.before.keys():
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
            x: y if no_more(memory(self.unrecorded_nodes(y)), memory([x])) else [x]
            for x, y in deep.items()
        }
        for chosen in (deep, shallow):
            given = list(dict.fromkeys(x for sources in chosen.values() for x in sources))
            new = self.unrecorded_nodes(given)
            most = parts if contracts else [x for x in given if x not in new]
            if no_more(memory(new), memory(most)):
                break
        else:
            if not contracts:
                if not self.is_held(term):
                    return None
                given = new = [term]
        if single([term, *given]) and not self.is_held(term):
            return None
        self.recorded.update(dict.fromkeys(new))
        return Sum(term, contracts, given, parts if contracts else [term], views[::-1])

    def is_held(self, term: Node) -> bool:
        """Whether the values of all steps take no more memory than the sequences of the loop."""
        read = [(x.param, unwrap(x.value, elementwise.cast)) for x in self.loop.sequences]
        held = [param for param, value in read if value.op is not leaf.iota]
        return no_more(term.type.count, count_of(held))


def refuses(node: Node) -> bool:
    """Whether a node may raise; positions that count up along an axis are all on it."""
    if not isinstance(node.op.axes, (Indexes, Receives)):
        return may_raise_inside(node)
    axes = node.attrs["axes"]
    whole = node.inputs[0] if isinstance(node.op.axes, Indexes) else node
    sources = (unwrap(i, tensor.expand) for i in node.inputs[-len(axes) :])
    pairs = zip(sources, (whole.type.shape[axis] for axis in axes), strict=True)
    return not all(i.op is leaf.iota and no_more(i.attrs["size"], size) for i, size in pairs)


def nearest_of(
    roots: Iterable[Node], some: Container[Node], beyond: Container[Node] = ()
) -> list[Node]:
    """The nearest of some nodes whose values are worth a param, but for those `beyond`.

    A repeated value is not, as repeating is free at each step.
    """
    return wanted_below(
        roots,
        lambda x: (
            x in some
            and bool(x.inputs)
            and x.op is not tensor.expand
            and isinstance(x.type, TensorType)
        ),
        beyond.__contains__,
    )


def addend(param: Node, update: Node, used: Counter[Node]) -> Node | None:
    """The term that each step adds to a carry, if nothing else depends on the carry."""
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


# ---- what memory values of all steps take


def is_larger_product(node: Node) -> bool:
    """Whether a contraction sums over something, so that it is one product of matrices at once."""
    letters = {i for operand in node.attrs["operands"] for i in operand}
    return len(letters) > len(node.attrs["result"])


def single(some: Iterable[Node]) -> bool:
    """Whether all are single numbers: a step costs less with them than a call for all steps."""
    return not any(x.type.shape for x in some)


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
