"""Which nodes carry a derivative from some nodes to others."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from graphcore.ir import Node, TupleType, Type, toposort
from graphcore.ir.axes import values
from graphcore.ir.dtypes import differentiable
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.node import describe_operand
from graphcore.ops import autodiff, elementwise, outside

from .dataflow import Forward, Known


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


Ints = frozenset[int]


class Paths(Forward[Ints]):
    """From which operands a derivative flows to each value, by their numbers.

    It flows through any op but `stop_gradient`, whatever bodies that op has, from floats to floats.
    """

    unknown = Ints()

    def join(self, node: Node, several: Sequence[Ints]) -> Ints:
        """Those of all."""
        return self.unknown.union(*several)

    def of_node(self, node: Node, given: Sequence[Ints], known: Known[Ints]) -> Sequence[Ints]:
        """Those of all operands."""
        flows = node.op is not autodiff.stop_gradient and of_floats(node.type)
        own = self.unknown.union(*given) if flows else self.unknown
        return (own,) * len(values(node.type))

    after = of_node

    def through(self, loop: Node) -> tuple[Sequence[Ints], Sequence[Ints]]:
        """Those of each param and each result of a loop, over all of its steps."""
        own = [Ints([i] * of_floats(x.type)) for i, x in enumerate(loop.inputs)]
        params = self.given_to_bodies(loop, own)
        return params, self.of_steps(loop, own, params)


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
