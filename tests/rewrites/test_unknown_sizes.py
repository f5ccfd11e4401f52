"""Derivatives do not depend on how sizes are known: declared, or under some names at the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import graphcore as gc

T = gc.Tensor
Dims = Mapping[str, Any]


def answers(f: Callable[[T], T], x: Dims, ct: Dims, a: np.ndarray, c: np.ndarray) -> list[Any]:
    """Value, slopes and curvatures of `f` along what its result is multiplied by."""
    w, u, v = gc.tensor("w", x), gc.tensor("u", ct), gc.tensor("v", x)
    y = f(w)
    slope = gc.pullback(y, w, u)
    asked = [y, slope, gc.pushforward(y, w, v), gc.pushforward(slope, w, v)]
    asked.append(gc.grad((slope * v).sum(), w, disconnected="zero"))
    return list(gc.compile([w, u, v], asked)(a, c, np.cos(a)))


def check(
    f: Callable[[T], T], known: Dims, spelled: list[tuple[Dims, Dims]], a: np.ndarray
) -> None:
    result = f(gc.tensor("w", known))
    c = 0.5 + np.arange(float(np.prod(result.shape, dtype=int))).reshape(result.shape)
    wanted = answers(f, known, result.sizes, a, c)
    assert all(np.isfinite(x).all() for x in wanted)
    for x, ct in spelled:
        for found, answer in zip(answers(f, x, ct, a, c), wanted, strict=True):
            np.testing.assert_allclose(found, answer, rtol=1e-9, atol=1e-9)


ALONG: dict[str, Callable[[T], T]] = {
    "cumprod": lambda w: w.cumprod("t"),
    "cummax": lambda w: gc.cummax(w, "t"),
    "cummin": lambda w: gc.cummin(w, "t"),
    "logcumsumexp": lambda w: gc.special.logcumsumexp(w, "t"),
    "cumsum": lambda w: w.cumsum("t"),
    "cumulative_trapezoid": lambda w: gc.cumulative_trapezoid(w, dim="t", initial=0.0),
    "prod": lambda w: w.prod("t") * w,
    "sort": lambda w: gc.sort(w, "t"),
    "softmax": lambda w: gc.special.softmax(w, "t"),
    "max": lambda w: w.max("t") * w,
    "norm": lambda w: gc.norm(w, "t") * w,
    "roll": lambda w: w.roll(t=1) * w,
    "updates": lambda w: w.at[{"t": gc.constant([0, 0], "k")}].multiply(3.0),
    "rolling": lambda w: w.rolling(t=2, min_periods=1).sum(),
    "scan": lambda w: gc.scan(lambda c, v: (c * v, c + v), 1.0, w, dim="t")[1],
    "cond": lambda w: gc.cond(w.sum() > 0, lambda: w, lambda: w * w),
    "checkpoint": lambda w: gc.checkpoint(lambda v: v.cumprod("t"))(w),
}


@pytest.mark.parametrize("name", ALONG)
def test_along_a_dim(name: str) -> None:
    sizes = [("n", 3), (3, "n"), ("n", "m"), (None, 3), (3, None), (None, "m")]
    spelled = [({"t": n}, {"t": m}) for n, m in sizes]
    check(ALONG[name], {"t": 3}, spelled, np.array([0.5, 2.0, -1.0]))


def parts(*xs: T) -> T:
    """A number made of all of some matrices and vectors."""
    return sum((gc.sin(x).sum() for x in xs), gc.zeros({}))


L = gc.linalg
SINGULAR: dict[str, Callable[[T], T]] = {
    "lu": lambda a: parts(*L.lu(a)[1:]),
    "qr": lambda a: parts(*L.qr(a)),
    "qr complete": lambda a: parts(*L.qr(a, mode="complete")),
    "singular values": lambda a: parts(L.svdvals(a)),
    "svd": lambda a: parts(*L.svd(a)),
    "nuclear norm": lambda a: L.norm(a, ord="nuc"),
    "det": lambda a: L.det(a),
}
UNKNOWN: list[Dims] = [
    {"row": None, "col": None}, {"row": None, "col": 3}, {"row": 3, "col": "n"},
    {"row": "n", "col": "n"},
]  # fmt: skip


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize(
    "matrix",
    ["0 pivot", *[pytest.param(x, marks=pytest.mark.slow) for x in ("tiny pivot", "regular")]],
)
def test_of_square_matrices(name: str, matrix: str) -> None:
    """The last pivot or singular value of a square matrix divides nothing, so it may be 0."""
    a = {
        "0 pivot": np.array([[4.0, 1, 2], [2, 3, 1], [2, 3, 1]]),
        "tiny pivot": np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]),
        "regular": np.array([[4.0, 1, 2], [2, 3, 1], [2, 3, 2]]),
    }[matrix]
    check(SINGULAR[name], {"row": 3, "col": 3}, [(dims, {}) for dims in UNKNOWN], a)


@pytest.mark.parametrize("name", [name for name in SINGULAR if name != "det"])
@pytest.mark.parametrize("shape", [(4, 3), pytest.param((3, 4), marks=pytest.mark.slow)])
def test_of_tall_and_wide_matrices(name: str, shape: tuple[int, int]) -> None:
    sizes = dict(zip(("row", "col"), shape, strict=True))
    spelled = [({dim: None if dim in some else n for dim, n in sizes.items()}, {}) for some in (
        ("row",), ("col",), ("row", "col"))]  # fmt: skip
    check(SINGULAR[name], sizes, spelled, np.random.default_rng(0).normal(size=shape))
