"""The polynomials of functions of float32: `python -m tests.backends.llvm_kernels.minimax`.

Each is fitted by weighted least squares at Chebyshev points; after Lawson, weights grow where the
error is large until it is even. Coefficients are rounded to float32 in turn, the lowest first, and
those above are fitted again each time. Values are those of mpmath with 40 digits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import mpmath as m
import numpy as np

from graphcore.backends.llvm_kernels.maths.single import (
    angles,
    exponential,
    logarithm,
    normal,
    powers,
)

Real = Callable[[m.mpf], m.mpf]
DIGITS = 40
POINTS, TURNS = 400, 60
HALF_LOG_2 = 0.347
ROOTS = -0.2929, 0.4143
"""From the root of 1/2 to that of 2, less 1."""


class Fit(NamedTuple):
    """A polynomial, its function, the limits, by which factor an error counts, and the largest."""

    name: str
    found: Sequence[float]
    function: Real
    limits: tuple[float, float]
    weight: Real
    error: float
    given: int = 0
    """How many of its coefficients are given."""
    exact: bool = False
    """Whether the coefficients are float64."""


def tail(f: Real, at_0: float) -> Real:
    """(f(x) / x - 1) / x^2 by x^2"""
    return lambda z: (f(m.sqrt(z)) / m.sqrt(z) - 1) / z if z > 1e-12 else m.mpf(at_0)


def share(f: Real) -> Real:
    """How much of f(x) that is: x^3 / f(x) by x^2."""
    return lambda z: z * m.sqrt(z) / f(m.sqrt(z)) if z else m.mpf(0)


def odd(name: str, found: Sequence[float], f: Real, most: float, error: float) -> Fit:
    """The tail of an odd function for |x| up to `most`."""
    at_0 = float(m.diff(f, 0, 3) / 6)
    return Fit(name, found, tail(f, at_0), (0, most * most), share(f), error)


def quotient(f: Real, at_0: float, lowest: float = 1e-9) -> Real:
    """f, whose value at 0 is known."""
    return lambda x: f(x) if abs(x) > lowest else m.mpf(at_0)


def to_base(name: str, found: Sequence[float], base: int, high: float, error: float) -> Fit:
    """log(1 + f) / log(base) / f less `high`."""
    log = lambda f: m.log1p(f) / m.log(base)
    rest = quotient(lambda f: log(f) / f - m.mpf(high), 1 / float(m.log(base)) - high, 1e-30)
    return Fit(name, found, rest, ROOTS, quotient(lambda f: f / log(f), float(m.log(base))), error)


def fits() -> list[Fit]:
    """All polynomials of the package."""
    two = m.log(2)
    return [
        Fit(
            "EXP",
            exponential.EXP,
            quotient(lambda r: (m.expm1(r) - r) / r**2, 0.5),
            (-HALF_LOG_2, HALF_LOG_2),
            lambda r: r * r,
            3.4e-9,
        ),
        Fit(
            "EXP2",
            exponential.EXP2,
            quotient(lambda r: m.expm1(r * two) / r, float(two)),
            (-0.5005, 0.5005),
            lambda r: r,
            3.3e-9,
        ),
        Fit(
            "TWICE",
            exponential.TWICE,
            quotient(lambda r: (m.expm1(2 * r) - 2 * r) / r**2, 2.0),
            (-HALF_LOG_2 / 2, HALF_LOG_2 / 2),
            lambda r: r * r,
            3.4e-9,
        ),
        Fit(
            "EVEN",
            exponential.EVEN,
            quotient(lambda z: (m.cosh(m.sqrt(z)) - 1) / z, 0.5),
            (0, HALF_LOG_2**2),
            lambda z: z,
            1.1e-10,
        ),
        odd("ODD", exponential.ODD, m.sinh, HALF_LOG_2, 1.4e-8),
        odd("TANGENT of exponentials", exponential.TANGENT, m.tanh, 0.6, 2.9e-9),
        odd("HYPERBOLIC_TANGENT", logarithm.HYPERBOLIC_TANGENT, m.atanh, 0.501, 1.5e-9),
        Fit(
            "LOG",
            logarithm.LOG,
            quotient(lambda f: (m.log1p(f) - f) / f**2, -0.5),
            ROOTS,
            quotient(lambda f: f * f / m.log1p(f), 0.0),
            6e-9,
            given=1,
        ),
        to_base("LOG2", logarithm.LOG2, 2, logarithm.PER_LOG_2, 4.7e-9),
        to_base("LOG10", logarithm.LOG10, 10, logarithm.PER_LOG_10, 4.6e-9),
        to_base("LOG2 of powers", powers.LOG2, 2, 0.0, 1.1e-10)._replace(exact=True),
        odd("SINE", angles.SINE, m.sin, 0.786, 4.2e-9),
        Fit(
            "COSINE",
            angles.COSINE,
            quotient(lambda z: (m.cos(m.sqrt(z)) - 1 + z / 2) / z**2, 1 / 24),
            (0, 0.786**2),
            lambda z: z * z,
            1.1e-10,
        ),
        odd("TANGENT", angles.TANGENT, m.tan, 0.786, 1.4e-9),
        odd("ARCSINE", angles.ARCSINE, m.asin, 0.5, 4.9e-9),
        odd("ARCTANGENT", angles.ARCTANGENT, m.atan, 1.0, 2.7e-9),
        Fit(
            "CUBE_ROOT",
            powers.CUBE_ROOT,
            quotient(lambda r: (m.cbrt(1 / (1 - r)) - 1) / r, 1 / 3),
            (-0.11, 0.11),
            lambda r: r,
            3.7e-6,
        ),
        Fit(
            "NEAR",
            normal.NEAR,
            quotient(lambda z: m.erf(m.sqrt(z)) / m.sqrt(z) - 1, float(2 / m.sqrt(m.pi) - 1)),
            (0, 1),
            quotient(lambda z: m.sqrt(z) / m.erf(m.sqrt(z)), float(m.sqrt(m.pi) / 2)),
            1.5e-9,
        ),
        Fit(
            "FAR",
            normal.FAR,
            lambda x: m.log(m.erfc(x)) / two / x,
            (1, 4.1),
            lambda x: m.erfc(x) * x * two / m.erf(x),
            4e-10,
        ),
    ]


def samples(fit: Fit, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chebyshev points, the values of the function there, and how much errors count."""
    low, high = fit.limits
    turn = np.cos(np.pi * (np.arange(points) + 0.5) / points)
    x = (low + high) / 2 + (high - low) / 2 * turn
    with m.workdps(DIGITS):
        given = [m.mpf(float(v)) for v in x]
        y, w = ([float(f(v)) for v in given] for f in (fit.function, fit.weight))
    return x, np.array(y), np.array(w)


