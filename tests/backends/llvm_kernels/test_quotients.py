"""Quotients by a number that stays the same in a loop are those of a division."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc

from .native import needs_machine_code

pytestmark = needs_machine_code

BITS = {"float64": np.uint64, "float32": np.uint32}


def any_floats(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Floats of any bits, so that half of their quotients overflow or vanish."""
    most = np.iinfo(BITS[dtype]).max
    return rng.integers(0, most, shape, BITS[dtype], endpoint=True).view(dtype)


def special(dtype: str) -> np.ndarray:
    """Zeros, infinities, nan, and the ends of the range."""
    limits = np.finfo(dtype)
    ends = [limits.max, 2.0 ** (limits.maxexp - 1), limits.max / 3, 1.0, 3.0]
    ends += [limits.tiny, limits.smallest_subnormal, limits.tiny / 3]
    return np.array([0.0, np.inf, *ends, *[-x for x in (0.0, np.inf, *ends)], np.nan], dtype)


def require_quotients(found: np.ndarray, x: np.ndarray, y: np.ndarray | np.generic) -> None:
    """The same bits, any nan like any other, where x is not so small that its error is no float."""
    wanted, limits = x / y, np.finfo(x.dtype)
    bits = BITS[x.dtype.name]
    differ = (found.view(bits) != wanted.view(bits)) & ~(np.isnan(found) & np.isnan(wanted))
    tiny = (x != 0) & (np.abs(x) < limits.tiny / limits.eps**2)
    assert not (differ & ~tiny).any(), (found[differ][:5], wanted[differ][:5])
    np.testing.assert_array_max_ulp(found[tiny], wanted[tiny], 1)


@pytest.mark.parametrize("dtype", BITS)
def test_rows_by_their_number(dtype: str) -> None:
    x = gc.tensor("x", {"row": None, "col": None}, dtype=dtype)
    y = gc.tensor("y", {"row": None}, dtype=dtype)
    f = gc.compile([x, y], x / y, native=True)
    rng = np.random.default_rng(3)
    divisors = np.concatenate([special(dtype), any_floats(rng, dtype, (90,))])
    near = (rng.normal(size=(len(divisors), 501)) * 10).astype(dtype)
    numbers = rng.integers(-99, 99, (len(divisors), 300)).astype(dtype)
    with np.errstate(all="ignore"):
        multiples = numbers * divisors[:, None]
        some = np.broadcast_to(special(dtype), (len(divisors), len(special(dtype))))
        wild = any_floats(rng, dtype, (len(divisors), 1000))
        for values in (multiples, some, wild, near):
            require_quotients(f(values, divisors), values, divisors[:, None])


@pytest.mark.parametrize("dtype", BITS)
def test_numbers_in_the_program(dtype: str) -> None:
    x = gc.tensor("x", {"row": None}, dtype=dtype)
    numbers = [3.0, -49.0, 0.25, -1.0, 1e30, 1e-30, 7e-45 if dtype == "float32" else 5e-324]
    f = gc.compile([x], [x / number for number in numbers], native=True)
    rng = np.random.default_rng(4)
    near = rng.normal(size=1000).astype(dtype)
    values = np.concatenate([special(dtype), any_floats(rng, dtype, (1000,)), near])
    with np.errstate(all="ignore"):
        for found, number in zip(f(values), numbers, strict=True):
            require_quotients(found, values, values.dtype.type(number))


def test_a_softmax_divides_once_a_row() -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    text = gc.compile([x], gc.special.softmax(x, "col"), native=True).llvm
    assert "fdiv double" in text
    assert "fdiv <8 x double>" not in text
