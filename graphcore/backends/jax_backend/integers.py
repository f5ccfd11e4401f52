"""Integers where XLA answers otherwise than NumPy: divided by 0, and the lowest one's size."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from .entries import Value


def safe(y: Value) -> Value:
    """1 in place of 0."""
    return jnp.where(y == 0, jnp.ones_like(y), y)


def but_0(found: Value, y: Value) -> Value:
    """What is found, and 0 where `y` is 0."""
    return jnp.where(y == 0, jnp.zeros_like(found), found)


def floor_divide(x: Value, y: Value) -> Value:
    return but_0(jnp.floor_divide(x, safe(y)), y)


def remainder(x: Value, y: Value) -> Value:
    return but_0(jnp.remainder(x, safe(y)), y)


def fmod(x: Value, y: Value) -> Value:
    return but_0(lax.rem(x, safe(y)), y)


def power(x: Value, y: Value) -> Value:
    """By squaring; negative exponents count as 0."""

    def step(state: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
        product, square, n = state
        product = jnp.where(n & 1 == 1, product * square, product)
        return product, square * square, n >> 1

    start = jnp.ones_like(x), x, jnp.maximum(y, jnp.zeros_like(y))
    found: Value = lax.while_loop(lambda state: jnp.any(state[2] != 0), step, start)[0]
    return found


def sizes(x: Value, y: Value) -> tuple[Value, Value]:
    """Absolute values, unsigned: the lowest signed integer has none."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return jnp.abs(x).astype(unsigned), jnp.abs(y).astype(unsigned)


def divisor(x: Value, y: Value) -> Value:
    """Euclid's, of unsigned integers."""

    def step(pair: tuple[Value, Value]) -> tuple[Value, Value]:
        a, b = pair
        return jnp.where(b == 0, a, b), fmod(a, b)

    found: Value = lax.while_loop(lambda pair: jnp.any(pair[1] != 0), step, (x, y))[0]
    return found


def gcd(x: Value, y: Value) -> Value:
    return divisor(*sizes(x, y)).astype(x.dtype)


def lcm(x: Value, y: Value) -> Value:
    a, b = sizes(x, y)
    return (floor_divide(a, divisor(a, b)) * b).astype(x.dtype)
