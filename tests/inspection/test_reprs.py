"""Stages, passes and rules say what they are."""

from __future__ import annotations

import re

from graphcore.backends.targets import NUMPY
from graphcore.rewrites.algebra import algebra
from graphcore.rewrites.stabilise import stabilise
from tests.inspection.test_golden import logistic_regression


def test_stages() -> None:
    f = logistic_regression()
    assert re.fullmatch(r"<Stages named: \d+ nodes, .*scheduled: \d+ nodes>", repr(f.stages))
    for made in f.passes:
        assert re.fullmatch(
            rf"<Stage '{made.name}': \d+ nodes, \d+ rewrites, [\d.]+ ms>", repr(made)
        )


def test_passes() -> None:
    said = {repr(each) for each in NUMPY.passes}
    assert not any(re.search("0x[0-9a-f]{6}", text) for text in said)
    shown = "\n".join(said)
    assert re.search(r"<Pass 'expanded': expand_derivatives \(expand.py:\d+\)>", shown)
    assert re.search(r"<Pass 'loops merged': merge_loops \(sharing.py:\d+\)>", shown)
    assert re.search(r"<Pass 'simplified': <RuleSet: \d+ rules of .*stabilise.py, .*>>", shown)
    assert "<Repeat contractions gathered, " in shown


def test_rules() -> None:
    assert re.fullmatch(r"<RuleSet: \d+ rules of stabilise.py>", repr(stabilise))
    assert "log(add(1, x)) = log1p(x)" in map(repr, stabilise.rules())
    for rule in (*algebra.rules(), *stabilise.rules()):
        assert "..." not in repr(rule)


def test_records() -> None:
    records = [record for made in logistic_regression().passes for record in made.records]
    shown = [repr(record) for record in records]
    assert any("log(add(1, x)) = log1p(x) (stabilise.py:" in text for text in shown)
