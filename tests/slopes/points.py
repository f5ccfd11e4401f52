"""Where slopes are looked at: from the smallest subnormal to the largest number."""

from __future__ import annotations

import numpy as np

SINGLE = [
    *(1.4e-45, 1e-40, 1.2e-38, 1e-30, 1e-20, 1e-10, 1e-5, 1e-3, 0.01, 0.1, 0.25, 0.5, 0.75),
    *(
        0.9,
        0.999,
        1 - 3 * 2.0**-24,
        1 - 2.0**-24,
        1,
        1 + 2.0**-23,
        1 + 3 * 2.0**-23,
        1.001,
        1.5,
        2,
        3,
        4.7,
        7.3,
        9.010914,
        12,
        20,
    ),
    *(38, 40, 60, 87, 90, 150, 500, 700, 745, 1e3, 1e4, 1e5, 1e6, 1e8, 1e10, 1e15, 1e20, 1e30),
    3.4e38,
]
"""Magnitudes that are looked at in both dtypes: they are rounded to float32."""
DOUBLE = [
    *(
        5e-324,
        1e-320,
        2.3e-308,
        1e-300,
        1e-160,
        1e-100,
        1 - 2.0**-53,
        1 - 3 * 2.0**-53,
        1 + 2.0**-52,
    ),
    *(1e100, 1e154, 1e200, 1e300, 1.7976931348623157e308),
]
PAIRED = [1e-40, 1e-10, 0.3, 1, 2.5, 10, 60, 1e3, 1e8, 1e16, 1e30]
PAIRED_DOUBLE = [1e-300, 1e300]


def both_signs(xs: list[float]) -> list[float]:
    return [sign * x for x in xs for sign in (1, -1)]


def singles() -> np.ndarray:
    """Points of functions of one operand."""
    found = [*both_signs([float(np.float32(x)) for x in SINGLE]), *both_signs(DOUBLE), 0.0]
    return np.array(found)[:, None]


def pairs() -> np.ndarray:
    """Points of functions of two operands: all of some magnitudes, and near equal ones."""
    small = [float(np.float32(x)) for x in PAIRED]
    sides = [*small, *PAIRED_DOUBLE]
    found = [(x, y) for x in sides for y in sides]
    some = [float(np.float32(x)) for x in (1e-10, 0.3, 2.5, 60, 1e8)]
    found += [(s * x, t * y) for x in some for y in some for s, t in ((1, -1), (-1, 1), (-1, -1))]
    for x in small:
        for near in (1 + 2.0**-20, 1 - 2.0**-22, 1 + 2.0**-50):
            found += [(x, x * near), (-x, -x * near), (x, -x * near), (x * near, x)]
    whole = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 5.0]
    found += [(x, y) for x in whole for y in whole]
    halves = [-3.5, -2.5, -1.5, -0.5, 0.5, 1.5]
    found += [(x, y) for x in halves for y in halves]
    return np.array(list(dict.fromkeys(found)))


def triples() -> np.ndarray:
    """Points of functions of two parameters and a probability."""
    parameters = [float(np.float32(x)) for x in (0.3, 1, 2.5, 60)]
    chances = [float(np.float32(x)) for x in (1e-10, 0.3, 1 - 2.0**-20)]
    return np.array([(a, b, x) for a in parameters for b in parameters for x in chances])


def points(count: int) -> np.ndarray:
    """Those of functions of so many operands."""
    return {1: singles, 2: pairs, 3: triples}[count]()
