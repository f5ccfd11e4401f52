"""`sizes="buckets"`: few compilations, and the results of exact sizes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import graphcore as gc

x = gc.tensor("x", {"n": None, "m": None})
k = gc.tensor("k", {"i": None}, dtype="int64")


def programs() -> dict[str, gc.Tensor]:
    """Ops of each kind along axes that are padded."""
    total = x.sum() ** 2 + 1
    picked = x.isel(n=k)
    root = gc.while_loop(lambda r: abs(r * r - total) > 1e-12, lambda r: (r + total / r) / 2, total)
    return {
        "sums": x.mean("n") + x.prod("n") + x.std("n"),
        "extremes": x.max("m") + x.min("m") + x.argmax("m"),
        "order": gc.sort(x, "n") + gc.argsort(-x, "m"),
        "quantiles": x.median("n") + x.quantile(0.3, "n"),
        "running": x.cumsum("n") + gc.special.softmax(x, "m"),
        "reversed": gc.grad((x.isel(n=slice(None, None, -1)).cumsum("n") ** 2).sum(), x),
        "strided": gc.grad((x.isel(n=slice(1, None, 2), m=slice(None, -1)) ** 3).sum(), x),
        "joined": gc.concat([x, 2 * x, x.isel(n=slice(None, -1))], "n"),
        "stacked": x.T.stack(z=("m", "n")),
        "taken": picked,
        "received": gc.grad((picked**2).sum(), x),
        "set": x.at[{"n": k}].set(1.0),
        "moved": x.shift(n=1) + x.roll(n=1) + x.at[{"n": slice(-1, None)}].set(7.0),
        "windows": x.rolling(n=3).mean(),
        "contracted": gc.dot(x, x.rename(m="p"), dim="n"),
        "scan": gc.scan(lambda c, e: (gc.tanh(c + e), c.sum()), x.isel(n=0), x, dim="n")[1],
        "loop": gc.grad(gc.scan(lambda c, e: (gc.tanh(c + e.sum()), c), 0.0, x, dim="n")[0], x),
        "root": gc.grad(root, x),
        "matrices": gc.linalg.inv(gc.eye({"row": 3, "col": 3}) * (1 + x**2)),
        "nonzero": x.sum("m").isel(n=gc.nonzero(x.sum("m") > 0, name="kept")["n"]),
    }


def check(outputs: dict[str, gc.Tensor], sizes: list[tuple[int, int]]) -> gc.Compiled:
    """Compare results with those of NumPy calls, for several sizes."""
    f = gc.compile([x, k], outputs, target="jax", sizes="buckets")
    g = gc.compile([x, k], outputs, target="numpy")
    for n, m in sizes:
        given = np.random.default_rng(n + 100 * m).normal(size=(n, m))
        found, wanted = f(given, [1, -1, 3, 0, -2]), g(given, [1, -1, 3, 0, -2])
        for name, y in wanted.items():
            np.testing.assert_allclose(found[name], y, 1e-11, 1e-12, err_msg=f"{name} {n} {m}")
    return f


def test_two_sizes_of_one_program() -> None:
    every = programs()
    outputs = {name: every[name] for name in ("sums", "joined", "received")}
    f = check(outputs, [(5, 3), (7, 4)])
    assert [made.sizes for made in f.compilations] == [{"n": 8, "m": 4, "i": 8}]
    with pytest.raises(gc.GraphIndexError) as refused:
        f(np.ones((5, 3)), [1, 5])
    assert "position 5 is outside dim 'n', which has size 5" in str(refused.value)


@pytest.mark.slow
def test_ops_along_padded_axes() -> None:
    check(programs(), [(5, 3), (8, 4), (7, 3), (4, 1)])


def test_sizes_that_must_be_equal_are_padded_alike() -> None:
    """Of faces, one less than cells; and of a constant with a known size."""
    u, flow = gc.tensor("u", {"cell": None}), gc.tensor("flow", {"cell": "faces"})
    other, w = gc.tensor("other", {"cell": "others"}), gc.tensor("w", {"row": None})
    y = {"flow": flow * u.diff("cell") + other, "w": w * gc.constant(np.arange(3.0), "row")}
    f = gc.compile([u, flow, other, w], y, target="jax", sizes="buckets")
    for n in (5, 8, 9):
        given = np.arange(n) ** 2.0
        found = f(given, np.arange(1.0, n), np.ones(n - 1), np.ones(3))
        np.testing.assert_array_equal(found["flow"], np.arange(1.0, n) * np.diff(given) + 1)
        np.testing.assert_array_equal(found["w"], np.arange(3.0))
    sizes = [made.sizes for made in f.compilations]
    assert [x["faces"] for x in sizes] == [x["others"] for x in sizes] == [7, 15]
    assert {x["row"] for x in sizes} == {3}


def test_sizes_that_cannot_be_padded_alike_are_refused() -> None:
    x, y = gc.tensor("x", {"n": None}), gc.tensor("y", {"n": "m"})
    z = x.pad(n=(1, 0)) * y.pad(n=(3, 0)).isel(n=slice(1, None)) * y.pad(n=(0, 2))
    f = gc.compile([x, y], z, target="jax", sizes="buckets")
    with pytest.raises(gc.GraphValueError, match=r"test_buckets.py.*\n  cure: sizes='exact'"):
        f(np.ones(8), np.ones(7))


def test_padding_refuses_no_power() -> None:
    """Zeros beyond the last element would be negative exponents here."""
    f = gc.compile([k], [2 ** (k - 1), k ** gc.flip(k - 1, "i")], target="jax", sizes="buckets")
    given = np.array([1, 2, 3, 1, 2])
    for found, wanted in zip(f(given), (2 ** (given - 1), given ** (given - 1)[::-1]), strict=True):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(gc.GraphError, match="negative integer powers"):
        f(np.array([1, 2, 3, 0, 2]))


def test_what_pads_no_axis_is_refused() -> None:
    y = gc.fft.rfft(x, dim="n")
    with pytest.raises(gc.GraphError) as refused:
        gc.compile([x], abs(y), target="jax", sizes="buckets")
    words = r"does not compute rfft at .*: it works along an axis that is padded; sizes='exact'"
    assert re.search(words, str(refused.value))
    with pytest.raises(gc.GraphError, match="is an option of target='jax'"):
        gc.compile([x], x, sizes="buckets")
