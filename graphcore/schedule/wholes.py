"""Parts that are written into a larger result: other ops read such a part in that result.

Then a part needs neither memory nor a pass of its own: it is computed where the whole is.
"""

from __future__ import annotations

from graphcore.analysis.cost import representative
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.trace import Rule
from graphcore.ir.transform import transform, unchanged
from graphcore.ops.tensor import overwrite, slice_


def read_from_wholes(graph: Graph) -> Graph:
    """The graph in which parts of its outputs, and of those of bodies, are read in the outputs."""
    wholes = wholes_of(graph)
    if not wholes and not graph.held():
        return graph

    def is_read_in_whole(node: Node, x: Node) -> bool:
        return x in wholes and node is not wholes[x]

    def operands(node: Node) -> tuple[Node, ...]:
        return tuple([wholes[x] if is_read_in_whole(node, x) else x for x in node.inputs])

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node.op.dialect != "elementwise" or wholes.keys().isdisjoint(node.inputs):
            return None
        pairs = zip(node.inputs, inputs, strict=True)
        read = [part_of(new, wholes[x]) if x in wholes else new for x, new in pairs]
        return read_from_wholes, Node(node.op, tuple(read), node.attrs)

    if not wholes:
        return transform(graph, unchanged, at=(), bodies=read_from_wholes)
    return transform(graph, visit, operands=operands, bodies=read_from_wholes)


def wholes_of(graph: Graph) -> dict[Node, Node]:
    """The output that each part is to be read in.

    The ops that read it must be elementwise, as others may need it in memory, and come after the
    output, so that none waits for itself.
    """
    wholes = {y.inputs[1]: y for y in graph.outputs if has_large_part(y)}
    for y in graph.outputs:
        wholes.pop(y, None)
    done: set[Node] = set()
    for node in graph.nodes() if wholes else ():
        for x in node.inputs:
            whole = wholes.get(x, node)
            if whole is not node and (whole not in done or node.op.dialect != "elementwise"):
                del wholes[x]
        done.add(node)
    return wholes


def has_large_part(node: Node) -> bool:
    """Whether a node writes a part, computed by an elementwise op, over most places of a value.

    A smaller part is better written where the rest lies already.
    """
    if node.op is not overwrite or node.inputs[1].op.dialect != "elementwise":
        return False
    return 4 * representative(node.inputs[1].type.count) > representative(node.type.count)


def part_of(whole: Node, node: Node) -> Node:
    """The places of the new whole that `node` writes."""
    starts, steps = node.attrs["starts"], node.attrs["steps"]
    return slice_(whole, starts=starts, sizes=node.inputs[1].type.shape, steps=steps)
