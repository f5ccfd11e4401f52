"""A loop in a branch, or in a batched loop, ends for the members that take part in it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import graphcore as gc

A = gc.tensor("a", {"b": None})
S = gc.tensor("s", {})
Function = Callable[[gc.Tensor], gc.Tensor]


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """No call takes longer, so that one that never ends fails."""

    def stop(*_: object) -> None:
        raise TimeoutError("never ends")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 60)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def root(a: gc.Tensor) -> gc.Tensor:
    """The square root by Newton's steps, which never end for a negative number."""
    return gc.while_loop(lambda r: abs(r * r - a) > 1e-13 * abs(a), lambda r: (r + a / r) / 2, a)


def by_gradient(a: gc.Tensor) -> gc.Tensor:
    def step(r: gc.Tensor) -> gc.Tensor:
        return r - (r * r - a) / gc.grad(r * r - a, r, per=r.dims)

    return gc.while_loop(lambda r: abs(r * r - a) > 1e-13 * abs(a), step, a)


def in_reverse(o: Any, z: gc.Tensor, ct: gc.Tensor) -> Any:
    """The cotangent ct / 2 z as the end of a loop, which some operands never let end."""
    half = gc.while_loop(lambda v: abs(ct + (1 - z) * v - v) > 1e-14 * abs(ct),
                         lambda v: ct + (1 - z / 2) * v - z / 2 * v, ct)  # fmt: skip
    return (half / 2,)


ROOTS: dict[str, Function] = {
    "newton": root,
    "by a gradient": by_gradient,
    "in a checkpoint": gc.checkpoint(root),
    "in steps": lambda a: gc.fori_loop(0, 3, lambda i, c: root(c * c), root(a)),
    "in a branch": lambda a: gc.cond(a < 1e9, root, gc.sin, a),
    "in a scan": lambda a: gc.map(lambda t: root(a) + 0 * t, gc.ones({"t": 2}), "t").mean("t"),
    "pullback": lambda a: 2 * a * gc.pullback(root(a), a, gc.ones_like(a)),
    "custom": gc.custom_pullback(root, lambda o, z, ct: (ct / (2 * z),)),
    "custom both": gc.custom_pullback(
        root, lambda o, z, ct: (ct / (2 * z),), lambda o, z, t: t[0] / (2 * z)
    ),
    "steps limited": lambda a: gc.while_loop(
        lambda r: (abs(r * r - a) > 1e-13 * abs(a)).any(), lambda r: (r + a / r) / 2, a, 60
    ),
    "counted": lambda a: gc.fori_loop(
        0, (a.sum() * 0 + 30).astype("int64"), lambda i, r: (r + a / r) / 2, a
    ),
}
AROUND: dict[str, Callable[[Function], gc.Tensor]] = {
    "cond": lambda f: gc.cond(A > 0, f, lambda a: 3 * a, A),
    "cond, captured": lambda f: gc.cond(A > 0, lambda: f(A), lambda: 3 * A),
    "switch": lambda f: gc.switch((A > 0).astype("int8"), [lambda a: 3 * a, f, gc.exp], A),
    "batched loop": lambda f: gc.while_loop(
        lambda c: c[1] > 0, lambda c: (f(c[1]), -c[1]), (3 * A, A)
    )[0],
    "vectorize": lambda f: gc.vectorize(gc.cond(S > 0, f, lambda a: 3 * a, S), {S: A}),
    "vectorize twice": lambda f: gc.vectorize(
        gc.vectorize(gc.cond(S > 0, f, lambda a: 3 * a, S), {S: A}),
        {A: gc.concat([A, A], "copy")},
    ).isel(copy=1),
}


