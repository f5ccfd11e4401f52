"""How ops on matrices are computed: LAPACK, by NumPy where it takes a batch, else by SciPy.

If a batch fails, its matrices are taken one by one: with `check` one that fails is an error with
its index, else its result is nan. A matrix that is not finite gives nan.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.linalg import LinAlgError

Array = npt.NDArray[Any]
Results: TypeAlias = "Array | tuple[Array, ...]"

BY_ROWS = 8
"""Up to this size triangular systems of many matrices are solved row by row, all at once."""

NARROW, SYSTEMS_FOR_EACH = 32, 10
"""The most unknowns, and the fewest systems for each, to solve tridiagonal systems at once.

Larger ones stay in the cache only one by one.
"""

SOLVED_AT_ONCE = 2**16
"""The number of values of their solutions that are then computed at a time."""


@cache
def scipy_linalg() -> Any:
    """`scipy.linalg`, imported at its first call: the import takes longer than a compilation."""
    import scipy.linalg

    return scipy.linalg


class MatrixError(ValueError):
    """A matrix without a result: the reason, and its index in the batch."""

    def __init__(self, reason: str, element: tuple[int, ...]) -> None:
        super().__init__(reason, element)
        self.reason, self.element = reason, element

    def __str__(self) -> str:
        return self.reason


def each(
    function: Callable[..., Results], ranks: tuple[int, ...], reason: str, *xs: Array, check: bool
) -> Results:
    """`function` of one matrix after the other; some may fail for `reason`.

    `ranks` are the numbers of axes of each operand that are not batch. There is at least one
    matrix.
    """
    batch = xs[0].shape[: xs[0].ndim - ranks[0]]
    found = [
        one(function, reason, at, *[x[at] for x in xs], check=check) for at in np.ndindex(batch)
    ]
    good = next((y for y in found if y is not None), None)
    if good is None:
        good = like(function, *[x[(0,) * len(batch)] for x in xs])
    several = isinstance(good, tuple)
    parts = good if isinstance(good, tuple) else (good,)
    made = []
    for i, part in enumerate(parts):
        values = [part * np.nan if y is None else y[i] if several else y for y in found]
        made.append(np.stack(values).reshape(*batch, *part.shape))
    return tuple(made) if several else made[0]


def like(function: Callable[..., Results], *xs: Array) -> Results:
    """A result of the right shapes: the result for unit matrices and for vectors of ones."""
    return function(
        *[np.eye(*x.shape, dtype=x.dtype) if x.ndim > 1 else np.ones_like(x) for x in xs]
    )


def one(
    function: Callable[..., Results], reason: str, at: tuple[int, ...], *xs: Array, check: bool
) -> Results | None:
    """The result for the matrix at an index of the batch; None stands for nan."""
    try:
        return function(*xs)
    except (LinAlgError, ValueError) as error:
        if not all(np.isfinite(x).all() for x in xs) or not check:
            return None
        raise MatrixError(reason, at) from error


def over_batch(
    function: Callable[..., Results], reason: str, *ranks: int
) -> Callable[..., Results]:
    """`function`, which takes a batch; where it fails, it gets one matrix after the other."""

    def run(*xs: Array, check: bool = True) -> Results:
        try:
            return function(*xs)
        except LinAlgError:
            return each(function, ranks, reason, *xs, check=check)

    return run


SINGULAR = "the matrix is singular"
ENDLESS = "the iteration does not converge"

cholesky = over_batch(np.linalg.cholesky, "the matrix is not positive definite", 2)
inv = over_batch(np.linalg.inv, SINGULAR, 2)
solve = over_batch(np.linalg.solve, SINGULAR, 2, 2)
eigh = over_batch(np.linalg.eigh, ENDLESS, 2)
eigvalsh = over_batch(np.linalg.eigvalsh, ENDLESS, 2)
svdvals = over_batch(lambda a: np.linalg.svdvals(without_infinities(a)), ENDLESS, 2)


def without_infinities(a: Array) -> Array:
    """`a` with nan in place of infinities, for which LAPACK's gesdd may not end."""
    finite = np.isfinite(a)
    return a if finite.all() else np.where(finite, a, np.nan)


def eig(a: Array) -> Results:
    """Complex, also where all eigenvalues are real."""
    w, v = over_batch(np.linalg.eig, ENDLESS, 2)(a)
    dtype = np.result_type(a.dtype, np.complex64)
    return w.astype(dtype, copy=False), v.astype(dtype, copy=False)


def eigvals(a: Array) -> Array:
    """Complex, also where all eigenvalues are real."""
    w = over_batch(np.linalg.eigvals, ENDLESS, 2)(a)
    assert isinstance(w, np.ndarray)
    return w.astype(np.result_type(a.dtype, np.complex64), copy=False)


