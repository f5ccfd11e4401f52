"""ALONE: ops that are steps of their own, written as loops or as calls of routines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphcore.ir import Node, Op, TensorType, TupleType
from graphcore.ops import control, linalg
from graphcore.ops import tensor as t
from graphcore.ops.control import Loop

from . import blocked, dense, lapack, lu, receiving, running
from .arithmetic import kind_of, rule_of
from .elementary import is_missing
from .lapack import MATRICES, has_routines, is_for_routines, lying
from .printing import print_
from .products import operand, product
from .receiving import RECEIVING
from .running import RUNNING
from .sorting import SORTING, is_ordered
from .writer import Homes, Writer

Routine = Callable[[Writer, Node, Homes], None]


def operands_in_buffers(node: Node) -> Sequence[Node]:
    """The operands of a loop, branch or routine that have to lie in memory, or in registers."""
    if node.op is control.scan:
        carries, sequences, captured = Loop.of(node).operands
        return [*carries, *[x for x in sequences if not control.is_counter(x)], *captured]
    if isinstance(node.type, TupleType):
        return node.inputs
    if node.op is t.matmul:
        return [operand(x).base for x in node.inputs]
    if node.op is linalg.solve_triangular:
        return [lying(node.inputs[0])]
    if node.op is linalg.cholesky_cotangent:
        return node.inputs[:1]
    if node.op is t.searchsorted:
        return node.inputs[:1]
    return ()


def read_singly(node: Node) -> Sequence[Node]:
    """The operands of a routine that it reads one place after the other."""
    return receiving.put_singly(node) if node.op in receiving.RECEIVING else ()


def lacks(node: Node) -> bool:
    """Whether an op that calls a routine, or stands alone, has none for the dtype of a node."""
    if node.op.dialect == "elementwise":
        return is_missing(node.op.name)
    kind = kind_of(node) if isinstance(node.type, TensorType) else ""
    if node.op in RULE:
        try:
            rule_of(RULE[node.op], kind)
        except KeyError:
            return True
        return kind == "f16"
    if node.op in SORTING:
        return not all(map(is_ordered, node.inputs))
    if node.op is t.matmul and not is_for_routines(node):
        return False
    if node.op is linalg.cholesky_cotangent:
        return kind not in dense.KINDS
    if node.op in (linalg.solve_triangular, linalg.lu_solve):
        return kind not in blocked.KINDS
    return not has_routines(node, routines(node))


def routines(node: Node) -> Sequence[str]:
    """The routines of LAPACK and BLAS that a node calls."""
    if node.op is t.matmul:
        return () if kind_of(node) in dense.KINDS else ("gemm",)
    return ROUTINES.get(node.op, ())


ROUTINES = lapack.ROUTINES | lu.ROUTINES
"""The same for each op but products of matrices."""
RULE = receiving.COMBINED | running.COMBINED
"""The elementwise op that an op applies to two values."""

ALONE: dict[Op, Routine] = {
    t.matmul: product,
    **MATRICES,
    **lu.LU,
    **RECEIVING,
    **RUNNING,
    **SORTING,
    t.print_: print_,
}
