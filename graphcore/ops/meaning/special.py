"""What special functions mean: SciPy's, and formulas where it has none or a worse one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.special

from graphcore.ir import Array
from graphcore.ops import incomplete


def function(name: str) -> Callable[..., Array]:
    """The function of that name."""
    found: Callable[..., Array] = FORMULAS.get(name) or getattr(scipy.special, name)
    return found


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else scipy.special.expit(x))


def cosm1(x: Array) -> Array:
    """SciPy loses digits where x is large."""
    return np.asarray(0 - 2 * np.sin(x.astype(np.float64) / 2) ** 2, x.dtype)


def log1mexp(x: Array) -> Array:
    return np.where(x > -0.7, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def hyp1f1(a: Array, b: Array, x: Array) -> Array:
    """Infinite beyond 1e6, where SciPy's time grows without bound, unless it is a polynomial."""
    polynomial = (a <= 0) & (a == np.floor(a))
    near = np.where(polynomial, x, np.clip(x, -1e300, 1e6)).astype(x.dtype)
    return np.asarray(scipy.special.hyp1f1(a, b, near))


def bell(x: Array) -> Array:
    """e^x / (1 + e^x)^2"""
    power = np.exp(-np.abs(x))
    return np.asarray(power / (1 + power) ** 2)


def over(x: Array, y: Array) -> Array:
    """x / y, and 0 where y is 0."""
    return np.where(y == 0, 0, x / np.where(y == 0, 1, y)).astype(x.dtype)


def inversion(x: Array, y: Array) -> Array:
    return over(over(x, np.hypot(x, y)), np.hypot(x, y))


def digamma_step(n: Array, x: Array, m: Array) -> Array:
    order = n.astype(int)
    return np.asarray(scipy.special.polygamma(order, x + m) - scipy.special.polygamma(order, x))


def pseudo_huber(delta: Array, r: Array) -> Array:
    """In the widest floats, which hold the square of every number, and the limits at infinity."""
    d, size = delta.astype(np.longdouble), np.abs(r).astype(np.longdouble)
    finite = d * size * (size / (np.hypot(d, size) + d))
    found = np.where(np.isinf(d) & np.isfinite(r), size * size / 2, finite)
    found = np.where(np.isinf(r) & np.isfinite(d), np.inf, found)
    found = np.where((d == 0) & (size == size) | (size == 0) & (d == d), 0, found)
    return np.where(d < 0, np.inf, found).astype(delta.dtype)


def pseudo_huber_by_delta(delta: Array, r: Array) -> Array:
    h = np.hypot(delta, r)
    return over(over(r, h) * r, over(h + delta, r) ** 2)


def with_orders(count: int, function: Callable[..., Array]) -> Callable[..., Array]:
    """A function whose first operands are whole numbers, each the same in every place."""

    def run(*xs: Array) -> Array:
        orders = [int(x.flat[0]) if x.size else 0 for x in xs[:count]]
        found = function(*orders, *[x.astype(np.float64) for x in xs[count:]])
        return np.asarray(found, xs[-1].dtype)

    return run


FORMULAS: dict[str, Callable[..., Array]] = {
    "cosm1": cosm1,
    "softplus": lambda x: np.logaddexp(0, x).astype(x.dtype),
    "expit": sigmoid,
    "log1mexp": log1mexp,
    "hyp1f1": hyp1f1,
    "sigmoid_slope": lambda x, y: bell(x),
    "tanh_slope": lambda x, y: 4 * bell(2 * x),
    "arctan_slope": lambda x: 1 / (1 + x * x),
    "cosine": lambda x, y: over(x, np.hypot(x, y)),
    "inversion": inversion,
    "inversion_slope": lambda x, y: over((y - x) * (y + x), np.hypot(x, y) ** 4),
    "square_complement": lambda x: (1 - x) * (1 + x),
    "pseudo_huber": pseudo_huber,
    "pseudo_huber_by_delta": pseudo_huber_by_delta,
    "pseudo_huber_by_r": lambda delta, r: delta * over(r, np.hypot(delta, r)),
    "digamma_step": digamma_step,
    "gamma_density": with_orders(1, incomplete.NUMPYS.density_of_gamma),
    "gammainc_by": with_orders(1, incomplete.NUMPYS.integral_of_gamma),
    "beta_density": with_orders(4, incomplete.NUMPYS.density_of_beta),
    "betainc_by": with_orders(2, incomplete.NUMPYS.integral_of_beta),
}
