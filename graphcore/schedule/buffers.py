"""Which values share memory: views, and results that are written over an operand."""

from __future__ import annotations

from collections.abc import Sequence

from graphcore.ir import Node, Trait
from graphcore.ops import leaf
from graphcore.ops.schedule import kernel


def roots(nodes: Sequence[Node]) -> dict[Node, Node]:
    """For each value the one whose memory it may be a view of: of no op but those with `VIEW`.

    Backends keep to it: `tests/poison.py` checks each step as it runs.
    """
    root: dict[Node, Node] = {}
    for node in nodes:
        is_view = Trait.VIEW in node.op.traits and not is_result(node)
        root[node] = root[node.inputs[0]] if is_view else node
    return root


def is_result(node: Node) -> bool:
    """Whether a node is one of the results of a kernel, which lie in memory of their own."""
    return node.op is leaf.project and node.inputs[0].op is kernel


def can_overwrite(node: Node, x: Node, root: dict[Node, Node]) -> bool:
    """Whether the result may be written over operand `x`: read directly, and by no view as well."""
    if x.type is not node.type or is_result(node):
        return False
    if Trait.UPDATES in node.op.traits:
        return x is node.inputs[0] and all(root[other] is not x for other in node.inputs[1:])
    views = [y for y in node.inputs if y is not x and root[y] is x]
    return not views and Trait.IN_PLACE in node.op.traits
