"""Operands of commutative ops are shared whatever their order, and constants enter bodies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore.ops import elementwise as e

T = gc.Tensor
X, Y = gc.tensor("x", {"t": None}), gc.tensor("y", {"t": None})

SHARED: dict[str, Callable[[T, T], T]] = {
    "add": lambda x, y: gc.sinh(x) + gc.cosh(y),
    "multiply": lambda x, y: gc.sinh(x) * gc.cosh(y),
    "nested": lambda x, y: (gc.sinh(x) * gc.cosh(y)) + gc.exp(x),
    "equal": lambda x, y: gc.equal(gc.floor(x), gc.floor(y)).astype(float),
    "logaddexp": lambda x, y: gc.logaddexp(x, 2 * y),
}
TURNED: dict[str, Callable[[T, T], T]] = {
    "add": lambda x, y: gc.cosh(y) + gc.sinh(x),
    "multiply": lambda x, y: gc.cosh(y) * gc.sinh(x),
    "nested": lambda x, y: gc.exp(x) + (gc.cosh(y) * gc.sinh(x)),
    "equal": lambda x, y: gc.equal(gc.floor(y), gc.floor(x)).astype(float),
    "logaddexp": lambda x, y: gc.logaddexp(2 * y, x),
}


@pytest.mark.parametrize("name", SHARED)
def test_operands_in_another_order_make_the_same_node(name: str) -> None:
    one, other = SHARED[name](X, Y), TURNED[name](X, Y)
    f = gc.compile([X, Y], [one, other], native=False)
    for stage in ("simplified", "optimized"):
        first, second = f.stages[stage].outputs
        assert first is second
    alone = gc.compile([X, Y], one, native=False).stages["simplified"].outputs[0]
    assert alone is f.stages["simplified"].outputs[0]  # the order that was written first
    at = [0.3, -1.7, np.nan], [2.0, np.inf, 1.0]
    np.testing.assert_array_equal(*f(*at))


def test_operands_in_another_order_are_shared_in_bodies() -> None:
    y = gc.scan(lambda s, e: (gc.sin(s) * gc.exp(e) + gc.exp(e) * gc.sin(s), None), 0.5, X, dim="t")
    f = gc.compile([X], y[0], native=False)
    (loop,) = [x for x in f.stages["optimized"].nodes() if x.op.dialect == "control"]
    assert [x.op for x in loop.attrs["body"].nodes()].count(e.multiply) == 1


def test_zeros_of_an_extreme_stay_where_they_stand() -> None:
    zero = [0.0, -0.0], [-0.0, 0.0]
    for f in (gc.maximum, gc.minimum, gc.fmax, gc.fmin):
        found = gc.compile([X, Y], [f(X, Y), f(Y, X)], native=False)(*zero)
        np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(found[1][::-1]))


def test_the_gradient_of_a_checkpoint_is_not_multiplied_by_1() -> None:
    inner = gc.checkpoint(lambda v: gc.sin(v) * gc.exp(v))
    outer = gc.checkpoint(inner)
    by_call = gc.grad(outer(outer(X)).sum(), X)
    by_branch = gc.grad(gc.cond(X.sum() > 0, inner, gc.cos, X).sum(), X)
    for slope, wanted in (
        (by_call, gc.grad((lambda v: gc.sin(v) * gc.exp(v))(gc.sin(X) * gc.exp(X)).sum(), X)),
        (by_branch, gc.grad((gc.sin(X) * gc.exp(X)).sum(), X)),
    ):
        f = gc.compile([X], [slope, wanted], native=False)
        assert "broadcast_to" not in f.source
        np.testing.assert_allclose(*f([0.3, 0.7]), rtol=1e-14)


def test_nothing_is_chosen_by_what_is_known() -> None:
    known = gc.constant(np.array([1.0, 2.0]), "t")
    y = gc.special.xlogy(0.3, X).sum() + gc.special.xlogy(known, X).sum()
    source = gc.compile([X], gc.grad(gc.grad(y, X).sum(), X), native=False).source
    assert "if False" not in source
    assert "logical_and" not in source
