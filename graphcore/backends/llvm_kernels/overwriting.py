"""Results stored over operands that are read for the last time, element by element.

    nest: y = exp(x);  nest: z = y - s
        z lies where y lay: each place of y is read just before the same place of z is stored

That is right where each place is computed once, and needs of the value only its own place. Where z
is a result, y is computed in the memory of the result already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from graphcore.ir import Node, TensorType, TupleType
from graphcore.ops import leaf

from .addressing import BYTES, Buffer
from .arithmetic import SCALAR, kind_of
from .builder import Value
from .loop_axes import is_by_parts
from .nests import Nest, Plan, reduces, walked
from .places import is_register


def overwriting(planned: Plan, known: Collection[Node]) -> dict[Node, Node]:
    """The values that roots of nests are stored over, which no later step reads.

    The roots are stored in turn at each place: only the last that reads a value may take its
    buffer.
    """
    found: dict[Node, Node] = {}
    for at, step in enumerate(planned.steps):
        if not isinstance(step, Nest) or not all(map(computed_once, step.roots)):
            continue
        stored = planned.computed.union(known).difference(step.roots)
        reader: dict[Node, Node] = {}
        elsewhere: set[Node] = set()
        for root in step.roots:
            here, others = readings(root, stored)
            reader |= dict.fromkeys(here, root)
            elsewhere |= others
        for x, root in reader.items():
            made = x in planned.computed or x.op is leaf.project
            over = made and x not in known and x not in elsewhere and planned.last[x] == at
            if over and root not in found and same_size(root, x):
                found[root] = x
    return found


def computed_once(root: Node) -> bool:
    """Whether a root is stored at the place where it is computed, each place once.

    The last rows of tiles, and of sums that are added up together, are computed again.
    """
    return not (walked(root) is not root or reduces(root) or is_by_parts(root))


def readings(root: Node, stored: Collection[Node]) -> tuple[dict[Node, None], set[Node]]:
    """The stored values that a root reads: at its own place, and at others."""
    here, others = dict[Node, None](), set[Node]()
    waiting = [(root, True)]
    seen = {*waiting}
    while waiting:
        node, same = waiting.pop()
        if node in stored or node.op is leaf.project:
            if same:
                here[node] = None
            else:
                others.add(node)
            continue
        for item in [(x, same and node.op in SCALAR) for x in node.inputs]:
            if item not in seen:
                seen.add(item)
                waiting.append(item)
    return here, others


def same_size(root: Node, x: Node) -> bool:
    """Whether two values that lie in memory have equal places."""
    if isinstance(x.type, TupleType) or is_register(root.type):
        return False
    bytes = [BYTES[kind_of(y)] for y in (root, x)]
    return root.type.shape == x.type.shape and bytes[0] == bytes[1]


def in_results(
    over: dict[Node, Node],
    homes: dict[Node, list[Buffer]],
    buffer: Callable[[TensorType, Value], Buffer],
) -> dict[Node, list[Buffer]]:
    """The homes of results, and of the values that these are stored over."""
    found = dict(homes)
    for root, x in reversed(over.items()):
        if root in found and x not in found:
            found[x] = [buffer(x.type, found[root][0].pointer)]
    return found
