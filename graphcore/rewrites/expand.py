"""Lazy derivatives -> plain ops: accumulation over the graph between `wrt` and the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from graphcore.analysis.paths import between, of_floats, refuse_unknown
from graphcore.analysis.values import is_one
from graphcore.ir import Graph, Node, Op, Rule, Trait, TupleType, full_like
from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphTypeError, UnsettledError
from graphcore.ir.graph import with_bodies
from graphcore.ir.provenance import Asked, inherit, thread_state
from graphcore.ir.trace import Record, current_trace
from graphcore.ir.transform import substitute, transform
from graphcore.ops import autodiff, control, elementwise, leaf, tensor

from .derivatives import CONTROL, JVP, PARTIALS, TRANSPOSE, VJP, Select, Wins
from .derivatives.divided_differences import as_factors, in_full, orders, slopes
from .derivatives.factors import quotient
from .derivatives.partials import Partial
from .engine import Conversion, convert, simplifier
from .loops.view import trip_counts_inside
from .plain import equals, expand, negate, sum_over, unsum, where
from .shields import added, shield
from .tidy import tidy


def pull_back(ys: Sequence[Node], wrt: Sequence[Node], cts: Sequence[Node]) -> list[Node]:
    """The cotangent of each `wrt`: from the results down, every use of a value adds its share."""
    path = between(ys, wrt)
    total: dict[Node, Node] = {}
    asked, records = thread_state.source, current_trace().records
    tidied = simplifier(tidy, frozenset({autodiff.barrier}))
    for y, ct in zip(ys, cts, strict=True):
        if y in path:
            ct = with_barrier(ct)
            total[y] = total[y] + ct if y in total else ct
    for node in reversed(path):
        inherit(source := Asked(node, asked))
        if node.op is leaf.project:
            continue  # the node of several values passes its cotangent on
        elif isinstance(node.type, TupleType):
            shares = several_cotangents(node, total, path)
        elif node in total:
            shares = cotangents(node, total[node].label(node.labels), path)
        else:
            continue
        for at, (x, share) in enumerate(zip(node.inputs, shares, strict=True)):
            if share is not None and x in path:
                records.append(Record(rule_of(node.op), node, share, at, source))
                share = real_share(share, x)
                if x in total:
                    share = added(total[x], tidied(share))
                    records.append(Record(added, node, share, at, source))
                total[x] = tidied(share)
    inherit(asked)
    return [total[x] if x in total else full_like(x, 0) for x in wrt]


def with_barrier(ct: Node) -> Node:
    """A cotangent or tangent; one that is an input has a barrier, as it may hold any zeros."""
    return autodiff.barrier(ct) if ct.op is leaf.input_ else ct


def rule_of(op: Op) -> Rule:
    """The derivative rule of an op."""
    tables: tuple[Mapping[Op, Rule], ...] = (PARTIALS, TRANSPOSE, VJP, JVP)
    for table in tables:
        if (found := table.get(op)) is not None:
            return found
    return CONTROL[op].pullback


def cotangents(node: Node, ct: Node, path: dict[Node, None]) -> Sequence[Node | None]:
    """The cotangents of `node`'s inputs, given its own."""
    if path.keys().isdisjoint(node.inputs):
        return (None,) * len(node.inputs)
    if node.op in PARTIALS:
        refuse_unknown(node, path)
        partials = PARTIALS[node.op](node, *node.inputs)
        shares = [
            scale(p, ct) if x in path else None for p, x in zip(partials, node.inputs, strict=True)
        ]
        return with_kinks(node, ct, shares)
    if node.op in TRANSPOSE:
        return TRANSPOSE[node.op](node, ct)
    if node.op in VJP:
        return with_kinks(node, ct, VJP[node.op](node, ct))
    if node.op in JVP:
        return input_cotangents(node, [ct], path)
    raise GraphTypeError(
        f"{node.op.name} at {node.origin} has no derivative: {node.type}\n"
        "  cure: put stop_gradient around it if its derivative should count as zero"
    )


KINKS = frozenset({elementwise.absolute, elementwise.hypot, tensor.norm})
"""Sizes of their operands, with a kink where they are 0."""


