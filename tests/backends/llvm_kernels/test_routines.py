"""Steps that stand alone: products, factors, scattering, running reductions, search and order."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import capsules, routines, sorting
from graphcore.ir.errors import GraphError
from graphcore.ir.node import Node
from graphcore.ops import elementwise as e
from graphcore.ops import linalg
from graphcore.ops import tensor as t

from .native import SIZES, Both, M, N, fenced, given, needs_machine_code, some

pytestmark = needs_machine_code

FLOATS = ("float64", "float32", "complex128", "complex64")


def matrix(x: Node) -> Node:
    n = x.type.ndim
    return t.transpose(x, perm=(*range(n - 2), n - 1, n - 2))


def refused(both: Both, arrays: list[np.ndarray], sizes: tuple[int, ...]) -> str:
    """The message of both targets, without the line of the call."""
    said = []
    for call in (both.numpy, both.native):
        with pytest.raises(GraphError) as error:
            call(arrays, sizes)
        lines = str(error.value).splitlines()
        said.append("\n".join(line for line in lines if not line.startswith("  called at")))
    assert said[0] == said[1]
    return said[0]


# ---- factors


def definite(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    a = some(rng, shape, dtype)
    return a @ np.swapaxes(a, -1, -2).conj() + 2 * np.eye(shape[-1], dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_factors_and_solutions(dtype: str) -> None:
    rng = np.random.default_rng(2)
    a, b = given("a", 2, N, N, dtype=dtype), given("b", 2, N, M, dtype=dtype)
    how = {"unit": False, "check": True}
    both = Both(
        [
            linalg.cholesky(a, check=True),
            linalg.solve(a, b, check=True),
            linalg.inv(a, check=True),
            *[linalg.solve_triangular(a, b, lower=lower, **how) for lower in (True, False)],
            linalg.solve_triangular(matrix(a), b, lower=True, unit=True, check=False),
        ]
    )
    for n in (0, 1, 2, 7, 8, 9, 17, 64, 66):
        arrays = [definite(rng, (2, n, n), dtype), some(rng, (2, n, 3), dtype)]
        arrays[0] /= 4 * n or 1
        both.agree(arrays, (n, 3), 1e3)


def test_solutions_of_nothing() -> None:
    a, b = given("a", N, N), given("b", N, M)
    both = Both([linalg.solve(a, b, check=True)])
    both.agree([np.eye(4), np.ones((4, 0))], (4, 0))


CHECKED: dict[str, Callable[[Node, Node, bool], Node]] = {
    "cholesky": lambda a, b, check: linalg.cholesky(a, check=check),
    "solve": lambda a, b, check: linalg.solve(a, b, check=check),
    "inv": lambda a, b, check: linalg.inv(a, check=check),
    "solve_triangular": lambda a, b, check: linalg.solve_triangular(
        a, b, lower=True, unit=False, check=check
    ),
}


@pytest.mark.parametrize("n", [6, 9, 100])  # small, by LAPACK, and in panels
@pytest.mark.parametrize("name", CHECKED)
def test_matrices_without_a_result(name: str, n: int) -> None:
    rng = np.random.default_rng(3)
    a, b = given("a", 2, 3, N, N), given("b", 2, 3, N, M)
    right = some(rng, (2, 3, n, 2))
    whole = definite(rng, (2, 3, n, n), "float64")
    wrong = whole.copy()
    wrong[1, 0] = 0
    strict, lenient = (Both([CHECKED[name](a, b, check)]) for check in (True, False))

    def arrays(both: Both, matrices: np.ndarray) -> list[np.ndarray]:
        return [matrices, right][: len(both.params)]

    said = refused(strict, arrays(strict, wrong), (n, 2))
    assert "matrix is" in said
    assert "batch=1, batch=0" in said
    strict.agree(arrays(strict, whole), (n, 2), 1e3)
    if name != "solve_triangular":
        lenient.agree(arrays(lenient, wrong), (n, 2), 1e3)
        for odd in (np.nan, np.inf):
            wrong[0, 2, 5, 1] = odd
            wrong[0, 2, 1, 5] = odd
            lenient.agree(arrays(lenient, wrong), (n, 2), 1e3)
            wrong[1, 0] = whole[1, 0]
            strict.agree(arrays(strict, wrong), (n, 2), 1e3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_small_matrices_need_exchanges(dtype: str) -> None:
    """Pivots that are 0 at first, and a matrix whose last pivot is 0."""
    rng = np.random.default_rng(14)
    a, b = given("a", 3, N, N, dtype=dtype), given("b", 3, N, M, dtype=dtype)
    both = Both([linalg.solve(a, b, check=False), linalg.inv(a, check=False), linalg.det(a)])
    for n in (2, 3, 4, 7, 8):
        matrices = np.zeros((3, n, n), dtype)
        matrices[0, range(n), [*range(1, n), 0]] = rng.uniform(1, 2, n)
        matrices[1] = np.eye(n)[::-1] + np.triu(some(rng, (n, n), dtype)[::-1])[::-1]
        matrices[2] = np.eye(n)
        matrices[2, -1] = 0
        both.agree([matrices, some(rng, (3, n, 5), dtype)], (n, 5), 1e4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_lu_factors(dtype: str) -> None:
    rng = np.random.default_rng(10)
    a, b = given("a", 2, N, N, dtype=dtype), given("b", 2, N, M, dtype=dtype)
    made = linalg.lu_factor(a)
    packed, exchanges = made[0], made[1]
    several = [linalg.slogdet(a), linalg.lu_slogdet(packed, exchanges)]
    both = Both(
        [
            *[packed, exchanges, linalg.det(a), linalg.lu_det(packed, exchanges)],
            *[pair[i] for pair in several for i in (0, 1)],
            linalg.lu_solve(packed, exchanges, b, transposed=False, check=True),
            linalg.lu_solve(packed, exchanges, b, transposed=True, check=False),
        ]
    )
    for n in (0, 1, 2, 3, 8, 17):
        arrays = [some(rng, (2, n, n), dtype), some(rng, (2, n, 3), dtype)]
        both.agree(arrays, (n, 3), 1e4)
    arrays[0][1] = 0
    assert "batch=1" in refused(both, arrays, (17, 3))
    determinants = Both([linalg.det(a), *[linalg.slogdet(a)[i] for i in (0, 1)]])
    determinants.agree(arrays[:1], (17, 0), 1e4)


def test_a_singular_matrix_that_is_not_checked_gives_nan() -> None:
    a, b = given("a", 2, N, N), given("b", 2, N, M)
    made = linalg.lu_factor(a)
    solution = linalg.lu_solve(made[0], made[1], b, transposed=False, check=False)
    arrays = [np.stack([np.eye(3), np.zeros((3, 3))]), np.ones((2, 3, 4))]
    Both([solution]).agree(arrays, (3, 4), 1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_tridiagonal_systems(dtype: str) -> None:
    rng = np.random.default_rng(11)
    bands = [given(name, 3, N, dtype=dtype) for name in "dlu"]
    both = Both([linalg.solve_tridiagonal(*bands, given("x", 3, N, M, dtype=dtype))])
    for n, m in ((0, 2), (1, 2), (2, 0), (9, 1), (40, 3)):
        arrays = [some(rng, (3, n), dtype) for _ in bands]
        both.agree([*arrays, some(rng, (3, n, m), dtype)], (n, m), 1e6)
    for x in arrays:
        x[2] = 0
    assert "batch=2" in refused(both, [*arrays, some(rng, (3, 40, 3), dtype)], (40, 3))


def test_signatures_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert capsules.address("gemm", "f64")
    assert capsules.address("gemm", "f16") is None
    monkeypatch.setitem(capsules.BLAS, "gemm", "char, char, long, int, int")
    assert capsules.address.__wrapped__("gemm", "f64") is None
    assert capsules.address.__wrapped__("gemm", "c128") is None
    monkeypatch.setattr(capsules, "address", capsules.address.__wrapped__)
    x, z = given("x", N, N), given("z", N, N, dtype="complex128")
    assert routines.lacks(t.matmul(z, z))
    assert not routines.lacks(t.matmul(x, x))  # it is a routine of our own


# ---- search and order

ORDERED = ("float64", "float32", "int64", "int32", "int8", "uint64", "uint8", "bool")


def with_ties(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values of which some are equal; of floats zeros with signs, infinities and nan."""
    x = some(rng, shape, dtype)
    if dtype[0] == "f":
        odd = rng.integers(0, 12, shape)
        for n, value in enumerate((0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0)):
            x[odd == n] = value
    elif dtype[-2:] == "64":
        x[rng.integers(0, 9, shape) == 0] = np.iinfo(dtype).max
    return x


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("side", ["left", "right"])
def test_search(side: str, dtype: str) -> None:
    rng = np.random.default_rng(8)
    x, v = given("x", N, dtype=dtype), given("v", 3, M, dtype=dtype)
    rows, u = given("rows", 3, N, dtype=dtype), given("u", 3, dtype=dtype)
    makes = [(x, v), (rows, v), (rows, u), (x, given("f", M, dtype="float64"))]
    both = Both([t.searchsorted(*pair, side=side) for pair in makes[: 3 + (dtype != "bool")]])
    for n, m in product(SIZES, (11, 70)):  # some, and groups of them
        shapes = {"x": (n,), "rows": (3, n), "v": (3, m), "u": (3,), "f": (m,)}
        arrays = []
        for p in both.params:
            label = p.attrs["name"]
            values = with_ties(rng, shapes[label], str(p.type.dtype))
            arrays.append(np.sort(values, -1) if label in ("x", "rows") else values)
        both.agree(arrays, (n, m))


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("axis", [0, 1])
def test_order(axis: int, dtype: str) -> None:
    rng = np.random.default_rng(9)
    shape = [3, 3]
    shape[axis] = N
    x = given("x", *shape, dtype=dtype)
    falling = t.argsort(x, axis=axis, size=N, descending=True)
    first = t.argsort(x, axis=axis, size=(N + 1) // 2, descending=False)
    both, values = Both([falling, first]), Both([t.sort(x, axis=axis)])
    for n in (*SIZES, 64, 65, 300):
        shape[axis] = n
        array = with_ties(rng, tuple(shape), dtype)
        both.agree([array], (n, 0))
        array[array == 0] = 0  # NumPy gives zeros in any order
        values.agree([array], (n, 0))


@pytest.mark.parametrize("behind", [True, False])
def test_order_stays_in_its_memory(behind: bool) -> None:
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 2)
    order, rng = call(sorting.code()["order"]), np.random.default_rng(9)
    for n in (1, 2, 63, 64, 65, 300, 512):
        for most in (1, 3, 2**62):
            keys, beside, *more = [fenced(n, behind) for _ in range(4)]
            keys[:], beside[:] = rng.integers(0, most, n), range(n)
            wanted = np.argsort(keys, kind="stable")
            order(keys.ctypes.data, beside.ctypes.data, n, *[x.ctypes.data for x in more])
            np.testing.assert_array_equal(beside, wanted)


