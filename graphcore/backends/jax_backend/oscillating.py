"""Bessel functions of orders 0 and 1: by integrals up to 25, by asymptotic series from there on.

All compute in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np

from . import gammas
from .entries import Value

Rule: TypeAlias = Callable[..., Value]

FROM, INTERVALS, ORDERS = 25.0, 40, np.arange(1, 33)
ANGLES = np.linspace(0, math.pi / 2, INTERVALS + 1)
WEIGHTS = np.ones(INTERVALS + 1) / INTERVALS
WEIGHTS[[0, -1]] /= 2
"""The trapezoidal rule of a quarter of a circle, which is exact: integrands are periodic."""
SIGNS = (-1.0) ** ORDERS
EVEN = SIGNS / ORDERS @ np.cos(2 * np.outer(ORDERS, ANGLES))
ODD = SIGNS * (2 * ORDERS + 1) / (ORDERS * (ORDERS + 1)) @ np.sin(np.outer(2 * ORDERS + 1, ANGLES))
"""What Neumann's series for the second kind make of the integrands (DLMF 10.8)."""


def summed(function: Rule, x: Value, weights: np.ndarray) -> Value:
    """The weighted sum of a function of x sin(angle)."""
    total = jnp.zeros_like(x)
    for angle, weight in zip(ANGLES, weights, strict=True):
        total = total + weight * function(x * math.sin(angle))
    return total


def near(order: int, x: Value) -> tuple[Value, Value]:
    """Both kinds, for `x` from 0 to 25."""
    log = jnp.log(x / 2) + gammas.EULER
    first = summed(jnp.cos, x, WEIGHTS)
    if order == 0:
        rest = 2 * summed(jnp.cos, x, WEIGHTS * EVEN)
        return first, 2 / math.pi * (log * first - rest)
    one = summed(jnp.sin, x, WEIGHTS * np.sin(ANGLES))
    rest = summed(jnp.sin, x, WEIGHTS * ODD)
    return one, 2 / math.pi * ((log - 1) * one - rest - first / x)


def far(order: int, x: Value) -> tuple[Value, Value]:
    """Both kinds, for `x` from 25 on: cosine and sine of an angle, with two series in 1 / x."""
    coefficients = [1.0]
    for k in range(1, 25):
        coefficients.append(coefficients[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    over = 1 / x
    parts = []
    for own in (coefficients[::2], coefficients[1::2]):
        total = jnp.zeros_like(x)
        for k in range(len(own) - 1, -1, -1):
            total = (-1.0) ** k * own[k] + over * over * total
        parts.append(total)
    p, q = parts[0], parts[1] * over
    sin, cos = jnp.sin(x), jnp.cos(x)
    turned = (cos + sin, sin - cos) if order == 0 else (sin - cos, -sin - cos)
    size = jnp.sqrt(over / math.pi)
    return size * (p * turned[0] - q * turned[1]), size * (p * turned[1] + q * turned[0])


def both(order: int, x: Value) -> tuple[Value, Value]:
    """Both kinds, of numbers from 0 on; nan at infinity."""
    pairs = zip(near(order, jnp.minimum(x, FROM)), far(order, jnp.maximum(x, FROM)), strict=True)
    first, second = (jnp.where(x < FROM, one, other) for one, other in pairs)
    return first, second


def first_kind(order: int) -> Rule:
    def run(x: Value) -> Value:
        found = both(order, jnp.abs(x))[0]
        found = jnp.where(x < 0, -found, found) if order else found
        return jnp.where(jnp.isnan(x), x, found)

    return run


def second_kind(order: int) -> Rule:
    def run(x: Value) -> Value:
        found = jnp.where(x == 0, jnp.full_like(x, -np.inf), both(order, x)[1])
        return jnp.where((x < 0) | jnp.isnan(x), jnp.full_like(x, np.nan), found)

    return run


FUNCTIONS: dict[str, Rule] = {
    "j0": first_kind(0),
    "j1": first_kind(1),
    "y0": second_kind(0),
    "y1": second_kind(1),
}
"""Functions by name."""
