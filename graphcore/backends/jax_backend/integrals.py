"""Exponential and elliptic integrals. All compute in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import jax.numpy as jnp
import jax.scipy.special as jaxs
import numpy as np
from jax import lax

from . import gammas
from .entries import Value

Rule: TypeAlias = Callable[..., Value]

TERMS, DEPTH = 22, 90
"""Terms of the power series up to 1, and quotients of the continued fraction from there on."""


def expn_by_series(n: Value, x: Value) -> Value:
    """For `x` up to 1 and n = 1, 2, ..."""
    term, total = jnp.ones_like(x), jnp.zeros_like(x)
    for k in range(TERMS):
        there = n - 1 == k
        total = total - jnp.where(there, 0, term / jnp.where(there, 1, k - n + 1))
        term = term * -x / (k + 1)
    sign = jnp.where((n - 1) / 2 == jnp.floor((n - 1) / 2), 1.0, -1.0)
    power = sign * jnp.power(x, n - 1) * gammas.rgamma(n)
    return jnp.where(power == 0, 0, power * (jaxs.digamma(n) - jnp.log(x))) + total


def expn_by_fraction(n: Value, x: Value) -> Value:
    """For `x` from 1 on."""

    def step(i: Value, below: Value) -> Value:
        k = DEPTH - i
        return k * (n + k - 1) / (x + n + 2 * k - below)

    below = lax.fori_loop(0, DEPTH, step, jnp.zeros_like(x))
    return jnp.exp(-x) / (x + n - below)


def expn(n: Value, x: Value) -> Value:
    """Of the whole part of `n`; infinite where it has no value."""
    n = jnp.trunc(n)
    order, near = jnp.maximum(n, 1), jnp.clip(x, 0, 1)
    found = jnp.where(x <= 1, expn_by_series(order, near), expn_by_fraction(order, x))
    found = jnp.where(n == 0, jnp.exp(-x) / x, found)
    found = jnp.where((x == 0) & (n > 1), 1 / (n - 1), jnp.where(x > 740, 0, found))
    lost = (n < 0) | (x < 0) | (x == 0) & (n <= 1)
    found = jnp.where(lost, jnp.full_like(x, np.inf), found)
    return jnp.where(jnp.isnan(n) | jnp.isnan(x), jnp.full_like(x, np.nan), found)


def exp1(x: Value) -> Value:
    return jnp.where(x < 0, jnp.full_like(x, np.nan), expn(jnp.ones_like(x), x))


def expi(x: Value) -> Value:
    """By the power series up to 40, by the asymptotic one from there on."""
    near, far = jnp.clip(x, 0, 40), jnp.maximum(x, 40)

    def add(k: Value, state: tuple[Value, Value]) -> tuple[Value, Value]:
        term, total = state
        term = term * near / k
        return term, total + term / k

    start = jnp.ones_like(x), jnp.zeros_like(x)
    _, total = lax.fori_loop(1, 160, add, start)
    series = lax.fori_loop(0, 40, lambda i, s: 1 + (40 - i) / far * s, jnp.ones_like(x))
    root = jnp.exp(far / 2)
    large = jnp.where(jnp.isinf(far), far, root / far * series * root)
    found = jnp.where(x <= 40, gammas.EULER + jnp.log(near) + total, large)
    negative = -expn(jnp.ones_like(x), jnp.maximum(-x, 0))
    found = jnp.where(x < 0, negative, found)
    return jnp.where(jnp.isnan(x), x, found)


def means(b: Value) -> tuple[Value, Value]:
    """The arithmetic-geometric mean of 1 and `b`, and the sum of 2^(n-1) c_n^2 from n = 1 on."""
    a, total = jnp.ones_like(b), jnp.zeros_like(b)
    for n in range(1, 18):
        gap = (a - b) / 2
        total = total + 2.0 ** (n - 1) * gap * gap
        a, b = (a + b) / 2, jnp.sqrt(a * b)
    return a, total


def ellipk(m: Value) -> Value:
    mean, _ = means(jnp.sqrt(1 - m))
    found = jnp.where(jnp.isinf(m), jnp.zeros_like(m), math.pi / 2 / mean)
    found = jnp.where(m == 1, jnp.full_like(m, np.inf), found)
    return jnp.where(m > 1, jnp.full_like(m, np.nan), found)


def ellipe(m: Value) -> Value:
    """Of a negative `m` by m / (m - 1)."""
    rest = jnp.where(m < 0, 1 / (1 - m), 1 - m)
    mean, total = means(jnp.sqrt(rest))
    found = math.pi / 2 / mean * (1 - (1 - rest) / 2 - total)
    found = jnp.where(m < 0, jnp.sqrt(1 - m) * found, found)
    found = jnp.where(m == 1, jnp.ones_like(m), jnp.where(m == -np.inf, -m, found))
    return jnp.where(m > 1, jnp.full_like(m, np.nan), found)


FUNCTIONS: dict[str, Rule] = {
    "exp1": exp1,
    "expi": expi,
    "expn": expn,
    "ellipk": ellipk,
    "ellipe": ellipe,
}
"""Functions by name."""
