"""Where slopes are off by more than the tolerance, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Array = Any


class Exempt(NamedTuple):
    """Some points of some functions; `order` is the least order of the derivatives."""

    names: str
    reason: str
    where: Callable[..., Array] = lambda *xs: np.full(len(xs[0]), True)
    order: int = 1


def is_rounded(x: Array, y: Array) -> Array:
    """x + y has lost digits, in float64 or float32, that tell how far from a pole it is."""
    total = x + y
    rest = total - x
    double, single = (x - (total - rest)) + (y - rest), total.astype(np.float32) - total
    gap = np.abs(total - np.rint(total))
    return (total < 0.5) & ((np.abs(double) > 1e-11 * gap) | (np.abs(single) > 1e-4 * gap))


def is_tiny(x: Array) -> Array:
    return np.abs(x) <= 1e-9


def is_pole(x: Array) -> Array:
    return (x <= 0) & (x % 1 == 0)


SCIPY = "SciPy's function, of which it is made, has lost these digits there"
ROUNDED = "an operand less 1 is rounded to a whole number, at which the function is another one"
SUM = "it is a sum whose largest terms cancel there, at or beside a zero of the slope"
CANCEL = "what is left of terms that are as large as the inverse of an operand, or of their sum"
LOST = "the sum or difference of the operands is rounded beside a pole of gamma"
RANGE = "a factor of it is beyond the range of floats, or among its subnormals"

EXCEPTIONS = [
    Exempt("j0 j1 y0 y1", SCIPY, lambda x: np.abs(x) >= 1e7),
    Exempt("jv yv", SCIPY, lambda n, x: (np.abs(x) >= 1e7) | (np.abs(n) > 1e7)),
    Exempt("jv iv ive", ROUNDED, lambda n, x: np.abs(n) < 1e-6),
    Exempt("ive jv", SCIPY, lambda n, x: np.abs(n) >= 900),
    Exempt("iv ive", SCIPY, lambda n, x: np.abs(x) >= 50),
    Exempt("jv iv ive", RANGE, lambda n, x: np.abs(x) <= 1e-38),
    Exempt("i0 i1", SCIPY, lambda x: np.abs(x) <= 1e-38),
    Exempt("k0 k1", SCIPY, lambda x: x >= 700),
    Exempt("gamma gammaln", SCIPY, lambda x: np.abs(x + 1) < 1e-6),
    Exempt("ellipk", SCIPY, lambda x: (x <= -1e8) | (x >= 1 - 1e-6)),
    Exempt("ellipe", SCIPY, lambda x: (x <= -1e8) | (x >= 1 - 1e-6)),
    Exempt("expi ndtr", SUM, lambda x: np.abs(np.abs(x) - 1) < 1e-5, 2),
    Exempt("expi", RANGE, lambda x: np.abs(x) >= 87),
    Exempt("exprel", RANGE, lambda x: np.abs(x) >= 1e99, 2),
    Exempt("power", RANGE, lambda x, y: (x <= 1e-38) | (x >= 1e16)),
    Exempt("power", ROUNDED, lambda x, y: x < 0),
    Exempt("gammainc gammaincc", ROUNDED, lambda a, x: a < 1e-6, 1),
    Exempt(
        "gammaincinv",
        "its quotients are beyond the range of float32, or too many of its digits cancel",
        lambda a, p: (p < 1e-9) | (a == 2.5) & (np.abs(p - 0.3) < 1e-6) | (a >= 60),
    ),
    Exempt("zeta", "SciPy has a value between poles", lambda n, x: (x < 0) | (n <= 1)),
    Exempt(
        "expn", "users give its order as a number from 0 on", lambda n, x: (n < 0) | (n % 1 > 0)
    ),
    Exempt("expn", SCIPY, lambda n, x: n >= 1e15),
    Exempt("betainc betaincc", SUM, lambda a, b, x: (a == 1) & (x < 1e-9), 2),
    Exempt("betaincinv betainccinv", RANGE, lambda a, b, p: p < 1e-9, 2),
    Exempt("poch beta betaln", LOST, is_rounded),
    Exempt("binom", LOST, lambda n, k: is_rounded(n, -k)),
    Exempt("poch betaln", CANCEL, lambda x, y: is_tiny(x) & is_tiny(y), 2),
    Exempt("beta", CANCEL, lambda x, y: is_tiny(x) | is_tiny(y), 2),
    Exempt("beta", CANCEL, lambda x, y: np.abs(x + y) < 1e-5 * np.abs(x), 2),
    Exempt("binom", CANCEL, lambda n, k: is_tiny(n), 3),
    Exempt("poch binom", SUM, lambda x, y: np.abs(y - 1) < 1e-5, 2),
    Exempt("poch binom", RANGE, lambda x, y: (x >= 1e15) & (y > 0)),
    Exempt("beta", RANGE, lambda x, y: np.minimum(np.abs(x), np.abs(y)) <= 1e-38),
    Exempt("beta", SCIPY, lambda x, y: np.minimum(x, y) <= -1e7),
    Exempt("binom", SCIPY, lambda n, k: np.abs(k) >= 1e8),
    Exempt("binom", "SciPy has no value", lambda n, k: (n < 0) & (n % 1 == 0)),
    Exempt(
        "beta betaln",
        "a product of gammas at its poles, whose slopes depend on the way to them",
        lambda x, y: is_pole(x) | is_pole(y),
        3,
    ),
]


def entries(name: str, order: tuple[int, ...], at: Array) -> list[Exempt]:
    """Why a slope may be off."""
    return [
        entry
        for entry in EXCEPTIONS
        if name in entry.names.split()
        and sum(order) >= entry.order
        and bool(entry.where(*np.atleast_2d(at).T)[0])
    ]
