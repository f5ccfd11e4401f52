"""How a line tells which dims or axes an op is about."""

from __future__ import annotations

import re
from textwrap import dedent

import graphcore as gc
from graphcore.ir.graph import Graph
from graphcore.ops import tensor
from tests.inspection.test_printer import printed


def test_windows_are_told_by_dim_on_every_stage() -> None:
    x = gc.tensor("x", {"batch": None, "time": 9})
    seen = gc.windows(x, {"time": 3}, "lag", stride=2, dilation=2)
    f = gc.compile([x], gc.grad((seen**2).max("lag").sum(), x))
    plain = printed(f, "lowered")
    assert "windows(x; time → lag=3 step 2 by 2)" in printed(f, "named")
    assert "f64[batch, lag=3, time=3] = windows(x; axis 1: time → 3 step 2 by 2)" in plain
    (added,) = (line for line in printed(f, "expanded").splitlines() if "overlap_add" in line)
    shown = r"f64\[batch, time=9\] += overlap_add\(%\d+; axis 1: time → 3 step 2 by 2\)"
    assert re.search(shown, added)


def test_named_ops_show_names_and_plain_ops_positions_with_labels() -> None:
    x = gc.tensor("x", {"day": 9, "class": 3, "site": None})
    results = [
        gc.special.softmax(x, "class"),
        x.sum(["day", "site"]),
        x.cumsum("day"),
        x.transpose("site", "class", "day"),
        x[{"day": slice(2, 7)}],
        x[{"day": slice(2, 7), "class": slice(0, 2)}],
        x.var("site", ddof=1),
    ]
    f = gc.compile([x], results)
    named, plain = (
        [line.split(" = ")[1] for line in printed(f, stage).splitlines()[1:-1]]
        for stage in ("named", "lowered")
    )
    assert named == [
        "softmax(x; over class)",
        "sum(x; over day, site)",
        "cumsum(x; along day)",
        "transpose(x; to site, class, day)",
        "slice(x; day[2:+5])",
        "slice(x; day[2:+5], class[0:+2])",
        "var(x; over site; ddof 1)",
    ]
    assert plain[:7] == [
        "softmax(x; axis 1: class)",
        "sum(x; axes 0, 2: day, site)",
        "cumsum(x; axis 0: day)",
        "transpose(x; to axes 2, 1, 0: site, class, day)",
        "slice(x; axis 0: day[2:+5])",
        "slice(x; axis 0: day[2:+5], axis 1: class[0:+2])",
        "sum(x; axis 2: site)",
    ]
    assert not {*named} & {*plain}


def test_an_axis_without_a_label_shows_its_position_alone() -> None:
    x = tensor.transpose(gc.tensor("x", {"day": 2, "site": 3}).node, perm=(1, 0))
    bare = tensor.reshape(x, shape=(3, 1, 2))
    lines = str(
        Graph((x.inputs[0],), (tensor.sum_(bare, axes=(0, 1)), tensor.sum_(bare, axes=(1,))))
    )
    assert "sum(%1; axes 0, 1)" in lines
    assert "sum(%1; axis 1)" in lines


def test_matrices() -> None:
    """Batch and the dims of matrices by name, on named stages and on plain ones."""
    a = gc.tensor("a", {"row": 3, "batch": None, "col": 3})
    b = gc.tensor("b", {"row": 3, "batch": None})
    x = gc.linalg.solve_triangular(a, b, lower=True, unit_diagonal=True, check=False)
    q, r = gc.linalg.qr(a)
    f = gc.compile([a, b], [x, q, r, gc.linalg.pinv(a, rtol=0.5), gc.linalg.det(a)])
    assert printed(f, "named") == dedent("""\
        a : f64[row=3, batch, col=3]  = input
        b : f64[row=3, batch]         = input
        %0: f64[batch, col=3]         = solve_triangular(a, b; row col, row → col; lower; unit diagonal; unchecked)
        %1: (f64[batch, row=3, rank=3], f64[batch, rank=3, col=3]) = qr(a; row col → row rank, rank col)
        %2: f64[batch, row=3, rank=3] = project(%1; index 0)
        %3: f64[batch, rank=3, col=3] = project(%1; index 1)
        %4: f64[batch, col=3, row=3]  = pinv(a; row col → col row; rtol 0.5)
        %5: f64[batch]                = det(a; row col)
        return %0, %2, %3, %4, %5""")  # noqa: E501  # printed lines are not wrapped
    lines = [line.split(": ", 1)[1] for line in printed(f, "optimized").splitlines()[2:-1]]
    assert [re.sub(r" += ", " = ", line) for line in lines] == [
        "f64[batch, row=3, col=3] = transpose(a; to axes 1, 0, 2: batch, row, col)",
        "f64[batch, row=3] = transpose(b; to axes 1, 0: batch, row)",
        "f64[batch, row=3, 1] = reshape(%1)",
        "f64[batch, col=3, 1] = solve_triangular(%0, %2; lower; unit diagonal; unchecked)",
        "f64[batch, col=3] = reshape(%3)",
        "(f64[batch, row=3, 3], f64[batch, 3, col=3]) = qr(%0)",
        "f64[batch, row=3, rank=3] = project(%5; index 0)",
        "f64[batch, rank=3, col=3] = project(%5; index 1)",
        "f64[batch, col=3, row=3] = pinv(%0; rtol 0.5)",
        "f64[batch] = det(%0)",
    ]


def test_transposed_solves_turn_their_axes() -> None:
    a, b, c = (
        gc.tensor("a", {"row": 3, "col": 3}),
        gc.tensor("b", {"row": 3}),
        gc.tensor("c", {"col": 3}),
    )
    solved = gc.linalg.solve(a, b), gc.linalg.solve(a, c, dims=("col", "row"))
    text = printed(gc.compile([a, b, c], list(solved)), "optimized")
    assert re.search(r"%\d+: f64\[col=3, 1\] += lu_solve\(%\d+\[0\], %\d+\[1\], %\d+\)", text)
    assert re.search(r"%\d+: f64\[row=3, 1\] += lu_solve\(.*; transposed\)", text)


def test_results_of_loops_and_branches_are_labelled() -> None:
    x = gc.tensor("x", {"row": None, "col": 3})
    loop = gc.while_loop(lambda y: (y * y).sum() > 1.0, lambda y: y / 2, x)
    branch = gc.cond(x.sum() > 0, lambda: gc.tanh(x), lambda: x)
    shown = str(gc.compile([x], [loop + 1, branch * 2], native=False).stages["optimized"])
    assert shown.count("(f64[row, col=3])") == 2
