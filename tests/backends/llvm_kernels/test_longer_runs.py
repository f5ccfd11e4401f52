"""Windows that are copied with their last axis and channels as one axis."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels.passes.longer_runs import in_longer_runs
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .native import Both, N, given, needs_machine_code

pytestmark = needs_machine_code


def copied(
    x: Node, sizes: tuple[int, int], strides: tuple[int, int] = (1, 1), dilation: int = 1
) -> Node:
    """Each window of an image with its channels as one row, as convolutions multiply them."""
    seen = t.windows(x, axes=(1, 2), sizes=sizes, strides=strides, dilations=(2, dilation))
    turned = t.transpose(seen, perm=(0, 3, 4, 1, 2, 5))
    b, y, x_, *window = turned.type.shape
    return t.pack(turned, shape=(b * y * x_, window[0] * window[1] * window[2]))


def rewritten(*values: Node) -> list[Node]:
    """The values with their windows copied in longer runs."""
    return [*in_longer_runs(Graph((), values)).outputs]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "complex128", "bool"])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize(("width", "channels"), [(5, 3), (3, 2), (4, 15), (9, 4)])
def test_values_are_those_of_numpy(
    dtype: str, strides: tuple[int, int], width: int, channels: int
) -> None:
    x = given("x", N, 9, 13, channels, dtype=dtype)
    both = Both(rewritten(copied(x, (2, width), strides)))
    rng = np.random.default_rng(0)
    for n in (0, 1, 3):
        both.agree([(9 * rng.standard_normal((n, 9, 13, channels))).astype(dtype)], (n, 0))


def test_of_a_computed_image_and_too_few_places_for_a_window() -> None:
    for length in (13, 4, 3):
        x = given("x", N, 9, length, 3)
        both = Both(rewritten(copied(e.exp(x), (2, 4)), copied(e.negative(x), (2, 3), (1, 2))))
        both.agree([np.random.default_rng(1).standard_normal((2, 9, length, 3))], (2, 0), 4)


def test_unknown_lengths() -> None:
    x = given("x", 2, 9, N, 3)
    seen = t.windows(x, axes=(1, 2), sizes=(3, 5), strides=(1, 2), dilations=(1, 1))
    both = Both(rewritten(t.transpose(seen, perm=(0, 3, 4, 1, 2, 5))))
    for n in (0, 4, 5, 6, 40):
        both.agree([np.random.default_rng(1).standard_normal((2, 9, n, 3))], (n, 0))


@pytest.mark.parametrize(("channels", "dilation", "size"), [(3, 1, 15), (16, 1, 5), (3, 2, 5)])
def test_which_windows_are_copied_so(channels: int, dilation: int, size: int) -> None:
    """Those of few channels, whose places follow each other."""
    (rows,) = rewritten(copied(given("x", N, 9, 13, channels), (2, 5), dilation=dilation))
    (seen,) = (node for node in Graph((), (rows,)).nodes() if node.op is t.windows)
    assert seen.attrs["sizes"] == (2, size)


@pytest.mark.parametrize(("channels", "rows_first"), [(3, True), (1, False)])
def test_products_of_long_rows_are_given_as_they_lie(channels: int, rows_first: bool) -> None:
    """Few outputs come first in other products, which are then turned for a result."""
    x = gc.tensor("x", {"b": 4, "y": 40, "x": 40, "c": channels})
    w = gc.tensor("w", {"ky": 3, "kx": 3, "c": channels, "o": 8})
    run = gc.compile([x, w], gc.conv(x, w, {"y": "ky", "x": "kx"}, contract="c"), native=True)
    (product,) = (n for n in run.stages["laid out"].every_node() if n.op is t.matmul)
    assert (product.type.shape[-1] == 8) == rows_first
