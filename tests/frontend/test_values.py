"""Values, through the whole compiler, as xarray and NumPy have them."""

import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc

RANDOM = np.random.default_rng(0)
SIZES = {"a": 2, "b": 3, "c": 4}
VALUES = RANDOM.normal(size=(2, 3, 4)).round(1)


def compute(function, *arrays, unknown=True):
    """`function` of inputs with the dims of these arrays, of unknown or known size."""
    inputs = [
        gc.tensor(f"x{i}", (dict.fromkeys if unknown else dict)(array.sizes), dtype=array.dtype)
        for i, array in enumerate(arrays)
    ]
    result = function(*inputs)
    return result.dims, gc.compile(inputs, result)(*[array.values for array in arrays])


def check(function, *arrays, wanted=None, known=False):
    expected = function(*arrays) if wanted is None else wanted
    for unknown in (False,) if known else (False, True):
        dims, values = compute(function, *arrays, unknown=unknown)
        assert dims == expected.dims
        assert values.dtype == expected.dtype
        np.testing.assert_allclose(values, expected.values, rtol=1e-14)


X = xarray.DataArray(VALUES, dims=tuple(SIZES))
Y = xarray.DataArray(RANDOM.normal(size=(4, 2)), dims=("c", "a"))

SAME = {
    "transpose": lambda x: x.transpose("c", ..., "b"),
    "swap": lambda x: x.rename(a="b", b="a"),
    "expand_dims": lambda x: x.expand_dims(z=2, y=3),
    "stack": lambda x: (
        x.stack(z=("c", "a")).drop_vars(["z", "c", "a"])
        if isinstance(x, xarray.DataArray)
        else x.stack(z=("c", "a"))
    ),
    "slices": lambda x: x.isel(a=slice(None, None, -1), c=slice(-3, None, 2)),
    "mixed": lambda x: x.isel(a=-1, b=[2, 0, 2], c=slice(1, 3)),
    "pointwise": lambda x: x.isel(b=("new", [0, -1]), c=("new", [3, 2])),
    "pair": lambda x: x.isel(c=(("p", "q"), [[0, 1, 2], [3, 3, -4]])),
    "shared": lambda x: x.isel(c=("a", [3, 1])),
    "shared and sliced": lambda x: x.isel(c=("b", [3, 1]), b=slice(1, 3)),
    "std": lambda x: x.std(["c", "a"], ddof=1),
    "prod": lambda x: x.prod("b"),
    "argmax": lambda x: x.argmax("c"),
    "cumsum": lambda x: x.cumsum(),
    "cumprod": lambda x: x.cumprod(["c", "a"]),
    "where": lambda x: x.where(x.isel(b=0) > 0),
    "where other": lambda x: x.where(x > 0, -1),
    "clip": lambda x: x.clip(-0.5, 0.5),
    "round": lambda x: x.round(1),
    "comparison": lambda x: (x > 0) & (x.isel(a=0) < 1) | ~(x == x),
    "divmod": lambda x: x // 0.3 + x % 0.3,
}
PAIRS = {
    "add": lambda x, y: x + 2 * y,
    "dot": lambda x, y: x.dot(y),
    "broadcast_like": lambda x, y: x.broadcast_like(y),
    "where": lambda x, y: x.where(y > 0, y),
    "power": lambda x, y: abs(x) ** y,
}


@pytest.mark.parametrize("name", SAME)
def test_as_xarray(name):
    check(SAME[name], X)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_as_xarray(name):
    check(PAIRS[name], X, Y)
    check(PAIRS[name], Y, X)


def test_masks():
    check(lambda x: x.isel(c=[True, False, False, True], a=[False, True]), X, known=True)


def test_concat():
    wanted = xarray.concat([X, X.transpose("c", "a", "b"), X], "b")
    check(lambda x: gc.concat([x, x.transpose("c", "a", "b"), x], "b"), X, wanted=wanted)
    lacking = xarray.concat([Y, X.isel(b=[1, 0])], "b").transpose("c", "a", "b")
    check(lambda x, y: gc.concat([y, x[{"b": [1, 0]}]], "b"), X, Y, wanted=lacking)


def test_unstack_undoes_stack():
    check(
        lambda x: x.stack(z=("c", "a")).unstack(z={"c": None, "a": 2}).transpose("a", "b", "c"),
        X,
        wanted=X,
    )


def test_einsum():
    wanted = xarray.DataArray(np.einsum("abc,ca->cb", VALUES, Y.values), dims=("c", "b"))
    check(lambda x, y: gc.einsum("a c, c a -> c ...", x, y), X, Y, wanted=wanted)


def test_take_along():
    label = xarray.DataArray([2, 0], dims="a")
    wanted = xarray.DataArray(VALUES[[0, 1], [2, 0]], dims=("a", "c"))
    check(lambda x, i: gc.take_along(x, i, "b"), X, label, wanted=wanted)
    table = xarray.DataArray([[2, 0], [1, 1]], dims=("p", "q"))
    check(lambda x, i: gc.take(x, i, "b"), X, table, wanted=X.isel(b=table))


