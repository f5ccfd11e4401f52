"""Carries and results of branches by name: whatever the order in which operands are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

S = gc.tensor("s", {"beam": None})
X = gc.tensor("x", {"batch": None, "beam": None})
B = gc.tensor("b", {"batch": None})
T = gc.tensor("t", {"time": None})
N = gc.tensor("n", {}, dtype="int64")
INPUTS = [S, X, B, T, N]
VALUES = {(2, 3): 2, (1, 1): 1, (0, 2): 2, (2, 0): 3, (3, 1): 0}
"""The steps for the sizes of batch and beam."""

Body = Callable[[gc.Tensor], gc.Tensor]
BODIES: dict[str, Body] = {
    "carry first": lambda s: gc.sin(s) + X,
    "carry last": lambda s: X + gc.sin(s),
    "a dim alone, carry last": lambda s: B * gc.cos(s),
    "turned": lambda s: (s * B).transpose("batch", "beam"),
    "replaced": lambda s: X * X,
    "product": lambda s: gc.dot(X, S.rename(beam="k"), dim=()).sum("k") - s,
}
LOOPS: dict[str, Callable[[Body, Any], gc.Tensor]] = {
    "scan": lambda body, s: gc.scan(lambda c, _: (body(c), None), s, length=N)[0],
    "scan over": lambda body, s: gc.scan(lambda c, t: (t + body(c), None), s, T)[0],
    "fori_loop": lambda body, s: gc.fori_loop(0, N, lambda i, c: body(c), s),
    "while_loop": lambda body, s: gc.while_loop(
        lambda c: c[0] < N, lambda c: (c[0] + 1, body(c[1])), (0, s)
    )[1],
    "batched": lambda body, s: gc.while_loop(
        lambda c: (c[0] < N) & (B < 9), lambda c: (c[0] + 1, body(c[1])), (0, s)
    )[1],
}


def wide(s: gc.Tensor) -> gc.Tensor:
    return s.broadcast_like(gc.zeros(S.sizes | B.sizes))


def compare(found: Any, wanted: Any) -> None:
    """Values, gradients and pushforwards, by both targets, at all sizes."""
    both = []
    for y in (found, wanted):
        slopes = gc.grad(gc.sin(y).sum(), [S, X, B, T], disconnected="zero")
        tangent = gc.pushforward(y, S, gc.cos(S), disconnected="zero")
        both += [y, *slopes, tangent]
    for native in (False, True):
        f = gc.compile(INPUTS, both, native=native)
        for (batch, beam), n in VALUES.items():
            random = np.random.default_rng(n)
            shapes = (beam,), (batch, beam), (batch,), (n,)
            made = f(*[random.normal(size=shape) for shape in shapes], n)
            half = len(made) // 2
            for one, other in zip(made[:half], made[half:], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_start_is_repeated_along_the_dims_that_the_body_adds(loop: str, body: str) -> None:
    found = LOOPS[loop](BODIES[body], S)
    assert found.dims == ("beam", "batch")
    compare(found, LOOPS[loop](BODIES[body], wide(S)))


def test_carries_that_widen_each_other() -> None:
    """Each is repeated as soon as any step would, also if another step comes first."""
    for order in (lambda a, b: (b, a + X), lambda a, b: (X + b, a)):
        found = gc.fori_loop(0, N, lambda i, c, order=order: order(*c), (S, gc.sin(S)))
        wanted = gc.fori_loop(0, N, lambda i, c, order=order: order(*c), (wide(S), wide(gc.sin(S))))
        assert [y.dims for y in found] == [("beam", "batch")] * 2
        for one, other in zip(found, wanted, strict=True):
            compare(one, other)


def test_a_number_takes_the_dims_of_the_body_in_its_order() -> None:
    last = gc.fori_loop(0, N, lambda i, c: X.T * 0.5 + c, 0)
    assert last.dims == ("beam", "batch")
    inner = gc.fori_loop(0, 2, lambda i, c: B + gc.fori_loop(0, 2, lambda j, d: S + d, c), 0.0)
    assert inner.dims == ("batch", "beam")


PARTS: dict[str, gc.Tensor] = {"s": S, "x": X, "x.T": X.T, "b": B, "2.0": gc.constant(2.0)}


@pytest.mark.parametrize("then", PARTS)
@pytest.mark.parametrize("otherwise", PARTS)
def test_branches_have_the_dims_of_all(then: str, otherwise: str) -> None:
    """As where they are chosen for each element: those of `then` stand first."""
    x, y = PARTS[then], PARTS[otherwise]
    for chosen in (N > 1, N < 1):
        found = gc.cond(chosen, gc.sin, gc.cos, x) if x is y else gc.cond(
            chosen, lambda: gc.sin(x), lambda: gc.cos(y))  # fmt: skip
        wanted = gc.where(chosen, gc.sin(x), gc.cos(y))
        assert found.dims == wanted.dims
        if (then, otherwise) in (("s", "x"), ("b", "s"), ("x", "x.T")):
            compare(found, wanted)


def test_one_of_several_branches_has_the_dims_of_all() -> None:
    branches = [lambda: S * B, lambda: X, lambda: 2.0 * S, lambda: 1]
    found = gc.switch(N, branches)
    wanted = gc.switch(N + gc.zeros({"copy": 1}, "int64"), branches).isel(copy=0)
    assert found.dims == wanted.dims == ("beam", "batch")
    compare(found, wanted)
