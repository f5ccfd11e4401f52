"""Dataclasses and registered classes as trees, `gc.tree`, and trees as vectors."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import graphcore as gc


@dataclass
class Layer:
    w: Any
    b: Any
    name: str = field(default="layer", metadata={"static": True})


@dataclass(frozen=True, slots=True)
class Pair:
    first: Any
    second: Any

    def __post_init__(self) -> None:
        assert self.first is not None  # is not called where a tree is built again


class Line:
    def __init__(self, slope: Any, start: Any, unit: str = "m") -> None:
        self.slope, self.start, self.unit = slope, start, unit


gc.tree.register(
    Line, lambda x: ((x.slope, x.start), x.unit), lambda unit, parts: Line(*parts, unit)
)
W, B, X = gc.tensor("w", {"col": 2}), gc.tensor("b", {}), gc.tensor("x", {"row": None, "col": 2})


def test_dataclasses_are_inputs_outputs_and_wrt() -> None:
    layer = Layer(W, B, "first")
    loss = ((gc.dot(X, layer.w, dim="col") + layer.b) ** 2).sum()
    f = gc.compile([X, layer], Pair(loss, gc.grad(loss, layer)), native=False)
    got = f(np.eye(2), Layer(np.ones(2), 1.0, "first"))
    assert isinstance(got, Pair)
    assert got.first == 8.0
    assert got.second.name == "first"
    np.testing.assert_array_equal(got.second.w, [4.0, 4.0])
    again = pickle.loads(pickle.dumps(f))(np.eye(2), Layer(np.ones(2), 1.0, "first"))
    assert again.second.b == got.second.b


def test_registered_classes_are_built_only_of_results() -> None:
    line = Line(W, B)
    f = gc.compile([X, line], {"line": gc.tree.map(lambda p: 2 * p, line)}, native=False)
    got = f(np.eye(2), Line(np.ones(2), 3.0))["line"]
    assert (type(got), got.start, got.unit) == (Line, 6.0, "m")
    with pytest.raises(gc.GraphTypeError, match="must be a Line"):
        f(np.eye(2), Line(np.ones(2), 3.0, "km"))


def test_loops_and_branches_carry_objects() -> None:
    start = Layer(W, 0.0)

    def step(layer: Layer, x: gc.Tensor) -> tuple[Layer, None]:
        return Layer(layer.w + x, layer.b + x.sum()), None

    last, _ = gc.scan(step, start, X, dim="row")
    chosen = gc.cond(B > 0, lambda: last, lambda: Layer(W, B))
    many = gc.tensor("many", {"run": None, "col": 2})
    wide = gc.vectorize(chosen, {W: many})
    f = gc.compile([X, B, many], wide, native=False)
    got = f(np.eye(2), 1.0, np.zeros((3, 2)))
    np.testing.assert_array_equal(got.w, np.ones((3, 2)))
    assert (got.b == 2.0).all()


def test_a_derivative_of_a_loop_by_an_object() -> None:
    layer = Layer(W, B)
    last, _ = gc.scan(
        lambda c, x: (gc.tanh(c * layer.b + (x * layer.w).sum()), None), 0.0, X, dim="row"
    )
    slope = gc.grad(last, layer)
    tangent = gc.pushforward(last, layer, slope)
    f = gc.compile([X, layer], [slope, tangent], native=False)
    d, t = f(np.eye(2), Layer(np.array([0.3, -0.2]), 0.5))
    np.testing.assert_allclose(t, (d.w**2).sum() + d.b**2)


def test_map_and_flatten() -> None:
    tree = {"a": (1, [2]), "b": Layer(3, {"c": 4})}
    leaves, structure = gc.tree.flatten(tree)
    assert leaves == gc.tree.leaves(tree) == [1, 2, 3, 4]
    assert gc.tree.unflatten(structure, leaves) == tree
    assert gc.tree.flatten(gc.tree.map(lambda x: 0, tree))[1] == structure
    assert gc.tree.map(lambda x, y: x - y, tree, tree)["b"] == Layer(0, {"c": 0})
    assert gc.tree.map(abs, -3) == 3
    assert gc.tree.map(lambda x: x, ((), [], {})) == ((), [], {})


# ---- one vector and back

P = {"w": gc.tensor("w", {"feature": 2, "class": 3}), "b": [gc.tensor("b", {}, dtype="float32")]}
V = {"w": np.arange(6.0).reshape(2, 3), "b": [np.float32(7)]}


def test_a_tree_of_tensors_as_a_vector_and_back() -> None:
    vector, unravel = gc.ravel(P)
    back = unravel(vector)
    assert [x.node.type for x in gc.tree.leaves(back)] == [x.node.type for x in gc.tree.leaves(P)]
    both = gc.compile(P, [vector, back], native=False)(V)
    np.testing.assert_array_equal(both[0], np.arange(8.0)[[0, 1, 2, 3, 4, 5, 7]])
    np.testing.assert_array_equal(both[1]["w"], V["w"])
    arrays = unravel(both[0])
    np.testing.assert_array_equal(arrays["w"], V["w"])
    assert (arrays["b"][0].shape, arrays["b"][0].dtype) == ((), "float32")
    flat, own = gc.ravel(V)
    np.testing.assert_array_equal(flat, both[0])
    np.testing.assert_array_equal(own(flat)["w"], V["w"])


def test_vectors_of_many_chains_and_of_unknown_sizes() -> None:
    x = gc.tensor("x", {"row": None, "parameter": 2})
    vector, unravel = gc.ravel([x, gc.tensor("s", {})])
    chains = gc.tensor("chains", {"chain": None, "parameter": vector.sizes["parameter"]})
    wide = unravel(chains.rename(chain="run"))
    assert [y.dims for y in wide] == [("run", "row", "parameter"), ("run",)]
    f = gc.compile([x, chains], wide, native=False)
    got = f(np.ones((2, 2)), np.arange(10.0).reshape(2, 5))
    np.testing.assert_array_equal(got[0], np.arange(10.0).reshape(2, 5)[:, :4].reshape(2, 2, 2))
    np.testing.assert_array_equal(got[1], [4.0, 9.0])
    with pytest.raises(gc.GraphError, match="dim 'parameter' of input 'chains' has size 6"):
        f(np.ones((2, 2)), np.ones((2, 6)))


def test_many_draws_in_an_array() -> None:
    """As a tensor of them: the axes before the last come first in each part."""
    xr = pytest.importorskip("xarray")
    _, unravel = gc.ravel(P)
    draws = np.arange(42.0).reshape(2, 3, 7)
    v = gc.tensor("v", {"chain": 2, "draw": 3, "parameter": 7})
    wanted = gc.compile([v], unravel(v))(draws)
    for given in (draws, xr.DataArray(draws, dims=v.dims).transpose("parameter", ...)):
        found = unravel(given)
        np.testing.assert_array_equal(found["w"], wanted["w"], strict=True)
        np.testing.assert_array_equal(found["b"][0], wanted["b"][0], strict=True)
    assert gc.ravel(V)[1](np.zeros((0, 7)))["w"].shape == (0, *V["w"].shape)


@pytest.mark.parametrize("mode", ["grad", "pushforward"])
def test_derivatives_pass_through_vectors(mode: str) -> None:
    vector, unravel = gc.ravel(P)
    v = gc.tensor("v", vector.sizes)
    p = unravel(v)
    loss = (p["w"] ** 2).sum() * p["b"][0]
    dy = gc.grad(loss, v) if mode == "grad" else gc.pushforward(loss, v, v)
    got = gc.compile(v, dy, native=False)(np.arange(7.0))
    want = np.array([*(2 * np.arange(6.0) * 6), 55.0])
    np.testing.assert_allclose(got, want if mode == "grad" else want @ np.arange(7.0))


def test_nothing_as_a_vector() -> None:
    vector, unravel = gc.ravel({})
    assert vector.shape == (0,)
    assert unravel(vector) == {}
