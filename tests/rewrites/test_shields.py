"""The derivative of a value that is left out is 0, however infinite the one before is (B3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import Program
from graphcore.ops import leaf
from graphcore.rewrites.shields import added, shield

V = np.array([0.5, 0.0, 2.0, 0.0])
"""log(V) is -inf where its derivative is inf, in the odd positions: they are left out below."""
EVEN = slice(None, None, 2)


def in_scan(x: gc.Tensor) -> gc.Tensor:
    """Each step computes a logarithm, and every other result is left out."""
    return gc.scan(lambda c, a: (c, gc.log(a)), 0.0, x, dim="i")[1].isel(i=EVEN)


def carried(x: gc.Tensor) -> gc.Tensor:
    """The largest logarithm so far is carried."""
    return gc.scan(lambda c, a: (gc.maximum(c, gc.log(a)), None), -9.0, x, dim="i")[0]


def carried_apart(x: gc.Tensor) -> gc.Tensor:
    """A carry of which the end leaves out elements."""
    last = gc.fori_loop(0, 2, lambda i, s: gc.log(gc.exp(s)), gc.log(x))
    return last.isel(i=EVEN)


def in_branch(x: gc.Tensor) -> gc.Tensor:
    """The branch that is taken computes logarithms, of which some are left out."""
    both = gc.cond(x.sum() > 0, lambda: gc.log(x), lambda: 2 * gc.log(x))
    return both.isel(i=EVEN)


def in_while(x: gc.Tensor) -> gc.Tensor:
    """A loop whose number of steps only the call finds out."""
    y = gc.while_loop(lambda s: s.isel(i=0) < 1.0, lambda s: s + gc.log(x) * 0 + 1, gc.log(x))
    return y.isel(i=EVEN)


LEAVING_OUT: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "slice": lambda x: gc.log(x).isel(i=EVEN),
    "gather": lambda x: gc.log(x).isel(i=gc.constant([0, 2], "k")),
    "where": lambda x: gc.where(x > 0.1, gc.log(x), 0),
    "max": lambda x: gc.max(gc.log(x), "i"),
    "maximum": lambda x: gc.maximum(gc.log(x), -9.0),
    "cummax": lambda x: gc.cummax(gc.log(x), "i"),
    "cummin": lambda x: gc.cummin(-gc.log(x), "i"),
    "windows": lambda x: gc.windows(gc.log(x), {"i": 1}, {"i": "w"}, stride=2),
    "sort": lambda x: gc.sort(gc.log(x), "i").isel(i=slice(2, None)),
    "put": lambda x: gc.log(x).at[{"i": slice(1, None, 2)}].set(0.0),
    "of rows": lambda x: gc.dot(gc.log(x).expand_dims(j=2), W, dim="j").isel(i=EVEN),
    "norm": lambda x: gc.norm(gc.log(x).expand_dims(j=2), "j").isel(i=EVEN),
    "softmax": lambda x: gc.special.softmax(1 / x * ROW, "j").isel(i=EVEN),
    "log_softmax": lambda x: gc.special.log_softmax(1 / x * ROW, "j").isel(i=EVEN),
    "logsumexp": lambda x: gc.special.logsumexp(1 / x * ROW, "j").isel(i=EVEN),
    "running logsumexp": lambda x: gc.special.logcumsumexp(1 / x * ROW, "j").isel(i=EVEN),
    "scan": in_scan,
    "carry": carried,
    "carry apart": carried_apart,
    "cond": in_branch,
    "while": in_while,
    "checkpoint": lambda x: gc.checkpoint(gc.log)(x).isel(i=EVEN),
}
ROW = gc.constant([0.5, -1.0], "j")
W = gc.constant([[0.5, -1.0, 2.0], [1.0, 0.25, 0.5]], ("j", "k"))


@pytest.mark.parametrize("name", LEAVING_OUT)
def test_what_is_left_out_has_no_derivative(name: str) -> None:
    """In both modes, of first to third order, as where no element is 0."""
    x, t = gc.tensor("x", {"i": None}), gc.tensor("t", {"i": None})
    y = gc.exp(LEAVING_OUT[name](x)).sum()
    g = gc.grad(y, x)
    wanted = [
        *(g, gc.pushforward(y, x, t), gc.hvp(y, x, t), gc.grad((g * t).sum(), x)),
        *(gc.jacobian(g, x), gc.jacobian(g, x, mode="forward"), gc.jacobian(gc.hvp(y, x, t), x)),
    ]
    f = gc.compile([x, t], wanted)
    direction = np.array([1.0, 0.5, -1.0, 2.0])
    found = f(V, direction)
    without = f(np.where(V == 0, 1e-5, V), direction)
    for a, b in zip(found, without, strict=True):
        np.testing.assert_allclose(a, dropped(b), rtol=1e-9, atol=1e-9)


def dropped(a: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A derivative with 0 where it is one by an odd element."""
    for axis in range(a.ndim):
        np.moveaxis(a, axis, 0)[1::2] = 0
    return a


def test_a_loop_in_which_nothing_is_left_out_has_no_shields() -> None:
    """The gates of a cell are slices, of which a concatenation puts the cotangents together."""
    assert "multiply_no_nan(" not in Program("lstm").make("graphcore").source


@pytest.mark.parametrize("bounded", [False, True])
def test_a_factor_that_is_bounded_outside_of_a_loop_needs_no_shield_inside(bounded: bool) -> None:
    """Each step leaves out an element, whose cotangent of 0 meets the factor."""
    w, n = gc.tensor("w", {"i": 3}), gc.tensor("n", {}, dtype="int64")
    factor = gc.where(w > 0, 2.0, 1.0) if bounded else gc.exp(w)
    step = lambda v: (v[0] + 1, v[1][{"i": slice(0, 2)}].pad(i=(0, 1)) * factor)
    last = gc.while_loop(lambda v: v[0] < n, step, (0, w))[1]
    f = gc.compile([w, n], gc.grad(last.sum(), w), native=False)
    assert ("multiply_no_nan(" in f.source) is not bounded


def test_signs_of_cotangents_are_taken_outside() -> None:
    ct, other, factor = (
        leaf.input_(name=name, dtype=np.dtype("f8"), shape=(3,), dims=None) for name in "cof"
    )
    assert added(-ct, other) is other - ct
    assert added(ct, -other) is ct - other
    assert shield(-ct, factor) is -(ct * factor)
    assert shield(ct, -factor) is -(ct * factor)
    assert shield(-ct, -factor) is ct * factor
