"""Sizes of loops, branches and cotangents that only the call can compare."""

from __future__ import annotations

import numpy as np

import graphcore as gc

Y = gc.tensor("y", {"row": None})
Z = gc.tensor("z", {"row": "m"})
W = gc.tensor("w", {})


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
