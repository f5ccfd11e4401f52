"""Every wrong call of tests/golden/bad_calls.txt is refused in the user's words, by law."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.refusals.bad_calls import CASES, Case, refusal
from tests.refusals.cures import check, general

ROOT = Path(__file__).parents[2]
OPERAND = re.compile(r"[\w)]: \(?(bool|[iufc]\d+)\[.*\], built at \S+:\d|declared as|result is")
NO_OPERANDS = {
    *("names that there are not", "where no tensor stands", "compiling", "loops and branches"),
}
"""Groups in which there may be no tensor to show."""


@pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])
def test_a_refusal_says_what_is_wrong_and_what_to_do(case: Case) -> None:
    scope: dict[str, Any] = {}
    error = refusal(case, scope)
    message, _, cure = str(error).partition("\n  cure: ")
    assert isinstance(error, (TypeError, ValueError, IndexError, AttributeError, KeyError))
    assert re.match(r"[\w.]+: .", message), "it names the operation"
    line = case.setup.count("\n") + 1
    assert f"at model.py:{line}\n" in message + "\n", "it names the user's line"
    assert cure, "it says what to do"
    if case.group not in NO_OPERANDS:
        assert OPERAND.search(message), "it shows the operands, and where they were built"
    check(cure, [{**general()[0], **scope, "index": scope["n"]}, *general()])


def test_each_refusal_is_word_by_word_that_of_the_file(golden: Callable[[str, str], None]) -> None:
    """In a process of its own: a tensor that another test made as well is the same object."""
    program = "from tests.refusals.bad_calls import text; print(text())"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    golden("bad_calls", result.stdout)
    assert len({(case.setup, case.code) for case in CASES}) == len(CASES) > 500
