"""Large numbers and long lists cost no more than what is asked of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.types import TensorType, TupleType

MANY = 2**40
Q = gc.arange(MANY, dim="q")


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        (Q[{"q": slice(0, 3)}], [0, 1, 2]),
        (Q[{"q": slice(-3, None)}], range(MANY - 3, MANY)),
        (Q.isel(q=-1), MANY - 1),
        (Q[{"q": slice(None, None, -(2**38))}], range(MANY - 1, -1, -(2**38))),
        (Q.isel(q=gc.constant([3, -1], "k")), [3, MANY - 1]),
        (Q[{"q": slice(2**39, 2**39 + 10_000)}], range(2**39, 2**39 + 10_000)),
        (Q[{"q": slice(9, MANY, 7)}].head(q=2), [9, 16]),
        ((2 * Q + 1).tail(q=2), [2 * MANY - 3, 2 * MANY - 1]),
        (gc.where(Q > 3, Q, -Q)[{"q": slice(2, 6)}], [-2, -3, 4, 5]),
    ],
)
def test_a_part_of_a_long_range(part: gc.Tensor, wanted: object) -> None:
    found = gc.compile([], part)()
    np.testing.assert_array_equal(found, np.asarray(wanted))
    assert found.dtype == np.int64


@pytest.mark.parametrize("size", [None, 60])
@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("times", [15, 16, 17, 40, 1000, 10**6])
def test_many_differences(times: int, dtype: str, size: int | None) -> None:
    x = gc.tensor("x", {"b": 2, "t": size}, dtype=dtype)
    f = gc.compile([x], gc.diff(x, "t", times))
    values = np.random.default_rng(0).normal(size=(2, 60)) * 3
    given = values > 0 if dtype == "bool" else values.astype(dtype)
    wanted = np.diff(given, n=min(times, 60), axis=1)
    np.testing.assert_array_equal(f(given), wanted)
    assert len(f.stages["optimized"]) < 100


@pytest.mark.parametrize("places", [0, 1, 5, 17, 18, 19])
def test_more_differences_than_places(places: int) -> None:
    x = gc.tensor("x", {"t": None})
    given = np.sqrt(np.arange(places))
    found = gc.compile([x], gc.diff(x, "t", 17))(given)
    assert found.shape == (max(places - 17, 0),)
    np.testing.assert_array_equal(found, np.diff(given, 17) if places else given)


def test_derivatives_of_many_differences() -> None:
    x = gc.tensor("x", {"t": 30})
    y = gc.diff(x, "t", 20)
    ct, v = gc.tensor("ct", y.sizes), gc.tensor("v", {"t": 30})
    f = gc.compile([x, ct, v], [gc.pullback(y, x, ct), gc.pushforward(y, x, v), gc.jacobian(y, x)])
    matrix = np.diff(np.eye(30), 20, axis=0)
    a, c, b = (np.random.default_rng(i).normal(size=n) for i, n in enumerate((30, 10, 30)))
    back, forth, jacobian = f(a, c, b)
    np.testing.assert_allclose(back, c @ matrix, rtol=1e-9)
    np.testing.assert_allclose(forth, np.diff(b, 20), rtol=1e-9)
    np.testing.assert_array_equal(jacobian, matrix)


def test_types_of_several_values_are_one_object() -> None:
    """Else the gradient of n inputs would compare n types for each of them."""
    item = TensorType(np.dtype("f8"), (3,))
    both = TupleType((item, item))
    assert both is TupleType((item, item))
    assert both is pickle.loads(pickle.dumps(both))
    assert both is not TupleType((item,))
