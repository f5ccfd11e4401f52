"""Machine code as pseudo-code: what is read where, in dims, with the user's lines."""

from __future__ import annotations

import gc as garbage
import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import Program
from graphcore.backends.llvm_kernels import machine
from graphcore.backends.llvm_kernels.program import NativeProgram
from graphcore.backends.llvm_kernels.pseudocode import pseudo_code
from tests.machine_code import kernels

from .native import needs_machine_code


def lines(inputs: Sequence[gc.Tensor], *outputs: gc.Tensor) -> list[str]:
    """The pseudo-code of a program, without dtypes and the user's lines."""
    graph = gc.compile(list(inputs), list(outputs)).passes[-1].graph
    return [line.partition("  #")[0].strip() for line in pseudo_code(graph).splitlines()]


def test_elementwise_chains_are_one_line_at_a_place() -> None:
    x, w = gc.tensor("x", {"row": None, "col": 20}), gc.tensor("w", {"col": 20})
    found = lines([x, w], gc.where(x > 0, gc.exp(x) * w, -(x - (w - 1))))
    assert found == [
        "def kernel(x: f64[row, col=20], w: f64[col=20]):",
        "for row, col=20:",
        "t0[row, col] = exp(x[row, col]) * w[col] if x[row, col] > 0 else "
        "-(x[row, col] - (w[col] - 1))",
        "return t0",
    ]


def test_a_value_that_is_read_twice_has_a_line_of_its_own() -> None:
    x = gc.tensor("x", {"row": None})
    y = gc.tanh(x)
    assert lines([x], y * y + 1)[1:-1] == [
        "for row:",
        "v0 = tanh(x[row])",
        "t0[row] = v0 * v0 + 1",
    ]


def test_reductions_name_the_axes_they_run_over() -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    assert lines([x], x.sum("col"), (x * x).max(), x.argmin("row"))[1:-1] == [
        "for row: t0[row] = sum over col of x[row, col]",
        "t1 = max over row, col of x[row, col] * x[row, col]",
        "for col: t2[col] = argmin over row of x[row, col]",
    ]


def test_axes_of_one_name_are_told_apart() -> None:
    x = gc.tensor("x", {"row": None})
    found = lines([x], gc.where(x > 0, (x * x).sum(), x))
    assert found[1] == "t0 = sum over row of x[row] * x[row]"
    assert "for row: t1[row] = t0 if x[row] > 0 else x[row]" in found


def test_views_are_arithmetic_on_the_index() -> None:
    x = gc.tensor("x", {"time": None})
    outputs = x.pad({"time": (1, 0)}), gc.flip(x, "time"), x[{"time": slice(1, None, 2)}]
    assert lines([x], *outputs)[1:-1] == [
        "for time=time + 1: t0[time] = nan if time < 1 else x[time - 1]",
        "for time: t1[time] = x[len(time) - time - 1]",
        "for time=time//2: t2[time] = x[2*time + 1]",
    ]


def test_joined_parts_are_choices_by_the_index() -> None:
    x, y = gc.tensor("x", {"row": 20}), gc.tensor("y", {"row": None})
    assert lines([x, y], gc.concat([x, y], "row"))[1:-1] == [
        "for row=row + 20: t0[row] = x[row] if row < 20 else y[row - 20]",
    ]


def test_positions_are_checked_and_stand_in_the_index() -> None:
    x, at = gc.tensor("x", {"row": None}), gc.tensor("at", {"pick": None}, dtype="int64")
    assert lines([x, at], gc.take(x, at, dim="row"))[1:-1] == [
        "check at[pick] in range(len(row)) for pick",
        "for pick: t0[pick] = x[at[pick]]",
    ]


def test_rows_share_their_loops() -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    found = lines([x], gc.special.softmax(x, dim="col"))
    assert found[1:-1] == [
        "for row:",
        found[2],
        "for col: t1[col] = exp(x[row, col] - t0[row])",
        "t2[row] = sum over col of t1[col]",
        "for col: t3[row, col] = t1[col] / maximum(t2[row], 1)",
    ]
    assert re.fullmatch(r"t0\[row\] = max with -1.798e\+308 over col of x\[row, col\]", found[2])


def test_loops_and_what_they_carry() -> None:
    x = gc.tensor("x", {"time": None, "unit": None})
    start = gc.zeros({"unit": x.sizes["unit"]})
    last, each = gc.scan(lambda s, x: (gc.tanh(s + x), s.sum()), start, x, dim="time")
    assert lines([x], last, each)[1:-1] == [
        "for unit: t0[unit] = 0",
        "carry = t0",
        "for time:",
        "for unit: t2[unit] = tanh(carry[unit] + x[time, unit])",
        "t3 = sum over unit of carry[unit]",
        "t1[time] = t3",
        "carry = t2",
    ]


def test_loops_that_find_their_end() -> None:
    a = gc.tensor("a", {})
    root = gc.while_loop(lambda r: abs(r * r - a) > 1e-12, lambda r: (r + a / r) / 2, a)
    assert lines([a], root)[1:-1] == [
        "carry = a",
        "repeat:",
        "t0 = absolute(carry * carry - a) > 1e-12",
        "leave unless t0",
        "t1 = (carry + a / carry) / 2",
        "carry = t1",
    ]


