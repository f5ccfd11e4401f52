"""Ops that only a schedule has: they group nodes that run together."""

from __future__ import annotations

from graphcore.ir import Graph, TensorType, TupleType
from graphcore.ir.axes import Opaque
from graphcore.ir.op import op

from .control import accept


@op(axes=Opaque())
def kernel(*operands: TensorType, body: Graph) -> TupleType:
    """The results of a body whose nodes run together. Equal regions of a program have one body."""
    accept(body, operands)
    return TupleType(tuple(y.type for y in body.outputs))
