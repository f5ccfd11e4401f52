"""What ops on matrices mean: functions of NumPy, which take a batch, or of SciPy, of one matrix.

A matrix that is singular, or not finite, has a result of nan.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.linalg
from numpy.linalg import LinAlgError

from graphcore.ir import Array, Op, TensorType, TupleType
from graphcore.ops import linalg


def of_batch(op: Op, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a batch, or of one matrix, for a batch some of whose matrices may fail."""

    def run(*xs: Array, check: bool = False, **attrs: Any) -> Any:
        type = op.rule(*[TensorType(x.dtype, x.shape) for x in xs])
        types = type.items if isinstance(type, TupleType) else (type,)
        results = tuple(
            [np.full(y.shape, np.nan if y.dtype.kind in "fc" else 0, y.dtype) for y in types]
        )

        def enter(at: Any) -> None:
            found = function(*[x[at] for x in xs], **attrs)
            for y, value in zip(results, found if isinstance(found, tuple) else (found,)):
                y[at] = value

        batch = xs[0].shape[: xs[0].ndim - len(linalg.SIGNATURES[op].operands[0])]
        places = [...] if op in NUMPYS else []
        for at in (*places, *np.ndindex(batch)) if any(y.size for y in results) else ():
            with suppress(LinAlgError, ValueError), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they say less than a nan
                enter(at)
                if at is ...:
                    break
        return results if len(results) > 1 else results[0]

    return run


def with_nan(a: Array) -> Array:
    """nan in place of infinities, for which LAPACK's gesdd may not end."""
    return np.where(np.isfinite(a), a, a.dtype.type(np.nan))


def svd(a: Array, full: bool = False) -> tuple[Array, ...]:
    return tuple(np.linalg.svd(with_nan(a), full_matrices=full))


def cholesky_cotangent(lower: Array, g: Array) -> Array:
    """The lower triangle of l⁻ᴴ (p + pᴴ) l⁻¹ for p = lᴴ g, each time with half the diagonal."""
    lower, on = np.tril(lower), 0.5 * np.eye(lower.shape[-1])
    p = np.tril(adjoint(lower) @ np.tril(g))
    p = p - p * on
    inverse = np.linalg.inv(lower)
    x = np.tril(adjoint(inverse) @ (p + adjoint(p)) @ inverse)
    return np.asarray(x - x * on)


def adjoint(a: Array) -> Array:
    """Transposed and conjugated."""
    return a.swapaxes(-1, -2).conj()


def cofactor(a: Array) -> Array:
    """det(u) det(v^H) conj(u) diag(products of all singular values but one) conj(v^H)"""
    u, s, vh = svd(a)
    others = [np.prod(np.delete(s, i)) for i in range(len(s))]
    return np.asarray(np.linalg.det(u) * np.linalg.det(vh) * (u * others @ vh).conj())


def polar(a: Array) -> Array:
    u, _, vh = svd(a)
    return np.asarray(u @ vh)


def pinv(a: Array, rtol: float | None) -> Array:
    least = max(a.shape[-2:]) * float(np.finfo(a.dtype).eps) if rtol is None else rtol
    return np.linalg.pinv(with_nan(a), rcond=least)


def lu(a: Array) -> tuple[Array, ...]:
    if not a.size:
        rows, columns = a.shape
        return np.arange(rows), np.zeros((rows, 0), a.dtype), np.zeros((0, columns), a.dtype)
    order, lower, upper = scipy.linalg.lu(a, p_indices=True, check_finite=False)
    return np.argsort(order), lower, upper


def solve_triangular(a: Array, b: Array, lower: bool, unit: bool) -> Array:
    return np.asarray(scipy.linalg.get_blas_funcs("trsm", (a, b))(1, a, b, lower=lower, diag=unit))


def solve_tridiagonal(lower: Array, diagonal: Array, upper: Array, b: Array) -> Array:
    bands = np.stack([np.roll(upper, 1), diagonal, np.roll(lower, -1)])
    return np.asarray(scipy.linalg.solve_banded((1, 1), bands, b))


def lu_factor(a: Array) -> tuple[Array, Array]:
    """Those of the transpose, transposed; also of a singular matrix."""
    factors, exchanges, _ = scipy.linalg.get_lapack_funcs("getrf", (a,))(a.T)
    return factors.T, exchanges


def lu_solve(packed: Array, exchanges: Array, b: Array, transposed: bool) -> Array:
    getrs = scipy.linalg.get_lapack_funcs("getrs", (packed, b))
    return np.asarray(getrs(packed.T, exchanges, b, trans=int(not transposed))[0])


def lu_slogdet(packed: Array, exchanges: Array) -> tuple[Array, Array]:
    """Every exchange of two columns turns the sign."""
    sign, log = np.linalg.slogdet(np.triu(packed))
    return sign * (-1) ** np.sum(exchanges != np.arange(len(packed))), log


def lu_det(packed: Array, exchanges: Array) -> Array:
    turns = np.sum(exchanges != np.arange(len(packed)))
    return np.asarray(np.prod(np.diagonal(packed)) * (-1) ** turns)


def logm(a: Array) -> Array:
    """Of a singular matrix, which has none, SciPy's iteration may not end."""
    sizes = np.abs(np.linalg.eigvals(a))
    if sizes.min() <= len(a) * np.finfo(a.dtype).eps * sizes.max():
        raise LinAlgError
    return np.asarray(scipy.linalg.logm(a))


def principal(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of SciPy's in double precision; of a real matrix nan where that is not real."""

    def run(a: Array) -> Array:
        found = function(a.astype(np.result_type(a, np.float64)))
        if a.dtype.kind == "c":
            return found
        near = np.abs(np.imag(found)).max() <= 1e3 * np.finfo(a.dtype).eps * np.abs(found).max()
        return np.real(found) if near else np.full_like(a, np.nan)

    return run


NUMPYS: dict[Op, Callable[..., Any]] = {
    linalg.cholesky: np.linalg.cholesky,
    linalg.cholesky_cotangent: cholesky_cotangent,
    linalg.inv: np.linalg.inv,
    linalg.solve: np.linalg.solve,
    linalg.det: np.linalg.det,
    linalg.slogdet: np.linalg.slogdet,
    linalg.qr: np.linalg.qr,
    linalg.qr_complete: lambda a: np.linalg.qr(a, "complete"),
    linalg.svd: svd,
    linalg.svd_full: lambda a: svd(a, full=True),
    linalg.svdvals: lambda a: np.linalg.svdvals(with_nan(a)),
    linalg.eigh: np.linalg.eigh,
    linalg.eigvalsh: np.linalg.eigvalsh,
    linalg.eig: np.linalg.eig,
    linalg.eigvals: np.linalg.eigvals,
    linalg.pinv: pinv,
    linalg.polar: polar,
}
"""Functions of batches."""

SCIPYS: dict[Op, Callable[..., Any]] = {
    linalg.cofactor: cofactor,
    linalg.lu: lu,
    linalg.solve_triangular: solve_triangular,
    linalg.solve_tridiagonal: solve_tridiagonal,
    linalg.lyapunov: scipy.linalg.solve_continuous_lyapunov,
    linalg.expm: scipy.linalg.expm,
    linalg.logm: principal(logm),
    linalg.sqrtm: principal(scipy.linalg.sqrtm),
    linalg.lu_factor: lu_factor,
    linalg.lu_solve: lu_solve,
    linalg.lu_det: lu_det,
    linalg.lu_slogdet: lu_slogdet,
}
"""Functions of one matrix."""

MATRICES = {op: of_batch(op, function) for op, function in (NUMPYS | SCIPYS).items()}
"""The function of each op."""
