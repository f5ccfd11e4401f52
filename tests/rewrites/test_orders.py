"""Contractions that others sum on are computed in the order that costs least."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.graph import Graph
from graphcore.ops import tensor as t

A = gc.tensor("A", {"i": 16, "k": 16})
B = gc.tensor("B", {"k": 16, "j": 16})
C = gc.tensor("C", {"j": 16, "l": 2})
x = gc.tensor("x", {"j": 16})
AB = gc.dot(A, B, dim="k")
INPUTS = [A, B, C, x]

Hand = Callable[..., Any]
CASES: dict[str, tuple[gc.Tensor, Hand]] = {
    "product with a vector": (gc.dot(AB, x, dim="j"), lambda a, b, c, x: a @ (b @ x)),
    "product with few columns": (gc.dot(AB, C, dim="j"), lambda a, b, c, x: a @ (b @ c)),
    "chain of three": (
        gc.dot(gc.dot(AB, B.rename(k="j", j="m"), dim="j"), x.rename(j="m"), dim="m"),
        lambda a, b, c, x: a @ (b @ (b @ x)),
    ),
    "sum over columns": (AB.sum("j"), lambda a, b, c, x: a @ b.sum(1)),
    "sum over rows": (AB.sum("i"), lambda a, b, c, x: a.sum(0) @ b),
    "sum of all": (AB.sum(), lambda a, b, c, x: a.sum(0) @ b.sum(1)),
    "diagonal": (gc.diagonal(AB, ("i", "j")), lambda a, b, c, x: np.einsum("ik,ki->i", a, b)),
    "trace": (gc.linalg.trace(AB, ("i", "j")), lambda a, b, c, x: np.einsum("ik,ki->", a, b)),
}


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(y.shape) for y in INPUTS]


@pytest.mark.parametrize("case", CASES)
def test_no_product_of_matrices_is_left(case: str) -> None:
    y, hand = CASES[case]
    f = gc.compile(INPUTS, y, native=False)
    few = [node for node in f.stages["optimized"].nodes() if node.op is t.matmul]
    assert all(2 in node.type.shape for node in few)
    np.testing.assert_allclose(f(*arrays()), hand(*arrays()), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("case", CASES)
def test_derivatives(case: str) -> None:
    y, _ = CASES[case]
    needed = {node.attrs.get("name") for node in Graph((), (y.node,)).nodes()}
    values = zip(INPUTS, arrays(), strict=True)
    small = {p.name: array / 4 for p, array in values if p.name in needed}
    gc.check_grads(gc.sin(y).sum(), [A, B], small)


def products(f: gc.Compiled) -> int:
    return sum(node.op is t.matmul for node in f.stages["optimized"].nodes())


def test_a_product_that_others_need_stays() -> None:
    y = gc.dot(AB, x, dim="j")
    f = gc.compile(INPUTS, [y, gc.exp(AB)])
    assert [node.op for node in f.stages["optimized"].nodes()].count(t.matvec) == 1
    assert products(f) == 1
    assert products(gc.compile(INPUTS, [y, AB])) == 1


def test_unknown_sizes_decide_nothing() -> None:
    """(a b) c and a (b c) cost less for some sizes each; with a vector there is no doubt."""
    a, b = gc.tensor("a", {"i": None, "k": 1000}), gc.tensor("b", {"k": 1000, "j": None})
    c, v = gc.tensor("c", {"j": None, "l": None}), gc.tensor("v", {"j": None})
    bc = gc.dot(b, c, dim="j")
    nodes = gc.compile([a, b, c], gc.dot(a, bc, dim="k")).stages["optimized"].nodes()
    first = next(node for node in nodes if node.op is t.matmul)
    assert first.type.shape[0] == 1000, "the order is that of the program"
    assert products(gc.compile([a, b, v], gc.dot(gc.dot(a, b, dim="k"), v, dim="j"))) == 0


def test_in_a_loop() -> None:
    def step(s: gc.Tensor, _: Any) -> Any:
        return gc.dot(gc.dot(A * s.rename(j="k"), B, dim="k"), s, dim="j").rename(i="j"), None

    y, _ = gc.scan(step, x, length=3)
    f = gc.compile([A, B, x], y)
    inside = [node for node in f.stages["optimized"].every_node() if node.op is t.matmul]
    a, b, _, s = arrays()
    expected = s
    for _ in range(3):
        expected = (a * expected) @ (b @ expected)
    assert not inside
    np.testing.assert_allclose(f(a, b, s), expected, rtol=1e-9)


def test_of_nothing_the_sum_is_zero() -> None:
    """A contraction over no places is 0, even where the other factor is infinite."""
    a, b = gc.tensor("a", {"i": None, "k": None}), gc.tensor("b", {"k": None, "j": None})
    f = gc.compile([a, b], gc.dot(a, b, dim="k").sum("j"))
    assert (f(np.full((3, 2), np.inf), np.zeros((2, 0))) == 0).all()
    assert (f(np.zeros((3, 0)), np.zeros((0, 2))) == 0).all()
