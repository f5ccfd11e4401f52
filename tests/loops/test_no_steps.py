"""Sums of no terms and loops of no steps: what they would be multiplied by counts for nothing.

The functions have infinite or undefined derivatives where they are called, but no term and no step
takes part in the result, so that all of its derivatives by them are 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc

T = gc.Tensor
V, U, TIME = gc.tensor("v", {}), gc.tensor("u", {}), gc.tensor("time", {"t": None})
STEPS = gc.tensor("steps", (), dtype="int64")

FUNCTIONS: dict[str, Callable[[T], T]] = {
    "sqrt": gc.sqrt,
    "log": gc.log,
    "reciprocal": lambda v: 1 / v,
    "power": lambda v: v**-1.5,
    "root of squares": lambda v: gc.sqrt(v * v + 0 * v),
    "singular values": lambda v: gc.linalg.svdvals(v * EYE + 1, dims=("i", "j")).sum(),
}
EYE = gc.constant(np.eye(2), ("i", "j"))

LOOPS: dict[str, Callable[[T], T]] = {
    "carry": lambda k: gc.scan(lambda s, e: (s * 0.5 + k * e, None), U, TIME, dim="t")[0],
    "product": lambda k: gc.scan(lambda s, e: (s * 0.5 + k * e * s, None), U, TIME, dim="t")[0],
    "results": lambda k: gc.scan(lambda s, e: (s * 0.5, k * e * s), U, TIME, dim="t")[1].sum(),
    "length": lambda k: gc.scan(lambda s, _: (gc.sin(s) * k, None), U, length=STEPS)[0],
    "fori": lambda k: gc.fori_loop(0, STEPS, lambda i, s: gc.sin(s) * k + i, U),
    "while": lambda k: gc.while_loop(lambda s: s > 100, lambda s: s * 0.5 + gc.sin(k * s), U),
    "counted": lambda k: gc.while_loop(
        lambda s: s[0] < STEPS, lambda s: (s[0] + 1, gc.sin(k * s[1])), (0, U)
    )[1],
    "while in scan": lambda k: gc.scan(
        lambda s, e: (s + 0.3 * gc.while_loop(lambda q: q > 9, lambda q: q * k, s + e), None),
        *(U, gc.constant([1.0, 2.0], "two")),
        dim="two",
    )[0],
    "scan in scan": lambda k: gc.scan(
        lambda s, _: (
            s + gc.scan(lambda q, e: (q * e * k, None), s, TIME, dim="t")[0],
            None,
        ),
        *(U,),
        length=2,
    )[0],
}
SUMS: dict[str, Callable[[T], T]] = {
    "sum": lambda k: (k * TIME).sum() + U,
    "dot": lambda k: gc.dot(TIME, k + 0 * TIME, dim="t") + U,
    "of a product": lambda k: U * gc.sin(k * TIME).sum(),
    "prod": lambda k: U * (k * TIME).prod(),
    "norm": lambda k: U * gc.norm(k * TIME, "t"),
    "segments": lambda k: gc.segment_sum(k * TIME, gc.zeros_like(TIME).astype(int), 2).sum() + U,
}
PROGRAMS = LOOPS | SUMS


def check(functions: list[str], programs: list[str], native: bool) -> None:
    asked, one = {}, gc.constant(1.0)
    for function in functions:
        k = FUNCTIONS[function](V)
        for program in programs:
            slope = gc.grad(y := PROGRAMS[program](k), V)
            found = (slope, gc.pushforward(y, V, one), gc.hvp(y, V, one), gc.grad(slope, V))
            asked[f"{function}, {program}"] = (*found, gc.grad(slope, U, disconnected="zero"))
    f = gc.compile([V, U, TIME, STEPS], asked, native=native)
    for name, found in f(0.0, 0.7, np.zeros(0), 0).items():
        np.testing.assert_array_equal(np.array(found, float), 0, err_msg=name)


def test_an_infinite_derivative_of_no_terms_and_no_steps_is_0() -> None:
    check(["sqrt"], ["carry", "while", "sum", "dot"], native=False)


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_infinite_derivatives_of_no_terms_and_no_steps_are_0(function: str, native: bool) -> None:
    for program in PROGRAMS:
        check([function], [program], native)


@pytest.mark.parametrize("native", [False, True])
def test_a_sum_of_no_products_with_infinity_stays_0(native: bool) -> None:
    v, s = gc.tensor("v", {"w": None}), gc.tensor("s", {})
    for y in (gc.dot(v, s, dim="w"), (v * s).sum()):
        asked = [y, gc.pushforward(y, v, 0 * v), gc.grad(y, s)]
        np.testing.assert_array_equal(gc.compile([v, s], asked, native=native)([], np.inf), 0)


@pytest.mark.parametrize("native", [False, True])
def test_a_product_with_an_infinite_matrix_in_no_step_stays_0(native: bool) -> None:
    w, u, s = gc.tensor("w", {"i": 2, "j": 2}), gc.tensor("u", {"j": 2}), gc.tensor("s", {"i": 2})
    last = gc.while_loop(lambda c: c.sum() > 100, lambda c: 0.5 * c + gc.dot(w, u, dim="j"), s)
    f = gc.compile([w, u, s], gc.grad(last.sum(), [w, u]), native=native)
    for slope in f(np.full((2, 2), np.inf), [1.0, np.inf], [1.0, 2.0]):
        np.testing.assert_array_equal(slope, 0)


def test_steps_and_terms_that_are_there_keep_their_infinite_derivatives() -> None:
    for program in ("carry", "sum"):
        slope = gc.grad(PROGRAMS[program](gc.sqrt(V)), V)
        assert slope.eval(v=0.0, u=0.7, time=[1.0, 2.0]) == np.inf


@pytest.mark.parametrize("native", [False, True])
def test_a_cotangent_that_is_0_by_chance_has_a_slope(native: bool) -> None:
    """The carry is 0 where it is differentiated, and what the steps contract does not vary."""
    x = gc.tensor("x", {"t": 2})
    weights, kernel = gc.constant([1.8, 1.5], "t") * V, gc.constant([1.9, 1.4], "lag")
    contractions = [gc.conv(weights, kernel, {"t": "lag"}).sum("t"), gc.dot(weights, x, dim="t")]
    lasts = [gc.fori_loop(0, STEPS, lambda i, c, k=k: c * k, V) for k in contractions]
    f = gc.compile([V, STEPS, x], [gc.hvp(y, V, gc.constant(1.0)) for y in lasts], native=native)
    np.testing.assert_allclose(f(0.0, 1, [1.0, 2.0]), [2 * 5.52, 2 * 4.8])


def test_nothing_is_guarded_where_there_are_terms_for_certain() -> None:
    x = gc.tensor("x", {"t": 3})
    loop = gc.scan(lambda s, e: (s * 0.5 + gc.sqrt(V) * e, None), U, x, dim="t")[0]
    for y in (loop, (gc.sqrt(V) * x).sum(), (gc.exp(TIME) * TIME.sum()).sum()):
        source = gc.compile([V, U, x, TIME], gc.grad(y, [V, TIME], disconnected="zero")).source
        assert "multiply_no_nan" not in source


@pytest.mark.parametrize("native", [False, True])
def test_steps_are_not_counted_where_their_loop_is_gone(native: bool) -> None:
    """The last value of the loop does not depend on `x`, so that its steps are not recorded."""
    x, y = gc.tensor("x", {"b": None}), gc.tensor("y", {"a": None})
    start = gc.dot(x, gc.constant(np.ones((2, 3)), ("c", "b")), dim="b")
    last = gc.while_loop(
        lambda c: c[0] < 0.3,
        lambda c: (c[0] + 0.4, gc.broadcast_like(*c)),
        (gc.tanh(y), start),
        max_steps=5,
    )[1]
    f = gc.compile([x, y], gc.hvp(gc.sum(last), x, x), native=native)
    np.testing.assert_array_equal(f([0.1, 0.2, 0.3], [-0.5, 2.0]), 0)


@pytest.mark.parametrize("native", [False, True])
def test_products_of_matrices_with_a_cotangent_of_no_terms(native: bool) -> None:
    """An infinite input counts for nothing where there are no classes, per example as well."""
    x = gc.tensor("x", {"example": None, "in": None})
    first = gc.tensor("first", {"in": None, "hidden": None})
    second = gc.tensor("second", {"hidden": None, "class": None})
    hidden = gc.special.softplus(gc.dot(x, first, dim="in"))
    found = (gc.dot(hidden, second, dim="hidden") ** 2).sum("class")
    slopes = [gc.grad(found.sum(), first), gc.grad(found, first, per="example")]
    f = gc.compile([x, first, second], slopes, native=native)
    given = np.full((3, 2), np.inf), np.ones((2, 4)), np.ones((4, 0))
    assert all((slope == 0).all() for slope in f(*given))
