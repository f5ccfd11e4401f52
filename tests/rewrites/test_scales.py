"""Factors and divisors that sums repeat."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.ops.elementwise import divide, multiply

Array = np.ndarray
DIMS = {"i": 3, "j": 4, "k": 5}


def tensor(name: str, dims: str, known: bool = False, dtype: str = "float64") -> gc.Tensor:
    return gc.tensor(name, {dim: DIMS[dim] if known else None for dim in dims}, dtype=dtype)


X, Y, V = tensor("x", "ij"), tensor("y", "ij"), tensor("v", "j")
S, C, CUBE, KI = tensor("s", "i"), tensor("c", ""), tensor("cube", "ijk"), tensor("ki", "ki")
KJ = tensor("kj", "kj")
INPUTS = [X, Y, V, S, C, CUBE, KI, KJ]


def scaled(result: gc.Tensor, *more: gc.Tensor, inputs: list[gc.Tensor] = INPUTS) -> set[int]:
    """The ranks of the products and quotients that are computed."""
    graph = gc.compile(inputs, [result, *more], native=False).stages["optimized"]
    return {x.type.ndim for x in graph.every_node() if x.op in (divide, multiply)}


CASES: dict[str, tuple[gc.Tensor, Callable[..., Array]]] = {
    "sum": ((X / S).sum("j"), lambda x, s, **_: (x / s[:, None]).sum(1)),
    "sum over all": ((X / C).sum(), lambda x, c, **_: (x / c).sum()),
    "number": ((X / 3).sum("i"), lambda x, **_: (x / 3).sum(0)),
    "dot": (gc.dot(X / S, V, dim="j"), lambda x, s, v, **_: (x / s[:, None]) @ v),
    "factor": (gc.dot(X * S, V, dim="j"), lambda x, s, v, **_: (x * s[:, None]) @ v),
    "vecdot": (gc.dot(X / S, Y, dim="j"), lambda x, s, y, **_: (x / s[:, None] * y).sum(1)),
    "other": (gc.dot(X / V, V + 1, dim="j"), lambda x, v, **_: (x / v) @ (v + 1)),
    "softmax": (
        gc.dot(gc.special.softmax(X, "j"), V, dim="j"),
        lambda x, v, **_: (np.exp(x) / np.exp(x).sum(1, keepdims=True)) @ v,
    ),
    "turned": (
        (CUBE / KI).sum("j"),
        lambda cube, ki, **_: (cube / ki.T[:, None]).sum(1),
    ),
    "three": (
        gc.dot(CUBE / KI, KJ, dim="j"),
        lambda cube, ki, kj, **_: np.einsum("ijk,kj->ik", cube / ki.T[:, None], kj),
    ),
    "neither": (
        gc.dot(CUBE / KI, KJ, dim=["j", "k"]),
        lambda cube, ki, kj, **_: np.einsum("ijk,kj->i", cube / ki.T[:, None], kj),
    ),
    "upside down": ((S / X).sum("j"), lambda x, s, **_: (s[:, None] / x).sum(1)),
    "given": (
        gc.dot(CUBE / KJ, KJ + KI.sum("i"), dim=["j", "k"]),
        lambda cube, kj, ki, **_: np.einsum("ijk,kj->i", cube / kj.T, kj + ki.sum(1)[:, None]),
    ),
}


def values(dtype: str = "float64", **sizes: int) -> dict[str, Array]:
    rng, dims = np.random.default_rng(1), DIMS | sizes
    shapes = {str(x.name): [dims[dim] for dim in x.dims] for x in INPUTS}
    return {name: rng.uniform(0.5, 2, shape).astype(dtype) for name, shape in shapes.items()}


@pytest.mark.parametrize("native", [False, None])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, native: bool | None) -> None:
    result, reference = CASES[name]
    f = gc.compile(INPUTS, result, native=native)
    for sizes in ({}, {"j": 1}, {"i": 1}, {"k": 1}, {"i": 0}, {"k": 0}, {"j": 37, "i": 19}):
        given = values(**sizes)
        np.testing.assert_allclose(f(**given), reference(**given), rtol=1e-13)


def test_fewer_values_are_scaled() -> None:
    ranks = {name: scaled(result) for name, (result, _) in CASES.items()}
    few = {"sum": 1, "sum over all": 0, "number": 1, "dot": 1, "factor": 1, "vecdot": 1}
    few |= {"other": 1, "softmax": 1, "turned": 2, "given": 2}
    assert {name: max(ranks[name]) for name in few} == few


def test_a_sum_of_nothing_is_0() -> None:
    for factor in (0.0, np.nan, np.inf):
        for name in ("sum", "dot", "vecdot", "factor"):
            given = values(j=0) | {"s": np.full(3, factor)}
            found = gc.compile(INPUTS, CASES[name][0])(**given)
            np.testing.assert_array_equal(found, np.zeros(3))


def test_what_stays() -> None:
    """Values that are needed as they are, axes that are summed, sizes that may be larger."""
    assert scaled((X / S).sum("j"), X / S) == {2}
    assert scaled((X / V).sum("j")) == {2}
    assert scaled(gc.dot(X / S, KJ, dim="j")) == {2}
    whole = [tensor("x", "ij", dtype="int64"), tensor("s", "i", dtype="int64")]
    assert 2 in scaled((whole[0] * whole[1]).sum("j"), inputs=whole)
    turned = [tensor("x", "ij", dtype="complex128"), tensor("s", "i", dtype="complex128")]
    assert 2 in scaled((turned[0] / turned[1]).sum("j"), inputs=turned)


def test_known_sizes_decide() -> None:
    wide, narrow = gc.tensor("wide", {"i": 3, "j": 9}), gc.tensor("narrow", {"k": 2, "j": 9})
    s = gc.tensor("s", {"i": 3})
    graph = gc.compile([wide, narrow, s], gc.dot(wide / s, narrow, dim="j")).stages["optimized"]
    assert [x.type.shape for x in graph.nodes() if x.op is divide] == [(3, 2)]


def test_loops() -> None:
    def step(state: gc.Tensor, _: gc.Tensor) -> tuple[gc.Tensor, None]:
        grown = X * (1 + state.sum())
        return gc.dot(grown / grown.sum("j"), V, dim="j"), None

    last, _ = gc.scan(step, gc.ones({"i": X.sizes["i"]}), length=3)
    assert max(scaled(last)) == 1
    given = values()
    state = np.ones(3)
    for _ in range(3):
        grown = given["x"] * (1 + state.sum())
        state = (grown / grown.sum(1, keepdims=True)) @ given["v"]
    np.testing.assert_allclose(gc.compile(INPUTS, last)(**given), state, rtol=1e-13)


def test_float32() -> None:
    x, s = tensor("x", "ij", dtype="float32"), tensor("s", "i", dtype="float32")
    given = {k: v for k, v in values("float32").items() if k in "xs"}
    found = gc.compile([x, s], (x / s).sum("j"))(**given)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (given["x"] / given["s"][:, None]).sum(1), rtol=1e-6)
