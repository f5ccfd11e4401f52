"""Large tables of which slow tests run a share: XLA takes seconds to compile a program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def shared(values: Iterable[Any], every: int) -> list[Any]:
    """Parameters of a test: one of `every` so many is a slow test, the others wait for a hand."""
    slow, whole = pytest.mark.slow, (pytest.mark.slow, pytest.mark.whole)
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)), marks=whole if k % every else slow
        )
        for k, value in enumerate(values)
    ]
