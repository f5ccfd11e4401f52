"""Equal generated texts share one code object, and each program still speaks for itself."""

from __future__ import annotations

import linecache
import re
import sys

import numpy as np

import graphcore as gc
from benchmarks.programs import Program
from graphcore.backends.python_code import TEXTS_KEPT, python_code


def test_the_source_runs_as_it_is_shown() -> None:
    """Comments aside it is the text that Python compiles."""
    compiled = Program("kalman").make("graphcore")
    assert isinstance(compiled, gc.Compiled)
    shown = [re.sub(r"(?<=\S)  # .*", "", line) for line in compiled.source.splitlines()]
    assert shown == compiled._program.function.running.source.text.splitlines()
    assert "kalman.py:" in compiled.source


def inverse(name: str) -> gc.Compiled:
    x = gc.tensor(name, {"row": 2, "col": 2})
    return gc.compile([x], gc.linalg.inv(x, dims=("row", "col")), native=False)


def test_equal_texts_share_code_but_not_what_they_run_with():
    first, second = inverse("x"), inverse("y")
    a, b = first._program.function.running, second._program.function.running
    assert a.python is b.python
    assert a.code.scope is not b.code.scope
    np.testing.assert_array_equal(first(np.eye(2)), second(np.eye(2)))


def test_a_frame_belongs_to_one_of_two_programs_of_equal_text():
    """A program that a callback runs has lines of its own, even where the text is the same."""
    frames = []

    def around(function):
        x = gc.tensor("x", {"row": 2})
        return gc.compile([x], gc.exp(gc.callback(function, x)(x)), native=False)

    def looks(x):
        frame = sys._getframe()
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        return x

    inner = around(looks)
    outer = around(lambda x: inner(x))
    outer(np.ones(2))
    a, b = inner._program.function.running, outer._program.function.running
    assert a.python is b.python
    assert [sum(map(running.runs, frames)) for running in (a, b)] == [1, 1]
    assert not any(a.runs(frame) and b.runs(frame) for frame in frames)


def test_texts_are_forgotten_with_their_last_use():
    for i in range(TEXTS_KEPT + 8):
        python_code(f"forgotten = {i}")
    texts = [lines for _, _, lines, file in map(tuple, entries()) if file.startswith("<graphcore ")]
    assert ["forgotten = 0"] not in texts
    assert [f"forgotten = {TEXTS_KEPT + 7}"] in texts


def entries():
    return [entry for entry in list(linecache.cache.values()) if len(entry) == 4]
