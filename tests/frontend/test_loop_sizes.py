"""Sizes of loops, branches and cotangents that only the call can compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

Y = gc.tensor("y", {"row": None})
Z = gc.tensor("z", {"row": "m"})
W = gc.tensor("w", {})
REST = Y.isel(row=slice(1, None))


def shorter(s: gc.Tensor) -> gc.Tensor:
    return s.isel(row=slice(1, None))


DISAGREE: dict[str, Callable[[], Any]] = {
    "cond": lambda: gc.cond(W > 0, lambda: REST, lambda: Y),
    "switch": lambda: gc.switch((W > 0).astype("int64"), [lambda: Y, lambda: Z]),
    "third branch": lambda: gc.switch((W > 0).astype("int64"), [lambda: Y, lambda: Y, lambda: Z]),
    "fori_loop": lambda: gc.fori_loop(0, 1, lambda i, s: shorter(s), Y),
    "fori_loop of no steps": lambda: gc.fori_loop(0, 0, lambda i, s: shorter(s), Y),
    "counted at the call": lambda: gc.fori_loop(
        0, (W > 0).astype("int64"), lambda i, s: shorter(s), Y
    ),
    "scan": lambda: gc.scan(lambda s, _: (Z, None), Y, length=1)[0],
    "scan of several": lambda: gc.scan(lambda s, _: ((s[0], Z), None), (Y, Y), length=1)[0][1],
    "while_loop": lambda: gc.while_loop(lambda s: s.sum() < 9, lambda s: Z, Y),
    "loop in a loop": lambda: gc.map(
        lambda w: gc.scan(lambda s, _: (Z + w, None), Y, length=1)[0], W.expand_dims("k"), "k"
    ),
    "vectorised": lambda: gc.vectorize(
        gc.scan(lambda s, _: (Z * W, None), Y, length=1)[0], {W: gc.constant([1.0, 2.0], "k")}
    ),
    "pullback": lambda: gc.pullback(Y * Y, Y, Z),
    "pushforward": lambda: gc.pushforward(Y * Y, Y, Z),
    "hvp": lambda: gc.hvp((Y**3).sum(), Y, Z),
    "custom_pullback": lambda: gc.grad(
        gc.custom_pullback(lambda y, z: y, lambda xs, y, ct: (ct.sum() * xs[1], ct))(Y, Z).sum(), Y
    ),
}


@pytest.mark.parametrize("case", DISAGREE)
def test_sizes_that_disagree_are_refused_at_the_call(case: str) -> None:
    """A result of size 1 would be repeated along the other's places."""
    f = gc.compile([Y, Z, W], DISAGREE[case]())
    for y, z in ((np.array([1.0, 2.0]), np.array([5.0])), (np.ones(1), np.ones(4))):
        with pytest.raises(gc.GraphValueError, match=r"test_loop_sizes.py:\d+.* needs .*'row'"):
            f(y, z, 1.0)


def test_sizes_that_agree_at_the_call() -> None:
    steps = gc.scan(lambda s, _: (s + Z, None), Y, length=2)[0]
    chosen = gc.cond(W > 0, lambda: Y, lambda: Z)
    three = gc.constant([1.0, 2.0, 3.0], "row")
    known = gc.cond(W > 0, lambda: three, lambda: Y)
    f = gc.compile([Y, Z, W], [steps, chosen, known, gc.grad((steps * chosen).sum(), [Y, Z])])
    y, z = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 7.0])
    for w in (1.0, -1.0):
        found = f(y, z, w)
        taken = y if w > 0 else z
        np.testing.assert_array_equal(found[0], y + 2 * z)
        np.testing.assert_array_equal(found[1], taken)
        np.testing.assert_array_equal(found[2], [1, 2, 3] if w > 0 else y)
        share = y + 2 * z
        np.testing.assert_array_equal(found[3][0], taken + share * (w > 0))
        np.testing.assert_array_equal(found[3][1], 2 * taken + share * (w < 0))


def test_a_result_has_the_size_that_is_known() -> None:
    """As that of `where` has."""
    three = gc.constant([1.0, 2.0, 3.0], "row")
    results = [
        gc.cond(W > 0, lambda: Y, lambda: three),
        gc.switch(W.astype("int64"), [lambda: Y, lambda: Z, lambda: three]),
        gc.fori_loop(0, 2, lambda i, s: s * three, Y),
        gc.while_loop(lambda s: s.sum() < 9, lambda s: s + three, Y),
    ]
    assert [y.shape for y in results] == [(3,)] * 4
    slopes = gc.grad(gc.cumprod(results[2], "row").sum() + (results[0] * results[3]).sum(), Y)
    f = gc.compile([Y, Z, W], [*results, slopes])
    y, steps = np.array([2.0, 1.0, 3.0]), np.array([1.0, 2.0, 3.0])
    found = f(y, y, 1.0)
    for got, wanted in zip(found, (y, y, y * steps**2, y + steps), strict=False):
        np.testing.assert_array_equal(got, wanted)
    product = np.cumprod(y * steps**2)
    sums = product[::-1].cumsum()[::-1] / y
    np.testing.assert_allclose(found[4], sums + y + y + steps)


def test_sizes_that_cannot_agree_are_refused_at_the_build() -> None:
    more = gc.concat([Y, gc.zeros({"row": 1})], "row")
    with pytest.raises(gc.GraphTypeError, match=r"carry.*\n.*\n.*f64\[row=row \+ 1\]"):
        gc.fori_loop(0, 1, lambda i, s: more, Y)
    with pytest.raises(gc.GraphTypeError, match="branches differ"):
        gc.cond(W > 0, lambda: more, lambda: Y)
