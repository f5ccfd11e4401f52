"""Printed graphs, to the letter."""

from __future__ import annotations

import io
import re
from textwrap import dedent

import numpy as np
import pytest

import graphcore as gc


def printed(*args: object, **kwargs: object) -> str:
    """What debug_print prints, without origins."""
    out = io.StringIO()
    gc.debug_print(*args, file=out, **kwargs)  # type: ignore[arg-type]
    lines = [re.sub(r"\s+\S+\.py:\d+( ← \d+)*$", "", line) for line in out.getvalue().splitlines()]
    return "\n".join(lines)


def test_a_pullback_is_one_line_until_it_is_expanded() -> None:
    x = gc.tensor("x", {"batch": None, "feature": 8})
    w = gc.tensor("w", {"feature": 8, "class": 3})
    logits = gc.dot(x, w, dim="feature")
    loss = (logits * logits).mean(["batch", "class"])
    assert printed([loss, gc.grad(loss, w)]) == dedent("""\
        x : f64[batch, feature=8]     = input
        w : f64[feature=8, class=3]   = input
        %0: f64[batch, class=3]       = dot(x, w; over feature)
        %1: f64[batch, class=3]       = multiply(%0, %0)
        %2: f64[]                     = mean(%1; over batch, class)
        %3: (f64[feature=8, class=3]) = pullback(%2, wrt w, ct 1)
        %4: f64[feature=8, class=3]   = project(%3; index 0)
        return %2, %4""")


def test_every_stage_shows_the_names_of_its_axes() -> None:
    x = gc.tensor("x", {"batch": None, "feature": 8})
    w = gc.tensor("w", {"feature": 8, "class": 3})
    loss = gc.tanh(gc.dot(x, w, dim="feature")).sum()
    f = gc.compile([x, w], gc.grad(loss, w))
    for stage in f.stages:
        text = printed(f, stage)
        assert "batch" in text
        assert "feature=8, class=3" in text


def test_the_scheduled_stage_shows_buffers() -> None:
    x = gc.tensor("x", {"batch": None})
    f = gc.compile([x], gc.exp(gc.sin(x)).sum())
    assert re.search(r"sin\(x\)\s+b0", printed(f, "scheduled"))


@pytest.mark.parametrize(
    "name", ["x); import os #", "a\nb", "a\u2028b", "\x1b[31m", "é" * 10_000, "😀", "class", ""]
)
def test_hostile_names_stay_on_their_line(name: str) -> None:
    x = gc.tensor(name, {f"{name}dim": None, "other": 2})
    f = gc.compile([x], [(x * x).sum("other"), gc.grad(gc.exp(x).sum(), x)])
    for stage in f.stages:
        lines = printed(f, stage).splitlines()
        assert max(map(len, lines)) < 400
        assert all(line.isprintable() for line in lines)
    assert name == "" or f"{name}dim" not in f.source
    value, _ = f(np.ones((3, 2)))
    np.testing.assert_array_equal(value, [2, 2, 2])


def test_long_graphs_are_abbreviated() -> None:
    y = gc.tensor("x", {"a": 2})
    for _ in range(20_000):
        y = gc.sin(y)
    text = printed(y)
    assert len(text.splitlines()) < 250
    assert "nodes more: sin" in text


def test_nested_tensors_and_unknown_stages() -> None:
    x = gc.tensor("x", {"a": 2})
    assert printed({"one": x, "two": [x + 1]}).endswith("return x, %0")
    f = gc.compile([x], x)
    with pytest.raises(gc.GraphError, match="did you mean 'expanded'"):
        gc.debug_print(f, "expandd")
    with pytest.raises(gc.GraphError, match="holds no graph"):
        gc.debug_print(3)
    with pytest.raises(gc.GraphError, match="no stage"):
        f.diff("named", "nowhere")


def test_diff_marks_what_changed() -> None:
    x = gc.tensor("x", {"a": 2})
    f = gc.compile([x], gc.log(1 + gc.exp(x)))
    text = f.diff("lowered", "simplified")
    assert re.search(r"^- .*log\(", text, re.MULTILINE)
    assert re.search(r"^\+ .*softplus\(x\)", text, re.MULTILINE)
    assert text.endswith("1 kept, 3 removed, 1 added")


def test_colour_only_where_asked() -> None:
    x = gc.tensor("x", {"a": 2})
    assert "\x1b" not in printed(x)
    assert "\x1b" in printed(x, color=True)
