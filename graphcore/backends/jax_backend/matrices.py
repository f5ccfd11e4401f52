"""How JAX solves systems: by LAPACK on a CPU, by its own routines elsewhere, a batch at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphcore.backends.numpy_backend.linalg import SINGULAR
from graphcore.ir import Node, Op
from graphcore.ops import linalg
from graphcore.ops.meaning import MEANING

from .entries import Emission, Entry, Value, entry

Factors: TypeAlias = "tuple[Value, Value, Value]"

INDEFINITE = "the matrix is not positive definite"


def of_matrices(*ops: Op) -> Callable[[Entry], Entry]:
    """Enter the decorated function for arrays that have elements.

    What an op makes of empty ones depends on no values: it is known while JAX traces.
    """

    def enter(function: Entry) -> Entry:
        @entry(*ops)
        def run(cx: Emission, node: Node, *xs: Value) -> Value:
            if all(x.size for x in xs):
                return function(cx, node, *xs)
            found = MEANING[node.op](*[np.zeros(x.shape, x.dtype) for x in xs], **node.attrs)
            parts = found if isinstance(found, tuple) else (found,)
            made = tuple([jnp.asarray(np.asarray(y)) for y in parts])
            return made if isinstance(found, tuple) else made[0]

        return function

    return enter


def fail(cx: Emission, node: Node, failed: Value, reason: str) -> None:
    """Let the call fail for matrices without a result, unless they shall have nan."""
    if node.attrs.get("check", True):
        cx.fail_in_batch(node, failed, reason)


def all_finite(*xs: Value) -> Value:
    """Which matrices of a batch have no element that is infinite or nan."""
    found: Value = True
    for x in xs:
        found = found & jnp.isfinite(x).all((-2, -1))
    return found


def nan_where(lost: Value, x: Value, rank: int = 2) -> Value:
    """Results of `rank` axes beside the batch, and nan for some matrices."""
    return jnp.where(lost[(..., *[None] * rank)], np.nan, x)


def transposed(a: Value) -> Value:
    """The transpose."""
    return jnp.swapaxes(a, -1, -2)


def adjoint(a: Value) -> Value:
    """The conjugate transpose."""
    return transposed(a).conj()


def diagonal(a: Value) -> Value:
    """The elements of the diagonal."""
    return jnp.diagonal(a, axis1=-2, axis2=-1)


def product(x: Value, *ys: Value) -> Value:
    """The product of matrices from left to right, in all digits of the dtype."""
    for y in ys:
        x = jnp.matmul(x, y, precision=lax.Precision.HIGHEST)
    return x


@of_matrices(linalg.cholesky)
def cholesky(cx: Emission, node: Node, a: Value) -> Value:
    """The lower triangle alone is read; of a matrix without a factor JAX may leave some rows."""
    found = lax.linalg.cholesky(a, symmetrize_input=False)
    lost = jnp.isnan(jnp.real(diagonal(found))).any(-1)
    fail(cx, node, lost & all_finite(a), INDEFINITE)
    return nan_where(lost, found)


@of_matrices(linalg.cholesky_cotangent)
def cholesky_cotangent(cx: Emission, node: Node, lower: Value, g: Value) -> Value:
    """The lower triangle of l⁻ᴴ (p + pᴴ) l⁻¹ for p = lᴴ g, each time with half the diagonal."""
    half = jnp.tril(jnp.ones_like(lower)) - 0.5 * jnp.eye(lower.shape[-1], dtype=lower.dtype)
    back = adjoint(jnp.tril(lower))
    p = jnp.tril(product(back, jnp.tril(g))) * half
    x = p + adjoint(p)
    for _ in range(2):
        x = adjoint(triangular(back, x, lower=False))
    return jnp.tril(x + adjoint(x)) * (0.5 * half)


def singular(packed: Value) -> Value:
    """Which factored matrices have a pivot of 0."""
    return (diagonal(packed) == 0).any(-1)


def solved(factors: Factors, b: Value) -> Value:
    """x with a x = b, by the LU factors of a in one matrix and the order of its rows."""
    packed, _, order = factors
    y = triangular(packed, in_order(b, order), lower=True, unit=True)
    return triangular(packed, y, lower=False)


def in_order(b: Value, order: Value) -> Value:
    """Rows in another order."""
    return jnp.take_along_axis(b, order[..., None], -2, mode="promise_in_bounds")


def inverse(order: Value) -> Value:
    """The order that undoes one."""
    numbers = lax.broadcasted_iota(order.dtype, order.shape, order.ndim - 1)
    empty = jnp.zeros_like(order)
    return jnp.put_along_axis(empty, order, numbers, -1, inplace=False, mode="promise_in_bounds")


def triangular(
    a: Value, b: Value, *, lower: bool, unit: bool = False, transpose: bool = False
) -> Value:
    """x with t x = b for one triangle t of a, or the transpose of that."""
    return lax.linalg.triangular_solve(
        a, b, left_side=True, lower=lower, unit_diagonal=unit, transpose_a=transpose
    )


@of_matrices(linalg.solve)
def solve(cx: Emission, node: Node, a: Value, b: Value) -> Value:
    """A matrix is singular if elimination comes to a pivot of 0."""
    factors = lax.linalg.lu(a)
    lost = singular(factors[0])
    fail(cx, node, lost & all_finite(a, b), SINGULAR)
    return nan_where(lost, solved(factors, b))


@of_matrices(linalg.inv)
def inv(cx: Emission, node: Node, a: Value) -> Value:
    """The solution for the columns of the unit matrix."""
    return solve(cx, node, a, jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape))


@of_matrices(linalg.solve_triangular)
def solve_triangular(cx: Emission, node: Node, a: Value, b: Value) -> Value:
    """A matrix is singular if its diagonal has a 0."""
    lower, unit = node.attrs["lower"], node.attrs["unit"]
    if not unit:
        fail(cx, node, singular(a), SINGULAR)
    return triangular(a, b, lower=lower, unit=unit)


Row: TypeAlias = "tuple[Value, ...]"
"""Of a system: elements next to each other that are not known to be 0, and the right-hand side."""


@of_matrices(linalg.solve_tridiagonal)
def solve_tridiagonal(
    cx: Emission, node: Node, lower: Value, on: Value, upper: Value, b: Value
) -> Value:
    """Elimination with row exchanges, one row of all systems after the other.

    JAX's own routine exchanges rows on a CPU alone.
    """
    low, d, up = (jnp.moveaxis(x, -1, 0)[..., None] for x in (lower, on, upper))
    x, zero = jnp.moveaxis(b, -2, 0), jnp.zeros_like(d[0])
    up = up.at[-1].set(0)

    def eliminate(first: Row, second: Row) -> tuple[Row, Row]:
        first = (*first[:2], zero, first[2])
        exchanged = ~(jnp.abs(first[0]) >= jnp.abs(second[0]))
        pairs = [*zip(first, second, strict=True)]
        top = tuple([jnp.where(exchanged, two, one) for one, two in pairs])
        rest = [jnp.where(exchanged, one, two) for one, two in pairs]
        factor = rest[0] / top[0]
        left = [two - factor * one for one, two in zip(top, rest, strict=True)]
        return tuple(left[1:]), top

    def substitute(known: tuple[Value, Value], row: Row) -> tuple[tuple[Value, Value], Value]:
        found = (row[3] - row[1] * known[0] - row[2] * known[1]) / row[0]
        return (found, known[0]), found

    last, rows = lax.scan(eliminate, (d[0], up[0], x[0]), (low[1:], d[1:], up[1:], x[1:]))
    lost = ((last[0] == 0) | (rows[0] == 0).any(0))[..., 0]
    fail(cx, node, lost, SINGULAR)
    end = last[2] / last[0]
    _, before = lax.scan(substitute, (end, jnp.zeros_like(end)), rows, reverse=True)
    return nan_where(lost, jnp.moveaxis(jnp.concatenate([before, end[None]]), 0, -2))


def parity(exchanges: Value) -> Value:
    """1 for an even number of exchanges, -1 for an odd one."""
    moved = exchanges != jnp.arange(exchanges.shape[-1])
    return 1 - 2 * (moved.sum(-1) % 2)


def determinant(packed: Value, exchanges: Value) -> Value:
    """The product of the pivots, signed by the exchanges."""
    return parity(exchanges).astype(packed.dtype) * diagonal(packed).prod(-1)


def log_determinant(packed: Value, exchanges: Value) -> tuple[Value, Value]:
    """The sign of the determinant, and the logarithm of its absolute value."""
    pivots = diagonal(packed)
    sizes = jnp.abs(pivots)
    if pivots.dtype.kind == "c":
        units = pivots / jnp.where(sizes == 0, 1, sizes)
    else:  # those of infinities and nan as in NumPy
        units = jnp.where(pivots < 0, -1, sizes != 0).astype(pivots.dtype)
    return parity(exchanges).astype(packed.dtype) * units.prod(-1), jnp.log(sizes).sum(-1)


@of_matrices(linalg.det)
def det(cx: Emission, node: Node, a: Value) -> Value:
    """By LU factors."""
    return determinant(*lax.linalg.lu(a)[:2])


@of_matrices(linalg.slogdet)
def slogdet(cx: Emission, node: Node, a: Value) -> tuple[Value, Value]:
    """By LU factors."""
    return log_determinant(*lax.linalg.lu(a)[:2])


@of_matrices(linalg.lu)
def lu(cx: Emission, node: Node, a: Value) -> tuple[Value, Value, Value]:
    """The order of rows, l and u."""
    packed, _, order = lax.linalg.lu(a)
    k = min(a.shape[-2:])
    unit = jnp.eye(a.shape[-2], k, dtype=a.dtype)
    return order, jnp.tril(packed[..., :k], -1) + unit, jnp.triu(packed[..., :k, :])


@of_matrices(linalg.lu_factor)
def lu_factor(cx: Emission, node: Node, a: Value) -> tuple[Value, Value]:
    """Those of the transpose, transposed: the lower triangle has the pivots."""
    packed, exchanges, _ = lax.linalg.lu(transposed(a))
    return transposed(packed), exchanges


@of_matrices(linalg.lu_solve)
def lu_solve(cx: Emission, node: Node, packed: Value, exchanges: Value, b: Value) -> Value:
    """x by the factors l u of the transpose, its rows in order: a is uᵀ lᵀ, its columns in order.

    As JAX makes them, the transpose of `packed` needs no copy.
    """
    lost = singular(packed)
    fail(cx, node, lost & all_finite(packed, b), SINGULAR)
    n, factors = packed.shape[-1], transposed(packed)
    order = lax.linalg.lu_pivots_to_permutation(exchanges.astype(jnp.int32), n)
    if node.attrs["transposed"]:
        return nan_where(lost, solved((factors, exchanges, order), b))
    y = triangular(factors, b, lower=False, transpose=True)
    y = triangular(factors, y, lower=True, unit=True, transpose=True)
    return nan_where(lost, in_order(y, inverse(order)))


@of_matrices(linalg.lu_det)
def lu_det(cx: Emission, node: Node, packed: Value, exchanges: Value) -> Value:
    """The determinant of a factored matrix."""
    return determinant(packed, exchanges)


@of_matrices(linalg.lu_slogdet)
def lu_slogdet(cx: Emission, node: Node, packed: Value, exchanges: Value) -> tuple[Value, Value]:
    """Sign and logarithm of the determinant of a factored matrix."""
    return log_determinant(packed, exchanges)
