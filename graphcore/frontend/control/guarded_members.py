"""What may raise is computed only where a step computes it.

A batched loop computes its body for all members as long as one of them goes on. A member that has
stopped is given operands that no op refuses: position 0, and matrices that are the identity. And
what a body computes of captured values alone is computed before the loop, if that makes a step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from graphcore.frontend.core.tracing import close
from graphcore.frontend.shape.dims import broadcast_to
from graphcore.ir import INT, Graph, Node, Rule, full_like, toposort
from graphcore.ir.axes import Indexes, NamedMatrices, Receives
from graphcore.ir.graph import may_raise_inside
from graphcore.ir.names import apart
from graphcore.ir.node import recording
from graphcore.ir.transform import transform
from graphcore.ops import control, elementwise, leaf, named
from graphcore.ops.control import Loop, LoopOperand
from graphcore.ops.leaf import values
from graphcore.ops.named import matrices
from graphcore.ops.outside import Calls

from .batch_members import Dims, Served, join_dims, member_dims, of_operands, of_params, through
from .ending import ended_by, may_not_end

# ---- members of a batch


def may_fail(node: Node) -> bool:
    """Whether a node may refuse values at the call, or never end, for members that take no part."""
    return may_raise_inside(node) or may_not_end(node)


def for_members(
    mask: Node,
    inside: Collection[Node],
    roots: Sequence[Node],
    wanted: Sequence[Dims | None] | None = None,
) -> list[Node]:
    """`roots`, where nodes among `inside` refuse nothing where the mask does not hold.

    `wanted` are the dims of each root that tell the members of the mask apart; all that the mask
    has, if they are not given. What the mask itself is computed of is computed for all members.
    """
    risky = {node for node in inside if may_fail(node)} - set(toposort([mask]))
    if not risky:
        return list(roots)
    members = Dims(mask.type.dims)
    served = member_dims(roots, [members for _ in roots] if wanted is None else wanted)

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node in risky:
            new = Node(node.op, inputs, node.attrs)
            return for_members, harmless(new, mask, served[node])
        return None

    return list(transform(Graph((), tuple(roots)), visit).outputs)


def harmless(node: Node, mask: Node, own: Served) -> Node:
    """A node that may raise, on operands that it does not refuse where the mask does not hold.

    `own` are the dims of its results that tell members apart.
    """
    match node.op:
        case control.scan | control.while_loop:
            return in_loop(node, mask, own)
        case control.call:
            body = in_body(node.attrs["body"], mask, own)
            return control.call(*node.inputs, mask, body=body)
        case control.custom:
            return in_custom(node, mask, own)
    given = through(node, own)

    def safe(k: int, other: Node | None = None) -> Node:
        operand = node.inputs[k]
        harmless = full_like(operand, 0) if other is None else other
        return unless_stopped(mask, given[k] or Dims(), operand, harmless)

    x, *others = node.inputs
    match node.op:
        case control.switch:
            bodies = [in_body(branch, mask, own) for branch in node.attrs["branches"]]
            return control.switch(safe(0), *others, mask, branches=tuple(bodies))
        case matrices.solve_tridiagonal:
            parts = [safe(k, full_like(x, value)) for k, value in enumerate((0, 1, 0))]
            return node.with_inputs(*parts, others[-1])
    last = len(node.inputs)
    match node.op.axes:
        case Indexes():
            return node.with_inputs(x, *map(safe, range(1, last)))
        case Receives(base=base):
            return node.with_inputs(*node.inputs[: base + 1], *map(safe, range(base + 1, last)))
        case Calls():
            return called_unless_stopped(node, mask, join_dims(own) or Dims())
        case NamedMatrices():
            rows, cols = node.attrs["dims"][:2]
            return node.with_inputs(safe(0, identity(x, rows, cols)), *others)
    return node


def unless_stopped(mask: Node, dims: Dims, x: Node, harmless: Node) -> Node:
    """`x` where a member that uses it goes on, else `harmless`.

    Along `dims` each member uses elements of its own; along others all members use all elements.
    """
    away = tuple(dim for dim in mask.type.dims if dim not in dims)
    if len(away) == len(mask.type.dims):
        return x  # used by all members, and one of them goes on
    own = named.any_(mask, dims=away) if away else mask
    chosen = elementwise.where(own, x, harmless)
    return named.transpose(chosen, dims=x.type.dims)


def called_unless_stopped(node: Node, mask: Node, own: Dims) -> Node:
    """A callback that calls its function only for members that go on."""
    dims, masked = node.attrs["dims"], node.attrs["masked"]
    operands, before = node.inputs[: len(dims) - masked], node.inputs[len(dims) - masked :]
    known = {dim for some in dims for dim in some}
    batch = {dim for x in operands for dim in x.type.dims if dim not in known}
    away = tuple(dim for dim in mask.type.dims if dim not in own & batch)
    if len(away) == len(mask.type.dims):
        return node  # used by all members, and one of them goes on
    going = named.any_(mask, dims=away) if away else mask
    for other in before:
        going = elementwise.logical_and(other, going)
    attrs = {**node.attrs, "dims": (*dims[: len(operands)], ()), "masked": True}
    return node.op(*operands, going, **attrs)


def identity(x: Node, rows: str, cols: str) -> Node:
    """The identity matrix in the size and dtype of `x`."""
    row, col = (leaf.iota(size=x.type.size(dim), dtype=INT, dims=(dim,)) for dim in (rows, cols))
    return elementwise.cast(elementwise.equal(row, col), dtype=x.type.dtype)


def param_for(mask: Node, params: Sequence[Node]) -> Node:
    """A param of a body that stands for the mask."""
    return leaf.param(apart("going", {param.attrs["name"] for param in params}), mask.type)


def in_loop(node: Node, mask: Node, own: Served) -> Node:
    """A loop whose body refuses nothing where the mask does not hold."""
    loop, param = Loop.of(node), param_for(mask, Loop.of(node).params.all)
    n, served = len(loop.carries), of_operands(loop, own)
    if loop.condition is not None:
        loop = ended_by(loop, param, served)
    wanted = [*served[:n], *own[n:], *[Dims() for _ in loop.roots[len(own) :]]]
    roots = for_members(param, toposort(loop.roots), loop.roots, wanted)
    captured = (*loop.captured, LoopOperand(param, mask))
    return loop.with_roots(roots)._replace(captured=captured).build()


def in_custom(node: Node, mask: Node, own: Served) -> Node:
    """A function with rules of its own: it and its rules take the mask as one more operand."""
    body, rule, forward, apart = (node.attrs[x] for x in ("body", "rule", "forward", "apart"))
    n = len(node.inputs)
    first = node.inputs[0].type
    members = [first.dims[axis] for axis in apart[0]]
    wide = broadcast_to(mask, {dim: first.size(dim) for dim in members} | mask.type.sizes).node

    def with_mask(graph: Graph, served: Served) -> Graph:
        made = in_body(graph, wide, served)
        *params, param = made.params
        return Graph((*params[:n], param, *params[n:]), made.outputs)

    rule = with_mask(rule, through(node, own))
    rule = Graph(rule.params, (*rule.outputs, full_like(wide, 0)))
    if forward is not None:
        forward = with_mask(forward, own)
        forward = Graph((*forward.params, param_for(wide, forward.params)), forward.outputs)
    axes = tuple(wide.type.dims.index(dim) for dim in members)
    return control.custom(
        *node.inputs,
        wide,
        body=in_body(body, wide, own),
        rule=rule,
        forward=forward,
        apart=(*apart[:n], axes, *apart[n:]),
    )


def in_body(body: Graph, mask: Node, own: Served) -> Graph:
    """A body that takes the mask as well, and refuses nothing where it does not hold."""
    param = param_for(mask, body.params)
    outputs = for_members(param, body.nodes(), body.outputs, own)
    return Graph((*body.params, param), tuple(outputs))


# ---- values captured by a loop that may make no step


def guard(
    body: Graph,
    captured: Sequence[Node],
    built: Collection[Node],
    runs: Callable[[], Node],
    needed: Collection[Node] = (),
) -> list[Node]:
    """Values `captured` by the body, those that were `built` in it and may be refused guarded.

    They are computed for the members that make a step, and only if there are any: `runs` says
    which. What is `needed` anyway stays.
    """
    risky: set[Node] = set()
    for node in toposort(captured):
        own = node in built and node not in needed and node.inputs
        if own and (may_fail(node) or not risky.isdisjoint(node.inputs)):
            risky.add(node)
    late = [x for x in captured if x in risky]
    if not late:
        return list(captured)
    mask = runs()
    members = Dims(mask.type.dims)
    used = of_params(body, [members for _ in body.outputs])[-len(captured) :]
    wanted = [dims for x, dims in zip(captured, used, strict=True) if x in risky]
    with recording() as more:
        found = for_members(mask, risky, late, wanted)
    empty = [full_like(x, 0) for x in late]
    closed = close((), (), empty, found, made=risky | more)
    some = named.any_(mask, dims=mask.type.dims) if mask.type.dims else mask
    index = elementwise.cast(some, dtype=INT)
    chosen = values(control.switch(index, *closed.captured, branches=closed.graphs))
    new = dict(zip(late, chosen, strict=True))
    return [new.get(x, x) for x in captured]
