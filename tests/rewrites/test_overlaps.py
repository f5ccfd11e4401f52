"""Windows that move by several places are added up in whole blocks, in both targets."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.ops import tensor

ROWS = [(4, 8), (4, 9), (5, 3), (5, 5), (7, 30), (6, 1), (1, 4), (3, 20)]
"""Strides and sizes of windows."""


def added_up(x: np.ndarray, stride: int, size: int) -> np.ndarray:
    """By hand, along the first two axes."""
    y = np.zeros((size, *x.shape[2:]))
    for i, frame in enumerate(x):
        for j, value in enumerate(frame):
            y[i * stride + j] += value
    return y


QUICK = [(4, 9, False), (7, 30, True)]


@pytest.mark.parametrize(
    ("stride", "window", "known"),
    [
        pytest.param(*row, known, marks=[] if (*row, known) in QUICK else pytest.mark.slow)
        for row in ROWS
        for known in (False, True)
    ],
)
def test_as_by_hand(stride: int, window: int, known: bool) -> None:
    """Values and gradients, of signals that end with the last window and of longer ones."""
    random = np.random.default_rng(0)
    for frames, rest in ((3, 0), (1, stride - 1), (0, 0), (4, stride // 2)):
        total = (frames - 1) * stride + window + rest if frames else max(window - 1, 0)
        sizes = {"frame": frames, "lag": window, "row": 2, "time": total}
        own = sizes if known else dict.fromkeys(sizes)
        x = gc.tensor("x", {dim: own[dim] for dim in ("frame", "lag", "row")})
        t = gc.tensor("t", {"time": own["time"]})
        y = gc.overlap_add(
            gc.sin(x).rename(frame="time"), {"time": t.sizes["time"]}, "lag", stride=stride
        )
        slope = gc.grad((y * y).sum(), x)
        seen = gc.windows(gc.sin(t), {"time": window}, "lag", stride=stride)
        back = gc.grad((seen**3).sum(), t)
        arrays = random.normal(size=(frames, window, 2)), random.normal(size=total)
        wanted = added_up(np.sin(arrays[0]), stride, total)
        windows = [np.sin(arrays[1])[i * stride :][:window] for i in range(frames)]
        cts = np.reshape(3 * np.square(windows), (frames, window))
        by_hand = added_up(cts, stride, total) * np.cos(arrays[1])
        for native in (False, True):
            f = gc.compile([x, t], [y, slope, back], native=native)
            found = f(*arrays)
            np.testing.assert_allclose(found[0], wanted, rtol=1e-12, atol=1e-12)
            for i in range(frames):
                part = 2 * wanted[i * stride : i * stride + window]
                np.testing.assert_allclose(found[1][i], part * np.cos(arrays[0][i]), atol=1e-12)
            np.testing.assert_allclose(found[2], by_hand, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "strides",
    [(4, 5), *[pytest.param(x, marks=pytest.mark.slow) for x in ((4, 1), (1, 5), (2, 8))]],
)
def test_two_axes(strides: tuple[int, int]) -> None:
    x = gc.tensor("x", {"t": None, "u": None, "c": None})
    moves = dict(zip("tu", strides, strict=True))
    seen = gc.windows(gc.sin(x), {"t": 8, "u": 10}, {"t": "i", "u": "j"}, stride=moves)
    slope = gc.grad((seen * seen).sum(), x)
    values = np.random.default_rng(0).normal(size=(21, 23, 2))
    counts = np.zeros((21, 23, 1))
    for a in range(0, 21 - 8 + 1, strides[0]):
        for b in range(0, 23 - 10 + 1, strides[1]):
            counts[a : a + 8, b : b + 10] += 1
    for native in (False, True):
        found = gc.compile([x], slope, native=native)(values)
        np.testing.assert_allclose(found, counts * np.sin(2 * values), rtol=1e-12, atol=1e-12)


def test_no_term_is_nothing() -> None:
    """As many terms are added up as there are values in windows, up to whole blocks."""
    x = gc.tensor("x", {"frame": 61, "lag": 128})
    for stride in (8, 32, 100, 128, 150):
        y = gc.overlap_add(x.rename(frame="time"), {"time": None}, "lag", stride=stride)
        graph = gc.compile([x], y).stages["optimized"]
        terms = [
            node.type.count * node.inputs[0].type.shape[0]
            for node in graph.nodes()
            if node.op is tensor.overlap_add
        ]
        assert sum(terms) <= (61 + 16) * (128 + 2 * stride)
