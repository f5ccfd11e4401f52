"""Programs in extended precision, exactly and with the rounding errors that any tier may make.

The op-by-op interpreter runs on `np.longdouble`. With a generator of random numbers each op that
rounds changes its result by up to a unit of its dtype, and one that sums its operands as well, by
some units of the sum of their magnitudes: how far such runs are from the exact one says how far
rounding alone can carry a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np

from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops import autodiff, control, elementwise, leaf, tensor
from tests import interpreter

Array = Any
WIDE = {"f": np.longdouble, "c": np.clongdouble}

PASSES = frozenset({
    *(leaf.tuple_, leaf.project, leaf.as_size, leaf.after),
    *(autodiff.barrier, autodiff.stop_gradient),
})  # fmt: skip
"""Ops that pass on what they are given."""
MOVES = PASSES | frozenset({
    *(leaf.input_, leaf.constant, leaf.full, leaf.iota, leaf.extent),
    *(elementwise.real, elementwise.imag),
    *(elementwise.where, elementwise.negative, elementwise.absolute, elementwise.sign),
    *(elementwise.maximum, elementwise.minimum, elementwise.floor, elementwise.ceil),
    *(elementwise.rint, elementwise.trunc, elementwise.conjugate),
    *(tensor.expand, tensor.reshape, tensor.pack, tensor.transpose, tensor.slice_, tensor.embed),
    *(tensor.windows, tensor.concat, tensor.max_, tensor.min_, tensor.wins, tensor.sort),
    *(tensor.gather, tensor.put, tensor.scatter_max, tensor.scatter_min, tensor.overwrite),
    *(tensor.cummax, tensor.cummin),
})  # fmt: skip
"""Ops that round nothing. A cast rounds to its dtype."""
SUMS = frozenset({
    *(tensor.sum_, tensor.prod, tensor.norm, tensor.logsumexp, tensor.softmax, tensor.log_softmax),
    *(tensor.cumsum, tensor.cumprod, tensor.logcumsumexp, tensor.recurrence, tensor.einsum),
    *(tensor.matmul, tensor.matvec, tensor.vecdot, tensor.scatter, tensor.scatter_add),
    *(tensor.scatter_prod, tensor.overlap_add, tensor.fft, tensor.rfft, tensor.irfft),
    *interpreter.matrices.ONE,
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
    compute = Precise(random).compute
    with (
        mock.patch.object(interpreter, "compute", compute),
        mock.patch.object(interpreter.matrices, "det", det),
        np.errstate(all="ignore"),
    ):
        return interpreter.run(graph, values, sizes)


def det(a: Array) -> Array:
    """By elimination: the expansion that the interpreter has takes hours for a large matrix."""
    rows, found = np.array(a), np.ones((), a.dtype)[()]
    for j in range(len(rows)):
        pivot = j + int(np.argmax(np.abs(rows[j:, j])))
        if rows[pivot, j] == 0:
            return a.dtype.type(0)
        if pivot != j:
            rows[[j, pivot]], found = rows[[pivot, j]], -found
        found = found * rows[j, j]
        rows[j + 1 :, j:] -= np.outer(rows[j + 1 :, j] / rows[j, j], rows[j, j:])
    return found


def widened(x: Array) -> Array:
    if isinstance(x, list):
        return [widened(part) for part in x]
    x = np.asarray(x)
    return x.astype(WIDE[x.dtype.kind]) if x.dtype.kind in WIDE else x


class Precise:
    """`compute` of the interpreter, on wide floats."""

    def __init__(self, random: Any) -> None:
        self.random = random
        self.inner = interpreter.compute

    def compute(self, node: Node, xs: list[Array], values: Any, sizes: dict[str, int]) -> Any:
        op = node.op
        if op is leaf.input_:
            return widened(values[node.attrs["name"]])
        if op in (leaf.constant, leaf.full, leaf.iota, leaf.extent):
            return widened(self.inner(node, xs, values, sizes))
        if op in PASSES:
            return self.inner(node, xs, values, sizes)
        if op in interpreter.CONTROL:
            return widened(self.control(node, xs, sizes))
        if op is elementwise.cast and node.type.dtype.kind in WIDE:
            whole = xs[0] if node.type.dtype.kind == "c" else xs[0].real
            if xs[0].dtype.kind in WIDE:
                return self.rounded(widened(whole), node.type.dtype)
            return widened(whole.astype(node.type.dtype))
        if self.random is not None and op in SUMS:
            xs = [self.rounded(x, y.type.dtype) for x, y in zip(xs, node.inputs, strict=True)]
        several = hasattr(node.type, "items")
        types = node.type.items if several else [node.type]
        found = self.values(node, xs, sizes)
        results = found if several else [found]
        if self.random is not None and op in PLAIN and node.type.dtype.kind in WIDE:
            results = [found + self.added(node, xs, sizes)]
        if op not in MOVES:
            results = [self.rounded(x, t.dtype) for x, t in zip(results, types, strict=True)]
        return list(results) if several else results[0]

    def control(self, node: Node, xs: list[Array], sizes: dict[str, int]) -> Any:
        if node.op is control.switch and not -1 < int(xs[0]) < len(node.attrs["branches"]):
            raise IndexError("no such branch")
        return interpreter.CONTROL[node.op](node, xs, sizes)

    def values(self, node: Node, xs: Sequence[Array], sizes: dict[str, int]) -> Any:
        """The result of an op on wide floats; in float64 where NumPy or SciPy has nothing wider."""

        def known(shape: Any) -> tuple[int, ...]:
            return tuple(interpreter.evaluate(size, sizes) for size in shape)

        try:
            return widened(interpreter.REFERENCE[node.op](list(xs), node.attrs, known))
        except (TypeError, DeprecationWarning):  # the latter by SciPy 1.18
            short = [x.astype(x.dtype.kind + "8") if x.dtype.kind == "f" else x for x in xs]
            short = [x.astype("c16") if x.dtype.kind == "c" else x for x in short]
            return widened(interpreter.REFERENCE[node.op](short, node.attrs, known))

    def added(self, node: Node, xs: list[Array], sizes: dict[str, int]) -> Array:
        """How far another order of adding may carry a sum, in proportion to all magnitudes."""
        sides = [np.abs(x) if x.dtype.kind in WIDE else x for x in xs]
        most = ADDED * np.finfo(node.type.dtype).eps * self.values(node, sides, sizes)
        return most * self.random.uniform(-1, 1, most.shape).astype(np.longdouble)

    def rounded(self, x: Array, dtype: np.dtype) -> Array:
        if self.random is None or x.dtype.kind not in WIDE:
            return x
        eps = np.finfo(dtype).eps
        return x * (1 + eps * self.random.uniform(-1, 1, x.shape).astype(np.longdouble))
