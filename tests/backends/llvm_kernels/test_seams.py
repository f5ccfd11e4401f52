"""Rolled, shifted and concatenated tensors: the middle of a loop reads one part of each alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import graphcore as gc

from .native import needs_machine_code, slowly

pytestmark = needs_machine_code

ROW, COL = "row", "col"


def rolled(x: gc.Tensor, rows: int, cols: int) -> gc.Tensor:
    return x.roll(row=rows, col=cols)


def all_around(x: gc.Tensor) -> gc.Tensor:
    return x.roll(row=1) + x.roll(row=-1) + 2 * x.roll(col=1) - x.roll(col=-1) / 3


def directions(x: gc.Tensor) -> gc.Tensor:
    moved = [rolled(x * k, k % 3 - 1, k // 3 - 1) for k in range(9)]
    return gc.concat([one.expand_dims("of") for one in moved], "of")


PROGRAMS: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "rolled": lambda x: gc.exp(x.roll(col=2)) * x,
    "rolled far": lambda x: x.roll(col=40) - x.roll(row=-3),
    "all around": all_around,
    "directions": directions,
    "of computed values": lambda x: all_around(gc.sin(x)),
    "rolled twice": lambda x: rolled(rolled(x, 1, -1), 2, 3) * x,
    "thrice, and sums": lambda x: x.roll(col=1).roll(col=2).roll(col=3).sum(ROW) + x.sum(ROW),
    "summed along lanes": lambda x: (x * x.roll(col=1)).sum(COL),
    "turned": lambda x: (x.roll(col=1) + x).transpose(COL, ROW),
    "of a part": lambda x: x[{COL: slice(None, None, 2)}].roll(col=1) * 2,
    "backwards": lambda x: gc.flip(x.roll(col=1), COL) + x,
    "three of each": lambda x: x.roll(col=1) * gc.constant([1.0, 2.0, 3.0], "of"),
    "padded": lambda x: gc.pad(x, {COL: (1, 2)}, constant_values=7)[{COL: slice(1, -2)}] + x,
    "padded around": lambda x: gc.pad(x.roll(col=1), {COL: (1, 1), ROW: (2, 0)}) * 2,
    "shifted": lambda x: x.shift(col=1, fill_value=-1.0) + x.shift(col=-2, fill_value=5.0),
    "joined": lambda x: gc.concat([x, 2 * x, x.roll(col=1)], COL) + 1,
    "joined in rows": lambda x: gc.concat([x, x.roll(col=1), -x], ROW),
    "signs": lambda x: (x > 0).roll(col=1) & (x < 1),
    "short": lambda x: (x.astype("float32") * 3).roll(col=1) + x.astype("float32"),
    "repeated along lanes": lambda x: x.roll(col=1) + x.sum(COL) * gc.ones_like(x).roll(row=1),
}
FAST = "rolled", "directions"
SIZES = [(0, 0), (1, 0), (0, 5), (1, 1), (2, 2), (3, 7), (1, 8), (4, 9), (5, 17), (2, 33), (11, 70)]


@cache
def compiled(name: str, native: bool) -> gc.Compiled:
    x = gc.tensor("x", {ROW: None, COL: None})
    return gc.compile([x], PROGRAMS[name](x), native=native)


@pytest.mark.parametrize("name", [*FAST, *slowly(*[x for x in PROGRAMS if x not in FAST])])
def test_values_at_all_places(name: str) -> None:
    """Sizes at and around whole vectors, empty ones and those that a roll goes around."""
    rng = np.random.default_rng(3)
    for rows, cols in SIZES:
        x = rng.standard_normal((rows, cols))
        expected = compiled(name, False)(x)
        found = compiled(name, True)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14, err_msg=f"{x.shape}")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "signs"])
def test_gradients(name: str) -> None:
    x = gc.tensor("x", {ROW: None, COL: None})
    y = PROGRAMS[name](x)
    g = gc.grad((y * y).sum(), x)
    h = gc.pushforward(g, x, gc.cos(x))
    tiers = [gc.compile([x], {"g": g, "h": h}, native=native) for native in (True, False)]
    for rows, cols in SIZES:
        given = np.random.default_rng(4).standard_normal((rows, cols))
        found, expected = [f(given) for f in tiers]
        for key in "gh":
            np.testing.assert_allclose(found[key], expected[key], rtol=1e-5, atol=1e-5)


def test_rolled_values_are_read_where_they_lie() -> None:
    """One nest for the values and one for all that read them: no copy of a rolled tensor."""
    text = compiled("of computed values", True).source
    assert text.count(" for row, col:") == 2
    assert text.count("\n        t") == 1
