"""Lazy derivatives -> plain ops: accumulation over the graph between `wrt` and the results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node, full_like, toposort
from graphcore.ir.op import Op
from graphcore.ir.provenance import Origin, inherit
from graphcore.ir.types import TensorType
from graphcore.ops import autodiff, elementwise, leaf, tensor

from .derivatives import PARTIALS, TRANSPOSE, VJP, Select
from .derivatives.partials import Partial
from .engine import Conversion, convert
from .plain import equals, where

SELECTING = frozenset(
    {
        *(elementwise.where, elementwise.maximum, elementwise.minimum),
        *(elementwise.fmax, elementwise.fmin, tensor.max_, tensor.min_),
        *(tensor.slice_, tensor.gather),
    }
)
"""Ops that leave some of their operands' values out: the cotangent of those is exactly 0."""


def between(ys: Iterable[Node], wrt: Iterable[Node]) -> dict[Node, None]:
    """The nodes on a path from `wrt` to `ys`, inputs first: only they carry a derivative."""
    sources = set(wrt)
    active: dict[Node, None] = {}
    for node in toposort(ys):
        if node in sources or (
            any(x in active for x in node.inputs)
            and node.op is not autodiff.stop_gradient
            and isinstance(node.type, TensorType)
            and differentiable(node.type.dtype)
        ):
            active[node] = None
    return active


def pull_back(ys: Sequence[Node], wrt: Sequence[Node], cts: Sequence[Node]) -> list[Node]:
    """The cotangent of each `wrt`: from the results down, every use of a value adds its share."""
    path = between(ys, wrt)
    total: dict[Node, Node] = {}
    selected: set[Node] = set()
    via = current_origin()
    for y, ct in zip(ys, cts, strict=True):
        if y in path:
            total[y] = total[y] + ct if y in total else ct
    for node in reversed(path):
        if node not in total:
            continue
        inherit(Origin(node.origin.file, node.origin.line, via))
        ct = total[node].label(node.labels)
        if node.op in SELECTING:
            selected.add(node)
        for x, share in zip(node.inputs, cotangents(node, ct, path, node in selected), strict=True):
            if share is not None and x in path:
                share = realised(share, x)
                total[x] = total[x] + share if x in total else share
                if node in selected:
                    selected.add(x)
    inherit(via)
    return [total[x] if x in total else full_like(x, 0) for x in wrt]


def current_origin() -> Origin | None:
    """The line that asked for the derivative now being expanded."""
    asked = inherit(None)
    inherit(asked)
    return asked


def cotangents(
    node: Node, ct: Node, path: dict[Node, None], selected: bool
) -> Sequence[Node | None]:
    """The cotangents of `node`'s inputs, given its own."""
    if not any(x in path for x in node.inputs):
        return (None,) * len(node.inputs)
    if node.op in PARTIALS:
        partials = PARTIALS[node.op](node, *node.inputs)
        return [
            scale(p, ct, selected) if x in path else None
            for p, x in zip(partials, node.inputs, strict=True)
        ]
    if node.op in TRANSPOSE:
        return TRANSPOSE[node.op](node, ct)
    if node.op in VJP:
        return VJP[node.op](node, ct)
    raise GraphTypeError(
        f"{node.op.name} at {node.origin} has no derivative: {node.type}\n"
        "  cure: put stop_gradient around it if its derivative should count as zero"
    )


def scale(partial: Partial, ct: Node, selected: bool) -> Node | None:
    """partial * ct.

    Where `ct` has been through a selection, a 0 in it means that the value does not count: the
    product is 0 there even if the partial is infinite or nan.
    """
    match partial:
        case None | 0:
            return None
        case 1:
            return ct
        case -1:
            return -ct
        case Select(condition, factor):
            share = scale(factor, ct, selected=False)
            return None if share is None else where(condition, share, 0)
        case Node() if is_one(ct):
            return partial
        case Node() if selected and partial.op is not leaf.full:
            if ct.op is elementwise.where and is_zero(ct.inputs[2]):
                condition, inner, zero = ct.inputs
                return elementwise.where(condition, inner * partial, zero)
            return where(equals(ct, 0), 0, ct * partial)
        case _:
            return ct * partial