def error(fit: Fit, points: int = 60) -> float:
    """The largest weighted error of the coefficients as they stand in the package."""
    x, y, w = samples(fit, points)
    found = sum(c * x**i for i, c in enumerate(fit.found))
    return float(np.abs((found - y) * w).max())


def fitted(fit: Fit) -> list[float]:
    """The coefficients, found anew."""
    x, y, w = samples(fit, POINTS)
    count, size = len(fit.found), max(map(abs, fit.limits))
    found = [*fit.found[: fit.given]]
    while len(found) < count:
        rest = y - sum((c * x**i for i, c in enumerate(found)), start=np.zeros(POINTS))
        columns = np.stack([(x / size) ** i for i in range(len(found), count)], 1)
        more = np.ones(POINTS)
        for _ in range(TURNS):
            scale = np.sqrt(more) * w
            cs, *_ = np.linalg.lstsq(columns * scale[:, None], rest * scale, rcond=None)
            apart = np.abs((columns @ cs - rest) * w)
            more *= apart + apart.max() * 1e-3
            more /= more.mean()
        cs = cs / size ** np.arange(len(found), count)
        if fit.exact:
            return [*found, *cs.tolist()]
        found.append(float(np.float32(cs[0])))
    return found


if __name__ == "__main__":
    for each in fits():
        sys.stdout.write(f"{each.name} {fitted(each)} {error(each):.2g}\n")
