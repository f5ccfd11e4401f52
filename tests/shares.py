"""Slow tests run a share of large tables and campaigns; the rest, `whole`, is run by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

LOOPS, OTHERS = 30, 150
"""How many random programs a test checks, in about a minute: pytest ends one of five minutes."""


def shared(values: Iterable[Any], every: int) -> list[Any]:
    """Parameters of a test: one in `every` is a slow test, the others are run by hand."""
    slow, whole = pytest.mark.slow, (pytest.mark.slow, pytest.mark.whole)
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=whole if k % every else slow
        )
        for k, value in enumerate(values)
    ]


def parts(kind: str, first: int, count: int) -> list[Any]:
    """Parameters kind, first, count of tests of random programs; `.ci/run` runs one in six."""
    most, end = LOOPS if kind == "loops" else OTHERS, first + count
    starts = range(first, end, most)
    return shared([(kind, start, min(most, end - start)) for start in starts], 6)
