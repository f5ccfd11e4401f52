"""The programs of the benchmarks as cases of tests, and the work of a call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from benchmarks.programs import NAMES


def every_program(*quick: str) -> list[Any]:
    """The names of all programs; the tests of those that are not `quick` are slow."""
    assert {*quick} <= {*NAMES}
    return [x if x in quick else pytest.param(x, marks=pytest.mark.slow) for x in NAMES]


def lines_run(function: Callable[[], object]) -> int:
    """How many lines of Python a call runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
