"""Squares of values in registers, one vector for each row."""

from __future__ import annotations

from collections.abc import Sequence

from .builder import Builder, Value


def transposed(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of as many rows as there are lanes: halves, then quarters are exchanged."""
    found, far = [*rows], len(rows) // 2
    while far:
        for i in [i for i in range(len(rows)) if not i & far]:
            x, y = found[i], found[i + far]
            found[i] = b.shuffle(x, [exchanged(k, far, len(rows), 0) for k in range(len(rows))], y)
            found[i + far] = b.shuffle(
                x, [exchanged(k, far, len(rows), far) for k in range(len(rows))], y
            )
        far //= 2
    return found


def exchanged(lane: int, far: int, width: int, shift: int) -> int:
    """The lane of two rows that comes to a lane of the first of them, or of the second."""
    return width + (lane - far) + shift if lane & far else lane + shift
