"""Slopes of the functions users call, at all points at once, against the stored references."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

import graphcore as gc
from graphcore.ops import elementwise, special
from graphcore.ops.elementwise import UFUNC, UNKNOWN
from graphcore.rewrites.derivatives import PARTIALS
from tests.ops.tables import INTERNAL

from .points import points as points_of
from .reference import ORDERS

STORED = Path(__file__).with_name("references.npz")
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}
CONSTANT = {
    *(elementwise.sign, elementwise.floor, elementwise.ceil, elementwise.trunc, elementwise.rint),
    *(elementwise.spacing, elementwise.floor_divide, elementwise.heaviside, elementwise.nextafter),
    special.gammasgn,
}
"""Functions whose slopes are 0 or that take floats as they are counted."""
COMPOSED = {"log_expit": 1}
"""Functions that are no op of their own, and how many operands they have."""


def names() -> dict[str, int]:
    """The functions of one and two operands, and how many."""
    found = {}
    for op in UFUNC:
        if (
            op in INTERNAL | CONSTANT
            or op not in PARTIALS
            or op.module.partition(".")[0] != "graphcore"
        ):
            continue
        count = len(signature(PARTIALS[op]).parameters) - 1  # besides its value
        if count <= 2 or op.name.startswith("betainc"):
            found[op.name] = count
    return found | COMPOSED


@cache
def stored() -> dict[str, np.ndarray]:
    with np.load(STORED) as file:
        return dict(file)


def public(name: str) -> Callable[..., gc.Tensor]:
    if name == "expn":  # that of users takes its order as a number
        return lambda *xs: gc.Tensor(special.expn(*[x.node for x in xs]))
    return getattr(gc.special, name, None) or getattr(gc, name)


def derivatives(name: str, xs: list[gc.Tensor], reverse: bool, most: int) -> dict[Any, gc.Tensor]:
    """All derivatives up to an order, each that of the one before by one of the operands."""
    by_name = {op.name: unknown for op, unknown in UNKNOWN.items()}
    found = {(0,) * len(xs): public(name)(*xs)}
    for order in ORDERS[len(xs)]:
        if sum(order) > most or any(order[k] for k in by_name.get(name, ())):
            continue
        k = next(k for k, n in enumerate(order) if n)
        before = found[tuple(n - (j == k) for j, n in enumerate(order))]
        if reverse:
            found[order] = gc.grad(before, xs[k], per="i", disconnected="zero")
        else:
            ones = [gc.ones_like(xs[k])]
            found[order] = gc.pushforward(before, [xs[k]], ones, disconnected="zero")
    return found


def slow(name: str, points: np.ndarray) -> np.ndarray:
    """Points at which SciPy takes seconds."""
    size = np.abs(points)
    if name == "zeta":
        return points[:, -1] < -1e3
    return (size[:, 0] >= 1e8) & (name == "yv")


def wrong_points(
    name: str, dtype: str, native: bool, reverse: bool, most: int = 3
) -> tuple[int, list[tuple[Any, np.ndarray, float, float]]]:
    """How many slopes there are, and those that are off: order, point, right and found."""
    count = names()[name]
    points, table = points_of(count), stored()[name]
    with np.errstate(all="ignore"):
        exact = (points.astype(dtype) == points).all(1) & ~slow(name, points)
    points, table = points[exact], table[exact]
    xs = [gc.tensor(f"x{k}", {"i": None}, dtype=dtype) for k in range(count)]
    asked = derivatives(name, xs, reverse, most)
    f = gc.compile(xs, list(asked.values()), native=native)
    with np.errstate(all="ignore"):
        given = [np.ascontiguousarray(points[:, k].astype(dtype)) for k in range(count)]
        found = dict(zip(asked, f(*given), strict=True))
        return judged(found, points, table, dtype)


def judged(found: dict[Any, Any], points: Any, table: Any, dtype: str) -> Any:
    info, tolerance = np.finfo(dtype), TOLERANCE[dtype]
    looked, off = 0, []
    value, *slopes = found.values()
    for order, slope in zip(list(found)[1:], slopes, strict=True):
        right = table[:, 1 + ORDERS[len(order)].index(order)]
        size = np.abs(right)
        normal = np.isfinite(table[:, 0]) & (size >= info.tiny) & (size <= info.max)
        miss = normal & ~(np.abs(slope - right) <= tolerance * size)
        looked += int(normal.sum())
        off += [(order, points[i], right[i], slope[i]) for i in np.flatnonzero(miss)]
        moves = np.any(np.isfinite(slope) & (slope != 0))  # not where x is linear in it
        outside = np.isnan(value) & np.isfinite(slope) & moves
        off += [(order, points[i], np.nan, slope[i]) for i in np.flatnonzero(outside)]
    return looked, off