def with_kinks(node: Node, ct: Node, shares: Sequence[Node | None]) -> Sequence[Node | None]:
    """The shares of the operands of `node`, which know how `ct` varies with it if it has a kink."""
    if node.op not in KINKS or ct.op is leaf.full:
        return shares
    axes = node.attrs.get("axes", ())
    return [
        share and autodiff.kinked(share, ct, x, node, axes=axes)
        for share, x in zip(shares, node.inputs, strict=True)
    ]


def tangent_of_kink(node: Node, tangent: Node, moving: Sequence[Node | None]) -> Node:
    """The tangent of `node`, which knows those of its operands if it has a kink."""
    if node.op in KINKS:
        axes = node.attrs.get("axes", ())
        for x, t in zip(node.inputs, moving, strict=True):
            if t is not None:
                tangent = autodiff.kinked_tangent(tangent, t, x, node, axes=axes)
    return tangent


def kinked_cotangents(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """Of a share ct x / r:  that of the quotient, and x̄ = s̄ dct/dr where r is 0"""
    _, flowing, x, r = node.inputs
    return ct, None, share_at_kink(node, local_slope(flowing, r), x, ct), None


def kinked_tangent_cotangents(node: Node, ct: Node) -> tuple[Node | None, ...]:
    """Of a share x·ẋ / r:  that of the quotient, and x̄ = ẋ dct/dr where r is 0"""
    _, tangent, x, r = node.inputs
    return ct, None, share_at_kink(node, local_slope(ct, r), x, tangent), None


def share_at_kink(node: Node, slope: Node | None, x: Node, factor: Node) -> Node | None:
    """slope * factor where `x` has the size 0."""
    if slope is None:
        return None
    axes = node.attrs["axes"]
    factor = elementwise.conjugate(factor) if factor.type.dtype.kind == "c" else factor
    return where(unsum(equals(node.inputs[3], 0), axes, x), unsum(slope, axes, x) * factor, 0)


def local_slope(y: Node, x: Node) -> Node | None:
    """dy / dx where x is 0, through ops that work on single elements alone.

    All else that `y` depends on counts as constant. So a smooth function of a value with a kink is
    followed as far as it is one; None if `y` does not depend on `x` so.
    """
    tangents = {x: where(equals(x, 0), full_like(x, 1), 0)}
    for node in between([y], [x]):
        if node not in tangents and is_local(node):
            moving = [tangents.get(given) for given in node.inputs]
            if any(t is not None for t in moving):
                new = node_tangent(node, moving)
                if new is not None:
                    tangents[node] = real_share(new, node)
    return tangents.get(y)


VJP[autodiff.kinked] = kinked_cotangents
VJP[autodiff.kinked_tangent] = kinked_tangent_cotangents


def is_local(node: Node) -> bool:
    """Whether a smooth function of a value with a kink is followed through an op."""
    if node.op is tensor.einsum:
        return {i for own in node.attrs["operands"] for i in own} <= {*node.attrs["result"]}
    return node.op.pointwise or Trait.VIEW in node.op.traits or node.op in LOCAL


LOCAL = frozenset({autodiff.barrier, *autodiff.KINKED, tensor.sum_})
"""Further ops through which a smooth function of a value with a kink is followed."""


def several_cotangents(
    node: Node, total: dict[Node, Node], path: dict[Node, None]
) -> Sequence[Node | None]:
    """The cotangents of the inputs of an op of several results, given those of these."""
    cts = [total.get(node[i]) for i in range(len(node.type.items))]
    if all(ct is None for ct in cts):
        return (None,) * len(node.inputs)
    refuse_unknown(node, path)
    if node.op in JVP:
        return input_cotangents(node, cts, path)
    return CONTROL[node.op].pullback(node, cts, [x in path for x in node.inputs])


_marks = count(1)


def placeholder(like: Node) -> Node:
    """A value for the operand by which a linear map is differentiated; no one reads it.

    It equals no other node, and is no 0, which might stand for a value left out.
    """
    return autodiff.barrier(full_like(like, 1), mark=-next(_marks))


def input_cotangents(
    node: Node, cts: Sequence[Node | None], path: dict[Node, None]
) -> Sequence[Node | None]:
    """The cotangents of `node`'s inputs: the transpose of its tangent map."""
    tangents = [placeholder(x) if x in path else None for x in node.inputs]
    results = [
        (new, ct)
        for new, ct in zip(JVP[node.op](node, tangents), cts, strict=True)
        if new is not None and ct is not None
    ]
    moving = [tangent for tangent in tangents if tangent is not None]
    shares = iter(pull_back([y for y, _ in results], moving, [ct for _, ct in results]))
    return [None if tangent is None else next(shares) for tangent in tangents]


def scale(partial: Partial, ct: Node) -> Node | None:
    """partial * ct, and 0 where `ct` is 0 because a value was left out."""
    match partial:
        case None | 0:
            return None
        case 1:
            return ct
        case -1:
            return negate(ct)
        case Select(condition, factor):
            share = scale(factor, ct)
            return None if share is None else where(condition, share, 0)
        case Wins(x, y):
            return tensor.where_greater(ct, x, y)
        case Node() if is_one(ct):
            return partial
        case Node():
            return shield(ct, partial)
        case _:
            return ct * partial


def real_share(share: Node, x: Node) -> Node:
    """The real part of a share that flows into a real value."""
    if share.type.dtype.kind == "c" and x.type.dtype.kind != "c":
        return elementwise.real(share)
    return share


def push_forward(ys: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Node]) -> list[Node]:
    """The tangent of each result: from `wrt` up, every input adds its share."""
    tangent: dict[Node, Node] = {}
    for x, t in zip(wrt, tangents, strict=True):
        t = with_barrier(t)
        tangent[x] = tangent[x] + t if x in tangent else t
    asked, records = thread_state.source, current_trace().records
    path = between(ys, wrt)
    if any(node.op is autodiff.kinked_tangent for node in path):
        return push_by_pulling(ys, wrt, tangents)
    for node in path:
        if node not in tangent:
            inherit(source := Asked(node, asked))
            moving = [tangent.get(x) for x in node.inputs]
            if node.op is leaf.project:
                continue  # its tangent is set with the others of the node of several values
            if all(t is None for t in moving):
                continue  # no operand has a tangent
            if isinstance(node.type, TupleType):
                refuse_unknown(node, tangent)
                rule = JVP.get(node.op) or CONTROL[node.op].pushforward
                for i, new in enumerate(rule(node, moving)):
                    if new is not None and of_floats(node.type.items[i]):
                        records.append(Record(rule, node, new, None, source))
                        tangent[node[i]] = new
                continue
            new = node_tangent(node, moving)
            if new is not None:
                records.append(Record(rule_of(node.op), node, new, None, source))
                new = real_share(new, node).label(node.labels)
                tangent[node] = tangent_of_kink(node, new, moving)
    inherit(asked)
    return [tangent[y] if y in tangent else full_like(y, 0) for y in ys]


