"""Single nodes, computed by the code that a program has for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from graphcore.ir.axes import values
from graphcore.ir.graph import Graph, unknowns_of
from graphcore.ir.node import Attrs, Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import unknowns
from graphcore.ir.trace import Trace, tracing
from graphcore.ir.types import TensorType, TupleType
from graphcore.ops import leaf

from .function import Function

Array = npt.NDArray[Any]


class Single:
    """Computes one node at a time; nodes of equal ops, attrs and types share one function."""

    def __init__(self) -> None:
        self._functions: dict[Any, Function] = {}

    def __call__(
        self,
        op: Op,
        attrs: Attrs,
        operands: Sequence[TensorType],
        arrays: Sequence[Array],
        sizes: Mapping[str, int],
    ) -> list[Array]:
        """The results of an op on operands of these types, given as arrays, and unknown sizes."""
        key = (op, attrs.key, *operands)
        if (function := self._functions.get(key)) is None:
            function = self._functions[key] = alone(op, attrs, operands)
        return function(arrays, tuple([sizes[name] for name in function.unknowns]))


def alone(op: Op, attrs: Attrs, operands: Sequence[TensorType]) -> Function:
    """The function that computes one node from its operands."""
    with tracing(Trace()) as trace:
        params = tuple([leaf.param(f"operand {i}", type) for i, type in enumerate(operands)])
        node = Node(op, params, attrs)
        several = isinstance(node.type, TupleType)
        graph = Graph(params, tuple(leaf.values(node)) if several else (node,), trace)
        names = unknowns_of(node)
        for type in (*operands, *values(node.type)):
            names.update(name for size in type.shape for name in unknowns(size))
        return Function(graph, tuple(sorted(names)))
