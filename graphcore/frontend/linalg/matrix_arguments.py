"""Arguments of linear algebra: operands as floats, and the two dims of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.frontend.core.arguments import DimPair, two_dims
from graphcore.frontend.core.base import Tensor, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, common
from graphcore.frontend.shape.dims import rename
from graphcore.ir import Node, Op
from graphcore.ir.dtypes import float_for, promote
from graphcore.ops.elementwise import cast

ROW_COL = ("row", "col")

MATRICES = {
    "x": "Matrices of any shape; all dims but two are batch.",
    "dims": "Their dims, rows first.",
}
SQUARE = MATRICES | {"x": "Square matrices; all dims but two are batch."}
"""Descriptions of the parameters of functions of matrices."""


def floats(*xs: Operand) -> list[Node]:
    """Operands in one float or complex dtype."""
    nodes = common(*xs)
    dtype = float_for(promote(*[node.type.dtype for node in nodes]))
    if dtype.itemsize == 2:
        cure = "cast it to float32 with astype"
        raise type_refusal("is not defined for half precision", *nodes, cure=cure)
    return [node if node.type.dtype == dtype else cast(node, dtype=dtype) for node in nodes]


def matrix_of(x: Operand, dims: Sequence[str]) -> tuple[Node, DimPair]:
    """Matrices as floats, and their two dims, rows first."""
    (node,) = floats(x)
    return node, two_dims(dims, node)


def of_matrix(op: Op, x: Operand, dims: Sequence[str], *new: str, **attrs: Any) -> Node:
    """An op of one matrix; its result has the dims `new`."""
    node, own = matrix_of(x, dims)
    return op(node, dims=own, new=new, **attrs)


def matrix_to_matrix(op: Op, x: Operand, dims: Sequence[str], **attrs: Any) -> Tensor:
    """An op whose result is a matrix with the dims of its operand."""
    node, found = matrix_of(x, dims)
    return wrap(op(node, dims=found, new=found, **attrs))


def swap_dims(x: Tensor, dims: DimPair) -> Tensor:
    """`x` with the names of two dims exchanged: the matrix transposed."""
    return rename(x, {dims[0]: dims[1], dims[1]: dims[0]})
