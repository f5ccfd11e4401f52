"""Windows of convolutions are copied in longer runs: an element of a window with its channels.

The columns and channels of an image that a window covers follow each other in memory. As one axis
they are a run of vectors, where the channels alone would fill a few lanes of one.
"""

from __future__ import annotations

from graphcore.backends.llvm_kernels.builder import WIDTH
from graphcore.ir import Graph, Node, Rule, TensorType
from graphcore.ir.transform import transform
from graphcore.ops import tensor as t
from graphcore.rewrites.loops.view import inside_as_well

FULL = 2 * WIDTH
"""So many channels fill vectors by themselves."""


def in_longer_runs(graph: Graph) -> Graph:
    """The graph in which copies of windows have one axis for a window's last axis and channels."""
    if t.windows not in graph.ops():
        return inside_as_well(in_longer_runs, graph) if graph.bodies() else graph

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        found = as_one_axis(node, *inputs) if node.op is t.transpose else apart(node, *inputs)
        return None if found is None else (in_longer_runs, found)

    return transform(graph, visit, at={t.transpose, t.reshape, t.pack}, bodies=in_longer_runs)


def apart(node: Node, x: Node) -> Node | None:
    """A `reshape` or `pack` of a `reshape`, as one."""
    return node.op(x.inputs[0], shape=node.type.shape) if x.op is t.reshape else None


def as_one_axis(node: Node, seen: Node) -> Node | None:
    """The same transpose of windows, copied along their last axis and channels as one axis."""
    if seen.op is not t.windows:
        return None
    (x,), attrs, perm, last = seen.inputs, seen.attrs, node.attrs["perm"], seen.type.ndim - 1
    axes, sizes, strides = attrs["axes"], attrs["sizes"], attrs["strides"]
    follow = perm[-2:] == (axes[0] + len(axes) - 1, last) and axes[-1] == x.type.ndim - 2
    if not follow or attrs["dilations"][-1] != 1:
        return None
    *front, length, channels = x.type.shape
    if not isinstance(channels, int) or not 1 < channels < FULL:
        return None
    row = t.reshape(x, shape=(*front, length * channels))
    how = {"axes": axes, "dilations": attrs["dilations"]}
    how["sizes"] = (*sizes[:-1], sizes[-1] * channels)
    how["strides"] = (*strides[:-1], strides[-1] * channels)
    runs = t.transpose(t.windows(row, **how), perm=perm[:-1])
    whole = (*node.type.shape[:-2], node.type.shape[-2] * channels)
    assert isinstance(node.type, TensorType)
    return t.reshape(runs, shape=node.type.shape) if runs.type.shape == whole else None
