"""Triangular factors, and matrices applied to vectors that keep the name of their dim."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc


def factors() -> dict[str, tuple[gc.Tensor, tuple[str, str], bool]]:
    """Triangular matrices, their dims, rows first, and whether they are lower."""
    s = gc.tensor("s", {"row": 3, "col": 3})
    lu = gc.linalg.lu(s)
    return {
        "cholesky": (gc.linalg.cholesky(s), ("row", "col"), True),
        "upper cholesky": (gc.linalg.cholesky(s, upper=True), ("row", "col"), False),
        "transposed": (gc.linalg.cholesky(s).T, ("col", "row"), False),
        "renamed": (-gc.linalg.cholesky(s).rename(row="a", col="b"), ("a", "b"), True),
        "swapped": (gc.linalg.cholesky(s).rename(row="col", col="row"), ("col", "row"), True),
        "lu lower": (lu.lower, ("row", "pivot"), True),
        "lu upper": (lu.upper, ("pivot", "col"), False),
        "qr": (gc.linalg.qr(s).r, ("rank", "col"), False),
        "tril": (gc.tril(s), ("row", "col"), True),
        "triu": (gc.triu(s), ("row", "col"), False),
    }


@pytest.mark.parametrize("name", factors())
def test_the_other_triangle_of_a_factor_is_refused(name: str) -> None:
    factor, dims, lower = factors()[name]
    for order, triangle in ((dims, lower), (dims[::-1], not lower)):
        b = gc.tensor("b", {order[0]: 3})
        found = gc.linalg.solve_triangular(factor, b, order, lower=triangle)
        assert found.dims == (order[1],)
        with pytest.raises(gc.GraphError, match="triangle would be read") as caught:
            gc.linalg.solve_triangular(factor, b, order, lower=not triangle)
        assert f"write lower={triangle}" in str(caught.value)


def test_one_triangle_of_other_matrices_is_read() -> None:
    s, b = gc.tensor("s", {"row": 3, "col": 3}), gc.tensor("b", {"row": 3})
    for a in (s, gc.tril(s, k=1), gc.triu(gc.linalg.cholesky(s)), gc.linalg.qr(s).q):
        for lower in (False, True):
            right = b if "row" in a.dims else b.rename(row="rank")
            gc.linalg.solve_triangular(a, right, a.dims, lower=lower)


def test_apply_keeps_the_name_of_the_dim_for_matrices_that_are_not_square() -> None:
    a, x = gc.tensor("a", {"new": 2, "state": 3}), gc.tensor("x", {"t": None, "state": 3})
    y = gc.linalg.apply(a, x, ("new", "state"))
    assert y.dims == ("t", "state")
    assert y.sizes["state"] == 2
    m, v = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(gc.compile([a, x], y)(m, v), v @ m.T)
    wide = gc.linalg.apply(a.rename(state="s"), x, ("new", "s"), along="state")
    slope = gc.grad((wide**2).sum(), x)
    np.testing.assert_allclose(gc.compile([a, x], slope)(m, v), 2 * v @ m.T @ m)
