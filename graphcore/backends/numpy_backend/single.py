"""Single nodes, computed by the code that programs have for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphcore.inspection.interpreter import Applied
from graphcore.ir.graph import Graph, unknowns_of
from graphcore.ir.node import Attrs, Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import unknowns
from graphcore.ir.trace import Trace, tracing
from graphcore.ir.types import TensorType, TupleType
from graphcore.ops import leaf
from graphcore.rewrites import pipeline
from graphcore.rewrites.pipeline import Passes
from graphcore.rewrites.plain import expand

from .function import Function

Array = npt.NDArray[Any]


class Single:
    """Computes one node at a time; nodes of equal ops, attrs and types share one function.

    Parameters
    ----------
    passes
        The passes that nodes go through first, if they are not in their final form.
    """

    def __init__(self, passes: Passes | None = None) -> None:
        self._passes = passes
        self._functions: dict[Any, Function] = {}

    def __call__(self, applied: Applied) -> list[Array]:
        """The results of an op on some operands."""
        op, attrs, operands, arrays, sizes = applied
        repeats = tuple(map(repeats_number, operands, arrays))
        key = (op, attrs.key, repeats, *operands)
        if (function := self._functions.get(key)) is None:
            function = self._functions[key] = self._alone(op, attrs, operands, repeats)
        given = [
            np.asarray(x[(0,) * x.ndim]) if repeated else x
            for x, repeated in zip(arrays, repeats, strict=True)
        ]
        return function(given, tuple([sizes[name] for name in function.unknowns]))

    def outputs(
        self, graph: Graph, arrays: Sequence[Array], sizes: Mapping[str, int]
    ) -> list[Array]:
        """The outputs of a graph whose nodes do not stand for values of their own."""
        if (function := self._functions.get(graph)) is None:
            with tracing(Trace()) as trace:
                function = self._functions[graph] = self._function(graph, trace)
        return function(arrays, tuple([sizes[name] for name in function.unknowns]))

    def _alone(
        self, op: Op, attrs: Attrs, operands: Sequence[TensorType], repeats: Sequence[bool]
    ) -> Function:
        """The function that computes one node from its operands, some of which repeat a number."""
        with tracing(Trace()) as trace:
            params, inputs = [], []
            for i, (type, repeated) in enumerate(zip(operands, repeats, strict=True)):
                param = leaf.param(f"operand {i}", TensorType(type.dtype, ()) if repeated else type)
                params.append(param)
                inputs.append(expand(param, range(type.ndim), type.shape) if repeated else param)
            node = Node(op, tuple(inputs), attrs)
            several = isinstance(node.type, TupleType)
            outputs = tuple(leaf.values(node)) if several else (node,)
            return self._function(Graph(tuple(params), outputs), trace)

    def _function(self, graph: Graph, trace: Trace) -> Function:
        """The function of a graph, after the passes."""
        names = {name for node in graph.every_node() for name in unknowns_of(node)}
        for node in (*graph.params, *graph.outputs):
            names.update(name for size in node.type.shape for name in unknowns(size))
        final = Graph(graph.params, graph.outputs, trace)
        if self._passes:
            final = pipeline.run(final, self._passes)[-1].graph
        return Function(final, tuple(sorted(names)))


def repeats_number(type: TensorType, x: Array) -> bool:
    """Whether an operand of a plain op is one number everywhere: some functions take only that."""
    return bool(type.dims is None and x.ndim and x.size and not any(x.strides))
