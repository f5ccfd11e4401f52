"""What the table of functions does not say of windows: sizes, views and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc

x = gc.tensor("x", {"row": None, "col": 5})


def test_as_many_windows_as_fit() -> None:
    t = gc.tensor("t", {"time": None})
    for size in range(1, 5):
        for stride in (1, 2, 3):
            for dilation in (1, 2):
                seen = gc.windows(t, {"time": size}, "lag", stride, dilation)
                f = gc.compile([t], seen)
                for n in range(12):
                    reach = (size - 1) * dilation + 1
                    starts = [i for i in range(0, n, stride) if i + reach <= n]
                    wanted = [[i + j * dilation for j in range(size)] for i in starts]
                    found = f(np.arange(float(n)))
                    np.testing.assert_array_equal(found, np.reshape(wanted, (-1, size)))


def test_a_window_of_unknown_size_has_one_place_at_least() -> None:
    t, k = gc.tensor("t", {"time": None}), gc.tensor("k", {"lag": None})
    f = gc.compile([t, k], gc.dot(gc.windows(t, {"time": k.sizes["lag"]}, "lag"), k))
    np.testing.assert_allclose(f(np.arange(6.0), np.array([1.0, -1.0])), [-1.0] * 5)
    assert f(np.arange(2.0), np.ones(3)).shape == (0,)


def test_windows_are_views_of_any_layout() -> None:
    f = gc.compile([x], gc.windows(x, {"row": 2, "col": 2}, {"row": "i", "col": "j"}).sum())
    assert "array(" not in f.source.replace("asarray(", "")
    values = np.arange(20.0).reshape(4, 5)
    layouts = (values[::-1], np.asfortranarray(values), np.repeat(values, 2, axis=1)[:, ::2])
    for layout in layouts:
        windows = np.lib.stride_tricks.sliding_window_view(layout, (2, 2))
        np.testing.assert_allclose(f(layout), windows.sum())


def test_what_windows_look_at_is_not_overwritten() -> None:
    y = gc.exp(x)
    seen = gc.windows(y, {"col": 3}, "lag")
    f = gc.compile([x], [seen * 2, gc.sin(y), -y.sum("row"), seen])
    values = np.random.default_rng(0).normal(size=(3, 5))
    windows = np.lib.stride_tricks.sliding_window_view(np.exp(values), 3, axis=1)
    for _ in range(2):
        twice, sine, total, own = f(values)
        np.testing.assert_allclose(twice, 2 * windows)
        np.testing.assert_allclose(sine, np.sin(np.exp(values)))
        np.testing.assert_allclose(total, -np.exp(values).sum(0))
        np.testing.assert_allclose(own, windows)
        own[...] = 0  # the caller's own array, of which no place is another


@pytest.mark.parametrize("dtype", ["bool", "int8", "complex64"])
def test_windows_of_any_dtype(dtype: str) -> None:
    t = gc.tensor("t", {"time": 4}, dtype=dtype)
    f = gc.compile([t], gc.overlap_add(gc.windows(t, {"time": 2}, "lag"), {"time": 4}, "lag"))
    values = np.array([1, 0, 1, 1], dtype)
    result = f(values)
    np.testing.assert_array_equal(result, values * np.array([1, 2, 2, 1], dtype))
    assert result.dtype == dtype


def test_a_number_of_windows_that_does_not_fit_is_refused_at_the_call() -> None:
    f = gc.compile([x], gc.overlap_add(x, {"row": 6}, "col"))
    np.testing.assert_array_equal(f(np.ones((2, 5))), [1, 2, 2, 2, 2, 1])


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
@pytest.mark.parametrize("shape", [(7, 29), (3, 4), (2, 2)])
def test_reductions_of_windows_that_are_apart(dtype: str, shape: tuple[int, int]) -> None:
    t = gc.tensor("t", {"row": None, "col": None}, dtype=dtype)
    seen = gc.windows(t, {"row": 2, "col": 3}, {"row": "i", "col": "j"}, {"row": 1, "col": 4})
    names = ("sum", "max", "min", "any", "all")
    f = gc.compile([t], [getattr(seen, name)(["i", "j"]) for name in names])
    values = np.random.default_rng(0).integers(-2, 3, size=shape).astype(dtype)
    if dtype == "float32":
        values[0, 0] = np.nan
    if shape[1] < 3:
        assert [found.shape for found in f(values)] == [(shape[0] - 1, 0)] * 5
        return
    windows = np.lib.stride_tricks.sliding_window_view(values, (2, 3))[:, ::4]
    for name, found in zip(names, f(values), strict=True):
        wanted = getattr(np, name)(windows, axis=(2, 3))
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_windows_that_overlap_are_added_up(stride: int, dilation: int) -> None:
    """Whichever of many windows or many places there are."""
    for places, many in ((1, 4), (2, 2), (2, 5), (3, 3), (5, 2)):
        x = gc.tensor("x", {"at": many, "lag": places, "batch": 2})
        y = gc.overlap_add(x, {"at": None}, "lag", stride, dilation)
        values = np.arange(1.0, 1 + 2 * many * places).reshape(many, places, 2)
        wanted = np.zeros(((many - 1) * stride + (places - 1) * dilation + 1, 2))
        for at in range(many):
            for lag in range(places):
                wanted[at * stride + lag * dilation] += values[at, lag]
        found = gc.compile([x], y.transpose("at", "batch"))(values)
        np.testing.assert_array_equal(found, wanted)