def test_branches() -> None:
    x, k = gc.tensor("x", {"row": None}), gc.tensor("k", {}, dtype="int64")
    y = gc.switch(k, [lambda x: x.sum(), lambda x: x.max(), lambda x: x.min()], x)
    found = lines([x, k], y)
    for part in ("else:", "else if k == 1:", "if k == 0:", "t1 = sum over row of x[row]"):
        assert part in found, found


def test_routines_are_named() -> None:
    a, b = gc.tensor("a", {"row": None, "col": None}), gc.tensor("b", {"col": None, "out": None})
    gram = gc.dot(a, a.rename(row="other"), dim="col")
    found = lines([a, b], gc.dot(a, b, dim="col"), gram)
    assert "t0 = matmul(a, b) by dense" in found
    assert "t1 = matmul(a, transpose(a)) by dense, one triangle" in found
    c = gc.tensor("c", {"col": None, "out": None}, dtype="complex128")
    found = lines([a, c], gc.dot(a, c, dim="col"))
    assert any(line.endswith("by gemm") for line in found), found


def test_user_lines_stand_beside_steps() -> None:
    x = gc.tensor("x", {"row": None})
    y = gc.exp(x)
    z = (y + 1).sum()
    graph = gc.compile([x], z).passes[-1].graph
    line = next(line for line in pseudo_code(graph).splitlines() if "sum" in line)
    assert re.search(r"# f64  test_pseudocode\.py:(\d+); also \d+$", line), line


HOSTILE = [
    *("t0", "sum", "for", "len", "in", "x\ny", "a b", "]", "\u2028", "'", '"', "é", "v1", "%v1"),
    *(
        "; ret i64 1",
        "a\n  ret i64 1\n}",
        "a\r  ret i64 1",
        "\x00",
        "}",
        "@kernel",
        "entry:",
        "\\0A",
    ),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_users_cannot_be_taken_for_the_text(name: str) -> None:
    x = gc.tensor(name, {name: None})
    text = pseudo_code(gc.compile([x], gc.exp(x).sum() + x).passes[-1].graph)
    assert all(line.startswith(("def kernel(", "    ", "):")) for line in text.splitlines())
    assert text.replace("\n", "").isprintable()


PROGRAM = """
x = gc.tensor(name, {name: None, "col": 20})
at = gc.tensor(name + "at", {name + "pick": None}, dtype="int64")
last, _ = gc.scan(lambda s, x: (gc.tanh(s + x), s), x[{name: 0}], x, dim=name)
y = gc.take(x, at, dim=name).sum()
found = gc.searchsorted(x[{"col": 0}], x[{"col": 1}], dim=name, side="left").sum()
f = gc.compile([x, at], [y, last, found])
"""


def ir(name: str, file: str) -> str:
    """The IR of a program with a name for inputs and dims, in a file."""
    scope = {"gc": gc, "name": name}
    exec(compile(PROGRAM, file, "exec"), scope)
    return scope["f"].llvm


@cache
def plain_ir() -> str:
    return ir("x", "model.py")


def without_comments(text: str) -> list[str]:
    return [line.partition("  ; ")[0] for line in text.split("\n")]


FEW = ["a\n  ret i64 1\n}", "a\r  ret i64 1", "\x00\u2028'}", '; %v1 "', "@kernel"]


@needs_machine_code
@pytest.mark.usefixtures("plain_machine_code")
@pytest.mark.parametrize(
    "name", [*FEW, *[pytest.param(name, marks=pytest.mark.slow) for name in HOSTILE]]
)
def test_no_name_of_a_user_changes_what_the_ir_says(name: str) -> None:
    plain = plain_ir()
    assert "  ; model.py:5" in plain
    file = name.replace("\x00", "")  # which no file can have
    found = ir(name, f"/{file}/{file}")
    assert without_comments(found) == without_comments(plain)
    assert found.isascii()
    assert found.replace("\n", "").isprintable()
    machine.to_object(found, effort=0)


def lstm() -> gc.Compiled:
    return Program("lstm").make("graphcore")


def masked_softmax() -> gc.Compiled:
    x = gc.tensor("x", {"query": None, "key": None})
    seen = gc.arange(x.sizes["query"], dim="query") >= gc.arange(x.sizes["key"], dim="key")
    y = gc.special.softmax(x.where(seen, -np.inf), dim="key")
    ct = gc.tensor("ct", {"query": None, "key": None})
    return gc.compile([x, ct], [y, gc.pullback(y, x, ct)])


@needs_machine_code
@pytest.mark.usefixtures("plain_machine_code")
@pytest.mark.parametrize("model", [lstm, masked_softmax])
def test_text_and_ir(model: Callable[[], gc.Compiled], golden: Callable[[str, str], None]) -> None:
    garbage.collect()  # an equal program that was built elsewhere would lend its lines
    f = model()
    graph = kernels(f)
    lines = NativeProgram(graph, f._boundary).lines()
    golden(f"{model.__name__}_source", "".join(f"{line}\n" for line, _ in lines))
    golden(f"{model.__name__}_llvm", f.llvm)
