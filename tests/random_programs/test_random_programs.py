"""Random programs, all of whose dims come from three names, are as an eager reference has them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import graphcore as gc
from tests.random_programs import control, eager
from tests.random_programs.running import Outcome, outcome, standalone
from tests.random_programs.shrinking import require
from tests.random_programs.statements import drawn
from tests.shares import shared
from tests.targets.drawing import KINDS

EACH = 25


def check(kind: str, first: int, count: int = EACH) -> None:
    require(outcome, (KINDS[kind](seed).in_double() for seed in range(first, first + count)))


@pytest.mark.parametrize(("kind", "count"), [("programs", 25), ("graphs", 100), ("loops", 10)])
def test_programs(kind: str, count: int) -> None:
    """The same values, dims, order of dims and refusals, with two sets of sizes."""
    check(kind, 0, count)


MORE = ("programs", 4100), ("graphs", 500), ("loops", 200)
LATER = [(kind, first) for kind, most in MORE for first in range(EACH, most, EACH)]


@pytest.mark.parametrize(("kind", "first"), shared(LATER, 3))
def test_more_programs(kind: str, first: int) -> None:
    check(kind, first)


def test_drawn_alike_from_a_seed() -> None:
    assert drawn(7).text() == drawn(7).text() != drawn(8).text()


def test_a_program_is_shown_as_a_script() -> None:
    """One that is not refused: others give a new dim a name that is there already."""
    script = standalone(drawn(5), Outcome("differs", "call 0: somehow"))
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "array" in run.stdout


def test_the_reference_differentiates() -> None:
    """Against derivatives by hand, nested and through a loop."""
    x = eager.constant([0.3, -0.7, 1.1], "i")

    def powers(x: control.Value) -> control.Value:
        return eager.sum(eager.fori_loop(0, 3, lambda i, c: c * x, x * 0 + 1.0))

    (slope,) = control.grad(powers, x)
    np.testing.assert_allclose(slope.base.data, 3 * x.data**2)
    np.testing.assert_allclose(control.hessian(powers, x).base.data, np.diag(6 * x.data))
    half = control.custom_pullback(eager.sin, lambda o, y, ct: (ct * 0.5,))
    np.testing.assert_allclose(control.jacobian(half, x).base.data, 0.5 * np.eye(3))


def test_the_reference_refuses() -> None:
    x, y = eager.constant([1.0, 2.0], "i"), eager.constant([1.0, 2.0, 3.0], "i")
    with pytest.raises(control.Refused):
        x + y
    with pytest.raises(control.Refused):
        eager.fori_loop(0, 1, lambda i, c: eager.isel(c, {"i": slice(1, None)}), x)
    assert gc is not eager