def push_by_pulling(
    ys: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Node]
) -> list[Node]:
    """The tangent of each result, as the transpose of the cotangents of `wrt`.

    Where tangents of values with a kink are on the way: only cotangents say what they count for.
    """
    cts = [placeholder(y) for y in ys]
    return pull_back(pull_back(ys, wrt, cts), cts, tangents)


def node_tangent(node: Node, tangents: Sequence[Node | None]) -> Node | None:
    """The tangent of `node`, given those of its inputs (None: zero)."""
    if node.op in PARTIALS:
        moving = [x for x, t in zip(node.inputs, tangents, strict=True) if t is not None]
        refuse_unknown(node, moving)
        partials = PARTIALS[node.op](node, *node.inputs)
        return total_of(
            scale(p, t) for p, t in zip(partials, tangents, strict=True) if t is not None
        )
    if node.op in TRANSPOSE:
        return node.with_inputs(
            *[
                x if not differentiable(x.type.dtype) else full_like(x, 0) if t is None else t
                for x, t in zip(node.inputs, tangents, strict=True)
            ]
        )
    if node.op in JVP:
        (new,) = JVP[node.op](node, tangents)
        return new
    # The pushforward is the transpose of the pullback, which is linear in this cotangent.
    ct = placeholder(node)
    known = {x: None for x, t in zip(node.inputs, tangents, strict=True) if t is not None}
    shares = [
        (share, t)
        for share, t in zip(cotangents(node, ct, known), tangents, strict=True)
        if share is not None and t is not None
    ]
    (new,) = pull_back([share for share, _ in shares], [ct], [t for _, t in shares])
    return new


