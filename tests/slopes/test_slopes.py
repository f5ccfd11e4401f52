"""Slopes keep their digits: of elementwise functions of one and two operands, to third order.

They are compared with differences in a precision in which nothing is lost, at scales from the
smallest subnormal number to the largest. Where the value is no number, no slope is one.
`python -m tests.slopes NAME` computes the references of a function.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import floor

import numpy as np
import pytest

import graphcore as gc

from .exceptions import EXCEPTIONS, Exempt, entries
from .meaning import MEANING
from .points import singles
from .reference import slopes
from .sweeping import names, stored, wrong_points

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

UNSWEPT = {"kv", "kve", "owens_t", "gammainccinv"}
"""Functions whose references take mpmath too long."""
OFTEN = ("tanh", "sigmoid", "softplus", "expm1", "log", "logaddexp", "hypot", "betaln", "arctan2")
"""Functions whose first slopes are looked at in every run."""


Run = tuple[str, bool, bool, int]
"""The dtype, the target, whether in reverse mode, and the highest order."""


def left(name: str, runs: list[Run]) -> tuple[list[str], set[Exempt]]:
    """The slopes that are off without a reason, and the reasons of the others."""
    wrong, needed = [], set()
    for run in runs:
        for order, at, right, found in wrong_points(name, *run)[1]:
            reasons = entries(name, order, at)
            needed.update(reasons)
            if not reasons:
                where = f"{name}{tuple(at.tolist())} in {run[0]}, derivative {order}"
                wrong.append(f"{where}: {found}, right is {right}")
    return wrong, needed


def test_every_function_has_references() -> None:
    known = {name for name in names() if name not in UNSWEPT}
    assert known <= stored().keys(), "run `python -m tests.slopes NAME`"
    assert names().keys() <= MEANING.keys()


def test_exceptions_name_functions() -> None:
    named = {name for entry in EXCEPTIONS for name in entry.names.split()}
    assert named <= names().keys() - UNSWEPT


@pytest.mark.parametrize("native", [False, True], ids=["numpy", "native"])
@pytest.mark.parametrize("name", OFTEN)
def test_first_slopes(name: str, native: bool) -> None:
    assert not left(name, [("float64", native, True, 1)])[0]


@pytest.mark.parametrize("native", [False, True], ids=["numpy", "native"])
def test_remainders_have_the_slopes_of_their_exact_quotients(native: bool) -> None:
    """1 and the whole number of turns, less: 1.0 / 0.1 is rounded to 10, but 9 is right."""
    sides = [1.0, 0.7, 0.1, 0.3 * 3, 0.3, 5, 1e-150, 1e150]
    points = np.array([(x, s * y) for s in (1, -1) for x in (*sides, -1.0, -5.0) for y in sides])
    x, y = gc.tensor("x", {"i": None}), gc.tensor("y", {"i": None})
    for function, whole in ((gc.remainder, floor), (gc.fmod, int)):
        z = function(x, y)
        f = gc.compile([x, y], [gc.grad(z, v, per="i") for v in (x, y)], native=native)
        turns = [-float(whole(Fraction(a) / Fraction(b))) for a, b in points.tolist()]
        by_x, by_y = f(*points.T)
        np.testing.assert_array_equal(by_x, 1)
        np.testing.assert_allclose(by_y, turns, 1e-15)
        assert np.isnan(f(np.array([np.inf, 1, np.nan]), np.array([2.0, 0, 1]))).all()
    ends = np.array([-1.0, 1, -1, 1]), np.inf * np.array([1, 1, -1, -1])
    z = gc.remainder(x, y)
    slope = gc.compile([x, y], gc.grad(z, y, per="i"), native=native)
    np.testing.assert_array_equal(slope(*ends), [1, 0, 0, 1])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(names().keys() - UNSWEPT))
def test_slopes(name: str) -> None:
    """Up to third order in both modes with NumPy calls; machine code has the same graphs."""
    wrong, needed = left(
        name,
        [
            (dtype, *run)
            for dtype in ("float64", "float32")
            for run in ((False, True, 3), (False, False, 2), (True, True, 1))
        ],
    )
    assert not wrong, "\n".join(wrong[:20])
    idle = [x.reason for x in EXCEPTIONS if name in x.names.split() and x not in needed]
    assert not idle, f"no slope of {name} is off any more for {idle}: take it out of exceptions.py"


@pytest.mark.slow
def test_references_are_what_they_were() -> None:
    """Some of those that take little time, computed again."""
    random, differ = np.random.default_rng(0), Counter[str]()
    points = singles()
    for name in ("tanh", "arcsin", "log1p", "expm1", "sigmoid", "erfc"):
        for i in random.integers(0, len(points), 6):
            value, found = slopes(name, [float(x) for x in points[i]])
            same = np.isclose([value, *found], stored()[name][i], 1e-12, 0, equal_nan=True)
            differ[name] += int((~same).sum())
    assert not differ.total(), differ
