"""Loops and branches whose values and derivatives have closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.loops.test_loop_programs import close

# ---- powers: acc * x, again and again


def by_while(x: gc.Tensor, n: int) -> gc.Tensor:
    return gc.while_loop(
        lambda state: state[0] < n, lambda state: (state[0] + 1, state[1] * x), (0, 1.0)
    )[1]


def by_while_counted(x: gc.Tensor, n: int) -> gc.Tensor:
    return gc.while_loop(lambda acc: gc.constant(True), lambda acc: acc * x, 1.0, max_steps=n)


def by_while_carried(x: gc.Tensor, n: int) -> gc.Tensor:
    return gc.while_loop(
        lambda state: state["i"] < n,
        lambda state: {"i": state["i"] + 1, "acc": state["acc"] * state["x"], "x": state["x"]},
        {"i": 0, "acc": 1.0, "x": x},
    )["acc"]


def by_scan(x: gc.Tensor, n: int) -> gc.Tensor:
    return gc.scan(lambda acc, _: (acc * x, None), 1.0, length=n)[0]


def by_scan_of_places(x: gc.Tensor, n: int) -> gc.Tensor:
    return gc.scan(lambda acc, x: (acc * x, acc), 1.0, x.expand_dims(time=n))[0]


def by_fori(x: gc.Tensor, n: int) -> gc.Tensor:
    return gc.fori_loop(0, n, lambda i, acc: acc * x, 1.0)


def by_fori_to_a_tensor(x: gc.Tensor, n: int) -> gc.Tensor:
    return gc.fori_loop(2, gc.constant(n + 2), lambda i, acc: acc * x, 1.0)


SPELLINGS: dict[str, Callable[[gc.Tensor, int], gc.Tensor]] = {
    f.__name__: f
    for f in (
        by_while, by_while_counted, by_while_carried, by_scan, by_scan_of_places, by_fori,
        by_fori_to_a_tensor,
    )
}  # fmt: skip
SLOWLY = [pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 17)]
every_spelling = pytest.mark.parametrize("spelling", SPELLINGS)


def of_order(y: gc.Tensor, x: gc.Tensor, order: int) -> gc.Tensor:
    for _ in range(order):
        y = gc.grad(y.sum(), x, disconnected="zero")
    return y


def falling(n: int, order: int) -> int:
    """n (n - 1) ... of so many factors."""
    return int(np.prod([n - i for i in range(order)], initial=1))


@every_spelling
def test_a_half_twice(spelling: str) -> None:
    x = gc.tensor("x", {})
    y = SPELLINGS[spelling](x, 2)
    assert [float(v) for v in gc.compile([x], [y, gc.grad(y, x)])(0.5)] == [0.25, 1.0]


@every_spelling
@pytest.mark.parametrize("n", [0, 5, *SLOWLY])
def test_powers(spelling: str, n: int) -> None:
    """x ** n and three derivatives, near 0, at 0, and with either sign; alone and as a vector."""
    power = SPELLINGS[spelling]
    values = np.array([0.5, 1e-3, 1e-150, 0.0, -1e-3, -0.7, 1.3, -2.0])
    x, xs = gc.tensor("x", {}), gc.tensor("x", {"place": None})
    alone, whole = power(x, n), power(xs, n)
    one = gc.compile([x], [of_order(alone, x, k) for k in range(4)])
    many = gc.compile([xs], [of_order(whole, xs, k) for k in range(4)])
    wide = gc.compile([xs], gc.vectorize([of_order(alone, x, k) for k in range(4)], {x: xs}))
    with np.errstate(all="ignore"):
        wanted = [
            falling(n, k) * np.prod([values] * max(n - k, 0), axis=0)
            if n > k
            else falling(n, k) * np.ones_like(values)
            for k in range(4)
        ]
    for k in range(4):
        close([one(v)[k] for v in values], wanted[k])
        for found in (many(values)[k], wide(values)[k]):
            close(np.broadcast_to(found, values.shape), wanted[k])


@every_spelling
def test_powers_forward(spelling: str) -> None:
    x, v = gc.tensor("x", {"place": 3}), gc.tensor("v", {"place": 3})
    y = SPELLINGS[spelling](x, 4)
    slope = gc.pushforward(y, x, v)
    f = gc.compile([x, v], [slope, gc.pushforward(slope, x, v), gc.pullback(slope, x, v)])
    at, along = np.array([0.5, -0.3, 0.0]), np.array([1.0, 2.0, -1.0])
    first, second, mixed = f(at, along)
    close(first, 4 * at**3 * along)
    close(second, 12 * at**2 * along**2)
    close(mixed, 12 * at**2 * along**2)


def test_composition_not_powers() -> None:
    """x -> x² + c five times over: the derivative composes the slopes at each step's own x."""
    x, c = gc.tensor("x", {}), gc.tensor("c", {})
    y, _ = gc.scan(lambda z, _: (z * z + c, None), x, length=5)
    found = gc.compile([x, c], [y, gc.grad(y, x), gc.grad(y, c)])(0.3, -0.4)
    z, dx, dc = 0.3, 1.0, 0.0
    for _ in range(5):
        dx, dc, z = 2 * z * dx, 2 * z * dc + 1, z * z - 0.4
    close(found, [z, dx, dc])


