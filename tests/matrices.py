"""What ops on matrices mean, one matrix at a time and in double precision: slow and plain.

From the definitions where these make a value, else by SciPy. What fails is nan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from graphcore.ir.op import Op
from graphcore.ops import linalg

Array = Any


def eliminated(a: Array, b: Array) -> Array:
    """x with a x = b, by Gauss and Jordan with row exchanges."""
    n = len(a)
    both = np.concatenate([a, b], axis=1)
    for j in range(n):
        pivot = j + int(np.argmax(np.abs(both[j:, j])))
        both[[j, pivot]] = both[[pivot, j]]
        both[j] = both[j] / both[j, j] if both[j, j] != 0 else np.nan
        for i in range(n):
            if i != j:
                both[i] = both[i] - both[i, j] * both[j]
    return both[:, n:]


def minor(a: Array, i: int, j: int) -> Array:
    return np.delete(np.delete(a, i, 0), j, 1)


def det(a: Array) -> Array:
    """Laplace's expansion of the first row."""
    if not len(a):
        return np.ones((), a.dtype)
    return sum(((-1) ** j * a[0, j] * det(minor(a, 0, j)) for j in range(len(a))), a.dtype.type(0))


def cofactor(a: Array) -> Array:
    found = np.zeros_like(a)
    for i, j in np.ndindex(a.shape):
        found[i, j] = (-1) ** (i + j) * det(minor(a, i, j))
    return found


def slogdet(a: Array) -> tuple[Array, Array]:
    value = det(a)
    return np.sign(value), np.log(np.abs(value))


def cholesky(a: Array, check: bool) -> Array:
    """Column by column."""
    l = np.zeros_like(a)  # noqa: E741
    for j in range(len(a)):
        rest = a[j, j].real - np.sum(np.abs(l[j, :j]) ** 2)
        l[j, j] = np.sqrt(rest) if rest > 0 else np.nan
        for i in range(j + 1, len(a)):
            l[i, j] = (a[i, j] - np.sum(l[i, :j] * l[j, :j].conj())) / l[j, j]
    return l if np.isfinite(l).all() else np.full_like(a, np.nan)


def solve_triangular(a: Array, b: Array, lower: bool, unit: bool, check: bool) -> Array:
    t = np.tril(a) if lower else np.triu(a)
    if unit:
        np.fill_diagonal(t, 1)
    return eliminated(t, b)


def solve_tridiagonal(lower: Array, diagonal: Array, upper: Array, b: Array) -> Array:
    a = np.diag(diagonal)
    for i in range(1, len(a)):
        a[i, i - 1], a[i - 1, i] = lower[i], upper[i - 1]
    return eliminated(a, b)


def lu(a: Array) -> tuple[Array, ...]:
    p, *factors = scipy.linalg.lu(a)
    return np.argmax(p, axis=0) if a.size else np.arange(len(a)), *factors


def lu_factor(a: Array) -> tuple[Array, Array]:
    """Row by row: the largest pivot is exchanged to its place."""
    a, exchanges = a.copy(), np.arange(len(a))
    for j in range(len(a)):
        exchanges[j] = pivot = j + int(np.argmax(np.abs(a[j:, j])))
        a[[j, pivot]] = a[[pivot, j]]
        for i in range(j + 1, len(a)):
            a[i, j] = a[i, j] / a[j, j] if a[j, j] != 0 else 0
            a[i, j + 1 :] = a[i, j + 1 :] - a[i, j] * a[j, j + 1 :]
    return a, exchanges


def multiplied(packed: Array, exchanges: Array) -> Array:
    """The matrix of which these are the factors."""
    a = (np.tril(packed, -1) + np.eye(len(packed))) @ np.triu(packed)
    for j in reversed(range(len(a))):
        a[[j, int(exchanges[j])]] = a[[int(exchanges[j]), j]]
    return a


def svd(a: Array, full: bool = False) -> tuple[Array, ...]:
    """By LAPACK's other routine."""
    if not a.size:
        m, n = a.shape
        k = 0 if not full else None
        eye = np.eye(m, dtype=a.dtype), np.eye(n, dtype=a.dtype)
        return eye[0][:, :k], np.zeros(0), eye[1][:k]
    return tuple(scipy.linalg.svd(a, full_matrices=full, lapack_driver="gesvd"))


def pinv(a: Array, rtol: float | None, dtype: Any = np.float64) -> Array:
    """Through the singular values that count."""
    u, s, vh = svd(a)
    least = max(a.shape) * np.finfo(dtype).eps if rtol is None else rtol
    counts = s > least * s.max(initial=0)
    return vh[counts].conj().T / s[counts] @ u[:, counts].conj().T


def lyapunov(h: Array, c: Array) -> Array:
    """By the matrix that maps x, written as a vector, to h x + x h."""
    one = np.eye(len(h))
    whole = np.kron(h, one) + np.kron(one, h.T)
    return eliminated(whole, c.reshape(-1, 1)).reshape(c.shape)


