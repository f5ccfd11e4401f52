"""`f.why`: every node leads back to lines and rules, and every node that vanished says its rule."""

from __future__ import annotations

import gc as garbage
import pickle
import re
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from benchmarks.programs import Program
from graphcore.inspection.why import Explained
from graphcore.ir.provenance import described_by
from tests.inspection.programs import every_program
from tests.inspection.test_golden import logistic_regression
from tests.linalg.test_linalg_programs import gaussian_process

HERE = "test_why.py"
EVERY = every_program("eight_schools", "gp", "kmeans", "logreg", "lstm", "mlp", "stockham_fft")


def printed(f: gc.Compiled, op: str, under: str = "") -> str:
    """The printed name of the last node of an op in the last stage, perhaps in a body."""
    printed = Explained(f).printed_nodes(len(f.passes) - 1).named.values()
    found = [x.name for x in printed if x.node.op.name == op]
    return [name for name in found if under in name or not under][-1]


def lstm() -> gc.Compiled:
    f = Program("lstm").make("graphcore")
    assert isinstance(f, gc.Compiled)
    return f


def test_six_questions(golden: Callable[[str, str], None]) -> None:
    garbage.collect()  # an equal program that was built elsewhere would lend its lines
    f = logistic_regression()
    exp = next(node for node in f.stages["named"].nodes() if node.op.name == "exp")
    answers = [f.why(exp), f.why(printed(f, "matvec"))]
    f = lstm()
    answers += [f.why(printed(f, "concat", "body")), f.why("grad_w_in")]
    f = gaussian_process()
    answers += [f.why("test_linalg_programs.py:47"), f.why("%17", stage="lowered")]
    # Lines of rules change with their files; those of the programs are what is asked about.
    text = "\n\n".join(answer.text(width=None) for answer in answers)
    place = r"((?:→ \w+|asked by \S+(?: ← \S+)*)  \S+\.py):\d+"
    golden("why", re.sub(place, r"\1:…", text))


@pytest.mark.parametrize("name", EVERY)
def test_every_node_leads_back_to_a_line_and_a_rule(name: str) -> None:
    """Those of all plain stages, bodies included; and what vanished says which rule took it."""
    f = Program(name).make("graphcore")
    assert isinstance(f, gc.Compiled)
    found = Explained(f)
    ancestry, last = found.ancestry, len(found.names) - 1
    plain = set().union(*ancestry.present[found.names.index("lowered") :])
    with described_by(found.trace):
        for node in plain:
            history = ancestry.history(node)
            assert history.written, node
            for x in history.written:
                assert found.trace.origin(x).file.endswith(f"{name}.py") or not x.inputs, x
            rules = [link.rule for link in history.links if link.rule is not None]
            if not rules:  # it is what was written, on operands that changed
                assert node.op in {x.op for x in history.written}, node
        for node in ancestry.written:
            answer = found.forwards(node, last)
            assert bool(answer.stands) != (answer.taken is not None), answer
            if answer.taken is not None:
                assert answer.taken.rule is not None, answer
            assert str(answer.node)
            assert dict(answer.rows())["written"]
        for node in list(ancestry.present[last])[:: max(1, len(ancestry.present[last]) // 20)]:
            answer = found.backwards(node, last)
            assert answer.lines, node
            assert [x.node for x in answer.written]


def program() -> tuple[gc.Compiled, dict[str, gc.Tensor], int]:
    """A function, its tensors, and the line of `exp`."""
    x, w = gc.tensor("x", {"row": None, "k": 3}), gc.tensor("w", {"k": 3})
    first = program.__code__.co_firstlineno
    t = {"x": x, "w": w, "dot": gc.dot(x, w, dim="k")}
    t["exp"] = gc.exp(t["dot"])
    t["loss"] = gc.log(1 + t["exp"]).sum()
    t["dw"] = gc.grad(t["loss"], w)
    return gc.compile([x, w], {"loss": t["loss"], "dw": t["dw"]}), t, first + 5


def test_a_tensor_that_vanished_says_which_rule_took_it() -> None:
    f, t, line = program()
    (answer,) = f.why(t["exp"]).answers
    assert answer.taken is not None
    assert answer.taken.stage == "simplified"
    assert "log1p(exp(x)) = softplus(x)" in str(answer.taken)
    assert "stabilise.py:" in str(answer.taken)
    assert answer.stands == ()
    assert [x.node.op.name for x in answer.instead] == ["add"]
    assert answer.lines[0][:2] == (__file__, line)


def test_a_derivative_says_its_rule_and_who_asked_for_it() -> None:
    f, _, line = program()
    name = printed(f, "matvec")
    (answer,) = f.why(name).answers
    assert {x.node.op.name for x in answer.written} >= {"dot"}
    assert [x.origin.line for x in answer.asked] == [line + 2]
    (step,) = [step for step in answer.steps if step.asked is not None]
    assert step.stage == "expanded"
    assert step.operands == (1,)
    assert step.asked is not None
    assert step.asked.line == line + 2
    assert step.before.op.name == "einsum"
    assert step.before.inputs[1].attrs["name"] == "w"
    assert "for operand 1 (w)" in str(step)
    assert any(rule.__name__ == "einsum_vjp" for rule in answer.rules)
    assert any(text in f.source for text in [run.partition(": ")[2] for run in answer.runs])


def test_forward_derivatives_have_rules_too() -> None:
    x = gc.tensor("x", {"k": 3})
    f = gc.compile([x], gc.pushforward(gc.tanh(x), x, gc.cos(x)))
    steps = [step for step in f.why(printed(f, "multiply")).answers[0].steps if step.asked]
    assert [step.before.op.name for step in steps] == ["tanh"]
    assert "partials.py:" in str(steps[0])


def test_questions_in_other_words() -> None:
    f, t, line = program()
    assert f.why(t["dw"]).answers == f.why("dw").answers
    assert f.why("x").answers[0].node.node is t["x"].node
    assert [a.node.node for a in f.why(f"{HERE}:{line}").answers] == [t["exp"].node]
    assert [a.node.node for a in f.why(f"{__file__}:{line}").answers] == [t["exp"].node]
    assert f.why("%2", stage="named").stage == "scheduled"
    lowered = f.why("%0", stage="lowered")
    assert lowered.stage == "lowered"
    assert "lower_dot" in str(lowered)
    assert t["dot"].node in [x.node for x in lowered.answers[0].written]


def test_merged_nodes_say_so() -> None:
    """Two computations that became one are named both."""
    x, y = gc.tensor("x", {"k": 3}), gc.tensor("y", {"k": 3})
    a, b = gc.sin(x * y), gc.sin(-(-x * y))
    f = gc.compile([x, y], [a, gc.cos(b)])
    (answer,) = f.why("%1").answers
    assert {node.node for node in (*answer.written, *answer.also)} >= {a.node, b.node}


def test_nodes_in_bodies() -> None:
    x, w = gc.tensor("x", {"time": None, "k": 3}), gc.tensor("w", {"k": 3})
    last, _ = gc.scan(lambda c, row: (gc.tanh(c * w + row), None), w, x, dim="time")
    f = gc.compile([x, w], gc.grad(last.sum(), w))
    name = printed(f, "multiply", "body")
    (answer,) = f.why(name).answers
    assert answer.node.name == name
    assert answer.written
    assert answer.rules
    assert f.why(f"  {name.replace(' ', '   ')} ") == f.why(name)
    inner = next(n for n in f.stages["named"].every_node() if n.op.name == "tanh")
    assert f.why(inner).answers[0].node.name.split(" ")[1] == "body"


def test_names_of_users_are_harmless() -> None:
    hostile = "%0\n<script>"
    x = gc.tensor(hostile, {hostile: 3})
    f = gc.compile([x], {"model.py:7": gc.exp(x)})
    for question in (x, "%0", "model.py:7", hostile):
        text = str(f.why(question))
        assert "\n<script>" not in text
        assert "\x1b" not in text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("%99", "'%99' is not a node of the stage"),
        ("nowhere.py:3", "the program's lines are test_why.py:"),
        (3, "int 3 is neither a tensor nor a name"),
        ("x" * 1000, "is not a node of the stage"),
        (gc.tensor("other", {"k": 3}), "not part of this program"),
    ],
)
def test_questions_that_have_no_answer(question: object, said: str) -> None:
    with pytest.raises(gc.GraphError, match=r"cure: ") as caught:
        program()[0].why(question)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 1500
    with pytest.raises(gc.GraphError, match="did you mean 'lowered'"):
        program()[0].why("%0", stage="lowerd")