def svd(a: Array) -> Results:
    """u, s and v^H, as many columns as there are values."""
    return over_batch(
        lambda a: tuple(np.linalg.svd(without_infinities(a), full_matrices=False)), ENDLESS, 2
    )(a)


def svd_full(a: Array) -> Results:
    """u, s and v^H, u and v square."""
    return over_batch(
        lambda a: tuple(np.linalg.svd(without_infinities(a), full_matrices=True)), ENDLESS, 2
    )(a)


def polar(a: Array) -> Array:
    """u v^H of the singular value decomposition."""
    u, _, vh = svd(a)
    return np.asarray(u @ vh)


def lyapunov(h: Array, c: Array) -> Array:
    """By the eigenvectors of h: in their basis c is divided by the sums of two eigenvalues."""
    w, v = eigh(h)
    back = np.swapaxes(v.conj(), -1, -2)
    return np.asarray(v @ ((back @ c @ v) / (w[..., :, None] + w[..., None, :])) @ back)


def qr(a: Array) -> Results:
    """q and r, as many columns as a has rows or columns, whichever are fewer."""
    return tuple(np.linalg.qr(a, "reduced"))


def qr_complete(a: Array) -> Results:
    """q, square, and r."""
    return tuple(np.linalg.qr(a, "complete"))


def lu(a: Array) -> Results:
    """The order of rows, l and u."""
    if not a.size:
        m, n = a.shape[-2:]
        k, batch = min(m, n), a.shape[:-2]
        order = np.broadcast_to(np.arange(m), (*batch, m))
        eye = np.eye(m, k, dtype=a.dtype)
        return order, np.broadcast_to(eye, (*batch, m, k)), np.zeros((*batch, k, n), a.dtype)
    order, *factors = scipy_linalg().lu(a, p_indices=True, check_finite=False)
    return np.argsort(order, -1).astype(np.int64, copy=False), *factors


def slogdet(a: Array) -> Results:
    """The sign and the logarithm."""
    sign, log = np.linalg.slogdet(a)
    return np.asarray(sign), np.asarray(log)


def det(a: Array) -> Array:
    return np.asarray(np.linalg.det(a))


def cofactor(a: Array) -> Array:
    """det(u) det(v^H) conj(u) diag(products of all singular values but one) conj(v^H)"""
    u, s, vh = svd(a)
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s], -1), -1)[..., :-1]
    after = np.cumprod(np.concatenate([ones, s[..., ::-1]], -1), -1)[..., -2::-1]
    volume = np.linalg.det(u) * np.linalg.det(vh)
    return np.asarray(volume[..., None, None] * ((u * (before * after)[..., None, :]) @ vh).conj())


def solve_triangular(a: Array, b: Array, *, lower: bool, unit: bool, check: bool) -> Array:
    """x with t x = b, for one triangle t of a; inf or nan where it is singular."""
    if not b.size or not a.size:
        return np.zeros_like(b)
    n = a.shape[-1]
    if check and not unit:
        on = np.diagonal(a, axis1=-2, axis2=-1)
        if not on.all():
            raise MatrixError(SINGULAR, tuple(map(int, np.argwhere(on == 0)[0][:-1])))
    if n <= BY_ROWS and a.size >= 2 * n**3:
        return row_by_row(a, b, lower, unit)
    found = np.array(b, order="C")
    for matrix, right in zip(a.reshape(-1, n, n), found.reshape(-1, *b.shape[-2:]), strict=True):
        solve_in_place(matrix, right, lower, unit)
    return found


def cholesky_cotangent(lower: Array, g: Array) -> Array:
    """The lower triangle of l⁻ᴴ (p + pᴴ) l⁻¹ for p = lᴴ g, each time with half the diagonal."""
    back, n = adjoint(np.tril(lower)), lower.shape[-1]
    half = 0.5 * (np.tri(n, dtype=lower.real.dtype) + np.tri(n, k=-1, dtype=lower.real.dtype))
    p = np.tril(back @ np.tril(g)) * half
    x = p + adjoint(p)
    for _ in range(2):
        x = adjoint(solve_triangular(back, x, lower=False, unit=False, check=False))
    return np.asarray(np.tril(x + adjoint(x)) * (0.5 * half))


def adjoint(x: Array) -> Array:
    """Transposed and conjugated."""
    return np.swapaxes(x.conj(), -1, -2)


