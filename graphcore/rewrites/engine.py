"""The two drivers. `convert` visits every node once; `simplify` repeats until nothing matches."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from graphcore.ir import Graph, Node, Op
from graphcore.ir.axes import AxisKind
from graphcore.ir.errors import GraphError, GraphTypeError
from graphcore.ir.interrupts import is_interrupt
from graphcore.ir.provenance import basename, thread_state, user_line
from graphcore.ir.remembered import MOST_RESULTS
from graphcore.ir.trace import current_trace, rule_name, without_modules
from graphcore.ir.transform import rewriter, settle_node, transform

from .pattern import Pattern

Rule = Callable[[Node], Node | None]
Conversion = Callable[..., Node]
Which = Op | type[AxisKind]


def convert(graph: Graph, rules: Mapping[Op, Conversion]) -> Graph:
    """Rebuild the graph once, inputs first: `rules[op](node, *converted inputs)` is the new node.

    Types may change. A node without a rule is rebuilt on its new inputs; its bodies are
    converted as well.
    """
    if graph.ops().isdisjoint(rules):
        return graph

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node]:
        rule = rules[node.op]
        return rule, rule(node, *inputs)

    return transform(graph, visit, at=rules, bodies=lambda body: convert(body, rules))


def simplify(graph: Graph, rules: RuleSet) -> Graph:
    """Apply `rules` to every node until none applies; types stay.

    Bodies are simplified as well. Normal forms are remembered for the rest of
    the compilation, so that nodes met again cost nothing.
    """
    roots = (*graph.params, *graph.outputs)
    for more, known in current_trace().known.get("normal forms", {}).items():
        if tuple(map(known.get, roots)) == roots and rules <= more:
            return graph
    bodies: Callable[[Graph], Graph] = lambda body: simplify(body, rules)
    return transform(graph, rules.step, bodies=bodies, done=normal_forms(rules), settle=True)


def normal_forms(rules: RuleSet) -> dict[Node, Node]:
    """Known normal forms; nodes that a larger set of rules left unchanged count as normal here."""
    known: dict[RuleSet, dict[Node, Node]] = current_trace().known.setdefault("normal forms", {})
    if rules not in known:
        larger = [forms for more, forms in known.items() if rules <= more]
        known[rules] = {x: y for forms in larger for x, y in forms.items() if x is y}
    return known[rules]


def simplifier(rules: RuleSet, stays: frozenset[Op] = frozenset()) -> Callable[[Node], Node]:
    """The function that gives the normal form of a node which was just built.

    So no node is built on others that are not in normal form, only to be built again later. Nodes
    of the ops that stay are left as they are, with all below them: other parts of the graph, which
    are not rebuilt with the node, know them.
    """
    bodies: Callable[[Graph], Graph] = lambda body: simplify(body, rules)
    trace, normal = current_trace(), normal_forms(rules)
    if stays:
        built = trace.known.setdefault("normal forms of nodes built", {})
        normal = built.setdefault((rules, stays), {x: y for x, y in normal.items() if x is y})
    step = rewriter(trace, rules.step, None, bodies, True)

    def form(node: Node, inputs: tuple[Node, ...]) -> Node:
        return node if node.op in stays else step(node, inputs)

    def normal_form(node: Node) -> Node:
        if node in normal:
            return normal[node]
        before = thread_state.source
        found = settle_node(node, form, normal, trace)
        thread_state.source = before
        return found

    return normal_form


op_of = attrgetter("op")


class RuleSet:
    """Rules tried at every node in the order in which they were added.

    A rule may ask for an operand of certain ops. Which rules a node meets depends on its op and
    those of its operands alone, and is remembered by these: most nodes meet no rule at all.
    """

    def __init__(self, rules: Iterable[Written] = (), asked: str = "rules") -> None:
        self.entries = [entry_of(rule, asked) for rule in rules]
        self.every: frozenset[Entry] = frozenset()  # of the entries when they were last compared
        self.met: dict[tuple[Op, ...], tuple[Rule, ...]] = {}

    def add(self, rule: Rule, ops: Iterable[Which], under: Iterable[Which]) -> None:
        """Try `rule` at nodes of `ops`, if `under` is given only above an operand of these ops.

        A kind of axes stands for all ops of just this kind, those declared later included.
        """
        self.entries.append(Entry(rule, frozenset(ops), frozenset(under)))
        self.met.clear()

    def on(self, *ops: Which, under: Iterable[Which] = ()) -> Callable[[Rule], Rule]:
        """Take a rule written as a function: `node -> new node`, or None where it fails."""

        def register(rule: Rule) -> Rule:
            self.add(rule, ops, under)
            return rule

        return register

    def __or__(self, other: RuleSet) -> RuleSet:
        """Both sets, these rules first."""
        both = RuleSet()
        both.entries += self.entries + other.entries
        return both

    def __le__(self, other: RuleSet) -> bool:
        """Whether the other set has all of these rules: it changes whatever this one changes."""
        return self is other or self.entry_set() <= other.entry_set()

    def entry_set(self) -> frozenset[Entry]:
        """The entries as a set, which is made anew where some were added since."""
        if len(self.every) != len(self.entries):
            self.every = frozenset(self.entries)
        return self.every

    def __reduce__(self) -> tuple[Any, ...]:
        return RuleSet, (self.entries,)

    def __repr__(self) -> str:
        files = dict.fromkeys(basename(rule.__code__.co_filename) for rule in self.rules())
        return f"<RuleSet: {len(self.rules())} rules of {', '.join(files)}>"

    def rules(self) -> list[Rule]:
        """Every rule once."""
        return list(dict.fromkeys(entry.rule for entry in self.entries))

    def rules_for(self, op: Op, *operands: Op) -> tuple[Rule, ...]:
        """The rules to try at a node of `op` on operands of these ops, in order."""
        return tuple(
            entry.rule
            for entry in self.entries
            if among(op, entry.ops)
            and (not entry.under or any(among(x, entry.under) for x in operands))
        )

    def step(self, node: Node, inputs: tuple[Node, ...] = ()) -> tuple[Rule, Node] | None:
        """The first rule that changes `node`, and the new node."""
        key = (node.op, *map(op_of, node.inputs))
        if (rules := self.met.get(key)) is None:
            if len(self.met) >= MOST_RESULTS:
                self.met.clear()
            rules = self.met[key] = self.rules_for(*key)
        for rule in rules:
            try:
                new = rule(node)
            except Exception as error:
                if is_interrupt(error):
                    raise
                where = f"in the rule {rule_name(rule)}, at {node.op.said} of {node.origin}"
                error.add_note(f"{where}; rules build nodes by ops, as elementwise.exp(x)")
                raise
            if new is not None and new is not node:
                return rule, new
        return None


class Entry(NamedTuple):
    """A rule, the ops of nodes at which it starts, and the ops that one operand must have."""

    rule: Rule
    ops: frozenset[Which]
    under: frozenset[Which]


def on(*ops: Which, under: Iterable[Which] = ()) -> Callable[[Rule], Rule]:
    """A function as a rule for lists of rules, tried as `RuleSet.add` says."""
    kinds = [op for op in (*ops, *under) if isinstance(op, type) and issubclass(op, AxisKind)]
    wrong = [op for op in (*ops, *under) if not isinstance(op, Op) and op not in kinds]
    if wrong or not ops:
        reason = f"{wrong[0]!r:.60} is not an op" if wrong else "there is no op"
        raise own_refusal("on", reason, "write @on(elementwise.log, under=[elementwise.cosh])")

    def enter(rule: Rule) -> Rule:
        if "entry" in vars(rule):
            cure = "name all ops in one: @on(elementwise.log, elementwise.log1p)"
            raise own_refusal("on", f"{rule_name(rule)} stands under another one", cure)
        vars(rule)["entry"] = Entry(rule, frozenset(ops), frozenset(under))
        return rule

    return enter


def is_importable(rule: Rule) -> bool:
    """Whether a module has the function of a rule by its name, so that a pickle can hold it."""
    function = rule.right if isinstance(rule, Equation) else rule
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


Written: TypeAlias = "tuple[Pattern, Callable[..., Node | None]] | Rule | Entry"
"""A rule as it is written: an equation in two halves, or a function under `on`."""
Rules: TypeAlias = "Sequence[Written] | RuleSet"


def entry_of(rule: Any, asked: str) -> Entry:
    """The entry of a rule that is written in one of these ways; refused in the name `asked`."""
    match rule:
        case Pattern(op=Op() as op) as left, right if hasattr(right, "__code__"):
            names, taken = left.names(), right.__code__.co_varnames[: right.__code__.co_argcount]
            if names != {*taken}:
                reason = f"{left} binds {', '.join(sorted(names))}; its function takes others"
                cure = f"write lambda {', '.join(sorted(names))}: ..."
                raise own_refusal(asked, reason, cure)
            wanted = [op for op in map(Pattern.root, left.inputs) if op is not None]
            return Entry(Equation(left, right), frozenset([op]), frozenset(wanted[:1]))
        case Entry():
            return rule
    entry = getattr(rule, "entry", None)
    if not isinstance(entry, Entry):
        reason = f"{rule_name(rule) if callable(rule) else repr(rule):.200} is not a rule"
        cure = "give pairs of a pattern and a function, or functions with @on above them"
        raise own_refusal(asked, reason, cure)
    return entry


def own_refusal(
    name: str, reason: str, cure: str, kind: type[GraphError] = GraphTypeError
) -> GraphError:
    """The refusal of a rule or pass of one's own, with the user's line."""
    return kind(f"{name}: {reason}\n  given at {user_line()}\n  cure: {cure}")


def among(op: Op, some: frozenset[Which]) -> bool:
    """Whether an op, or its kind of axes, is one of some."""
    return op in some or type(op.axes) in some


class Equation:
    """A rule in two halves: where the pattern `left` matches, `right` of the nodes it bound."""

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

    def __reduce__(self) -> tuple[Any, ...]:
        return Equation, (self.left, self.right)

    def __repr__(self) -> str:
        return f"{self.left} = {result_text(self.__code__)}"


def result_text(code: CodeType) -> str:
    """The text of what a lambda returns; of another function its name."""
    places: list[Any] = [place for place in code.co_positions() if place[3]]
    if code.co_name != "<lambda>" or not places:
        return code.co_name
    first, start = min((line, column) for line, _, column, _ in places)
    last, end = max((line, column) for _, line, _, column in places)
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:end]
    text = " ".join(b"".join([lines[0][start:], *lines[1:]]).decode().split())
    return without_modules(text, code.co_filename) or "..."