def is_one(node: Node) -> bool:
    """Whether `node` is 1 throughout, as the seed of a gradient is."""
    return node.op is leaf.full and node.attrs["value"].is_(1)


def is_zero(node: Node) -> bool:
    """Whether `node` is 0 throughout."""
    return node.op is leaf.full and not node.attrs["value"].array.any()


def realised(share: Node, x: Node) -> Node:
    """The real part of a share that flows into a real value."""
    if share.type.dtype.kind == "c" and x.type.dtype.kind != "c":
        return elementwise.real(share)
    return share


def push_forward(ys: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Node]) -> list[Node]:
    """The tangent of each result: from `wrt` up, every input adds its share."""
    tangent: dict[Node, Node] = {}
    for x, t in zip(wrt, tangents, strict=True):
        tangent[x] = tangent[x] + t if x in tangent else t
    via = current_origin()
    for node in between(ys, wrt):
        if node not in tangent:
            inherit(Origin(node.origin.file, node.origin.line, via))
            new = pushed(node, [tangent.get(x) for x in node.inputs])
            if new is not None:
                tangent[node] = realised(new, node).label(node.labels)
    inherit(via)
    return [tangent[y] if y in tangent else full_like(y, 0) for y in ys]


def pushed(node: Node, tangents: Sequence[Node | None]) -> Node | None:
    """The tangent of `node`, given those of its inputs (None: zero)."""
    if node.op in PARTIALS:
        partials = PARTIALS[node.op](node, *node.inputs)
        return total_of(
            scale(p, t, selected=False)
            for p, t in zip(partials, tangents, strict=True)
            if t is not None
        )
    if node.op in TRANSPOSE:
        return node.with_inputs(
            *[
                x if not differentiable(x.type.dtype) else full_like(x, 0) if t is None else t
                for x, t in zip(node.inputs, tangents, strict=True)
            ]
        )
    # The pushforward is the transpose of the pullback, which is linear in this cotangent; its
    # value is never read.
    ct = autodiff.barrier(full_like(node, 0))
    known = {x: None for x, t in zip(node.inputs, tangents, strict=True) if t is not None}
    shares = [
        (share, t)
        for share, t in zip(cotangents(node, ct, known, selected=False), tangents, strict=True)
        if share is not None and t is not None
    ]
    (new,) = pull_back([share for share, _ in shares], [ct], [t for _, t in shares])
    return new


def total_of(shares: Iterable[Node | None]) -> Node | None:
    """The sum of those that are not zero."""
    total = None
    for share in shares:
        if share is not None:
            total = share if total is None else total + share
    return total


def expand_pullback(node: Node, *operands: Node) -> Node:
    ys, wrt = node.attrs["ys"], node.attrs["wrt"]
    return leaf.tuple_(*pull_back(operands[:ys], operands[ys : ys + wrt], operands[ys + wrt :]))


def expand_pushforward(node: Node, *operands: Node) -> Node:
    ys, wrt = node.attrs["ys"], node.attrs["wrt"]
    return leaf.tuple_(*push_forward(operands[:ys], operands[ys : ys + wrt], operands[ys + wrt :]))


def pick(node: Node, several: Node) -> Node:
    """project(tuple(x, y, ...), i) = the i-th"""
    if several.op is leaf.tuple_:
        index: int = node.attrs["index"]
        return several.inputs[index]
    return node.with_inputs(several)


EXPAND: dict[Op, Conversion] = {
    autodiff.pullback: expand_pullback,
    autodiff.pushforward: expand_pushforward,
    leaf.project: pick,
}
DROP: dict[Op, Conversion] = {
    autodiff.barrier: lambda node, x: x,
    autodiff.stop_gradient: lambda node, x: x,
}


def expand_derivatives(graph: Graph) -> Graph:
    """Every lazy derivative as plain ops, innermost first; then the barriers are done with."""
    return convert(convert(graph, EXPAND), DROP)
