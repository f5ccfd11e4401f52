"""Transposes that a routine stores, beside those of NumPy."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from graphcore.ops import elementwise as e
from graphcore.ops import tensor as t

from .native import Both, M, N, given, needs_machine_code

pytestmark = needs_machine_code


@pytest.mark.parametrize("perm", [perm for perm in permutations(range(3)) if perm[-1] != 2])
@pytest.mark.parametrize("dtype", ["float64", "int64", "float32", "complex128"])
def test_all_orders_of_axes(perm: tuple[int, ...], dtype: str) -> None:
    x = given("x", N, M, 33, dtype=dtype)
    both = Both([t.transpose(x, perm=perm), e.negative(x)])
    rng = np.random.default_rng(0)
    for n, m in ((0, 3), (1, 1), (7, 9), (8, 16), (17, 2)):
        both.agree([(100 * rng.standard_normal((n, m, 33))).astype(dtype)], (n, m))


def test_of_a_stored_value_with_other_axes() -> None:
    x = given("x", N, 40)
    y = t.reshape(e.exp(x), shape=(N, 5, 8))
    both = Both([t.transpose(t.reshape(x, shape=(N, 1, 40)), perm=(1, 2, 0)), e.exp(x),
                 t.transpose(y, perm=(2, 1, 0))])  # fmt: skip
    both.agree([np.random.default_rng(1).standard_normal((19, 40))], (19, 0), 4)


def test_equal_values_stay_equal_bit_by_bit() -> None:
    x = given("x", N, M)
    both = Both([t.transpose(x, perm=(1, 0))])
    odd = np.array([np.nan, -0.0, np.inf, 5e-324]).view(np.int64)
    values = np.resize(odd, (21, 33)).view(np.float64)
    (found,) = both.native([values], (21, 33))
    assert found.tobytes() == values.T.tobytes()
