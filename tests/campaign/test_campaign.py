"""The campaign of wrong arguments: every argument of every public function, each of many values.

A good call has one argument replaced. It is refused, saying what to do instead, or it is accepted
for a reason that tests/campaign/reasons.py has; it never ends in an error of Python from inside the
library, and it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest

from tests.campaign.calls import Place, good_calls, places, public
from tests.campaign.judge import outcome
from tests.campaign.reasons import reason
from tests.campaign.values import VALUES

SHARE = 10
"""One call of so many is made by default, all of them where slow tests run."""

FAILURES = ("no cure", "bare", "hang", "accepted: ")
"""No words, an error of Python, no end, or accepted for no reason."""


def judged(calls: Iterable[tuple[Place, str]]) -> dict[str, list[str]]:
    """The calls that came to each end."""
    found: dict[str, list[str]] = {}
    for place, wrong in calls:
        kind, result = outcome(place, VALUES[wrong])
        if kind == "accepted":
            kind = f"accepted: {reason(place, wrong)}"
        said = f": {result!r:.200}" if kind in FAILURES else ""
        found.setdefault(kind, []).append(f"{place} {wrong}{said}")
    return found


def calls() -> list[tuple[Place, str]]:
    return list(product(places(), VALUES))


def test_every_public_function_is_called() -> None:
    called = {id(call.function) for call in good_calls()}
    known = public().items()
    assert [name for name, (_, _, value) in known if id(value) not in called] == ["Tensor.sel"]


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, SHARE))]
)
def test_a_wrong_argument_is_refused_in_words(
    part: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where a wrong word for a path makes a file
    found = judged(calls()[part::SHARE])
    assert {kind: found[kind] for kind in FAILURES if kind in found} == {}
    assert len(found["refused"]) > 5 * sum(map(len, found.values())) / 6
