"""Slopes keep their digits: of all elementwise functions of one and two operands, to third order.

They are compared with differences in a precision in which nothing is lost, at scales from the
smallest subnormal number to the largest. Where the value is no number, no slope is one.
`python -m tests.slopes NAME` computes the references of a function.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from .exceptions import EXCEPTIONS, reason
from .meaning import MEANING
from .points import singles
from .reference import slopes
from .sweeping import names, stored, wrong_points

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

UNSWEPT = {
    **dict.fromkeys(("kv", "kve", "owens_t", "gammainccinv"), "references take mpmath too long"),
    **dict.fromkeys(("yv", "zeta"), "SciPy takes seconds for a value of large operands"),
}
OFTEN = ("tanh", "sigmoid", "softplus", "expm1", "log", "logaddexp", "hypot", "betaln", "arctan2")
"""Functions whose first slopes are looked at in every run."""


def left(name: str, dtype: str, native: bool, reverse: bool, most: int) -> list[str]:
    """The slopes that are off without a reason."""
    _, off = wrong_points(name, dtype, native, reverse, most)
    return [
        f"{name}{tuple(at.tolist())} in {dtype}, derivative {order}: {found}, right is {right}"
        for order, at, right, found in off
        if reason(name, order, at) is None
    ]


def test_every_function_has_references() -> None:
    known = {name for name in names() if name not in UNSWEPT}
    assert known <= stored().keys(), "run `python -m tests.slopes NAME`"
    assert names().keys() <= MEANING.keys()


def test_exceptions_name_functions() -> None:
    named = {name for entry in EXCEPTIONS for name in entry.names.split()}
    assert named <= names().keys()


@pytest.mark.parametrize("native", [False, True], ids=["numpy", "native"])
@pytest.mark.parametrize("name", OFTEN)
def test_first_slopes(name: str, native: bool) -> None:
    assert not left(name, "float64", native, True, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(names().keys() - UNSWEPT))
def test_slopes(name: str) -> None:
    """Up to third order in both modes with NumPy calls; machine code has the same graphs."""
    wrong = [
        line
        for dtype in ("float64", "float32")
        for native, reverse, most in ((False, True, 3), (False, False, 2), (True, True, 1))
        for line in left(name, dtype, native, reverse, most)
    ]
    assert not wrong, "\n".join(wrong[:20])


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
