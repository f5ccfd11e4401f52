"""Which nodes carry a derivative from some nodes to others."""

from __future__ import annotations

from collections.abc import Container, Iterable

from graphcore.ir import Node, TupleType, Type, toposort
from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.node import describe_operand
from graphcore.ops import autodiff, elementwise, outside


def between(ys: Iterable[Node], wrt: Iterable[Node]) -> dict[Node, None]:
    """The nodes on a path from `wrt` to `ys`, inputs first: only they carry a derivative."""
    sources = set(wrt)
    active: dict[Node, None] = {}
    for node in toposort(ys):
        if node in sources or (
            not active.keys().isdisjoint(node.inputs)
            and node.op is not autodiff.stop_gradient
            and of_floats(node.type)
        ):
            active[node] = None
    return active


def leading_to(ys: Iterable[Node]) -> set[Node]:
    """The nodes from which a derivative flows to any of `ys`."""
    found: set[Node] = set()
    stack = list(ys)
    while stack:
        node = stack.pop()
        if node not in found and of_floats(node.type):
            found.add(node)
            stack += () if node.op is autodiff.stop_gradient else node.inputs
    return found


def of_floats(type: Type) -> bool:
    """Whether a value, or one of several, can carry a derivative."""
    if isinstance(type, TupleType):
        return any(map(of_floats, type.items))
    return differentiable(type.dtype)


ORDINALS = ("first", "second", "third", "fourth", "fifth")


def refuse_unknown(node: Node, moving: Container[Node]) -> None:
    """Refuse the derivative with respect to an operand for which an op has none."""
    if node.op in outside.CALLBACKS and any(x in moving for x in node.inputs):
        lines = [f"callback: no derivative of {node.attrs['function']!r} is known"]
        lines += [describe_operand(x) for x in dict.fromkeys(node.inputs)]
        cure = "give gc.callback a pullback=, or put stop_gradient around its operands"
        lines += [f"  built at {node.origin}", f"  cure: {cure}"]
        raise GraphTypeError("\n".join(lines))
    for place in elementwise.UNKNOWN.get(node.op, ()):
        x = node.inputs[place]
        if x in moving:
            raise GraphTypeError(
                f"{node.op.name}: no derivative with respect to its {ORDINALS[place]} operand is "
                "known\n"
                f"{describe_operand(x)}\n"
                f"  built at {node.origin}\n"
                "  cure: put stop_gradient around the operand if it should count as constant"
            )
