"""Random programs as machine code are as exact as they are as NumPy calls."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from tests.shares import parts
from tests.targets.comparing import Both, further
from tests.targets.drawing import differing

pytestmark = pytest.mark.skipif(
    llvm_kernels.unavailable() is not None, reason=str(llvm_kernels.unavailable())
)


@pytest.mark.parametrize(
    ("kind", "first", "count"),
    [
        *[("programs", 0, 12), ("graphs", 0, 8), ("loops", 0, 4)],
        *parts("programs", 1000, 400),
        *parts("graphs", 1, 400),
        *parts("loops", 1, 120),
    ],
)
def test_random_programs(kind: str, first: int, count: int) -> None:
    assert differing(kind, first, count) == []


def test_differences_are_found() -> None:
    """A result that is a little off where rounding cannot explain it, and one where it can."""
    x = gc.tensor("x", {"row": None})
    given = [np.linspace(1.0, 2.0, 9)]
    for y, error, wrong in (
        (gc.exp(x), 1e-14, True),
        (gc.exp(x) - gc.exp(x * (1 + 1e-9)), 1e-16, False),
        (gc.exp(x) - gc.exp(x * (1 + 1e-9)), 1e-13, True),
    ):
        both = Both(gc.compile([x], y))
        assert both.compare(given).kind in ("equal", "close", "rounding")
        native = both.native
        both.native = lambda *args, native=native, error=error: [native(*args)[0] + error]
        assert (both.compare(given).kind == "differs") == wrong


def test_a_value_that_is_not_a_number_is_no_other() -> None:
    x, y = np.array([1.0, np.nan]), np.array([1.0, 2.0])
    assert "1 of 2 places" in further(x, y, y.astype(np.longdouble), [y.astype(np.longdouble)])


def test_where_only_rounding_gives_a_number_the_targets_are_compared() -> None:
    exact, y = np.array([np.nan], np.longdouble), np.array([5.0])
    apart = [np.array([value], np.longdouble) for value in (-200.0, 50.0, 1200.0)]
    alike = [y.astype(np.longdouble)] * 3
    assert not further(np.array([80.0]), y, exact, apart)
    assert "1 of 1 places" in further(np.array([80.0]), y, exact, alike)
