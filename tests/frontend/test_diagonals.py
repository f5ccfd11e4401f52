"""Diagonals and triangles: what is left out does not count, what is refused."""

import numpy as np
import pytest

import graphcore as gc


@pytest.mark.parametrize("function", [gc.tril, gc.triu])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex64"])
def test_triangles_keep_the_dtype(function, dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    x = gc.tensor("x", {"row": None, "col": None}, dtype=dtype)
    wanted = getattr(np, function.__name__)(array)
    np.testing.assert_array_equal(gc.compile([x], function(x))(array), wanted, strict=True)


def test_values_left_out_do_not_count():
    array = np.array([[4.0, np.nan, np.inf], [1.0, 9.0, -1.0]])
    x = gc.tensor("x", {"row": None, "col": None})
    for y, wanted in (
        (gc.sqrt(gc.tril(x)).where(gc.tri(x.sizes) > 0, 0).sum(), [[0.25, 0, 0], [0.5, 1 / 6, 0]]),
        (gc.trace(gc.sqrt(x)), [[0.25, 0, 0], [0, 1 / 6, 0]]),
        (gc.log(gc.diagonal(x)).sum(), [[0.25, 0, 0], [0, 1 / 9, 0]]),
    ):
        value, slope = gc.compile([x], [y, gc.grad(y, x)])(array)
        assert np.isfinite(value)
        np.testing.assert_allclose(slope, wanted)


def test_a_diagonal_is_put_and_not_added_up():
    x = gc.tensor("x", {"t": None})
    f = gc.compile([x], gc.diag(x, "t", ("a", "b"), offset=-1))
    assert "scatter(" not in f.source


def test_offsets_may_be_sizes():
    x = gc.tensor("x", {"row": None, "col": None})
    n = x.sizes["row"]
    y = (
        gc.diagonal(x, offset=n - 2),
        gc.tril(x, k=n - 3),
        gc.diag(x[0].rename(col="t"), "t", offset=n),
    )
    f = gc.compile([x], y)
    for shape in ((3, 4), (2, 2), (1, 5), (4, 1)):
        array = np.random.default_rng(0).normal(size=shape)
        found = f(array)
        k = shape[0] - 2
        for have, want in zip(
            found,
            (np.diagonal(array, k), np.tril(array, k - 1), np.diag(array[0], k + 2)),
            strict=True,
        ):
            np.testing.assert_array_equal(have, want)
