"""Reductions, choices and windows along short axes, beside NumPy's own loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend import routines, short

UFUNCS = [np.add, np.maximum, np.minimum, np.multiply]


@pytest.mark.parametrize("ufunc", UFUNCS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4"])
@pytest.mark.parametrize(
    "shape", [(0, 3), (300, 0), (1, 1), (5, 4), (300, 5), (5, 300), (40, 9, 3)]
)
def test_reductions_over_first_or_last_axes(
    ufunc: np.ufunc, dtype: str, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(1)
    x = np.asarray(rng.normal(size=shape) * 3).astype(dtype)
    if dtype != "i4" and x.size > 8:
        x.reshape(-1)[3], x.reshape(-1)[8] = np.nan, np.inf
    for array in (x, np.asfortranarray(x), x[::-1]):
        for axes in [(0,), (1,), (len(shape) - 1,), (0, 1), (1, 2)]:
            if len(axes) >= x.ndim or axes[-1] >= x.ndim:
                continue
            start: Any = () if ufunc in (np.add, np.multiply) else (x.dtype.type(-2),)
            with np.errstate(all="ignore"):
                expected = ufunc.reduce(array, axes, None, None, False, *start)
                found = short.reduce(ufunc, array, axes, np.empty_like(expected), *start)
            close = 2e-6 if dtype == "f4" else 1e-13
            np.testing.assert_allclose(found, expected, rtol=close, atol=close * 300)


def test_sums_of_a_compiled_program_are_products() -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    f = gc.compile([x], [x.sum("row"), x.sum("col"), x.max("col"), x.sum()])
    assert f.source.count("reduce(add, x0, ") == 2
    array = np.arange(3000.0).reshape(600, 5)
    expected = array.sum(0), array.sum(1), array.max(1), array.sum()
    for found, value in zip(f(array), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-15)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (3, 4)])
def test_choices(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, *shape))
    condition = np.asarray(rng.normal(size=shape) > 0)
    one, nan = np.array(1.0), np.array(np.nan)
    few = condition[..., :1] if shape else condition
    for given in (
        (condition, x, y),
        (condition, one, y),
        (condition, x, nan),
        (condition, one, nan),
        (few, x, y),
        (condition, x[..., :1] if shape else x, y),
    ):
        out = np.empty(shape)
        routines.either(*given, out)
        np.testing.assert_array_equal(out, np.where(*given))
        across = np.empty(shape[::-1]).T
        np.testing.assert_array_equal(routines.either(*given, across), out)


@pytest.mark.parametrize("channels", [1, 3, 9])
def test_windows_of_few_channels_are_added_up(channels: int) -> None:
    x = gc.tensor("x", {"batch": None, "row": None, "channel": None})
    seen = gc.windows(x, {"row": 3}, "lag", stride=2)
    back = gc.grad((seen**2).sum(), x)
    array = np.random.default_rng(3).normal(size=(100, 8, channels))
    count = np.array([1, 1, 2, 1, 2, 1, 1, 0])[:, None]
    np.testing.assert_allclose(gc.compile([x], back)(array), 2 * count * array, rtol=1e-14)
