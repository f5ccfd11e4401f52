"""Products of matrices, whose operands are read as they lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import dense
from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops import tensor as t

from .native import Both, M, N, given, needs_machine_code, some

pytestmark = needs_machine_code

FLOATS = ("float64", "float32", "complex128", "complex64")


def matrix(x: Node) -> Node:
    n = x.type.ndim
    return t.transpose(x, perm=(*range(n - 2), n - 1, n - 2))


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "bool"])
@pytest.mark.parametrize("ways", ["plain", "left", "right", "both", "batch", "batch turned"])
def test_products(ways: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    k = 5
    batch = (3,) if ways.startswith("batch") else ()
    x, y = given("x", *batch, N, k, dtype=dtype), given("y", *batch, k, M, dtype=dtype)
    if ways in ("left", "both", "batch turned"):
        x = matrix(given("x", *batch, k, N, dtype=dtype))
    if ways in ("right", "both"):
        y = matrix(given("y", *batch, M, k, dtype=dtype))
    both = Both([t.matmul(x, y)])
    for n, m in ((0, 3), (1, 0), (7, 9), (9, 8), (17, 33), (6, 210)):
        sizes = {N: n, M: m}
        arrays = [
            some(rng, tuple(sizes.get(size, size) for size in p.type.shape), dtype)
            for p in both.params
        ]
        both.agree(arrays, (n, m), 4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_with_the_own_transpose(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = given("x", 2, N, M, dtype=dtype)
    both = Both([t.matmul(x, matrix(x)), t.matmul(matrix(x), x)])
    for n, m in ((0, 3), (3, 0), (1, 1), (7, 9), (8, 17), (40, 3), (41, 43), (3, 600)):
        for y in both.agree([some(rng, (2, n, m), dtype)], (n, m), 8):
            if dtype[0] == "f":
                np.testing.assert_array_equal(y, np.swapaxes(y, -1, -2))


def middle(x: Node) -> Node:
    """The second axis of three as the batch."""
    return t.transpose(x, perm=(1, 0, 2))


VIEWS: dict[str, Callable[[str], tuple[Node, Node]]] = {
    "batch in the middle": lambda dtype: (
        middle(given("x", N, 3, M, dtype=dtype)),
        middle(given("y", M, 3, N, dtype=dtype)),
    ),
    "batch in the middle, turned": lambda dtype: (
        matrix(middle(given("x", M, 3, N, dtype=dtype))),
        matrix(middle(given("y", N, 3, M, dtype=dtype))),
    ),
    "repeated": lambda dtype: (
        t.expand(given("x", N, M, dtype=dtype), axes=(0,), sizes=(3,)),
        given("y", 3, M, N, dtype=dtype),
    ),
    "repeated and turned": lambda dtype: (
        t.transpose(t.expand(given("x", M, N, dtype=dtype), axes=(1,), sizes=(3,)), perm=(1, 2, 0)),
        t.expand(given("y", M, N, dtype=dtype), axes=(0,), sizes=(3,)),
    ),
    "merged axes": lambda dtype: (
        t.reshape(given("x", N, 3, M, dtype=dtype), shape=(3 * N, M)),
        given("y", M, N, dtype=dtype),
    ),
    "own transpose, batch in the middle": lambda dtype: (
        middle(x := given("x", N, 3, M, dtype=dtype)),
        matrix(middle(x)),
    ),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("view", VIEWS)
def test_products_read_operands_as_they_lie(view: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    node = t.matmul(*VIEWS[view](dtype))
    both = Both([node])
    for n, m in ((0, 3), (3, 0), (1, 1), (7, 9), (17, 33), (70, 35)):
        sizes = {N: n, M: m}
        shapes = [tuple(sizes.get(size, size) for size in p.type.shape) for p in both.params]
        both.agree([some(rng, shape, dtype) for shape in shapes], (n, m), 8)
    steps = best_plan(Graph(both.params, (node,)), both.params).steps
    assert steps == [node], "an operand is copied"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sizes", [(3, 4, 5), (4, 4, 4), (10, 30, 12), (41, 42, 43), (2, 600, 5)])
def test_products_of_known_sizes(sizes: tuple[int, int, int], dtype: str) -> None:
    """The first three sizes take our routine, the others BLAS; a nan or inf stays in its row."""
    n, k, m = sizes
    both = Both([t.matmul(given("x", n, k, dtype=dtype), given("y", k, m, dtype=dtype))])
    rng = np.random.default_rng(4)
    x, y = some(rng, (n, k), dtype), some(rng, (k, m), dtype)
    both.agree([x, y], (0, 0), 8)
    x[0, 0], x[1, 1] = np.nan, np.inf
    (found,) = both.agree([x, y], (0, 0), 8)
    assert np.isnan(found[0]).all()
    assert not np.isfinite(found[1]).any()
    assert np.isfinite(found[2:]).all()


def test_neither_rows_nor_columns_side_by_side() -> None:
    x = t.transpose(given("x", N, M, 3), perm=(2, 0, 1))
    both = Both([t.matmul(x, given("y", 3, M, N))])
    rng = np.random.default_rng(3)
    both.agree([some(rng, (7, 9, 3), "float64"), some(rng, (3, 9, 7), "float64")], (7, 9), 8)


def test_slices_that_begin_at_the_start_or_elsewhere() -> None:
    """Only the former are read as they lie; where a slice begins may be known only at the call."""
    rng = np.random.default_rng(2)
    x, y = given("x", N, 7), given("y", 7, M)
    for start, column in ((0, 0), (1, 2), (N - 1, 2)):
        part = t.slice_(x, starts=(start, 0), sizes=(N - start, 7), steps=(1, 1))
        less = t.slice_(x, starts=(0, column), sizes=(N, 3), steps=(1, 1))
        other = t.slice_(y, starts=(column, 0), sizes=(3, M), steps=(1, 1))
        both = Both(
            [t.matmul(part, y), t.matmul(less, other), t.matmul(matrix(other), matrix(less))]
        )
        for n, m in ((1, 1), (9, 8), (17, 33)):
            both.agree([some(rng, (n, 7)), some(rng, (7, m))], (n, m), 64)


def test_an_inner_axis_as_long_as_a_loop_finds() -> None:
    """The gradient of a matrix that each of the steps multiplies with: products of all steps."""
    a, start = gc.tensor("a", {"row": None, "col": "row"}), gc.tensor("v", {"row": None})

    def step(state: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        i, v = state
        return i + 1, gc.tanh(gc.dot(a, v.rename(row="col"), dim="col"))

    _, last = gc.while_loop(lambda state: state[0] < 40, step, (np.int64(0), start))
    slope = gc.grad((last**2).sum(), a)
    rng = np.random.default_rng(0)
    given = rng.standard_normal((5, 5)), rng.standard_normal(5)
    found, wanted = (gc.compile([a, start], slope, native=way)(*given) for way in (True, False))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_routines_are_made_for_the_rows_of_a_call() -> None:
    """One serves up to FEW_ROWS rows, another more: both at their edge, and one after the other."""
    x, y = gc.tensor("x", {"i": None, "k": None}), gc.tensor("y", {"k": None, "j": None})
    product = gc.dot(x, y, dim="k")
    f = gc.compile([x, y], [product, gc.special.softmax(product, "j").sum("j")], native=True)
    rng = np.random.default_rng(12)
    few = dense.FEW_ROWS
    for rows in (few + 1, few, 1, 129, 0, 16001):
        a, b = rng.normal(size=(rows, 30)), rng.normal(size=(30, 70))
        found, ones = f(a, b)
        np.testing.assert_allclose(found, a @ b, atol=1e-12)
        np.testing.assert_allclose(ones, np.ones(rows), atol=1e-12)
