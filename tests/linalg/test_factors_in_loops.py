"""A matrix that is the same at all steps of a loop is factored once, before the loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore import linalg as L

T = gc.Tensor
Step = Callable[[T, T], T]
N = 4
A = gc.tensor("A", {"row": N, "col": N})
B = gc.tensor("b", {"t": 3, "row": N})
EYE = gc.eye(("row", "col"), shape=N)
FACTORS = {"lu_factor", "cholesky", "solve", "inv", "det", "slogdet"}


def solved(a: T, b: T, **how: Any) -> T:
    """The solution, along the rows."""
    x = L.solve(a, b, **how)
    return x.rename(col="row") if "col" in x.dims else x


def definite(a: T) -> T:
    return L.matrix_transpose(gc.dot(a, a.rename(row="other"), dim="col").rename(other="col")) + EYE


def inner(a: T, u: T) -> T:
    """A loop in the loop."""
    return gc.scan(lambda v, k: (gc.tanh(solved(a, v) + k), None), u, gc.constant([0.1, 0.2], "k"))[
        0
    ]


def counted(a: T, u: T) -> T:
    step = lambda state: (state[0] + 1, gc.sin(solved(a, state[1])))
    return gc.while_loop(lambda state: state[0] < 2, step, (0, u))[1]


STEPS: dict[str, Step] = {
    "solve": solved,
    "transposed": lambda a, u: solved(a, u.rename(row="col"), dims=("col", "row")),
    "both": lambda a, u: solved(a, solved(a, u).rename(row="col"), dims=("col", "row")),
    "unchecked": lambda a, u: solved(a, u, check=False),
    "of a product": lambda a, u: solved(EYE - 0.1 * a, u),
    "constant": lambda a, u: solved(gc.constant(np.eye(N) + 0.1, ("row", "col")), u) * a.sum(),
    "inverse": lambda a, u: gc.dot(L.inv(a), u, dim="row").rename(col="row"),
    "with determinant": lambda a, u: solved(a, u) * gc.tanh(L.slogdet(a).logabsdet),
    "definite": lambda a, u: solved(definite(a), u),
    "factor": lambda a, u: L.cho_solve(L.cholesky(definite(a)), u),
    "nested": inner,
    "while": counted,
    "checkpoint": lambda a, u: gc.checkpoint(solved)(a, u),
    "branch": lambda a, u: gc.cond(u.sum() > 0, lambda: solved(a, u), lambda: solved(a, 2 * u)),
    "branch in a checkpoint": lambda a, u: gc.checkpoint(STEPS["branch"])(a, u),
    "one branch": lambda a, u: gc.cond(u.sum() > 0, lambda: u * a.sum(), lambda: solved(a, u)),
}
NATIVE = {"solve", "both", "of a product", "with determinant", "nested", "while", "branch"}


def in_scan(step: Step, a: T, b: T) -> T:
    def body(u: T, e: T) -> tuple[T, T]:
        new = gc.tanh(step(a, u + e))
        return new, new.sum()

    last, sums = gc.scan(body, gc.zeros({"row": N}), b, dim="t")
    return (last**2).sum() + sums.sum()


def by_hand(step: Step, a: T, b: T) -> T:
    u, total = gc.zeros({"row": N}), gc.constant(0.0)
    for t in range(3):
        u = gc.tanh(step(a, u + b.isel(t=t)))
        total = total + u.sum()
    return (u**2).sum() + total


def factorisations(f: gc.Compiled) -> Counter[str]:
    """How often each op that factors a matrix is in the finished graph, and in loops of it."""
    graph = f.stages["optimized"]
    found = Counter(node.op.name for node in graph.every_node() if node.op.name in FACTORS)
    outside = Counter(node.op.name for node in graph.nodes() if node.op.name in FACTORS)
    return found + Counter({f"{name} in a loop": n for name, n in (found - outside).items()})


@pytest.mark.parametrize("name", STEPS)
def test_as_written_out(name: str) -> None:
    """Values and gradients, which solve with the same factors."""
    step, rng = STEPS[name], np.random.default_rng(0)
    asked = [[y, *gc.grad(y, [A, B])] for y in (in_scan(step, A, B), by_hand(step, A, B))]
    f, g = (gc.compile([A, B], ys, native=False) for ys in asked)
    assert sum(factorisations(f).values()) <= 1, factorisations(f)
    a, b = rng.normal(size=(N, N)) + 3 * np.eye(N), rng.normal(size=(3, N))
    wanted = g(a, b)
    for native in (False, True) if name in NATIVE else (False,):
        found = gc.compile([A, B], asked[0], native=native)(a, b)
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, 1e-9, 1e-12)
    way, h = rng.normal(size=(N, N)), 1e-5
    slope = (f(a + h * way, b)[0] - f(a - h * way, b)[0]) / (2 * h)
    np.testing.assert_allclose((wanted[1] * way).sum(), slope, 1e-6, 1e-8)


@pytest.mark.parametrize("native", [False, True])
def test_a_singular_matrix(native: bool) -> None:
    """An error of the user's `solve`, but none where there is no step; not finite, it gives nan."""
    b = gc.tensor("b", {"t": None, "row": N})
    y, _ = gc.scan(lambda u, e: (solved(A, u + e), None), gc.zeros({"row": N}), b, dim="t")
    f = gc.compile([A, b], [y, gc.grad(y.sum(), A)], native=native)
    assert factorisations(f) == {"lu_factor": 1}
    line = solved.__code__.co_firstlineno + 2
    with pytest.raises(gc.GraphError, match=rf"solve at test_factors_in_loops.py:{line}.*singular"):
        f(np.ones((N, N)), np.ones((2, N)))
    value = gc.compile([A, b], y, native=native)
    for x in f(np.ones((N, N)), np.ones((0, N))):
        np.testing.assert_array_equal(x, np.zeros_like(x))
    lost = np.ones((N, N))
    lost[0, 0] = np.nan
    for a, right in ((lost, 1), (np.diag([np.inf, 1, 0, 0]), 1), (np.ones((N, N)), np.nan)):
        assert np.isnan(value(a, np.full((1, N), right))).all()


