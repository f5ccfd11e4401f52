"""`f.source` and `f.why` say which loops threads share, as the code for large sizes does."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import threads

from .native import needs_machine_code

pytestmark = needs_machine_code

X, V = gc.tensor("x", {"row": None, "col": None}), gc.tensor("v", {"col": None})


def said(f: gc.Compiled) -> dict[str, str]:
    """What is said of the threads of each line, without its indentation."""
    found = {}
    for line in f.source.splitlines()[1:-1]:
        code, _, comment = line.partition("  # ")
        _, shared, rest = comment.partition("shared by threads")
        found[code.strip()] = shared + rest
    return found


LONG, ALWAYS = "shared by threads where long", "shared by threads"


def test_lines_of_loops_that_are_shared_say_so() -> None:
    f = gc.compile([X, V], [gc.special.softmax(X, dim="col"), V.cumsum("col")], native=True)
    assert [*said(f).values()] == [LONG, "", "", "", "", ""]
    assert next(iter(said(f))) == "for row:"
    y = gc.exp(X).sum("row")
    assert said(gc.compile([X], y, native=True)) == {
        "for col: t0[col] = sum over row of exp(x[row, col])": LONG
    }


def test_each_line_of_a_step_without_loops_around_says_so() -> None:
    at = gc.tensor("at", {"pick": None}, dtype="int64")
    f = gc.compile([V, at], [V.sum(), (V * V).sum(), gc.take(V, at, dim="col")], native=True)
    assert [*said(f).values()] == [LONG] * 4
    assert any(code.startswith("check at[pick]") for code in said(f))


def test_known_sizes_decide() -> None:
    x = gc.tensor("x", {"row": 2000, "col": 1000})
    few = x[{"row": slice(0, 9)}]
    assert [*said(gc.compile([x], [2 * x, few.sum()], native=True)).values()] == [ALWAYS, ""]
    small = gc.tensor("x", {"row": 20, "col": 10})
    assert [*said(gc.compile([small], 2 * small, native=True)).values()] == [""]
    mixed = gc.compile([x, V], [2 * x, 2 * V], native=True)
    assert [*said(mixed).values()] == [ALWAYS, LONG]


def test_loops_of_steps_and_loops_within_them() -> None:
    last, _ = gc.scan(lambda c, r: (gc.tanh(c * r), None), V, X, dim="row")
    found = said(gc.compile([X, V], last, native=True))
    assert found["for row:"] == ""
    assert found["for col: t0[col] = tanh(carry[col] * x[row, col])"] == LONG
    each = gc.map(lambda v: gc.while_loop(lambda z: z < 9.0, lambda z: 2 * z + 1, v), V, dim="col")
    assert LONG in said(gc.compile([V], each, native=True)).values()


def test_pieces_of_long_programs_say_the_same() -> None:
    y = X
    for _ in range(101):
        y = gc.tanh(y * V).cumsum("row") + y.mean("col")
    f = gc.compile([X, V], y, native=True)
    assert len([x for x in f.passes[-1].graph.every_node() if x.op.name == "kernel"]) > 1
    sums = [shared for code, shared in said(f).items() if "cumsum" in code]
    assert sums == [LONG] * 101


def test_why_says_it_in_a_sentence() -> None:
    y = gc.exp(X).sum("row")
    f = gc.compile([X, V], [y, V.cumsum("col")], native=True)
    wanted = "share its loops, from about 262,144 values on"
    assert f.why(y).answers[0].threads == wanted
    assert f"  threads    {wanted}" in str(f.why(y)).splitlines()
    assert "threads" not in str(f.why("t1"))
    values = gc.linalg.eigvalsh(gc.dot(X, X.rename(row="other"), dim="col"), ("row", "other"))
    mixed = gc.compile([X], values.sum() + y, native=True)
    assert LONG in mixed.source
    assert f.why(y).answers[0].threads == wanted
    assert gc.compile([X], y, native=False).why(y).answers[0].threads == ""


@pytest.mark.parametrize("size", [300, 600])
def test_what_is_said_holds_in_calls(size: int) -> None:
    f = gc.compile([X], 2 * X, native=True)
    before = threads.shared()
    with gc.threads(2):
        f(np.ones((size, size)))
    assert threads.shared() - before == (size * size >= 2**18)
    assert [*said(f).values()] == [LONG]
