"""Edges of norms, weighted statistics, statistics of two tensors and missing values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray

import graphcore as gc

NAN, INF = np.nan, np.inf
ORDERS = (2, 1, 3, 4, 1.5, 0.5, -1, 0, INF, -INF)


def line(name: str = "x", dtype: str = "float64") -> gc.Tensor:
    return gc.tensor(name, {"t": None}, dtype=dtype)


def run(y: Any, *given: Any) -> Any:
    arrays = [np.asarray(v) for v in given]
    xs = [line(f"x{i}", v.dtype.name) for i, v in enumerate(arrays)]
    return gc.compile(xs, y(*xs))(*arrays)


def derivatives(y: Any, *given: Any) -> Any:
    """The gradient by the first, and that of its square."""
    xs = [line(f"x{i}") for i in range(len(given))]
    slope = gc.grad(y(*xs), xs[0])
    return gc.compile(xs, [slope, gc.grad((slope * slope).sum(), xs[0], disconnected="zero")])(
        *map(np.asarray, given)
    )


@pytest.mark.parametrize("order", [2, 3, 1.5, 4, -1, -2])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_norms_do_not_overflow(order: float, dtype: str) -> None:
    values = np.array([3.0, -4.0, 1.0])
    wanted = np.linalg.norm(values, order)
    limits = np.finfo(dtype)
    for scale in (1, limits.max / 8, limits.tiny, limits.smallest_subnormal * 4):
        given = (values * scale).astype(dtype)
        assert run(lambda x: gc.norm(x, ord=order), given) == pytest.approx(
            float(wanted * scale), rel=50 * float(limits.eps), abs=float(limits.smallest_subnormal)
        )
    x = line(dtype=dtype)
    slope = gc.compile([x], gc.grad(gc.norm(x, ord=order), x))
    for scale in (limits.max / 8, limits.tiny * 2**12):
        found = slope((values * scale).astype(dtype))
        np.testing.assert_allclose(found, slope(values.astype(dtype)), rtol=20 * limits.eps)


def test_norms_are_as_exact_as_plain_ones(machine_code: bool) -> None:
    """Scaling by powers of 2 rounds nothing; machine code adds squares without rounding each."""
    for values in ([5.0, 12.0], [8.0, 15.0], [1e-3, 0.7, 12345.678]):
        found, plain = run(gc.norm, values), np.sqrt(np.sum(np.square(values)))
        np.testing.assert_array_max_ulp(found, plain, int(machine_code))


@pytest.mark.parametrize("order", ORDERS)
def test_norm_at_zero(order: float) -> None:
    """The derivative of zeros is 0, to the second order; so is all of it where the norm is 0."""
    if order == 0:
        assert run(lambda x: gc.norm(x, ord=0), [0.0, 3.0, NAN]) == 2
        return
    for given in (np.zeros(3), np.array([0.0, 2.0, 0.0])):
        value = run(lambda x: gc.norm(x, ord=order), given)
        assert value == (0 if order < 0 or not given.any() else 2)
        first, second = derivatives(lambda x: gc.norm(x, ord=order), given)
        assert first[0] == first[2] == 0
        assert first[1] == (1 if value else 0)
        np.testing.assert_allclose(second, 0, atol=1e-14)


def test_norm_of_nothing_and_of_nan() -> None:
    for order in ORDERS:
        assert run(lambda x, order=order: gc.norm(x, ord=order), []) == (INF if order < 0 else 0)
        if order:
            found = run(lambda x, order=order: gc.norm(x, ord=order), [1.0, NAN])
            assert np.isnan(found)
    assert run(lambda x: gc.norm(x, skipna=True), [3.0, NAN, 4.0]) == 5
    for order in (2, 3, 0.5):
        assert run(lambda x, order=order: gc.norm(x, ord=order), [1.0, -INF]) == INF
    assert run(gc.norm, np.array([3, 4], "int8")) == 5


@pytest.mark.parametrize("order", ORDERS)
def test_norm_of_complex(order: float) -> None:
    values = np.array([3 + 4j, 1 - 1j, 2j])
    found = run(lambda x: gc.norm(x, ord=order), values)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.linalg.norm(values, order), rtol=1e-14)
    if order in (2, 3):
        x = line(dtype="complex128")
        slope = gc.compile([x], gc.grad(gc.norm(x, ord=order), x))(values)
        n = np.linalg.norm(values, order)
        wanted = np.conj(values) * np.abs(values) ** (order - 2) / n ** (order - 1)
        np.testing.assert_allclose(slope, wanted, rtol=1e-13)
        np.testing.assert_array_equal(
            gc.compile([x], gc.grad(gc.norm(x, ord=order), x))(np.zeros(2, complex)), 0
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "sum_of_squares", "sum_of_weights"])
@pytest.mark.parametrize("skipna", [False, True])
def test_weights_of_zero_and_nan(name: str, skipna: bool) -> None:
    """As xarray: weights of 0 leave sums 0 and means nan, and no nan reaches a derivative."""
    values = np.array([[1.0, NAN, 3.0], [NAN, NAN, NAN], [1.0, 2.0, 4.0]])
    weights = np.array([[1.0, 2.0, 0.5], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    options = {} if name == "sum_of_weights" else {"skipna": skipna}
    x, w = (gc.tensor(n, {"row": None, "t": None}) for n in "xw")
    y = getattr(x.weighted(w), name)("t", **options)
    X, W = (xarray.DataArray(v, dims=("row", "t")) for v in (values, weights))
    wanted = getattr(X.weighted(W), name)("t", **options).values
    if name == "sum_of_squares":
        wanted[-1] = 0  # whether or not nan is skipped
    loss = gc.where(y.isnull(), 0.0, y * y).sum()
    slopes = gc.grad(loss, [x, w], disconnected="zero")
    found, dx, dw = gc.compile([x, w], [y, *slopes])(values, weights)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    sound = slice(None) if skipna else slice(2, None)  # rows without nan that takes part
    assert np.isfinite([dx[sound], dw[sound]]).all()
    if skipna:
        assert (dx[np.isnan(values)] == 0).all()


def test_weighted() -> None:
    x, w = line(), gc.tensor("w", {"t": None}, dtype="bool")
    assert repr(x.weighted(w)).startswith("<Weighted <Tensor x: f64[t]> by")
    f = gc.compile([x, w], [x.weighted(w).sum("t"), x.weighted(w).sum_of_weights()])
    np.testing.assert_array_equal(f(np.arange(3.0), np.array([True, False, True])), [2, 2])
    whole = gc.average(line(dtype="int8"), weights=line("w", "int8"))
    assert whole.dtype == np.float64


@pytest.mark.parametrize("skipna", [False, True])
def test_weighted_quantile(skipna: bool) -> None:
    """What weighs nothing has no say, and of nothing at all the quantile is nan."""
    values = np.array([[1.0, NAN, 3.0, 9.0], [1.0, 2.0, 3.0, INF], [1.0, 2.0, 2.0, 4.0]])
    weights = np.array([[1.0, 2.0, 0.5, 0.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    x, w = (gc.tensor(n, {"row": 3, "t": None}) for n in "xw")
    y = x.weighted(w).quantile([0.0, 0.3, 1.0], dim="t", skipna=skipna)
    X, W = (xarray.DataArray(v, dims=("row", "t")) for v in (values, weights))
    wanted = X.weighted(W).quantile([0.0, 0.3, 1.0], dim="t", skipna=skipna)
    loss = gc.where(y.isnull(), 0.0, y * y).sum()
    found, dx, dw = gc.compile([x, w], [y, *gc.grad(loss, [x, w])])(values, weights)
    assert y.dims == wanted.dims
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    assert np.isfinite([dx, dw]).all()
    assert (dx[weights == 0] == 0).all()
    q = gc.tensor("q", {"row": 3})
    f = gc.compile([x, w, q], x.weighted(w).quantile(q, "t"))
    found = f(np.nan_to_num(values), np.ones((3, 4)), np.array([0.5, 1.0, 2.0]))
    np.testing.assert_allclose(found, [2.0, np.finfo(float).max, NAN])
    np.testing.assert_array_equal(f(np.zeros((3, 0)), np.zeros((3, 0)), np.ones(3)), NAN)


@pytest.mark.parametrize("ddof", [0, 1, 2, 3, 4])
def test_cov_is_var(ddof: int) -> None:
    values = np.array([1.0, 4.0, -2.0])
    found = run(lambda x: gc.cov(x, x, ddof=ddof), values)
    np.testing.assert_allclose(found, values.var(ddof=ddof) if ddof < 3 else NAN)
    holed = np.array([1.0, NAN, 4.0, -2.0])
    found = run(lambda x: gc.cov(x, x, ddof=ddof, skipna=True), holed)
    np.testing.assert_allclose(found, values.var(ddof=ddof) if ddof < 3 else NAN)
    assert np.isnan(run(lambda x: gc.cov(x, x, ddof=ddof), holed))


def test_cov_of_complex_and_of_dims_that_lack() -> None:
    z, y = np.array([1 + 2j, 3 - 1j, 0.5j]), np.array([1.0, 2.0, 5.0])
    found = run(lambda z, y: gc.cov(z, y), z, y)
    np.testing.assert_allclose(found, np.sum(np.conj(z - z.mean()) * (y - y.mean())) / 2)
    np.testing.assert_allclose(run(lambda z: gc.corr(z, z), z), 1)
    x, c = gc.tensor("x", {"row": 2, "t": None}), gc.tensor("c", {"row": 2})
    f = gc.compile([x, c], [gc.cov(x, c, ["row", "t"]), gc.cov(x, c, "t")])
    values, level = np.random.default_rng(0).normal(size=(2, 5)), np.array([1.0, 3.0])
    one, two = f(values, level)
    repeated = np.broadcast_to(level[:, None], values.shape).ravel()
    np.testing.assert_allclose(one, np.cov(values.ravel(), repeated)[0, 1])
    np.testing.assert_allclose(two, 0, atol=1e-15)


def test_corr_of_a_constant() -> None:
    """Nan, as xarray's, and no nan reaches a derivative."""
    x, y = line(), line("y")
    r = gc.corr(x, y)
    loss = gc.where(r.isnull(), 0.0, r)
    f = gc.compile([x, y], [r, *gc.grad(loss, [x, y])])
    for found, wanted in zip(f(np.ones(3), np.arange(3.0)), [NAN, 0, 0], strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_fills() -> None:
    holes = np.array([NAN, 1.0, NAN, NAN, 4.0, NAN])
    np.testing.assert_array_equal(run(lambda x: x.ffill("t"), holes), [NAN, 1, 1, 1, 4, 4])
    np.testing.assert_array_equal(run(lambda x: x.bfill("t"), holes), [1, 1, 4, 4, 4, NAN])
    found = run(lambda x: x.ffill("t", limit=1), holes)
    np.testing.assert_array_equal(found, [NAN, 1, 1, NAN, 4, 4])
    first, _ = derivatives(lambda x: (x.ffill("t").fillna(0) ** 2).sum(), holes)
    np.testing.assert_array_equal(first, [0, 6, 0, 0, 16, 0])
    whole = gc.tensor("n", {"t": 3}, dtype="int64")
    assert whole.ffill("t") is whole
    assert run(lambda n: n.fillna(0), np.array([1, 2])).dtype == np.int64
    assert run(lambda x: x.ffill("t"), np.zeros(0)).shape == (0,)


def test_isin() -> None:
    for among in ([1, 2], np.array([[1], [2]]), gc.constant([2, 1], "t"), {1: 0, 2: 0}.keys()):
        given = list(among) if isinstance(among, type({}.keys())) else among
        found = run(lambda n, given=given: n.isin(given), np.array([0, 1, 2, 3]))
        np.testing.assert_array_equal(found, [False, True, True, False])
    np.testing.assert_array_equal(run(lambda x: x.isin([]), [1.0, NAN]), [False, False])
    np.testing.assert_array_equal(run(lambda x: x.isin([NAN, 1.0]), [1.0, NAN]), [True, False])
    assert run(lambda x: x.isin(2), [1.0, 2.0]).tolist() == [False, True]


def test_cross_of_unknown_sizes_wants_3_at_the_call() -> None:
    x, y = gc.tensor("x", {"t": None, "row": 2}), gc.tensor("y", {"t": "m"})
    z = gc.cross(x, y, "t")
    f = gc.compile([x, y], [z, gc.grad((z * z).sum(), x)])
    a, b = np.arange(6.0).reshape(3, 2), np.array([1.0, -2.0, 0.5])
    product, slope = f(a, b)
    np.testing.assert_allclose(product, np.cross(a, b[:, None], axis=0))
    np.testing.assert_allclose(slope, 2 * np.cross(b[:, None], product, axis=0))
