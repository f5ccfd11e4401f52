"""Parts that are written over others are read in the whole, where that costs nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels.passes.parts import read_parts_in_results
from graphcore.ir.graph import Graph
from graphcore.ops.tensor import overwrite, slice_

INNER = slice(1, -1)


def scheduled(f: Callable[[gc.Tensor, gc.Tensor], object], size: int | None = None) -> gc.Compiled:
    """A function of a row, and of another one that its inner places are written into."""
    x, into = (gc.tensor(name, {"place": size}) for name in ("x", "into"))
    return gc.compile([x, into], f(x, into))


def mean(x: gc.Tensor) -> gc.Tensor:
    left, right = (x[{"place": part}] for part in (slice(-2), slice(2, None)))
    return (left + right) / 2


def put(into: gc.Tensor, part: gc.Tensor) -> gc.Tensor:
    return into.at[{"place": INNER}].set(part)


def twice(x: gc.Tensor, into: gc.Tensor) -> object:
    y = put(into, mean(x))
    return y, mean(y) + y[{"place": INNER}]


def slices_of_results(graph: Graph) -> int:
    nodes = [*graph.every_node()]
    return sum(x.op is slice_ and x.inputs[0].op is overwrite for x in nodes)


def test_a_part_is_read_in_the_whole() -> None:
    before = scheduled(twice).stages["optimized"]
    after = read_parts_in_results(before)
    assert slices_of_results(after) == slices_of_results(before) + 1
    (whole,) = [node for node in after.nodes() if node.op is overwrite]
    assert [node for node in after.nodes() if whole.inputs[1] in node.inputs] == [whole]


@pytest.mark.parametrize(
    "f",
    [
        pytest.param(lambda x, into: put(into, mean(x)), id="nothing else reads it"),
        pytest.param(lambda x, into: (put(into, mean(x)), mean(x)), id="it is a result"),
        pytest.param(
            lambda x, into: (put(into, mean(x)), gc.cumsum(mean(x), "place")), id="memory is needed"
        ),
        pytest.param(
            lambda x, into: put(into * gc.sin(mean(x)).sum("place"), mean(x)), id="a cycle"
        ),
    ],
)
def test_other_parts_stay(f: Callable[[gc.Tensor, gc.Tensor], object]) -> None:
    graph = scheduled(f).stages["optimized"]
    assert read_parts_in_results(graph) is graph


def test_few_places_are_written_where_the_others_are() -> None:
    def f(x: gc.Tensor, into: gc.Tensor) -> object:
        part = gc.sin(x[{"place": slice(3)}])
        return into.at[{"place": slice(3)}].set(part), part * x[{"place": slice(3, 6)}]

    graph = scheduled(f, 100).stages["optimized"]
    assert read_parts_in_results(graph) is graph
