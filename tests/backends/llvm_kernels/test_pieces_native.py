"""Kernels that call kernels for the pieces of a long program."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from benchmarks import compile_time
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels import entrance
from graphcore.backends.llvm_kernels.passes import pieces
from graphcore.ops.schedule import kernel
from tests.machine_code import kernels
from tests.shares import parts
from tests.targets.comparing import Both, attempt
from tests.targets.drawing import differing

from .native import needs_machine_code

pytestmark = needs_machine_code


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a few nodes, so that short programs have some."""
    monkeypatch.setattr(pieces, "LONG_GRAPH", 5)
    monkeypatch.setattr(pieces, "LARGEST_PIECE", 6)
    monkeypatch.setattr(pieces, "LEAST_PIECE", 2)


@pytest.mark.parametrize(
    ("kind", "first", "count"),
    [
        *[("programs", 700, 4), ("graphs", 4, 3), ("loops", 4, 1)],
        *parts("programs", 3000, 300),
        *parts("graphs", 5, 300),
        *parts("loops", 5, 100),
    ],
)
@pytest.mark.usefixtures("short")
def test_random_programs(kind: str, first: int, count: int) -> None:
    assert differing(kind, first, count) == []


def test_a_long_chain_and_its_gradient(random: np.random.Generator) -> None:
    inputs, y = compile_time.chain(1000)
    both = Both(gc.compile(inputs, [y, *gc.grad(y, inputs)]))
    for rows in (0, 1, 9, 100):
        verdict = both.compare(list(random.standard_normal((2, rows))))
        assert verdict.kind in ("equal", "close", "rounding"), verdict


def bodies(compiled: gc.Compiled) -> int:
    """How many different kernels a program is made of."""
    made = kernels(compiled)
    return len({x.attrs["body"] for x in made.every_node() if x.op is kernel})


def test_equal_pieces_are_compiled_once() -> None:
    inputs, y = compile_time.chain(1500)
    f = gc.compile(inputs, y, native=True)
    called = [x.attrs["body"] for x in f.stages["kernels"].every_node() if x.op is kernel]
    assert len(called) > 10
    assert len({*called}) < 8
    assert f.llvm.count("define i64 @kernel") == len({*called})
    f._program.prepare()  # machine code is made
    assert {*called} <= {body for body, _ in llvm_kernels.MADE}


def same_words(compiled: gc.Compiled, *args: Any) -> str:
    both = Both(compiled)
    found, wanted = attempt(both.native, args), attempt(both.calls, args)
    assert isinstance(wanted, str)
    assert found == wanted
    return wanted


@pytest.mark.usefixtures("short")
def test_an_error_names_the_line_and_the_steps_around_it() -> None:
    x = gc.tensor("x", {"row": None})
    at = gc.tensor("at", {"time": None, "inner": None}, dtype="int64")

    def wave(y: gc.Tensor) -> gc.Tensor:
        for _ in range(8):
            y = gc.sin(y) * x.sum() + y
        return y

    def outer(s: gc.Tensor, ks: gc.Tensor) -> Any:
        def step(s: gc.Tensor, k: gc.Tensor) -> Any:
            s = wave(s) + x.isel(row=k)
            return wave(s) * x.isel(row=k + 1), None

        last, _ = gc.scan(step, wave(s), ks, dim="inner", reverse=True)
        return wave(last), None

    last, _ = gc.scan(outer, x.sum(), at, dim="time")
    line = sys._getframe().f_lineno - 6
    f = gc.compile([x, at], last)
    assert bodies(f) > 3
    positions = np.zeros((4, 3), np.int64)
    for value, where in ((5, line - 1), (1, line)):
        positions[2, 1] = value
        words = same_words(f, np.full(2, 0.1), positions)
        assert f":{where}" in words
        assert words.index("in step 1 (from 0)") < words.index("in step 2 (from 0)")
    positions[2, 1] = 0
    verdict = Both(f).compare([np.full(2, 0.1), positions])
    assert verdict.kind in ("equal", "close", "rounding")


@pytest.mark.usefixtures("short")
def test_sizes_that_loops_find() -> None:
    """The reverse of a loop is in pieces, which are given how many steps there were."""
    x = gc.tensor("x", {"row": None})

    def step(y: gc.Tensor) -> gc.Tensor:
        for _ in range(5):
            y = gc.sin(y) * 0.9 + gc.tanh(y * x) * 0.01
        return y

    y = gc.while_loop(lambda y: (y * y).sum() > 1e-3, step, x)
    both = Both(gc.compile([x], [y, *gc.grad((y * y).sum(), [x])]))
    for rows in (1, 3, 17):
        verdict = both.compare([np.linspace(0.5, 1.0, rows)])
        assert verdict.kind in ("equal", "close", "rounding"), verdict


@pytest.mark.usefixtures("short")
def test_loops_that_find_one_size_are_in_no_pieces_of_their_own() -> None:
    """A loop that is computed again finds the same size as the first one."""
    x, t = gc.tensor("x", {"row": None}), gc.tensor("t", {"row": None})
    n = gc.tensor("n", {}, dtype="int64")

    def solved(ct: gc.Tensor) -> gc.Tensor:
        away = lambda v: (abs(ct + v / 4 - v) > 1e-14 * abs(ct).sum()).any()
        return 0.75 * gc.while_loop(away, lambda v: ct + v / 4, ct)

    def pullback(operands: Any, y: gc.Tensor, ct: gc.Tensor) -> Any:
        a, b = operands
        slope = solved(ct) * gc.cos(a * b)
        return slope * b, slope * a

    own = gc.custom_pullback(lambda a, b: gc.sin(a * b), pullback)
    y = gc.fori_loop(0, n, lambda i, c: 0.8 * c + own(c, own(x, c)), x, checkpoint=1)
    slope = gc.grad((y * y).sum(), x)
    both = Both(gc.compile([x, t, n], [y, slope, gc.grad((slope * t).sum(), x)]))
    for rows in (1, 2, 9):
        verdict = both.compare([*np.random.default_rng(0).normal(size=(2, rows)), np.array(3)])
        assert verdict.kind in ("equal", "close", "rounding"), verdict


@pytest.mark.usefixtures("short")
def test_nests_of_pieces_look_for_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrance, "HUGE_NEST", 1)
    inputs, y = compile_time.chain(40)
    both = Both(gc.compile(inputs, [y, *gc.grad(y, inputs)]))
    for rows in (1, 9, 100):
        verdict = both.compare(list(np.random.default_rng(0).standard_normal((2, rows))))
        assert verdict.kind in ("equal", "close", "rounding"), verdict
