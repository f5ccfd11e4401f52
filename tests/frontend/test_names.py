"""Names that the library makes up never meet those that users give, whatever these are."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.graph import Graph
from graphcore.ir.names import Hidden
from graphcore.ir.sizes import maximum, unknown

Function = Callable[[gc.Tensor], gc.Tensor]

exactly = np.testing.assert_array_equal
close = np.testing.assert_allclose

WRAPPERS: dict[str, Callable[[Function], Function]] = {
    "plain": lambda f: f,
    "checkpoint": gc.checkpoint,
    "scan": lambda f: lambda a: gc.scan(lambda _, x: (f(x), None), a * 0, a.expand_dims(time=1))[0],
    "map": lambda f: lambda a: gc.map(f, a.expand_dims(time=1), "time").squeeze("time"),
    "fori_loop": lambda f: lambda a: gc.fori_loop(0, 1, lambda _, s: f(s), a),
    "while_loop": lambda f: (
        lambda a: gc.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, a))[1]
    ),
    "cond": lambda f: lambda a: gc.cond(a.sum() > -1e9, f, lambda a: 2 * f(a), a),
    "custom_pullback": lambda f: gc.custom_pullback(
        f, lambda operands, _, ct: (gc.pullback(f(operands[0]), operands[0], ct),)
    ),
}
"""Ways to put a function into a body of its own."""


def test_hidden_names_are_no_users() -> None:
    assert Hidden("a") != "a"
    assert "a" not in (Hidden("a"), Hidden("b"))
    assert Hidden("a") == Hidden("a")
    assert {"a": 1, Hidden("a"): 2} == {Hidden("a"): 2, "a": 1}
    ours, theirs = unknown(Hidden("n")), unknown("n")
    assert ours is not theirs
    assert ours is unknown(Hidden("n"))
    assert ours + theirs is theirs + ours
    assert ours * theirs is theirs * ours
    assert maximum(ours - 1, theirs) is maximum(theirs, ours - 1)
    assert pickle.loads(pickle.dumps(ours)) is ours


def test_a_graph_with_hidden_names_is_written_as_json() -> None:
    x = gc.tensor("x", {"a": None})
    y = gc.vectorize((x * x).sum(), {x: gc.tensor("x", {"b": 2, "a": None})})
    for root in (gc.jacobian(x * x, x), gc.fori_loop(0, 3, lambda i, s: s * x, x), y):
        graph = Graph((), (root.node,))
        assert Graph.from_json(graph.to_json()) == graph
        assert pickle.loads(pickle.dumps(graph)) == graph


@pytest.mark.parametrize("dim", ["trips", "steps", "n"])
def test_a_users_size_is_no_number_of_steps(dim: str) -> None:
    """Not the name itself nor any numbered one, as other programs may have taken the first."""
    zs = [gc.tensor(f"z{i}", {f"{dim}{i or ''}": None}) for i in range(60)]
    s = gc.tensor("s", {})
    out = gc.while_loop(lambda c: c < 100.0, lambda c: c * s, gc.constant(1.0))
    loss = out * sum(z.mean() for z in zs)
    f = gc.compile([*zs, s], [loss, *gc.grad(loss, [s, *zs])])
    value, by_s, *by_zs = f(*[np.full(5 + i, 1.0) for i in range(60)], 2.0)
    exactly(value, 128.0 * 60)
    exactly(by_s, 448.0 * 60)
    for i, by_z in enumerate(by_zs):
        close(by_z, np.full(5 + i, 128.0 / (5 + i)))


def test_a_loop_finds_its_steps_in_a_loop_over_a_dim_of_that_name() -> None:
    z = gc.tensor("z", {"trips": None})

    def grown(x: gc.Tensor) -> gc.Tensor:
        return gc.while_loop(lambda c: c < 10.0, lambda c: c * x, gc.constant(1.0))

    total = gc.map(grown, z, "trips").sum()
    found = gc.compile([z], [total, gc.grad(total, z)])(np.array([2.0, 3.0, 11.0]))
    exactly(found[0], 16 + 27 + 11)
    close(found[1], [4 * 8, 3 * 9, 1])


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_derivatives_of_a_transition_by_a_primed_dim(wrapper: str) -> None:
    x = gc.tensor("x", {"i": 2})
    k = gc.constant([[2.0, 1.0], [1.0, 3.0]], ("i", "i'"))
    step = WRAPPERS[wrapper](lambda s: gc.dot(s, k, dim="i").rename({"i'": "i"}))
    last = step(step(x))
    loss = (gc.dot(last, x, dim="i") ** 2).sum()
    f = gc.compile([x], [gc.jacobian(last, x), gc.hessian(loss, x)])
    slope, curvature = f(np.array([1.0, 2.0]))
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    squared, v = matrix @ matrix, np.array([1.0, 2.0])
    close(slope, squared)
    pair = (squared + squared.T) @ v
    close(curvature, 2 * np.outer(pair, pair) + 2 * (v @ squared @ v) * (squared + squared.T))


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("dims", [("i'", "i"), ("i''", "i"), ("j", "i")])
def test_jacobian_of_a_sum_over_a_constants_own_dim(wrapper: str, dims: tuple[str, str]) -> None:
    x, c = gc.tensor("x", {"i": 2}), gc.constant([[1.0, 2.0], [3.0, 4.0]], dims)
    y = WRAPPERS[wrapper](lambda a: (a * c).sum(dims[0]))(x)
    exactly(gc.compile([x], gc.jacobian(y, x))(np.ones(2)), np.diag([4.0, 6.0]))


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("new", ["batch", "other", "time", "step"])
def test_a_new_dim_may_have_the_name_of_one_inside(wrapper: str, new: str) -> None:
    s, wide = gc.tensor("s", {}), gc.tensor("S", {new: 3})
    m = gc.constant([1.0, 2.0, 3.0], "batch")
    y = WRAPPERS[wrapper](lambda a: (a * a * m).sum("batch"))(s)
    found = gc.compile([wide], gc.vectorize([y, gc.grad(y, s)], {s: wide}))
    value, slope = found(np.array([1.0, 10.0, 100.0]))
    exactly(value, [6.0, 600.0, 60000.0])
    exactly(slope, [12.0, 120.0, 1200.0])


def test_a_new_dim_may_have_the_name_of_one_that_is_renamed_or_replaced() -> None:
    x, w = gc.tensor("x", {"row": 3}), gc.tensor("w", {"col": 2})
    y = (x * w).sum("col") + x.rename(row="hidden").sum()
    values = np.arange(6.0).reshape(2, 3)
    for new in ("col", "hidden", "other"):
        wide = gc.tensor("x", {new: 2, "row": 3})
        found = gc.compile([wide, w], gc.vectorize(y, {x: wide}))(values, np.array([1.0, 10.0]))
        exactly(found, 11 * values + values.sum(1, keepdims=True))
    wide, other = gc.tensor("x", {"col": 4, "row": 3}), gc.tensor("v", {"k": 5, "col": 2})
    replaced = gc.vectorize((x * w).sum("col"), {x: wide, w: other}).transpose("col", "k", "row")
    xs, ws = np.arange(12.0).reshape(4, 3), np.arange(10.0).reshape(5, 2)
    found = gc.compile([wide, other], replaced)(xs, ws)
    exactly(found, xs[:, None, :] * ws.sum(1)[None, :, None])


@pytest.mark.parametrize("new", ["batch", "other"])
@pytest.mark.parametrize("derivative", ["pullback", "pushforward", "hvp"])
def test_a_cotangents_new_dim_is_none_of_the_program(derivative: str, new: str) -> None:
    w, u, m = gc.tensor("w", {}), gc.tensor("u", {}), gc.tensor("m", {"batch": 4})
    wide = gc.tensor("U", {new: 4})
    g = getattr(gc, derivative)((w * w * m).sum("batch"), w, u)
    f = gc.compile([w, m, wide], gc.vectorize(g, {u: wide}))
    at = {"pullback": 60.0, "pushforward": 60.0, "hvp": 20.0}[derivative]
    exactly(f(3.0, np.arange(1.0, 5.0), np.arange(4.0)), at * np.arange(4.0))


@pytest.mark.parametrize("name", ["step", "other"])
def test_the_dim_of_a_counted_loop_is_nobodys(name: str) -> None:
    u, v = gc.tensor("u", {}), gc.tensor("v", {name: None})
    y = gc.fori_loop(0, 4, lambda i, s: s * u * v, 1.0)
    each = gc.compile([u, v], gc.grad(y, u, per=name))(3.0, np.array([1.0, 2.0]))
    exactly(each, 4 * 27 * np.array([1.0, 16.0]))
    z = gc.fori_loop(0, 4, lambda i, s: s * u, 1.0)
    wide = gc.tensor("us", {name: None})
    exactly(gc.compile([wide], gc.vectorize(z, {u: wide}))(np.array([2.0, 3.0])), [16.0, 81.0])


def test_a_new_dim_may_have_the_name_of_the_one_that_goes() -> None:
    rows = gc.constant([[0, 1, 1], [1, 0, 1]], ("nonzero", "t"))
    found = gc.compile([], gc.nonzero(rows, 2, "nonzero"))()
    exactly(found["nonzero"], [[1, 0], [0, 0], [0, 1]])


@pytest.mark.parametrize("dim", ["edge", "value", "place", "t window", "copy of t", "inner"])
def test_dims_between_two_steps_are_nobodys(dim: str) -> None:
    values = np.array([0.5, 1.0, 7.0])
    x = gc.constant(values, dim)
    exactly(gc.compile([], gc.digitize(x, [0, 1, 2]))(), [1, 2, 3])
    exactly(gc.compile([], gc.isin(x, [1.0]))(), [False, True, False])
    twice = x * gc.constant([1.0, 2.0], "t")
    exactly(gc.compile([], gc.tile(twice, t=9))(), np.tile(np.outer(values, [1, 2]), 9))
    exactly(gc.compile([], twice.rolling(t=2).sum())()[:, 1], 3 * values)
    exactly(gc.compile([], gc.median(twice, ["t", dim]))(), np.median(np.outer(values, [1, 2])))


# ---- sizes of programs on other tensors


def test_sizes_of_the_program_are_those_of_the_new_tensor() -> None:
    x = gc.tensor("x", {"a": "n"})
    wide = gc.tensor("many", {"batch": None, "a": "m"})
    tail = lambda a: a[1:] * a.sizes["a"] + gc.arange(a.sizes["a"] - 1, dim="a")
    values = np.arange(6.0).reshape(2, 3)
    for wrapper in WRAPPERS.values():
        y = wrapper(lambda a: (tail(a) * a.sizes["a"]).sum() + a)(x)
        found = gc.compile([wide], gc.vectorize(y, {x: wide}))(values)
        rows = ((values[:, 1:] * 3 + [0, 1]) * 3).sum(1)
        exactly(found, values + rows[:, None])
    longer = gc.vectorize(tail(x), {x: gc.concat([x, x], "a")})
    exactly(gc.compile([x], longer)(np.arange(2.0)), np.array([1, 0, 1]) * 4 + np.arange(3))


def test_sizes_that_other_inputs_give_are_compared() -> None:
    x, w = gc.tensor("x", {"a": "n"}), gc.tensor("w", {"a": "n"})
    wide = gc.tensor("many", {"batch": None, "a": "m"})
    f = gc.compile([wide, w], gc.vectorize((x * w).sum(), {x: wide}))
    exactly(f(np.ones((2, 3)), np.arange(3.0)), [3.0, 3.0])
    with pytest.raises(gc.GraphError, match="for dim 'a'"):
        f(np.ones((2, 1)), np.arange(3.0))
    fixed = gc.tensor("x", {"a": 3})
    f = gc.compile([wide], gc.vectorize(fixed[-1], {fixed: wide}))
    exactly(f(np.ones((2, 3))), [1.0, 1.0])
    with pytest.raises(gc.GraphError, match="needs m == 3"):
        f(np.ones((2, 5)))


def test_several_names_are_apart_from_one_another() -> None:
    x = gc.tensor("x", {"i": 2, "i'": 2})
    slope = gc.jacobian(x * x, x)
    assert slope.dims == ("i", "i'", "i''", "i'''")
    values = np.array([[1.0, 2.0], [3.0, 4.0]])
    exactly(gc.compile([x], slope)(values).reshape(4, 4), np.diag(2 * values.ravel()))
    s, wide = gc.tensor("s", {}), gc.tensor("S", {"i": 2, "i'": 2})
    y = (s * gc.constant([[1.0, 2.0], [3.0, 4.0]], ("i", "i'"))).sum()
    exactly(gc.compile([wide], gc.vectorize(y, {s: wide}))(values), 10 * values)
    kernel = gc.constant([[1.0, 2.0]], ("i", "i'"))
    found = gc.compile([x], gc.conv(x, kernel, ["i", "i'"]))(values)
    exactly(found, values[:, 1:] * 2 + values[:, :1])


def test_sizes_are_compared_where_the_result_reads_no_value() -> None:
    x, wide = gc.tensor("x", {"a": 1}), gc.tensor("X", {"b": None, "a": None})
    y = gc.vectorize(gc.shift(x, {"a": 1}, fill_value=0.5), {x: wide})
    f = gc.compile([wide], y)
    exactly(f(np.ones((2, 1))), [0.5])
    with pytest.raises(gc.GraphError, match=r"vectorize at .* needs a == 1"):
        f(np.ones((2, 3)))
    row = gc.tensor("row", {"a": None})
    other = gc.tensor("other", {"b": None, "a": "m"})
    double = row * 2
    f = gc.compile([row, other], gc.vectorize([row, gc.ones(double.sizes)], {double: other}))
    exactly(f(np.arange(2.0), np.ones((3, 2)))[1], [1.0, 1.0])
    with pytest.raises(gc.GraphError, match="needs m == a"):
        f(np.arange(2.0), np.ones((3, 1)))
