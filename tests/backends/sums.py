"""Every place where a program adds up many numbers, with the exact sum and that of the magnitudes.

`python -m tests.backends.sums [LENGTH]` shows the largest error of each, in eps times the sum of
magnitudes, for both targets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import graphcore as gc

Array = npt.NDArray[Any]
Exact = tuple[Array, Array]
"""Sums, and sums of magnitudes, with more digits than the results."""
GROUPS = 3


class Case(NamedTuple):
    """An expression of x[a, b], y[a, b], v[a] and positions i[a]; terms are of order 1."""

    build: Callable[..., gc.Tensor]
    exact: Callable[[Array, Array, Array, Array], Exact]


def over(terms: Array, *axes: int) -> Exact:
    """Sums over some axes, in rows in memory: NumPy adds these up pairwise."""
    axes = axes or tuple(range(terms.ndim))
    kept = [axis for axis in range(terms.ndim) if axis not in axes]
    rows = np.ascontiguousarray(terms.transpose([*kept, *axes]))
    rows = rows.reshape(*[terms.shape[axis] for axis in kept], -1)
    return rows.sum(-1), np.abs(rows).sum(-1)


def running(terms: Array, axis: int) -> Exact:
    """Running sums, with the rounding of each addition added up beside them."""
    sums = np.add.accumulate(terms, axis)
    before = np.roll(sums, 1, axis)
    before[(slice(None),) * axis + (0,)] = 0
    added = sums - before
    lost = (before - (sums - added)) + (terms - added)
    return sums + np.add.accumulate(lost, axis), np.add.accumulate(np.abs(terms), axis)


def grouped(terms: Array, i: Array) -> Exact:
    """Sums of the rows of each group."""
    found = [over(terms[i == group], 0) for group in range(GROUPS)]
    sums, sizes = zip(*found, strict=True)
    return np.stack(sums), np.stack(sizes)


def log_running(x: Array, axis: int) -> Exact:
    """log of running sums of exponentials, to so many eps of the largest term or of 1."""
    far = x.max(axis, keepdims=True)
    sums, _ = running(np.exp(x - far), axis)
    found = far + np.log(sums)
    return found, np.maximum(np.maximum.accumulate(np.abs(x), axis), np.abs(found))


def norm(x: Array, *axes: int) -> Exact:
    total, _ = over(x * x, *axes)
    return np.sqrt(total), np.sqrt(total)


def gradient(y: gc.Tensor, wrt: gc.Tensor) -> gc.Tensor:
    return gc.grad(y.sum(), wrt)


def factor(of: Callable[..., gc.Tensor], dims: dict[str, Any]) -> Callable[..., gc.Tensor]:
    """The gradient by a tensor of ones with which `of` multiplies."""

    def build(x: gc.Tensor, *others: gc.Tensor) -> gc.Tensor:
        sizes = {dim: x.sizes.get(dim, size) for dim, size in dims.items()}
        w = gc.exp(gc.zeros(sizes, dtype=x.dtype))
        return gc.grad(of(w, x, *others).sum(), w)

    return build


def looped(w: gc.Tensor, x: gc.Tensor, *others: gc.Tensor) -> gc.Tensor:
    """Each step multiplies by w what the step before has read."""
    return gc.scan(lambda s, e: (e, gc.sin(s * 0) + s * w), gc.zeros_like(x[{"a": 0}]), x, dim="a")[
        1
    ]


def numbers(w: gc.Tensor, x: gc.Tensor, y: gc.Tensor, v: gc.Tensor, i: gc.Tensor) -> gc.Tensor:
    """A recurrence of single numbers, whose cotangent is carried back."""
    return gc.scan(lambda s, e: (s * gc.cos(0 * e) + w * e, None), gc.zeros_like(w), v, dim="a")[0]


CASES: dict[str, Case] = {
    "sum over the first dim": Case(lambda x, *_: x.sum("a"), lambda x, *_: over(x, 0)),
    "sum over the last dim": Case(lambda x, *_: x.sum("b"), lambda x, *_: over(x, 1)),
    "sum over all": Case(lambda x, *_: x.sum(), lambda x, *_: over(x)),
    "sum of every second": Case(
        lambda x, *_: x[{"b": slice(None, None, 2)}].sum(), lambda x, *_: over(x[:, ::2])
    ),
    "mean": Case(lambda x, *_: x.mean("a"), lambda x, *_: tuple(s / len(x) for s in over(x, 0))),
    "sum of squares": Case(lambda x, *_: (x * x).sum(), lambda x, *_: over(x * x)),
    "dot of vectors": Case(
        lambda x, y, v, i: gc.dot(v, y[{"b": 0}], dim="a"), lambda x, y, v, i: over(v * y[:, 0])
    ),
    "dot of one dim": Case(
        lambda x, y, v, i: gc.dot(x, y, dim="a"), lambda x, y, v, i: over(x * y, 0)
    ),
    "vector times matrix": Case(
        lambda x, y, v, i: gc.dot(v, x, dim="a"), lambda x, y, v, i: over(v[:, None] * x, 0)
    ),
    "matrix times vector": Case(
        lambda x, y, v, i: gc.dot(x.transpose("b", "a") + 0, v, dim="a"),
        lambda x, y, v, i: over(v[:, None] * x, 0),
    ),
    "matrix product": Case(
        lambda x, y, v, i: gc.dot(x, y.rename(b="c"), dim="a"),
        lambda x, y, v, i: over(x[:, :, None] * y[:, None, :], 0),
    ),
    "wide matrix product": Case(
        lambda x, y, v, i: gc.dot(
            gc.maximum(x, gc.full({"c": 64}, -100.0, dtype=x.dtype)), y.rename(b="d"), dim="a"
        ),
        lambda x, y, v, i: tuple(
            np.repeat(each[:, None], 64, 1) for each in over(x[:, :, None] * y[:, None], 0)
        ),
    ),
    "norm": Case(lambda x, *_: gc.norm(x, "a"), lambda x, *_: norm(x, 0)),
    "norm over all": Case(lambda x, *_: gc.norm(x, ("a", "b")), lambda x, *_: norm(x)),
    "cumsum over the first dim": Case(lambda x, *_: gc.cumsum(x, "a"), lambda x, *_: running(x, 0)),
    "cumsum over the last dim": Case(
        lambda x, *_: gc.cumsum(x.transpose("b", "a"), "a"), lambda x, *_: running(x.T, 1)
    ),
    "cumsum of a vector": Case(
        lambda x, y, v, i: gc.cumsum(v, "a"), lambda x, y, v, i: running(v, 0)
    ),
    "gradient of cumsum": Case(
        lambda x, y, v, i: gc.pullback(gc.cumsum(v, "a"), v, v),
        lambda x, y, v, i: tuple(s[::-1] for s in running(v[::-1], 0)),
    ),
    "logcumsumexp over the first dim": Case(
        lambda x, *_: gc.special.logcumsumexp(x, "a"), lambda x, *_: log_running(x, 0)
    ),
    "logcumsumexp of a vector": Case(
        lambda x, y, v, i: gc.special.logcumsumexp(v, "a"), lambda x, y, v, i: log_running(v, 0)
    ),
    "segment_sum": Case(
        lambda x, y, v, i: gc.segment_sum(x, i, GROUPS, dim="a"), lambda x, y, v, i: grouped(x, i)
    ),
    "segment_sum of a vector": Case(
        lambda x, y, v, i: gc.segment_sum(v, i, GROUPS, dim="a"), lambda x, y, v, i: grouped(v, i)
    ),
    "groupby": Case(
        lambda x, y, v, i: x.groupby(i, GROUPS).sum(), lambda x, y, v, i: grouped(x, i)
    ),
    "at.add": Case(
        lambda x, y, v, i: gc.zeros({"c": GROUPS}, dtype=v.dtype).at[{"c": i}].add(v),
        lambda x, y, v, i: grouped(v, i),
    ),
    "histogram": Case(
        lambda x, y, v, i: gc.histogram(i.astype(v.dtype), [-0.5, 0.5, 1.5, 2.5], weights=v)[0],
        lambda x, y, v, i: grouped(v, i),
    ),
    "gradient of take": Case(
        factor(lambda w, x, y, v, i: w[{"c": i}] * v, {"c": GROUPS}),
        lambda x, y, v, i: grouped(v, i),
    ),
    "gradient of take of rows": Case(
        factor(lambda w, x, y, v, i: w[{"c": i}] * x, {"c": GROUPS, "b": None}),
        lambda x, y, v, i: grouped(x, i),
    ),
    "gradient of a factor": Case(
        factor(lambda w, x, y, v, i: w * x, {"b": None}), lambda x, *_: over(x, 0)
    ),
    "gradient of a factor of all": Case(
        factor(lambda w, x, y, v, i: gc.sin(w * 0) + w * x, {}), lambda x, *_: over(x)
    ),
    "gradient of a number in a loop": Case(factor(numbers, {}), lambda x, y, v, i: over(v)),
    "gradient of a factor in a loop": Case(
        factor(looped, {"b": None}), lambda x, *_: over(x[:-1], 0)
    ),
}


def program(dtype: str, native: bool) -> gc.Compiled:
    """All expressions in one program."""
    x, y = [gc.tensor(name, ("a", "b"), dtype=dtype) for name in "xy"]
    v, i = gc.tensor("v", "a", dtype=dtype), gc.tensor("i", "a", dtype="int64")
    made = {name: case.build(x, y, v, i) for name, case in CASES.items()}
    return gc.compile([x, y, v, i], made, native=native)


ORDERS: dict[str, Callable[[Array], Array]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "turned round": lambda x: np.ascontiguousarray(x[::-1])[::-1],
}


def arrays(dtype: str, n: int, columns: int = 3) -> Iterator[tuple[str, list[Array]]]:
    """Arguments for which additions one after the other lose most."""
    rng, eps = np.random.default_rng(n), np.finfo(dtype).eps
    one, shape = rng.uniform(0.5, 1, 2), (n, columns)
    lost = np.full(shape, 0.49 * eps)
    lost[0] = 1
    noise = rng.uniform(0.5, 1.5, shape)
    i, sorted_i = rng.integers(0, GROUPS, n), np.arange(n) * GROUPS // n
    yield "equal", [np.full(shape, one[0]), np.full(shape, one[1]), np.full(n, one[0]), i]
    yield "one and little", [lost, np.ones(shape), lost[:, 0], np.minimum(sorted_i, 1)]
    yield "random", [noise, rng.normal(size=shape), noise[:, 0], sorted_i]


def errors(
    dtype: str, native: bool, n: int, orders: Iterator[str] | None = None
) -> dict[str, float]:
    """The largest error of each case, in eps times the sum of magnitudes."""
    f, eps = program(dtype, native), np.finfo(dtype).eps
    worst = dict.fromkeys(CASES, 0.0)
    for _, given in arrays(dtype, n):
        *numbers, i = [x.astype(dtype) if x.dtype.kind == "f" else x for x in given]
        wide = [x.astype(np.longdouble) for x in numbers]
        exact = {name: case.exact(*wide, i) for name, case in CASES.items()}
        for order in orders or ORDERS:
            found = f(*map(ORDERS[order], numbers), i)
            for name, (value, size) in exact.items():
                got = np.asarray(found[name]).astype(np.longdouble)
                assert got.shape == value.shape, (name, got.shape, value.shape)
                error = np.abs(got - value) / (eps * np.maximum(size, np.finfo(dtype).tiny))
                worst[name] = max(worst[name], float(error.max(initial=0)))
    return worst


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    ways = [(dtype, native) for dtype in ("float64", "float32") for native in (False, True)]
    table = [errors(*way, n) for way in ways]
    print(
        f"{n:,} values",
        *[f"{d} {'machine code' if m else 'NumPy calls'}" for d, m in ways],
        sep=" | ",
    )
    for name in CASES:
        print(name, *[f"{column[name]:.1f}" for column in table], sep=" | ")
