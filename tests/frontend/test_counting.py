"""Counts at the edges of bins, what is dropped and what refused; different values with nan."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphcore as gc

NAN, INF = np.nan, np.inf


def run(function: Any, *arrays: Any) -> Any:
    """A function of tensors with dims `t`, or `u, t`."""
    dims = (), ("t",), ("u", "t")
    xs = [
        gc.tensor(f"x{i}", dict.fromkeys(dims[np.ndim(a)]), dtype=np.asarray(a).dtype)
        for i, a in enumerate(arrays)
    ]
    return gc.compile(xs, function(*xs))(*map(np.asarray, arrays))


def test_bins_of_no_integers_and_of_small_ones() -> None:
    assert run(lambda x: gc.bincount(x, 3), np.array([], int)).tolist() == [0, 0, 0]
    assert run(lambda x: gc.bincount(x, 3), np.array([2, 2], np.uint8)).tolist() == [0, 0, 2]


def test_bins_of_any_size_and_place() -> None:
    x = gc.tensor("x", {"u": 2, "t": None, "w": 3}, dtype="int64")
    assert gc.bincount(x, "n_bins", "t").dims == ("u", "bin", "w")
    assert gc.bincount(x, 4, ["w", "u"], name="class").dims == ("class", "t")
    weights = gc.tensor("weights", {"batch": 2, "t": None})
    assert gc.bincount(x, 4, weights=weights).dims == ("bin", "batch")
    assert gc.bincount(x, 4, "t", weights).dims == ("u", "bin", "w", "batch")


def test_weights_carry_derivatives() -> None:
    x, w = gc.tensor("x", {"t": None}, dtype="int64"), gc.tensor("w", {"t": None})
    scale = gc.arange(3.0, dim="bin")
    y = (gc.bincount(x, 3, weights=w) ** 2 * scale).sum()
    slope = gc.compile([x, w], gc.grad(y, w))(np.array([1, 2, 1]), np.array([1.0, 2.0, 3.0]))
    assert slope.tolist() == [8, 8, 8]


def test_histograms_agree_with_numpy() -> None:
    """Values on edges, outside, infinite and nan; bins of one value; integers."""
    random = np.random.default_rng(0)
    for x in (
        random.normal(size=50),
        random.integers(0, 9, 50),
        np.full(4, 3.5),
        np.append(random.normal(size=20), [NAN, INF, -INF, 1.0, -1.0]),
        np.linspace(-1, 1, 11),
    ):
        for bins, ends in (
            *((5, (-1, 1)), (10, (0.1, 0.7)), (3, (2, 2)), (1, (-0.0, 1e-3))),
            *((5, None), (4, np.array([-0.5, 0.5]))),
        ):
            if ends is None and not np.isfinite(x).all():
                continue
            found = run(lambda x, b=bins, e=ends: list(gc.histogram(x, b, range=e)), x)
            for ours, theirs in zip(found, np.histogram(x, bins, ends), strict=True):
                np.testing.assert_allclose(ours, theirs, 1e-12, 1e-12)
        for edges in ([-1, 0, 0, 1.0], [-INF, 0.0, INF], [0, 3, 8]):
            found = run(lambda x, e=edges: gc.histogram(x, e).counts, x)
            assert found.tolist() == np.histogram(x[~np.isnan(x)], edges)[0].tolist()


def test_edges_may_be_a_tensor() -> None:
    x, e = gc.tensor("x", {"u": 2, "t": 3}), gc.tensor("e", {"bin": None, "u": 2})
    counts, edges = gc.histogram(x, e, "t", density=True)
    assert counts.dims == ("u", "bin")
    assert edges is e
    X, E = np.array([[0.5, 1, 9], [1, 2, 3.0]]), np.array([[0, 1, 2], [0, 2, 3.0]]).T
    found = gc.compile([x, e], counts)(X, E)
    for row in range(2):
        np.testing.assert_allclose(found[row], np.histogram(X[row], E[:, row], density=True)[0])


def test_different_values_with_nan() -> None:
    x = [2.0, NAN, -INF, 2.0, NAN, 0.0, -0.0]
    found = run(lambda x: gc.unique_all(x, 6, fill_value=9)._asdict(), x)
    assert found["counts"].tolist() == [1, 2, 2, 2, 0, 0]
    np.testing.assert_array_equal(found["values"], [-INF, 0, 2, NAN, 9, 9])
    assert found["indices"].tolist() == [2, 5, 0, 1, 2, 2]
    assert found["inverse_indices"].tolist() == [2, 3, 0, 2, 3, 1, 1]
    np.testing.assert_array_equal(found["values"][:4], np.unique(x))


def test_more_values_than_asked_for_are_left_out() -> None:
    found = run(lambda x: list(gc.unique_all(x, 2)), [3, 1, 2, 1])
    assert [part.tolist() for part in found] == [[1, 2], [1, 2], [2, 0, 1, 0], [2, 1]]
    assert run(lambda x: gc.unique(x, 0), [3, 1]).tolist() == []


def test_nothing_is_different() -> None:
    none = np.zeros(0)
    assert run(lambda x: gc.unique(x, 2, fill_value=7), none).tolist() == [7, 7]
    assert run(lambda x: gc.unique_all(x, 2).counts, none).tolist() == [0, 0]


def test_dims_and_dtypes_of_different_values() -> None:
    x = gc.tensor("x", {"u": 2, "t": None, "w": 3}, dtype="int8")
    parts = gc.unique_all(x, 5, "t")
    new = ("u", "unique", "w")
    assert [part.dims for part in parts] == [new, new, x.dims, new]
    parts = gc.unique_all(x, 5, ["w", "u"], name="k")
    assert [part.dims for part in parts] == [("k", "t"), ("k", "t"), x.dims, ("k", "t")]
    assert parts.values.dtype == np.int8
    assert gc.unique(x, 5, fill_value=NAN).dtype == np.float64
    values = np.random.default_rng(1).integers(0, 3, (2, 4, 3)).astype("int8")
    found, inverse = gc.compile([x], [parts.values, parts.inverse_indices])(values)
    moved = inverse.transpose(1, 0, 2).reshape(4, 6)
    back = np.take_along_axis(found.T, moved, 1).reshape(4, 2, 3)
    np.testing.assert_array_equal(back.transpose(1, 0, 2), values)


def test_derivatives_go_to_the_first_of_equals() -> None:
    def slope(x: Any) -> Any:
        return run(
            lambda x: gc.grad((gc.unique(x, 2) * gc.arange(1.0, 3, dim="unique")).sum(), x), x
        )

    assert slope([5.0, 3.0, 5.0]).tolist() == [2, 1, 0]
    assert slope([5.0, 5.0]).tolist() == [3, 0]
