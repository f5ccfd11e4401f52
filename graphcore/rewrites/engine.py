"""The two drivers. `convert` visits every node once; `simplify` repeats until nothing matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from graphcore.ir.errors import UnsettledError
from graphcore.ir.graph import Graph, with_graphs
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.provenance import basename, inherit
from graphcore.ir.types import fits

from .pattern import Pattern

Rule = Callable[[Node], Node | None]
Conversion = Callable[..., Node]


class Firing(NamedTuple):
    """One application of a rule."""

    rule: Rule
    before: Node
    after: Node

    def __repr__(self) -> str:
        code = self.rule.__code__
        name = getattr(self.rule, "__name__", repr(self.rule))
        place = f"{basename(code.co_filename)}:{code.co_firstlineno}"
        return f"<Firing of {name} at {place}: {self.before!r} -> {self.after!r}>"


def convert(graph: Graph, rules: dict[Op, Conversion]) -> Graph:
    """Rebuild the graph once, inputs first: `rules[op](node, *converted inputs)` is the new node.

    Types may change. A node without a rule is rebuilt on its new inputs; the graphs it holds are
    converted as well.
    """
    if graph.ops().isdisjoint(rules):
        return graph
    done: dict[Node, Node] = {}
    before = inherit(None)
    try:
        for node in graph.nodes():
            if (rule := rules.get(node.op)) is not None:
                inherit(node.origin)
                new = rule(node, *[done[x] for x in node.inputs])
                done[node] = new if new.labels is not None else new.label(node.labels)
            elif node.op.dialect == "control":
                attrs = with_graphs(node, lambda held: convert(held, rules))
                inherit(node.origin)
                done[node] = Node(node.op, tuple([done[x] for x in node.inputs]), attrs)
            else:
                done[node] = node.after(done)
    finally:
        inherit(before)
    return rebuilt(graph, done)


def rebuilt(graph: Graph, done: dict[Node, Node]) -> Graph:
    """The graph of what became of the params and outputs."""
    new = Graph(tuple(done[x] for x in graph.params), tuple(done[x] for x in graph.outputs))
    return graph if new == graph else new


class RuleSet:
    """Rules tried in order at every node.

    Indexed by the op they start at and, where they need one, by the op of an operand: most nodes
    meet no rule at all.
    """

    def __init__(
        self, equations: Iterable[tuple[Pattern, Callable[..., Node | None]]] = ()
    ) -> None:
        self.always: dict[Op, list[Rule]] = {}
        self.under: dict[Op, dict[Op, list[Rule]]] = {}
        for left, right in equations:
            assert left.op is not None, "an equation needs an op on its left-hand side"
            rule = Equation(left, right)
            wanted = [op for op in map(Pattern.root, left.inputs) if op is not None]
            self.add(rule, [left.op], wanted[:1])

    def add(self, rule: Rule, ops: Iterable[Op], under: Iterable[Op]) -> None:
        """Try `rule` at nodes of `ops`, if `under` is given only above an operand of these ops."""
        under = list(under)
        for op in ops:
            if not under:
                self.always.setdefault(op, []).append(rule)
            for operand in under:
                self.under.setdefault(op, {}).setdefault(operand, []).append(rule)

    def on(self, *ops: Op, under: Iterable[Op] = ()) -> Callable[[Rule], Rule]:
        """Take a rule written as a function: `node -> new node`, or None where it fails."""

        def register(rule: Rule) -> Rule:
            self.add(rule, ops, under)
            return rule

        return register

    def __or__(self, other: RuleSet) -> RuleSet:
        """Both sets, these rules first."""
        both = RuleSet()
        for rules in (self, other):
            for op, some in rules.always.items():
                both.always.setdefault(op, []).extend(some)
            for op, near in rules.under.items():
                for operand, some in near.items():
                    both.under.setdefault(op, {}).setdefault(operand, []).extend(some)
        return both

    def rules(self) -> list[Rule]:
        """Every rule once."""
        lists = [*self.always.values()]
        for near in self.under.values():
            lists += near.values()
        return list(dict.fromkeys(rule for some in lists for rule in some))

    def step(self, node: Node) -> tuple[Rule, Node] | None:
        """The first rule that changes `node`, and what it makes of it."""
        if (near := self.under.get(node.op)) is not None:
            for x in node.inputs:
                for rule in near.get(x.op, ()):
                    if (new := rule(node)) is not None and new is not node:
                        return rule, new
        for rule in self.always.get(node.op, ()):
            if (new := rule(node)) is not None and new is not node:
                return rule, new
        return None


class Equation:
    """A rule in two halves: where the pattern `left` matches, `right` of what it bound."""

    __slots__ = ("__code__", "left", "right")

    def __init__(self, left: Pattern, right: Callable[..., Node | None]) -> None:
        self.left, self.right = left, right
        self.__code__ = right.__code__  # where the rule stands, as for a rule that is a function

    def __call__(self, node: Node) -> Node | None:
        """The right-hand side, of the first match that has one."""
        for bound in self.left.match(node, {}):
            if (new := self.right(**bound)) is not None:
                return new
        return None

    def __repr__(self) -> str:
        return f"{self.left} = ..."


def simplify(graph: Graph, rules: RuleSet, firings: list[Firing]) -> Graph:
    """Apply `rules` to every node until none fires; types stay. Each firing is appended.

    The graphs that nodes hold are simplified with them.
    """
    if graph.settled is rules:
        return graph
    done: dict[Node, Node] = {}
    before = inherit(None)
    try:
        for node in graph.nodes():
            if node not in done:
                form = advanced(node, rules, done, firings)
                done[node] = node if form is node else settled(form, rules, done, firings)
    finally:
        inherit(before)
    new = rebuilt(graph, done)
    new.settled = rules
    return new


def advanced(node: Node, rules: RuleSet, done: dict[Node, Node], firings: list[Firing]) -> Node:
    """One step from `node`, whose inputs are in their final form, towards its own; or itself."""
    if (new := node.after(done)) is not node:
        return new
    inherit(node.origin)
    if (fired := rules.step(node)) is not None:
        rule, new = fired
        assert fits(node.type, new.type), f"{rule} changes the type: {node!r} -> {new!r}"
        firings.append(Firing(rule, node, new.label(node.labels)))
        return new
    if node.op.dialect != "control":
        return node
    attrs = with_graphs(node, lambda held: simplify(held, rules, firings))
    inherit(node.origin)
    return Node(node.op, node.inputs, attrs)


def settled(root: Node, rules: RuleSet, done: dict[Node, Node], firings: list[Firing]) -> Node:
    """The final form of `root`, on a stack instead of recursion.

    A node waits first for its inputs, then for what it `becomes` when a rule fires. Rules that undo
    each other would have it wait for ever, so there is a bound.
    """
    becomes: dict[Node, Node] = {}
    stack = [root]
    steps = 0
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
        elif node in becomes:
            form = becomes[node]
            if form in done:
                done[node] = done[form]
            else:
                if (steps := steps + 1) > STEPS:
                    restless = set(stack[-STEPS:])
                    raise unsettled(root, [f for f in firings if f.before in restless])
                stack.append(form)
        elif waiting := [x for x in node.inputs if x not in done]:
            stack.extend(reversed(waiting))
        elif (form := advanced(node, rules, done, firings)) is node:
            done[node] = node
        else:
            becomes[node] = form
    return done[root]


STEPS = 1000
"""Forms that one node, and what rules make of it, may pass through; programs need about 15."""

SHOWN = 10
"""Rules that an error names."""


def unsettled(root: Node, firings: Iterable[Firing]) -> UnsettledError:
    """The error that names the rules which do not come to rest."""
    rules = list(dict.fromkeys(firing.rule for firing in firings))
    shown = [described(rule) for rule in rules[:SHOWN]]
    more = [f"and {len(rules) - SHOWN} more"] if len(rules) > SHOWN else []
    return UnsettledError(
        f"the rewriting of {root.op.said} at {root.origin} does not settle: {root.type}\n"
        f"  rules that keep firing: {', '.join([*shown, *more])}\n"
        "  cure: this is a defect of graphcore; report it together with the program"
    )


def described(rule: Rule) -> str:
    """The name of a rule, or its left-hand side, and where it stands."""
    code = rule.__code__
    name = str(rule) if isinstance(rule, Equation) else code.co_name
    return f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})"