@settings(max_examples=60)
@given(
    st.one_of(st.none(), st.integers(-5, 5)),
    st.one_of(st.none(), st.integers(-5, 5)),
    st.sampled_from([None, 1, 2, -1, -3]),
    st.integers(0, 4),
)
def test_slices_at_every_size(start, stop, step, size):
    check(lambda x: x.isel(t=slice(start, stop, step)), xarray.DataArray(np.arange(size), dims="t"))


EDGES = np.array([0.0, -0.0, 0.5, 1.5, -2.5, 2.675, 1e300, -3.7, np.inf, -np.inf, np.nan])
UNARY = [
    *("round", "around", "fix", "fabs", "deg2rad", "rad2deg", "degrees", "radians", "sinc", "real"),
    *("imag", "conj", "angle", "nan_to_num", "positive"),
]


@pytest.mark.parametrize("name", UNARY)
def test_formulas_as_numpy(name):
    with np.errstate(all="ignore"):
        kinds = EDGES, EDGES.astype("f4"), np.arange(-3, 4)
    for values in kinds:
        with np.errstate(all="ignore"):
            wanted = (np.trunc if name == "fix" else getattr(np, name))(values)
            _, found = compute(getattr(gc, name), xarray.DataArray(values, dims="t"))
        assert found.dtype == wanted.dtype
        rtol = 1e-6 if wanted.dtype == np.float32 else 1e-14
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-15)
        there = ~np.isnan(wanted)  # the sign of nan means nothing
        np.testing.assert_array_equal(np.signbit(found[there]), np.signbit(wanted[there]))


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2"])
def test_round(decimals, dtype):
    values = np.array([12.345, -15, 25, 0.25, 149.5, 250]).astype(dtype)
    _, found = compute(lambda x: gc.round(x, decimals), xarray.DataArray(values, dims="t"))
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, np.round(values, decimals))


def test_complex_parts():
    values = RANDOM.normal(size=5) + 1j * RANDOM.normal(size=5)
    array = xarray.DataArray(values, dims="t")
    for name in ("real", "imag", "conj", "angle", "abs"):
        _, found = compute(getattr(gc, name), array)
        np.testing.assert_allclose(found, getattr(np, name)(values), rtol=1e-15)


@pytest.mark.parametrize("name", ["modf", "divmod"])
def test_pairs_of_results(name):
    args = (2.0,) if name == "divmod" else ()
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(EDGES, *args)
        x = gc.tensor("x", {"t": None})
        found = gc.compile([x], getattr(gc, name)(x, *args))(EDGES)
    for ours, theirs in zip(found, wanted):
        np.testing.assert_array_equal(ours, theirs)


def test_isclose():
    a, b = (
        np.array([1, 1, np.inf, np.inf, np.nan, 0]),
        np.array([1 + 1e-9, 1.1, np.inf, 1, np.nan, 0]),
    )
    x, y = gc.tensor("x", {"t": None}), gc.tensor("y", {"t": None})
    for equal_nan in (False, True):
        f = gc.compile([x, y], gc.isclose(x, y, equal_nan=equal_nan))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(f(a, b), np.isclose(a, b, equal_nan=equal_nan))


def test_float_power():
    x = gc.tensor("x", {"t": None}, dtype="int64")
    found = gc.compile([x], gc.float_power(x, -2))(np.array([1, 2, -4]))
    np.testing.assert_array_equal(found, [1, 0.25, 0.0625])


def test_creation():
    x = gc.tensor("x", {"t": None})
    n = x.sizes["t"]
    made = {
        "arange": (gc.arange(n, dim="t"), np.arange(7)),
        "arange step": (gc.arange(1, n, 3, dim="s"), np.arange(1, 7, 3)),
        "arange down": (gc.arange(n, 0, -2, dim="s"), np.arange(7, 0, -2)),
        "linspace": (gc.linspace(-1, 2, n, dim="t"), np.linspace(-1, 2, 7)),
        "open": (gc.linspace(-1, 2, n, dim="t", endpoint=False), np.linspace(-1, 2, 7, False)),
        "eye": (gc.eye({"t": n, "s": 3}, k=1), np.eye(7, 3, 1)),
        "full": (gc.full({"t": n}, 5, "int8"), np.full(7, 5, "int8")),
        "size": (x.sizes["t"] * gc.ones_like(x), np.full(7, 7.0)),
    }
    found = gc.compile([x], {name: tensor for name, (tensor, _) in made.items()})(np.ones(7))
    for name, (_, wanted) in made.items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-15, err_msg=name)
        assert found[name].dtype == wanted.dtype, name


def test_comparisons_out_of_range():
    values = np.array([-128, 0, 127], "int8")
    x = gc.tensor("x", {"t": None}, dtype="int8")
    found = gc.compile([x], [x < 300, x > 300, x == -1000, x != 2**70])(values)
    wanted = [values < 300, values > 300, values == -1000, values != 2**70]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_softmax_family(name):
    special = pytest.importorskip("scipy.special")
    for dim, axis in (("b", 1), (None, None), (["a", "c"], (0, 2))):
        x = gc.tensor("x", SIZES)
        found = gc.compile([x], getattr(gc.special, name)(x, dim))(VALUES)
        np.testing.assert_allclose(found, getattr(special, name)(VALUES, axis=axis), rtol=1e-14)
