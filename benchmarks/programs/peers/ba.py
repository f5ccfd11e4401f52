"""The error of one observation in the words that JAX and PyTorch share; `xp` is either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CAMERA = "rotation", "centre", "focal", "principal", "radial"


def error_with(xp: Any, cross: Callable[..., Any]) -> Callable[..., Any]:
    def rotated(x, by):
        square = by @ by
        turns = square > 0
        angle = xp.sqrt(xp.where(turns, square, 1.0))
        axis = by / angle
        along = axis * (axis @ x) * (1 - xp.cos(angle))
        turned = x * xp.cos(angle) + cross(axis, x) * xp.sin(angle) + along
        return xp.where(turns, turned, x + cross(by, x))

    def error(p, seen):
        x = rotated(p["point"] - p["centre"], p["rotation"])
        flat = x[:2] / x[2]
        square = flat @ flat
        bent = flat * (1 + p["radial"][0] * square + p["radial"][1] * square**2)
        return p["weight"] * (bent * p["focal"] + p["principal"] - seen)

    return error
