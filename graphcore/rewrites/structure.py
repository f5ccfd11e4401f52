"""Solves, inverses and determinants made simpler by facts about their matrices.

These rules are used before differentiation, so that a derivative is that of the simpler form.
"""

from __future__ import annotations

from graphcore.analysis.cost import letter_sizes
from graphcore.analysis.matrices import (
    DIAGONAL,
    LOWER,
    UNITARY,
    UPPER,
    facts,
    left_by,
    mask_of_one,
    matrix_of,
)
from graphcore.analysis.values import is_real, is_zero
from graphcore.ir import Node, unwrap
from graphcore.ir.sizes import count
from graphcore.ops import elementwise, leaf, linalg, tensor
from graphcore.ops.elementwise import absolute, log, sign

from .einsums import single
from .engine import RuleSet
from .plain import cast, expand, reshape, sum_over, transpose, where
from .plain_matrices import diagonal, h, matmul, on_diagonal, t

structure = RuleSet()


@structure.on(linalg.solve)
def solve_by_structure(node: Node) -> Node | None:
    """a⁻¹ b of a unitary matrix is aᴴ b; a triangular one is solved by substitution"""
    (a, b), check = node.inputs, node.attrs["check"]
    known = facts(a)
    if UNITARY in known:
        return matmul(h(a), b)
    if known & DIAGONAL:
        return linalg.solve_triangular(a, b, lower=LOWER in known, unit=False, check=check)
    return None


@structure.on(tensor.einsum, under=[linalg.inv])
def product_with_inverse(node: Node) -> Node | None:
    """a⁻¹ b = solve(a, b), and a⁻ᵀ b = solve(aᵀ, b)"""
    operands, result = node.attrs["operands"], node.attrs["result"]
    if len(operands) != 2:
        return None
    (inverse, letters), (b, own) = sorted(
        zip(node.inputs, operands, strict=True), key=lambda pair: pair[0].op is not linalg.inv
    )
    *batch, i, j = letters
    (a,) = inverse.inputs
    ways = [
        (summed, kept, matrix)
        for summed, kept, matrix in ((j, i, a), (i, j, t(a)))
        if summed in own and summed not in result and kept not in own
    ]
    if not ways:
        return None
    summed, kept, matrix = ways[0]
    sizes = letter_sizes(node)
    columns = [letter for letter in own if letter not in (*batch, summed)]
    order = (*batch, summed, *columns)
    present = [letter for letter in order if letter in own]
    b = transpose(b, [own.index(letter) for letter in present])
    shape = tuple(sizes[letter] for letter in order)
    b = expand(b, [axis for axis, letter in enumerate(order) if letter not in own], shape)
    start = (*shape[: len(batch)], sizes[summed])
    wide = reshape(b, (*start, count(sizes[letter] for letter in columns)))
    found = linalg.solve(matrix, wide, check=inverse.attrs["check"])
    found = reshape(found, (*start, *(sizes[letter] for letter in columns)))
    return single(found, (*batch, kept, *columns), result)


@structure.on(linalg.inv)
def inverse_by_structure(node: Node) -> Node | None:
    """The inverse of a unitary matrix is aᴴ; that of a diagonal one is 1 / a on the diagonal"""
    (a,) = node.inputs
    known = facts(a)
    if UNITARY in known:
        return h(a)
    if node.attrs["check"] or not known >= DIAGONAL:
        return None
    on = on_diagonal(a)
    return where(on, 1 / where(on, a, 1), 0)


@structure.on(linalg.det)
def det_by_structure(node: Node) -> Node | None:
    """The determinant of a triangular matrix is the product of its diagonal"""
    (a,) = node.inputs
    if not facts(a) & DIAGONAL:
        return None
    values = diagonal(a)
    return tensor.prod(values, axis=values.type.ndim - 1)


@structure.on(linalg.slogdet)
def slogdet_by_structure(node: Node) -> Node | None:
    """log|det a| = Σ log|a[i,i]| of a triangular matrix"""
    (a,) = node.inputs
    if not facts(a) & DIAGONAL:
        return None
    values = diagonal(a)
    axis = values.type.ndim - 1
    logs = sum_over(log(absolute(values)), (axis,))
    return leaf.tuple_(tensor.prod(sign(values), axis=axis), logs)


@structure.on(log, under=[linalg.det])
def log_of_det(node: Node) -> Node:
    """log(det(a)) = log(sign) + log|det a|, without overflow"""
    both = linalg.slogdet(node.inputs[0].inputs[0])
    return log(both[0]) + cast(both[1], node.type.dtype)


@structure.on(log, under=[absolute])
def log_of_size(node: Node) -> Node | None:
    """log(|det(a)|) = log|det a|, without overflow"""
    (inner,) = node.inputs[0].inputs
    if inner.op is not linalg.det:
        return None
    found: Node = linalg.slogdet(inner.inputs[0])[1]
    return found


@structure.on(linalg.solve_triangular, under=[elementwise.where])
def solve_of_triangle(node: Node) -> Node | None:
    """The other triangle is not read, so that it need not be 0"""
    (a, b), attrs = node.inputs, node.attrs
    if a.op is not elementwise.where:
        return None
    mask, inner, zero = a.inputs
    if not is_zero(zero) or left_by(mask) != {LOWER if attrs["lower"] else UPPER}:
        return None
    with_diagonal = mask_of_one(mask).op in (elementwise.greater_equal, elementwise.less_equal)
    if not with_diagonal and not attrs["unit"]:
        return None
    return linalg.solve_triangular(inner, b, **attrs)


@structure.on(linalg.solve_triangular)
def solve_of_factor(node: Node) -> Node | None:
    """A Cholesky factor has no 0 on its diagonal: there is nothing to check"""
    (a, b), attrs = node.inputs, node.attrs
    factor, _ = matrix_of(unwrap(a, elementwise.conjugate))
    if not attrs["check"] or factor.op is not linalg.cholesky:
        return None
    return linalg.solve_triangular(a, b, **attrs | {"check": False})


@structure.on(linalg.cholesky, under=[tensor.einsum])
def factor_of_square(node: Node) -> Node | None:
    """cholesky(l lᵀ) = l, of a lower triangular l with a positive diagonal"""
    (square,) = node.inputs
    if square.op is not tensor.einsum or len(set(square.inputs)) > 1 or len(square.inputs) != 2:
        return None
    factor, (left, right), result = (
        square.inputs[0],
        square.attrs["operands"],
        square.attrs["result"],
    )
    if not is_real(factor) or left[:-2] != result[:-2] or right[:-2] != result[:-2]:
        return None
    (i, k), (j, also) = left[-2:], right[-2:]
    if k != also or k in result or result[-2:] != (i, j):
        return None
    return factor if has_positive_diagonal(factor, node.attrs["check"]) else None


def has_positive_diagonal(x: Node, checked: bool) -> bool:
    """Whether a matrix is lower triangular, and surely positive on its diagonal."""
    if x.op is linalg.cholesky:
        return bool(x.attrs["check"]) or not checked
    if x.op is not elementwise.where:
        return False
    mask, on, below = x.inputs
    positive = unwrap(on, tensor.expand).op is elementwise.exp
    return positive and left_by(mask) == DIAGONAL and LOWER in facts(below)
