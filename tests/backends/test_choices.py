"""Choices, and windows of few channels that are added up."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.numpy_backend import routines


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
