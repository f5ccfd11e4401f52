"""The campaign of wrong calls: every argument of every public function, each of many values.

A good call has one argument replaced. It is refused by the laws of judge.py, with a line and a cure
whose code is code, or it is accepted for a reason that tests/campaign/reasons.py has; it never ends
in an error of Python from inside the library, and it ends. So does a call of the wrong form.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest

import graphcore as gc
from graphcore.frontend.core.wrong_calls import reword_errors
from tests.campaign.calls import Place, good_calls, misfits, places, public
from tests.campaign.judge import judged, outcome
from tests.campaign.reasons import reason
from tests.campaign.values import VALUES

SHARE = 10
"""One call of so many is made by default, all of them where slow tests run."""


def ends(calls: Iterable[tuple[Place, str]]) -> dict[str, list[str]]:
    """The calls that came to each end."""
    found: dict[str, list[str]] = {}
    for place, wrong in calls:
        kind, result = outcome(place, VALUES[wrong])
        if kind == "accepted":
            kind = f"accepted: {reason(place, wrong)}"
        said = f": {result!r:.200}" if is_failure(kind) else ""
        found.setdefault(kind, []).append(f"{place} {wrong}{said}")
    return found


def is_failure(kind: str) -> bool:
    return kind == "accepted: " or kind.startswith(("no ", "bare", "hang"))


def calls() -> list[tuple[Place, str]]:
    return list(product(places(), VALUES))


def test_every_public_function_is_called() -> None:
    called = {id(call.function) for call in good_calls()}
    known = public().items()
    missing = [name for name, (_, _, value) in known if id(value) not in called]
    assert sorted(missing) == ["Tensor.sel", "graphcore.join_processes"]  # which would wait


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, SHARE))]
)
def test_a_wrong_argument_is_refused_in_words(
    part: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where a wrong word for a path makes a file
    found = ends(calls()[part::SHARE])
    assert {kind: found[kind] for kind in found if is_failure(kind)} == {}
    assert len(found["refused"]) > 5 * sum(map(len, found.values())) / 6


@pytest.mark.parametrize("name", [name for name in public() if not name.endswith("__")])
def test_a_call_that_does_not_fit_is_refused_in_words(name: str) -> None:
    _, called, function = public()[name]
    assert reword_errors(function) is function
    for args, options, says in misfits(function):
        kind, error = judged(function, args, options)
        assert kind == "refused", error
        assert re.match(rf"((tree|at)\.)?({function.__name__}|{called}): ", str(error))
        assert re.search(says, str(error))
        if shown := re.search(r"\n  cure: write (gc\.[\w.]+)\(", str(error)):
            assert inspect.unwrap(eval(shown[1], {"gc": gc})) is inspect.unwrap(function)
