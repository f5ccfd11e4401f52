"""Loops get a matrix, not its transpose, where only products with vectors read the transpose.

The loop transposes them itself: so nothing is copied, and xᵀ (x v) is one walk over x.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphcore.backends.llvm_kernels.lapack import is_matrix_transpose
from graphcore.ir import Graph, Node, Rule, toposort
from graphcore.ir.graph import with_bodies
from graphcore.ir.transform import transform
from graphcore.ops import tensor as t
from graphcore.ops.control import LOOPS, Loop, LoopOperand
from graphcore.rewrites.loops.view import inside_as_well, new_params, replaced


def transpose_inside_loops(graph: Graph) -> Graph:
    """The graph whose loops get matrices as they lie, and transpose them for their products."""
    if LOOPS.isdisjoint(graph.ops()):
        return inside_as_well(transpose_inside_loops, graph) if graph.bodies() else graph

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        loop = Loop.of(Node(node.op, inputs, with_bodies(node, transpose_inside_loops)))
        return transpose_inside_loops, with_matrices(loop).build()

    return transform(graph, visit, at=LOOPS, bodies=transpose_inside_loops)


def with_matrices(loop: Loop) -> Loop:
    """The loop with matrices in place of transposes that only products with vectors read."""
    found = [
        x for x in loop.captured if is_matrix_transpose(x.value) and is_for_products(x.param, loop)
    ]
    if not found:
        return loop
    below = dict.fromkeys([x.value.inputs[0] for x in found])
    params = {x.value: x.param for x in reversed(loop.captured)}
    made = new_params("matrix", loop, [x for x in below if x not in params])
    params |= made
    new = {
        x.param: t.transpose(params[x.value.inputs[0]], perm=x.value.attrs["perm"]) for x in found
    }
    kept = [x for x in loop.captured if x.param not in new]
    kept += [LoopOperand(param, value) for value, param in made.items()]
    return replaced(loop, new, transpose_inside_loops)._replace(captured=tuple(kept))


def is_for_products(param: Node, loop: Loop) -> bool:
    """Whether all that reads a param are products of it with vectors."""
    readers = [*reading(param, loop)]
    return bool(readers) and all(x.op is t.matvec and x.inputs[1] is not param for x in readers)


def reading(param: Node, loop: Loop) -> Iterator[Node]:
    """The nodes of a body that read a param, itself among them if it is a result."""
    yield from (x for x in toposort(loop.roots) if param in x.inputs)
    yield from (x for x in loop.roots if x is param)
