"""How facts about values follow from facts about other values, through loops, branches and bodies.

An analysis says what an op makes of the facts about its operands, and what holds of a value that is
one of several. What several values, loops, branches and bodies make of them is said here once. What
is known of a carry holds at the start of a loop and after each step: a fixed point. It is reached,
as the facts of every analysis become weaker finitely often only.

What `ASKED` analyses find of operands is known of the params of bodies, wherever a walk that
rebuilds a graph enters these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from graphcore.ir import Graph, Node, Op
from graphcore.ir.trace import Given, Trace, current_trace, known_facts
from graphcore.ops import control, leaf

Fact = TypeVar("Fact")
Known: TypeAlias = MutableMapping[Node, Sequence[Fact]]
"""The fact about each value of a node."""


class Forward(ABC, Generic[Fact]):
    """Facts about results, found from those about operands."""

    subject: ClassVar[str | None] = None
    """The name of its tables, if what it finds is kept for a compilation.

    It must follow from the nodes and the facts about params alone.
    """
    unknown: Fact
    """The fact about a param before an analysis has found a stronger one."""
    weakest: Fact | None = None
    """What joins end in, if that is one fact: it does not change any more."""

    @abstractmethod
    def of_node(self, node: Node, given: Sequence[Fact], known: Known[Fact]) -> Sequence[Fact]:
        """The facts about each result of an op, given those about each of `operands(node)`.

        `known` has the facts about all nodes below.
        """

    @abstractmethod
    def join(self, node: Node, several: Sequence[Fact]) -> Fact:
        """What is known of a value that is one of several, as steps or branches of `node` decide.

        Joined with more again and again, a fact must come to rest.
        """

    def reads(self, node: Node) -> Sequence[Node]:
        """The operands that facts about a node follow from; of others `unknown` is given."""
        return node.inputs

    def matters(self, graph: Graph) -> bool:
        """Whether rules may ask for facts about nodes of a body."""
        return True

    def one_step(self, node: Node, x: Node, fact: Fact) -> Fact:
        """What is known of one element of the sequence `x` of the loop `node`."""
        return fact

    def all_steps(self, node: Node, fact: Fact, given: Sequence[Fact]) -> Fact:
        """What is known of the results of all steps, given that of one and of all operands."""
        return fact

    def last(
        self, node: Node, given: Sequence[Fact], params: Sequence[Fact], made: Sequence[Fact]
    ) -> Sequence[Fact]:
        """What is known of the last carries: there may be no step."""
        return params[: node.attrs["carries"]]

    def chosen(self, node: Node, index: Fact, several: Sequence[Fact]) -> Fact:
        """What is known of a result of the switch `node`."""
        return self.join(node, several)

    # ---- the walk

    def facts(self, x: Node) -> Sequence[Fact]:
        """The facts about the values of a node, in the graph or body that is being rebuilt."""
        return self.find(x, known_facts(self.subject))

    def find(self, x: Node, known: Known[Fact]) -> Sequence[Fact]:
        """The facts about the values of a node, entered in `known` with all they follow from."""
        if x in known:
            return known[x]
        look, stack = known.get, [x]
        while stack:
            node = stack[-1]
            facts: Sequence[Any] = [*map(look, node.inputs)]
            if None in facts:
                if new := [y for y in self.reads(node) if y not in known]:
                    stack += reversed(new)
                    continue
                facts = [(self.unknown,) if own is None else own for own in facts]
            known[stack.pop()] = self.after(node, [*chain.from_iterable(facts)], known)
        return known[x]

    def after(self, node: Node, given: Sequence[Fact], known: Known[Fact]) -> Sequence[Fact]:
        """The facts about the values of any node, given those about each of `operands(node)`."""
        rule = STRUCTURE.get(node.op)
        return self.of_node(node, given, known) if rule is None else rule(self, node, given)

    def of_outputs(self, graph: Graph, given: Iterable[Fact]) -> list[Fact]:
        """The facts about the outputs of a graph, given those about its params."""
        known = self.inside(graph, given)
        return [self.find(y, known)[0] for y in graph.outputs]

    def inside(self, graph: Graph, given: Iterable[Fact]) -> Known[Fact]:
        """The table for the nodes of a graph, given the facts about its params."""
        if self.subject is None:
            return {param: (fact,) for param, fact in zip(graph.params, given, strict=True)}
        more = self.more_known(graph, given)
        tables = current_trace().tables(more)
        return tables.setdefault(self.subject, {}) if more else known_facts(self.subject)

    def more_known(self, graph: Graph, given: Iterable[Fact]) -> Given:
        """The facts about params of a graph that are stronger than `unknown`."""
        pairs = zip(graph.params, given, strict=True)
        return frozenset([(self.subject, x, (y,)) for x, y in pairs if y != self.unknown])

    def given_to_bodies(self, node: Node, given: Sequence[Fact]) -> list[Fact]:
        """The facts about the params of bodies, given those about the operands of `node`."""
        params = list(control.given_to_bodies(node, given))
        if node.op not in control.LOOPS:
            return params
        body, n = node.attrs["body"], node.attrs["carries"]
        for i in range(n, n + node.attrs.get("sequences", 0)):
            params[i] = self.one_step(node, node.inputs[i], params[i])
        while open := [i for i in range(n) if params[i] != self.weakest]:
            made = self.of_outputs(
                Graph(body.params, tuple([body.outputs[i] for i in open])), params
            )
            before = [*params]
            for i, fact in zip(open, made, strict=True):
                params[i] = self.join(node, (before[i], fact))
            if params == before:
                break
        return params

    def of_loop(self, node: Node, given: Sequence[Fact]) -> Sequence[Fact]:
        """The last carries, and the results of all steps."""
        return self.of_steps(node, given, self.given_to_bodies(node, given))

    def of_steps(self, node: Node, given: Sequence[Fact], params: Sequence[Fact]) -> Sequence[Fact]:
        """The same, given the facts about operands, and about params at the fixed point."""
        made, n = self.of_outputs(node.attrs["body"], params), node.attrs["carries"]
        steps = [self.all_steps(node, fact, given) for fact in made[n:]]
        return (*self.last(node, given, params, made), *steps)

    def of_switch(self, node: Node, given: Sequence[Fact]) -> Sequence[Fact]:
        """A result is that of one of the branches."""
        index, *own = given
        branches = [self.of_outputs(branch, own) for branch in node.attrs["branches"]]
        return tuple([self.chosen(node, index, ys) for ys in zip(*branches, strict=True)])

    def of_body(self, node: Node, given: Sequence[Fact]) -> Sequence[Fact]:
        """The results are those of the body."""
        return self.of_outputs(node.attrs["body"], given)


STRUCTURE: Mapping[Op, Callable[[Forward[Any], Node, Sequence[Any]], Sequence[Any]]] = {
    leaf.project: lambda analysis, node, given: (given[node.attrs["index"]],),
    control.scan: Forward.of_loop,
    control.while_loop: Forward.of_loop,
    control.switch: Forward.of_switch,
    control.call: Forward.of_body,
    control.custom: Forward.of_body,
    control.linear: Forward.of_body,
}
"""What is made of facts by ops that only hand values on."""

ASKED: list[Forward[Any]] = []
"""The analyses that rules ask about single nodes."""


def known_inside(trace: Trace, node: Node, body: Graph) -> Given:
    """The facts about the params of a body: those about the operands that stand for them.

    Nothing is known of the params of rules of derivatives.
    """
    found: dict[Node, dict[Graph, Given]] = trace.known.setdefault("known of params", {})
    if node not in found:
        found[node] = given_inside(node)
    return found[node].get(body, frozenset())


def given_inside(node: Node) -> dict[Graph, Given]:
    """What rules know of the params of each body that a node computes."""
    found: dict[Graph, Given] = dict.fromkeys(control.computed_bodies(node), frozenset())
    for analysis in ASKED:
        if asking := list(filter(analysis.matters, found)):
            known = known_facts(analysis.subject)
            own = [analysis.find(x, known)[0] for x in node.inputs]
            if own.count(analysis.unknown) < len(own):
                params = analysis.given_to_bodies(node, own)
                found |= {body: found[body] | analysis.more_known(body, params) for body in asking}
    return found


Trace.inside = known_inside
