"""Linear algebra where derivatives go wrong: singular, degenerate and zero matrices, triangles that
are not read, vectors that belong to no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import graphcore as gc
from graphcore import linalg as L

PQ = ("p", "q")
STEP = 2e-3
Function = Callable[[gc.Tensor], gc.Tensor]
Reference = Callable[[np.ndarray], Any]


def weighed(y: gc.Tensor) -> gc.Tensor:
    """The sum of all values, each times another number."""
    shape = tuple(y.sizes[dim] for dim in y.dims)
    weights = 1 + np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return (y * gc.constant(np.sin(weights), y.dims)).sum()


def weighed_of(y: Any) -> float:
    y = np.asarray(y)
    return float(np.sum(y * np.sin(1 + np.arange(y.size)).reshape(y.shape)))


def derivatives(f: Function, a: np.ndarray) -> dict[str, np.ndarray]:
    """The value, and first and second derivatives by all elements in every nesting of modes."""
    x, v = (gc.tensor(name, dict(zip(PQ, a.shape, strict=True))) for name in "xv")
    y = weighed(f(x))
    back, forth = gc.grad(y, x), gc.pushforward(y, x, v)
    along = (back * v).sum()
    zero: dict[str, Any] = {"disconnected": "zero"}
    outputs = {
        "value": y,
        "reverse": back,
        "forward": forth,
        "forward of reverse": gc.pushforward(back, x, v, **zero),
        "reverse of reverse": gc.grad(along, x, **zero),
        "reverse of forward": gc.grad(forth, x, **zero),
    }
    compiled = gc.compile([x, v], outputs)
    rows = [compiled(a, direction.reshape(a.shape)) for direction in np.eye(a.size)]
    found = {name: np.array([row[name] for row in rows]) for name in list(outputs)[2:]}
    return {name: rows[0][name] for name in ("value", "reverse")} | found


def slopes(f: Reference, a: np.ndarray) -> np.ndarray:
    """The derivative by each element, by differences of fourth order."""
    found = []
    for direction in np.eye(a.size):
        d = STEP * direction.reshape(a.shape)
        found.append((8 * (f(a + d) - f(a - d)) - (f(a + 2 * d) - f(a - 2 * d))) / (12 * STEP))
    return np.array(found).reshape(*a.shape, *np.shape(found[0]))


def check(f: Function, theirs: Reference, a: Any) -> None:
    """Value, both modes and all second orders are those of a reference that is smooth there."""
    a = np.array(a, float)
    found = derivatives(f, a)

    def total(a: np.ndarray) -> float:
        return weighed_of(theirs(a))

    first = slopes(total, a)
    second = slopes(lambda a: slopes(total, a), a).reshape(a.size, *a.shape)
    np.testing.assert_allclose(found["value"], total(a), rtol=1e-12, atol=1e-12)
    for name, wanted in (("reverse", first), ("forward", first.ravel())):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-7, atol=1e-8, err_msg=name)
    for name in ("forward of reverse", "reverse of reverse", "reverse of forward"):
        np.testing.assert_allclose(found[name], second, rtol=1e-6, atol=1e-6, err_msg=name)


def check_first(f: Function, theirs: Reference, a: Any) -> None:
    """The same of the first order."""
    a = np.array(a, float)
    x, v = (gc.tensor(name, dict(zip(PQ, a.shape, strict=True))) for name in "xv")
    y = weighed(f(x))
    compiled = gc.compile([x, v], [gc.grad(y, x), gc.pushforward(y, x, v)])
    wanted = slopes(lambda a: weighed_of(theirs(a)), a)
    for direction in np.eye(a.size):
        back, forth = compiled(a, direction.reshape(a.shape))
        np.testing.assert_allclose(back, wanted, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(forth, wanted.ravel() @ direction, rtol=1e-7, atol=1e-8)


# ---- determinants

SINGULAR = {
    "rank 1 of 2": [[1, 2], [2, 4]],
    "rank 0 of 2": [[0, 0], [0, 0]],
    "rank 2 of 3": [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
    "rank 1 of 3": [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
    "rank 0 of 3": [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    "rank 2 of 4": [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]],
    "a zero row": [[1, 2, 3], [0, 0, 0], [2, 1, 5]],
    "one number": [[0]],
    "equal singular values": [[1, 0, 0], [0, 1, 0], [0, 0, 0]],
    "large and small": [[1e4, 0, 0], [0, 1e-4, 0], [0, 0, 0]],
}


def laplace(a: np.ndarray) -> float:
    """By minors: exact for small integers."""
    if len(a) == 1:
        return a[0, 0]
    minors = (np.delete(a[1:], j, 1) for j in range(len(a)))
    return sum((-1) ** j * a[0, j] * laplace(minor) for j, minor in enumerate(minors))


@pytest.mark.parametrize("name", SINGULAR)
def test_det_of_a_singular_matrix(name: str) -> None:
    check(lambda x: L.det(x, PQ), laplace, SINGULAR[name])


@pytest.mark.parametrize("name", [name for name in SINGULAR if name.endswith("3")])
def test_third_order_of_det(name: str) -> None:
    """det(a + t d) has the third derivative 6 det(d) wherever it is."""
    a = np.array(SINGULAR[name], float)
    x, v = (gc.tensor(word, {"p": 3, "q": 3}) for word in "xv")
    y = L.det(x, PQ)
    forth = gc.pushforward(gc.pushforward(gc.pushforward(y, x, v), x, v), x, v)
    back = (gc.grad((gc.grad((gc.grad(y, x) * v).sum(), x) * v).sum(), x) * v).sum()
    d = np.random.default_rng(0).normal(size=(3, 3))
    for found in gc.compile([x, v], [forth, back])(a, d):
        np.testing.assert_allclose(found, 6 * np.linalg.det(d), rtol=1e-10)


def test_slogdet_of_a_singular_matrix() -> None:
    x = gc.tensor("x", {"p": 2, "q": 2})
    sign, log = L.slogdet(x, PQ)
    sign, log, slope = gc.compile([x], [sign, log, gc.grad(log, x)])(np.ones((2, 2)))
    assert (sign, log) == (0, -np.inf)
    assert not np.isfinite(slope).any()


# ---- matrix functions and polar factors at equal values

EQUAL = {
    "one": np.eye(3),
    "twice the same": np.diag([1.0, 1.0, 2.0]),
    "defective": np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0]]),
    "symmetric": np.ones((3, 3)) + np.eye(3),
}
MOST = [pytest.param(at, marks=() if at == "twice the same" else pytest.mark.slow) for at in EQUAL]
FUNCTIONS: dict[str, tuple[Function, Reference]] = {
    "expm": (lambda x: L.expm(x, PQ), scipy.linalg.expm),
    "sqrtm": (lambda x: L.sqrtm(x, PQ), scipy.linalg.sqrtm),
    "inv": (lambda x: L.inv(x, PQ), np.linalg.inv),
    "pinv": (lambda x: L.pinv(x, PQ), np.linalg.pinv),
    "matrix_power": (lambda x: L.matrix_power(x, 3, PQ), lambda a: a @ a @ a),
    "cholesky": (lambda x: L.cholesky(x, PQ), np.linalg.cholesky),
    "polar": (lambda x: L.polar(x, PQ).unitary, lambda a: scipy.linalg.polar(a)[0]),
    "polar positive": (lambda x: L.polar(x, PQ).positive, lambda a: scipy.linalg.polar(a)[1]),
    "nuclear norm": (lambda x: L.norm(x, PQ, "nuc"), lambda a: np.linalg.norm(a, "nuc")),
}


@pytest.mark.parametrize("at", MOST)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_smooth_functions_at_equal_values(name: str, at: str) -> None:
    if (name, at) == ("cholesky", "defective"):
        pytest.skip("not positive definite")
    if name == "nuclear norm" and at != "defective":
        check_first(*FUNCTIONS[name], EQUAL[at])
    else:
        check(*FUNCTIONS[name], EQUAL[at])


@pytest.mark.parametrize("at", EQUAL)
def test_logm_at_equal_values(at: str) -> None:
    """By the inverse: log(e^a) = a, so that its derivative undoes that of expm."""
    a = EQUAL[at]
    x, v = (gc.tensor(name, {"p": 3, "q": 3}) for name in "xv")
    there = L.expm(x, PQ)
    y = L.logm(there, PQ)
    forth = gc.pushforward(y, x, v)
    second = gc.pushforward(forth, x, v)
    d = np.random.default_rng(1).normal(size=(3, 3))
    back, forth, second = gc.compile([x, v], [gc.pullback(y, x, v), forth, second])(a, d)
    np.testing.assert_allclose(back, d, atol=1e-9)
    np.testing.assert_allclose(forth, d, atol=1e-9)
    np.testing.assert_allclose(second, 0 * d, atol=1e-7)


@pytest.mark.parametrize("name", ["polar", "polar positive"])
def test_polar_factors_of_wide_matrices(name: str) -> None:
    if name == "polar":
        check(*FUNCTIONS[name], 2 * np.eye(2, 3))
    check(*FUNCTIONS[name], np.array([[2.0, 1.0, 0.5], [0.5, -1.0, 3.0]]))


@pytest.mark.parametrize("name", ["polar", "polar positive"])
def test_polar_factors_of_tall_matrices_with_equal_singular_values(name: str) -> None:
    check(*FUNCTIONS[name], 2 * np.eye(4, 2))
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 2)))[0]
    check(*FUNCTIONS[name], 3 * turned)


@pytest.mark.parametrize("at", ["one", "twice the same", "symmetric"])
def test_functions_of_the_values_alone(at: str) -> None:
    """Symmetric functions of equal eigenvalues or singular values are smooth."""
    a = EQUAL[at]
    check_first(
        lambda x: gc.sin(L.eigvalsh(x, PQ)).sum("eigen"),
        lambda a: np.sin(np.linalg.eigvalsh(a)).sum(), a,
    )  # fmt: skip
    check_first(
        lambda x: gc.sin(L.eigh(x, PQ).values).sum("eigen"),
        lambda a: np.sin(np.linalg.eigvalsh(a)).sum(), a,
    )  # fmt: skip
    check_first(
        lambda x: gc.sin(L.svdvals(x, PQ)).sum("rank"),
        lambda a: np.sin(np.linalg.svd(a)[1]).sum(), a,
    )  # fmt: skip


# ---- where there is no derivative


@pytest.mark.parametrize("name", ["eigh", "eig"])
def test_vectors_of_equal_eigenvalues_have_no_derivative(name: str) -> None:
    """Inf or nan, in both modes, and in that element of a batch alone; 0 by what is not read."""
    x, v = (gc.tensor(word, {"b": 2, "p": 2, "q": 2}) for word in "xv")
    made = getattr(L, name)(x, PQ)
    y = gc.real(made.vectors)
    outputs = [gc.grad(y.sum(), x), gc.pushforward(y, x, v)]
    a = np.array([np.eye(2), [[1.0, 0.5], [0.5, 3.0]]])
    slope, moved = gc.compile([x, v], outputs)(a, np.ones((2, 2, 2)))
    read = np.tril(np.ones((2, 2), bool)) if name == "eigh" else np.ones((2, 2), bool)
    np.testing.assert_array_equal(np.isfinite(slope[0]), ~read)
    assert not np.isfinite(moved[0]).any()
    assert np.isfinite(slope[1]).all()
    assert np.isfinite(moved[1]).all()


def test_a_single_eigenvector_beside_equal_ones() -> None:
    """Its own derivative exists."""
    a = np.diag([1.0, 1.0, 2.0])
    x, v = (gc.tensor(name, {"p": 3, "q": 3}) for name in "xv")
    vectors = L.eigh(x, PQ).vectors
    d = np.random.default_rng(0).normal(size=(3, 3))
    found = gc.compile([x, v], gc.pushforward(vectors, x, v))(a, d)
    top = np.linalg.eigh(a)[1][:, 2]
    np.testing.assert_allclose(found[:, 2], [d[2, 0] * top[2], d[2, 1] * top[2], 0])
    assert not np.isfinite(found[:, :2]).all(0).any()


def test_matrices_that_have_no_logarithm_or_root() -> None:
    x = gc.tensor("x", {"b": 2, "p": 2, "q": 2})
    nilpotent = np.array([[0.0, 1.0], [0.0, 0.0]])
    f = gc.compile([x], [L.logm(x, PQ), L.sqrtm(x, PQ)])
    for found in f(np.stack([nilpotent, np.eye(2)])):
        assert np.isnan(found[0]).all()
        assert np.isfinite(found[1]).all()
    root = f(np.stack([np.zeros((2, 2)), -np.eye(2)]))[1]
    np.testing.assert_array_equal(root[0], np.zeros((2, 2)))
    assert np.isnan(root[1]).all()  # it is not real


# ---- factors


def beside(a: np.ndarray) -> np.ndarray:
    """The projector onto what is orthogonal to the columns."""
    return np.eye(len(a)) - a @ np.linalg.pinv(a)


def onto(v: gc.Tensor, dim: str, first: int) -> gc.Tensor:
    rest = v.isel({dim: slice(first, None)})
    return gc.dot(rest, rest.rename(p="q"), dim=dim)


TALL = {
    "equal singular values": 2 * np.eye(4, 2),
    "different ones": np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 1.0], [0.0, 1.0]]),
}


@pytest.mark.parametrize("at", TALL)
def test_null_space_of_a_full_svd(at: str) -> None:
    """Between equal singular values the second order is not told: it is inf or nan."""

    def of_columns(x: gc.Tensor) -> gc.Tensor:
        return onto(L.svd(x, PQ, full_matrices=True).u, "left", 2)

    def of_rows(x: gc.Tensor) -> gc.Tensor:
        turned = L.matrix_transpose(x, PQ)
        return onto(L.svd(turned, PQ, full_matrices=True).vh.rename(q="p"), "right", 2)

    for f in (of_columns, of_rows):
        if at == "different ones":
            check(f, beside, TALL[at])
        else:
            check_first(f, beside, TALL[at])
            second = derivatives(f, TALL[at])["forward of reverse"]
            assert not np.isfinite(second).all()


@pytest.mark.parametrize("at", TALL)
def test_complete_qr_of_a_tall_matrix(at: str) -> None:
    check(lambda x: onto(L.qr(x, PQ, mode="complete").q, "rank", 2), beside, TALL[at])


OF_VALUES: dict[str, Function] = {
    "svdvals": lambda x: gc.sin(L.svdvals(x, PQ)),
    "squares": lambda x: L.svdvals(x, PQ) ** 2,
    "svd": lambda x: gc.sin(L.svd(x, PQ).s),
    "full svd": lambda x: gc.sin(L.svd(x, PQ, full_matrices=True).s),
    "nuclear norm": lambda x: L.norm(x, PQ, "nuc"),
    "eigvalsh": lambda x: gc.sin(L.eigvalsh(x, PQ)),
    "product": lambda x: gc.dot(*L.svd(x, PQ)[::2], dim="rank"),
}


@pytest.mark.parametrize("of", [np.eye(2), 2 * np.eye(3, 2), np.ones((2, 2)) - np.eye(2)])
@pytest.mark.parametrize("name", OF_VALUES)
def test_second_order_of_values_that_are_equal(name: str, of: np.ndarray) -> None:
    """It is not told: inf or nan in every nesting of modes, and finite beside such values."""
    if name == "eigvalsh" and not np.array_equal(of, np.eye(2)):
        pytest.skip("not of equal eigenvalues")
    second = derivatives(OF_VALUES[name], of)
    different = derivatives(OF_VALUES[name], of + np.arange(of.size).reshape(of.shape))
    for nesting in ("forward of reverse", "reverse of reverse", "reverse of forward"):
        by_read = np.tril(np.ones(of.shape, bool), 0 if name == "eigvalsh" else 1)
        found = second[nesting].reshape(-1, *of.shape)[by_read.ravel()]  # else the direction is 0
        assert not np.isfinite(found[:, by_read]).any()
        assert np.isfinite(different[nesting]).all()


LU = {
    "singular": [[2.0, 1.0], [4.0, 2.0]],
    "singular of 3": [[2.0, 1.0, 1.0], [4.0, 3.0, 3.0], [8.0, 7.0, 7.0]],
    "singular and wide": [[2.0, 1.0, 3.0], [4.0, 2.0, 1.0]],
    "wide": [[2.0, 1.0, 3.0, 1.0], [4.0, 5.0, 1.0, 2.0]],
    "tall": [[2.0, 1.0], [4.0, 5.0], [1.0, 3.0]],
}


@pytest.mark.parametrize("part", ["lower", "upper"])
@pytest.mark.parametrize("at", LU)
def test_lu(at: str, part: str) -> None:
    """Also where the last pivot is 0, which divides nothing."""
    check(
        lambda x: getattr(L.lu(x, PQ), part),
        lambda a: scipy.linalg.lu(a)[1 if part == "lower" else 2], LU[at],
    )  # fmt: skip


B = np.array([1.0, -2.0, 0.5])
TRIANGLES: dict[str, tuple[bool, Function]] = {
    "cholesky": (True, lambda x: L.cholesky(x, PQ)),
    "cholesky upper": (False, lambda x: L.cholesky(x, PQ, upper=True)),
    "eigh": (True, lambda x: L.eigh(x, PQ).vectors),
    "eigh upper": (False, lambda x: L.eigh(x, PQ, lower=False).vectors),
    "eigvalsh": (True, lambda x: L.eigvalsh(x, PQ)),
    "eigvalsh upper": (False, lambda x: L.eigvalsh(x, PQ, lower=False)),
    "solve_triangular": (
        True, lambda x: L.solve_triangular(x, gc.constant(B, "p"), PQ, lower=True)
    ),
    "solve_triangular upper": (False, lambda x: L.solve_triangular(x, gc.constant(B, "p"), PQ)),
    "cho_solve": (True, lambda x: L.cho_solve(x, gc.constant(B, "p"), PQ)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIANGLES)
def test_a_triangle_that_is_not_read(name: str) -> None:
    """Whatever stands there: all derivatives by it are exactly 0, and the others are as before."""
    lower, f = TRIANGLES[name]
    a = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, -1.0], [0.5, -1.0, 3.0]])
    unread = (np.triu if lower else np.tril)(np.ones((3, 3), bool), 1 if lower else -1)
    wanted = derivatives(f, a)
    for value in (np.nan, np.inf, 7.0):
        found = derivatives(f, np.where(unread, value, a))
        for word, derivative in found.items():
            np.testing.assert_array_equal(derivative, wanted[word], err_msg=word)
    assert (wanted["reverse"][unread] == 0).all()
    assert (wanted["reverse"][~unread] != 0).all()
    for word in ("forward of reverse", "reverse of reverse", "reverse of forward"):
        assert (wanted[word].reshape(3, 3, 3, 3)[unread] == 0).all()
        assert (wanted[word][:, unread] == 0).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", TRIANGLES)
def test_a_tangent_in_a_triangle_that_is_not_read(name: str, value: float) -> None:
    lower, f = TRIANGLES[name]
    a = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, -1.0], [0.5, -1.0, 3.0]])
    unread = (np.triu if lower else np.tril)(np.ones((3, 3), bool), 1 if lower else -1)
    x, v = (gc.tensor(word, {"p": 3, "q": 3}) for word in "xv")
    moved = gc.compile([x, v], gc.pushforward(f(x), x, v))
    np.testing.assert_array_equal(moved(a, np.where(unread, value, a)), moved(a, a))


def test_unit_diagonals_are_not_read() -> None:
    a = np.array([[np.nan, 5.0], [2.0, np.nan]])
    x = gc.tensor("x", {"p": 2, "q": 2})
    y = L.solve_triangular(x, gc.constant(B[:2], "p"), PQ, lower=True, unit_diagonal=True)
    value, slope = gc.compile([x], [y, gc.grad(y.sum(), x)])(a)
    np.testing.assert_array_equal(value, [1, -4])
    np.testing.assert_array_equal(slope, [[0, 0], [-1, 0]])


# ---- norms of zeros, ranks


@pytest.mark.parametrize("order", ["fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf])
def test_norms_of_a_zero_matrix(order: Any) -> None:
    """A subgradient: 0."""
    x, v = (gc.tensor(name, {"p": 2, "q": 3}) for name in "xv")
    y = L.norm(x, PQ, order)
    found = gc.compile([x, v], [y, gc.grad(y, x), gc.pushforward(y, x, v)])
    for value in found(np.zeros((2, 3)), np.ones((2, 3))):
        np.testing.assert_array_equal(value, np.zeros_like(value))


@pytest.mark.parametrize("order", [1, 2, 3, 0.5, np.inf, -np.inf])
def test_norms_of_zero_vectors(order: Any) -> None:
    x = gc.tensor("x", {"p": 3})
    y = L.norm(x, "p", order)
    for value in gc.compile([x], [y, gc.grad(y, x)])(np.zeros(3)):
        np.testing.assert_array_equal(value, np.zeros_like(value))


def test_pinv_of_zeros() -> None:
    x = gc.tensor("x", {"p": 2, "q": 3})
    y = L.pinv(x, PQ)
    for found in gc.compile([x], [y, gc.grad(y.sum(), x)])(np.zeros((2, 3))):
        assert not found.any()


# ---- what is not finite


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["svd", "svdvals", "pinv", "polar", "det"])
def test_matrices_that_are_not_finite(name: str, value: float) -> None:
    """They have nan, in that element of a batch alone, and an end."""
    a = np.random.default_rng(0).normal(size=(2, 3, 3)) + 3 * np.eye(3)
    a[0, 1, 0] = a[0, 0, 1] = value
    x = gc.tensor("x", {"b": 2, "p": 3, "q": 3})
    y = getattr(L, name)(x, PQ)
    y = {"svd": lambda: y.u, "polar": lambda: y.unitary}.get(name, lambda: y)()
    found = gc.compile([x], [y, gc.grad(gc.sin(y).sum(), x)])(a)
    for part in found[name == "det" :]:
        assert np.isnan(part[0]).all()
    for part in found:
        assert np.isfinite(part[1]).all()


# ---- one degenerate matrix in a batch

IN_A_BATCH: dict[str, Function] = {
    "det": lambda x: L.det(x, PQ),
    "expm": lambda x: L.expm(x, PQ),
    "sqrtm": lambda x: L.sqrtm(x, PQ),
    "polar": lambda x: L.polar(x, PQ).unitary,
    "lu": lambda x: L.lu(x, PQ).upper,
    "pinv": lambda x: L.pinv(x, PQ),
    "svdvals": lambda x: L.svdvals(x, PQ),
    "eigvalsh": lambda x: L.eigvalsh(x, PQ),
    "slogdet": lambda x: L.slogdet(x, PQ).logabsdet,
    "eigh": lambda x: L.eigh(x, PQ).vectors,
    "svd": lambda x: L.svd(x, PQ).u,
    "norm": lambda x: L.norm(x, PQ, "nuc"),
}


@pytest.mark.parametrize("name", IN_A_BATCH)
def test_one_of_a_batch(name: str) -> None:
    """The others have what they have alone."""
    f = IN_A_BATCH[name]
    regular = np.array([[2.0, 0.5], [0.25, 3.0]])
    batch = np.stack([np.eye(2), regular, np.array([[1.0, 1.0], [1.0, 1.0]]), regular])
    outputs = []
    for sizes in ({"b": 4, "p": 2, "q": 2}, {"p": 2, "q": 2}):
        x = gc.tensor("x", sizes)
        y = f(x)
        gradient = gc.grad(gc.sin(y).sum(), x)
        second = gc.grad((gradient**2).sum(), x)
        outputs.append(gc.compile([x], [y, gradient, second]))
    together, alone = outputs[0](batch), outputs[1](regular)
    for found, wanted in zip(together, alone, strict=True):
        for at in (1, 3):
            np.testing.assert_allclose(found[at], wanted, rtol=1e-10, atol=1e-12)
