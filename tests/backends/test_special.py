"""Derivatives of special functions by parameters that are small and large, against differences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special

import graphcore as gc

A, B, X = (gc.tensor(name, {"i": None}) for name in "abx")
SIZES = [0.3, 0.9, 1.0, 2.5, 9.9, 10.0, 10.1, 33.0, 400.0, 1e4]


def slope(f: Callable[..., Any], at: list[np.ndarray], by: int, h: np.ndarray) -> Any:
    """The derivative by one argument, by differences of fourth order with steps `h`."""
    near, far = (
        f(*[x + t * h if i == by else x for i, x in enumerate(at)])
        - f(*[x - t * h if i == by else x for i, x in enumerate(at)])
        for t in (1, 2)
    )
    return (8 * near - far) / (12 * h)


def compare(ours: gc.Tensor, theirs: Callable[..., Any], xs: list[gc.Tensor], at: Any) -> None:
    """The first derivatives, and the second ones against differences of the first."""
    steps = [2e-3 * np.sqrt(x) * np.minimum(x, 1) for x in at[:-1]]
    widths = [np.sqrt(x) + 1 for x in at[:-1]]  # over which there is a change of one
    for i, (x, step, width) in enumerate(zip(xs, steps, widths, strict=False)):
        first = gc.grad(ours.sum(), x)
        f = gc.compile(xs, first)
        wanted = slope(theirs, at, i, step)
        assert np.abs((f(*at) - wanted) * width).max() < 1e-8
        for j, (z, other, wide) in enumerate(zip(xs, steps, widths, strict=False)):
            second = gc.compile(xs, gc.grad(first.sum(), z))(*at)
            wanted = slope(f, at, j, other)
            assert np.abs((second - wanted) * width * wide).max() < 1e-8


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_by_their_parameter(name: str) -> None:
    parts = [(a, a * t) for a, t in product(SIZES, (0.02, 0.6, 0.97, 1.0, 1.04, 1.5, 8.0))]
    at = list(np.array(parts).T)
    compare(getattr(gc.special, name)(A, X), getattr(special, name), [A, X], at)


@pytest.mark.parametrize("name", ["betainc", "betaincc"])
def test_incomplete_beta_functions_by_their_parameters(name: str) -> None:
    at = [
        np.array(x) for x in zip(*product(SIZES, SIZES, (-3.0, -0.5, 0.0, 0.4, 2.0)), strict=True)
    ]
    a, b, t = at
    at[2] = np.clip(a / (a + b) + t * np.sqrt(a * b / (a + b + 1)) / (a + b), 0.003, 0.997)
    compare(getattr(gc.special, name)(A, B, X), getattr(special, name), [A, B, X], at)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tails_are_right_to_the_last_places_on_both_targets(dtype: str) -> None:
    """SciPy's erfc and ndtr are off by hundreds of these, its cosm1 by millions."""
    rng = np.random.default_rng(0)
    x = gc.tensor("x", "i", dtype=dtype)
    given = np.concatenate([rng.uniform(-9, 9, 300), rng.uniform(-37, 26, 300), [0.5, -0.75, 1e-9]])
    given = given.astype(dtype)
    exact = {
        "erfc": lambda z: mpmath.erfc(z),
        "ndtr": lambda z: mpmath.erfc(-z / mpmath.sqrt(2)) / 2,
        "cosm1": lambda z: -2 * mpmath.sin(z / 2) ** 2,
    }
    functions = {name: getattr(gc.special, name)(x) for name in exact}
    for native in (False, True):
        found = gc.compile([x], functions, native=native)(given)
        for name, f in exact.items():
            with mpmath.workdps(40):
                wanted = [f(mpmath.mpf(float(z))) for z in given]
                spacing = np.spacing(np.abs(np.array([float(w) for w in wanted])).astype(dtype))
                off = [abs(float(float(g) - w)) for g, w in zip(found[name], wanted, strict=True)]
            assert np.max(off / spacing.astype(float)) < 4, (name, native)
