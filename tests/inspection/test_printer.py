"""Printed graphs, to the letter."""

from __future__ import annotations

import ast
import io
import re
from functools import partial
from itertools import permutations
from textwrap import dedent

import numpy as np
import pytest

import graphcore as gc
from graphcore.inspection.diff import diff
from graphcore.inspection.printer import format_graph
from graphcore.ir.graph import Graph
from tests.inspection.programs import lines_run


def printed(*args: object, **kwargs: object) -> str:
    """What debug_print prints, without origins."""
    out = io.StringIO()
    gc.debug_print(*args, file=out, **kwargs)  # type: ignore[arg-type]
    return "\n".join(without_origins(out.getvalue()))


def without_origins(text: str) -> list[str]:
    """The lines of a printed graph without what they say of the program's lines."""
    return [re.sub(r"\s+\S+\.py:\d+.*$", "", line) for line in text.splitlines()]


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
    "name",
    [
        *("x); import os #", "a\nb", "a\u2028b", "\x1b[31m", "\x85\0", "\u202eabc", "\ud800"),
        *("é" * 10_000, "😀", "class", "%0", "nan", "{x}", ""),
    ],
)
def test_hostile_names_stay_on_their_line(name: str) -> None:
    x = gc.tensor(name, {f"{name}dim": None, "other": 2})
    f = gc.compile([x], [(x * x).sum("other"), gc.grad(gc.exp(x).sum(), x)])
    for stage in f.stages:
        lines = printed(f, stage).splitlines()
        assert max(map(len, lines)) < 400
        assert all(line.isprintable() for line in lines)
    assert name == "" or f"{name}dim" not in ast.unparse(ast.parse(f.source)), "comments alone"
    assert all(line.isprintable() and len(line) < 200 for line in f.source.splitlines())
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
    with pytest.raises(gc.GraphError, match="has no graph"):
        gc.debug_print(3)
    with pytest.raises(gc.GraphError, match="is not known"):
        f.diff("named", "nowhere")


def test_diff_marks_what_changed() -> None:
    x = gc.tensor("x", {"a": 2})
    f = gc.compile([x], gc.log(1 + gc.exp(x)))
    text = f.diff("lowered", "simplified")
    assert re.search(r"^- .*log\(", text, re.MULTILINE)
    assert re.search(r"^\+ .*softplus\(x\)", text, re.MULTILINE)
    assert text.endswith("1 kept, 3 removed, 1 added")


def test_a_diff_of_a_stage_with_itself_has_no_changes() -> None:
    x = gc.tensor("x", {"a": 2})
    f = gc.compile([x], gc.sin(x))
    assert f.diff("named", "named").endswith("2 kept, 0 removed, 0 added")
    assert not re.search(r"^[-+]", f.diff("named", "named"), re.MULTILINE)


def test_a_removed_node_stands_below_its_operands() -> None:
    """Though the stage after reaches a kept operand later than the stage before did."""
    x = gc.tensor("x", {"a": 2})
    kept, other = gc.sin(x), gc.exp(x)
    before = Graph((), (gc.cos(kept).node, other.node))
    text = diff(before, Graph((), (other.node, kept.node)))
    assert text.index("sin(x)") < text.index("cos(")


def test_any_two_stages_can_be_compared() -> None:
    x = gc.tensor("x", {"batch": None, "feature": 16})
    y = (x - x.mean("feature")) / gc.sqrt(x.var("feature") + 1e-5)
    f = gc.compile([x], [y, gc.grad((y * y * y).sum(), x)])
    for before, after in permutations(f.stages, 2):
        assert re.search(r"kept, [\d,]+ removed", f.diff(before, after))


def test_aligned_operands_are_called_by_the_names_of_the_others() -> None:
    """Lowering aligns `scale` with x by a nameless expand; its new axis is x's."""
    x = gc.tensor("x", {"batch": 5, "feature": 3})
    scale = gc.tensor("scale", {"batch": 5})
    f = gc.compile([x, scale], x / gc.sqrt(scale))
    assert printed(f, "lowered") == dedent("""\
        x    : f64[batch=5, feature=3] = input
        scale: f64[batch=5]            = input
        %0   : f64[batch=5]            = sqrt(scale)
        %1   : f64[batch=5, feature=3] = expand(%0; new axis 1: feature)
        %2   : f64[batch=5, feature=3] = divide(x, %1)
        return %2""")


