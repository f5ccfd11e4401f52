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


def all_but_usual(x: Array, y: Array) -> Array:
    """Negative, tiny or huge operands, or nearly equal ones."""
    size = np.maximum(np.abs(x), np.abs(y))
    return (x <= 1e-8) | (y <= 1e-8) | (size >= 1e7) | (np.abs(x - y) < 1e-5 * size)


SCIPY = "SciPy's function, of which it is made, has lost these digits there"
ROUNDED = "an operand less 1 is rounded to a whole number, at which the function is another one"
SUM = "it is a sum whose largest terms cancel there, at or beside a zero of the slope"
RANGE = "a factor of it is beyond the range of floats, or among its subnormals"

EXCEPTIONS = [
    Exempt("j0 j1 y0 y1", SCIPY, lambda x: np.abs(x) >= 1e7),
    Exempt("jv yv", SCIPY, lambda n, x: (np.abs(x) >= 1e7) | (np.abs(n) > 1e7)),
    Exempt("jv iv ive yv kv kve", ROUNDED, lambda n, x: np.abs(n) < 1e-6),
    Exempt("iv ive kv kve jv yv", SCIPY, lambda n, x: np.abs(n) >= 900),
    Exempt("iv ive kve", SCIPY, lambda n, x: np.abs(x) >= 50),
    Exempt("jv yv iv ive kv kve", RANGE, lambda n, x: np.abs(x) <= 1e-38),
    Exempt("i0 i1 i1e", SCIPY, lambda x: np.abs(x) <= 1e-38),
    Exempt("k0 k1", SCIPY, lambda x: x >= 700),
    Exempt("gamma gammaln digamma", SCIPY, lambda x: np.abs(x + 1) < 1e-6),
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
    Exempt("poch beta betaln binom", "products of gammas beside their poles", all_but_usual),
]


def reason(name: str, order: tuple[int, ...], at: Array) -> str | None:
    """Why a slope may be off."""
    for entry in EXCEPTIONS:
        named = name in entry.names.split() and sum(order) >= entry.order
        if named and bool(entry.where(*np.atleast_2d(at).T)[0]):
            return entry.reason
    return None
