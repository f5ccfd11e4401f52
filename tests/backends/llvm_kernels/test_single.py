"""Functions of float32 that are computed in float32: polynomials, and errors over all patterns."""

from __future__ import annotations

import numpy as np
import pytest

from graphcore.backends.llvm_kernels import elementary

from . import everywhere, minimax
from .kernels import Array, run_function
from .native import needs_machine_code
from .test_functions import LONG, units

ALONE = sorted(name for name in elementary.SINGLE if elementary.arity(name) == 1)
PAIRS = sorted(elementary.SINGLE.keys() - ALONE)
QUICK = {"exp", "log", "tanh"}
BOUND = 2.0
"""Units in the last place."""


def test_polynomials_are_as_exact_as_they_say() -> None:
    fits = minimax.fits()
    assert {fit.name: minimax.error(fit) <= fit.error for fit in fits} == {
        fit.name: True for fit in fits
    }


@needs_machine_code
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in ALONE],
)
def test_some_of_all_patterns(name: str) -> None:
    """Blocks of patterns of all exponents; `accuracy.py` tries all of them."""
    error, at = everywhere.worst(name, 257 if name in QUICK else 17)
    assert error <= BOUND, at


ENDS = {
    "exp": (88.72283, -87.33, -103.97),
    "exp2": (127.99999, -126.0, -149.9),
    "expm1": (88.72283, -17.32),
    "sinh": (89.41598, -89.41598),
    "cosh": (89.41598, -89.41598),
    "softplus": (88.72283, -103.97),
}


@needs_machine_code
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in ENDS]
)
def test_ends_of_the_range(name: str) -> None:
    """All patterns about where the largest and the smallest results are."""
    for end in ENDS[name]:
        error, at = everywhere.worst(name, near=end)
        assert error <= BOUND, at


@needs_machine_code
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("size", [20_000, pytest.param(4_000_000, marks=pytest.mark.slow)])
def test_pairs(name: str, size: int) -> None:
    """Random patterns, and operands of which most powers are floats."""
    rng = np.random.default_rng(6)
    some: list[list[Array]] = [
        [rng.integers(0, 2**32, size, np.uint32).view(np.float32) for _ in range(2)],
        [rng.uniform(-2, 2, size), rng.integers(-30, 30, size)],
        [rng.uniform(0.5, 2, size), rng.uniform(-150, 150, size)],
        [np.exp(rng.uniform(-88, 88, size)), rng.uniform(-3, 3, size)],
    ]
    for xs in some:
        singles = [x.astype(np.float32) for x in xs]
        with np.errstate(invalid="ignore"):
            exact = run_function(name, *[x.astype(np.float64) for x in singles])
        apart = units(run_function(name, *singles, width=16), exact.astype(LONG))
        at = int(apart.argmax())
        assert apart[at] <= BOUND, [x[at] for x in singles]
