"""What ops mean: those on matrices by their equations, special functions by more digits."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from graphcore.ir.op import Op
from graphcore.ops import linalg, special
from graphcore.ops.elementwise import UFUNC
from graphcore.ops.meaning import MEANING
from tests.ops.tables import INTERNAL, arity
from tests.slopes import meaning as exact

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
Array = Any


def adjoint(a: Array) -> Array:
    return a.conj().swapaxes(-1, -2)


def equal(*pairs: tuple[Array, Array]) -> None:
    for found, wanted in pairs:
        np.testing.assert_allclose(found, np.broadcast_to(wanted, found.shape), 1e-9, 1e-9)


def orthonormal(*us: Array) -> None:
    equal(*[(adjoint(u) @ u, np.eye(u.shape[-1])) for u in us])


def triangular(x: Array, of: Callable[[Array], Array]) -> Array:
    assert (of(x) == x).all()
    return x


def qr(a: Array, q: Array, r: Array) -> None:
    orthonormal(q)
    equal((q @ triangular(r, np.triu), a))


def lu(a: Array, order: Array, lower: Array, upper: Array) -> None:
    """The largest element of a column is its pivot; LAPACK adds up both parts of complex ones."""
    found = triangular(lower, np.tril) @ triangular(upper, np.triu)
    equal((found, np.take_along_axis(a, order[..., None], -2)), (np.diagonal(lower, 0, -2, -1), 1))
    assert np.abs(lower).max() <= 2**0.5


def svd(a: Array, u: Array, s: Array, vh: Array) -> None:
    orthonormal(u, adjoint(vh))
    k = s.shape[-1]
    equal((u[..., :k] * s[..., None, :] @ vh[..., :k, :], a))
    assert (np.diff(s, append=0) <= 0).all()


def eigen(a: Array, w: Array, v: Array) -> None:
    equal((a @ v, v * w[..., None, :]), (np.linalg.norm(v, axis=-2), 1))


def rising(a: Array, w: Array) -> None:
    """Sums of powers of eigenvalues are traces of powers of the matrix."""
    for power in (1, 2, 3):
        whole = np.trace(np.linalg.matrix_power(a, power), axis1=-2, axis2=-1)
        equal(((w**power).sum(-1), whole))
    assert w.dtype.kind == "c" or (np.diff(w) >= 0).all()


def pinv(a: Array, x: Array) -> None:
    """The conditions of Penrose."""
    equal((a @ x @ a, a), (x @ a @ x, x), (adjoint(a @ x), a @ x), (adjoint(x @ a), x @ a))


def polar(a: Array, p: Array) -> None:
    orthonormal(p)
    equal((adjoint(p) @ a, adjoint(adjoint(p) @ a)))
    assert (np.linalg.eigvalsh(adjoint(p) @ a) > 0).all()


def series(a: Array) -> Array:
    """The exponential."""
    return sum(np.linalg.matrix_power(a, k) / float(mp.factorial(k)) for k in range(60))


def volume(a: Array) -> Array:
    """The determinant, by Laplace's expansion of the first row."""
    n = a.shape[-1]
    rest = [np.delete(a[..., 1:, :], j, -1) for j in range(n)]
    terms = [(-1) ** j * a[..., 0, j] * volume(rest[j]) for j in range(n)]
    return sum(terms) if n else np.ones(a.shape[:-2])


def pulled_back(lower: Array, g: Array, x: Array) -> None:
    """Re⟨g, dl⟩ = Re⟨x, da⟩ for the change dl of the factor that belongs to one of a."""
    lower, half = np.tril(lower), np.tri(3) - 0.5 * np.eye(3)
    inverse, moved = np.linalg.inv(lower), np.tril(g) * half
    da = moved + adjoint(moved)
    dl = lower @ (inverse @ da @ adjoint(inverse) * half)
    pairs = [np.real(a.conj() * b).sum((-2, -1)) for a, b in ((np.tril(g), dl), (x, da))]
    equal((pairs[0], pairs[1]), (x, np.tril(x)))


