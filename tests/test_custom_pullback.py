"""Functions with a pullback of their own: what they may use, and each mode of derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

C = gc.constant([1.0, 2.0], "i") * 2


def close(found: Any, wanted: Any, rtol: float = 1e-12) -> None:
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-14)


# ---- what a function and its rule may use

COMPUTED: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "constant": lambda a: a * gc.constant([2.0, 4.0], "i"),
    "made inside": lambda a: a * (gc.constant([1.0, 2.0], "i") * 2),
    "made outside": lambda a: a * C,
    "arange": lambda a: a * (gc.arange(2, dim="i") + 1) ** 1 * 2,
    "in a loop": lambda a: gc.scan(lambda s, _: (s + a * C, None), 0.0, length=4)[0] / 4,
    "carried": lambda a: gc.fori_loop(0, 2, lambda i, s: s, C) * a,
    "counted": lambda a: gc.while_loop(lambda s: s < 1e9, lambda s: s + a * C, 0.0, max_steps=1),
    "jacobian": lambda a: gc.jacobian(a * a * C / 2, a).sum("i'"),
    "hessian": lambda a: gc.hessian((a * a * a * C / 6).sum(), a).sum("i'"),
}


@pytest.mark.parametrize("case", COMPUTED)
def test_what_depends_on_no_input_is_no_capture(case: str) -> None:
    """In the function and in its rule."""
    inside = COMPUTED[case]
    a = gc.tensor("a", {"i": 2})
    y = gc.custom_pullback(inside, lambda xs, y, ct: (inside(ct),))(a)
    f = gc.compile([a], [y, gc.grad(y.sum(), a), gc.pushforward(y, a, a)])
    at = np.array([3.0, 5.0])
    for found, wanted in zip(f(at), (at * [2, 4], [2, 4], at * [2, 4]), strict=True):
        close(found, wanted)


def test_a_rule_of_known_sizes_for_an_operand_of_an_unknown_one() -> None:
    a = gc.tensor("a", {"cell": None})
    weight = gc.constant([3.0, 7.0], "cell")
    y = gc.custom_pullback(lambda a: a * 1.0, lambda xs, y, ct: (ct.sum() * weight,))(a)
    f = gc.compile([a], gc.grad(y.sum(), a))
    close(f(np.ones(2)), [6.0, 14.0])
    with pytest.raises(gc.GraphValueError, match=r"custom_pullback.*'cell'.*3 and 2"):
        f(np.ones(3))
