"""The check that a program stays within one precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy.typing as npt

from graphcore.frontend.core.arguments import dtype_of
from graphcore.frontend.core.base import type_refusal
from graphcore.ir import DType, Graph, Node, TensorType, TupleType
from graphcore.ir.dtypes import real_of
from graphcore.ir.errors import GraphTypeError
from graphcore.ops import leaf


def require_precision(graph: Graph, given: npt.DTypeLike) -> None:
    """Refuse floats wider than a dtype: where they meet narrower ones, as inputs and as outputs."""
    dtype = dtype_of(given)
    if dtype.kind != "f":
        cure = "give a float, such as dtype='float32'"
        raise type_refusal(f"dtype={dtype} is not a float", cure=cure)
    for node in graph.every_node():
        narrow = any(is_float(x) and not is_wide(x, dtype) for x in node.inputs)
        if is_wide(node, dtype) and (narrow or node.op is leaf.input_):
            raise widening(node, dtype)
    for node in graph.outputs:
        if is_wide(node, dtype):
            raise widening(source_of(node, dtype), dtype)


def widening(node: Node, dtype: DType) -> GraphTypeError:
    """The error for a node that makes wider floats."""
    kinds = [of.dtype for of in types(node) if of.dtype.kind in "fc"]
    wide = next(kind for kind in kinds if real_of(kind).itemsize > dtype.itemsize)
    reason = f"{node.op.said} makes {wide}, and dtype={str(dtype)!r} allows none"
    if node.op is leaf.input_:
        reason = f"input {node.attrs['name']!r} is {wide}, and dtype={str(dtype)!r} allows none"
        cure = f"declare it with dtype={str(dtype)!r}"
    else:
        cure = (
            f"cast integers and constants first, x.astype({str(dtype)!r}), write numbers of Python "
            f"for those of NumPy, and new values with like=x"
        )
    error = type_refusal(reason, node, *node.inputs, cure=cure)
    assert isinstance(error, GraphTypeError)
    return error


def source_of(node: Node, dtype: DType) -> Node:
    """The node that made wide floats of other values, from which these come."""
    while wide := [x for x in node.inputs if is_wide(x, dtype) and not is_number(x)]:
        node = wide[0]
    return node


def is_number(node: Node) -> bool:
    """Whether a node is one number, which has the dtype of what it meets."""
    return node.op is leaf.full and not node.type.shape


def types(node: Node) -> Iterator[TensorType]:
    """The types of the values of a node."""
    yield from node.type.items if isinstance(node.type, TupleType) else (node.type,)


def is_float(node: Node) -> bool:
    """Whether a node has floats or complex numbers."""
    return any(of.dtype.kind in "fc" for of in types(node))


def is_wide(node: Node, dtype: DType) -> bool:
    """Whether a node has floats wider than a dtype."""
    kinds = [of.dtype for of in types(node) if of.dtype.kind in "fc"]
    return any(real_of(kind).itemsize > dtype.itemsize for kind in kinds)