@pytest.mark.parametrize("numpy_sorts", [True, False])
@pytest.mark.parametrize("behind", [True, False])
def test_selection_stays_in_its_memory(behind: bool, numpy_sorts: bool) -> None:
    call = ctypes.CFUNCTYPE(
        None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 4
    )
    first, rng = call(sorting.code()["first"]), np.random.default_rng(9)
    sort = capsules.sort(64) if numpy_sorts else None
    for n in (1, 16, 17, 512, 1024):
        for most in (1, 3, 2**62):
            for size in {1, min(n, 7), n}:
                keys, places, *more = [fenced(n, behind) for _ in range(5)]
                keys[:] = rng.integers(0, most, n)
                wanted = np.argsort(keys, kind="stable")[:size]
                more_at = [x.ctypes.data for x in more]
                first(keys.ctypes.data, places.ctypes.data, n, size, *more_at, sort)
                np.testing.assert_array_equal(places[:size], wanted)


def long_rows(n: int) -> dict[str, np.ndarray]:
    """Rows whose order takes every way: words alike in front, ties, and orders given already."""
    rng = np.random.default_rng(12)
    small = rng.integers(0, 10**9, n)
    near = 2.0 ** rng.integers(0, 40, n) * (1 + rng.integers(0, 99, n) * 2.0**-52)
    return {
        "random": rng.standard_normal(n),
        "falling": -np.arange(float(n)),
        "equal": np.full(n, 3.0),
        "one apart": np.where(np.arange(n) == n // 2, 2**62, small),
        "one apart, few": np.where(np.arange(n) == n // 3, -(2**62), small % 7),
        "near": near,
        "missing": np.where(rng.random(n) < 0.9, np.nan, near),
    }


@pytest.mark.parametrize("numpy_sorts", [True, False])
def test_order_of_long_rows(numpy_sorts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not numpy_sorts:
        monkeypatch.setattr(capsules, "sort", lambda bits: None)
    else:
        assert capsules.sort(32) is not None
        assert capsules.sort(64) is not None
    for dtype in ("float64", "int64"):
        x = given(f"x{numpy_sorts}", N, dtype=dtype)
        places = t.argsort(x, axis=0, size=N, descending=False)
        first = [t.argsort(x, axis=0, size=n, descending=n == 5) for n in (1, 5, 17)]
        both = Both([places, *first, t.sort(x, axis=0)])
        for n in (17, 500, 3000):
            for array in long_rows(n).values():
                if array.dtype == dtype:
                    both.agree([array], (n, 0))


def test_sorts_of_another_interface_are_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(lambda: 3 << 24)
    table = (ctypes.c_void_p * (capsules.GETTER + 1))(ctypes.cast(version, ctypes.c_void_p).value)
    monkeypatch.setattr(capsules, "pointer", lambda capsule: ctypes.addressof(table))
    assert capsules.sort.__wrapped__(64) is None


# ---- updates at positions

RECEIVED = {
    "scatter": lambda x, u, *i, axes, shape: t.scatter(u, *i, axes=axes, shape=shape),
    "scatter_prod": lambda x, u, *i, axes, shape: t.scatter_prod(u, *i, axes=axes, shape=shape),
    "scatter_add": lambda x, u, *i, axes, shape: t.scatter_add(x, u, *i, axes=axes),
    "scatter_max": lambda x, u, *i, axes, shape: t.scatter_max(x, u, *i, axes=axes),
    "scatter_min": lambda x, u, *i, axes, shape: t.scatter_min(x, u, *i, axes=axes),
    "put": lambda x, u, *i, axes, shape: t.put(x, u, *i, axes=axes),
}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128"])
@pytest.mark.parametrize("name", RECEIVED)
def test_updates_at_positions(name: str, dtype: str) -> None:
    if dtype == "complex128" and name in ("scatter_max", "scatter_min"):
        return
    rng = np.random.default_rng(4)
    rows, columns = given("i", M, dtype="int32"), given("j", M, dtype="int64")
    x = given("x", 6, N, dtype=dtype)
    make = RECEIVED[name]
    own = {"shape": (6, N)}
    both = Both(
        [
            make(x, given("u", M, N, dtype=dtype), rows, axes=(0,), **own),
            make(x, given("v", M, 6, dtype=dtype), columns, axes=(1,), **own),
            make(x, given("w", M, dtype=dtype), rows, columns, axes=(0, 1), **own),
        ]
    )
    for n, m in ((1, 0), (1, 3), (7, 9), (8, 1), (9, 40), (17, 17)):
        shapes = {"i": (m,), "j": (m,), "x": (6, n), "u": (m, n), "v": (m, 6), "w": (m,)}
        arrays = []
        for p in both.params:
            label = p.attrs["name"]
            shape = shapes[label]
            if label in "ij":
                high = 6 if label == "i" else n
                arrays.append(rng.integers(-high, high, shape).astype(p.type.dtype))
            else:
                arrays.append(some(rng, shape, dtype))
        both.agree(arrays, (n, m), 16)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint64", "uint8"])
def test_positions_outside(dtype: str) -> None:
    x, i = given("x", N, 3), given("i", M, dtype=dtype)
    makes = (
        t.put(x, given("u", M, 3), i, axes=(0,)),
        t.scatter(given("u", M, 3), i, axes=(0,), shape=(N, 3)),
        t.gather(x, i, axes=(0,)),
    )
    for y in makes:
        both = Both([y])
        arrays = {"x": np.ones((5, 3)), "u": np.ones((12, 3))}
        for wrong in (5, 100, -6, *([-1] if dtype[0] == "u" else [])):
            if wrong < 0 and dtype[0] == "u":
                wrong = 2 ** (8 * np.dtype(dtype).itemsize) + wrong
            positions = np.arange(12) % 5
            places = positions.astype(dtype)
            places[9] = wrong
            given_arrays = [arrays.get(p.attrs["name"], places) for p in both.params]
            assert "is outside" in refused(both, given_arrays, (5, 12))


# ---- one place after the other


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_reductions(axis: int, dtype: str) -> None:
    rng = np.random.default_rng(5)
    shape = [3, 4]
    shape.insert(axis, N)
    x = given("x", *shape, dtype=dtype)
    ops = [t.cumsum, t.cumprod]
    if dtype[0] != "c":
        ops += [t.cummax, t.cummin]
    if dtype[0] == "f" and not routines.lacks(t.logcumsumexp(x, axis=axis)):
        ops.append(t.logcumsumexp)
    both = Both([op(x, axis=axis) for op in ops])
    for n in SIZES[:-1]:
        shape[axis] = n
        x = some(rng, tuple(shape), dtype)
        if dtype[0] == "f" and n > 3:
            x[(slice(None),) * axis + (n - 2,)] = np.nan
        both.agree([x], (n, 0), 16)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint64", "bool"])
def test_running_extremes_of_vectors(dtype: str) -> None:
    """Bit by bit: every place is the extreme of those before it, whichever come together."""
    x = given("x", 3, N, dtype=dtype)
    both = Both([t.cummax(x, axis=1), t.cummin(x, axis=1)])
    rng = np.random.default_rng(8)
    for n in (0, 1, 7, 8, 16, 17, 70):
        values = rng.integers(0, 100, (3, n)).astype(dtype)
        if dtype[0] == "f":
            values[0] = rng.choice([0.0, -np.inf, np.inf, -3.0], n)
            values[1, n // 2 :] = np.nan
        found = both.native([values], (n, 0))
        for y, plain in zip(found, (np.maximum, np.minimum), strict=True):
            np.testing.assert_array_equal(y, plain.accumulate(values, axis=1))


@pytest.mark.parametrize("axis", [0, 1])
def test_recurrences(axis: int) -> None:
    rng = np.random.default_rng(6)
    shape = [5]
    shape.insert(axis, N)
    both = Both([t.recurrence(given("a", *shape), given("b", *shape), axis=axis)])
    for n in SIZES[:-1]:
        shape[axis] = n
        a, b = some(rng, tuple(shape)), some(rng, tuple(shape))
        both.agree([a, b], (n, 0), 64)
        a[a < 0] = 0
        b[b > 1.5] = np.inf
        both.agree([a, b], (n, 0), 64)


def test_what_stands_alone_reads_what_is_computed_in_place() -> None:
    x, i = given("x", N, 4), given("i", M, dtype="int64")
    y = e.exp(x)
    total = t.cumsum(e.negative(y), axis=0)
    both = Both([t.scatter_add(total, e.tanh(given("u", M, 4)), i, axes=(0,)), e.add(total, y)])
    rng = np.random.default_rng(7)
    arrays = {"x": some(rng, (9, 4)), "u": some(rng, (5, 4)), "i": np.array([0, -1, 8, 0, 3])}
    both.agree([arrays[p.attrs["name"]] for p in both.params], (9, 5), 16)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_signs_of_determinants_that_are_not_finite(bad: float) -> None:
    """They are NumPy's, also where factors are shared with a solution."""
    a, b = gc.tensor("a", {"row": None, "col": "row"}), gc.tensor("b", {"row": None})
    outputs = [*gc.linalg.slogdet(a), gc.linalg.det(a), gc.linalg.solve(a, b, check=False)]
    for rows in ([[bad]], [[-2.0, 0.0], [0.0, bad]], [[0.0, 1.0], [bad, 0.0]]):
        if np.isnan(bad) and rows[0][0] == 0:
            continue  # which row comes first is not defined then
        matrix = np.array(rows)
        with np.errstate(invalid="ignore"):
            wanted = *np.linalg.slogdet(matrix), np.linalg.det(matrix)
        for native in (True, False):
            found = gc.compile([a, b], outputs, native=native)(matrix, matrix[0])
            np.testing.assert_array_equal(found[:3], wanted)
        alone = gc.compile([a], outputs[:3], native=True)(matrix)
        np.testing.assert_array_equal(alone, wanted)
