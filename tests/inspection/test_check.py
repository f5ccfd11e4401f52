"""`check` finds where nan and infinite results come from, and nothing in healthy programs."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import Program
from graphcore.backends import llvm_kernels
from graphcore.inspection.check import Fault
from tests.inspection.programs import every_program

INF, NAN = np.inf, np.nan


class Planted(NamedTuple):
    """A program with a fault: arguments, and where the fault is.

    The line is the one with `# here` in the function; `steps` are those of the loops around it.
    """

    inputs: list[gc.Tensor]
    outputs: Any
    arguments: list[Any]
    op: str
    place: dict[str, int]
    steps: list[int]
    cause: str
    value: float
    has_machine_code: bool = True


def overflow_of_exp() -> Planted:
    x = gc.tensor("x", {"row": None, "col": 3})
    e = gc.exp(2 * x)  # here
    values = np.ones((4, 3))
    values[2, 1] = 400
    return Planted(
        [x], e.sum() / 2, [values], "exp", {"row": 2, "col": 1}, [], "exp overflows", INF
    )


def log_of_zero() -> Planted:
    p = gc.tensor("p", {"class": None})
    entropy = -(p * gc.log(p)).sum()  # here
    return Planted([p], entropy, [[0.5, 0, 0.5]], "log", {"class": 1}, [], "the log of 0", -INF)


def log_of_a_negative() -> Planted:
    p = gc.tensor("p", {"class": None})
    y = gc.log(p - 1).max()  # here
    return Planted([p], y, [[3.0, 2, 0.5]], "log", {"class": 2}, [], "a negative number", NAN)


def zero_by_zero() -> Planted:
    x = gc.tensor("x", {"row": None, "col": None})
    share = x / x.sum("col")  # here
    values = [[1.0, 2], [3, 4], [0, 0]]
    return Planted([x], share, [values], "divide", {"row": 2, "col": 0}, [], "0 divided by 0", NAN)


def division_by_zero() -> Planted:
    x = gc.tensor("x", {"row": None})
    y = (1 / (x - 2)).cumsum("row").isel(row=-1)  # here
    return Planted([x], y, [[1.0, 2, 3]], "divide", {"row": 1}, [], "a division by 0", INF)


def root_of_a_negative() -> Planted:
    x = gc.tensor("x", {"row": None})
    spread = gc.sqrt((x**2).mean() - x.mean() ** 2 - 1e-3)  # here
    return Planted([x], 2 * spread, [[0.1, 0.1]], "sqrt", {}, [], "the square root of a neg", NAN)


def power_of_a_negative() -> Planted:
    x = gc.tensor("x", {"row": None})
    y = (x**0.3).mean()  # here
    return Planted([x], y, [[1.0, -1]], "power", {"row": 1}, [], "not an integer", NAN)


def outside_of_a_domain() -> Planted:
    x = gc.tensor("x", {"row": None})
    y = gc.arccos(1.5 * x).sum()  # here
    return Planted([x], y, [[0.1, 0.9]], "arccos", {"row": 1}, [], "outside of its domain", NAN)


def overflow_of_a_sum() -> Planted:
    x = gc.tensor("x", {"row": None, "col": 2})
    y = gc.exp(-x.sum("row"))  # here
    values = [[1.0, -1e308], [1, -1e308]]
    return Planted([x], y, [values], "exp", {"col": 1}, [], "", INF)._replace(
        op="sum", value=-INF, cause="an overflow"
    )


def overflow_of_a_product() -> Planted:
    x = gc.tensor("x", {"row": None, "inner": None})
    w = gc.tensor("w", {"inner": None, "col": None})
    y = gc.dot(x, w, dim="inner").max("col")  # here
    given = [[[1.0, 2], [3, 4]], [[1, 1e308], [1, 1e308]]]
    return Planted([x, w], y, given, "matmul", {"row": 0, "col": 1}, [], "an overflow", INF)


def overflow_of_single_precision() -> Planted:
    x = gc.tensor("x", {"row": None})
    y = 2 * x.astype("float32")  # here
    return Planted([x], y, [[1.0, 1e39]], "astype", {"row": 1}, [], "f32 holds", INF)


def equal_eigenvalues() -> Planted:
    a = gc.tensor("a", {"row": 3, "col": 3})
    _, v = gc.linalg.eigh(a, dims=("row", "col"))  # here
    grad = gc.grad((v * gc.arange(3, dim="row")).sum(), a)
    place = {"eigen": 0, "row": 1}
    given = [np.diag([1.0, 1, 2])]
    return Planted([a], grad, given, "divide", place, [], "eigenvalues that are equal", NAN, False)


def derivative_of_a_root() -> Planted:
    x = gc.tensor("x", {"row": None})
    y = gc.sqrt(x).sum()  # here
    return Planted(
        [x], gc.grad(y, x), [[1.0, 0]], "divide", {"row": 1}, [], "square root at 0", INF
    )


def in_a_scan() -> Planted:
    x = gc.tensor("x", {"time": None})

    def step(state: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        state = gc.sqrt(state - x)  # here
        return state, state

    last, _ = gc.scan(step, 5.0, x, dim="time")
    given = [[1.0, 1, 0.5, 1, 9, 9]]
    return Planted([x], last, given, "sqrt", {}, [3], "square root of a negative", NAN)


def in_a_reverse_scan() -> Planted:
    x = gc.tensor("x", {"unit": 2, "time": None})

    def step(state: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        state = 1 + gc.log(state - x)  # here
        return state, state

    _, each = gc.scan(step, gc.ones({"unit": 2}), x, dim="time", reverse=True)
    given = [[[0.0, 0, 0, 0], [0, 1, 0, 0]]]
    return Planted([x], each, given, "log", {"unit": 1}, [1], "the log of 0", -INF)


def in_the_loop_of_a_derivative() -> Planted:
    x = gc.tensor("x", {"time": None})

    def step(state: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, None]:
        return gc.sqrt(state * x), None  # here

    last, _ = gc.scan(step, 1.0, x, dim="time")
    grad = gc.grad(gc.where(last > 0, last, 2 * last), x)
    given = [[1.0, 4, 0, 9]]
    return Planted([x], grad, given, "divide", {"time": 2}, [], "square root at 0", INF)


def in_a_while_loop() -> Planted:
    a = gc.tensor("a", {})
    last = gc.while_loop(lambda x: x < 1e300, lambda x: gc.exp(x * x), a)  # here
    return Planted([a], last, [1.5], "exp", {}, [2], "exp overflows", INF)


def in_a_branch() -> Planted:
    x = gc.tensor("x", {"row": None})
    chosen = gc.cond(
        x.sum() > 0,
        lambda: gc.log(x),  # here
        lambda: gc.exp(x),
    )
    return Planted([x], chosen.sum(), [[1.0, 0]], "log", {"row": 1}, [], "the log of 0", -INF)


def in_a_loop_in_a_loop() -> Planted:
    x = gc.tensor("x", {"time": None, "tap": None})

    def inner(state: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, None]:
        return gc.sqrt(state - x), None  # here

    def outer(state: gc.Tensor, row: gc.Tensor) -> tuple[gc.Tensor, None]:
        return gc.scan(inner, state, row, dim="tap")[0], None

    last, _ = gc.scan(outer, 1.0, x, dim="time")
    given = [[[0.0, 0], [0, 2], [0, 0]]]
    return Planted([x], last, given, "sqrt", {}, [1, 1], "square root of a negative", NAN)


def behind_a_mask() -> Planted:
    x = gc.tensor("x", {"row": None})
    masked = gc.where(x > 0, gc.log(x), 0)  # this log of 0 does no harm
    y = masked + gc.log(x - 1)  # here
    return Planted([x], y, [[0.0, 3, 1]], "log", {"row": 0}, [], "a negative number", NAN)


def in_one_of_joined_parts() -> Planted:
    x = gc.tensor("x", {"row": None})
    whole = gc.concat([gc.log(x), 1 / x], "row")  # here
    y = whole.isel(row=slice(3, None)).sum()
    return Planted([x], y, [[1.0, 2, 0]], "divide", {"row": 2}, [], "a division by 0", INF)


def picked_by_position() -> Planted:
    x = gc.tensor("x", {"row": None})
    at = gc.tensor("at", {"pick": 2}, dtype="int64")
    y = gc.log(x).isel(row=at).sum()  # here
    given = [[0.0, 2, 0, 4], [3, 2]]
    return Planted([x, at], y, given, "log", {"row": 2}, [], "the log of 0", -INF)


def nan_in_an_argument() -> Planted:
    x = gc.tensor("x", {"row": None})  # here
    return Planted([x], gc.exp(x).sum(), [[1.0, NAN]], "input x", {"row": 1}, [], "holds nan", NAN)


def nan_of_infinities() -> Planted:
    x = gc.tensor("x", {"row": None})
    masked = gc.where(x > 0, x, -INF)
    y = masked - masked.max()  # here
    return Planted(
        [x], y, [[-1.0, -1]], "subtract", {"row": 0}, [], "infinite operands give nan", NAN
    )


def nan_chosen_for_a_nan() -> Planted:
    x = gc.tensor("x", {"row": 2, "col": None})  # here
    y = x.median("col").sum()
    values = [[1.0, 2, 3], [1, 2, NAN]]
    place = {"row": 1, "col": 2}
    return Planted([x], y, [values], "input x", place, [], "holds nan", NAN, False)


PLANTED = [
    overflow_of_exp,
    log_of_zero,
    log_of_a_negative,
    zero_by_zero,
    division_by_zero,
    root_of_a_negative,
    power_of_a_negative,
    outside_of_a_domain,
    overflow_of_a_sum,
    overflow_of_a_product,
    overflow_of_single_precision,
    equal_eigenvalues,
    derivative_of_a_root,
    in_a_scan,
    in_a_reverse_scan,
    in_the_loop_of_a_derivative,
    in_a_while_loop,
    in_a_branch,
    in_a_loop_in_a_loop,
    behind_a_mask,
    in_one_of_joined_parts,
    picked_by_position,
    nan_in_an_argument,
    nan_of_infinities,
    nan_chosen_for_a_nan,
]


AS_MACHINE_CODE = pytest.param(True, marks=pytest.mark.slow, id="machine code")


@pytest.mark.parametrize("native", [pytest.param(False, id="numpy"), AS_MACHINE_CODE])
@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_fault_is_found(plant: Callable[[], Planted], native: bool) -> None:
    planted = plant()
    if native and llvm_kernels.unavailable():
        pytest.skip(str(llvm_kernels.unavailable()))
    if native and not planted.has_machine_code:
        pytest.skip("an op of it has no machine code")
    f = gc.compile(planted.inputs, planted.outputs, native=native)
    fault = f.check(*planted.arguments)
    assert isinstance(fault, Fault)
    assert "# here" in linecache.getline(fault.line.file, fault.line.line), str(fault)
    assert fault.op == planted.op, str(fault)
    assert fault.place == planted.place, str(fault)
    assert [step.step for step in fault.steps] == planted.steps, str(fault)
    assert planted.cause in fault.cause, str(fault)
    np.testing.assert_equal(fault.value, planted.value)
    assert fault.outputs
    assert str(fault) in map(str, f.check(*planted.arguments, any=True))


@pytest.mark.parametrize("name", every_program("logreg", "softmax", "kalman", "gpt"))
def test_a_healthy_program_has_none(name: str) -> None:
    program = Program(name)
    given, f = program.module.inputs("tiny"), program.module.program()
    assert f.check(**given) is None
    assert [fault for fault in f.check(**given, any=True) if fault.outputs] == []


def masked_log() -> tuple[list[gc.Tensor], Any, list[Any]]:
    x = gc.tensor("x", {"row": None})
    y = gc.where(x > 0, gc.log(x), 0).sum()
    return [x], [y, gc.grad(y, x)], [[0.0, 1, -2]]


def test_a_masked_fault_before_that_of_an_output_is_not_the_one() -> None:
    inputs, (masked, _), arguments = masked_log()
    f = gc.compile(inputs, [masked, gc.sqrt(masked - 10)])
    fault = f.check(*arguments)
    assert isinstance(fault, Fault)
    assert fault.op == "sqrt"
    assert {x.op for x in f.check(*arguments, any=True)} == {"log", "sqrt"}


def masked_attention() -> tuple[list[gc.Tensor], Any, list[Any]]:
    x = gc.tensor("x", {"time": None, "past": None})
    size = x.sizes["time"]
    seen = gc.arange(size, dim="time") >= gc.arange(x.sizes["past"], dim="past")
    y = (gc.special.softmax(x.where(seen, -INF), "past") ** 2).sum()
    return [x], [y, gc.grad(y, x)], [np.eye(3)]


def skipped_nan() -> tuple[list[gc.Tensor], Any, list[Any]]:
    x = gc.tensor("x", {"row": None})
    return [x], [x.mean(skipna=True), gc.isnan(x), x.fillna(0)], [[NAN, 1, 2]]


def largest_of_infinities() -> tuple[list[gc.Tensor], Any, list[Any]]:
    x = gc.tensor("x", {"row": None})
    y = gc.scan(lambda best, x: (gc.maximum(best, gc.log(x)), None), -INF, x, dim="row")[0]
    return [x], [y, gc.special.logsumexp(gc.log(x), "row")], [[0.0, 2, 0]]


def branch_not_taken() -> tuple[list[gc.Tensor], Any, list[Any]]:
    x = gc.tensor("x", {"row": None})
    y = gc.cond(x.sum() > 0, lambda: gc.sqrt(x), lambda: gc.log(x))
    return [x], [gc.where(x == 0, 0, 1 / x).sum(), y.sum()], [[0.0, 1]]


@pytest.mark.parametrize("native", [False, True], ids=["numpy", "machine code"])
@pytest.mark.parametrize(
    "program",
    [masked_log, masked_attention, skipped_nan, largest_of_infinities, branch_not_taken],
)
def test_what_is_left_out_is_no_fault(program: Callable[[], Any], native: bool) -> None:
    if native and llvm_kernels.unavailable():
        pytest.skip(str(llvm_kernels.unavailable()))
    inputs, outputs, arguments = program()
    f = gc.compile(inputs, outputs, native=native)
    assert f.check(*arguments) is None
    assert not any(fault.outputs for fault in f.check(*arguments, any=True))


def test_all_faults_are_found_the_earliest_first() -> None:
    x = gc.tensor("x", {"row": None})
    masked = gc.where(x > 0, gc.log(x), 0)
    f = gc.compile([x], {"y": gc.sqrt(-3 - masked.sum()) + gc.exp(1000 * x).sum()})
    faults = f.check([0.0, 1, 0], any=True)
    assert [(fault.op, fault.count) for fault in faults] == [("log", 2), ("sqrt", 1), ("exp", 1)]
    assert [[y.name for y in fault.outputs] for fault in faults] == [[], *[["result['y']"]] * 2]
    assert f.check([0.0, 1, 0]).op == "sqrt"
    assert str(faults) == "\n\n".join(map(str, faults))
    assert str(f.check([0.01, 0.5], any=True)) == "no faults"


def test_faults_in_the_steps_of_loops_are_counted() -> None:
    x = gc.tensor("x", {"time": None})
    f = gc.compile([x], gc.scan(lambda s, x: (s, gc.log(x + 0 * s)), 0.0, x, dim="time")[1])
    fault = f.check([0.0, 1, 0, 2, 0])
    assert fault.count == 3
    assert "and at 2 more" in str(fault)


def test_a_missing_derivative_is_named_by_the_line_that_asked() -> None:
    x = gc.tensor("x", {"row": None})
    y = gc.sqrt(x).sum()
    grad = gc.grad(y, x)  # asked
    fault = gc.compile([x], grad).check([1.0, 0.0])
    assert "# asked" in linecache.getline(fault.derivative.file, fault.derivative.line)
    assert "for the derivative at test_check.py" in str(fault)


def test_the_answer_stays_on_its_lines_whatever_names_are_given() -> None:
    x = gc.tensor("x\n\x1b[31m" + "y" * 200, {"row\n" + "z" * 99: None})
    f = gc.compile([x], {"a\nb": gc.log(x)})
    text = str(f.check([1.0, 0.0]))
    assert "\x1b" not in text
    assert len(text.splitlines()) == 6
    assert max(map(len, text.splitlines())) < 200


def test_arguments_are_checked_as_in_a_call() -> None:
    x = gc.tensor("x", {"row": 2})
    f = gc.compile([x], gc.log(x))
    with pytest.raises(gc.GraphError, match="dim 'row' of input 'x' has size 3"):
        f.check([1.0, 2, 3])
    assert f.check(x=[1.0, 2]) is None
    assert f.check(x=[1.0, 0]).place == {"row": 1}