def test_shared_factors_of_what_is_not_finite() -> None:
    """Solves that share factors raise for the same values as one alone."""
    b = gc.tensor("b", {"row": N})
    y = solved(A, b)
    for native in (False, True):
        f = gc.compile([A, b], [y, solved(A, y)], native=native)
        assert factorisations(f) == {"lu_factor": 1}
        for a, right in ((np.diag([np.nan, 1, 0, 0]), 1), (np.ones((N, N)), np.nan)):
            assert np.isnan(f(a, np.full(N, right))).all()
        with pytest.raises(gc.GraphError, match="singular"):
            f(np.ones((N, N)), np.ones(N))


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_dtypes(dtype: str, native: bool) -> None:
    a = gc.tensor("a", {"row": N, "col": N}, dtype=dtype)
    b = gc.tensor("b", {"t": 5, "row": N}, dtype=dtype)
    start = gc.zeros({"row": N}, dtype=dtype)
    y, _ = gc.scan(lambda u, e: (solved(a, u + e), None), start, b, dim="t")
    f = gc.compile([a, b], y, native=native)
    assert factorisations(f) == {"lu_factor": 1}
    rng = np.random.default_rng(0)
    m, bs = (rng.normal(size=(2, *x.shape)) for x in (a, b))
    m, bs = ((x[0] + 1j * x[1] if dtype[0] == "c" else x[0]).astype(dtype) for x in (m, bs))
    u = np.zeros(N, dtype)
    for e in bs:
        u = np.linalg.solve(m, u + e)
    assert f(m, bs).dtype == dtype
    np.testing.assert_allclose(f(m, bs), u, 1e-3 if dtype == "float32" else 1e-10)


def test_ill_conditioned() -> None:
    """As exact as LAPACK's solution: the residual is small, however far off the solution."""
    matrix = 1 / (np.arange(8)[:, None] + np.arange(8) + 1)
    a, b = gc.tensor("a", {"row": 8, "col": 8}), gc.tensor("b", {"t": None, "row": 8})
    _, x = gc.scan(
        lambda u, e: (gc.tanh(u + e), solved(a, u + e)), gc.zeros({"row": 8}), b, dim="t"
    )
    found = gc.compile([a, b], x, native=False)(matrix, np.eye(8))
    u = np.zeros(8)
    for e, x in zip(np.eye(8), found, strict=True):
        assert np.abs(matrix @ x - (u + e)).max() <= 1e-14 * np.abs(matrix).sum() * np.abs(x).max()
        u = np.tanh(u + e)


def test_matrices_that_change_are_factored_at_each_step() -> None:
    """Small ones of a batch as well: NumPy solves them all in one call."""
    _, y = gc.scan(lambda u, e: (gc.sin(u), solved(A * u, e)), gc.constant(1.0), B, dim="t")
    assert factorisations(gc.compile([A, B], y, native=False)) == {"solve": 1, "solve in a loop": 1}
    many = gc.tensor("many", {"batch": 5, "row": N, "col": N})
    start = gc.zeros({"batch": 5, "row": N})
    y, _ = gc.scan(lambda u, e: (solved(many, u + e), None), start, B, dim="t")
    f = gc.compile([many, B], y, native=False)
    assert factorisations(f) == {"solve": 1, "solve in a loop": 1}
