"""Elementary functions: at most two units in the last place from 80-bit floats, edges as NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

from graphcore.backends.llvm_kernels import elementary, machine
from graphcore.backends.llvm_kernels.maths import special

from .kernels import Array, run_function

pytestmark = pytest.mark.skipif(
    machine.unavailable() is not None, reason=str(machine.unavailable())
)

LONG = np.longdouble
NUMBERS = 4000
DTYPES = [np.dtype(np.float64), np.dtype(np.float32)]

EVERYWHERE, POSITIVE = (-1, "exp"), (0, "exp")
NEAR_0, AROUND_0, TINY = (-0.01, 0.01), (-1.0, 1.0), (-1e-17, 1e-17)
RANGES: dict[str, list[tuple[float, float | str]]] = {
    "exp": [(-745, 709.7), (-100, 88.0), AROUND_0, NEAR_0],
    "exp2": [(-1074, 1023.9), (-149, 127.9), AROUND_0, NEAR_0],
    "expm1": [(-40, 709.7), (-20, 88.0), AROUND_0, NEAR_0, TINY],
    "sigmoid": [(-745, 40.0), (-5, 5.0)],
    "softplus": [(-700, -50.0), (-50, 50.0)],
    "sinh": [(-710, 710.0), (-88, 88.0), AROUND_0, NEAR_0, TINY],
    "cosh": [(-710, 710.0), (-88, 88.0), AROUND_0, NEAR_0],
    "tanh": [(-20, 20.0), AROUND_0, NEAR_0, TINY],
    "log": [POSITIVE, (0.5, 2.0), (0.99, 1.01)],
    "log2": [POSITIVE, (0.5, 2.0), (0.99, 1.01)],
    "log10": [POSITIVE, (0.5, 2.0), (0.99, 1.01)],
    "log1p": [POSITIVE, (-0.99, 1.0), NEAR_0, TINY],
    "log1p_of_part": [(0.0, 1.0), (0.41, 0.42), (0.0, 1e-9), (0.0, 1e-310)],
    "sin": [EVERYWHERE, (-3.2, 3.2), (-1e6, 1e6), (-1e10, 1e10), NEAR_0, TINY],
    "cos": [EVERYWHERE, (-3.2, 3.2), (-1e6, 1e6), (-1e10, 1e10), NEAR_0],
    "tan": [EVERYWHERE, (-3.2, 3.2), (-1e6, 1e6), (-1e10, 1e10), NEAR_0, TINY],
    "arcsin": [AROUND_0, NEAR_0, TINY, (0.99, 1.0), (-1.0, -0.99)],
    "arccos": [AROUND_0, NEAR_0, TINY, (0.99, 1.0), (-1.0, -0.99)],
    "arctan": [EVERYWHERE, (-3.0, 3.0), NEAR_0, TINY],
    "arcsinh": [EVERYWHERE, (-3.0, 3.0), NEAR_0, TINY],
    "arccosh": [POSITIVE, (1.0, 2.0), (1.0, 1.0001)],
    "arctanh": [AROUND_0, NEAR_0, TINY, (0.999, 1.0)],
    "cbrt": [EVERYWHERE, (-3.0, 3.0)],
    "arctan2": [EVERYWHERE, AROUND_0],
    "hypot": [EVERYWHERE, AROUND_0, (-1e-300, 1e-300), (-8e307, 8e307)],
    "power": [POSITIVE, (0.0, 10.0)],
    "logaddexp": [(0.0, 10.0), (-700.0, 700.0)],
    "logaddexp2": [(0.0, 10.0)],
    "fmod": [EVERYWHERE, (-10.0, 10.0)],
}
"""Where each function is tried; EVERYWHERE at all sizes and signs, POSITIVE at all sizes."""


SLOWLY: dict[str, list[tuple[float, ...]]] = {
    "erf": [(-1, 1), (-6, 6), (-0.01, 0.01), (0.9, 1.1)],
    "erfc": [(-6, 6), (-0.6, 0.6), (0.5, 27), (26, 27.3)],
    "ndtr": [(-5, 5), (-38, -1), (-0.7, 0.7), (-0.1, 0.1)],
    "xlogy": [(-5, 5, 0, 9)],
    "xlog1py": [(-5, 5, -0.9, 9)],
    "entr": [(0, 2), (0.9, 1.1)],
    "rel_entr": [(0, 2, 0, 2), (0.9, 1.1, 0.9, 1.1)],
    "kl_div": [(4, 5, 1, 2)],
    "logit": [(0, 1), (0.4, 0.6), (0, 1e-9), (0.999, 1)],
    "log1mexp": [(-700, 0), (-1, 0), (-1e-9, 0), (-40, -0.5)],
    "exprel": [(-700, 700), (-1, 1), (-1e-9, 1e-9)],
    "cosm1": [(-3, 3), (-1e-5, 1e-5), (-1e3, 1e3)],
    "log_hypot": [(-1, 1, -1, 1), (-1e-9, 1e-9, 0.999, 1.001), (-1e9, 1e9, -1e9, 1e9)],
}
"""Where functions are tried that NumPy does not have: pairs of limits, one for each operand."""


def mp_functions() -> dict[str, Callable[..., mpmath.mpf]]:
    m = mpmath.mp
    return {
        "erf": m.erf,
        "erfc": m.erfc,
        "ndtr": m.ncdf,
        "xlogy": lambda x, y: x * m.log(y),
        "xlog1py": lambda x, y: x * m.log1p(y),
        "entr": lambda x: -x * m.log(x),
        "rel_entr": lambda x, y: x * m.log(x / y),
        "kl_div": lambda x, y: x * m.log(x / y) - x + y,
        "logit": lambda x: m.log(x / (1 - x)),
        "log1mexp": lambda x: m.log(-m.expm1(x)),
        "exprel": lambda x: m.expm1(x) / x,
        "cosm1": lambda x: -2 * m.sin(x / 2) ** 2,
        "log_hypot": lambda x, y: m.log(x * x + y * y) / 2,
    }


def long_of(x: mpmath.mpf) -> np.longdouble:
    high = LONG(float(x))
    return high + LONG(float(x - mpmath.mpf(float(x)))) if high and np.isfinite(high) else high


def bound_of(name: str, dtype: np.dtype) -> float:
    """How far a value may be off: half a unit where float32 is computed in float64."""
    return 2 if dtype.itemsize == 8 or name in elementary.SINGLE else 0.52


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SLOWLY)
def test_accuracy_in_high_precision(name: str, dtype: np.dtype) -> None:
    rng, exact = np.random.default_rng(4), mp_functions()[name]
    for limits in SLOWLY[name]:
        sides = range(0, len(limits), 2)
        xs = [rng.uniform(*limits[i : i + 2], 400).astype(dtype) for i in sides]
        with mpmath.workdps(400 if name == "log1mexp" else 60):
            points = [[mpmath.mpf(float(x)) for x in point] for point in zip(*xs, strict=True)]
            wanted = np.array([long_of(exact(*point)) for point in points], LONG)
        apart = units(run_function(name, *xs), wanted)
        at = int(apart.argmax())
        bound = bound_of(name, dtype)
        assert apart[at] <= bound, (limits, [x[at] for x in xs], apart[at])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted(SLOWLY.keys() - {"log1mexp", "log_hypot", "kl_div"}))
def test_edges_as_scipy(name: str, dtype: np.dtype) -> None:
    """Near the ends of the range of floats SciPy's may overflow, or lose digits."""
    edges = (0.0, 1.0, 0.5, np.inf, np.nan, 1e-30, 40.0, 1e30)
    x = np.array([*edges, *[-v for v in edges]]).astype(dtype)
    xs = [g.ravel() for g in np.meshgrid(*[x] * elementary.arity(name))]
    with np.errstate(all="ignore"):
        wanted = getattr(scipy.special, name)(*xs)
        found = run_function(name, *xs)
        near = np.abs(found - wanted) <= 8 * np.spacing(np.abs(wanted))
    same = near | (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    same &= (wanted != 0) | (np.signbit(found) == np.signbit(wanted))
    wrong = np.flatnonzero(~same)
    assert wrong.size == 0, [(found[i], wanted[i], *[x[i] for x in xs]) for i in wrong[:9]]


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


REFERENCE = {"sigmoid": sigmoid, "softplus": softplus, "log1p_of_part": np.log1p}


def reference(name: str, *xs: Array) -> Array:
    function = REFERENCE.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        return function(*[x.astype(LONG) for x in xs])


def sample(where: tuple[float, float | str], dtype: np.dtype, rng: np.random.Generator) -> Array:
    low, high = where
    with np.errstate(all="ignore"):
        if high != "exp":
            return rng.uniform(low, high, NUMBERS).astype(dtype)
        limits = (-744, 709) if dtype.itemsize == 8 else (-100, 88)
        x = np.exp(rng.uniform(*limits, NUMBERS))
        return (np.where(rng.integers(0, 2, NUMBERS) == 1, x, low * x) if low else x).astype(dtype)


def units(found: Array, wanted: Array) -> Array:
    """How many units in the last place apart; nan and infinities have to be the same."""
    with np.errstate(all="ignore"):
        near = wanted.astype(found.dtype)
        apart = np.abs(found.astype(LONG) - wanted) / np.spacing(np.abs(near)).astype(LONG)
    same = (found == near) | (np.isnan(found) & np.isnan(near))
    apart = np.where(same & ~np.isfinite(near), 0, apart)
    return np.where(np.isnan(apart), np.inf, apart)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", RANGES)
def test_accuracy(name: str, dtype: np.dtype) -> None:
    rng = np.random.default_rng(3)
    for where in RANGES[name]:
        xs = [sample(where, dtype, rng) for _ in range(elementary.arity(name))]
        if name == "power":
            xs[1] = sample((-40.0, 40.0), dtype, rng)
        apart = units(run_function(name, *xs), reference(name, *xs))
        at = int(apart.argmax())
        bound = bound_of(name, dtype)
        assert apart[at] <= bound, (where, [x[at] for x in xs], apart[at])


PARTS = {"log_high", "log_low", "power_by_log"}
"""Parts of `power`, which test_powers.py compares with it bit by bit."""

SLOPES = {"sigmoid_slope", "tanh_slope"}
"""Their second operand is the function of the first: tests/slopes tries them."""


def test_every_function_is_tried() -> None:
    own = elementary.FUNCTIONS.keys() - (special.FUNCTIONS.keys() - SLOWLY.keys() - RANGES.keys())
    assert RANGES.keys() | SLOWLY.keys() | PARTS | SLOPES == own


SPECIAL = (
    *(0.0, 1.0, 2.0, 3.0, 0.5, np.inf, np.nan, 1e308, 1e-310, 5e-324, 1e300, 3e-320, 1e22, 1e-30),
    *(2.0**53 - 1, 2.0**53 + 2, 2.0**52 + 0.5, 709.782712893384, 709.79, 745.2, 746.0, 710.47),
    *(710.476, 1024.0, 1075.0, 1000.0, 3.4e38, 1e-45, 88.8, 103.0, 150.0),
)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", RANGES)
def test_edges(name: str, dtype: np.dtype) -> None:
    """0, infinities, nan and the ends of the range, of both signs; zeros have their sign."""
    with np.errstate(all="ignore"):
        x = np.array([*SPECIAL, *[-v for v in SPECIAL]]).astype(dtype)
    if name == "log1p_of_part":
        x = x[~(np.signbit(x) | (x > 1))]
    xs = [g.ravel() for g in np.meshgrid(*[x] * elementary.arity(name))]
    found, wanted = run_function(name, *xs), reference(name, *xs)
    apart = units(found, wanted)
    if name.startswith("logaddexp"):  # a difference of numbers that are nearly equal
        apart[np.abs(wanted) < 0.2 * np.abs(np.maximum(*xs))] = 0
    wrong = np.flatnonzero(apart > 2)
    assert wrong.size == 0, [(found[i], wanted[i], *[x[i] for x in xs]) for i in wrong[:9]]
    with np.errstate(all="ignore"):
        zero = wanted.astype(dtype) == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [*RANGES, *SLOWLY])
