"""Programs in extended precision, exactly and with the rounding errors that any target may make.

The meaning of ops is computed on `np.longdouble`. With a generator of random numbers each op that
rounds changes its result by up to a unit of its dtype, and one that sums its operands as well, by
some units of the sum of their magnitudes: how far such runs are from the exact one says how far
rounding alone can carry a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphcore.inspection.interpreter import Frame, Interpreter
from graphcore.ir import axes
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops import elementwise, leaf, tensor
from graphcore.ops.meaning.matrices import MATRICES
from tests import interpreter

Array = Any
WIDE = {"f": np.longdouble, "c": np.clongdouble}

MOVES = frozenset({
    *(leaf.constant, leaf.full, leaf.iota, leaf.extent),
    *(elementwise.real, elementwise.imag),
    *(elementwise.where, elementwise.negative, elementwise.absolute, elementwise.sign),
    *(elementwise.maximum, elementwise.minimum, elementwise.floor, elementwise.ceil),
    *(elementwise.rint, elementwise.trunc, elementwise.conjugate),
    *(tensor.expand, tensor.reshape, tensor.pack, tensor.transpose, tensor.slice_, tensor.embed),
    *(tensor.windows, tensor.concat, tensor.max_, tensor.min_, tensor.where_greater, tensor.sort),
    *(tensor.gather, tensor.put, tensor.scatter_max, tensor.scatter_min, tensor.overwrite),
    *(tensor.cummax, tensor.cummin),
})  # fmt: skip
"""Ops that round nothing. A cast rounds to its dtype."""
SUMS = frozenset({
    *(tensor.sum_, tensor.prod, tensor.norm, tensor.logsumexp, tensor.softmax, tensor.log_softmax),
    *(tensor.cumsum, tensor.cumprod, tensor.logcumsumexp, tensor.recurrence, tensor.einsum),
    *(tensor.matmul, tensor.matvec, tensor.vecdot, tensor.scatter, tensor.scatter_add),
    *(tensor.scatter_prod, tensor.overlap_add, tensor.fft, tensor.rfft, tensor.irfft),
    *MATRICES,
})  # fmt: skip
"""Ops whose own steps round, in proportion to what they are given."""
PLAIN = frozenset({
    *(tensor.sum_, tensor.einsum, tensor.matmul, tensor.matvec, tensor.vecdot, tensor.cumsum),
    *(tensor.scatter, tensor.scatter_add, tensor.overlap_add),
})  # fmt: skip
"""Ops that add, products among them, and compute nothing else."""
ADDED = 8
"""How many units of the sum of magnitudes it may come to in which order a thousand are added."""


def run(
    graph: Graph, values: dict[str, Array], sizes: dict[str, int], random: Any = None
) -> list[Array]:
    """The outputs of a plain graph in extended precision; with `random`, each op rounds its way."""
    return interpreter.run(graph, values, sizes, Precise(random))


def widened(x: Array) -> Array:
    x = np.asarray(x)
    return x.astype(WIDE[x.dtype.kind]) if x.dtype.kind in WIDE else x


class Precise(Interpreter):
    """Computes on wide floats."""

    def __init__(self, random: Any) -> None:
        super().__init__()
        self.random = random

    def frame(self, graph: Graph, given: Iterable[Array], sizes: dict[str, int]) -> Frame:
        return super().frame(graph, map(widened, given), sizes)

    def compute(self, node: Node, xs: Sequence[Array], sizes: dict[str, int]) -> list[Array]:
        op = node.op
        if op is elementwise.cast and node.type.dtype.kind in WIDE:
            whole = xs[0] if node.type.dtype.kind == "c" else xs[0].real
            if xs[0].dtype.kind in WIDE:
                return [self.rounded(widened(whole), node.type.dtype)]
            return [widened(whole.astype(node.type.dtype))]
        if self.random is not None and op in SUMS:
            xs = [self.rounded(x, y.type.dtype) for x, y in zip(xs, node.inputs, strict=True)]
        results = self.values(node, xs, sizes)
        if self.random is not None and op in PLAIN and node.type.dtype.kind in WIDE:
            results = [results[0] + self.added(node, xs, sizes)]
        if op in MOVES:
            return results
        types = axes.values(node.type)
        return [self.rounded(x, t.dtype) for x, t in zip(results, types, strict=True)]

    def values(self, node: Node, xs: Sequence[Array], sizes: dict[str, int]) -> list[Array]:
        """The results of an op on wide floats; in float64 where there is nothing wider."""
        try:
            return [*map(widened, super().compute(node, xs, sizes))]
        except (TypeError, DeprecationWarning):  # the latter by SciPy 1.18
            short = [x.astype(x.dtype.kind + "8") if x.dtype.kind == "f" else x for x in xs]
            short = [x.astype("c16") if x.dtype.kind == "c" else x for x in short]
            return [*map(widened, super().compute(node, short, sizes))]

    def added(self, node: Node, xs: Sequence[Array], sizes: dict[str, int]) -> Array:
        """How far another order of adding may carry a sum, in proportion to all magnitudes."""
        sides = [np.abs(x) if x.dtype.kind in WIDE else x for x in xs]
        most = ADDED * np.finfo(node.type.dtype).eps * self.values(node, sides, sizes)[0]
        return most * self.random.uniform(-1, 1, most.shape).astype(np.longdouble)

    def rounded(self, x: Array, dtype: np.dtype) -> Array:
        if self.random is None or x.dtype.kind not in WIDE:
            return x
        eps = np.finfo(dtype).eps
        return x * (1 + eps * self.random.uniform(-1, 1, x.shape).astype(np.longdouble))