def values(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The results, slopes and second derivatives."""
    whole = np.where(a > 0, a, 1.0)
    inner = np.sqrt(whole), 0.5 * whole**-0.5, -0.25 * whole**-1.5
    outer = 3 * a, np.full_like(a, 3.0), 0 * a
    return tuple(np.where(a > 0, x, y) for x, y in zip(inner, outer, strict=True))  # type: ignore[return-value]


QUICK = [("newton", "cond"), ("custom both", "vectorize"), ("in steps", "batched loop")]


@pytest.mark.parametrize(
    ("name", "around"),
    [
        pytest.param(name, around, marks=[] if (name, around) in QUICK else pytest.mark.slow)
        for name in ROOTS
        for around in AROUND
        if name in ("newton", "custom both") or around in ("switch", "batched loop", "vectorize")
    ],
)
def test_members_of_the_other_branch_do_not_keep_it_going(name: str, around: str) -> None:
    y = AROUND[around](ROOTS[name])
    slope = gc.grad(y.sum(), A)
    asked = [y, slope, gc.pushforward(y, A, gc.ones_like(A))]
    for native in (False, True):
        f = gc.compile([A], asked, native=native)
        for a in ([-4.0, 9.0, 2.0, -1.0], [4.0], [-4.0], []):
            found, wanted = f(np.array(a)), values(np.array(a))
            for one, other in zip(found, (wanted[0], wanted[1], wanted[1]), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-10)


def test_second_derivatives() -> None:
    y = gc.cond(A > 0, root, lambda a: 3 * a, A)
    a = np.array([-4.0, 9.0, 2.0, -1.0])
    found = gc.compile([A], gc.hvp(y.sum(), A, gc.ones_like(A)))(a)
    np.testing.assert_allclose(found, values(a)[2], rtol=1e-10)


def any_of_all(a: gc.Tensor) -> gc.Tensor:
    return gc.while_loop(lambda r: (abs(r * r - a) > 1e-9).any(), lambda r: (r + a / r) / 2, a)


def through_a_carry(a: gc.Tensor) -> gc.Tensor:
    """The largest error is carried, so that the condition has no dims."""

    def step(c: tuple[gc.Tensor, gc.Tensor]) -> tuple[gc.Tensor, gc.Tensor]:
        r = (c[1] + a / c[1]) / 2
        return abs(r * r - a).max(), r

    return gc.while_loop(lambda c: c[0] > 1e-9, step, (gc.constant(1.0), a))[1]


TOGETHER: dict[str, Function] = {
    "any": any_of_all,
    "through a carry": through_a_carry,
    "used by all": lambda a: a + root(a).sum("b"),
    "inside": lambda a: gc.fori_loop(0, 2, lambda i, c: any_of_all(c), a),
    "custom": gc.custom_pullback(any_of_all, lambda o, z, ct: (ct / (2 * z),)),
}


@pytest.mark.parametrize("around", ["cond", "cond, captured", "switch", "batched loop"])
@pytest.mark.parametrize("name", TOGETHER)
def test_members_that_cannot_be_told_apart_are_refused(around: str, name: str) -> None:
    with pytest.raises(gc.GraphError, match="may never let it end") as caught:
        AROUND[around](TOGETHER[name])
    assert "gc.map(function, xs, 'b')" in str(caught.value)
    assert "test_ending.py" in str(caught.value)


def test_the_cures() -> None:
    outside = any_of_all(A)
    moved = gc.cond(A > 5, lambda: outside, lambda: 3 * A)
    by_one = gc.map(lambda a: gc.cond(a > 0, any_of_all, lambda a: 3 * a, a), A, "b")
    f = gc.compile([A], [moved, by_one])
    for found, wanted in zip(f(np.array([9.0, 4.0])), ([3, 12], [3, 2]), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_a_loop_that_no_member_decides_runs_if_any_takes_part() -> None:
    """It may never end if none does."""
    n = gc.tensor("n", {})
    y = gc.cond(A > 0, lambda: A * gc.while_loop(lambda k: k != n, lambda k: k + 1, 0.0), lambda: A)
    f = gc.compile([A, n], y)
    np.testing.assert_array_equal(f(np.array([-1.0, 2.0]), 3.0), [-1.0, 6.0])
    np.testing.assert_array_equal(f(np.array([-1.0, -2.0]), -3.0), [-1.0, -2.0])


def test_what_a_loop_captures_may_never_end_if_it_makes_no_step() -> None:
    n = gc.tensor("n", {}, dtype="int64")
    y = gc.fori_loop(0, n, lambda i, c: c + root(S), 0.0)
    f = gc.compile([n, S], y)
    assert f(0, -4.0) == 0
    np.testing.assert_allclose(f(2, 4.0), 4)
