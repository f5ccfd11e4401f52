"""The walk by which passes rebuild graphs.

A pass only says which node takes the place of a node::

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        ...  # `inputs` are what the node's inputs have become

    new = transform(graph, visit)

The walk visits every node once, inputs first, rebuilds those for which `visit` returns None, gives
new nodes the user's line and the labels of the node whose place they take, and enters the rewrite
in the trace of the compilation. Recursion is bounded, so that depth is no limit.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from .errors import GraphError, GraphTypeError, GraphValueError, UnsettledError
from .graph import WITH_BODIES, Graph, with_bodies
from .help_text import parameters
from .node import Attrs, Node, inputs_of, toposort
from .op import Op
from .provenance import described_by, inherit, is_ours, thread_state
from .sizes import Expression, Size
from .sizes import substitute as replaced
from .trace import Record, Rule, Trace, current_trace, rule_name, tracing
from .types import fits

Visit = Callable[[Node, tuple[Node, ...]], "tuple[Rule, Node] | None"]
Form = Callable[[Node, tuple[Node, ...]], Node]

STEPS = 1000
"""The most forms of nodes that may wait for one another; programs need about 15."""

DEPTH = 8
"""The forms and operands of a new node that are followed before a stack holds those that wait."""

SHOWN = 10
"""Rules that an error names."""


@parameters(
    visit="The rule that applies to a node and the node it makes; None where none does. Its "
    "arguments are the node, and the new nodes of its operands. Types may change.",
    at="The ops whose nodes `visit` is given; those of every op, if this is not given.",
    bodies="The change of the bodies of nodes that `visit` leaves alone.",
    operands="The nodes that must have been visited before a node; its inputs, if this is not "
    "given.",
    done="The new nodes of those rebuilt so far, which are not visited, nor nodes that only they "
    "need. The walk adds to it.",
    settle="Whether what `visit` makes is visited in its turn, until `visit` returns None for it. "
    "Then nodes are rebuilt on their new inputs first, and a rule may not change a type.",
)
def transform(
    graph: Graph,
    visit: Visit,
    *,
    at: Container[Op] | None = None,
    bodies: Callable[[Graph], Graph] | None = None,
    operands: Callable[[Node], tuple[Node, ...]] | None = None,
    done: dict[Node, Node] | None = None,
    settle: bool = False,
) -> Graph:
    """The graph in which what `visit` returns takes the place of each node.

    Raises
    ------
    GraphError
        If a rule changes a type, or if the forms of a node do not come to rest; the error names the
        rules.
    """
    if thread_state.trace is None:
        within: dict[str, Any] = {"at": at, "bodies": bodies, "operands": operands, "done": done}
        if (stage := graph.trace) is None:
            with described_by(Trace(graph.lines())):
                return transform(graph, visit, **within, settle=settle)
        trace = Trace({node: stage.origin(node) for node in graph.every_node()})
        trace.labels |= stage.labels
        with tracing(trace):  # by hand: the new stage has its lines and dims too
            made = transform(graph, visit, **within, settle=settle)
        return graph if made is graph else Graph(made.params, made.outputs, trace)
    done = {} if done is None else done
    trace, before = current_trace(), thread_state.source
    form = rewriter(trace, visit, at, bodies, settle)
    roots = (*graph.params, *graph.outputs)
    try:
        if operands is None:
            become = done.__getitem__
            if settle:  # all nodes below one that is done are done as well
                for node in graph.nodes():
                    if node not in done:
                        new = form(node, tuple(map(become, node.inputs)))
                        done[node] = new if new is node else settle_node(new, form, done, trace)
            else:
                for node in toposort(roots, done) if done else graph.nodes():
                    inputs = tuple(map(become, node.inputs))
                    left = at is not None and node.op not in at and inputs == node.inputs
                    if left and (bodies is None or node.op.dialect not in WITH_BODIES):
                        done[node] = node  # as nearly all, so that this must be quick
                        if before is not None:
                            trace.sources.setdefault(node, before)
                    else:
                        done[node] = form(node, inputs)
        else:
            walk(roots, form, operands, done, settle, trace)
    finally:
        inherit(before)
    params, outputs = ([done[x] for x in side] for side in (graph.params, graph.outputs))
    rebuilt = Graph(tuple(params), tuple(outputs))
    return graph if rebuilt == graph else rebuilt


def rewriter(
    trace: Trace,
    visit: Visit,
    at: Container[Op] | None,
    bodies: Callable[[Graph], Graph] | None,
    settle: bool,
) -> Form:
    """The function from a node and its new inputs to the node that takes its place, by `visit`.

    Where forms settle this is the next step towards that node.
    """
    records, labels, moves = trace.records, trace.labels, trace.moves[-1]
    before, sources = thread_state.source, trace.sources
    nested = before is not None

    def form(node: Node, inputs: tuple[Node, ...]) -> Node:
        if nested and node not in sources:
            sources[node] = before  # it is in a body, or a rule brings it along
        op, changed = node.op, inputs != node.inputs
        asked = at is None or op in at
        if not changed and not asked and (bodies is None or op.dialect not in WITH_BODIES):
            return node
        thread_state.source = node
        if changed and settle:
            new = Node(op, inputs, node.attrs)
        elif asked and (made := visit(node, inputs)) is not None:
            rule, new = made
            if new is node:
                return node
            if settle and not (isinstance(new, Node) and fits(node.type, new.type)):
                raise misfit_error(rule, node, new)
            records.append(Record(rule, node, new))
        elif bodies is not None and op.dialect in WITH_BODIES:
            new = Node(op, inputs, with_bodies(node, trace.enter(node, bodies)))
        elif changed:
            new = Node(op, inputs, node.attrs)
        else:
            return node
        moves.append((node, new))
        if new not in labels and (known := labels.get(node) or node.type.dims) is not None:
            labels[new] = known
        return new

    return form


def settle_node(
    node: Node, form: Form, done: dict[Node, Node], trace: Trace, depth: int = DEPTH
) -> Node:
    """The last form of a node that was made, entered in `done`: most often the node itself.

    Few of the nodes below it are new, so that calls of itself, up to `depth`, are the quickest.
    """
    if (known := done.get(node)) is not None:
        return known
    if not depth:
        walk((node,), form, inputs_of, done, True, trace)
        return done[node]
    for x in node.inputs:
        if x not in done:
            settle_node(x, form, done, trace, depth - 1)
    new = form(node, tuple([done[x] for x in node.inputs]))
    last = done[node] = node if new is node else settle_node(new, form, done, trace, depth - 1)
    return last


def walk(
    roots: Iterable[Node],
    form: Form,
    operands: Callable[[Node], tuple[Node, ...]],
    done: dict[Node, Node],
    settle: bool,
    trace: Trace,
) -> None:
    """Fill `done` with the new nodes of `roots` and of all nodes below them, on a stack.

    A node waits for its operands and, where forms settle, for the last of its own forms.
    """
    becomes: dict[Node, Node] = {}
    entered: set[Node] = set()
    depth = 0
    known = done.get
    stack = [root for root in roots if root not in done]
    stack.reverse()
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
        elif (new := becomes.get(node)) is not None:
            if new in done:
                done[node] = done[new]
                depth -= 1
            else:
                if (depth := depth + 1) > STEPS:
                    restless = set(stack[-STEPS:])
                    raise unsettled_error(node, [r for r in trace.records if r.before in restless])
                stack.append(new)
        else:
            needed = operands(node)
            inputs: tuple[Any, ...] = tuple(map(known, needed))
            if None in inputs:
                assert settle or node not in entered, f"{node!r} at {node.origin} waits for itself"
                entered.add(node)
                stack += [x for x in reversed(needed) if x not in done]
            elif (new := form(node, inputs)) is node or not settle:
                done[node] = new
            else:
                becomes[node] = new


def keep_node(node: Node, inputs: tuple[Node, ...]) -> None:
    """The visit of a walk that changes operands or bodies only."""


def substitute(roots: Iterable[Node], new: Mapping[Node, Node]) -> tuple[Node, ...]:
    """`roots` with every node that is a key of `new` replaced; the rest keep their origins."""
    graph = Graph((), tuple(roots))
    return transform(graph, keep_node, at=(), done=dict(new)).outputs


def resize(nodes: Iterable[Node], sizes: Mapping[str, Size]) -> tuple[Node, ...]:
    """Nodes with other sizes in place of unknown ones, in bodies as well."""

    def resize_value(value: Any) -> Any:
        match value:
            case Expression():
                return replaced(value, sizes)
            case Graph():
                found = resize((*value.params, *value.outputs), sizes)
                count = len(value.params)
                return Graph(found[:count], found[count:])
            case tuple():
                return tuple(map(resize_value, value))
        return value

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node]:
        attrs = Attrs({name: resize_value(value) for name, value in node.attrs.items()})
        return resize, Node(node.op, inputs, attrs)

    graph = Graph((), tuple(nodes))
    return transform(graph, visit).outputs if sizes else graph.outputs


def misfit_error(rule: Rule, node: Node, new: object) -> GraphError:
    """The error that names a rule whose result cannot take the place of a node."""
    made = str(new.type) if isinstance(new, Node) else f"{new!r:.60}, which is not a node"
    cure = "let it return a node of the same dtype and shape, or None where it does not apply"
    return GraphTypeError(
        f"the rule {rule_name(rule)} changes the type of {node.op.said} at {node.origin}\n"
        f"  before: {node.type}\n  after: {made}\n  cure: {cure}"
    )


def unsettled_error(root: Node, records: Iterable[Record]) -> GraphError:
    """The error that names the rules of these records, which do not end."""
    rules = sorted(dict.fromkeys(record.rule for record in records), key=is_rule_of_ours)
    shown = [rule_name(rule) for rule in rules[:SHOWN]]
    more = [f"and {len(rules) - SHOWN} more"] if len(rules) > SHOWN else []
    kind: type[GraphError] = UnsettledError
    cure = "this is a defect of graphcore; report it together with the program"
    if rules and not is_rule_of_ours(rules[0]):
        kind = GraphValueError
        cure = "let a rule return None where its result, or that of another rule, would match again"
    return kind(
        f"the rewriting of {root.op.said} at {root.origin} does not settle: {root.type}\n"
        f"  rules that keep firing: {', '.join([*shown, *more])}\n"
        f"  cure: {cure}"
    )


def is_rule_of_ours(rule: Rule) -> bool:
    """Whether a rule is one of this package."""
    return is_ours(getattr(rule, "__code__", is_rule_of_ours.__code__).co_filename)
