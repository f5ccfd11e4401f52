"""The programs of the benchmarks as cases of tests."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.programs import NAMES


def every_program(*quick: str) -> list[Any]:
    """The names of all programs; the tests of those that are not `quick` are slow."""
    assert {*quick} <= {*NAMES}
    return [x if x in quick else pytest.param(x, marks=pytest.mark.slow) for x in NAMES]