def test_one_value_of_several_stands_where_it_is_used() -> None:
    x = gc.tensor("x", {"a": 2})
    assert "= sin(%2[0])" in printed(gc.sin(gc.grad((x * x).sum(), x)))


def test_inputs_that_look_alike_are_told_apart() -> None:
    one, two = gc.tensor("x", {"a": 2}), gc.tensor("x", {"a": 2}, dtype="float32")
    assert printed(one + two) == dedent("""\
        x  : f64[a=2] = input
        x#2: f32[a=2] = input
        %0 : f64[a=2] = add(x, x#2)
        return %0""")


def test_the_columns_of_a_compiled_function_show_each_stage_under_its_name() -> None:
    x = gc.tensor("x", {"a": 2})
    f = gc.compile([x], gc.sin(x))
    headings = re.findall(r"^--- (\w+): [\d,]+ nodes$", printed(f), re.MULTILINE)
    assert headings == list(f.stages)
    with pytest.raises(gc.GraphError, match="only a compiled program has stages"):
        gc.debug_print(x, "named")


def chain(depth: int) -> gc.Tensor:
    y = gc.tensor("x", {"a": None})
    for _ in range(depth):
        y = gc.sin(y)
    return y


@pytest.mark.parametrize("depth", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_of_deep_chains_the_end_is_printed(depth: int) -> None:
    text = printed(chain(depth))
    assert f"... {depth - 199:,} nodes more: sin {depth - 199} ..." in text
    assert text.endswith(f"return %{depth - 1}")


def test_the_work_of_printing_grows_with_the_number_of_nodes() -> None:
    short, long = [lines_run(partial(printed, chain(depth))) for depth in (500, 2_000)]
    assert short < long < 4.4 * short


def test_limit_none_prints_every_line() -> None:
    y = gc.tensor("x", {"a": 2})
    for _ in range(500):
        y = gc.sin(y)
    assert len(printed(y, limit=None).splitlines()) == 502
    assert len(printed(y, limit=10).splitlines()) == 12


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_color", "colour"), [(None, True), ("", True), ("1", False)])
def test_a_terminal_has_colour_unless_told_not_to(
    no_color: str | None, colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    out = Terminal()
    gc.debug_print(gc.tensor("x", {"a": 2}), file=out)
    assert ("\x1b" in out.getvalue()) is colour


def test_colour_changes_nothing_but_colour() -> None:
    x = gc.tensor("x", {"a": 2})
    y = gc.exp(gc.sin(x)).sum()
    graph = Graph((x.node,), (y.node,))
    assert re.sub(r"\x1b\[\d*m", "", format_graph(graph, color=True)) == format_graph(graph)


def test_a_file_that_lacks_a_character_gets_its_escape() -> None:
    raw = io.BytesIO()
    x, y = gc.tensor("é", {"a": 2}), gc.tensor("y", {"a": 2, "b": 3})
    with io.TextIOWrapper(raw, encoding="ascii") as out:
        gc.debug_print(gc.compile([x, y], gc.dot(x, y, dim="a")), "lowered", file=out)
        out.flush()
        assert b"a, a b \\u2192 b" in raw.getvalue()


def test_colour_only_where_asked() -> None:
    x = gc.tensor("x", {"a": 2})
    assert "\x1b" not in printed(x)
    assert "\x1b" in printed(x, color=True)


def test_bodies_and_branches_are_printed_with_what_they_capture() -> None:
    x, s = gc.tensor("x", {"t": None}), gc.tensor("s", {})
    carry = gc.tensor("carry", {})
    factor = 2 * s

    def step(c: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, None]:
        return gc.cond(x > 0, lambda: c * factor * carry, lambda: c + x), None

    last, _ = gc.scan(step, s, x, "t")
    assert printed(last) == dedent("""\
        s    : f64[]   = input
        x    : f64[t]  = input
        %0   : f64[]   = multiply(2, s)
        carry: f64[]   = input
        %1   : (f64[]) = scan(s, x, %0, carry; carries 1, sequences 1, length t, dim t)
            body:
                carry      : f64[]   = input
                x          : f64[]   = input
                outer %0   : f64[]   = input
                outer carry: f64[]   = input
                %0         : bool[]  = greater(x, 0)
                %1         : i64[]   = cast(%0; to i64)
                %2         : (f64[]) = switch(%1, carry, x, outer %0, outer carry)
                    branches[0], otherwise:
                        carry            : f64[] = input
                        x                : f64[] = input
                        outer outer %0   : f64[] = input
                        outer outer carry: f64[] = input
                        %0               : f64[] = add(carry, x)
                        return %0
                    branches[1], then:
                        carry            : f64[] = input
                        x                : f64[] = input
                        outer outer %0   : f64[] = input
                        outer outer carry: f64[] = input
                        %0               : f64[] = multiply(carry, outer outer %0)
                        %1               : f64[] = multiply(%0, outer outer carry)
                        return %1
                %3         : f64[]   = project(%2; index 0)
                return %3
        %2   : f64[]   = project(%1; index 0)
        return %2""")


def test_no_stage_shows_an_address() -> None:
    x, n = gc.tensor("x", {"t": None}), gc.tensor("n", {}, dtype="int64")
    y = gc.while_loop(lambda c: c < 9, lambda c: gc.switch(n, [gc.sin, gc.exp], c), x.sum())
    f = gc.compile([x, n], [y, gc.grad(gc.checkpoint(gc.sin)(y), x)])
    for name, graph in f.stages.items():
        assert " object at 0x" not in printed(f, name)
        assert printed(graph) == "\n".join(without_origins(str(graph)))
        assert repr(graph).startswith("<Graph: 2 params, ")
    assert "0x" not in repr(f.stages)
    assert "0x" not in repr(f.passes)


def test_a_stage_that_there_is_not() -> None:
    x = gc.tensor("x", {"a": 2})
    f = gc.compile([x], x)
    with pytest.raises(KeyError, match="did you mean 'lowered'"):
        f.stages["lowerd"]
    with pytest.raises(gc.GraphValueError, match="did you mean 'lowered'"):
        f.debug_print("lowerd")


def test_the_graph_after_any_pass_can_be_printed_and_compared() -> None:
    x, w = gc.tensor("x", {"row": 4, "k": 3}), gc.tensor("w", {"k": 3})
    f = gc.compile([x, w], gc.grad(gc.special.softmax(gc.dot(x, w, dim="k"), "row").sum(), w))
    assert list(f.stages) == [
        *("named", "lowered", "simplified", "expanded", "optimized", "scheduled"),
    ]
    names = [made.name for made in f.passes]
    assert len(set(names)) == len(names) > len(f.stages)
    assert [name for name in names if name in f.stages] == list(f.stages)
    for made in f.passes:
        assert f.stages[made.name] is made.graph
        assert printed(f, made.name)
    assert "matmul" not in printed(f, "contractions gathered")
    assert f.diff("contractions gathered", "decomposed").endswith("added")
    by_pass = {made.name: {str(record) for record in made.records} for made in f.passes}
    assert any("lower_derived" in record for record in by_pass["lowered"])
    assert any("(decompose.py:" in record for record in by_pass["decomposed"])


def called_twice(x: gc.Tensor) -> gc.Tensor:
    return gc.sin(x)


def test_a_line_of_a_function_called_twice_says_whence() -> None:
    x = gc.tensor("x", {"a": 2})
    y = called_twice(x)
    line = y.node.origin.line
    z = called_twice(y)
    assert z.node.origin.line == line
    first, second = y.node.origin.caller, z.node.origin.caller
    assert first is not None
    assert second == (first[0], first[1] + 2)
    out = io.StringIO()
    gc.debug_print([y, z, gc.cos(z)], file=out)
    found = re.findall(r"(sin|cos)\(.*\) +test_printer.py:(.*)", out.getvalue())
    assert found[:2] == [
        ("sin", f"{line} (from {first[1]})"),
        ("sin", f"{line} (from {second[1]})"),
    ]
    assert found[2][1].isdigit(), "a function called once needs no caller"
    f = gc.compile([x], z)
    assert f"{line} (from {second[1]})" in f.source
    with pytest.raises(gc.GraphError, match=rf"test_printer.py:{line} \(from {second[1]}\)"):
        z + gc.zeros({"a": 3})


def test_long_sizes_stand_below_the_graph() -> None:
    x = gc.tensor("x", {"location": None, "row": 2})
    y = x.isel(location=slice(5, -4, 3))
    z = gc.map(lambda row: row + row.sum(), gc.concat([y, y], "location"), "row")
    size, twice = y.sizes["location"], 2 * y.sizes["location"]
    assert len(str(size)) > 24
    *lines, first, second = printed(z).splitlines()
    assert (first, second) == (f"#0 = {size}", f"#1 = {twice}")
    assert str(size) not in "\n".join(lines)
    assert lines[1].startswith("%0: f64[location=#0, row=2]")
    assert "slice(x; location[5:+#0:3])" in lines[1]
    assert any(re.match(r" +%\d: f64\[location=#1\]", line) for line in lines), "in bodies too"
    f = gc.compile([x], z)
    assert f.diff("named", "lowered").splitlines()[-3:-1] == [f"  {first}", f"  {second}"]


def test_a_program_is_shown_by_its_own_dims_beside_another_with_equal_inputs() -> None:
    first = gc.compile([gc.tensor("same", {"town": 3})], gc.tensor("same", {"town": 3}).sum())
    x, i = gc.tensor("same", {"city": 3}), gc.tensor("i", {"trip": 2}, dtype="int64")
    f = gc.compile([x, i], [x.isel(city=i), x.sum()])
    for stage in ("lowered", "optimized"):
        assert "city=3" in printed(f, stage)
        assert "town" not in printed(f, stage)
        assert "town=3" in printed(first, stage)
    with pytest.raises(gc.GraphIndexError, match="outside dim 'city'"):
        f(np.ones(3), np.array([0, 7]))


def test_wide_graphs_are_folded_and_complete_on_request() -> None:
    """Operands, lines, bodies, long sizes and reprs are bounded; `limit=None` shows them all."""
    inputs = [gc.tensor(f"input{i}", {"k": 1}) for i in range(40)]
    y = gc.concat(inputs, "k")
    assert "… 29 more" in printed(y)
    assert "input39" in printed(y, limit=None).splitlines()[-2]
    f = gc.compile(inputs, y)
    assert "… 29 more" in repr(f)
    assert len(repr(f)) < 400


@pytest.mark.parametrize("color", [True, False])
def test_lines_are_cut_at_a_width(color: bool) -> None:
    y = gc.exp(gc.tensor("x" * 30, {"row": None, "col": 3})).sum("row")
    whole, cut = (printed(y, width=width, color=color) for width in (None, 40))
    plain = [re.sub(r"\x1b\[\d+m", "", line) for line in cut.splitlines()]
    assert max(map(len, plain)) == 40
    for line, short in zip(whole.splitlines(), plain, strict=True):
        text = re.sub(r"\x1b\[\d+m", "", line)
        assert text == short or text.startswith(short[:-1])
    assert cut.count("\x1b[") % 2 == 0


def test_bodies_do_not_add_up_without_bound() -> None:
    y = gc.tensor("x", {"k": 3})
    for _ in range(12):
        y = gc.fori_loop(0, 3, lambda i, c: gc.sin(gc.cos(gc.exp(gc.tanh(c)))), y)
    few = printed(y, limit=3).splitlines()
    assert len(few) <= 31
    assert "lines more ..." in "\n".join(few) or "nodes more" in "\n".join(few)
    assert printed(y, limit=None).count(" = tanh(") == 12


def test_diffs_are_bounded() -> None:
    x = y = gc.tensor("x", {"k": 3})
    for i in range(300):
        y = gc.sin(y) * (i + 2)
    f = gc.compile([x], y)
    lines = f.diff("named", "lowered").splitlines()
    assert len(lines) == 402
    assert any("lines more ..." in line for line in lines)
    assert lines[-1].endswith("added")
    assert len(f.diff("named", "lowered", limit=None).splitlines()) > 1000
    assert max(map(len, f.diff("named", "lowered", width=30).splitlines()[:-1])) == 30
    with pytest.raises(gc.GraphError, match="diff: limit='all' is not a number"):
        f.diff("named", "lowered", limit="all")
