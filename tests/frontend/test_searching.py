"""Bins, points and positions: edges, nan, infinities, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc

NAN, INF = np.nan, np.inf


def run(function: Any, *arrays: Any) -> Any:
    """A function of tensors with dims `t`, or `u, t`, each of a size of its own."""
    dims = (), ("t",), ("u", "t")
    xs = [
        gc.tensor(f"x{i}", {d: f"{d}{i}" for d in dims[np.ndim(a)]}, dtype=np.asarray(a).dtype)
        for i, a in enumerate(arrays)
    ]
    return gc.compile(xs, function(*xs))(*map(np.asarray, arrays))


@pytest.mark.parametrize("right", [False, True])
def test_digitize_at_the_edges(right: bool) -> None:
    x = [-INF, -1.0, 0.0, 0.5, 1.0, 1.5, INF, NAN]
    for edges in ([0.0, 1.0], [1.0, 0.0], [0.0, 0.0, 1.0], [0.5], [-INF, 0, INF], [2, 1, 1]):
        found = run(lambda x, e=edges: gc.digitize(x, e, right=right), x)
        np.testing.assert_array_equal(found, np.digitize(x, edges, right))


def test_interp_agrees_with_numpy() -> None:
    """At random places, at the points, beyond them, and nan, which NumPy loses if n is 1."""
    random = np.random.default_rng(0)
    x, xp, fp = (gc.tensor(n, {"t": s}) for n, s in (("x", None), ("xp", "n"), ("fp", "n")))
    f = gc.compile(
        [x, xp, fp], [gc.interp(x, xp, fp, "t"), gc.interp(x, xp, fp, "t", left=-9, right=NAN)]
    )
    for n in (1, 2, 3, 10, 100):
        for step in (random.random(n) + 0.1, random.integers(1, 3, n)):
            known, values = np.cumsum(step), random.normal(size=n)
            at = np.concatenate(
                [known, random.uniform(-1, known[-1] + 1, 50), [-INF, INF, NAN][: 2 + (n > 1)]]
            )
            plain, ended = f(at, known, values)
            np.testing.assert_allclose(plain, np.interp(at, known, values), 1e-12, 1e-12)
            wanted = np.interp(at, known, values, left=-9, right=NAN)
            np.testing.assert_allclose(ended, wanted, 1e-12, 1e-12)
            inside = np.isin(at, known)
            np.testing.assert_array_equal(plain[inside], np.interp(at, known, values)[inside])


def test_interp_of_what_repeats_itself() -> None:
    """Points in any order; all operands have derivatives, the period as well."""
    random = np.random.default_rng(3)
    x, xp, fp = (gc.tensor(n, {"t": s}) for n, s in (("x", None), ("xp", "n"), ("fp", "n")))
    period = gc.tensor("period", {})
    y = gc.interp(x, xp, fp, "t", left=NAN, right=NAN, period=period)
    params = [x, xp, fp, period]
    f = gc.compile(params, [y, *gc.grad(y.sum(), params)])

    def wanted(*given: Any) -> Any:
        return np.interp(*given[:3], period=given[3])

    for n in (1, 2, 5, 30):
        given = [random.normal(size=20) * 5, random.normal(size=n) * 9, random.normal(size=n), -2.3]
        found, *slopes = f(*given)
        np.testing.assert_allclose(found, wanted(*given), 1e-11, 1e-12)
        for i, slope in enumerate(slopes):
            h = np.zeros_like(given[i])
            h[(0,) * h.ndim] = 1e-6
            ahead, behind = (wanted(*given[:i], given[i] + s * h, *given[i + 1 :]) for s in (1, -1))
            close = np.sum(ahead - behind) / 2e-6
            np.testing.assert_allclose(slope[(0,) * h.ndim], close, 1e-5, 1e-6)


def test_interp_of_infinite_values() -> None:
    at = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, NAN]
    found = run(lambda x: gc.interp(x, [0, 1, 2, 4], [1.0, INF, INF, -INF], "p"), at)
    np.testing.assert_array_equal(found, [1, INF, INF, INF, INF, NAN, NAN])


def test_interp_at_a_step_takes_the_right_side() -> None:
    found = run(lambda x: gc.interp(x, [0, 1, 1, 2], [0.0, 1.0, 5.0, 6.0], "p"), [0.5, 1.0, 1.5])
    assert found.tolist() == [0.5, 5, 5.5]


def test_slopes_of_interp() -> None:
    """To the right of a point; none beyond the ends, where the end itself counts."""
    x, xp, fp = (gc.tensor(n, {d: None}) for n, d in (("x", "t"), ("xp", "p"), ("fp", "p")))
    y = gc.interp(x, xp, fp, "p")
    f = gc.compile([x, xp, fp], gc.grad(y.sum(), [x, xp, fp]))
    known, values = np.array([0.0, 1.0, 3.0]), np.array([1.0, 2.0, 8.0])
    dx, _, dfp = f(np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0]), known, values)
    assert dx.tolist() == [0, 1, 1, 3, 3, 0, 0]
    assert dfp.tolist() == [2.5, 2, 2.5]
    _, dxp, _ = f(np.array([2.0]), known, values)
    assert dxp.tolist() == [0, -1.5, -1.5]


def test_interp_dtypes_and_dims() -> None:
    x = gc.tensor("x", {"row": 2, "t": 3}, dtype="float32")
    xp = gc.tensor("xp", {"row": 2, "p": 4}, dtype="float32")
    fp = gc.tensor("fp", {"p": 4, "channel": 5}, dtype="float32")
    y = gc.interp(x, xp, fp, "p")
    assert (y.dims, y.dtype) == (("row", "t", "channel"), np.float32)
    assert gc.interp(x, xp, fp.astype("complex64"), "p").dtype == np.complex64
    assert gc.interp(1, [0, 2], [0, 4], "p").dtype == np.float64


def test_nonzero_finds_what_numpy_finds() -> None:
    random = np.random.default_rng(1)
    x = gc.tensor("x", {"u": None, "t": None})
    f = gc.compile([x], gc.nonzero(x, 12, fill_value=-1))
    for shape in ((3, 4), (1, 1), (2, 20), (0, 3), (3, 0), (0, 0)):
        for density in (0, 0.3, 1):
            values = np.where(random.random(shape) < density, random.normal(size=shape), 0)
            found = f(values)
            for dim, wanted in zip(("u", "t"), np.nonzero(values), strict=True):
                some = wanted[:12]
                assert found[dim].tolist() == [*some.tolist(), *[-1] * (12 - len(some))]


def test_nonzero_indexes() -> None:
    x = gc.tensor("x", {"batch": 2, "u": 2, "t": 3})
    at = gc.nonzero(x, 3, dim=["u", "t"], name="k")
    assert {dim: i.dims for dim, i in at.items()} == {"u": ("batch", "k"), "t": ("batch", "k")}
    values = np.array([[[0.0, 1, 2], [3, 0, 4]], [[0, 0, 0], [5, 6, 7]]])
    assert gc.compile([x], x.isel(at))(values).tolist() == [[1, 2, 3], [5, 6, 7]]
    assert run(lambda x: gc.nonzero(x, 2)["t"], [NAN, 0.0, -0.0, 1.0]).tolist() == [0, 3]
    assert gc.nonzero(gc.tensor("b", (), dtype="bool"), 2) == {}


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 40])
@pytest.mark.parametrize("each", [(), (3,)])
def test_many_rows_are_searched_for_their_own_values(
    dtype: str, size: int, each: tuple[int, ...]
) -> None:
    """With ties, infinities and nan: as NumPy's search in each row."""
    random = np.random.default_rng(size)
    rows, values = (
        np.abs(np.round(2 * random.normal(size=(70, *shape)))) for shape in ((size,), each)
    )
    if dtype.startswith("float"):
        for at, value in enumerate((NAN, INF, -INF)):
            rows[at : at + 40 : 4, -1], values[at + 2 : at + 30 : 3] = value, value
    rows, values = np.sort(rows.astype(dtype), -1), values.astype(dtype)
    x = gc.tensor("x", {"row": None, "t": None}, dtype=dtype)
    v = gc.tensor("v", {"row": None, **({"each": None} if each else {})}, dtype=dtype)
    for side in ("left", "right"):
        found = gc.compile([x, v], gc.searchsorted(x, v, "t", side))(rows, values)
        wanted = [np.searchsorted(*pair, side) for pair in zip(rows, values, strict=True)]
        np.testing.assert_array_equal(found, wanted)
