"""Slopes far from 0, by asymptotic series: where formulas cancel or overflow, these do not.

Each is a polynomial in 1 / x, so that its own derivatives cancel no more than it does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from graphcore.ir import Node, full_like
from graphcore.ops.elementwise import absolute, greater, sign, square
from graphcore.rewrites.plain import where as choose

TERMS = 20


def is_far(x: Node, double: float, single: float) -> Node:
    """Where x is above a limit: that from which series are exact in its dtype."""
    limit = single if np.finfo(x.type.dtype).eps > 1e-10 else double
    return greater(x, full_like(x, limit))


def polynomial(coefficients: Sequence[float], t: Node) -> Node:
    """c0 + c1 t + c2 t^2 + ..."""
    total = full_like(t, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = c + t * total
    return total


def log_slope(coefficients: Sequence[float]) -> list[float]:
    """Those of s' / s, for a series s that begins with 1."""
    found: list[float] = []
    for k in range(len(coefficients) - 1):
        known = sum(q * coefficients[k - j] for j, q in enumerate(found))
        found.append((k + 1) * coefficients[k + 1] - known)
    return found


def double_factorials(count: int) -> list[float]:
    """1, 1, 3, 15, ...: (2k - 1)!!"""
    return [float(math.prod(range(1, 2 * k, 2))) for k in range(count)]


def bessel(order: int, count: int) -> list[float]:
    """a(k) of K(x) = sqrt(pi / 2x) e^-x (a(0) + a(1) / x + ...) (DLMF 10.40.2, 10.17.1)"""
    found = [1.0]
    for k in range(1, count):
        found.append(found[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return found


def scaled_bessel_slope(z: Node, x: Node, order: int, kind: int, near: Node) -> Node:
    """z (log z)' far from 0, else `near`: of i(order)e for kind -1, of k(order)e for 1.

    z = c x^(-1/2) s(kind / x), for the series s of `bessel` (DLMF 10.40.1, 10.40.2)
    """
    size = absolute(x) if kind < 0 else x
    far = is_far(size, 25, 8)
    t = 1 / choose(far, size, 25)
    rest = polynomial(
        [q * kind ** (k + 1) for k, q in enumerate(log_slope(bessel(order, TERMS)))], t
    )
    slope = -z * t * (0.5 + t * rest)
    return choose(far, sign(x) * slope if kind < 0 else slope, near)


def dawsn_slope(x: Node, near: Node) -> Node:
    """-u (1 + 3 u (1 + 5 u (...))) far from 0, with u = 1 / (2 x^2), else `near` (DLMF 7.12.1)"""
    far = is_far(absolute(x), 10, 5)
    u = 0.5 * square(1 / choose(far, x, 10))
    return choose(far, -u * polynomial(double_factorials(13)[1:], u), near)


def far_log_ndtr_slope(x: Node, near: Node) -> Node:
    """-x - s(u) / x far below 0, with u = 1 / x^2, else `near`

    log(ndtr(x)) = -x^2 / 2 - log(-x) - log(2 pi) / 2 + log(1 - u + 3 u^2 - 15 u^3 + ...)
    """
    far = is_far(-x, 12, 5)
    t = 1 / choose(far, x, -12)
    u = square(t)
    terms = [(-1) ** k * c for k, c in enumerate(double_factorials(16))]
    rest = polynomial(log_slope(terms), u)
    return choose(far, -x - t * (1 + 2 * u * rest), near)