def test_levels_agree_bit_by_bit(name: str, dtype: np.dtype) -> None:
    """AVX2 and AVX-512 give the same bits, sixteen float32 side by side as well.

    So does code that is made quickly.
    """
    if len(machine.levels()) < 2:
        pytest.skip("this CPU has no AVX-512")
    rng = np.random.default_rng(5)
    with np.errstate(all="ignore"):
        x = np.array([*SPECIAL, *[-v for v in SPECIAL]]).astype(dtype)
    where = [EVERYWHERE, AROUND_0, (-20.0, 20.0), (-800.0, 800.0)]
    xs = [
        np.concatenate([x, *[sample(each, dtype, rng) for each in where]])
        for _ in range(elementary.arity(name))
    ]
    ways: list[dict[str, Any]] = [{"level": level} for level in machine.levels()]
    ways.append({"effort": machine.QUICKLY})
    if dtype.itemsize == 4:
        ways += [{"level": level, "width": 16} for level in machine.levels()]
    first, *others = [run_function(name, *xs, **way) for way in ways]
    unknown = np.isnan(first)
    for other in others:
        np.testing.assert_array_equal(unknown, np.isnan(other))
        assert first[~unknown].tobytes() == other[~unknown].tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", sorted({*RANGES, *SLOWLY} - {"power", "hypot", "log_hypot"}))
def test_every_nan_stays_nan(name: str, dtype: np.dtype) -> None:
    """Also those of all ones, and those that signal, which memory not yet written may hold."""
    digits, fraction = 8 * dtype.itemsize, 52 if dtype.itemsize == 8 else 23
    quiet, ones = 1 << fraction - 1, (1 << digits) - 1
    exponent = (ones >> 1) - ((1 << fraction) - 1)
    patterns = [exponent | quiet, exponent | quiet | 0x7F, ones, exponent | 1, ones ^ quiet]
    nan = np.array(patterns, f"u{dtype.itemsize}").view(dtype)
    assert np.isnan(nan).all()
    count = elementary.arity(name)
    for at in range(count):
        xs = [nan if i == at else np.full(len(nan), 0.5, dtype) for i in range(count)]
        assert np.isnan(run_function(name, *xs)).all()