def expm(a: Array) -> Array:
    """The power series of a fraction, squared again and again."""
    halvings = max(0, int(np.ceil(np.log2(np.abs(a).sum() + 1e-300))) + 1)
    step = a / 2.0**halvings
    found = term = np.eye(len(a), dtype=a.dtype)
    for k in range(1, 20):
        term = term @ step / k
        found = found + term
    for _ in range(halvings):
        found = found @ found
    return found


def real_or_nan(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """A function of a matrix; of a real one it is nan where it is not real."""

    def run(a: Array) -> Array:
        if not a.size or not np.isfinite(a).all():
            return a * np.nan
        found = function(a)
        if a.dtype.kind == "c" or np.abs(np.imag(found)).max() < 1e-9:
            return found if a.dtype.kind == "c" else np.real(found)
        return np.full_like(a, np.nan)

    return run


def qr(mode: str) -> Callable[[Array], tuple[Array, ...]]:
    def run(a: Array) -> tuple[Array, ...]:
        if a.size:
            return tuple(scipy.linalg.qr(a, mode=mode))
        wide = len(a) if mode == "full" else 0
        return np.eye(len(a), wide, dtype=a.dtype), np.zeros((wide, a.shape[1]), a.dtype)

    return run


def unless_empty(function: Callable[[Array], Any], *shapes: str) -> Callable[[Array], Any]:
    """SciPy refuses empty matrices."""
    letters = {"n": (0,), "nn": (0, 0)}
    nothing = tuple(np.zeros(letters[shape]) for shape in shapes)
    return lambda a: function(a) if a.size else nothing if len(nothing) > 1 else nothing[0]


ONE: dict[Op, Callable[..., Any]] = {
    linalg.cholesky: cholesky,
    linalg.inv: lambda a, check: eliminated(a, np.eye(len(a), dtype=a.dtype)),
    linalg.solve: lambda a, b, check: eliminated(a, b),
    linalg.solve_triangular: solve_triangular,
    linalg.solve_tridiagonal: solve_tridiagonal,
    linalg.det: det,
    linalg.cofactor: cofactor,
    linalg.slogdet: slogdet,
    linalg.qr: qr("economic"),
    linalg.qr_complete: qr("full"),
    linalg.lu: lu,
    linalg.lu_factor: lu_factor,
    linalg.lu_solve: lambda packed, exchanges, b, transposed, check: eliminated(
        multiplied(packed, exchanges).T if transposed else multiplied(packed, exchanges), b
    ),
    linalg.lu_det: lambda *factors: det(multiplied(*factors)),
    linalg.lu_slogdet: lambda *factors: slogdet(multiplied(*factors)),
    linalg.svd: svd,
    linalg.svd_full: lambda a: svd(a, full=True),
    linalg.svdvals: lambda a: svd(a)[1],
    linalg.eigh: unless_empty(lambda a: scipy.linalg.eigh(a, driver="ev"), "n", "nn"),
    linalg.eigvalsh: unless_empty(lambda a: scipy.linalg.eigh(a, driver="ev")[0], "n"),
    linalg.eig: unless_empty(scipy.linalg.eig, "n", "nn"),
    linalg.eigvals: unless_empty(scipy.linalg.eigvals, "n"),
    linalg.pinv: pinv,
    linalg.polar: lambda a: scipy.linalg.polar(a)[0] if a.size else a,
    linalg.lyapunov: lyapunov,
    linalg.expm: expm,
    linalg.logm: real_or_nan(scipy.linalg.logm),
    linalg.sqrtm: real_or_nan(scipy.linalg.sqrtm),
}


def one(op: Op, xs: list[Array], attrs: dict[str, Any]) -> tuple[Array, ...]:
    """The results of an op for one matrix, each an array."""
    wide = [x if x.dtype.kind == "i" else x.astype(np.result_type(x, float)) for x in xs]
    more = {"dtype": xs[0].dtype} if op is linalg.pinv else {}
    made = ONE[op](*wide, **attrs, **more)
    return made if isinstance(made, tuple) else (made,)


def each(op: Op, xs: list[Array], attrs: dict[str, Any]) -> list[Array]:
    """The results of an op for a batch, in the dtypes they should have."""
    signature = linalg.SIGNATURES[op]
    sizes: dict[str, int] = {}
    for x, letters in zip(xs, signature.operands, strict=True):
        sizes |= zip(letters, x.shape[x.ndim - len(letters) :], strict=True)
    sizes["k"] = min(sizes.get("m", 0), sizes.get("n", 0))
    batch = xs[0].shape[: xs[0].ndim - len(signature.operands[0])]
    results = [
        np.full((*batch, *(sizes[letter] for letter in letters)), 0, kind(xs[0].dtype))
        for letters, kind in zip(signature.results, signature.kinds, strict=True)
    ]
    for at in np.ndindex(batch):
        for result, value in zip(results, one(op, [x[at] for x in xs], attrs), strict=True):
            result[at] = value
    return results
