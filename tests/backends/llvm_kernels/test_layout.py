"""Short axes first: what moves, and that no value does."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels.passes.layout import by_length, short_axes_first
from graphcore.ir.graph import Graph, bodies_of
from graphcore.ops import elementwise, tensor
from tests.backends.llvm_kernels.native import needs_machine_code
from tests.rewrites.examples import N, given


def test_short_axes_come_before_long_ones() -> None:
    assert by_length((N, 3)) == (1, 0)
    assert by_length((2, N, 100, 3)) == (0, 3, 1, 2)
    for shape in ((3, N), (3, 4), (N, N), (N, 17), (N, 1), (), (3,), (N,), (1, N, 1)):
        assert by_length(shape) is None, shape


def program(dtype: str, native: bool) -> gc.Compiled:
    """Every op that works in another order, and others before and after."""
    x = gc.tensor("x", {"row": None, "xyz": 3}, dtype=dtype)
    y = gc.tensor("y", {"row": None, "uv": 2, "xyz": 3}, dtype=dtype)
    w = gc.tensor("w", {"xyz": 3, "out": 5}, dtype=dtype)
    size = gc.tensor("size", {"row": None}, dtype=dtype)
    a = gc.exp(-x * x) / (1 + size**2)
    b = gc.where(y > a, y - a, size)
    parts = gc.concat([a.isel(xyz=slice(1)), 2 * a.isel(xyz=slice(1, None))], "xyz")
    results = {
        "a": a,
        "b": b,
        "sum": b.sum("xyz"),
        "sums": b.sum(["uv", "xyz"]),
        "rows": (a * b).sum("row"),
        "max": b.max("xyz"),
        "min": b.min(["row", "uv"]),
        "prod": a.prod("xyz"),
        "any": (b > 1).any("uv"),
        "softmax": gc.special.softmax(b, "xyz"),
        "norm": gc.norm(a + 1, dim="xyz"),
        "parts": parts,
        "padded": parts.pad(row=(1, 2), xyz=(0, 1), constant_values=0),
        "cumsum": b.cumsum("row"),
        "dot": gc.tanh(gc.dot(a, w, dim="xyz") + w.sum("xyz")),
        "contracted": gc.dot(a, b, dim="xyz"),
        "matrices": gc.dot(b, y.rename(uv="vu"), dim="xyz"),
        "flat": gc.sin(b).stack(all=("row", "uv", "xyz")),
        "picked": a[{"row": gc.argsort(size, "row")}] * size,
        "set": a.at[{"row": slice(1, None)}].set(x[{"row": slice(1, None)}]),
    }
    total = sum((r.astype(dtype)).sum() for n, r in results.items() if n not in ("min", "any"))
    grads = gc.grad(total, {"dx": x, "dy": y, "dw": w, "dsize": size})
    return gc.compile([x, y, w, size], {**results, **grads}, native=native)


@needs_machine_code
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 2, 40, 3000])
def test_values_are_those_of_the_order_as_written(dtype: str, rows: int) -> None:
    rng = np.random.default_rng(rows)
    shapes = (rows, 3), (rows, 2, 3), (3, 5), (rows,)
    given = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    if rows > 2:
        given[1][0, 0, 0], given[1][1, 1, 1], given[3][2] = np.inf, np.nan, 0
    found, expected = program(dtype, True)(*given), program(dtype, False)(*given)
    close = {"rtol": 1e-12, "atol": 1e-12} if dtype == "float64" else {"rtol": 2e-4, "atol": 2e-4}
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        np.testing.assert_allclose(found[name], value, **close, err_msg=name)


def test_no_rows() -> None:
    x = gc.tensor("x", {"row": None, "xyz": 3})
    y = gc.exp(x) - x.mean("xyz")
    f = gc.compile([x], [y, y.sum("xyz"), y.max("xyz"), y.sum("row")])
    found = f(np.zeros((0, 3)))
    assert [value.shape for value in found] == [(0, 3), (0,), (0,), (3,)]


def test_bodies_of_loops_stay_as_they_are() -> None:
    x = gc.tensor("x", {"row": None, "xyz": 3})
    f = gc.compile([x], gc.fori_loop(0, 4, lambda i, s: gc.tanh(s * x.sum("xyz")), x))
    (loop,) = [x for x in short_axes_first(f.stages["optimized"]).nodes() if bodies_of(x)]
    assert loop.attrs == next(x for x in f.stages["optimized"].nodes() if bodies_of(x)).attrs


def test_what_lies_in_memory_stays_as_it_lies() -> None:
    x, size = given("x", N, 3), given("s", N)
    wide = tensor.expand(size, axes=(1,), sizes=(3,))
    product = elementwise.multiply(elementwise.exp(x), wide)
    graph = Graph((x, size), (product, elementwise.exp(wide)))
    made = short_axes_first(graph)
    assert made.outputs[0] is product
    assert made.outputs[1].op is tensor.transpose
    assert short_axes_first(made) == made


@needs_machine_code
def test_lanes_of_stored_values_follow_each_other() -> None:
    """Pairs of neighbours are stored pair after pair, and read without gathers."""
    x = gc.tensor("x", {"row": None, "column": None})
    slope = gc.tanh(gc.windows(x, {"row": 2}, {"row": "side"}) / (1 + x.isel(row=slice(1, None))))
    f = gc.compile([x], [slope * slope.sum("side"), slope.sum("row")], native=True)
    assert "gather" not in f.llvm
    values = np.random.default_rng(0).normal(size=(12, 19))
    pairs = np.stack([values[:-1], values[1:]], -1)
    wanted = np.tanh(pairs / (1 + values[1:, :, None]))
    products, sums = f(values)
    np.testing.assert_allclose(products, wanted * wanted.sum(-1, keepdims=True), 1e-12, 1e-14)
    np.testing.assert_allclose(sums, wanted.sum(0), 1e-12, 1e-14)


def test_a_product_that_is_a_result_stays_in_order() -> None:
    x, w = given("x", N, 32), given("w", 32, 4)
    y = tensor.matmul(x, w)
    assert short_axes_first(Graph((x, w), (y,))).outputs[0] is y
