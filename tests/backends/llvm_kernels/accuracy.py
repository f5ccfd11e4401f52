"""Tables of how accurate machine code is: `python -m tests.backends.llvm_kernels.accuracy`.

The first shows the largest error of each elementary function, over all ranges of test_functions.py,
in units in the last place of the exact value by mpmath, with NumPy's or SciPy's beside it.
The second shows that of functions of float32 over all bit patterns, and where it is.
The third shows the error of sums of 10^7 numbers in eps times the sum of their magnitudes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator

import mpmath
import numpy as np
import scipy.special

import graphcore as gc
from graphcore.backends.llvm_kernels import elementary

from .everywhere import worst
from .kernels import Array, run_function
from .test_functions import DTYPES, RANGES, REFERENCE, SLOWLY, mp_functions, sample

Exact = Callable[..., mpmath.mpf]


def cbrt(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


def real(x: mpmath.mpf | mpmath.mpc) -> mpmath.mpf:
    """The value of a function of real numbers, nan outside of where it has one."""
    return x if isinstance(x, mpmath.mpf) else mpmath.nan


def exact_functions() -> dict[str, Exact]:
    m = mpmath.mp
    angles = ("sin", "cos", "tan", "sinh", "cosh", "tanh")
    inverse = {f"arc{name}": getattr(m, f"a{name}") for name in angles}
    same = {name: getattr(m, name) for name in (*angles, "exp", "expm1", "log")}
    return {
        **inverse,
        **same,
        "exp2": lambda x: m.power(2, x),
        "sigmoid": lambda x: 1 / (1 + m.exp(-x)),
        "softplus": lambda x: m.log1p(m.exp(x)),
        "log2": lambda x: m.log(x, 2),
        "log10": m.log10,
        "log1p": m.log1p,
        "log1p_of_part": m.log1p,
        "cbrt": cbrt,
        "arctan2": m.atan2,
        "hypot": m.hypot,
        "power": m.power,
        "logaddexp": lambda x, y: m.log(m.exp(x) + m.exp(y)),
        "logaddexp2": lambda x, y: m.log(m.power(2, x) + m.power(2, y), 2),
        "fmod": lambda x, y: m.mpf(math.fmod(x, y)),
        **mp_functions(),
    }


def others(name: str) -> Callable[..., Array] | None:
    """The function of NumPy or SciPy."""
    if name in REFERENCE:
        return REFERENCE[name]
    return getattr(np, name, None) or getattr(scipy.special, name, None)


def drawn(name: str, dtype: np.dtype, count: int) -> Iterator[list[Array]]:
    """Operands from each range in which a function is tried."""
    rng = np.random.default_rng(11)
    for where in RANGES.get(name, ()):
        xs = [sample(where, dtype, rng)[:count] for _ in range(elementary.arity(name))]
        if name == "power":
            xs[1] = sample((-40.0, 40.0), dtype, rng)[:count]
        yield xs
    for limits in SLOWLY.get(name, ()):
        sides = range(0, len(limits), 2)
        yield [rng.uniform(*limits[i : i + 2], count).astype(dtype) for i in sides]


def apart(found: float, exact: mpmath.mpf, dtype: np.dtype) -> float:
    """The error in units in the last place; infinities have to be the same."""
    with np.errstate(all="ignore"):
        near = abs(dtype.type(float(exact)))
        if not np.isfinite(near) or not np.isfinite(found):
            return 0.0 if near == abs(found) or (np.isnan(near) and np.isnan(found)) else math.inf
        return float(abs(mpmath.mpf(found) - exact) / mpmath.mpf(float(np.spacing(near))))


def errors(name: str, dtype: np.dtype, count: int) -> tuple[float, float, int]:
    """The largest error of machine code, that of NumPy or SciPy, and how many points were tried."""
    exact, other = exact_functions()[name], others(name)
    own = theirs = 0.0
    tried = 0
    for xs in drawn(name, dtype, count):
        with np.errstate(all="ignore"):
            found = run_function(name, *xs)
            beside = other(*xs) if other else np.full(len(found), np.nan, dtype)
        with mpmath.workdps(400 if name == "log1mexp" else 60):
            for *point, mine, its in zip(*[x.tolist() for x in xs], found, beside, strict=True):
                wanted = real(exact(*[mpmath.mpf(x) for x in point]))
                own = max(own, apart(float(mine), wanted, dtype))
                theirs = max(theirs, apart(float(its), wanted, dtype) if other else math.nan)
        tried += len(found)
    return own, theirs if other else math.nan, tried


def function_table(count: int) -> None:
    print("| function | points | float64, ulp | NumPy or SciPy | float32, ulp | NumPy or SciPy |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in (*RANGES, *SLOWLY):
        shown = []
        for dtype in DTYPES:
            own, theirs, tried = errors(name, dtype, count)
            shown += [f"{own:.3f}", f"{theirs:.3f}" if theirs == theirs else "-"]
        print(f"| {name} | {tried} | {' | '.join(shown)} |", flush=True)


def single_table() -> None:
    print("| function of float32, all 2^32 patterns | ulp | at |")
    print("|---|---:|---:|")
    for name in elementary.SINGLE:
        if elementary.arity(name) == 1:
            error, at = worst(name)
            print(f"| {name} | {error:.3f} | {at!r} |", flush=True)


def samples(n: int) -> dict[str, Array]:
    rng = np.random.default_rng(12)
    uniform = rng.uniform(size=n)
    signs = np.where(np.arange(n) % 2, -1.0, 1.0)
    return {
        "uniform in [0, 1)": uniform,
        "uniform, signs alternate": uniform * signs,
        "normal": rng.standard_normal(n),
        "0.1": np.full(n, 0.1),
        "1 / k, signs alternate": signs / np.arange(1, n + 1),
    }


def sum_table(n: int) -> None:
    x = {dtype: gc.tensor("x", {"i": "n"}, dtype=dtype.name) for dtype in DTYPES}
    sums = {dtype: gc.compile([each], gc.sum(each), native=True) for dtype, each in x.items()}
    print(f"| {n:,} numbers | dtype | error in eps * sum of magnitudes | NumPy's pairwise |")
    print("|---|---|---:|---:|")
    for name, numbers in samples(n).items():
        for dtype in DTYPES:
            given = numbers.astype(dtype)
            wanted, scale = math.fsum(given), math.fsum(np.abs(given)) * np.finfo(dtype).eps
            own, theirs = (float(s) - wanted for s in (sums[dtype](x=given), given.sum()))
            print(f"| {name} | {dtype} | {abs(own) / scale:.2g} | {abs(theirs) / scale:.2g} |")


if __name__ == "__main__":
    function_table(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    print()
    single_table()
    print()
    sum_table(10_000_000)
