"""Every wrong call of tests/golden/bad_calls.txt is refused by law, and in the words there."""

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
NAME = re.compile(r"[\w.]+( at \S+:\d+( \(from \d+\))?)?: .")


@pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])
def test_a_refusal_says_what_is_wrong_and_what_to_do(case: Case) -> None:
    scope: dict[str, Any] = {}
    error = refusal(case, scope)
    message, _, cure = str(error).partition("\n  cure: ")
    assert isinstance(error, (TypeError, ValueError, IndexError, AttributeError, KeyError))
    assert error.__cause__ or error.__suppress_context__ or not error.__context__, "it is all"
    assert NAME.match(message), "it names the operation"
    line = case.setup.count("\n") + 1
    here = rf"at model\.py:{line}(\n|$)|^\w+ at model\.py:{line}: |\(from {line}\)"
    assert re.search(here, message), "it names the user's line"
    assert cure, "it says what to do"
    if not case.group.endswith("(no operands)"):
        assert OPERAND.search(message), "it shows the operands, and where they were built"
    check(cure, [{**general()[0], "index": scope["n"], **scope}, *general()])


def test_each_refusal_has_the_words_of_the_file(golden: Callable[[str, str], None]) -> None:
    """In a process of its own: a tensor that another test made as well is the same object."""
    program = "from tests.refusals.bad_calls import text; print(text())"
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    golden("bad_calls", result.stdout)
    assert len({(case.setup, case.code) for case in CASES}) == len(CASES) > 1200
