"""Indices: NumPy's, of all kinds, read and updated."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor", minversion="3.0")

import pytensor
import pytensor.tensor as pt

from .compared import MODES, same_slopes, same_values

pytestmark = pytest.mark.filterwarnings("ignore")

R = np.random.default_rng(2)
V, M, T = R.normal(size=6), R.normal(size=(4, 5)), R.normal(size=(3, 4, 5))
N, AT, J = np.int64(2), np.array([2, 0, -1]), np.array([1, 1, 3])
GRID = np.array([[0, 1], [2, 0]])
MASK = np.array([True, False, True, True])
ONE = np.array([False, True, False])
IN2 = M > 0

READ: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "numbers": (lambda x: [x[0], x[-1], x[1, 2], x[:, -2]], [M]),
    "a number at the call": (lambda x, n: [x[n], x[:, n], x[n, -n], x[n - 4]], [M, N]),
    "numbers of lengths": (
        lambda x: [x[x.shape[0] // 2 - 1], x[:, x.shape[0] // 9 - 1], x[-x.shape[0]]],
        [M],
    ),
    "slices": (
        lambda x: [x[1:], x[:-1], x[::2], x[::-1], x[1:3, ::-2], x[-3:-1], x[10:], x[3:1]],
        [M],
    ),
    "slices at the call": (lambda x, n: [x[n:], x[:n], x[:, 1 : n + 1], x[::n], x[n:0:-1]], [M, N]),
    "slices of lengths": (
        lambda x: [x[: x.shape[0] // 2], x[x.shape[0] - 1 :], x[: x.shape[0] - 3]],
        [M],
    ),
    "more axes": (lambda x: [x[..., 0], x[0, ..., 1:], x[:, 1], x[None, :, 0]], [T]),
    "positions": (lambda x, i: [x[i], x[:, i], x[i, 1:], x[0, i]], [M, AT]),
    "known positions": (lambda x: [x[[2, 0, -1]], x[:, [1, 1]], x[[[0, 1], [2, 0]]]], [M]),
    "pointwise": (
        lambda x, i, j: [x[i, j], x[i, :, j], x[:, i, j], x[i[:, None], j], x[1, i, j]],
        [T, AT, J],
    ),
    "orthogonal": (
        lambda x, i, j: [x[i[:, None], j[None, :]], x[pt.ix_(i, j)] if hasattr(pt, "ix_") else x],
        [M, AT, J],
    ),
    "a grid of positions": (lambda x, g: [x[g], x[:, g], x[g, 1:, g]], [T, GRID]),
    "apart": (lambda x, i: [x[i, :, 2], x[i, :, i], x[0, :, i]], [T, AT]),
    "masks": (lambda x, m: [x[m], x[m, 1:], (x * 2)[m]], [M, MASK]),
    "known masks": (lambda x: [x[MASK], x[MASK, 0]], [M]),
    "a mask of all axes": (lambda x, m: [x[m], x[x > 0].sum()], [M, IN2]),
    "a mask and positions": (
        lambda x, m, i: [x[m, i], x[i, :, 1]],
        [T[:, :3], np.array([True, True, True]), AT],
    ),
    "a known mask of one position": (
        lambda x, i: [x[ONE, i], x[i, ONE]],
        [R.normal(size=(3, 3)), AT],
    ),
    "take": (lambda x, i: [pt.take(x, i, axis=0), pt.take(x, i, axis=1), pt.take(x, i)], [M, AT]),
    "take along": (lambda x: [pt.take_along_axis(x, pt.argsort(x, axis=1), axis=1)], [M]),
}
UPDATED: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "set numbers": (lambda x: [x[0].set(1.0), x[1, 2].set(x.sum()), x[:, -1].set(x[:, 0])], [M]),
    "set slices": (lambda x: [x[1:].set(0.0), x[::2, ::-1].set(x[::2] * 2), x[:].set(3.0)], [M]),
    "add": (lambda x: [x[0].inc(1.0), x[1:3].inc(x[:2]), x[:, 1].inc(x[:, 0]), x[:].inc(x)], [M]),
    "set at the call": (lambda x, n: [x[n].set(0.0), x[n:].set(1.0), x[:n, n].inc(2.0)], [M, N]),
    "set positions": (
        lambda x, i, j: [x[i].set(x[j]), x[i, j].set(7.0), x[:, j].set(1.0)],
        [M, AT, J],
    ),
    "add positions": (
        lambda x, i, j: [x[j].inc(x[i]), x[j, j].inc(2.0), x[:, j].inc(x[:, i]), x[j, 1:].inc(1.0)],
        [M, AT, J],
    ),
    "positions apart": (lambda x, i: [x[i, :, 0].inc(1.0), x[i, 1:, i].set(x[i, 1:, 0])], [T, AT]),
    "set by a mask": (lambda x, m: [x[m].set(0.0), x[m].inc(1.0), x[m].set(x[m] * 2)], [M, MASK]),
    "set by a mask of all axes": (
        lambda x, m: [x[m].set(0.0), x[m].inc(1.0), x[m].set(x[m] * 2)],
        [M, IN2],
    ),
    "set by a known mask": (lambda x: [x[MASK].set(0.0), x[MASK].inc(x[1])], [M]),
    "broadcast": (lambda x, i: [x[i].set(x[0]), x[i].inc(x[0, 0])], [M, AT]),
    "fill diagonals": (
        lambda x: [pt.fill_diagonal(x, 3.0), pt.fill_diagonal_offset(x, 2.0, 1)],
        [M],
    ),
}
CASES = READ | UPDATED
NO_SLOPE = {"take along"}


@pytest.mark.parametrize("static", [False, True], ids=["open", "static"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, static: bool) -> None:
    build, arrays = CASES[name]
    same_values(build, arrays, static)


@pytest.mark.parametrize("name", [name for name in CASES if name not in NO_SLOPE])
def test_slopes(name: str) -> None:
    same_slopes(*CASES[name])


@pytest.mark.parametrize("n", [-5, -4, -1, 0, 1, 3, 4, 9])
def test_ends_that_only_the_call_gives(n: int) -> None:
    """Which way an end counts is decided at the call, as in NumPy."""
    x, k = pt.matrix("x"), pt.lvector("k")
    outputs = [x[: k[0]], x[k[0] :], x[k[0] : 3], x[::-1][: k[0]]]
    f = pytensor.function([x, k], outputs, mode="GRAPHCORE")
    wanted = [M[:n], M[n:], M[n:3], M[::-1][:n]]
    for y, z in zip(f(M, [n]), wanted, strict=True):
        np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize("mode", ["numpy", "native"])
def test_positions_outside_are_refused(mode: str) -> None:
    x, i = pt.vector("x"), pt.lvector("i")
    f = pytensor.function([x, i], x[i], mode=MODES[mode])
    with pytest.raises(IndexError, match="outside"):
        f(V, [6])


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_dtypes(dtype: str) -> None:
    x = (M > 0).astype(dtype)
    same_values(lambda x, i: [x[i], x[i].set(x[0]), x[1:].set(x[0, 0])], [x, AT])