# ---- members


def test_members_stop_at_their_own_steps() -> None:
    """A batched loop: value and three derivatives are those of a loop for each member."""
    x, w = gc.tensor("x", {}), gc.tensor("w", {})

    def loop(x: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
        return gc.while_loop(
            lambda state: state[0] < 2.0,
            lambda state: (
                state[0] * 1.3 + w * w,
                gc.sin(state[1] * x) + w * state[0],
            ),
            (x, x * w),
        )[1]

    xs, ws = gc.tensor("xs", {"member": None}), gc.tensor("ws", {"member": None})
    at_x = np.array([0.05, 0.5, 1.0, 1.9, 2.0, 5.0])
    at_w = np.array([0.3, 0.7, -0.6, 1.2, 0.1, 0.4])

    def asked(y: gc.Tensor, x: gc.Tensor, w: gc.Tensor) -> list[gc.Tensor]:
        first = gc.grad(y.sum(), [x, w])
        return [y, *first, *gc.grad((first[0] * first[1]).sum(), [x, w]),
                gc.pushforward(first[1], [x, w], [w, x])]  # fmt: skip

    alone = gc.compile([x, w], asked(loop(x, w), x, w))
    wanted = np.transpose([alone(*pair) for pair in zip(at_x, at_w)])
    together = gc.compile([xs, ws], asked(loop(xs, ws), xs, ws))
    widened = gc.compile([xs, ws], gc.vectorize(asked(loop(x, w), x, w), {x: xs, w: ws}))
    for found in (together(at_x, at_w), widened(at_x, at_w)):
        for got, want in zip(found, wanted, strict=True):
            close(got, want)


# ---- branches


def test_branches_in_loops() -> None:
    """Newton's method where it helps, else bisection: the derivative of the steps taken."""
    x = gc.tensor("x", {})

    def step(z: gc.Tensor, t: gc.Tensor) -> Any:
        new = gc.cond(z > 1, lambda z: gc.log(z) * x, lambda z: z * z + x, z)
        return gc.switch(t % 3, [gc.sin, lambda z: z + x * z, lambda z: 3 * z], new), None

    last, _ = gc.scan(step, x, gc.arange(7, dim="time"))
    outputs = [last, gc.grad(last, x), gc.grad(gc.grad(last, x), x)]
    f = gc.compile([x], outputs)

    def by_hand(x: Any) -> Any:
        z = x
        for t in range(7):
            z = np.log(z) * x if z.real > 1 else z * z + x
            z = [np.sin, lambda z: z + x * z, lambda z: 3 * z][t % 3](z)
        return z

    for at in (0.2, 0.7, 1.4, -0.3):
        value, slope, curve = f(at)
        close(value, by_hand(at))
        close(slope, by_hand(at + 1e-30j).imag / 1e-30)
        bumped = [by_hand(at + d + 1e-30j).imag / 1e-30 for d in (1e-5, -1e-5)]
        close(curve, (bumped[0] - bumped[1]) / 2e-5, 1e-6)


def test_loops_in_branches() -> None:
    """Either branch has a loop of its own length; that not taken, which never ends, is not run."""
    x, n = gc.tensor("x", {}), gc.tensor("n", {}, dtype="int64")
    y = gc.cond(
        x > 0,
        lambda: gc.fori_loop(0, n, lambda i, p: p * x, 1.0),
        lambda: gc.while_loop(lambda p: p * p > 0, lambda p: p * (x / x - 1) + 0 * x, x),
    )
    f = gc.compile([x, n], [y, gc.grad(y, x), gc.grad(gc.grad(y, x), x)])
    close(f(1.5, 4), [1.5**4, 4 * 1.5**3, 12 * 1.5**2])
    endless = gc.cond(
        x > 0, lambda: gc.sin(x), lambda: gc.while_loop(lambda p: p == p, lambda p: p + x, x)
    )
    g = gc.compile([x], [endless, gc.grad(endless, x), gc.pushforward(endless, x, x)])
    close(g(0.5), [np.sin(0.5), np.cos(0.5), np.cos(0.5) * 0.5])


def test_the_branch_not_taken_is_not_computed() -> None:
    """Its index out of range would be an error, in the derivative as well."""
    x, i = gc.tensor("x", {"row": 3}), gc.tensor("i", {}, dtype="int64")
    y = gc.cond(i < 3, lambda: gc.take(x, i, "row") ** 2, lambda: gc.sin(x).sum())
    f = gc.compile([x, i], [y, gc.grad(y, x)])
    values = np.array([1.0, 2.0, 3.0])
    for at, wanted in ((1, [0, 4, 0]), (7, np.cos(values))):
        close(f(values, at)[1], wanted)


@pytest.mark.parametrize("native", [False, True])
def test_equal_loops_in_loops_count_their_own_steps(native: bool) -> None:
    """The same inner loop, in a body and in a body of that body, takes other numbers of steps."""
    x = gc.tensor("x", {})

    def shrunk(z: gc.Tensor) -> gc.Tensor:
        return gc.while_loop(lambda z: z > 1, lambda z: z * z / (z + x), z)

    def outer(z: gc.Tensor, _: None) -> Any:
        last, _ = gc.scan(lambda z, _: (shrunk(z) + 2 * x, None), 7.0 * z, length=3)
        return last * shrunk(z) * 3, None

    y, _ = gc.scan(outer, x * 5, length=2)
    first = gc.grad(y, x)
    f = gc.compile([x], [y, first, gc.grad(first, x)], native=native)

    def by_hand(x: Any) -> Any:
        def shrunk(z: Any) -> Any:
            while z.real > 1:
                z = z * z / (z + x)
            return z

        y = x * 5
        for _ in range(2):
            last = 7.0 * y
            for _ in range(3):
                last = shrunk(last) + 2 * x
            y = last * shrunk(y) * 3
        return y

    slopes = [by_hand(1.7 + d + 1e-30j).imag / 1e-30 for d in (0, 1e-6, -1e-6)]
    found = f(1.7)
    close(found[:2], [by_hand(1.7), slopes[0]])
    close(found[2], (slopes[1] - slopes[2]) / 2e-6, 1e-6)


# ---- what carries no derivative


def test_a_limit_has_no_derivative() -> None:
    """What only the predicate reads, and the number of steps."""
    x, limit = gc.tensor("x", {}), gc.tensor("limit", {})
    y = gc.while_loop(lambda y: y < limit, lambda y: y * x, 1.0)
    f = gc.compile([x, limit], [y, *gc.grad(y, [x, limit])])
    close(f(2.0, 100.0), [128.0, 7 * 64.0, 0.0])
    close(f(2.0, 0.5), [1.0, 0.0, 0.0])
    n = gc.while_loop(lambda s: s[0] < limit, lambda s: (s[0] * x, s[1] + 1), (1.0, 0))[1]
    with pytest.raises(gc.GraphTypeError, match="int64"):
        gc.grad(n, x)


SLOPES: dict[str, Callable[[Any, gc.Tensor, gc.Tensor], gc.Tensor]] = {
    "cond": lambda f, w, n: gc.cond(w.sum() > 0, f, gc.sin, w),
    "cond by place": lambda f, w, n: gc.cond(w > 0, f, gc.sin, w),
    "switch": lambda f, w, n: gc.switch(n, [f, gc.sin], w),
    "switch by place": lambda f, w, n: gc.switch(n + gc.zeros_like(w, "int64"), [f, gc.sin], w),
    "scan": lambda f, w, n: gc.scan(lambda c, _: (f(c), None), w, length=1)[0],
    "while_loop": lambda f, w, n: gc.while_loop(lambda c: c[1] < 1, lambda c: (f(c[0]), c[1] + 1),
                                                (w, n))[0],
    "map": lambda f, w, n: gc.map(f, w, "row"),
    "checkpoint": lambda f, w, n: gc.checkpoint(f)(w),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SLOPES)
def test_what_is_given_is_not_what_is_captured(spelling: str) -> None:
    """A derivative by it leaves what was captured alone, though both are the same tensor."""
    w, n = gc.tensor("w", {"row": 2}), gc.tensor("n", {}, dtype="int64")
    many, ns = gc.tensor("w", {"k": 2, "row": 2}), gc.tensor("n", {"k": 2}, dtype="int64")
    other = w.isel(row=0) + w.isel(row=1)
    y = SLOPES[spelling](lambda x: gc.grad((x * x * other + x * w.sum()).sum(), x), w, n)
    values = np.array([3.0, 5.0])
    wanted = 2 * values * 8 + 8
    close(gc.compile([w, n], y)(values, 0), wanted)
    both = np.stack([values, values[::-1]])
    every = gc.vectorize(y, {w: many, n: ns})
    found = gc.compile([many, ns], every.transpose("k", "row"))(both, np.zeros(2, int))
    close(found, 2 * both * 8 + 8)


def test_operands_are_told_apart() -> None:
    w = gc.tensor("w", {"row": 2})
    product = lambda x, y: gc.grad((x * y).sum(), x)
    for going in (w > 0, w.sum() > 0):
        y = gc.cond(going, product, lambda x, y: x, w, w)
        nested = gc.cond(going, lambda x, p=going: gc.cond(p, product, gc.add, x, w), gc.sin, w)
        slope = gc.grad(nested.sum(), w)
        values = np.array([3.0, 5.0])
        for found, wanted in zip(gc.compile([w], [y, nested, slope])(values), (values, values, 1)):
            close(found, wanted * np.ones(2))


def test_stopped_gradients_in_a_loop() -> None:
    x = gc.tensor("x", {})
    y, _ = gc.scan(lambda y, _: (gc.stop_gradient(y) * x, None), x, length=3)
    close(gc.compile([x], [y, gc.grad(y, x)])(2.0), [16.0, 8.0])


def test_an_inner_value_that_a_loop_captures() -> None:
    """By a tensor made on the way, of which the loop uses a function as well."""
    x = gc.tensor("x", {"row": 3})
    h = gc.exp(x)
    y, _ = gc.scan(lambda c, _: (c * h.sum() + (gc.log(h) * h).sum(), None), 0.0, length=2)
    by_h, by_x = gc.grad(y, h), gc.grad(y, x)
    values = np.array([0.1, 0.4, -0.2])
    e = np.exp(values)
    s, entropy = e.sum(), (values * e).sum()
    slope = (values + 1) * (s + 1) + entropy
    found = gc.compile([x], [y, by_h, by_x])(values)
    for got, want in zip(found, [entropy * s + entropy, slope, slope * e], strict=True):
        close(got, want)


def test_long_loops_are_flat() -> None:
    """The compiled function of a loop has as many lines whatever its length."""
    x = gc.tensor("x", {})
    lengths = []
    for n in (10, 1000):
        y = gc.fori_loop(0, n, lambda i, y: gc.sin(y) * x, x)
        lengths.append(len(gc.compile([x], gc.grad(y, x)).source.splitlines()))
    assert lengths[0] == lengths[1]


def test_members_of_a_counted_loop_of_numbers() -> None:
    """Start values without dims, whose steps make a predicate with dims: the count widens too."""
    x = gc.tensor("x", {"member": None})

    def loop(most: int) -> gc.Tensor:
        return gc.while_loop(
            lambda state: abs(state[0] - state[1]) > 1e-13,
            lambda state: (state[0] / 2 + x, state[0]),
            (0.0, np.inf),
            max_steps=most,
        )[0]

    f = gc.compile([x], [loop(100), loop(3), gc.grad(loop(3).sum(), x)])
    at = np.array([1.0, 0.0, -3.0])
    settled, short, slope = f(at)
    close(settled, 2 * at)
    close(short, 1.75 * at)
    close(slope, [1.75, 1.0, 1.75])


@pytest.mark.parametrize("dims", [(), ("a",)])
def test_a_derivative_in_a_branch_tells_an_operand_from_a_captured_tensor(dims: Any) -> None:
    """They may be one tensor; chosen once, or place by place."""
    x, t = gc.tensor("x", {}), gc.tensor("t", {"a": 2})
    chosen = t > 0 if dims else t.sum() > 0
    for wrt, expected in ((lambda p: x, np.sin(0.5)), (lambda p: p, 0.5 * np.cos(0.5))):
        y = gc.cond(chosen, lambda p, wrt=wrt: gc.grad(gc.sin(p) * x, wrt(p)), lambda p: p * 0, x)
        assert y.dims == dims
        np.testing.assert_allclose(gc.compile([x, t], y)(0.5, np.ones(2)), expected)
