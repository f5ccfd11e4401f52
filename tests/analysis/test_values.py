"""Facts about values."""

from __future__ import annotations

import numpy as np

from graphcore.analysis.values import (
    are_distinct,
    bound_of,
    is_finite,
    is_infinite,
    is_inside,
    is_normal,
    is_one,
    is_part,
    is_positive_zero,
    is_power_of_two,
    is_zero,
)
from graphcore.ir.dtypes import BOOL, FLOAT, INT
from graphcore.ir.literal import Literal
from graphcore.ir.node import Node
from graphcore.ir.sizes import Size, unknown
from graphcore.ops import elementwise, leaf, tensor
from graphcore.rewrites.plain import full


def value(name: str, *shape: int, dtype: np.dtype = FLOAT) -> Node:
    return leaf.input_(name=name, dtype=dtype, shape=shape, dims=None)


X, Y = value("x", 3), value("y", 3)
CHOICE = value("c", 3, dtype=BOOL)
ZERO, ONE = full(0, FLOAT, (3,)), full(1, FLOAT, (3,))
CHOSEN = elementwise.where(CHOICE, X, ZERO)


def test_known_numbers() -> None:
    negative, infinite = full(-0.0, FLOAT), full(-np.inf, FLOAT)
    assert is_zero(ZERO)
    assert is_zero(negative)
    assert not is_zero(X)
    assert not is_zero(ONE)
    assert is_positive_zero(ZERO)
    assert not is_positive_zero(negative)
    assert is_one(ONE)
    assert not is_one(ZERO)
    assert is_infinite(infinite)
    assert not is_infinite(ONE)
    assert not is_infinite(full(np.nan, FLOAT))


def test_finite_values() -> None:
    constant = leaf.constant(value=Literal([1.0, -3.0, 2.0]), dims=None)
    mask = elementwise.cast(elementwise.less(X, Y), dtype=FLOAT)
    assert bound_of(constant) == 3
    assert bound_of(mask) == 1
    assert bound_of(elementwise.where(CHOICE, 0.5 * (mask + mask), constant)) == 3
    assert is_finite(0.5 * (mask + mask) - constant)
    assert is_finite(value("i", 3, dtype=INT))
    for x in (X, X * mask, 1 / mask, full(np.inf, FLOAT, (3,)), full(np.nan, FLOAT, (3,))):
        assert not is_finite(x)
    assert not is_finite(full(1e200, FLOAT) * full(1e200, FLOAT))


def test_numbers_that_scale_exactly() -> None:
    assert is_power_of_two(np.array(-0.25))
    assert not is_power_of_two(np.array(0.3))
    assert is_normal(np.array(0.3))
    assert not is_normal(np.array(1e-310))
    assert not is_normal(np.array(np.inf))
    assert not is_normal(np.array(0.0))


def test_distinct_positions() -> None:
    counted = leaf.iota(size=3, dtype=INT, dims=None)
    given = value("k", 3, dtype=INT)
    assert are_distinct([counted])
    assert are_distinct([counted, given])
    assert not are_distinct([given])
    assert are_distinct([leaf.constant(value=Literal([2, 0, 1]), dims=None)])
    assert not are_distinct([leaf.constant(value=Literal([2, 0, 2]), dims=None)])
    assert are_distinct([tensor.argsort(X, axis=0, size=3, descending=False)])


def test_powers_from_0_to_1() -> None:
    exp, absolute, negative = elementwise.exp, elementwise.absolute, elementwise.negative
    assert is_part(exp(negative(absolute(X))))
    turned = elementwise.cast(X, dtype=np.dtype(np.complex128))
    for x in (X, exp(X), exp(negative(X)), exp(absolute(X)), exp(negative(turned))):
        assert not is_part(x)


def test_positions_are_inside_by_how_they_are_computed() -> None:
    """A rest from the size of an axis, and its places; not those of another size."""
    own, other, at = unknown("own"), unknown("other"), value("at", 3, dtype=INT)

    def rest(size: Size) -> Node:
        number = leaf.extent(size=size, dtype=INT, dims=None)
        return elementwise.remainder(at, tensor.expand(number, axes=(0,), sizes=(3,)))

    assert is_inside(rest(own), own)
    assert is_inside(leaf.iota(size=own, dtype=INT, dims=None), own)
    assert not is_inside(rest(other), own)
    assert not is_inside(at, own)