def tridiagonal(lower: Array, diagonal: Array, upper: Array, b: Array, x: Array) -> None:
    """The product row by row; elements outside of the matrix count as 0."""
    full = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    parts = zip((lower, diagonal, upper), (full[:, :-2], full[:, 1:-1], full[:, 2:]))
    equal((sum(c[..., None] * y for c, y in parts), b))


def factored(a: Array, packed: Array, exchanges: Array) -> None:
    """The factors are those of the transpose, transposed."""
    a, packed, n = a.swapaxes(-1, -2).copy(), packed.swapaxes(-1, -2), a.shape[-1]
    for at in np.ndindex(exchanges.shape):
        i, j = at[-1], exchanges[at]
        a[at[:-1]][[i, j]] = a[at[:-1]][[j, i]]
    equal(((np.tril(packed, -1) + np.eye(n)) @ np.triu(packed), a))


EQUATIONS: dict[Op, Callable[..., None]] = {
    linalg.cholesky: lambda a, x: equal((triangular(x, np.tril) @ adjoint(x), a)),
    linalg.cholesky_cotangent: pulled_back,
    linalg.inv: lambda a, x: equal((a @ x, np.eye(a.shape[-1]))),
    linalg.solve: lambda a, b, x: equal((a @ x, b)),
    linalg.solve_triangular: lambda a, b, x: equal((np.tril(a) @ x, b)),
    linalg.solve_tridiagonal: tridiagonal,
    linalg.det: lambda a, x: equal((x, volume(a))),
    linalg.cofactor: lambda a, x: equal(
        (a @ x.swapaxes(-1, -2), volume(a)[..., None, None] * np.eye(a.shape[-1]))
    ),
    linalg.slogdet: lambda a, sign, log: equal((sign * np.exp(log), volume(a)), (abs(sign), 1)),
    linalg.qr: qr,
    linalg.qr_complete: qr,
    linalg.lu: lu,
    linalg.svd: svd,
    linalg.svd_full: svd,
    linalg.svdvals: lambda a, s: rising(adjoint(a) @ a, s[..., ::-1] ** 2),
    linalg.eigh: lambda a, w, v: (eigen(a, w, v), rising(a, w)),
    linalg.eigvalsh: rising,
    linalg.eig: lambda a, w, v: (eigen(a, w, v), rising(a, w)),
    linalg.eigvals: rising,
    linalg.pinv: pinv,
    linalg.polar: polar,
    linalg.lyapunov: lambda h, c, x: equal((h @ x + x @ h, c)),
    linalg.expm: lambda a, x: equal((x, series(a))),
    linalg.logm: lambda a, x: equal((series(x), a)),
    linalg.sqrtm: lambda a, x: equal((x @ x, a)),
    linalg.lu_factor: factored,
    linalg.lu_solve: lambda a, b, x: equal((a @ x, b)),
    linalg.lu_det: lambda a, x: equal((x, volume(a))),
    linalg.lu_slogdet: lambda a, sign, log: equal((sign * np.exp(log), volume(a))),
}
DEFINITE = {
    *(linalg.cholesky, linalg.eigh, linalg.eigvalsh, linalg.lyapunov, linalg.logm, linalg.sqrtm),
}
ATTRS: dict[Op, dict[str, Any]] = {
    linalg.solve_triangular: {"lower": True, "unit": False},
    linalg.lu_solve: {"transposed": False},
    linalg.pinv: {"rtol": None},
}


def operands(op: Op, dtype: str, m: int) -> list[Array]:
    random, sizes = np.random.default_rng(0), {"m": m, "n": 3, "c": 2}
    signature = linalg.SIGNATURES[linalg.solve if op is linalg.lu_solve else op]
    letters = [linalg.SIGNATURES[linalg.det].operands[0]] if op in FACTORS else signature.operands
    shapes = [(4, *[sizes[letter] for letter in some]) for some in letters]
    xs = [random.normal(size=shape).astype(dtype) for shape in shapes]
    xs = [x * np.exp(1j * random.normal(size=x.shape)) if dtype[0] == "c" else x for x in xs]
    if op in DEFINITE:
        xs[0] = xs[0] @ adjoint(xs[0]) + np.eye(3)
    return xs


