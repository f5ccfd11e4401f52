"""Every wrong call is refused in the user's words; tests/golden/bad_calls.txt shows them all."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.refusals.bad_calls import CASES, NO_OPERANDS, refusal

ROOT = Path(__file__).parents[2]
OPERAND = re.compile(r"[\w)]: \(?(bool|[iufc]\d+)\[.*\], built at \S+:\d|declared as|result is")


@pytest.mark.parametrize(("setup", "group", "code", "says"), CASES, ids=[case[2] for case in CASES])
def test_a_refusal_says_what_is_wrong_and_what_to_do(
    setup: str, group: str, code: str, says: list[str]
) -> None:
    error = refusal(setup, code)
    message = str(error)
    assert isinstance(error, (TypeError, ValueError, IndexError, AttributeError))
    assert re.match(r"[\w.]+: .", message), "it names the operation"
    line = setup.count("\n") + 1
    assert f"at model.py:{line}\n" in message, "it names the user's line"
    assert re.search(r"^  cure: .", message, re.MULTILINE), "it says what to do"
    if group not in NO_OPERANDS:
        assert OPERAND.search(message), "it shows the operands, and where they were built"
    for word in says:
        assert word in message


def test_all_refusals(golden: Callable[[str, str], None]) -> None:
    """In a process of its own: a tensor that another test made as well is the same object."""
    program = "from tests.refusals.bad_calls import text; print(text())"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    golden("bad_calls", result.stdout)
    assert len(CASES) >= 200
