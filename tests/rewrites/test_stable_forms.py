"""Formulas that have a stable form get it: value and slopes against mpmath, far from 0 too.

A formula is written as a user writes it, for both: at 300 digits it neither overflows nor cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import graphcore as gc

mpmath = pytest.importorskip("mpmath")

DIGITS = 1600
"""As many digits as cancel in the tails."""

T = gc.Tensor
G = SimpleNamespace(
    exp=gc.exp,
    log=gc.log,
    log1p=gc.log1p,
    expm1=gc.expm1,
    sqrt=gc.sqrt,
    expit=gc.special.expit,
    ndtr=gc.special.ndtr,
    erf=gc.special.erf,
    erfc=gc.special.erfc,
    gammainc=gc.special.gammainc,
    gammaincc=gc.special.gammaincc,
    betainc=gc.special.betainc,
)
M = SimpleNamespace(
    exp=mpmath.exp,
    log=mpmath.log,
    log1p=lambda x: mpmath.log(1 + x),
    expm1=lambda x: mpmath.exp(x) - 1,
    sqrt=mpmath.sqrt,
    expit=lambda x: 1 / (1 + mpmath.exp(-x)),
    ndtr=mpmath.ncdf,
    erf=mpmath.erf,
    erfc=mpmath.erfc,
    gammainc=lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
    gammaincc=lambda a, x: mpmath.gammainc(a, x, mpmath.inf, regularized=True),
    betainc=lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True),
)
Formula = Callable[[Any, Any, Any], Any]

FAR = ([1000.0, 999.0], [-1000.0, -1001.0], [0.3, -0.2], [30.0, -40.0])
TAILS = ([-40.0, 0.0], [-3.0, 0.0], [0.25, 0.0], [1e-9, 0.0], [3.0, 0.0], [30.0, 0.0])
ONE = ([-800.0, 0.0], [-30.0, 0.0], [0.25, 0.0], [30.0, 0.0], [800.0, 0.0])
NEAR = ([-700.0, 0.0], [-30.0, 0.0], [0.25, 0.0], [30.0, 0.0], [700.0, 0.0])
MILD = ([-300.0, 0.0], [-30.0, 0.0], [0.25, 0.0], [30.0, 0.0], [340.0, 0.0])
POSITIVE = ([1e-9, 0.0], [0.25, 0.0], [3.0, 0.0], [25.0, 0.0])

SUMS: dict[str, Formula] = {
    "log(exp(a) + exp(b))": lambda m, a, b: m.log(m.exp(a) + m.exp(b)),
    "log(exp(a) - exp(b))": lambda m, a, b: m.log(m.exp(a) - m.exp(b)),
    "weights": lambda m, a, b: m.log(0.3 * m.exp(a) + 0.7 * m.exp(b)),
    "a weight for all": lambda m, a, b: m.log(0.5 * (m.exp(a) + m.exp(b))),
    "a mixture": lambda m, a, b: m.log(m.expit(0.3) * m.exp(a) + (1 - m.expit(0.3)) * m.exp(b)),
    "a mixture by a logit": lambda m, a, b: m.log(m.expit(b) * m.exp(a) + m.expit(-b) * m.exp(b)),
    "three": lambda m, a, b: m.log(m.exp(a) + m.exp(b) + m.exp(a + 1)),
    "a constant": lambda m, a, b: m.log(3.0 + m.exp(a)) + b,
    "less than a constant": lambda m, a, b: m.log(2.0 - m.exp(-abs(b))) + a,
    "less a constant": lambda m, a, b: m.log(m.exp(abs(a)) - 0.5) + b,
    "log1p of a sum": lambda m, a, b: m.log1p(m.exp(a) + 2.0 * m.exp(b)),
    "expm1": lambda m, a, b: m.log(m.expm1(abs(a))) + m.log(m.exp(abs(b)) - 1),
    "a quotient": lambda m, a, b: m.log(m.exp(a) / (1 + m.exp(b)) ** 2),
    "of another value": lambda m, a, b: (
        m.log(m.exp(a) * (2 + b * b)) + m.log((2 + b * b) / m.exp(a))
    ),
    "its logarithm": lambda m, a, b: m.log(m.exp(a) / (m.exp(a) + m.exp(b))),
    "a difference in a product": lambda m, a, b: m.log((m.exp(a) - m.exp(b)) * 2.0),
    "a root": lambda m, a, b: m.log(m.sqrt(m.exp(a) + m.exp(b))),
}
OTHERS: dict[str, tuple[Formula, Any]] = {
    "a softmax of two": (lambda m, a, b: m.exp(a) / (m.exp(a) + m.exp(b)), FAR),
    "expit": (lambda m, a, b: m.exp(a) / (1 + m.exp(a)) + b, ONE),
    "expit of -a": (lambda m, a, b: 1 / (1 + m.exp(-a)) + b, ONE),
    "log of expit": (lambda m, a, b: m.log(m.exp(a) / (1 + m.exp(a))) + b, ONE),
    "0 + 1 * expit": (lambda m, a, b: m.log(1 - (0.0 + 1.0 * m.expit(a))) + b, ONE),
    "0 + expit": (lambda m, a, b: m.log(0.0 + m.expit(a)) + b, ONE),
    "weighted share": (lambda m, a, b: 3.0 * m.exp(a) / (2.0 + 3.0 * m.exp(a)) + b, ONE),
    "power of exp": (lambda m, a, b: m.exp(2 * a) ** -0.5 + m.exp(a / 2) ** 4.0 + b, MILD),
    "root of exp": (lambda m, a, b: m.sqrt(m.exp(a)) + m.log(abs(m.exp(a))) * b, ONE),
    "by precision": (lambda m, a, b: abs(m.exp(-2 * a)) ** -0.5 + b, NEAR),
    "cloglog": (lambda m, a, b: m.log(1 - m.exp(-m.exp(a / 100))) + b, ONE),
    "log(ndtr)": (lambda m, a, b: m.log(m.ndtr(a)) + b, TAILS),
    "log(1 - ndtr)": (lambda m, a, b: m.log(1 - m.ndtr(a)) + b, TAILS),
    "log1p(-ndtr)": (lambda m, a, b: m.log1p(-m.ndtr(a)) + b, TAILS),
    "log(erfc)": (lambda m, a, b: m.log(m.erfc(a)) + b, TAILS),
    "log(1 - erf)": (lambda m, a, b: m.log(1 - m.erf(a)) + b, TAILS),
    "log(1 + erf)": (lambda m, a, b: m.log(1 + m.erf(a)) + b, TAILS),
    "cdf by erf": (lambda m, a, b: m.log(0.5 * (1 + m.erf(a / 2**0.5))) + b, TAILS),
    "cdf by parts": (lambda m, a, b: m.log(0.5 + 0.5 * m.erf(a / 2**0.5)) + b, TAILS),
    "1 - erf": (lambda m, a, b: 1 - m.erf(a) + b, POSITIVE),
    "log(erf)": (lambda m, a, b: m.log(m.erf(a)) + b, POSITIVE),
    "log(1 - erfc)": (lambda m, a, b: m.log(1 - m.erfc(a)) + b, POSITIVE),
    "log(gammainc)": (lambda m, a, b: m.log(m.gammainc(2.5, a)) + b, POSITIVE),
    "log(1 - gammainc)": (lambda m, a, b: m.log(1 - m.gammainc(2.5, a)) + b, POSITIVE),
    "log(1 - gammaincc)": (lambda m, a, b: m.log(1 - m.gammaincc(2.5, a)) + b, POSITIVE),
    "log(1 - betainc)": (
        lambda m, a, b: m.log(1 - m.betainc(2.5, 1.5, m.expit(a - 30))) + b,
        POSITIVE,
    ),
}
FORMULAS = {name: (f, FAR) for name, f in SUMS.items()} | OTHERS
A, B = gc.tensor("a", {"point": None}), gc.tensor("b", {"point": None})


@pytest.mark.parametrize(
    ("names", "native"),
    [
        (SUMS, False),
        pytest.param(OTHERS, False, marks=pytest.mark.slow),
        pytest.param(FORMULAS, True, marks=pytest.mark.slow),
    ],
    ids=["sums", "others", "machine code"],
)
def test_formulas_are_stable_in_value_and_slopes(names: Iterable[str], native: bool) -> None:
    values = {name: FORMULAS[name][0](G, A, B) for name in names}
    asked = {name: [y, *gc.grad(y.sum(), [A, B])] for name, y in values.items()}
    program = gc.compile([A, B], asked, native=native)
    for name in names:
        f, points = FORMULAS[name]
        with np.errstate(all="ignore"):
            found = np.array(program(*np.array(points).T)[name])
        wanted = np.array([reference(f, *point) for point in points]).T
        # an exponential has the relative error of its argument
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-300, err_msg=name)


def reference(f: Formula, a: float, b: float) -> list[float]:
    """The value of a formula and its slopes, by differences at many digits."""
    with mpmath.workdps(DIGITS):
        a, b, h = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(10) ** -(DIGITS // 4)
        by_a = (f(M, a + h, b) - f(M, a - h, b)) / (2 * h)
        by_b = (f(M, a, b + h) - f(M, a, b - h)) / (2 * h)
        return [float(mpmath.re(x)) for x in (f(M, a, b), by_a, by_b)]


@pytest.mark.parametrize("native", [False, True])
def test_sums_over_dims_of_weighted_exponentials_are_stable(native: bool) -> None:
    x, mask = gc.tensor("x", {"k": None}), gc.tensor("mask", {"k": None}, dtype="bool")
    weights = gc.special.softmax(gc.arange(x.sizes["k"], dim="k") * 0.5, "k")
    pairs = {
        "mean": (gc.log(gc.exp(x).mean()), gc.special.logsumexp(x) - np.log(3)),
        "weights": (
            gc.log((weights * gc.exp(x)).sum()),
            gc.special.logsumexp(x + gc.log(weights)),
        ),
        "masked": (
            gc.log(gc.sum(gc.exp(x), where=mask)),
            gc.special.logsumexp(gc.where(mask, x, -np.inf)),
        ),
        "of two": (
            gc.log(gc.exp(x).sum() + gc.exp(x[{"k": 0}])),
            np.log(1) + gc.logaddexp(gc.special.logsumexp(x), x[{"k": 0}]),
        ),
    }
    asked = {name: [[y, gc.grad(y, x)] for y in both] for name, both in pairs.items()}
    f = gc.compile([x, mask], asked, native=native)
    for at in ([1000.0, 999.0, 990.0], [-1000.0, -1001.0, 0.5]):
        for name, (found, wanted) in f(at, [True, False, True]).items():
            for x1, x2 in zip(found, wanted, strict=True):
                np.testing.assert_allclose(x1, x2, rtol=1e-12, atol=1e-300, err_msg=name)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logarithms_of_powers_of_products_do_not_underflow(dtype: str) -> None:
    x = gc.tensor("x", {"i": None}, dtype=dtype)
    p = x.prod("i")
    for y, n in ((p**2, 2), (p * p, 2), (gc.square(p), 2), (abs(p), 1), (p**6, 6)):
        value, slope = gc.compile([x], [gc.log(y), gc.grad(gc.log(y), x)])(
            np.full(3000, -0.7, dtype)
        )
        np.testing.assert_allclose(value, 3000 * n * np.log(0.7), rtol=1e-5)
        np.testing.assert_allclose(slope, np.full(3000, -n / 0.7), rtol=1e-5)
        assert slope.dtype == value.dtype == dtype


def test_no_stable_form_is_taken_for_a_value_that_may_be_negative() -> None:
    """Each is finite although a part of it is negative, or nan although a part is positive."""
    a, b = gc.tensor("a", ()), gc.tensor("b", ())
    formulas = (
        lambda m, a, b: m.log(m.exp(a) - m.exp(b) + m.exp(b)),
        lambda m, a, b: m.log(a + m.exp(b)),
        lambda m, a, b: m.log(2.0 * m.exp(b) + a * m.exp(a)),
        lambda m, a, b: m.log(-1.0 * m.exp(a) + m.exp(b)),
        lambda m, a, b: m.log(m.exp(a) - m.exp(b)),
        lambda m, a, b: m.log(a * m.exp(b)),
    )
    for f in formulas:
        program = gc.compile([a, b], f(G, a, b))
        for at in ((-0.5, 1.0), (0.5, -1.0)):
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(program(*at), f(np, *at), rtol=1e-12)
