"""A graph as a function that JAX traces: each node by its entry in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from graphcore.analysis.values import is_inside
from graphcore.backends.errors import indexed_tensor
from graphcore.ir import Graph, Node, Size, TensorType
from graphcore.ir.errors import DefectError
from graphcore.ir.types import TupleType
from graphcore.ops import leaf, tensor
from graphcore.schedule.order import in_order

from .entries import Entry, Value
from .failures import Failures, MatrixError, Site, first_outside, first_true
from .padded_ops import PADDED
from .padding import masked, touches, valid
from .sizes import Sizes
from .table import TABLE


class Emitter:
    """One tracing of a graph, for known sizes: what entries of the table are given.

    Parameters
    ----------
    sizes
        The sizes of the call.
    failures
        The record of the call.
    constants
        The values of large constants, which are operands of the program.
    meshed
        Whether the program runs on a mesh.
    """

    def __init__(
        self,
        sizes: Sizes,
        failures: Failures,
        constants: Mapping[Node, Value],
        meshed: bool = False,
    ) -> None:
        self.found, self.failures = sizes, failures
        self.constants, self.meshed = constants, meshed
        self.known: dict[Node, Value] = {}

    # ---- sizes

    def size(self, size: Size) -> int:
        """The size of an axis in memory, as a number."""
        return self.found.in_memory(size)

    def sizes(self, shape: Sequence[Size]) -> tuple[int, ...]:
        """Several sizes, in numbers."""
        return tuple(map(self.found.in_memory, shape))

    def shape(self, type: TensorType) -> tuple[int, ...]:
        """The shape of a value, in numbers."""
        return self.sizes(type.shape)

    # ---- failures

    def note(self, node: Node, flag: Value, site: Site, first: Any = 0, second: Any = 0) -> None:
        """Let the call fail at a site where a flag holds, unless the node checks nothing."""
        if node.attrs.get("check", True):
            self.failures.note(flag, site, first, second)

    def site(self, node: Node, reason: str = "", kind: type[Exception] = ValueError) -> Site:
        """A site in the loops that are traced now; "{}" in the reason stands for a number."""
        words = lambda first, second: reason.replace("{}", str(first))
        return Site(node, tuple(self.failures.loops), words, kind)

    def fail_where(self, node: Node, flag: Value, reason: str, number: Value = 0) -> None:
        """Let the call fail in a node where a flag holds; `number` stands for {} in the reason."""
        self.note(node, flag, self.site(node, reason), number)

    def fail_outside(self, node: Node, axis: int, positions: Value, size: Value) -> None:
        """Let the call fail where a position lies outside of an axis."""
        axes = node.attrs["axes"]
        index, of = node.inputs[axes.index(axis) - len(axes)], indexed_tensor(node).type.shape[axis]
        if is_inside(index, of) and self.size(of) and not self.found.is_padded(of):
            return
        type, count = index.type, self.found.count(of)
        there = valid(self, positions.shape, type)
        if there is not None:
            positions = jnp.where(there, positions, jnp.zeros_like(positions))
            count = jnp.where(jnp.any(there), count, 1)
        if positions.size:
            wrong, at = first_outside(positions, count, self.meshed)
            self.note(node, wrong, self.site(node)._replace(axis=axis), at, count)

    def fail_in_batch(self, node: Node, failed: Value, reason: str) -> None:
        """Let the call fail where a matrix of a batch has no result, by the first of these."""
        if failed.size:
            there = valid(self, failed.shape, node.inputs[0].type)
            which = first_true(failed if there is None else failed & there)
            site = self.site(node, reason, MatrixError)._replace(batch=failed.shape)
            self.note(node, which < failed.size, site, which)

    # ---- graphs

    def graph(self, graph: Graph, given: Sequence[Value]) -> list[Value]:
        """The outputs of a graph for the values of its params."""
        outer, self.known = self.known, dict(zip(graph.params, given, strict=True))
        known = self.known
        for node in in_order(graph.nodes()):
            if node not in known:
                known[node] = self.node(node, [known[x] for x in node.inputs])
                if node.op is tensor.overwrite and (part := node.inputs[1]).inputs:
                    known[part] = self.written(node, known[node], known[part])
        self.known = outer
        return [known[y] for y in graph.outputs]

    def value(self, node: Node) -> Value:
        """The value of a node of this graph that is computed by now."""
        return self.known[node]

    def written(self, node: Node, whole: Value, part: Value) -> Value:
        """What an overwrite has written, read from there by all that comes after.

        XLA computes it in the loop that writes it, and otherwise again in each that reads it, for
        which it keeps copies of what is written over.
        """
        starts, steps = node.attrs["starts"], node.attrs["steps"]
        if self.meshed or self.found.counts or not part.size or any(step != 1 for step in steps):
            return part
        first = self.sizes(starts)
        ends = [start + size for start, size in zip(first, part.shape, strict=True)]
        return lax.slice(whole, first, ends)

    def body(self, graph: Graph, given: Sequence[Value]) -> list[Value]:
        """The outputs of a body: the counts that are found there are known there alone."""
        before = dict(self.found.counts)
        made = self.graph(graph, given)
        self.found.counts = before
        return made

    def node(self, node: Node, xs: list[Value]) -> Value:
        """The value of a node from those of its operands."""
        if node.op is leaf.project:
            return xs[0][node.attrs["index"]]
        if node.op is leaf.tuple_:
            return tuple(xs)
        if node in self.constants:
            return self.constants[node]
        with jax.named_scope(scope(node)):
            made = self.rule(node)(self, node, *masked(self, node, xs))
        if isinstance(node.type, TupleType):
            return tuple(self.fitting(node, *pair) for pair in zip(made, node.type.items))
        return self.fitting(node, made, node.type)

    def rule(self, node: Node) -> Entry:
        """The entry of a node, or the rule for axes that are padded."""
        counts = self.found.counts
        if counts and node.op in PADDED and touches(node, counts):
            return PADDED[node.op]
        return TABLE[node.op]

    def fitting(self, node: Node, value: Value, type: TensorType) -> Value:
        """A value that an entry has made, in its dtype and of its shape."""
        if value.shape != (shape := self.shape(type)):
            reason = f"{node.said} at {node.origin} has the shape {value.shape}, not {shape}"
            raise DefectError(f"jax: {reason}\n  cure: please report it, with the program")
        return value if value.dtype == type.dtype else value.astype(type.dtype)


def scope(node: Node) -> str:
    """What XLA calls the computation of a node: its name and the user's line."""
    return f"{node.said} at {node.origin}".replace("/", "|")
