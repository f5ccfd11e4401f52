"""Which dims of a value distinguish the members of a batch.

A mask over members goes by dims, but a dim of that name need not distinguish the members. A matrix
may be solved along it, or its elements may be reversed before the result. Element i of a value
serves member i alone if every op from there to the results computes element i from element i.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from graphcore.ir import Graph, Node, TensorType, toposort
from graphcore.ir.axes import How, Source, Sources, operands, values
from graphcore.ops import autodiff, control, elementwise, leaf, named

Dims = frozenset[str]
Served = tuple[Dims | None, ...]
"""For each value of a node the dims along which its elements serve one member; None: unused."""


def member_dims(roots: Iterable[Node], wanted: Iterable[Dims | None]) -> dict[Node, Served]:
    """For all nodes below `roots` the dims that tell members apart, given those of the roots."""
    roots, found = tuple(roots), dict[Node, Served]()
    uses = defaultdict[Node, list[Served]](list)
    for root, dims in zip(roots, wanted, strict=True):
        uses[root].append((None if dims is None else dims.intersection(root.type.dims),))
    for node in reversed(toposort(roots)):
        found[node] = tuple(map(join_dims, zip(*uses[node], strict=True)))
        some = iter(through(node, found[node]))
        for x in node.inputs:
            uses[x].append(tuple(next(some) for _ in values(x.type)))
    return found


def through(node: Node, own: Served) -> Served:
    """The dims for each value among the operands of a node, given those of its results."""
    match node.op:
        case leaf.project:
            index = node.attrs["index"]
            return tuple(own[0] if i == index else None for i in range(len(operands(node))))
        case control.call | control.custom:
            return of_params(node.attrs["body"], own)
        case op if op in autodiff.LAZY:
            return of_sources(node, own)
        case control.switch:
            branches = [of_params(branch, own) for branch in node.attrs["branches"]]
            return (Dims(), *map(join_dims, zip(*branches, strict=True)))
        case control.scan | control.while_loop:
            return of_operands(control.Loop.of(node), own)
    return tuple(
        join_dims(
            None if dims is None else preserved_dims(x, y, by_operand[k], dims)
            for dims, y, by_operand in zip(
                own, values(node.type), node.op.axes.sources(node), strict=True
            )
        )
        for k, x in enumerate(operands(node))
    )


def join_dims(uses: Iterable[Dims | None]) -> Dims | None:
    """Those that tell members apart in all uses of a value."""
    known = [dims for dims in uses if dims is not None]
    return Dims.intersection(*known) if known else None


def preserved_dims(x: TensorType, y: TensorType, sources: Sources, dims: Dims) -> Dims:
    """Those of `dims` along which element i of `y` is computed from element i of `x` alone."""
    each = dict(zip(y.dims or (), sources, strict=True))
    return Dims(
        dim
        for axis, dim in enumerate(x.dims or ())
        if dim in dims and each.get(dim) == Source((axis,), How.EACH)
    )


def of_params(body: Graph, own: Sequence[Dims | None]) -> Served:
    """The dims for the params of a body, given those of its outputs."""
    found = member_dims(body.outputs, own)
    return tuple(found[param][0] if param in found else None for param in body.params)


def of_sources(node: Node, own: Served) -> Served:
    """The dims for the operands of a lazy derivative: those that tell apart all that it is of."""
    ys, wrt, _ = autodiff.group(node, node.inputs)
    dims = join_dims(own)
    if dims is not None:
        dims = dims.intersection(*[x.type.dims for x in node.inputs])
        found = member_dims(ys, [dims] * len(ys))
        dims = join_dims([dims, *[found[x][0] for x in wrt if x in found]])
    return (dims,) * len(node.inputs)


def peeled(x: Node) -> Node:
    """The value that a node has in another order of dims, or another dtype."""
    while x.op in (named.transpose, elementwise.cast):
        (x,) = x.inputs
    return x


def members_of(loop: control.Loop) -> tuple[Node, Dims]:
    """What a condition says of each member, and the dims of the members: none in a plain loop.

    The carries of members that do not go on stay as they are.
    """
    assert loop.condition is not None
    going, dims = loop.condition, Dims()
    found = going, dims
    while going.op is named.any_:
        dims |= Dims(going.attrs["dims"])
        (going,) = going.inputs
        if all(stays(x.update, x.param, going) for x in loop.carries):
            found = going, dims
    return found


def stays(update: Node, param: Node, going: Node) -> bool:
    """Whether a carry stays as it is where a member does not go on."""
    while peeled(update) is not param:
        update = peeled(update)
        if update.op is not elementwise.where or peeled(update.inputs[2]) is not param:
            return False
        if update.inputs[0] is going:
            return True
        update = update.inputs[1]
    return True


def of_operands(loop: control.Loop, own: Served) -> Served:
    """The dims for the operands of a loop: a step's carries serve the next step as well.

    A carry that only feeds itself is unused.
    """
    n, steps = len(loop.carries), {loop.settings.get("dim")}
    tests = () if loop.condition is None else (members_of(loop),)
    body = Graph(loop.params.all, (*loop.outputs, *[going for going, _ in tests]))
    results = tuple(None if dims is None else dims - steps for dims in own[n:])
    carried = own[:n]
    while True:
        found = of_params(body, (*carried, *results, *[dims for _, dims in tests]))
        narrower = tuple(map(join_dims, zip(carried, found, strict=False)))
        if narrower == carried:
            return (*carried, *found[n:])
        carried = narrower
