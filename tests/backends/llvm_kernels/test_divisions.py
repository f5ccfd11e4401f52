"""Divisions of narrow integers are made in floats: exact on both sides of a whole quotient."""

from __future__ import annotations

import numpy as np
import pytest

from graphcore.ops import elementwise as e

from .kernels import Array, run_node
from .native import needs_machine_code
from .test_arithmetic import given

pytestmark = needs_machine_code

OPS = (e.floor_divide, e.remainder, e.fmod, e.gcd)


def pairs(dtype: np.dtype) -> list[Array]:
    """All pairs of bytes; else dividends at multiples of divisors, and beside them."""
    info = np.iinfo(dtype)
    if dtype.itemsize == 1:
        every = np.arange(info.min, info.max + 1).astype(dtype)
        return [x.ravel() for x in np.meshgrid(every, every)]
    rng = np.random.default_rng(8)
    sizes = 2 ** rng.uniform(0, 8 * dtype.itemsize, 20_000)
    y = np.clip(sizes * rng.choice([-1, 1], 20_000), info.min, info.max).astype(np.int64)
    y = np.where(y == 0, 1, y)
    times = rng.uniform(info.min, info.max, 20_000) / np.abs(y)
    x = times.astype(np.int64) * y + rng.integers(-1, 2, 20_000)
    return [np.clip(v, info.min, info.max).astype(dtype) for v in (x, y)]


QUICK = {"int8", "uint16", "int32"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f"{sign}int{bits}", marks=[pytest.mark.slow][f"{sign}int{bits}" in QUICK :])
        for sign in ("", "u")
        for bits in (8, 16, 32)
    ],
)
def test_as_numpy(name: str) -> None:
    dtype = np.dtype(name)
    xs = pairs(dtype)
    for op in OPS:
        node = op(*[given(f"x{i}", dtype) for i in range(2)])
        with np.errstate(all="ignore"):
            wanted = getattr(np, op.name)(*xs)
        for width in (8, 64 // dtype.itemsize):
            np.testing.assert_array_equal(run_node(node, *xs, width=width), wanted, op.name)
