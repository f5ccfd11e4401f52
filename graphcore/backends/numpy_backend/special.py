"""Special functions that SciPy lacks, or computes with few digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from graphcore.backends.error_function import FAR
from graphcore.ops.incomplete import NUMPYS

Array = npt.NDArray[Any]

VALUES_AT_ONCE = 2**13
"""How many values are computed at once, so that intermediate arrays stay in the cache."""

ROUTINES: dict[str, Callable[..., Array]] = {}
"""Functions by name, called with `(*operands, out)`."""


def routine(orders: int, name: str = "") -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Enter a function of so many integers and of arrays, which computes in double precision."""

    def register(function: Callable[..., Array]) -> Callable[..., Array]:
        def run(*operands: Array) -> Array:
            *xs, out = operands
            if out.size > VALUES_AT_ONCE and len(out) > 1:
                return in_halves(run, xs, out)
            integers = [int(n) for n in xs[:orders]]
            wide = np.complex128 if out.dtype.kind == "c" else np.float64
            found = function(*integers, *[np.asarray(x, wide) for x in xs[orders:]])
            np.copyto(out, found, casting="same_kind")
            return out

        ROUTINES[name or function.__name__] = run
        return run

    return register


def in_halves(run: Callable[..., Array], xs: Sequence[Array], out: Array) -> Array:
    """A function of many values as that of half of them, and of the others."""
    half = len(out) // 2
    for part in (slice(half), slice(half, None)):
        whole = [np.ndim(x) < out.ndim or len(x) < len(out) for x in xs]
        run(*[x if w else x[part] for x, w in zip(xs, whole, strict=True)], out[part])
    return out


@routine(orders=0)
def hyp1f1(a: Array, b: Array, x: Array) -> Array:
    """SciPy's function; `x` above 1e6 counts as 1e6 unless the function is a polynomial.

    Its time grows with `x` without bound, and its value there is infinite.
    """
    polynomial = (a <= 0) & (a == np.floor(a))
    found: Array = special.hyp1f1(a, b, np.where(polynomial, x, np.clip(x, -1e300, 1e6)))
    return found


@routine(orders=0)
def sigmoid_slope(x: Array, y: Array) -> Array:
    """y (1 - y), and y^2 e^-x where 1 - y has lost digits"""
    found, far = np.asarray(y * (1 - y)), x > 7
    if far.any():
        found[far] = np.square(y[far]) * np.exp(-x[far])
    return found


@routine(orders=0)
def tanh_slope(x: Array, y: Array) -> Array:
    """1 - y^2, and (1 + |y|)^2 e^(-2|x|) where 1 - |y| has lost digits"""
    size = np.abs(x)
    found, far = np.asarray((1 - y) * (1 + y)), size > 4
    if far.any():
        found[far] = np.square(1 + np.abs(y[far])) * np.exp(-2 * size[far])
    return found


def tail(x: Array, factor: float) -> Array:
    """erfc(sqrt(factor) x) where that is at most erfc(1/2), for a factor of 1 or 1/2.

    What rounding loses of the square of x, hundreds of units in the last place of the result, is
    found by splitting x.
    """
    size = np.sqrt(factor) * x
    t = (size - 3) / (size + 3)
    total = np.zeros_like(x)
    for c in reversed(FAR):
        total *= t
        total += c
    square, far = x * x, x * (2.0**27 + 1)
    high = far - (far - x)
    low = x - high
    lost = high * high - square + 2 * high * low + low * low
    found: Array = np.exp(-factor * square) * (total / (1 + 2 * size))
    return np.asarray(found - found * (factor * lost))


@routine(orders=0)
def erfc(x: Array) -> Array:
    """SciPy's function loses hundreds of units in the last place where it is small."""
    if x.dtype.kind == "c":
        return np.asarray(special.erfc(x))
    size = np.clip(np.abs(x), 0.5, 40)
    far = tail(size, 1.0)
    return np.where(np.abs(x) < 0.5, 1 - special.erf(x), np.where(x < 0, 2 - far, far))


@routine(orders=0)
def ndtr(x: Array) -> Array:
    """erfc(-x / sqrt(2)) / 2, as `erfc` computes it."""
    size = np.clip(np.abs(x), 0.75, 60)
    far = tail(size, 0.5) / 2
    near = 0.5 + 0.5 * special.erf(x * np.sqrt(0.5))
    return np.where(np.abs(x) < 0.75, near, np.where(x < 0, far, 1 - far))


@routine(orders=0)
def cosm1(x: Array) -> Array:
    """-2 sin(x / 2)^2, for any x; SciPy's function is wrong where x is large."""
    half: Array = np.sin(x / 2)
    return 0 - 2 * half * half


routine(orders=1, name="gamma_density")(NUMPYS.density_of_gamma)
routine(orders=1, name="gammainc_by")(NUMPYS.integral_of_gamma)
routine(orders=4, name="beta_density")(NUMPYS.density_of_beta)
routine(orders=2, name="betainc_by")(NUMPYS.integral_of_beta)
