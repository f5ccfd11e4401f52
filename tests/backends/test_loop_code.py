"""What is written inside of a loop: nothing that could stand before it, and the same values."""

from __future__ import annotations

import re

import numpy as np
import pytest

import graphcore as gc

x = gc.tensor("x", {"row": None})
STEPS = [0, 1, 2, 7]
EDGES = np.array([1.5, -0.0, np.inf, np.nan, -2.0])


def inside(source: str) -> str:
    """The lines of all blocks."""
    lines = (line.partition("#")[0] for line in source.splitlines())
    return "\n".join(line for line in lines if re.match(r" {8}", line))


@pytest.mark.parametrize("steps", STEPS)
def test_sizes_and_arrays_of_numbers_are_made_before_the_loop(steps: int) -> None:
    rate = gc.tensor("rate", {})
    n = gc.tensor("n", {}, dtype="int64")

    def step(_: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
        return rate * y.shift(row=1, fill_value=1) + gc.concat([x, x], "row").head(
            row=x.sizes["row"]
        )

    f = gc.compile([x, rate, n], gc.fori_loop(0, n, step, x))
    for given in (EDGES, EDGES[:1], EDGES[:0]):
        wanted = given
        for _ in range(steps):
            shifted = np.concatenate([[1.0], wanted[:-1]])[: len(given)]
            wanted = 0.5 * shifted + given
        np.testing.assert_array_equal(f(given, 0.5, steps), wanted)
    assert not re.search(r"\b(span|array|min)\(", inside(f.source))


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_positions_and_sizes_are_made_before_the_loop(steps: int) -> None:
    n = gc.tensor("n", {}, dtype="int64")
    rows = x.sizes["row"]

    def step(at: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
        turned = gc.take(y, (gc.arange(rows, dim="row") + at) % rows, "row")
        return turned / rows

    f = gc.compile([x, n], gc.fori_loop(0, n, step, x))
    assert not re.search(r"\b(arange|array)\((n0|k\d)", inside(f.source))
    for given in (EDGES, EDGES[:1], EDGES[:0]):
        wanted = given
        for at in range(steps):
            wanted = np.roll(wanted, -at) / max(len(given), 1)
        np.testing.assert_array_equal(f(given, steps), wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_a_choice_by_one_bool_copies_what_is_chosen(dtype: str) -> None:
    y = gc.tensor("y", {"row": None}, dtype=dtype)
    z = gc.tensor("z", {"row": None}, dtype=dtype)
    flag = gc.tensor("flag", {}, dtype="bool")
    f = gc.compile([y, z, flag], [gc.where(flag, y, z), gc.where(flag, y, 0), gc.where(flag, 0, y)])
    edges = EDGES if dtype.startswith("f") else np.arange(5)
    a, b = edges.astype(dtype), edges[::-1].astype(dtype)
    for yes in (True, False):
        found = f(a, b, yes)
        wanted = [
            a if yes else b,
            a if yes else 0 * np.ones_like(a),
            np.zeros_like(a) if yes else a,
        ]
        for ours, theirs in zip(found, wanted, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    assert "where(" not in f.source
    assert not any(np.shares_memory(one, other) for one in found for other in (a, b))


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_branches_write_into_what_a_loop_carries(steps: int, dtype: str) -> None:
    y = gc.tensor("y", {"row": None}, dtype=dtype)
    n = gc.tensor("n", {}, dtype="int64")

    def step(i: gc.Tensor, state: tuple) -> tuple:
        a, b, c = state
        return gc.cond(i % 2 == 0, lambda: (b, a, c + 1), lambda: (a * 2, a, -c))

    start = (y, 3 * y, y.sum())
    f = gc.compile([y, n], gc.fori_loop(0, n, step, start))
    given = np.array([1.0, 2.0, -0.5], dtype)
    a, b, c = given, 3 * given, given.sum()
    for i in range(steps):
        a, b, c = (b, a, c + 1) if i % 2 == 0 else (a * 2, a, -c)
    for found, wanted in zip(f(given, steps), (a, b, c), strict=True):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)
    assert "choose(" not in f.source


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "complex64"])
def test_places_are_walked_and_filled_in_turn(steps: int, dtype: str, reverse: bool) -> None:
    u = gc.tensor("u", {"time": None}, dtype=dtype)
    v = gc.tensor("v", {"time": None, "col": 2}, dtype=dtype)

    def step(total: gc.Tensor, place: tuple) -> tuple:
        one, row = place
        new = total + one * row
        return new, (new, new.sum(), one)

    zero = gc.zeros({"col": 2}, dtype=dtype)
    last, results = gc.scan(step, zero, (u, v), dim="time", reverse=reverse)
    found = gc.compile([u, v], [last, *results])
    a = np.arange(1, steps + 1).astype(dtype)
    b = np.arange(2 * steps).reshape(steps, 2).astype(dtype)
    total, rows = np.zeros(2, dtype), np.zeros((steps, 2), dtype)
    for t in reversed(range(steps)) if reverse else range(steps):
        total = rows[t] = total + a[t] * b[t]
    given = found(a, b)
    for ours, theirs in zip(given, [total, rows, rows.sum(1), a], strict=True):
        assert ours.dtype == theirs.dtype or dtype == "int32"
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-30, 1.0, 1e30, 1e300, np.inf, np.nan])
def test_norm_keeps_its_digits(dtype: str, scale: float) -> None:
    y = gc.tensor("y", {"row": None}, dtype=dtype)
    f = gc.compile([y], gc.norm(y))
    with np.errstate(all="ignore"):
        given = (scale * np.array([3.0, 4.0])).astype(dtype)
        wanted = np.hypot(*given.astype(np.longdouble)).astype(dtype)
    np.testing.assert_allclose(f(given), wanted, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("limit", [-1.0, 0.0, 3.0, 50.0, np.nan])
def test_what_the_test_of_a_loop_has_found_is_not_found_again(limit: float) -> None:
    y, most = gc.tensor("y", {"row": None}), gc.tensor("most", {})

    def goes_on(state: tuple) -> gc.Tensor:
        return (state[0] * gc.exp(x)).sum() < most

    def step(state: tuple) -> tuple:
        v, found = state
        reached = v * gc.exp(x)
        return v + gc.sin(reached), found + reached.sum()

    last, found = gc.while_loop(goes_on, step, (y, 0.0))
    f = gc.compile([x, y, most], [last, found])
    assert len(re.findall(r"\bvecdot_in_blocks\(", f.source)) == 1
    for size in (3, 1):
        a, v, total = 0.1 * np.arange(1.0, size + 1), np.full(size, 0.3), 0.0
        while (v * np.exp(a)).sum() < min(limit, 2.5):
            total += (v * np.exp(a)).sum()
            v = v + np.sin(v * np.exp(a))
        ours = f(a, np.full(size, 0.3), min(limit, 2.5))
        np.testing.assert_allclose(ours[0], v, rtol=1e-12)
        np.testing.assert_allclose(ours[1], total, rtol=1e-12)


@pytest.mark.parametrize("steps", STEPS)
def test_a_place_named_by_one_number_is_the_callers_own_value(steps: int) -> None:
    table = gc.tensor("table", {"place": None, "row": None})
    n = gc.tensor("n", {}, dtype="int64")

    def step(i: gc.Tensor, state: gc.Tensor) -> gc.Tensor:
        before = state[{"place": i}]
        state = state.at[{"place": i}].set(
            2 * before[{"row": 0}] + table[{"row": -1}][{"place": i}]
        )
        return state.at[{"place": -1 - i}].add(before)

    f = gc.compile([table, n], gc.fori_loop(0, n, step, table))
    given = np.arange(16.0).reshape(8, 2)
    wanted = given.copy()
    for i in range(steps):
        before = wanted[i].copy()
        wanted[i] = 2 * before[0] + given[i, -1]
        wanted[-1 - i] += before
    np.testing.assert_array_equal(f(given, steps), wanted)
    with pytest.raises(gc.GraphIndexError, match="position 8 is outside dim 'place'"):
        f(given, 9)


def test_a_number_that_both_branches_read_as_an_array() -> None:
    """The array that one branch makes of it is not there in the other."""
    x, many = gc.tensor("x", {}), gc.tensor("many", {"row": None, "col": 3})

    def step(carry: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        n, p = carry
        scaled = gc.cond(
            p > 0,
            lambda: gc.broadcast_like(p * gc.constant([1.0, 2.0, 3.0], "col"), many),
            lambda: gc.broadcast_like(p, many),
        )
        return n + 1, p + scaled.sum()

    _, last = gc.while_loop(lambda carry: carry[0] < 1, step, (0, x))
    f = gc.compile([x, many], last)
    values = np.zeros((2, 3))
    np.testing.assert_allclose([f(1.0, values), f(-1.0, values)], [13.0, -7.0])
