"""Products of windows with a vector read the windows where they are, without a copy.

As a matrix the windows of an image are a copy of it for each place of a window. A kernel's sum of
products reads the image itself instead, shifted by each place in turn, many columns side by side.
"""

from __future__ import annotations

from graphcore.backends.llvm_kernels.rows import is_long
from graphcore.ir import Graph, Node, Rule
from graphcore.ir.sizes import count
from graphcore.ir.transform import transform
from graphcore.ops import tensor as t
from graphcore.ops.elementwise import multiply
from graphcore.rewrites import plain
from graphcore.rewrites.loops.view import inside_as_well


def summed_in_place(graph: Graph) -> Graph:
    """The graph in which no windows are copied for a product with a vector."""
    if t.pack not in graph.ops():
        return inside_as_well(summed_in_place, graph) if graph.bodies() else graph

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        found = seen_once(node, *inputs) if node.op is t.reshape else sum_of_windows(node, *inputs)
        return None if found is None else (summed_in_place, found)

    return transform(graph, visit, at={t.matvec, t.reshape}, bodies=summed_in_place)


def seen_once(node: Node, x: Node) -> Node | None:
    """A `reshape` of a `reshape` as one, or as none."""
    return plain.reshape(x.inputs[0], node.type.shape) if x.op is t.reshape else None


def sum_of_windows(node: Node, matrix: Node, vector: Node) -> Node | None:
    """matvec(pack(windows), v) = sum(windows * v), over either the windows or their places."""
    transposed = matrix.op is t.transpose and matrix.attrs["perm"] == (1, 0)
    packed = matrix.inputs[0] if transposed else matrix
    if packed.op is not t.pack or packed.type.ndim != 2 or node.type.dtype.kind != "f":
        return None
    (seen,), rows = packed.inputs, packed.type.shape[0]
    if seen.op is not t.windows or not runs_along_lanes(seen):
        return None
    shape = seen.type.shape
    cut = next((n for n in range(len(shape)) if count(shape[:n]) == rows), 0)
    front, back = range(cut), range(cut, len(shape))
    if not cut or {x.type.dtype for x in (seen, vector)} != {node.type.dtype}:
        return None
    gone, kept = (front, back) if transposed else (back, front)
    factor = plain.reshape(vector, tuple([shape[axis] for axis in gone]))
    product = multiply(seen, plain.expand(factor, kept, shape))
    return plain.reshape(plain.sum_over(product, gone), node.type.shape)


def runs_along_lanes(seen: Node) -> bool:
    """Whether windows that follow each other along a long last axis begin side by side."""
    axes, strides, last = seen.attrs["axes"], seen.attrs["strides"], seen.inputs[0].type.ndim - 1
    steps = dict(zip(axes, strides, strict=True))
    return is_long(seen.type.shape[-1]) and steps.get(last, 1) == 1
