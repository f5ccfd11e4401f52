"""What JAX does not compute, said before anything is traced."""

from __future__ import annotations

from collections.abc import Container, Iterator

from graphcore.ir import Graph, Node
from graphcore.ir.sizes import unknowns
from graphcore.ops import control, leaf, outside, tensor

from .host import HOST
from .padded_ops import PADDED
from .padding import FORWARD, NEUTRAL, mixed, touches
from .table import TABLE

OWN = frozenset({leaf.input_, leaf.project, leaf.tuple_})
"""The ops that the emitter computes itself."""


class Every:
    """All names."""

    def __contains__(self, name: object) -> bool:
        return True


def lacks(graph: Graph, buckets: bool, meshed: bool = False) -> Iterator[tuple[Node, str]]:
    """The nodes of a graph that JAX does not compute, on a mesh or not, each with the reason.

    With `buckets` all axes of unknown sizes are padded, else those that have an element for each
    step of a `while_loop`.
    """
    nodes = [*graph.every_node()]
    loops = [x for x in nodes if x.op is control.while_loop and x.attrs["trips"] is not None]
    counted = {name for loop in loops for name in loop.attrs["trips"].unknowns}
    names: Container[str] = Every() if buckets else counted
    cure = "; sizes='exact' pads none" if buckets else ", for the steps of a while_loop"
    for node in nodes:
        if node.op not in TABLE and node.op not in OWN:
            yield node, "it has no entry for it"
        elif meshed and node.op in HOST:
            yield node, "it runs on the host, and no device of a mesh waits for that"
        elif (buckets or counted) and (why := unpadded(node, names)) is not None:
            yield node, f"{why}{cure}"


def unpadded(node: Node, names: Container[str]) -> str | None:
    """Why a node cannot be computed where axes of sizes of these names are padded."""
    if node.op.dialect in ("control", "leaf") or not touches(node, names):
        return None
    if node.op in (tensor.print_, outside.callback_):
        return "it gives whole arrays to the host"
    if node.op is tensor.windows and any(
        name in names for size in node.attrs["sizes"] for name in unknowns(size)
    ):
        return "its windows are padded"
    if node.op in NEUTRAL or node.op in FORWARD or node.op in PADDED:
        return None
    return "it works along an axis that is padded" if any(mixed(node, names)) else None
