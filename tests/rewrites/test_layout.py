"""Short axes first: what moves, and that no value does."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import numpy_backend
from graphcore.backends.numpy_backend import short
from graphcore.ir.graph import Graph
from graphcore.ops import elementwise, tensor
from graphcore.rewrites.layout import (
    by_length,
    short_axes_first,
    short_axes_first_where_none_lies,
)
from tests.backends.llvm_kernels.native import needs_machine_code
from tests.rewrites.examples import N, given


def test_short_axes_come_before_long_ones() -> None:
    assert by_length((N, 3)) == (1, 0)
    assert by_length((2, N, 100, 3)) == (0, 3, 1, 2)
    for shape in ((3, N), (3, 4), (N, N), (N, 17), (N, 1), (), (3,), (N,), (1, N, 1)):
        assert by_length(shape) is None, shape


def program(dtype: str = "float64") -> gc.Compiled:
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
    return gc.compile([x, y, w, size], {**results, **grads})


@pytest.mark.usefixtures("generated_python")  # the order is chosen by a pass that is left out
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 2, 40, 3000])
def test_values_are_those_of_the_order_as_written(
    dtype: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(rows)
    shapes = (rows, 3), (rows, 2, 3), (3, 5), (rows,)
    given = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    if rows > 2:
        given[1][0, 0, 0], given[1][1, 1, 1], given[3][2] = np.inf, np.nan, 0
    found = program(dtype)(*given)
    monkeypatch.setattr(numpy_backend, "PASSES", numpy_backend.PASSES[:-1])
    monkeypatch.setattr(short, "LONG", 10**9)
    expected = program(dtype)(*given)
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


def test_elementwise_code_runs_along_rows() -> None:
    x = gc.tensor("x", {"row": None, "xyz": 3})
    size = gc.tensor("size", {"row": None})
    source = gc.compile([x, size], gc.exp(x * size) / size).source
    lines = [line for line in source.splitlines() if "  # f64[3, n0]" in line]
    assert [line.split(" = ")[1].split("(")[0] for line in lines] == ["x0.transpose", *OPS]
    assert "return [t" in source  # in an order of its own, not copied


OPS = ["multiply", "exp", "divide"]


def test_bodies_of_loops_stay_as_they_are() -> None:
    x = gc.tensor("x", {"row": None, "xyz": 3})
    f = gc.compile([x], gc.fori_loop(0, 4, lambda i, s: gc.tanh(s * x.sum("xyz")), x))
    inside = [line for line in f.source.splitlines() if line.startswith(8 * " ")]
    assert any("tanh" in line for line in inside)
    assert not any("f64[3, n0]" in line for line in inside)


def test_one_pass_settles_the_order() -> None:
    x, size = given("x", N, 3), given("s", N)
    wide = tensor.expand(size, axes=(1,), sizes=(3,))
    graph = Graph((x, size), (elementwise.multiply(elementwise.exp(x), wide),))
    once = short_axes_first(graph)
    assert once != graph
    assert short_axes_first(once) == once


def test_what_lies_in_memory_stays_as_it_lies() -> None:
    x, size = given("x", N, 3), given("s", N)
    wide = tensor.expand(size, axes=(1,), sizes=(3,))
    product = elementwise.multiply(elementwise.exp(x), wide)
    graph = Graph((x, size), (product, elementwise.exp(wide)))
    made = short_axes_first_where_none_lies(graph)
    assert made.outputs[0] is product
    assert made.outputs[1].op is tensor.transpose
    assert short_axes_first_where_none_lies(made) == made


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


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum])
@pytest.mark.parametrize("places", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_reductions_over_few_places(ufunc: np.ufunc, places: int, rows: int) -> None:
    x = np.random.default_rng(places).normal(size=(rows, places, 2))
    x[rows // 2 :, places // 2 :] = np.nan
    start = 0.25
    for array in (x, x.transpose(1, 2, 0).copy().transpose(2, 0, 1)):
        for axes, first in (((1,), ()), ((1, 2), ()), ((2,), ()), ((1,), (start,))):
            if not first and not x.size and ufunc.identity is None:
                continue
            expected = ufunc.reduce(array, axes, None, None, False, *first)
            found = short.fold(ufunc, array, axes, np.empty_like(expected), *first)
            np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("rows", [0, 1, 9000])
@pytest.mark.parametrize(("i", "j", "k"), [(0, 2, 1), (1, 1, 1), (2, 3, 2), (4, 2, 4), (9, 9, 9)])
def test_products_of_many_small_matrices(rows: int, i: int, j: int, k: int) -> None:
    rng = np.random.default_rng(i)
    a, b, x = (rng.normal(size=(rows, *shape)) for shape in ((i, j), (j, k), (j,)))
    for order in ("C", "F"):
        a, b, x = (np.array(v, order=order) for v in (a, b, x))
        pairs = (short.matmul, a, b), (short.matvec, a, x), (short.vecdot, a[:, 0:1, :], x[:, None])
        for function, left, right in pairs:
            expected = getattr(np, function.__name__)(left, right)
            found = function(left, right, np.empty_like(expected))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_a_product_that_is_a_result_stays_in_order() -> None:
    x, w = gc.tensor("x", {"row": None, "in": 32}), gc.tensor("w", {"in": 32, "out": 4})
    y = gc.dot(x, w, dim="in")
    ops = [node.op for node in gc.compile([x, w], y, native=False).stages["scheduled"].nodes()]
    assert tensor.matmul in ops
    assert tensor.transpose not in ops
    moved = gc.compile([x, w], gc.exp(y), native=False).stages["scheduled"].nodes()
    assert tensor.transpose in [node.op for node in moved], "exp runs along the rows"
