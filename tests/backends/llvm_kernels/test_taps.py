"""Products of windows with a vector read the windows where they lie."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels.passes.taps import summed_in_place
from graphcore.backends.llvm_kernels.planning import best_plan
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size, count
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .native import Both, M, N, given, needs_machine_code, some

pytestmark = needs_machine_code


def copied(
    x: Node, sizes: tuple[Size, Size], strides: tuple[int, int] = (1, 1), dilation: int = 1
) -> Node:
    """The windows of an image as a matrix: a row for each place of a window."""
    seen = t.windows(x, axes=(0, 1), sizes=sizes, strides=strides, dilations=(2, dilation))
    shape = seen.type.shape
    return t.pack(seen, shape=(count(shape[:2]), count(shape[2:])))


def both_products(matrix: Node, dtype: str) -> list[Node]:
    """A sum over the places of a window, and one over windows, with vectors of their own."""
    places, many = matrix.type.shape
    turned = t.transpose(matrix, perm=(1, 0))
    v, w = given("v", places, dtype=dtype), given("w", many, dtype=dtype)
    return [t.matvec(turned, v), t.matvec(matrix, w)]


def rewritten(*values: Node) -> list[Node]:
    """The values with windows that are summed where they lie."""
    return [*summed_in_place(Graph((), values)).outputs]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("strides", [(1, 1), (3, 1)])
@pytest.mark.parametrize("window", [(2, 3), (1, 40), (9, 7), (35, 1)])
def test_values_are_those_of_numpy(
    dtype: str, strides: tuple[int, int], window: tuple[int, int]
) -> None:
    x = given("x", N, M, dtype=dtype)
    made = both_products(copied(x, window, strides, 3), dtype)
    new = rewritten(*made)
    assert all(node.op is not t.pack for node in Graph((), tuple(new)).nodes())
    both, rng = Both(new), np.random.default_rng(0)
    for n, m in ((0, 0), (5, 8), (20, 9), (71, 119), (80, 161)):
        rows = max((n - 2 * (window[0] - 1) - 1) // strides[0] + 1, 0)
        columns = max(m - 3 * (window[1] - 1), 0)
        shapes = (window[0] * window[1],), (rows * columns,), (n, m)
        both.agree([some(rng, shape, dtype) for shape in shapes], (n, m), 400)


def test_values_that_are_not_finite() -> None:
    """Padding multiplies them by zero, as it does in the copied windows."""
    x, w = gc.tensor("x", {"t": None}), gc.tensor("w", {"t": "n"})
    y = gc.signal.convolve(x, w, mode="same")
    plain, native = (gc.compile([x, w], y, native=native) for native in (False, True))
    for at, value in ((0, np.inf), (30, np.nan), (59, -np.inf)):
        values = np.ones(60), np.arange(5.0)
        values[0][at] = value
        np.testing.assert_array_equal(native(*values), plain(*values))
        kernel = np.array([1.0, value, 2.0])
        np.testing.assert_array_equal(native(np.ones(60), kernel), plain(np.ones(60), kernel))


@pytest.mark.parametrize(
    ("dtype", "stride", "columns"), [("complex128", 1, M), ("float64", 2, M), ("float64", 1, 7)]
)
def test_which_windows_are_copied(dtype: str, stride: int, columns: Size) -> None:
    """Those of complex values, and those that are not side by side or are too few for that."""
    made = both_products(copied(given("x", N, columns, dtype=dtype), (2, 3), (1, stride)), dtype)
    assert rewritten(*made) == made


def test_a_product_with_another_matrix_is_one_of_copied_windows() -> None:
    matrix = copied(given("x", N, M), (2, 3))
    product = t.matmul(t.transpose(matrix, perm=(1, 0)), given("w", 6, 4))
    assert rewritten(product) == [product]


@pytest.mark.parametrize("window", [(3, 5), (M, N)])
def test_an_image_that_is_computed_or_padded_is_stored_once(window: tuple[Size, Size]) -> None:
    """Each place of it is read by as many windows as a window has places."""
    x = given("x", N, M)
    padded = t.embed(x, shape=(N + 2, M + 4), starts=(1, 2), steps=(1, 1))
    for image in (padded, e.exp(x)):
        turned = t.transpose(copied(image, window), perm=(1, 0))
        made = rewritten(t.matvec(turned, given("v", count(window))))
        assert image in best_plan(Graph((), tuple(made)), ()).computed
