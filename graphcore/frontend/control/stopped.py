"""What may raise is computed only where a step computes it.

A batched loop computes its body for all members as long as one of them goes on. A member that has
stopped is given operands that no op refuses: position 0, and matrices that are the identity. And
what a body computes of captured values alone is computed before the loop, if that makes a step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from graphcore.frontend.core.tracing import close
from graphcore.ir.axes import Indexes, NamedMatrices, Receives
from graphcore.ir.dtypes import BOOL, INT
from graphcore.ir.graph import Graph, may_raise_inside
from graphcore.ir.literal import Literal
from graphcore.ir.names import apart
from graphcore.ir.node import Node, full_like, recording, toposort
from graphcore.ir.trace import Rule
from graphcore.ir.transform import transform
from graphcore.ops import control, elementwise, leaf, named
from graphcore.ops.control import Loop, Operand
from graphcore.ops.leaf import values
from graphcore.ops.named import matrices

# ---- members of a batch


def for_members(mask: Node, inside: Collection[Node], roots: Sequence[Node]) -> list[Node]:
    """`roots`, where nodes among `inside` refuse nothing where the mask does not hold.

    What the mask itself is computed of is computed for all members and stays.
    """
    risky = {node for node in inside if may_raise_inside(node)} - set(toposort([mask]))
    if not risky:
        return list(roots)

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node in risky:
            return for_members, harmless(Node(node.op, inputs, node.attrs), mask)
        return None

    return list(transform(Graph((), tuple(roots)), visit).outputs)


def harmless(node: Node, mask: Node) -> Node:
    """A node that may raise, on operands that it does not refuse where the mask does not hold."""
    x, *others = node.inputs
    match node.op:
        case control.scan | control.while_loop:
            return in_loop(Loop.of(node), mask)
        case control.switch:
            return in_branches(node, mask)
        case control.call:
            return control.call(*node.inputs, mask, body=in_body(node.attrs["body"], mask))
        case matrices.solve_tridiagonal:
            lower, diagonal, upper, b = node.inputs
            some = zip((lower, diagonal, upper), (0, 1, 0), strict=True)
            return node.with_inputs(*[where(mask, part, number(v, part)) for part, v in some], b)
    match node.op.axes:
        case Indexes():
            return node.with_inputs(x, *[where(mask, i, number(0, i)) for i in others])
        case Receives(base=base):
            kept, indices = node.inputs[: base + 1], node.inputs[base + 1 :]
            return node.with_inputs(*kept, *[where(mask, i, number(0, i)) for i in indices])
        case NamedMatrices():
            rows, cols = node.attrs["dims"][:2]
            return node.with_inputs(where(mask, x, identity(x, rows, cols)), *others)
    return node


def where(mask: Node, x: Node, harmless: Node) -> Node:
    """`x` where a member that uses it goes on, else `harmless`."""
    away = tuple(dim for dim in mask.type.dims if dim not in x.type.dims)
    if len(away) == len(mask.type.dims):
        return x  # used by all members, of which one goes on
    own = named.any_(mask, dims=away) if away else mask
    chosen = elementwise.where(own, x, harmless)
    return named.transpose(chosen, dims=x.type.dims)


def number(value: complex, x: Node) -> Node:
    """A number in the dtype of `x`."""
    return leaf.full(value=Literal(value, x.type.dtype), shape=(), dims=())


def identity(x: Node, rows: str, cols: str) -> Node:
    """The identity matrix in the size and dtype of `x`."""
    row, col = (leaf.iota(size=x.type.size(dim), dtype=INT, dims=(dim,)) for dim in (rows, cols))
    return elementwise.cast(elementwise.equal(row, col), dtype=x.type.dtype)


def param_for(mask: Node, params: Sequence[Node]) -> Node:
    """A param of a body that stands for the mask."""
    name = apart("going", {param.attrs["name"] for param in params})
    shape, dims = mask.type.shape, mask.type.dims
    param: Node = leaf.input_(name=name, dtype=BOOL, shape=shape, dims=dims)
    return param


def in_loop(loop: Loop, mask: Node) -> Node:
    """A loop whose body refuses nothing where the mask does not hold."""
    param = param_for(mask, loop.params.all)
    roots = for_members(param, toposort(loop.roots), loop.roots)
    return loop.with_roots(roots)._replace(captured=(*loop.captured, Operand(param, mask))).build()


def in_body(body: Graph, mask: Node) -> Graph:
    """A body that takes the mask as well, and refuses nothing where it does not hold."""
    param = param_for(mask, body.params)
    return Graph((*body.params, param), tuple(for_members(param, body.nodes(), body.outputs)))


def in_branches(node: Node, mask: Node) -> Node:
    """The same choice among branches that refuse nothing where the mask does not hold."""
    index, *operands = node.inputs
    branches = tuple(in_body(branch, mask) for branch in node.attrs["branches"])
    return control.switch(where(mask, index, number(0, index)), *operands, mask, branches=branches)


# ---- values captured by a loop that may make no step


def guarded(
    captured: Sequence[Node],
    built: Collection[Node],
    runs: Callable[[], Node],
    needed: Collection[Node] = (),
) -> list[Node]:
    """Captured values, those that were `built` in the body and may be refused under a condition.

    They are computed for the members that make a step, and only if there are any: `runs` says
    which. What is `needed` anyway stays.
    """
    risky: set[Node] = set()
    for node in toposort(captured):
        own = node in built and node not in needed and node.inputs
        if own and (may_raise_inside(node) or not risky.isdisjoint(node.inputs)):
            risky.add(node)
    late = [x for x in captured if x in risky]
    if not late:
        return list(captured)
    mask = runs()
    with recording() as more:
        found = for_members(mask, risky, late)
    empty = [full_like(x, 0) for x in late]
    closed = close((), (), empty, found, made=risky | more)
    some = named.any_(mask, dims=mask.type.dims) if mask.type.dims else mask
    index = elementwise.cast(some, dtype=INT)
    chosen = values(control.switch(index, *closed.captured, branches=closed.graphs))
    new = dict(zip(late, chosen, strict=True))
    return [new.get(x, x) for x in captured]
