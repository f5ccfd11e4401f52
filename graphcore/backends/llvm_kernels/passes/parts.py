"""A value that is written into a larger result is not stored twice: others read it there.

It needs neither memory nor a pass of its own: it is computed in the memory of the result.
"""

from __future__ import annotations

from graphcore.analysis.cost import representative
from graphcore.ir import Graph, Node, Rule
from graphcore.ir.transform import keep_node, transform
from graphcore.ops.tensor import overwrite, slice_


def read_parts_in_results(graph: Graph) -> Graph:
    """The graph in which parts of its outputs, and of those of bodies, are read in the outputs."""
    results = results_with_parts(graph)
    if not results and not graph.bodies():
        return graph

    def is_read_in_result(node: Node, x: Node) -> bool:
        return x in results and node is not results[x]

    def operands(node: Node) -> tuple[Node, ...]:
        return tuple([results[x] if is_read_in_result(node, x) else x for x in node.inputs])

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node.op.dialect != "elementwise" or results.keys().isdisjoint(node.inputs):
            return None
        pairs = zip(node.inputs, inputs, strict=True)
        read = [part_of(new, results[x]) if x in results else new for x, new in pairs]
        return read_parts_in_results, Node(node.op, tuple(read), node.attrs)

    if not results:
        return transform(graph, keep_node, at=(), bodies=read_parts_in_results)
    return transform(graph, visit, operands=operands, bodies=read_parts_in_results)


def results_with_parts(graph: Graph) -> dict[Node, Node]:
    """The output that each part is to be read in.

    The ops that read it must be elementwise, as others may need it in memory, and come after the
    output, so that none waits for itself.
    """
    large = filter(writes_much, graph.outputs)
    results = {y.inputs[1]: y for y in large if y.inputs[1].op.dialect == "elementwise"}
    for y in graph.outputs:
        results.pop(y, None)
    done: set[Node] = set()
    for node in graph.nodes() if results else ():
        for x in node.inputs:
            result = results.get(x, node)
            if result is not node and (result not in done or node.op.dialect != "elementwise"):
                del results[x]
        done.add(node)
    return results


def writes_much(node: Node) -> bool:
    """Whether a node writes a part over more than a fourth of a value.

    A smaller part is better written into the memory that holds the rest; for a larger one another
    buffer costs less than to store what is overwritten.
    """
    if node.op is not overwrite:
        return False
    return 4 * representative(node.inputs[1].type.count) > representative(node.type.count)


def part_of(result: Node, node: Node) -> Node:
    """The elements of the new result that `node` writes."""
    starts, steps = node.attrs["starts"], node.attrs["steps"]
    return slice_(result, starts=starts, sizes=node.inputs[1].type.shape, steps=steps)