FACTORS = (linalg.lu_det, linalg.lu_slogdet)


def results(op: Op, xs: list[Array]) -> tuple[Array, ...]:
    """What an op makes of matrices, or of their factors."""
    if op in (*FACTORS, linalg.lu_solve):
        xs = [*MEANING[linalg.lu_factor](xs[0]), *xs[1:]]
    found = MEANING[op](*xs, **ATTRS.get(op, {}))
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("op", linalg.SIGNATURES, ids=lambda op: op.name)
def test_equations_of_matrices_hold(op: Op, dtype: str) -> None:
    wide = "m" in str(linalg.SIGNATURES[op].operands)
    for m in (3, 5, 2) if wide and op is not linalg.polar else (5,) if wide else (3,):
        xs = operands(op, dtype, m)
        EQUATIONS[op](*xs, *results(op, xs))


@pytest.mark.parametrize(("lower", "unit"), [*itertools.product([False, True], repeat=2)])
def test_one_triangle_is_read(lower: bool, unit: bool) -> None:
    a, b = operands(linalg.solve, "float64", 3)
    t = np.tril(a) if lower else np.triu(a)
    t = t + (1 - t) * np.eye(3) if unit else t
    equal((t @ MEANING[linalg.solve_triangular](a, b, lower=lower, unit=unit), b))


def test_factors_solve_the_transposed_system() -> None:
    a, b = operands(linalg.solve, "complex128", 3)
    x = MEANING[linalg.lu_solve](*MEANING[linalg.lu_factor](a), b, transposed=True)
    equal((a.swapaxes(-1, -2) @ x, b))


@pytest.mark.parametrize(
    ("op", "dtype", "bad"),
    [
        *((op, "float64", 0) for op in (linalg.cholesky, linalg.inv, linalg.solve)),
        *((op, "complex128", 0) for op in (linalg.cholesky, linalg.inv, linalg.solve)),
        *((op, "float64", np.nan) for op in EQUATIONS),
        (linalg.logm, "float64", -1),
        (linalg.logm, "float64", 0),
        (linalg.sqrtm, "float64", -1),
    ],
    ids=str,
)
def test_a_matrix_without_a_result_has_nan_alone(op: Op, dtype: str, bad: float) -> None:
    xs = operands(op, dtype, 5)
    xs[0][1] *= bad
    found, alone = results(op, xs), results(op, [np.delete(x, 1, 0) for x in xs])
    for y, others in zip(found, alone, strict=True):
        np.testing.assert_array_equal(np.delete(y, 1, 0), others)
    assert not all(np.isfinite(y[1]).all() for y in found)


@pytest.mark.parametrize("op", EQUATIONS, ids=str)
@pytest.mark.parametrize("empty", ["batch", "n"])
def test_matrices_may_be_empty(op: Op, empty: str) -> None:
    xs = operands(op, "float64", 5)
    sizes = {4: 0} if empty == "batch" else {3: 0}
    xs = [np.zeros([sizes.get(size, size) for size in x.shape]) for x in xs]
    for y in results(op, xs):
        assert np.isfinite(y).all()


def test_rows_without_columns_keep_their_order() -> None:
    order, lower, upper = results(linalg.lu, [np.zeros((2, 3, 0))])
    np.testing.assert_array_equal(order, [[0, 1, 2]] * 2)
    assert (lower.shape, upper.shape) == ((2, 3, 0), (2, 0, 0))


