"""What leaves a loop: what all steps share, what needs no carry, sums, and what nobody uses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.graph import Graph, bodies_of
from graphcore.ops import control

PRODUCTS = {"matmul", "matvec", "vecdot", "einsum"}
X = gc.tensor("x", {"time": None, "in": 3})
W = gc.tensor("w", {"in": 3, "state": 4})
U = gc.tensor("u", {"state": 4, "next": 4})
H = gc.zeros({"state": 4})
V = gc.tensor("v", {"time": None})


def bodies(graph: Graph) -> list[Counter[str]]:
    """How often each op stands in each loop."""
    held = [graph for node in graph.nodes() for graph in bodies_of(node)]
    return [Counter(node.op.name for node in body.nodes()) for body in held]


def inside(f: gc.Compiled) -> Counter[str]:
    """How often each op stands in the loops of the finished graph."""
    return sum(bodies(f.stages["optimized"]), Counter())


def products(counts: Counter[str]) -> int:
    return sum(counts[name] for name in PRODUCTS)


def cell(state: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
    new = gc.tanh(gc.dot(state, U, dim="state").rename(next="state") + gc.dot(x, W, dim="in"))
    return new, new


def test_products_that_need_no_carry() -> None:
    """Of a recurrent network one product stays in the loop, and one in that of its gradient."""
    _, states = gc.scan(cell, H, X, dim="time")
    f = gc.compile([X, W, U], [states, *gc.grad((states**2).sum(), [W, U])])
    assert [products(body) for body in bodies(f.stages["optimized"])] == [1, 1]
    outside = Counter(node.op.name for node in f.stages["optimized"].nodes())
    assert products(outside) == 3  # of the inputs with w, and the gradients of w and u


def test_sums_after_the_loop() -> None:
    """A carry that adds up products is one product; others of the loop stay."""
    y = gc.tensor("y", {"time": None, "out": 2})

    def step(carry: tuple[gc.Tensor, gc.Tensor], rows: tuple[gc.Tensor, gc.Tensor]) -> object:
        total, last = carry
        x, y = rows
        return (total + x * y, gc.sin(last + x.sum())), None

    (total, last), _ = gc.scan(step, (gc.zeros({"in": 3, "out": 2}), 0.5), (X, y), dim="time")
    f = gc.compile([X, y], [total, last])
    random = np.random.default_rng(0)
    xs, ys = random.normal(size=(6, 3)), random.normal(size=(6, 2))
    found, _ = f(xs, ys)
    np.testing.assert_allclose(found, xs.T @ ys, rtol=1e-14)
    again, _ = f(xs[:0], ys[:0])
    np.testing.assert_array_equal(again, np.zeros((3, 2)))


SAME = {
    "exp": lambda s, v: gc.exp(W.sum()) * s + v,
    "sorted": lambda s, v: s + gc.sort(W, "in").isel(state=0).sum() * v,
    "solved": lambda s, v: s * v + gc.linalg.det(U.rename(next="col"), ("state", "col")),
}


@pytest.mark.parametrize("name", SAME)
def test_what_is_the_same_at_all_steps(name: str) -> None:
    last, _ = gc.scan(lambda s, v: (SAME[name](s, v), None), 1.0, V, dim="time")
    f = gc.compile([V, W, U], last)
    assert not {"exp", "sort", "det", "lu_factor", "sum"} & inside(f).keys()
    random = np.random.default_rng(1)
    v, w, u = random.normal(size=5), random.normal(size=(3, 4)), random.normal(size=(4, 4))
    s: gc.Tensor = gc.tensor("s", {})
    step = gc.compile([s, V, W, U], SAME[name](s, V.isel(time=0)))
    value = 1.0
    for each in v:
        value = step(value, [each], w, u)
    np.testing.assert_allclose(f(v, w, u), value, rtol=1e-12)


def test_steps_that_need_no_carry_are_taken_at_once() -> None:
    """Elementwise functions of a sequence are computed of all steps in one call."""
    last, ys = gc.scan(lambda s, v: (s * gc.cos(v), gc.log(v + 2)), 1.0, V, dim="time")
    f = gc.compile([V], [last, ys])
    assert not {"cos", "log", "add"} & inside(f).keys()
    v = np.linspace(0, 1, 5)
    np.testing.assert_allclose(f(v)[0], np.prod(np.cos(v)), rtol=1e-14)
    np.testing.assert_allclose(f(v)[1], np.log(v + 2), rtol=1e-14)


def test_a_value_and_its_tangent_take_their_steps_together() -> None:
    last, _ = gc.scan(lambda s, v: (gc.sin(s * v), None), 1.0, V, dim="time")
    f = gc.compile([V], [last, gc.pushforward(last, V, V)])
    assert len(bodies(f.stages["expanded"])) == 2
    assert len(bodies(f.stages["optimized"])) == 1
    assert inside(f)["sin"] == 1


def test_what_nobody_uses_is_not_carried() -> None:
    def step(carry: tuple[gc.Tensor, gc.Tensor], v: gc.Tensor) -> object:
        used, unused = carry
        return (used * v, gc.tanh(unused + v)), gc.exp(unused)

    (used, _), _ = gc.scan(step, (1.0, 0.0), V, dim="time")
    f = gc.compile([V], used)
    assert not {"tanh", "exp"} & inside(f).keys()


def test_steps_stay_in_the_loop_where_all_at_once_would_take_much_room() -> None:
    """Of numbers and a vector outside, each step makes a vector; a matrix outside has its size."""
    k = gc.tensor("k", {"cell": None})
    n = gc.tensor("m", {"row": None, "cell": "row"})

    def step(state: gc.Tensor, v: gc.Tensor) -> tuple[gc.Tensor, None]:
        return gc.sin(state) + gc.exp(v * k), None

    def masked(at: gc.Tensor, m: gc.Tensor) -> gc.Tensor:
        return gc.sin(m.where(gc.arange(n.sizes["row"], dim="row") > at, 0.0))

    apart = gc.compile([V, k], gc.scan(step, k, V, dim="time")[0])
    assert inside(apart)["exp"] == 1
    at_once = gc.compile([n], gc.fori_loop(0, n.sizes["row"], masked, n))
    assert inside(at_once)["greater"] == 0


def test_what_may_raise_stays_at_its_step() -> None:
    """An error says in which step; positions that count up along an axis never raise."""
    x, i = gc.tensor("x", {"time": None, "a": 3}), gc.tensor("i", {"time": None}, dtype="int64")
    _, picked = gc.scan(lambda c, row: (c, row[0].isel(a=row[1]) * 2), (), (x, i), dim="time")
    f = gc.compile([x, i], picked)
    assert inside(f)["gather"] == 1
    with pytest.raises(gc.GraphIndexError, match="in step 1"):
        f(np.ones((2, 3)), np.array([0, 3]))
    square = gc.tensor("m", {"time": None, "row": 3, "col": 3})
    _, ys = gc.scan(lambda c, m: (c, gc.diagonal(m, ("row", "col"), "row") * 2), (), square)
    assert inside(gc.compile([square], ys))["gather"] == 0


def test_derivatives_share_the_loop_of_their_rule() -> None:
    """z = a z + b; both derivatives are made of one solution, though each is asked for alone."""
    a, b = gc.tensor("a", {}), gc.tensor("b", {})

    def solve(a: gc.Tensor, b: gc.Tensor) -> gc.Tensor:
        return gc.while_loop(lambda z: abs(a * z + b - z) > 1e-13, lambda z: a * z + b, b)

    def rule(operands: Any, z: gc.Tensor, ct: gc.Tensor) -> Any:
        v = solve(operands[0], ct)
        return v * z, v

    z = gc.custom_pullback(solve, rule)(a, b)
    f = gc.compile([a, b], [z, gc.grad(z, a), gc.grad(z, b)])
    ops = [node.op for node in f.stages["scheduled"].every_node()]
    assert ops.count(control.while_loop) == 2
    np.testing.assert_allclose(f(0.5, 3.0), (6, 12, 2), 1e-9)


def test_what_reads_a_number_of_steps_found_anew_stays_in_the_loop() -> None:
    """Steps record no values of such a size, though there are none along another axis."""
    v, c = gc.tensor("v", {"a": 0}), gc.tensor("c", {})

    def step(state: gc.Tensor, _: None) -> tuple[gc.Tensor, None]:
        def more(q: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
            return q[0] + 0.4, q[1] + 0.5 * gc.sin(v)

        start = c * state.sum(), state
        return gc.while_loop(lambda q: q[0] < 1.1, more, start)[1] - 0.5 * state, None

    y = gc.scan(step, v, length=3)[0]
    for native in (False, True):
        f = gc.compile([v, c], gc.grad(y.sum(), v), native=native)
        assert f(np.zeros(0), 0.1).shape == (0,)


def test_what_is_added_to_all_of_a_carry_is_added_again_after_the_loop() -> None:
    """Steps record h, and not h + u of every pair of states, which the gradient reads."""

    def step(h: gc.Tensor, _: object) -> tuple[gc.Tensor, None]:
        return gc.special.logsumexp(h + U, "state").rename(next="state"), None

    h0 = gc.tensor("h0", {"state": 4})
    h, _ = gc.scan(step, h0, None, dim="time", length=3)
    f = gc.compile([h0, U], gc.grad(h.sum(), [h0, U]))
    loops = [x for x in f.stages["optimized"].nodes() if x.op is control.scan]
    assert max(item.ndim for loop in loops for item in loop.type.items) == 2  # time, state
    rolled = h0
    for _ in range(3):
        rolled, _ = step(rolled, None)
    given = np.linspace(-1, 1, 4), np.linspace(-0.5, 0.7, 16).reshape(4, 4)
    expected = gc.compile([h0, U], gc.grad(rolled.sum(), [h0, U]))(*given)
    for found, value in zip(f(*given), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12)
