"""Values of integers as sizes: those of inputs, and those that a program computes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence

from graphcore.ir import BOOL, INT, Expression, Graph, Node, Op, Size, toposort
from graphcore.ir.digests import digest
from graphcore.ir.graph import unknowns_of
from graphcore.ir.name_text import show_dim
from graphcore.ir.names import Computed, ValueOf, spell_name
from graphcore.ir.sizes import maximum, minimum, unknown
from graphcore.ops import elementwise as e
from graphcore.ops import leaf, named

from .base import Base, refusal, type_refusal

ARITHMETIC: dict[Op, Callable[..., Size]] = {
    e.add: operator.add,
    e.subtract: operator.sub,
    e.multiply: operator.mul,
    e.floor_divide: operator.floordiv,
    e.remainder: operator.mod,
    e.maximum: maximum,
    e.minimum: minimum,
    e.negative: operator.neg,
    e.absolute: operator.abs,
    e.square: lambda a: a * a,
}
"""The functions of integers that sizes have too."""


def value_of(what: str, x: Base) -> Size:
    """The size that is the value of an integer tensor without dims.

    It is known at the call if integer inputs say it, else computed while the program runs.
    """
    try:
        size = size_or_none(x.node)
    except ZeroDivisionError:
        raise refusal(f"{what} is divided by 0", x, cure="divide by 1 or more") from None
    if size is not None:
        return size
    if not x.dims and x.dtype.kind in "iu":
        return computed(x.node, "computed")
    cure = "give an integer, a size, or an integer tensor without dims, such as x.astype('int64')"
    raise type_refusal(f"{what} is not one integer", x, cure=cure)


def size_or_none(x: Node) -> Size | None:
    """The size that a value of integers is: integer inputs, constants, and arithmetic in int64.

    Results of other dtypes may wrap around, and sizes never do.
    """
    done: dict[Node, Size | None] = {}
    stack = [x]
    while stack:
        node = stack[-1]
        waiting = [y for y in node.inputs if y not in done] if in_arithmetic(node) else []
        if waiting:
            stack += waiting
        else:
            done[stack.pop()] = size_of_node(node, [done.get(y) for y in node.inputs])
    return done[x]


def computed(x: Node, name: str) -> Expression:
    """The unknown size that is the value of an integer without dims, shown by a name."""
    x = x if x.type.dtype == INT else e.cast(x, dtype=INT)
    return unknown(Computed(name, digest(x), x))


def is_count(x: Node) -> bool:
    """Whether a value is how many elements hold, which is 0 or more."""
    return x.op is named.sum_ and x.inputs[0].type.dtype == BOOL


def refuse_computed(roots: Sequence[Node], varying: Iterable[Node]) -> None:
    """Refuse sizes that depend on values which a loop or a batch varies: a program has one size."""
    given = set(varying)
    for name in computed_sizes(roots):
        if name.node is not None and not given.isdisjoint(toposort([name.node])):
            reason = (
                f"the size {show_dim(name)} depends on values that a loop, batch or body varies"
            )
            cure = "fix it, as in x.isel({'row': mask}, size=10) or gc.nonzero(mask, size=10), or "
            cure += "compute it outside"
            raise refusal(reason, name.node, cure=cure)


def computed_sizes(roots: Iterable[Node]) -> list[Computed]:
    """The sizes that nodes below `roots` have and a program computes, inner ones first."""
    found: dict[Computed, None] = {}
    if not Computed.in_use():
        return []

    def enter(nodes: Iterable[Node]) -> None:
        for node in Graph((), tuple(nodes)).every_node():
            for name in sorted(unknowns_of(node), key=spell_name):
                if isinstance(name, Computed) and name not in found:
                    if name.node is not None:
                        enter([name.node])
                    found[name] = None

    enter(roots)
    return list(found)


def in_arithmetic(node: Node) -> bool:
    """Whether a node is a number computed as sizes are."""
    known = node.op in ARITHMETIC or node.op in (e.cast, e.power)
    return known and node.type.dtype == INT and not node.type.dims


def size_of_node(node: Node, operands: list[Size | None]) -> Size | None:
    """The size that a node without dims is, where its operands are these."""
    if node.type.dims or node.type.dtype.kind not in "iu":
        return None
    match node.op:
        case leaf.input_:
            return None if "trace" in node.attrs else unknown(ValueOf(node.attrs["name"]))
        case leaf.full:
            return int(node.attrs["value"].array)
        case leaf.extent:
            size: Size = node.attrs["size"]
            return size
    if is_count(node):
        return computed(node, "kept")
    known = [size for size in operands if size is not None]
    if not in_arithmetic(node) or len(known) < len(operands):
        return None
    if node.op is e.cast:
        return known[0]
    if node.op is e.power:
        return known[0] ** known[1] if isinstance(known[1], int) and known[1] >= 0 else None
    return ARITHMETIC[node.op](*known)
