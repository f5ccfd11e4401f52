"""Determinants, norms and rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from graphcore.frontend.core.arguments import check_word, dims_of, two_dims
from graphcore.frontend.core.base import Tensor, brief, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.elementwise import absolute, equal
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.reduce import norms
from graphcore.ir.help_text import fields, parameters
from graphcore.ir.sizes import maximum
from graphcore.ops.named import matrices

from .factors import svdvals
from .matrix_arguments import MATRICES, ROW_COL, SQUARE, matrix_of, of_matrix

__all__ = [
    "det",
    "matrix_rank",
    "norm",
    "slogdet",
]


@fields
class SignLog(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


@parameters(**SQUARE)
def det(x: Operand, dims: Sequence[str] = ROW_COL) -> Tensor:
    """Determinant of square matrices; all other dims are batch.

    Its derivative, the cofactors, is exact at singular matrices as well, to any order.

    >>> gc.compile([], gc.linalg.det(gc.constant([[1.0, 2.0], [3.0, 4.0]], ("row", "col"))))()
    array(-2.)
    """
    return wrap(of_matrix(matrices.det, x, dims))


@parameters(**SQUARE)
def slogdet(x: Operand, dims: Sequence[str] = ROW_COL) -> SignLog:
    """Sign of the determinant of square matrices, and log of its absolute value, without overflow.

    A singular matrix has sign 0 and logarithm -inf.

    >>> x = gc.constant([[1.0, 2.0], [3.0, 4.0]], ("row", "col"))
    >>> gc.compile([], list(gc.linalg.slogdet(x)))()
    [array(-1.), array(0.69314718)]
    """
    made = of_matrix(matrices.slogdet, x, dims)
    return SignLog(wrap(made[0]), wrap(made[1]))


@parameters(
    **MATRICES,
    rtol="The share of the largest singular value up to which others count as 0.",
)
def matrix_rank(
    x: Operand, dims: Sequence[str] = ROW_COL, *, rtol: Operand | None = None
) -> Tensor:
    """Rank of matrices: the number of singular values above `rtol` times the largest.

    By default `rtol` is the rounding error to expect: the larger size times the unit of rounding.

    >>> x = gc.constant([[1.0, 2.0], [2.0, 4.0]], ("row", "col"))
    >>> gc.compile([], gc.linalg.matrix_rank(x))()
    array(1)
    """
    node, (row, col) = matrix_of(x, dims)
    s = svdvals(wrap(node), (row, col), new="rank'")
    units: Operand = 0.0 if rtol is None else rtol
    if rtol is None:
        size = single(maximum(node.type.size(row), node.type.size(col)))
        units = astype(wrap(size), s.dtype) * float(np.finfo(s.dtype).eps)
    return (s > norms.norm(s, "rank'", math.inf) * units).sum("rank'")


@parameters(
    dims="One dim of vectors, two of matrices (rows first), or None for all elements.",
    ord='For vectors a number, 2 by default, as in `gc.norm`. For matrices "fro", the default, is '
    'the root of the sum of squares, and "nuc" the sum of the singular values. 2 and -2 are the '
    "largest and the smallest of these. 1 and -1 are the largest and the smallest sum of absolute "
    "values in a column, inf and -inf in a row. The derivative at 0 is 0.",
)
def norm(
    x: Operand, dims: str | Sequence[str] | None = None, ord: float | str | None = None
) -> Tensor:
    """Norm of vectors along one dim, or of matrices over two; by default of all elements.

    >>> x = gc.constant([[3.0, 0.0], [0.0, -4.0]], ("row", "col"))
    >>> gc.compile([], [gc.linalg.norm(x, ("row", "col"), ord=k) for k in ("fro", "nuc", 2, 1)])()
    [array(5.), array(7.), array(4.), array(4.)]
    """
    node = single(x)
    names = dims_of(node, dims, ordered=True)
    if ord is None or (len(names) != 2 and not isinstance(ord, str)):
        return norms.norm(wrap(node), names, 2 if ord is None else ord)
    row, col = two_dims(names, node)
    if not isinstance(ord, (str, int, float, np.number)) or isinstance(ord, bool):
        raise type_refusal(f"ord={brief(ord)}", node, cure="give a number, 'fro' or 'nuc'")
    known = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
    if ord not in known:
        check_word("ord", ord, map(str, known), node)
    if ord == "fro":
        return norms.norm(wrap(node), (row, col))
    if ord in ("nuc", 2, -2):
        s = svdvals(wrap(node), (row, col), new="rank'")
        s = where(equal(s, 0), 0, s)  # has derivative 0 at 0
        return s.sum("rank'") if ord == "nuc" else s.max("rank'") if ord == 2 else s.min("rank'")
    inner, outer = (row, col) if ord in (1, -1) else (col, row)
    sums = absolute(as_float(wrap(node))).sum(inner)
    return sums.max(outer) if float(ord) > 0 else sums.min(outer)
