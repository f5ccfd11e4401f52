"""What no type says of plain ops, in one table: their meaning and both targets are held to it.

A target of one's own is tested by the same rows. `docs/developers/contract.md` says how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels, numpy_backend
from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ops import leaf, linalg, meaning, tensor
from graphcore.rewrites import pipeline

Array = np.ndarray
Target = Callable[[Sequence[Node], Sequence[Sequence[Array]]], list[Array]]
nan, inf, I8 = np.nan, np.inf, np.dtype("i8")


class Row(NamedTuple):
    """An op, its operands and attrs, and its result, whose dtype counts as well."""

    op: Op
    operands: list[Any]
    result: Any = None
    attrs: Mapping[str, Any] = MappingProxyType({})


FIRST: dict[str, Any] = {"axes": (0,)}
ALONG: dict[str, Any] = {"axis": 0}
FOUR = {**FIRST, "shape": (4,)}
HIGHEST = Literal(5.0, np.dtype("f8"))
TWICE = np.array([0, 2, -4, 2])
"""Positions of four: the first twice, once from the end, and the third twice."""


def nothing(dtype: str) -> Array:
    return np.zeros((2, 0), dtype)


ROWS: dict[str, Row] = {
    "of updates in one place the last is put": Row(
        tensor.put, [[9.0] * 4, [1.0, 2, 3, 4], TWICE], [3.0, 9, 4, 9], FIRST
    ),
    "the last is that in the last row": Row(
        tensor.put, [[9.0, 9], [[1.0, 2], [3, 4]], [[0, 1], [1, 0]]], [4.0, 3], FIRST
    ),
    "updates in one place are all added": Row(
        tensor.scatter, [[1.0, 2, 3, 4], TWICE], [4.0, 0, 6, 0], FOUR
    ),
    "to what is there": Row(
        tensor.scatter_add, [[9.0] * 4, [1.0, 2, 3, 4], TWICE], [13.0, 9, 15, 9], FIRST
    ),
    "or multiplied": Row(tensor.scatter_prod, [[1.0, 2, 3, 4], TWICE], [3.0, 1, 8, 1], FOUR),
    "or the largest of them": Row(
        tensor.scatter_max, [[2.0] * 4, [1.0, nan, 3, 4], TWICE], [3.0, 2, nan, 2], FIRST
    ),
    "or the smallest": Row(
        tensor.scatter_min, [[2.0] * 4, [1.0, nan, 3, 4], TWICE], [1.0, 2, nan, 2], FIRST
    ),
    "negative positions count from the end": Row(
        tensor.gather, [[1.0, 2, 3], np.array([-1, 0, -3], "i1")], [3.0, 1, 1], FIRST
    ),
    "positions have any dtype of integers": Row(
        tensor.gather, [[1.0, 2, 3], np.array([2, 0], "u8")], [3.0, 1], FIRST
    ),
    "the largest of nothing is the lowest": Row(
        tensor.max_, [nothing("f8")], [-inf, -inf], {"axes": (1,)}
    ),
    "of integers": Row(
        tensor.max_, [nothing("i2")], np.full(2, -(2**15), "i2"), {"axes": (1,)}
    ),
    "of naturals": Row(tensor.max_, [nothing("u1")], np.zeros(2, "u1"), {"axes": (1,)}),
    "of truth values": Row(tensor.max_, [nothing("?")], [False, False], {"axes": (1,)}),
    "the smallest of nothing is the highest": Row(
        tensor.min_, [nothing("f4")], np.full(2, inf, "f4"), {"axes": (1,)}
    ),
    "of integers as well": Row(
        tensor.min_, [nothing("i8")], [2**63 - 1] * 2, {"axes": (1,)}
    ),
    "an initial value is one of all": Row(
        tensor.max_, [nothing("f8")], [5.0, 5.0], {"axes": (1,), "initial": HIGHEST}
    ),
    "a largest value with nan is nan": Row(tensor.max_, [[1.0, nan, 3]], nan, FIRST),
    "the sum of nothing is 0": Row(tensor.sum_, [nothing("i8")], [0, 0], {"axes": (1,)}),
    "its product is 1": Row(tensor.prod, [nothing("f8")], [1.0, 1.0], {"axis": 1}),
    "its norm is 0": Row(tensor.norm, [nothing("f8")], [0.0, 0.0], {"axes": (1,)}),
    "all of nothing hold": Row(tensor.all_, [nothing("?")], [True, True], {"axes": (1,)}),
    "none of nothing holds": Row(tensor.any_, [nothing("?")], [False, False], {"axes": (1,)}),
    "of equal values the first is the largest": Row(tensor.argmax, [[1.0, 3, 3]], 1, ALONG),
    "or the smallest one": Row(tensor.argmin, [[3.0, 1, 1]], 1, ALONG),
    "the first nan is": Row(tensor.argmax, [[1.0, nan, 3, nan]], 1, ALONG),
    "nan is sorted to the end": Row(tensor.sort, [[nan, 2.0, -inf]], [-inf, 2, nan], ALONG),
    "equal values keep their order": Row(
        tensor.argsort, [[1.0, 0, 1, 0]], [1, 3, 0, 2],
        {**ALONG, "size": 4, "descending": False},
    ),
    "also where the largest comes first": Row(
        tensor.argsort, [[1.0, 0, nan, 1]], [2, 0, 3, 1],
        {**ALONG, "size": 4, "descending": True},
    ),
    "on the left equal values are not passed": Row(
        tensor.searchsorted, [[1.0, 2, 2, 3], [2.0]], [1], {"side": "left"}
    ),
    "on the right they are": Row(
        tensor.searchsorted, [[1.0, 2, 2, 3], [2.0]], [3], {"side": "right"}
    ),
    "running extremes are nan from the first on": Row(
        tensor.cummax, [[1.0, nan, 3]], [1.0, nan, nan], ALONG
    ),
    "a 0 absorbs all factors": Row(
        tensor.multiply_no_nan, [[0.0, 0.0, 2.0], [inf, nan, inf]], [0.0, 0, inf]
    ),
    "a tie is won by half": Row(
        tensor.where_greater, [[4.0, 4, 4], [1.0, 2, 3], [2.0, 2, 2]], [0.0, 2, 4]
    ),
    "a factor of 0 forgets even infinity": Row(
        tensor.recurrence, [[0.5, 0.0, 2.0], [inf, 1.0, 1.0]], [inf, 1.0, 3], ALONG
    ),
}  # fmt: skip

REFUSED = {
    "a position behind the last": Row(tensor.gather, [[1.0, 2], [2]], attrs=FIRST),
    "a position before the first": Row(tensor.put, [[1.0, 2], [1.0], [-3]], attrs=FIRST),
    "where updates are added": Row(tensor.scatter, [[1.0], [4]], attrs=FOUR),
    "a singular matrix": Row(linalg.inv, [np.zeros((2, 2))], attrs={"check": True}),
}
"""What has a result for some values only (`Trait.MAY_RAISE`): a target refuses all others."""


def node_of(name: str, row: Row) -> tuple[Node, list[Array]]:
    arrays = [np.asarray(x) for x in row.operands]
    params = [
        leaf.input_(name=f"{name} {i}", dtype=x.dtype, shape=x.shape, dims=None)
        for i, x in enumerate(arrays)
    ]
    return row.op(*params, **row.attrs), arrays


def by_meaning(nodes: Sequence[Node], operands: Sequence[Sequence[Array]]) -> list[Array]:
    with np.errstate(all="ignore"):
        return [meaning.compute(x, given, {})[0] for x, given in zip(nodes, operands, strict=True)]


def by_numpy(nodes: Sequence[Node], operands: Sequence[Sequence[Array]]) -> list[Array]:
    graph = Graph(tuple(param for x in nodes for param in x.inputs), tuple(nodes))
    return numpy_backend.build(graph, ())([x for given in operands for x in given], ())


def by_machine_code(nodes: Sequence[Node], operands: Sequence[Sequence[Array]]) -> list[Array]:
    if llvm_kernels.unavailable():
        pytest.skip("machine code does not run here")
    graph = Graph(tuple(param for x in nodes for param in x.inputs), tuple(nodes))
    made = pipeline.run(graph, llvm_kernels.OWN)[-1].graph
    run = llvm_kernels.build(made, (), lambda xs: (list(xs), ()))
    return run(*[x for given in operands for x in given])


@pytest.mark.parametrize("target", [by_meaning, by_numpy, by_machine_code])
def test_results(target: Target) -> None:
    nodes, operands = zip(*[node_of(*item) for item in ROWS.items()], strict=True)
    for (name, row), node, found in zip(ROWS.items(), nodes, target(nodes, operands), strict=True):
        wanted = np.asarray(row.result)
        assert (found.dtype, found.shape) == (node.type.dtype, node.type.shape), name
        assert found.dtype == wanted.dtype, name
        np.testing.assert_array_equal(found, wanted, name)


@pytest.mark.parametrize("target", [by_numpy, by_machine_code])
@pytest.mark.parametrize("name", REFUSED)
def test_refusals(target: Target, name: str) -> None:
    node, operands = node_of(name, REFUSED[name])
    with pytest.raises((gc.GraphError, numpy_backend.KernelError)):
        target([node], [operands])
