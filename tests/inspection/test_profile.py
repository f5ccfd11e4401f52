"""`Compiled.profile`: parts that add up, and counts that equal those made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.llvm_kernels.measuring import without_looks
from graphcore.backends.llvm_kernels.meters import Spent, Timing
from graphcore.inspection.profile import Profile

HERE = "test_profile.py"
machine_code = pytest.mark.skipif(
    llvm_kernels.unavailable() is not None, reason=str(llvm_kernels.unavailable())
)
TARGETS = pytest.mark.parametrize("native", [False, pytest.param(True, marks=machine_code)])


def vector() -> gc.Tensor:
    return gc.tensor("u", {"time": None})


def counted(found: Profile) -> dict[str, tuple[int, int, float]]:
    """The calls, bytes and flops of the steps that compute something, by their ops."""
    return {
        step.says.partition("= ")[2].partition("(")[0]: (step.calls, step.bytes, step.flops)
        for step in found.steps
        if step.flops
    }


def adds_up(found: Profile) -> None:
    """Each of the three tables is the whole call."""
    assert 0 < found.seconds <= found.measured
    assert 0 < found.scale <= 1
    assert (found.scale < 0.995) == ("are multiplied by" in repr(found))
    for parts in (found.steps, found.lines, found.derivatives):
        assert sum(part.seconds for part in parts) == pytest.approx(found.seconds, rel=1e-6)
        assert [part.seconds for part in parts] == sorted((x.seconds for x in parts), reverse=True)
        assert all(part.seconds >= 0 for part in parts)


# ---- counts made by hand


@TARGETS
def test_a_product_of_matrices(native: bool) -> None:
    a, b = gc.tensor("a", {"i": None, "k": None}), gc.tensor("b", {"k": None, "j": None})
    f = gc.compile([a, b], gc.dot(a, b, dim="k"), native=native)
    found = f.profile(np.ones((30, 40)), np.ones((40, 50)))
    moved = 8 * (30 * 40 + 40 * 50 + 30 * 50)
    assert counted(found) == {"matmul": (1, moved, 2 * 30 * 40 * 50)}
    assert found.memory.peak == 8 * 30 * 50
    adds_up(found)


@TARGETS
def test_softmax(native: bool) -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    f = gc.compile([x], gc.special.softmax(x, "col"), native=native)
    found = f.profile(np.ones((30, 40)))
    n, rows = 30 * 40, 30
    assert counted(found) == {
        "max": (1, 8 * (n + rows), n),
        "subtract": (1, 8 * (n + rows + n), n),
        "exp": (1, 8 * 2 * n, 10 * n),
        "sum": (1, 8 * (n + rows), n),
        "maximum": (1, 8 * (rows + 1 + rows), rows),  # at least 1, as the largest is exp(0)
        "divide": (1, 8 * (n + rows + n), 10 * n),
    }
    adds_up(found)


@TARGETS
def test_a_stencil(native: bool) -> None:
    u = vector()
    left, middle, right = (u[{"time": slice(i, i - 2 if i < 2 else None)}] for i in range(3))
    f = gc.compile([u], left - 2 * middle + right, native=native)
    n = 998
    assert counted(f.profile(np.ones(1000))) == {
        "multiply": (1, 8 * (1 + n + n), n),
        "subtract": (1, 8 * 3 * n, n),
        "add": (1, 8 * 3 * n, n),
    }


@TARGETS
def test_a_loop(native: bool) -> None:
    u = vector()
    last, _ = gc.scan(lambda level, d: (d * level + 1, None), 0.0, u, dim="time")
    found = gc.compile([u], last, native=native).profile(np.ones(500))
    assert counted(found) == {"multiply": (500, 500 * 24, 500), "add": (500, 500 * 24, 500)}
    assert [step.calls for step in found.steps if "scan" in step.says] == [1]
    adds_up(found)


@TARGETS
def test_a_loop_that_finds_its_own_end(native: bool) -> None:
    u = vector()
    last = gc.while_loop(lambda c: c < 100.0, lambda c: 2 * c, u.sum())
    f = gc.compile([u], [last, gc.grad(last, u)], native=native)
    found = f.profile(np.ones(2))
    assert counted(found)["multiply"][0] % 6 == 0
    assert counted(found)["less"][0] == 7
    adds_up(found)


@TARGETS
def test_a_loop_within_a_loop(native: bool) -> None:
    u = vector()

    def outer(level: gc.Tensor, d: gc.Tensor) -> Any:
        inner = gc.fori_loop(0, 7, lambda i, x: x * d + i, level)
        return inner, None

    last, _ = gc.scan(outer, 0.0, u, dim="time")
    found = gc.compile([u], last, native=native).profile(np.ones(11))
    assert counted(found)["multiply"][0] == 77
    adds_up(found)


# ---- parts


@TARGETS
def test_a_planted_slow_line_comes_first(native: bool) -> None:
    a = gc.tensor("a", {"i": 400, "k": 400})
    small = gc.exp(a[{"i": 0}]).sum()
    slow = gc.dot(a, a.rename(i="j"), dim="k")
    f = gc.compile([a], [small, slow], native=native)
    found = f.profile(np.ones((400, 400)))
    assert found.lines[0].says == 'slow = gc.dot(a, a.rename(i="j"), dim="k")'
    assert found.lines[0].name.startswith(f"{HERE}:")
    assert found.steps[0].flops == 2 * 400**3
    assert found.steps[0].limit is not None


@TARGETS
def test_a_slow_line_in_a_loop_comes_first(native: bool) -> None:
    u, m = vector(), gc.tensor("m", {"i": 200, "k": 200})

    def step(level: gc.Tensor, d: gc.Tensor) -> Any:
        cheap = d + 1
        slow = gc.dot(m, m.rename(i="j") * level, dim="k").max()
        return slow, cheap

    last, _ = gc.scan(step, 1.0, u, dim="time")
    found = gc.compile([u, m], last, native=native).profile(np.ones(5), np.zeros((200, 200)))
    assert found.lines[0].says.startswith("slow = ")
    assert found.lines[0].calls >= 15


@machine_code
def test_a_slow_line_among_numbers_in_a_loop_comes_first() -> None:
    u = vector()

    def step(level: gc.Tensor, d: gc.Tensor) -> Any:
        cheap = gc.maximum(level, d)
        rows = gc.arange(2000.0, dim="row") * cheap
        slow = gc.special.gammaln(rows + 1).sum()
        return gc.tanh(slow) + cheap, cheap

    last, _ = gc.scan(step, 1.0, u, dim="time")
    found = gc.compile([u], last, native=True).profile(np.ones(30))
    assert found.lines[0].says.startswith("slow = ")


def test_parts_of_derivatives() -> None:
    u = vector()
    loss = gc.log(1 + gc.exp(u)).sum()
    slope = gc.grad(loss, u)
    found = gc.compile([u], [loss, slope], native=False).profile(np.ones(100))
    assert {part.says for part in found.derivatives} == {"", "slope = gc.grad(loss, u)"}
    assert "no derivative" in {part.name for part in found.derivatives}
    adds_up(found)


def test_a_loop_belongs_to_the_derivative_that_asked_for_it() -> None:
    u = vector()
    _, levels = gc.scan(lambda level, d: (d * level + 1, level), 0.0, u, dim="time")
    slope = gc.grad(levels.sum(), u)
    found = gc.compile([u], [levels, slope], native=False).profile(np.ones(100))
    asked = {part.says: part.calls for part in found.derivatives if part.calls}
    assert set(asked) == {"", "slope = gc.grad(levels.sum(), u)"}
    assert min(asked.values()) > 100


@TARGETS
def test_parts_between_numpy_calls_and_machine_code(native: bool) -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    spectrum = gc.fft.fft(gc.exp(x) + x, dim="row")
    f = gc.compile([x], gc.real(spectrum).sum(), native=native)
    found = f.profile(np.ones((30, 40)))
    adds_up(found)
    steps = {step.name: step for step in found.steps if step.flops}
    assert [steps[f"%{i}"].says.partition("= ")[2].partition("(")[0] for i in range(5)] == [
        *("exp", "add", "cast", "fft", "real"),
    ], "kernels are no steps, and steps have the names of the stage that is scheduled"
    assert {step.calls for step in steps.values()} == {1}
    assert steps["%0"].estimated == steps["%4"].estimated == native
    assert not steps["%3"].estimated
    assert [nest.calls for nest in found.nests] == [1, 1] * native


# ---- nests of machine code


@machine_code
def test_nests_are_measured_and_what_is_in_them_is_estimated() -> None:
    u, m = vector(), gc.tensor("m", {"i": 200, "k": 200})
    slow = gc.exp(u).sum()
    square = gc.dot(m, m.rename(i="j"), dim="k")
    f = gc.compile([u, m], [slow, square], native=True)
    found = f.profile(np.ones(20_000), np.ones((200, 200)))
    nests = {nest.says.partition("(")[0]: nest for nest in found.nests}
    assert nests.keys() == {"nest of exp, sum", "f64[i=200, j=200] = matmul"}
    whole = nests["nest of exp, sum"]
    assert (whole.calls, whole.bytes, whole.flops) == (1, 8 * 20_001, 11 * 20_000)
    steps = {step.says.partition("= ")[2].partition("(")[0]: step for step in found.steps}
    for op in ("exp", "sum"):
        assert steps[op].estimated
        assert steps[op].limit is None
    assert steps["exp"].seconds + steps["sum"].seconds == pytest.approx(whole.seconds, rel=1e-6)
    product, alone = steps["matmul"], nests["f64[i=200, j=200] = matmul"]
    assert product.seconds == pytest.approx(alone.seconds, rel=1e-6)
    assert product.limit == pytest.approx(alone.limit, rel=1e-6)
    assert not product.estimated
    assert "~ marks an estimate" in repr(found)
    lines = {line.says: line for line in found.lines}
    assert not lines["slow = gc.exp(u).sum()"].estimated, "all of the nest is this line"
    adds_up(found)


@machine_code
def test_a_nest_reads_no_more_of_an_array_than_it_needs() -> None:
    u = vector()
    f = gc.compile([u], gc.exp(u[{"time": slice(10, 30)}]), native=True)
    (nest,) = f.profile(np.ones(5000)).nests
    assert nest.bytes == 8 * (20 + 20)


@machine_code
def test_two_lines_in_a_nest_are_estimated() -> None:
    u = vector()
    x = gc.exp(u)
    y = x.sum()
    found = gc.compile([u], y, native=True).profile(np.ones(1000))
    marked = {line.says: line.estimated for line in found.lines if line.calls}
    assert marked == {"x = gc.exp(u)": True, "y = x.sum()": True}
    (nest,) = found.nests
    assert nest.calls == 1


@machine_code
def test_loops_and_branches_have_times_of_their_own() -> None:
    u = vector()

    def outer(level: gc.Tensor, d: gc.Tensor) -> Any:
        inner = gc.fori_loop(0, 7, lambda i, x: gc.sin(x * d), level)
        return gc.cond(inner > 0, lambda: gc.exp(inner), lambda: gc.cos(inner)), None

    last, _ = gc.scan(outer, 0.5, u, dim="time")
    f = gc.compile([u], [last, gc.grad(last, u)], native=True)
    found = f.profile(np.ones(11))
    steps = {step.says.partition("= ")[2].partition("(")[0]: step for step in found.steps}
    assert steps["sin"].calls == 11 * 7
    assert (steps["exp"].calls, steps["exp"].flops) == (11, 110)
    assert steps["switch"].calls == 11
    loops = [nest for nest in found.nests if not nest.bytes and "scan(" in nest.says]
    assert {nest.calls for nest in loops} >= {1, 11}
    assert all(nest.seconds >= 0 for nest in found.nests)
    adds_up(found)


@machine_code
def test_the_pieces_of_long_programs_are_measured() -> None:
    u = vector()
    y = u
    for i in range(300):
        y = gc.sin(y) + i
    f = gc.compile([u], y, native=True)
    found = f.profile(np.ones(1000))
    assert len([step for step in found.steps if step.flops]) == 600
    assert all(step.calls == 1 and step.name[0] == "%" for step in found.steps if step.flops)
    assert len(found.nests) > 5
    assert sum(nest.flops for nest in found.nests) == 300 * 11 * 1000
    adds_up(found)


@machine_code
def test_a_long_nest_is_measured_as_it_runs() -> None:
    """The one that looks for signals."""
    u = vector()
    found = gc.compile([u], gc.sqrt(u).sum(), native=True).profile(np.ones(2**22))
    assert [nest.calls for nest in found.nests] == [1]
    assert found.nests[0].seconds > 0.5 * found.seconds
    adds_up(found)


@machine_code
def test_programs_over_a_millisecond_have_three_parts_that_add_up() -> None:
    a, u = gc.tensor("a", {"i": None, "k": None}), vector()
    y = gc.dot(a, a.rename(i="j"), dim="k").sum() + gc.sin(u).sum() + gc.cumsum(u, "time").max()
    found = gc.compile([a, u], y, native=True).profile(np.ones((300, 300)), np.ones(200_000))
    nests = [nest for nest in found.nests if nest.seconds > 0.01 * found.seconds]
    assert len(nests) >= 3
    assert sum(nest.seconds for nest in found.nests) > 0.95 * found.seconds


@machine_code
def test_the_time_of_readings_is_taken_off() -> None:
    spent = [Spent(Timing((), (), ()), 1, 5e-6), Spent(Timing((), (), ()), 9, 9e-6)]
    assert [x.seconds for x in without_looks(spent, 0.0)] == [5e-6, 9e-6]
    assert [x.seconds for x in without_looks(spent, 5e-6)] == pytest.approx([4.5e-6, 4.5e-6])
    found = [x.seconds for x in without_looks(spent, 1.0)]  # no reading takes as long
    assert found == pytest.approx([4e-6, 0], abs=1e-12)
    assert min(found) >= 0
    never = [Spent(Timing((), (), ()), 0, 0.0)]
    assert without_looks(never, 1.0) == never


@machine_code
def test_the_steps_of_a_program_that_is_not_yet_machine_code_are_those_of_numpy() -> None:
    u = vector()
    f = gc.compile([u], gc.exp(u).sum())
    assert f.profile(np.ones(10)).nests == ()


def test_a_long_program() -> None:
    u = vector()
    y = u
    for i in range(300):
        y = gc.sin(y) + i
    found = gc.compile([u], y, native=False).profile(np.ones(10))
    assert sum(step.calls for step in found.steps) == 600
    adds_up(found)


def test_bodies_that_are_computed_twice() -> None:
    u = vector()
    twice = gc.checkpoint(lambda x: gc.sin(gc.cos(x)))
    f = gc.compile([u], twice(twice(u)), native=False)
    found = f.profile(np.ones(10))
    assert sum(step.flops for step in found.steps) == 10 * 4 * 10


# ---- the rest


def test_memory_over_time() -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    square = gc.dot(x, x.rename(row="other"), dim="col")
    f = gc.compile([x], gc.exp(gc.dot(square, square.rename(row="a", other="b"), dim=[])).sum())
    memory = f.profile(np.ones((4, 3))).memory
    assert memory.peak == max(held for _, held in memory.timeline)
    assert sum(holder.bytes for holder in memory.holders) == memory.peak
    assert memory.holders[0].bytes == 8 * 4**4
    assert memory.at in {name for name, _ in memory.timeline}


def test_memory_of_a_branch_is_that_of_the_larger() -> None:
    u = vector()
    y = gc.cond(
        u.sum() > 0, lambda v: gc.exp(v), lambda v: gc.sin(v)[{"time": [0, 0, 0]}].sum() + v, u
    )
    memory = gc.compile([u], y, native=False).profile(np.ones(100)).memory
    names = [holder.name for holder in memory.holders]
    assert len({name.partition("]")[0] for name in names if "branches" in name}) == 1


def test_calls_of_the_program_are_not_touched() -> None:
    u = vector()
    f = gc.compile([u], gc.exp(u).sum())
    before = f(np.ones(5))
    target = f.target
    f.profile(np.ones(5))
    assert f.target == target
    assert f(np.ones(5)) == before


def test_the_text_is_bounded() -> None:
    u = vector()
    y = u
    for i in range(40):
        y = gc.sin(y) + i
    found = gc.compile([u], y, native=False).profile(np.ones(10))
    assert len(str(found).splitlines()) < 70
    assert "lines more ..." in str(found)
    whole = found.text(None)
    assert all(f"\n{step.name} " in whole for step in found.steps)
    assert "limits of this machine" in whole


def test_wrong_arguments_are_refused_in_words() -> None:
    u = vector()
    f = gc.compile([u], u + 1)
    with pytest.raises(gc.GraphError, match="no argument for input 'u'"):
        f.profile()