def row_by_row(a: Array, b: Array, lower: bool, unit: bool) -> Array:
    """One row of all solutions after the other: x[i] = (b[i] - Σ a[i,j] x[j]) / a[i,i]"""
    found, n = np.empty(b.shape, b.dtype), a.shape[-1]
    for i in range(n) if lower else reversed(range(n)):
        known = slice(i) if lower else slice(i + 1, n)
        row, rest = found[..., i, :], b[..., i, :]
        if i != (0 if lower else n - 1):
            rest = rest - (a[..., i : i + 1, known] @ found[..., known, :])[..., 0, :]
        np.divide(rest, 1 if unit else a[..., i, i, None], out=row)
    return found


def solve_in_place(a: Array, b: Array, lower: bool, unit: bool) -> None:
    """The solution of one system in place of its right-hand side, which is row-major.

    BLAS reads columns first, so that a row-major matrix is its transpose: xᵀ tᵀ = bᵀ is solved.
    """
    trsm = trsm_for(a.dtype.char)
    if a.flags.c_contiguous:
        trsm(1, a.T, b.T, side=1, lower=not lower, diag=unit, overwrite_b=True)
    else:
        trsm(1, a, b.T, side=1, lower=lower, trans_a=1, diag=unit, overwrite_b=True)


@cache
def trsm_for(char: str) -> Callable[..., Array]:
    """BLAS's solution of triangular systems in a dtype."""
    trsm: Callable[..., Array] = scipy_linalg().get_blas_funcs("trsm", dtype=char)
    return trsm


