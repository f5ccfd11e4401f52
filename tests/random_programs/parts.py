"""Many random programs as several slow tests: pytest ends one that takes five minutes."""

from __future__ import annotations

from typing import Any

import pytest

LOOPS, OTHERS = 30, 150
"""How many programs a test checks, in about a minute of a slow core."""


def parts(kind: str, first: int, count: int) -> list[Any]:
    """Parameters kind, first, count of tests, which follow each other."""
    most, end = LOOPS if kind == "loops" else OTHERS, first + count
    return [
        pytest.param(kind, start, min(most, end - start), marks=pytest.mark.slow)
        for start in range(first, end, most)
    ]