def test_answers_are_bounded_and_complete_on_request() -> None:
    x = gc.tensor("x", {"k": 3})
    y = x
    scope = {"gc": gc, "x": x}
    exec(compile(f"y = {'gc.sin(' * 90}x{')' * 90}", "long.py", "exec"), scope)
    y = scope["y"]
    f = gc.compile([x], y)
    answer = f.why("long.py:1")
    assert len(answer.answers) == 90
    assert "50 nodes more" in str(answer)
    assert max(map(len, str(answer).splitlines())) <= 120
    assert answer.text(limit=None).count("written") == 90
    short = answer.text(limit=2, width=40).splitlines()
    assert max(map(len, short)) <= 40
    assert len(short) < 20


def test_answers_do_not_keep_the_program() -> None:
    f, _, _ = program()
    again = pickle.loads(pickle.dumps(f))
    assert str(again.why("dw")).split("\n")[1:] == str(f.why("dw")).split("\n")[1:]
    f.why("dw")
    gone = weakref.ref(f)
    del f
    garbage.collect()
    assert gone() is None
    assert np.isfinite(again(x=np.ones((2, 3)), w=np.ones(3))["loss"])


def test_names_of_the_source_of_machine_code() -> None:
    x, w = gc.tensor("x", {"row": None, "col": 3}), gc.tensor("w", {"col": 3})
    z = gc.exp(gc.dot(x, w, dim="col")).sum()
    y, _ = gc.scan(lambda c, xi: (gc.tanh(c * w) + xi, None), w, x, dim="row")
    s = gc.linalg.svd(gc.exp(x), dims=("row", "col"))[1]
    for outputs in ([z, gc.grad(z, w)], [y], [s, z]):
        f = gc.compile([x, w], outputs, native=True)
        lines = f.source.splitlines()
        made = re.compile(r"^ *(?:for [^:]*: )?(t\d+)(?:\[[^=]*\])? = ")
        named = [(i, found[1]) for i, line in enumerate(lines, 1) if (found := made.match(line))]
        assert named
        for number, name in named:
            answers = f.why(name).answers
            runs = [run for answer in answers for run in answer.runs]
            assert any(run.startswith(f"{number}: ") for run in runs), name
            assert all(answer.written or answer.asked for answer in answers), name
    with pytest.raises(gc.GraphError, match="'t99' is not a node of the stage"):
        f.why("t99")


def test_names_of_the_source_and_the_stage_asked_about() -> None:
    x = gc.tensor("x", {"row": 3})
    f = gc.compile([x], gc.sin(x) * 2 + gc.cos(x), native=False)
    assert "t2 = cos(x0" in f.source
    found = f.why("t2")
    assert found.answers[0].node.node.op.name == "cos"
    assert str(f.why("%1", stage="named")).startswith(
        "why %1 of stage 'named', in stage 'scheduled'\n"
    )