def test_what_scipy_warns_of_is_no_failure() -> None:
    """Two eigenvalues add up to 0, so that there is no solution."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x,) = results(linalg.lyapunov, [np.diag([1.0, -1.0, 0.0]), np.eye(3)])
    assert x.shape == (3, 3)


@pytest.mark.parametrize("name", sorted(exact.MEANING.keys() & {op.name for op in UFUNC}))
def test_functions_have_the_digits_they_should(name: str) -> None:
    (op,) = [op for op in UFUNC if op.name == name]
    for xs in itertools.product([0.3, 0.7, 1.0, 2.5], repeat=arity(op)):
        if name in ("betainc", "betaincc") and xs[-1] > 1:
            continue
        with mp.workdps(30), suppress(ValueError, ZeroDivisionError, TypeError):
            wanted = float(exact.MEANING[name](*map(mp.mpf, xs)))
            found = MEANING[op](*[np.full(1, x) for x in xs])
            np.testing.assert_allclose(found, wanted, 1e-11, 1e-13, err_msg=str(xs))


def by_parameters(function: Callable[..., Any], orders: tuple[int, ...], *at: float) -> float:
    """A derivative by the first operands, the last one being fixed."""
    with mp.workdps(40):
        *parameters, x = map(mp.mpf, at)
        return float(mp.diff(lambda *p: function(*p, x), tuple(parameters), orders))


def beta_term(a: Any, b: Any, x: Any) -> Any:
    return x ** (a - 2) * (1 - x) ** b * mp.gamma(a + b) / mp.gamma(a - 1) / mp.gamma(b + 1)


DERIVATIVES: dict[Op, tuple[Callable[..., Any], int, tuple[int, ...]]] = {
    special.gamma_density: (exact.gamma_density, 1, ()),
    special.gammainc_by: (exact.gammainc, 1, ()),
    special.digamma_step: (lambda z, m: mp.digamma(z + m) - mp.digamma(z), 1, ()),
    special.beta_density: (beta_term, 2, (1, -1)),
    special.betainc_by: (exact.betainc, 2, ()),
}
"""A function, how many of its operands it is differentiated by, and shifts of these."""


@pytest.mark.parametrize("op", DERIVATIVES, ids=str)
def test_derivatives_by_parameters(op: Op) -> None:
    function, count, shifts = DERIVATIVES[op]
    least = function in (exact.gammainc, exact.betainc)  # of order 0 they are ops of their own
    for orders in [*itertools.product(range(3), repeat=count)][least:]:
        for at in itertools.product([0.4, 2.5], [0.3, 6.0][:count], [0.2, 0.7]):
            at = (*at[:count], at[-1])
            wanted = by_parameters(function, orders, *at)
            (found,) = MEANING[op](*[np.full(1, float(x)) for x in (*orders, *shifts, *at)])
            assert found == pytest.approx(wanted, 1e-9, 1e-12), (orders, at)


SLOPES: dict[Op, Callable[..., Any]] = {
    special.sigmoid_slope: lambda x, y: mp.diff(exact.sigmoid, x),
    special.tanh_slope: lambda x, y: mp.diff(mp.tanh, x),
    special.arctan_slope: lambda x: mp.diff(mp.atan, x),
    special.cosine: lambda x, y: mp.diff(mp.hypot, (x, y), (1, 0)),
    special.inversion: lambda x, y: mp.diff(lambda x: mp.log(mp.hypot(x, y)), x),
    special.inversion_slope: lambda x, y: mp.diff(lambda x: x / (x * x + y * y), x),
    special.square_complement: lambda x: 1 - x * x,
    special.pseudo_huber_by_delta: lambda d, r: mp.diff(exact.pseudo_huber, (d, r), (1, 0)),
    special.pseudo_huber_by_r: lambda d, r: mp.diff(exact.pseudo_huber, (d, r), (0, 1)),
}


def test_all_that_derivatives_alone_use_is_here() -> None:
    assert DERIVATIVES.keys() | SLOPES.keys() == INTERNAL


@pytest.mark.parametrize("op", SLOPES, ids=str)
def test_slopes(op: Op) -> None:
    for x, y in itertools.product([-2.5, -0.3, 0.7, 12.0], [0.4, 3.0]):
        at = {special.sigmoid_slope: (x, 0), special.tanh_slope: (x, 0)}.get(op, (y, x))[
            : arity(op)
        ]
        with mp.workdps(40):
            wanted = float(SLOPES[op](*map(mp.mpf, at)))
        (found,) = MEANING[op](*[np.full(1, float(v)) for v in at])
        assert found == pytest.approx(wanted, 1e-11), at