def solve_tridiagonal(lower: Array, diagonal: Array, upper: Array, b: Array) -> Array:
    """x by elimination with row exchanges.

    Where systems are few they are solved one after the other (LAPACK's gtsv), else many at once.
    """
    if not b.size:
        return np.zeros_like(b)
    found = np.empty(b.shape, b.dtype)
    *batch, n, columns = b.shape
    systems = [x.reshape(-1, n) for x in (lower, diagonal, upper)]
    rows, right = found.reshape(-1, n, columns), b.reshape(-1, n, columns)
    if n == 1 or (n <= NARROW and len(rows) >= SYSTEMS_FOR_EACH * n):
        step = max(SOLVED_AT_ONCE // (n * columns), 1)
        runs = [slice(at, at + step) for at in range(0, len(rows), step)]
        failed = [eliminate(*[x[run] for x in (*systems, right, rows)]) for run in runs]
        singular = [run.start + at for run, at in zip(runs, failed, strict=True) if at is not None]
    else:
        (gtsv,) = scipy_linalg().get_lapack_funcs(("gtsv",), (diagonal, b))
        infos = []
        for low, d, up, c, row in zip(*systems, right, rows, strict=True):
            *_, row[:], info = gtsv(low[1:], d, up[:-1], c)
            infos.append(info)
        singular = np.flatnonzero(infos).tolist()
    if singular:
        raise MatrixError(SINGULAR, tuple(map(int, np.unravel_index(singular[0], batch))))
    return found


def eliminate(lower: Array, diagonal: Array, upper: Array, b: Array, out: Array) -> int | None:
    """Many systems at once, one row of all of them after the other, as gtsv does for one.

    Exchanges of rows put elements two places right of the diagonal: `beyond` holds them. Returns
    which system is singular, if one is.
    """
    low, d, up = (np.array(x.T, order="C") for x in (lower, diagonal, upper))
    x = np.array(b.transpose(1, 2, 0), order="C")
    beyond: Array | None = None
    last = len(d) - 1
    for i in range(last):
        exchanged = ~(np.abs(d[i]) >= np.abs(low[i + 1]))
        if exchanged.any():
            beyond = np.zeros_like(up) if beyond is None else beyond
            for one, two in ((d[i], low[i + 1]), (up[i], d[i + 1]), (beyond[i], up[i + 1])):
                exchange(exchanged, one, two)
            exchange(exchanged, x[i], x[i + 1])
        factor = low[i + 1] / d[i]
        d[i + 1] -= factor * up[i]
        x[i + 1] -= factor * x[i]
        if beyond is not None:
            up[i + 1] -= factor * beyond[i]
    if not d.all():
        return int(np.argmin(d.all(0)))
    for i in reversed(range(last + 1)):
        if i < last:
            x[i] -= up[i] * x[i + 1]
        if i < last - 1 and beyond is not None:
            x[i] -= beyond[i] * x[i + 2]
        x[i] /= d[i]
    out[:] = x.transpose(2, 0, 1)
    return None


def exchange(where: Array, one: Array, two: Array) -> None:
    """Exchange the values of two arrays where a mask holds."""
    before = one.copy()
    np.copyto(one, two, where=where)
    np.copyto(two, before, where=where)


def pinv(a: Array, *, rtol: float | None) -> Array:
    """The pseudo-inverse; by default singular values within rounding of zero count as zero."""
    if rtol is None:
        rtol = max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
    run = over_batch(lambda a: np.linalg.pinv(without_infinities(a), rcond=rtol), ENDLESS, 2)
    return np.asarray(run(a))


def function(of: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of one matrix for a batch, in double precision.

    nan where the function has no value, or no real value for a real matrix.
    """

    def run(a: Array) -> Array:
        found = np.empty_like(a)
        wide = a.astype(np.result_type(a.dtype, np.float64), copy=False)
        for at in np.ndindex(a.shape[:-2]):
            found[at] = real_or_nan(of(wide[at]), a.dtype) if np.isfinite(a[at]).all() else np.nan
        return found

    return run


def real_or_nan(x: Array, dtype: np.dtype[Any]) -> Array:
    """`x` for `dtype`; nan if that is real and `x` is not, but for rounding."""
    if dtype.kind == "c" or x.dtype.kind != "c":
        return x
    eps = 1000 * np.finfo(dtype).eps
    is_real = np.abs(x.imag).max(initial=0) <= eps * np.abs(x.real).max(initial=1)
    return np.asarray(x.real if is_real else np.full_like(x.real, np.nan))


def quietly(of: Callable[[Array], Array], a: Array) -> Array:
    """SciPy's function without its warnings, which say less than a nan."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(of(a))


def logm_of(a: Array) -> Array:
    """nan for singular matrices, which have no logarithm."""
    sizes = np.abs(np.linalg.eigvals(a))
    lost = sizes.min(initial=1) <= len(a) * np.finfo(a.dtype).eps * sizes.max(initial=0)
    return a * np.nan if lost else quietly(scipy_linalg().logm, a)


def sqrtm_of(a: Array) -> Array:
    """nan for matrices without a square root: some singular ones."""
    root = quietly(scipy_linalg().sqrtm, a)
    with np.errstate(all="ignore"):
        error = np.abs(root @ root - a).max(initial=0)
    return root if error <= 1e-6 * np.abs(a).max(initial=0) else a * np.nan


logm = function(lambda a: logm_of(a) if a.size else a)
sqrtm = function(lambda a: sqrtm_of(a) if a.size else a)


def lu_factor(a: Array) -> Results:
    """LU factors of the transpose, transposed, and which column each was exchanged with."""
    packed, exchanges = np.empty(a.shape, a.dtype), np.empty(a.shape[:-1], np.int64)
    (getrf,) = scipy_linalg().get_lapack_funcs(("getrf",), (a,))
    for at in np.ndindex(a.shape[:-2]):
        if a.size:
            columns, exchanges[at], _ = getrf(a[at].T)
            packed[at] = columns.T
    return packed, exchanges


def lu_solve(packed: Array, exchanges: Array, b: Array, *, transposed: bool, check: bool) -> Array:
    """x with a x = b, or aᵀ x = b."""
    found, batch, getrs = np.empty_like(b), b.shape[:-2], getrs_for(packed.dtype.char)
    for at in (np.ndindex(batch) if batch else ((),)) if b.size else ():
        factors = packed[at]
        if factors.diagonal().all():
            found[at], _ = getrs(factors.T, exchanges[at], b[at], trans=not transposed)
        elif check and np.isfinite(factors).all() and np.isfinite(b[at]).all():
            raise MatrixError(SINGULAR, at)
        else:
            found[at] = np.nan
    return found


@cache
def getrs_for(char: str) -> Callable[..., Any]:
    """LAPACK's solution by LU factors in a dtype."""
    getrs: Callable[..., Any] = scipy_linalg().get_lapack_funcs("getrs", dtype=char)
    return getrs


def lu_det(packed: Array, exchanges: Array) -> Array:
    """The product of the pivots, signed by the exchanges."""
    return np.asarray(parity(exchanges) * np.diagonal(packed, axis1=-2, axis2=-1).prod(-1))


def lu_slogdet(packed: Array, exchanges: Array) -> Results:
    """The sign of the determinant, and the logarithm of its absolute value."""
    pivots = np.diagonal(packed, axis1=-2, axis2=-1)
    sizes = np.abs(pivots)
    if pivots.dtype.kind == "c":
        units = pivots / np.where(sizes == 0, 1, sizes)
    else:  # those of infinities and nan as in NumPy
        units = np.where(pivots < 0, -1, sizes != 0).astype(pivots.dtype)
    return np.asarray(parity(exchanges) * units.prod(-1)), np.asarray(np.log(sizes).sum(-1))


def parity(exchanges: Array) -> Array:
    """1 for an even number of exchanges, -1 for an odd one: integers that widen no float."""
    moved = exchanges != np.arange(exchanges.shape[-1])
    return np.asarray(1 - 2 * (moved.sum(-1) % 2)).astype(np.int8)
