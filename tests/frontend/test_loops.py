"""Loops and branches: structures, dims and dtypes."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from graphcore.ops import control

exactly = np.testing.assert_array_equal


def run(inputs: Any, outputs: Any, *values: Any) -> Any:
    return gc.compile(inputs, outputs)(*values)


# ---- structures


class State(NamedTuple):
    h: Any
    more: dict[str, Any]


def test_nested_structures_come_back_as_they_are() -> None:
    x = gc.tensor("x", {"time": None, "row": 2})
    w = gc.tensor("w", {"time": None})

    def body(state: State, given: dict[str, Any]) -> Any:
        assert isinstance(state, State)
        assert list(state.more) == ["total", "pair"]
        left, right = state.more["pair"]
        new = state.h + given["x"] * given["w"][0]
        return (
            State(new, {"total": state.more["total"] + new.sum(), "pair": [right, left]}),
            (new, {"w": given["w"][0]}),
        )

    init = State(gc.zeros({"row": 2}), {"total": 0.0, "pair": [1, 2]})
    last, ys = gc.scan(body, init, {"x": x, "w": [w]})
    assert isinstance(last, State)
    assert isinstance(last.more["pair"], list)
    assert isinstance(ys, tuple)
    values = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 2.0])
    found = run([x, w], [last, ys], *values)
    steps = np.cumsum(values[0] * values[1][:, None], axis=0)
    assert isinstance(found[0], State)
    exactly(found[0].h, steps[-1])
    exactly(found[0].more["total"], steps.sum())
    assert [int(v) for v in found[0].more["pair"]] == [2, 1]
    exactly(found[1][0], steps)
    exactly(found[1][1]["w"], values[1])


def test_branches_and_calls_keep_structures() -> None:
    x = gc.tensor("x", {"row": 3})
    y = gc.cond(
        x.sum() > 0,
        lambda s: State(s["x"], {"n": 1}),
        lambda s: State(-s["x"], {"n": 2.0}),
        {"x": x},
    )
    assert isinstance(y, State)
    found = run([x], y, np.array([1.0, 2.0, -9.0]))
    exactly(found.h, [-1.0, -2.0, 9.0])
    assert found.more["n"] == 2
    again = gc.checkpoint(lambda s: {"a": (s[0] * 2, s[1])})([x, 3.0])
    exactly(run([x], again, np.ones(3))["a"][0], [2, 2, 2])


def test_several_sequences_and_none() -> None:
    """Places of each sequence; dims in any order; results first along the dim that is walked."""
    x = gc.tensor("x", {"row": 2, "time": None})
    u = gc.tensor("u", {"time": None})
    _, (a, b) = gc.scan(lambda c, p: (c, (p[0] * p[1], p[1])), 0.0, (x, u))
    assert (a.dims, b.dims) == (("time", "row"), ("time",))
    values = np.arange(8.0).reshape(2, 4), np.arange(4.0)
    found = run([x, u], [a, b], *values)
    exactly(found[0], (values[0] * values[1]).T)
    exactly(found[1], values[1])
    last, nothing = gc.scan(lambda c, x: (c + x, None), 1.0, u)
    assert nothing is None
    exactly(run([u], last, values[1]), 7.0)
    carry, ys = gc.scan(lambda c, p: ((), p), (), u)
    assert carry == ()
    exactly(run([u], ys, values[1]), values[1])


def test_order_of_steps_and_results() -> None:
    x = gc.tensor("x", {"time": None})
    values = np.array([1.0, 2.0, 4.0])
    for reverse, wanted in ((False, [0, 1, 3]), (True, [6, 4, 0])):
        last, before = gc.scan(lambda c, x: (c + x, c), 0.0, x, reverse=reverse)
        found = run([x], [last, before], values)
        exactly(found[0], 7.0)
        exactly(found[1], wanted)


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("known", [False, True])
def test_no_steps_and_one(size: int, known: bool) -> None:
    x = gc.tensor("x", {"time": size if known else None, "row": 2})
    last, ys = gc.scan(lambda c, x: (c * x, c + x), gc.ones({"row": 2}), x)
    slope = gc.grad(last.sum() + (ys * ys).sum(), x)
    values = np.array([[2.0, 3.0]])[:size]
    found = run([x], [last, ys, slope], values)
    exactly(found[0], [2.0, 3.0] if size else [1.0, 1.0])
    exactly(found[1], values + 1)
    exactly(found[2], 1 + 2 * (values + 1))


def test_lengths_known_and_unknown() -> None:
    x = gc.tensor("x", {"time": None})
    n = x.sizes["time"]
    by_size, _ = gc.scan(lambda c, _: (c * 2, None), 1.0, length=n)
    counted = gc.fori_loop(0, n + 1, lambda i, c: c * 2, 1.0)
    last, _ = gc.scan(lambda c, x: (c + x, None), 0.0, x, length=n)
    f = gc.compile([x], [by_size, counted, last])
    for size in (0, 1, 5):
        assert [float(v) for v in f(np.ones(size))] == [2.0**size, 2.0 ** (size + 1), size]
    known, _ = gc.scan(lambda c, x: (c + x, None), 0.0, x, length=3)
    exactly(run([x], known, np.ones(3)), 3.0)


@pytest.mark.parametrize(("lower", "upper", "wanted"), [(0, 3, 3), (2, 5, 9), (3, 3, 0), (4, 1, 0)])
def test_ends_of_a_count(lower: int, upper: int, wanted: int) -> None:
    """The sum of lower, lower + 1, ..., upper - 1, by numbers, by tensors and by both."""
    n = gc.tensor("n", {}, dtype="int64")
    for top in (upper, n):
        total = gc.fori_loop(lower, top, lambda i, total: total + i, 0)
        assert total.dtype == np.int64
        assert int(run([n], total, upper)) == wanted
    down = gc.fori_loop(n, upper, lambda i, total: total + i, 0)
    assert int(run([n], down, lower)) == wanted


def test_at_most_so_many_steps() -> None:
    x = gc.tensor("x", {})
    n = gc.tensor("n", {}, dtype="int64")
    for most in (2, n):
        y = gc.while_loop(lambda y: y < 100, lambda y: y * x, 1.0, max_steps=most)
        f = gc.compile([x, n], [y, gc.grad(y, x)])
        assert [float(v) for v in f(3.0, 2)] == [9.0, 6.0]
        assert [float(v) for v in f(200.0, 2)] == [200.0, 1.0]


@pytest.mark.parametrize("stage", ["named", "optimized"])
def test_a_limit_that_is_a_size_is_known_to_all_loops_made_of_this_one(stage: str) -> None:
    x, member = gc.tensor("x", {"row": None}), gc.tensor("x", {"row": None, "member": 3})
    n = gc.tensor("n", {}, dtype="int64")
    rows = x.sizes["row"]
    for most, wanted in ((2, 2), (np.int64(2), 2), (rows + 1, rows + 1), (n, None), (None, None)):
        y = gc.while_loop(lambda y: y.sum() < 100, lambda y: y * x, x, max_steps=most)
        slope = gc.grad(gc.pushforward(y, x, x).sum(), x)
        made = [([x, n], y.sum()), ([x, n], slope), ([member, n], gc.vectorize(slope, {x: member}))]
        loops = [
            node
            for inputs, z in made
            for node in gc.compile(inputs, z, native=False).stages[stage].every_node()
            if node.op is control.while_loop
        ]
        assert loops
        assert {node.attrs.get("most") for node in loops} == {wanted}


# ---- dims and dtypes


def test_dims_may_change_places() -> None:
    """A new carry is aligned by name with the old one."""
    x = gc.tensor("x", {"row": 2, "col": 3})
    y, _ = gc.scan(lambda c, _: (c.transpose("col", "row") * 2, None), x, length=3)
    assert y.dims == ("row", "col")
    values = np.arange(6.0).reshape(2, 3)
    exactly(run([x], y, values), 8 * values)


@pytest.mark.parametrize("loop", ["scan", "fori_loop", "while_loop"])
def test_start_values_are_repeated_along_dims_that_the_body_adds(loop: str) -> None:
    """As if they had been repeated before the loop, in both modes; parts widen one another."""
    x, start = gc.tensor("x", {"time": 4, "b": 3}), gc.tensor("s", {"k": 2})

    def last(start: gc.Tensor) -> gc.Tensor:
        def body(carry: Any) -> Any:
            first, second = carry
            return gc.sin(first) * x.isel(time=1), first + second

        carry = start, gc.zeros({}, dtype="float64")
        if loop == "scan":
            return gc.scan(lambda c, _: (body(c), None), carry, length=3)[0][1]
        if loop == "fori_loop":
            return gc.fori_loop(0, 3, lambda i, c: body(c), carry)[1]
        going = lambda c: (c[0] * 0 + c[2]).max() < 3
        return gc.while_loop(going, lambda c: (*body(c[:2]), c[2] + 1), (*carry, 0.0), max_steps=5)[
            1
        ]

    narrow, wide = last(start), last(start.expand_dims(b=3).transpose("k", "b"))
    assert (narrow.dims, narrow.shape) == (("k", "b"), (2, 3)) == (wide.dims, wide.shape)
    outputs = [[y, gc.grad((y**2).sum(), [x, start]), gc.pushforward(y, start, start)]
               for y in (narrow, wide)]  # fmt: skip
    random = np.random.default_rng(0)
    ours, theirs = gc.compile([x, start], outputs)(random.normal(size=(4, 3)), np.array([0.5, 2]))
    for one, other in zip(
        [ours[0], *ours[1], ours[2]], [theirs[0], *theirs[1], theirs[2]], strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_float32_stays() -> None:
    x = gc.tensor("x", {"row": None}, dtype="float32")
    y = gc.while_loop(lambda y: y.sum() < 50, lambda y: y * 1.5, x)
    slope = gc.grad(y.sum(), x)
    assert (y.dtype, slope.dtype) == (np.float32, np.float32)
    found = run([x], [y, slope], np.array([1, 2], "float32"))
    assert [v.dtype for v in found] == [np.float32, np.float32]
    exactly(found[1], np.float32(1.5**7))


def test_integers_and_bools_are_carried_past_derivatives() -> None:
    x = gc.tensor("x", {"row": 3})
    flag = gc.tensor("flag", {}, dtype="bool")

    def body(carry: Any, _: None) -> Any:
        y, n, even = carry
        return (gc.where(even, y * x, y + n), n + 1, ~even), n

    (y, n, _), ns = gc.scan(body, (x, 1, flag), length=3)
    f = gc.compile([x, flag], [y, n, ns, gc.grad(y.sum(), x), gc.pushforward(y, x, x)])
    values = np.array([1.0, 2.0, 3.0])
    found = f(values, True)  # (x * x + 2) * x
    exactly(found[0], values**3 + 2 * values)
    exactly(found[1], 4)
    exactly(found[2], [1, 2, 3])
    exactly(found[3], 3 * values**2 + 2)
    exactly(found[4], 3 * values**3 + 2 * values)


def test_a_predicate_of_a_bool_carry() -> None:
    x = gc.tensor("x", {"row": None}, dtype="bool")
    found, _ = gc.while_loop(
        lambda s: ~s[0], lambda s: (x.isel(row=s[1]), s[1] + 1), (gc.constant(False), 0)
    )
    assert run([x], found, np.array([False, False, True]))


# ---- names


def test_names_in_the_printed_stages() -> None:
    x, w = gc.tensor("x", {"time": None, "row": 2}), gc.tensor("w", {"row": 2})
    _, ys = gc.scan(lambda c, p: ({"h": gc.tanh(c["h"] * w + p["x"])}, c["h"]),
                    {"h": gc.zeros({"row": 2})}, {"x": x})  # fmt: skip
    f = gc.compile([x, w], [ys, gc.grad(ys.sum(), w)])
    for stage in f.stages:
        text = io.StringIO()
        f.debug_print(stage, file=text)
        printed = text.getvalue()
        assert "scan" in printed
        assert "time" in printed
        assert "row" in printed
        assert "test_loops.py" in printed
    named = io.StringIO()
    f.debug_print("named", file=named)
    assert "carry['h']" in named.getvalue()
    assert "x['x']" in named.getvalue()
