"""The places where derivatives go wrong: what is wanted there, in both modes and at second order.

Norms at 0, sort, median, loops without trips and linear algebra come with the functions they need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc

INF, NAN = np.inf, np.nan
E = np.e


class Edge(NamedTuple):
    """The sum of `f` at `at`, one list of values along dim "i" for each of its inputs.

    `gradient` and `second` take the values of all inputs one after the other; a flat `second` is a
    diagonal, and None is left open.
    """

    f: Callable[..., gc.Tensor]
    at: list[list[float]]
    gradient: list[float]
    second: Any = None


class Derivatives(NamedTuple):
    value: float
    reverse: np.ndarray
    forward: np.ndarray
    reverse_of_reverse: np.ndarray
    forward_of_reverse: np.ndarray
    reverse_of_forward: np.ndarray


def derivatives(
    f: Callable[..., gc.Tensor], at: list[list[float]], size: int | None
) -> Derivatives:
    """The first and second derivatives of the sum of f, in every combination of modes."""
    xs = [gc.tensor(f"x{k}", {"i": size}) for k in range(len(at))]
    vs = [gc.tensor(f"v{k}", {"i": size}) for k in range(len(at))]
    y = f(*xs).sum()
    gradient = gc.grad(y, xs)
    along = gc.pushforward(y, xs, vs)
    slope = sum(((g * v).sum() for g, v in zip(gradient, vs)), start=gc.constant(0.0))
    zero = {"disconnected": "zero"}
    asked = {
        "value": y,
        "reverse": gradient,
        "forward": along,
        "reverse_of_reverse": gc.grad(slope, xs, **zero),
        "forward_of_reverse": gc.pushforward(gradient, xs, vs, **zero),
        "reverse_of_forward": gc.grad(along, xs, **zero),
    }
    compiled = gc.compile([xs, vs], asked)
    values = [np.array(x, float) for x in at]
    count = sum(len(x) for x in values)
    rows = []
    for direction in np.eye(count):
        pieces = np.split(direction, np.cumsum([len(x) for x in values])[:-1])
        rows.append(compiled(values, pieces))

    def flat(result: Any) -> np.ndarray:
        return np.concatenate(result)

    return Derivatives(
        float(rows[0]["value"]),
        flat(rows[0]["reverse"]),
        np.array([row["forward"] for row in rows]),
        *[np.array([flat(row[name]) for row in rows]) for name in list(asked)[3:]],
    )


def matrix(second: Any) -> np.ndarray:
    given = np.array(second, float)
    return np.diag(given) if given.ndim == 1 else given


def whole(values: list[float]) -> gc.Tensor:
    return gc.constant(values, "i")


def softmax(x: list[float]) -> np.ndarray:
    e = np.exp(np.array(x) - np.max(x))
    return e / e.sum()


def curvature(p: np.ndarray) -> np.ndarray:
    """The second derivative of logsumexp, whose first is p."""
    return np.diag(p) - np.outer(p, p)


P = softmax([0.0, -INF, 1.0])

EDGES = {
    # The branch not taken, and places left out, do not count.
    "where log": Edge(
        lambda x: gc.where(x > 0, gc.log(x), 0), [[0, 2, -1]], [0, 0.5, 0], [0, -0.25, 0]
    ),
    "where sqrt": Edge(lambda x: gc.where(x > 0, gc.sqrt(x), 0), [[0, 4]], [0, 0.25], [0, -1 / 32]),
    "method where": Edge(lambda x: gc.log(x).where(x > 0, 0), [[0, 2]], [0, 0.5], [0, -0.25]),
    "where log of square": Edge(
        lambda x: gc.where(x > 0, gc.log(x) ** 2, 0), [[0, 1]], [0, 0], [0, 2]
    ),
    "where reciprocal": Edge(lambda x: gc.where(x != 0, 1 / x, 0), [[0, 2]], [0, -0.25], [0, 0.25]),
    "where x/x": Edge(lambda x: gc.where(x != 0, x / x, 0), [[0, 2]], [0, 0], [0, 0]),
    "where exp": Edge(lambda x: gc.where(x < 10, gc.exp(x), 0), [[1000, 0]], [0, 1], [0, 1]),
    "where exp deep": Edge(
        lambda x: gc.where(x < 10, gc.exp(gc.exp(x)), x), [[1000, 0]], [1, E], [0, 2 * E]
    ),
    "where isnan": Edge(lambda x: gc.where(gc.isnan(x), 0, x**3), [[NAN, 2]], [0, 12], [0, 12]),
    "where isnan log": Edge(
        lambda x: gc.where(gc.isnan(gc.log(x)), 0, gc.log(x)), [[-1, 2]], [0, 0.5], [0, -0.25]
    ),
    "where far from it": Edge(
        lambda x: gc.where(x > 0, gc.exp(gc.log(gc.sqrt(x) / x) * 2), 0), [[0, 4]],
        [0, -1 / 16], [0, 1 / 32],
    ),
    "where norm": Edge(
        lambda x: gc.where(x.sum() == 0, 0, gc.sqrt((x * x).sum())), [[0, 0]], [0, 0]
    ),
    "where in where": Edge(
        lambda x: gc.where(x > 0, gc.where(x > 1, gc.log(x - 1), gc.sqrt(x)), 0),
        [[0, 3, 4]], [0, 0.5, 1 / 3], [0, -0.25, -1 / 9],
    ),
    "slice of where": Edge(
        lambda x: gc.where(x > -1, gc.log(x), 0)[1:], [[0, 2]], [0, 0.5], [0, -0.25]
    ),
    "max of where": Edge(
        lambda x: gc.where(x >= 0, gc.sqrt(x), -1).max(), [[0, 4, -1]], [0, 0.25, 0],
        [0, -1 / 32, 0],
    ),
    "max of sqrt": Edge(lambda x: gc.sqrt(x).max(), [[0, 4]], [0, 0.25], [0, -1 / 32]),
    "sqrt of where": Edge(
        lambda x: gc.sqrt(gc.where(x > 0, x, 0)), [[-1, 4]], [0, 0.25], [0, -1 / 32]
    ),
    "sqrt of maximum": Edge(
        lambda x: gc.sqrt(gc.maximum(x, 0)), [[-1, 4]], [0, 0.25], [0, -1 / 32]
    ),
    "nan_to_num": Edge(
        lambda x: gc.nan_to_num(x, posinf=1) ** 2, [[NAN, INF, 3]], [0, 0, 6], [0, 0, 2]
    ),
    "mean of where": Edge(
        lambda x: gc.where(x > 0, gc.log(x), 0).mean("i"), [[0, 2]], [0, 0.25], [0, -1 / 8]
    ),
    "dot of where": Edge(
        lambda x: gc.dot(gc.where(x > 0, gc.log(x), 0), whole([1.0, 2.0]), dim="i"),
        [[0, 2]], [0, 1], [0, -0.5],
    ),
    "prod of where": Edge(
        lambda x: gc.where(x > 0, gc.log(x), 1).prod(), [[0, 2]], [0, 0.5], [0, -0.25]
    ),
    "entropy": Edge(lambda p: gc.where(p > 0, -p * gc.log(p), 0), [[0, 1]], [0, -1], [0, -1]),
    "slice of log": Edge(lambda x: gc.log(x)[1:], [[0, 2]], [0, 0.5], [0, -0.25]),
    "index beside nan": Edge(lambda x: gc.log(x).isel(i=0), [[2, -1]], [0.5, 0], [-0.25, 0]),
    "max of log": Edge(lambda x: gc.log(x).max(), [[0, 2]], [0, 0.5], [0, -0.25]),
    "index of sqrt": Edge(lambda x: gc.sqrt(x).isel(i=-1), [[0, 4]], [0, 0.25], [0, -1 / 32]),
    "pick of log": Edge(
        lambda x: gc.log(x).isel(i=("k", [1, 1])), [[0, 2]], [0, 1], [0, -0.5]
    ),
    "take_along of log": Edge(
        lambda x: gc.take_along(gc.log(x), gc.constant(1), "i"), [[0, 2]], [0, 0.5], [0, -0.25]
    ),
    "masked product": Edge(
        lambda x: gc.where(x > 0, gc.log(x), 0) * x, [[0, 1]], [0, 1], [0, 1]
    ),
    # A cotangent that is 0 only here still has a derivative.
    "slice, ct 0": Edge(lambda x: (gc.log(x) ** 2)[1:], [[5, 1]], [0, 0], [0, 2]),
    "index, ct 0": Edge(lambda x: (gc.tanh(x) ** 2).isel(i=1), [[5, 0]], [0, 0], [0, 2]),
    "pick, ct 0": Edge(
        lambda x: (gc.tanh(x) ** 2).isel(i=("k", [1, 1])), [[5, 0]], [0, 0], [0, 4]
    ),
    "where, ct 0": Edge(
        lambda x: gc.where(x < 2, gc.tanh(x) ** 2, 0), [[5, 0]], [0, 0], [0, 2]
    ),
    "max, ct 0": Edge(
        lambda x: (gc.tanh(x) ** 2 + whole([0.0, 5.0])).max(), [[5, 0]], [0, 0], [0, 2]
    ),
    "no residual": Edge(
        lambda x: (gc.exp(x)[1:] - whole([1.0])) ** 2, [[5, 0]], [0, 0], [0, 2]
    ),
    # Roots of sums of squares.
    "norm away from 0": Edge(
        lambda x: gc.sqrt((x**2).sum()), [[3, 4]], [0.6, 0.8],
        [[16 / 125, -12 / 125], [-12 / 125, 9 / 125]],
    ),
    "std of a constant": Edge(lambda x: x.std("i"), [[3, 3, 3]], [0, 0, 0]),
    "std of a constant, ddof": Edge(lambda x: x.std("i", ddof=1), [[0.1, 0.1, 0.1]], [0, 0, 0]),
    "root of a square": Edge(lambda x: gc.sqrt(x**2), [[0, -2]], [0, -1], [0, 0]),
    "root of a product": Edge(lambda x: gc.sqrt(x * x), [[0, -2, 3]], [0, -1, 1], [0, 0, 0]),
    "hypot(x, x)": Edge(lambda x: gc.hypot(x, x), [[0, 1]], [0, 2**0.5], [0, 0]),
    "atan2(x, 0 x)": Edge(lambda x: gc.atan2(x, x * 0), [[0, 1]], [0, 0]),
    "hypot": Edge(gc.hypot, [[0], [0]], [0, 0], [0, 0]),
    "hypot beside 0": Edge(
        gc.hypot, [[0, 3], [2, 4]], [0, 0.6, 1, 0.8],
        [[0.5, 0, 0, 0], [0, 0.128, 0, -0.096], [0, 0, 0, 0], [0, -0.096, 0, 0.072]],
    ),
    "abs": Edge(gc.abs, [[0, -2, 3]], [0, -1, 1], [0, 0, 0]),
    "atan2": Edge(gc.atan2, [[0], [0]], [0, 0], [0, 0]),
    "modulus": Edge(lambda x, y: abs(x + 1j * y), [[0], [0]], [0, 0], [0, 0]),
    "atan2 on the axes": Edge(
        gc.atan2, [[0], [2]], [0.5, 0], [[0, -0.25], [-0.25, 0]]
    ),
    "sinc": Edge(gc.sinc, [[0, 1]], [0, -1], [-np.pi**2 / 3, 2]),
    "xlogy(x, x)": Edge(lambda x: gc.special.xlogy(x, x), [[1]], [1], [1]),
    # Steps, and what has no value.
    "rounding": Edge(lambda x: gc.floor(x) + gc.rint(x) + x, [[0.5, 1.5]], [1, 1], [0, 0]),
    "heaviside": Edge(lambda x: gc.heaviside(x - 1, x), [[1, 2]], [1, 0]),
    "stop_gradient": Edge(lambda x: x * gc.stop_gradient(x), [[2, 3]], [2, 3], [0, 0]),
    "remainder by 0": Edge(lambda x: x % 0.0, [[3, 0]], [NAN, NAN]),
    "fmod by 0": Edge(lambda x: gc.fmod(3.0, x), [[0, 0]], [NAN, NAN]),
    "xlogy by y": Edge(lambda y: gc.special.xlogy(0.0, y), [[0, 2]], [0, 0], [0, 0]),
    # Products with zeros.
    "prod, one zero": Edge(
        lambda x: x.prod("i"), [[2, 0, 3]], [0, 6, 0], [[0, 3, 0], [3, 0, 2], [0, 2, 0]]
    ),
    "prod, two zeros": Edge(
        lambda x: x.prod("i"), [[0, 0, 3]], [0, 0, 0], [[0, 3, 0], [3, 0, 0], [0, 0, 0]]
    ),
    "prod, all zeros": Edge(lambda x: x.prod("i"), [[0, 0, 0]], [0, 0, 0], [0, 0, 0]),
    "cumprod, a zero": Edge(
        lambda x: x.cumprod("i"), [[2, 0, 3]], [1, 8, 0], [[0, 4, 0], [4, 0, 2], [0, 2, 0]]
    ),
    "cumprod, two zeros": Edge(
        lambda x: x.cumprod("i"), [[0, 0, 3]], [1, 0, 0], [[0, 4, 0], [4, 0, 0], [0, 0, 0]]
    ),
    # Powers at 0.
    "x**n": Edge(
        lambda x: x ** whole([0.0, 1.0, 2.0, 3.0]), [[0, 0, 0, 0]], [0, 1, 0, 0], [0, 0, 2, 0]
    ),
    "x**0": Edge(lambda x: x**0, [[0, 1]], [0, 0], [0, 0]),
    "x**1": Edge(lambda x: x**1, [[0, 1]], [1, 1], [0, 0]),
    "x**2": Edge(lambda x: x**2, [[0, 1]], [0, 2], [2, 2]),
    "x**2.0": Edge(lambda x: x**2.0, [[0, -1]], [0, -2], [2, 2]),
    "x**3": Edge(lambda x: x**3, [[0, -1]], [0, 3], [0, -6]),
    "x**5": Edge(lambda x: x**5, [[0, -1]], [0, 5], [0, -20]),
    "power by both": Edge(lambda x, y: x**y, [[0], [2]], [0, 0], [[2, 0], [0, 0]]),
    "power by both, y = 3": Edge(lambda x, y: x**y, [[0], [3]], [0, 0], [[0, 0], [0, 0]]),
    "power by both, y = 0": Edge(lambda x, y: x**y, [[E], [0]], [0, 1], [[0, 1 / E], [1 / E, 1]]),
    "0**y": Edge(lambda y: 0.0**y, [[2, 0.5]], [0, 0], [0, 0]),
    "exponents of 0 and 2": Edge(
        lambda y: whole([0.0, 0.0, 2.0]) ** y, [[2, 1, 3]], [0, 0, 8 * np.log(2)]
    ),
    "negative base": Edge(lambda x: x ** whole([2.0, 3.0]), [[-2, -2]], [-4, 12], [2, -12]),
    # Ties share the derivative evenly.
    "max": Edge(lambda x: x.max("i"), [[1, 3, 3]], [0, 0.5, 0.5], [0, 0, 0]),
    "max, all tied": Edge(lambda x: x.max(), [[2, 2, 2, 2]], [0.25] * 4, [0] * 4),
    "max of -inf": Edge(lambda x: x.max(), [[-INF, -INF]], [0.5, 0.5], [0, 0]),
    "min": Edge(lambda x: x.min("i"), [[1, 3, 1]], [0.5, 0, 0.5], [0, 0, 0]),
    "maximum(x, x)": Edge(lambda x: gc.maximum(x, x), [[1, -2]], [1, 1], [0, 0]),
    "minimum(x, x)": Edge(lambda x: gc.minimum(x, x), [[1, -2]], [1, 1], [0, 0]),
    "maximum(x, 2x/2)": Edge(lambda x: gc.maximum(x, 2 * x / 2), [[1, -2]], [1, 1], [0, 0]),
    "maximum(x, y)": Edge(gc.maximum, [[1], [1]], [0.5, 0.5], [0, 0]),
    "fmax(x, y)": Edge(gc.fmax, [[1, NAN], [1, 2]], [0.5, 0, 0.5, 1], [0, 0, 0, 0]),
    "fmin(nan, x)": Edge(lambda x: gc.fmin(NAN, x), [[1, 2]], [1, 1], [0, 0]),
    "maximum(x, 0)": Edge(lambda x: gc.maximum(x, 0), [[0, -1, 1]], [0.5, 0, 1], [0, 0, 0]),
    "minimum(x, 0)": Edge(lambda x: gc.minimum(x, 0), [[0, -1, 1]], [0.5, 1, 0], [0, 0, 0]),
    "clip": Edge(
        lambda x: gc.clip(x, 0, 1), [[0, 1, 0.5, -1, 2]], [0.5, 0.5, 1, 0, 0], [0] * 5
    ),
    # Exponentials far out.
    "logsumexp": Edge(
        lambda x: gc.special.logsumexp(x, "i"), [[0, -INF, 1]], P, curvature(P)
    ),
    "logsumexp by hand": Edge(
        lambda x: gc.log(gc.exp(x).sum("i")), [[0, -INF, 1]], P, curvature(P)
    ),
    "logsumexp of 1000": Edge(
        lambda x: gc.log(gc.exp(x).sum("i")), [[1000, 1000]], [0.5, 0.5],
        curvature(np.array([0.5, 0.5])),
    ),
    "logsumexp of all -inf": Edge(
        lambda x: gc.special.logsumexp(x, "i"), [[-INF, -INF]], [0, 0], [0, 0]
    ),
    "logaddexp": Edge(gc.logaddexp, [[-INF, -INF], [1, -INF]], [0, 0, 1, 0], [0, 0, 0, 0]),
    "softmax": Edge(
        lambda x: gc.special.softmax(x, "i")[2], [[0, -INF, 1]], P[2] * (np.eye(3)[2] - P)
    ),
    "softmax of all -inf": Edge(
        lambda x: gc.special.softmax(x, "i") * whole([1.0, 2.0]), [[-INF, -INF]], [0, 0], [0, 0]
    ),
    "masked softmax": Edge(
        lambda x: gc.special.softmax(gc.where(gc.constant([True, False], "i"), x, -INF), "i")
        * whole([1.0, 2.0]),
        [[3, 4]], [0, 0], [0, 0],
    ),
    "softmax, all masked": Edge(
        lambda x: gc.special.softmax(gc.where(x > 10, x, -INF), "i") * whole([1.0, 2.0]),
        [[3, 4]], [0, 0], [0, 0],
    ),
    "logsumexp, all masked": Edge(
        lambda x: gc.special.logsumexp(gc.where(x > 10, x, -INF), "i"), [[3, 4]], [0, 0], [0, 0]
    ),
    "masked log_softmax": Edge(
        lambda x: gc.where(
            whole([1.0, 0.0]) > 0,
            gc.special.log_softmax(gc.where(whole([1.0, 0.0]) > 0, x, -INF), "i"), 0,
        ),
        [[3, 4]], [0, 0], [0, 0],
    ),
    "log of softmax": Edge(
        lambda x: gc.log(gc.special.softmax(x, "i"))[0], [[0, 1000]], [1, -1], [0, 0]
    ),
    "softplus": Edge(
        lambda x: gc.log(1 + gc.exp(x)), [[1000, -1000, 0]], [1, 0, 0.5], [0, 0, 0.25]
    ),
    "sigmoid": Edge(
        lambda x: 1 / (1 + gc.exp(-x)), [[1000, -1000, 0]], [0, 0, 0.25], [0, 0, 0]
    ),
    "log of sigmoid": Edge(
        lambda x: gc.log(gc.special.sigmoid(x)), [[-1000, 1000]], [1, 0], [0, 0]
    ),
    "special.softplus": Edge(
        gc.special.softplus, [[800, -800, 0]], [1, 0, 0.5], [0, 0, 0.25]
    ),
    "special.sigmoid": Edge(gc.special.sigmoid, [[800, -800, 0]], [0, 0, 0.25], [0, 0, 0]),
    "tanh": Edge(gc.tanh, [[1000, -1000]], [0, 0], [0, 0]),
}  # fmt: skip


CLOSE = {"rtol": 1e-12, "atol": 1e-14}


@pytest.mark.parametrize("size", ["known", "unknown"])
@pytest.mark.parametrize("name", EDGES)
def test_edge(name: str, size: str) -> None:
    edge = EDGES[name]
    found = derivatives(edge.f, edge.at, len(edge.at[0]) if size == "known" else None)
    np.testing.assert_allclose(found.reverse, edge.gradient, **CLOSE, err_msg="reverse")
    np.testing.assert_allclose(found.forward, edge.gradient, **CLOSE, err_msg="forward")
    if edge.second is not None:
        for mode in Derivatives._fields[3:]:
            wanted = matrix(edge.second)
            np.testing.assert_allclose(getattr(found, mode), wanted, **CLOSE, err_msg=mode)


@pytest.mark.parametrize(
    ("f", "at", "slope"),
    [
        (gc.sqrt, 0, INF),
        (gc.log, 0, INF),
        (gc.cbrt, 0, INF),
        (lambda x: x**0.5, 0, INF),
        (lambda x: x ** whole([0.5]), 0, INF),
        (gc.arcsin, 1, INF),
        (gc.arccos, 1, -INF),
    ],
)
def test_slopes_that_are_infinite(f: Any, at: float, slope: float) -> None:
    found = derivatives(f, [[at]], 1)
    assert found.reverse == found.forward == slope


@pytest.mark.parametrize(
    ("f", "third"),
    [
        (lambda x: x**3, [6, 6, 6]),
        (lambda x: x ** whole([2.0, 3.0, 4.0]), [0, 6, 0]),
        (lambda x: x.prod("i"), [2, 2, 2]),
        (lambda x: x.cumprod("i"), [2, 2, 2]),
    ],
)
def test_third_order_at_0(f: Any, third: list[float]) -> None:
    x = gc.tensor("x", {"i": 3})
    y = f(x)
    for _ in range(3):
        y = gc.grad(y.sum(), x)
    np.testing.assert_allclose(gc.compile([x], y)(np.zeros(3)), third, **CLOSE)


def test_log_softmax_of_all_minus_inf_has_a_finite_gradient() -> None:
    x = gc.tensor("x", {"i": 2})
    gradient = gc.grad(gc.special.log_softmax(x, "i")[0], x)
    assert np.isfinite(gc.compile([x], gradient)([-INF, -INF])).all()


def test_values_at_the_edges() -> None:
    x = gc.tensor("x", {"i": 2})
    asked = [gc.special.logsumexp(x, "i"), gc.special.softmax(x, "i"), gc.atan2(x * 0, 0)]
    found = gc.compile([x], asked)
    np.testing.assert_array_equal(found([-INF, -INF])[0], -INF)
    np.testing.assert_array_equal(found([-INF, -INF])[1], [0, 0])
    np.testing.assert_array_equal(found([1, 2])[2], [0, 0])


def test_complex_magnitude_at_0() -> None:
    z = gc.tensor("z", {"i": 2}, dtype="complex128")
    gradient = gc.compile([z], gc.grad(gc.abs(z).sum(), z))
    np.testing.assert_allclose(gradient([0, 3 + 4j]), [0, 0.6 - 0.8j], **CLOSE)


@pytest.mark.parametrize("size", [0, None])
def test_empty_dims(size: int | None) -> None:
    x = gc.tensor("x", {"row": size, "col": 3})
    w = gc.tensor("w", {"col": 3})
    value = {
        "sum": (x.sum("row") + w).sum(),
        "dot": gc.dot(x, w, dim=("row", "col")),
        "prod": (x.prod("row") * w).sum(),
        "max": x.max("col").sum() + w.sum(),
        "cumsum": x.cumsum("row").sum() + w.sum(),
        "logsumexp": gc.special.logsumexp(x, "col").sum() + w.sum(),
    }
    asked = {name: (y, gc.grad(y, [x, w]), gc.pushforward(y, w, w)) for name, y in value.items()}
    found = gc.compile([x, w], asked)(np.ones((0, 3)), [1.0, 2.0, 3.0])
    for name, (y, (by_x, by_w), along) in found.items():
        assert y == along == (0 if name == "dot" else 6), name
        assert by_x.shape == (0, 3), name
        np.testing.assert_array_equal(by_w, np.full(3, name != "dot"), err_msg=name)


def test_reductions_of_nothing() -> None:
    x = gc.tensor("x", {"i": None})
    asked = [x.sum(), x.prod(), x.any(), x.all(), x.cumsum().sum(), gc.dot(x, x)]
    assert gc.compile([x], asked)(np.ones(0)) == [0, 1, False, True, 0, 0]


def test_reductions_over_no_dims() -> None:
    x = gc.tensor("x", {"i": None})
    same = [gc.sum, gc.prod, gc.mean, gc.max, gc.min, gc.special.logsumexp, gc.cumsum]
    asked = [*[f(x, ()) for f in same], gc.norm(x, ()), gc.std(x, ()), gc.any(x, ()), gc.all(x, ())]
    given = np.array([-2.0, 0.0, 3.0])
    wanted = [*[given] * len(same), abs(given), 0 * given, given != 0, given != 0]
    for found, right in zip(gc.compile([x], asked)(given), wanted, strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("size", [0, None])
def test_exponentials_of_nothing(size: int | None) -> None:
    """A sum of no exponentials is 0, its logarithm -inf, and there is nothing to normalise."""
    x, w = gc.tensor("x", {"row": size, "col": 3}), gc.tensor("w", {"col": 3})
    total, share = gc.special.logsumexp(x, "row"), gc.special.softmax(x, "row")
    slope = gc.grad((share * w).sum(), [x, w])
    found = gc.compile([x, w], [total, share, slope])(np.ones((0, 3)), np.ones(3))
    np.testing.assert_array_equal(found[0], np.full(3, -INF))
    assert found[1].shape == found[2][0].shape == (0, 3)
    np.testing.assert_array_equal(found[2][1], np.zeros(3))


def by_reverse(y: gc.Tensor, x: gc.Tensor, **options: Any) -> gc.Tensor:
    return gc.pullback(y, x, gc.ones_like(y), **options)


def by_forward(y: gc.Tensor, x: gc.Tensor, **options: Any) -> gc.Tensor:
    return gc.pushforward(y, x, gc.ones_like(x), **options)


MODES = pytest.mark.parametrize("mode", [gc.grad, by_reverse, by_forward])


@MODES
def test_a_disconnected_input_is_refused_by_default(mode: Any) -> None:
    x, other = gc.tensor("x", {"i": 2}), gc.tensor("other", {"i": 2})
    for y in (x.sum(), x.sum() + gc.stop_gradient(other).sum()):
        with pytest.raises(
            gc.GraphTypeError, match=r"does not depend on it|only through stop_gradient"
        ):
            mode(y, other)
        zeros = gc.compile([x, other], mode(y, other, disconnected="zero"))([1, 2], [3, 4])
        np.testing.assert_array_equal(zeros, np.zeros_like(zeros))


@MODES
def test_a_dependence_through_integers_is_no_dependence(mode: Any) -> None:
    x, p = gc.tensor("x", {"i": 3}), gc.tensor("p", {"i": 3})
    for picked in (x[{"i": p.argmax()}], x * (p > 0), x.sum() + p.astype("int64").sum()):
        with pytest.raises(gc.GraphTypeError, match="only through integers or bool"):
            mode(picked.sum(), p)


@MODES
@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
@pytest.mark.parametrize("disconnected", ["error", "zero"])
def test_a_derivative_by_integers_is_refused(mode: Any, dtype: str, disconnected: str) -> None:
    x, n = gc.tensor("x", {"i": 2}), gc.tensor("n", {"i": 2}, dtype=dtype)
    y = (x * n).sum()
    with pytest.raises(
        gc.GraphTypeError, match=f"cannot differentiate with respect to {dtype} values"
    ):
        mode(y, n, disconnected=disconnected)


@MODES
def test_a_derivative_of_integers_is_refused(mode: Any) -> None:
    x = gc.tensor("x", {"i": 2})
    with pytest.raises(gc.GraphTypeError, match="int64, not a float"):
        mode(x.argmax(), x)


def test_an_integer_index_does_not_disturb_the_gradient() -> None:
    x, at = gc.tensor("x", {"i": 3}), gc.tensor("at", {"k": None}, dtype="int64")
    gradient = gc.compile([x, at], gc.grad((gc.take(x, at, "i") ** 2).sum(), x))
    np.testing.assert_array_equal(gradient([1, 2, 3], [0, 2, 2]), [2, 0, 12])