def total_of(shares: Iterable[Node | None]) -> Node | None:
    """The sum of those that are not zero."""
    total = None
    for share in shares:
        if share is not None:
            total = share if total is None else added(total, share)
    return total


def expand_pullback(node: Node, *operands: Node) -> Node:
    return leaf.tuple_(*pull_back(*autodiff.group(node, operands)))


def expand_pushforward(node: Node, *operands: Node) -> Node:
    return leaf.tuple_(*push_forward(*autodiff.group(node, operands)))


def in_line(node: Node, *operands: Node) -> Node:
    """The nodes of a body in place of its call: its derivatives have been taken by now.

    So nodes around the call share equal values with it. A body whose loops record their numbers of
    steps stays a body: the records of two copies would have the same names.
    """
    body = convert(node.attrs["body"], DROP)
    if trip_counts_inside(body):
        return Node(node.op, operands, with_bodies(node, lambda body: convert(body, DROP)))
    return leaf.tuple_(*substitute(body.outputs, dict(zip(body.params, operands, strict=True))))


def drop_function(node: Node, x: Node, w: Node, v: Node, *rest: Node) -> Node:
    """A function of a matrix by its eigenvalues and vectors, as it was written."""
    numbers: int = node.attrs["numbers"]
    graph = expand_derivatives(slopes(node.attrs["f"], orders(node)))
    last = (w.type.ndim - 1,)
    given = [expand(number, last, w.type.shape) for number in rest[:numbers]]
    values = substitute(graph.outputs, dict(zip(graph.params, (w, *given), strict=True)))
    if node.op is autodiff.trace_of_function:
        return sum_over(values[0], last)
    return in_full(w, v, values, rest[numbers:])


EXPAND: dict[Op, Conversion] = {
    autodiff.pullback: expand_pullback,
    autodiff.pushforward: expand_pushforward,
}
DROP: dict[Op, Conversion] = {
    control.custom: in_line,
    control.linear: in_line,
    autodiff.barrier: lambda node, x: x,
    autodiff.stop_gradient: lambda node, x: x,
    autodiff.kinked: lambda node, share, *rest: share,
    autodiff.kinked_tangent: lambda node, share, *rest: share,
    autodiff.svd_of: lambda node, x, *factors: leaf.tuple_(*factors),
    autodiff.turn: quotient,
    autodiff.matrix_function: drop_function,
    autodiff.trace_of_function: drop_function,
    tensor.einsum: as_factors,
}


ROUNDS = 1000
"""The most rounds of expansion of derivatives in bodies: one for each loop around them."""


def mark_sources(graph: Graph) -> Graph:
    """The graph with a mark of its own for each node that something differentiates by.

    Two of these may come to have equal values as they are simplified and expanded. By their marks
    they stay two nodes, and a derivative with respect to one does not count the other; nor does it
    count a cotangent of equal value, which has mark 0, or a placeholder, whose mark is negative.
    """
    marks, done = count(1), dict[Graph, Graph]()

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node]:
        return mark_sources, autodiff.barrier(*inputs, mark=next(marks))

    def mark(graph: Graph) -> Graph:
        if graph not in done:  # equal bodies stay equal
            done[graph] = transform(graph, visit, at={autodiff.barrier}, bodies=mark)
        return done[graph]

    return mark(graph)


def is_lazy(graph: Graph) -> bool:
    """Whether a lazy derivative is left, if only inside a loop."""
    return not autodiff.LAZY.isdisjoint(graph.ops())


def expand_derivatives(graph: Graph) -> Graph:
    """Every lazy derivative as plain ops, innermost first; barriers, no longer needed, are removed.

    The derivative of a loop is a loop with a lazy derivative inside: it is expanded in its turn.
    """
    for _ in range(ROUNDS):
        if not is_lazy(graph):
            return convert(graph, DROP)
        graph = convert(graph, EXPAND)
    lazy = next(node for node in graph.every_node() if node.op in autodiff.LAZY)
    raise UnsettledError(
        f"{lazy.op.said} at {lazy.origin} asks for a derivative that is never expanded: rules of "
        "derivatives ask for each other\n"
        "  cure: this is a defect of graphcore; report it together with the program"
    )
