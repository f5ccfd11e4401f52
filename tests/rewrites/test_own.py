"""Rules and passes of one's own: where they run, what is refused, and what checks find."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import graphcore as gc
from graphcore.inspection.mismatch import Mismatch
from graphcore.ir.axes import Pointwise
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ops import elementwise as e
from graphcore.ops import named, tensor
from graphcore.rewrites import pipeline
from graphcore.rewrites.engine import RuleSet, convert, on
from graphcore.rewrites.pattern import P, variables
from graphcore.rewrites.pipeline import COMMON, EXPANDED, PLAIN, Pass, register, unregister
from tests.outside.steps import Steps

x, y = variables("x y")
T = gc.tensor("t", {"time": None})
AT = np.array([0.25, -2.0, 3.0])
ROOT = gc.sqrt(gc.square(T))


class FewPasses(Steps):
    """A target that shares the first three passes alone: "named", "sources marked", "lowered"."""

    shared = COMMON[:3]


STRANGER = Op("stranger", "mine", lambda x: x, "No stage allows its dialect.", axes=Pointwise())


def size_of(x: Node) -> Node:
    return e.absolute(x)


@on(e.exp, under=[e.exp])
def exp_of_exp(node: Node) -> None:
    """It never applies."""


@pytest.fixture(autouse=True)
def nothing_registered() -> Iterator[None]:
    yield
    pipeline.REGISTERED.clear()


def double_sums(graph: Graph) -> Graph:
    """x + x = 2 x"""

    def double(node: Node, x: Node, y: Node) -> Node:
        return 2 * x if x is y else node.with_inputs(x, y)

    return convert(graph, {e.add: double})


def doubled(name: str = "sums doubled", change: Any = double_sums) -> Pass:
    return Pass(name, change, EXPANDED)


FORMS: dict[str, Any] = {
    "an equation": [(P.sin(x), lambda x: e.cos(x))],
    "a function": [on(e.sin)(lambda node: e.cos(*node.inputs))],
    "a set": RuleSet([(P.sin(x), lambda x: e.cos(x))]),
    "numbers before": [(2 * P.sin(x), lambda x: 2 * e.cos(x))],
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_rules(form: str) -> None:
    f = gc.compile([T], 2 * gc.sin(T), rules=FORMS[form], native=False)
    np.testing.assert_array_equal(f(AT), 2 * np.cos(AT))
    g = gc.compile([T], 2 * gc.sin(T), native=False)
    np.testing.assert_array_equal(g(AT), 2 * np.sin(AT))


def test_rules_of_ones_own_are_tried_first_and_differentiated() -> None:
    rules = [(P.sqrt(P.square(x)), lambda x: 3 * x)]
    found = gc.compile([T], [ROOT, gc.grad(ROOT.sum(), T)], rules=rules, native=False)(AT)
    np.testing.assert_array_equal(found, [3 * AT, [3, 3, 3]])


def test_rules_of_a_function() -> None:
    @gc.function(t=("time",), rules=[(P.sin(x), lambda x: e.cos(x))])
    def wave(t: gc.Tensor) -> gc.Tensor:
        return gc.sin(t)

    np.testing.assert_allclose(wave(AT), np.cos(AT))
    again = pickle.loads(cloudpickle.dumps(wave))
    np.testing.assert_allclose(again(AT), np.cos(AT))


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a number": (lambda: gc.compile([T], T, rules=[3]), "3 is not a rule"),
    "no list": (lambda: gc.compile([T], T, rules=3), "3 is not a list of rules"),
    "a plain function": (
        lambda: gc.compile([T], T, rules=[double_sums]), r"double_sums \(test_own\.py:\d+\) is not",
    ),
    "a variable alone": (lambda: RuleSet([(x, lambda x: x)]), "is not a rule"),
    "other variables": (lambda: RuleSet([(P.sin(x), lambda z: z)]), r"sin\(x\) binds x; its"),
    "a function twice": (lambda: on(e.sin)(on(e.cos)(lambda node: node)), "under another one"),
    "no op": (lambda: on(), "there is no op"),
    "the name of an op": (lambda: on("log"), "'log' is not an op"),
    "an op that is lowered": (
        lambda: gc.function(t=("time",), rules=[on(named.sum_)(double_sums)]),
        "asks for named.sum, which is another op by then",
    ),
    "another dtype": (
        lambda: gc.compile(
            [T], gc.sin(T), rules=[(P.sin(x), lambda x: e.cast(x, dtype=np.dtype("f4")))]
        ),
        r"the rule sin\(x\) = e\.cast\(x, dtype=np\.dtype\(\"f4\"\)\) \(test_own\.py:\d+\) changes "
        r"the type of sin at test_own\.py:\d+.*\n  before: f64\[time\]\n  after: f32\[time\]",
    ),
    "another shape": (
        lambda: gc.compile(
            [T], gc.sin(T), rules=[(P.sin(x), lambda x: tensor.sum_(x, axes=(0,)))]
        ),
        r"the rule sin\(x\) = .* changes the type of sin(.|\n)*after: f64\[\]\n",
    ),
    "a fraction of integers": (
        lambda: gc.compile(
            [], gc.absolute(gc.arange(3, dim="i")), rules=[(P.absolute(x), lambda x: 0.5 * x)]
        ),
        r"full_like: 0\.5 is no int64",
    ),
    "no node": (
        lambda: gc.compile([T], gc.sin(T), rules=[(P.sin(x), lambda x: 3.0)]),
        "after: 3.0, which is not a node",
    ),
    "an op that no stage allows": (
        lambda: gc.compile(
            [T],
            gc.scan(lambda c, v: (c + gc.sin(v), None), 0.0, T, dim="time")[0],
            rules=[(P.sin(x), lambda x: 1 + STRANGER(x)), exp_of_exp],
        ),
        r"^the rule sin\(x\) = 1 \+ STRANGER\(x\) \(test_own\.py:\d+\): <stranger: f64\[\]> at "
        r"test_own\.py:\d+ may not stand in 'simplified'\n",
    ),
    "rules for a target that does not simplify": (
        lambda: gc.compile([T], T, rules=[exp_of_exp], target=FewPasses()),
        "'simplified', a pass that the target does not have",
    ),
    "two that undo each other": (
        lambda: gc.compile(
            [T],
            gc.sin(T),
            rules=[(P.sin(x), lambda x: e.cos(x)), (P.cos(x), lambda x: e.sin(x))],
        ),
        r"does not settle(.|\n)* sin\(x\) = e\.cos\(x\) \(test_own(.|\n)*cure: let a rule return",
    ),
    "one that grows": (
        lambda: gc.compile([T], gc.sin(T), rules=[(P.sin(x), lambda x: e.sin(e.cos(x)))]),
        r"rules that keep firing: sin\(x\) = e\.sin\(e\.cos\(x\)\) \(test_own\.py:\d+\)\n",
    ),
    "one that undoes ours": (
        lambda: gc.compile([T], gc.log1p(T), rules=[(P.log1p(x), lambda x: e.log(1 + x))]),
        r"rules that keep firing: log1p\(x\) = .* \(test_own.*\), log\(.*stabilise\.py",
    ),
    "a pickle of a lambda": (
        lambda: pickle.dumps(
            gc.compile([T], T, rules=[(P.sqrt(P.square(x)), lambda x: e.absolute(x))])
        ),
        r"cannot hold the rule sqrt\(square\(x\)\) = e\.absolute\(x\) \(test_own",
    ),
    "a pass after no pass": (
        lambda: register(doubled(), after="expand"), "did you mean 'expanded'",
    ),
    "a pass after the last": (
        lambda: register(doubled(), after="optimized"), "'optimized'(.|\n)*, rows as they lie$",
    ),
    "no pass": (lambda: register(double_sums, after="expanded"), "is not a Pass"),  # type: ignore[arg-type]
    "a name of ours": (
        lambda: register(doubled("lowered"), after="expanded"), "a pass 'lowered' already",
    ),
    "none to take back": (lambda: unregister("lost"), "no pass 'lost' is registered"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, words = REFUSED[name]
    with pytest.raises((gc.GraphTypeError, gc.GraphValueError)) as caught:
        call()
    message = str(caught.value)
    assert re.search(words, message)
    assert "cure: " in message
    assert "test_own.py" in message + str(getattr(caught.value, "__notes__", ""))


def test_a_failing_rule_is_named() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        gc.compile([T], gc.sin(T), rules=[(P.sin(x), lambda x: 1 / 0 * x)])
    assert "in the rule sin(x) = 1 / 0 * x (test_own.py" in caught.value.__notes__[0]


def test_a_pass_runs_after_each_pass_of_the_name() -> None:
    """Also in rounds that are repeated; the name is numbered, as those of others are."""
    twice = gc.exp(T) + gc.exp(T)
    register(doubled(), after="decomposed")
    f = gc.compile([T], twice, native=False)
    names = [stage.name for stage in f.passes]
    rounds = sum(name.startswith("decomposed") for name in names)
    assert sum(name.startswith("sums doubled") for name in names) == rounds > 1
    assert names[names.index("decomposed") + 1] == "sums doubled"
    assert [x.op for x in f.stages["sums doubled"].nodes()][-1] is e.multiply
    np.testing.assert_array_equal(f(AT), 2 * np.exp(AT))
    with pytest.raises(gc.GraphValueError, match="there is a pass 'sums doubled' already"):
        register(doubled(), after="lowered")
    unregister("sums doubled")
    assert "sums doubled" not in {s.name for s in gc.compile([T], twice, native=False).passes}


def more(graph: Graph) -> Graph:
    return Graph(graph.params, tuple(1.5 * e.cos(out) for out in graph.outputs))


def test_a_pass_that_rebuilds_by_hand_is_traced() -> None:
    register(doubled("more", more), after="expanded")
    wave = gc.sin(T)
    f = gc.compile([T], [gc.tan(T), wave], native=False)
    assert str(f.stages["more"]).count(wave.node.origin.shown(called=False)) == 3
    assert all(more in f.why(name, stage="more").rules for name in ("%2", "%5"))
    assert "more (test_own.py:" in repr([s.records for s in f.passes if s.name == "more"])


def softmax(graph: Graph) -> Graph:
    return Graph(graph.params, tuple(tensor.softmax(out, axes=(0,)) for out in graph.outputs))


WRONG_PASSES: dict[str, tuple[Callable[[Graph], Any], str]] = {
    "nothing": (lambda graph: None, "returns None, with other params"),
    "other params": (lambda graph: Graph((), graph.outputs), "with other params or outputs"),
    "another dtype": (
        lambda graph: Graph(
            graph.params, tuple(e.cast(out, dtype=np.dtype("f4")) for out in graph.outputs)
        ),
        r"f64\[time\] became f32\[time\], a result built at test_own",
    ),
    "never the same": (more, r"more \(test_own\.py:\d+\)"),
}


LEFT: dict[str, tuple[str, Pass, str]] = {
    "by the pass that it follows": (
        "decomposed",
        doubled("left", softmax),
        r"<softmax: f64\[time\]> at test_own\.py:\d+.* may not stand after 'decomposed'\n"
        r"(.|\n)*cure: let it build other ops, or register it after an earlier pass",
    ),
    "by its own contract": (
        "lowered",
        doubled("left", more),
        r"<pullback: .*> at test_own\.py:\d+.* may not stand by its own contract\n(.|\n)*"
        "cure: give it the contract of the pass 'lowered'",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_ops_that_a_pass_may_not_leave(name: str) -> None:
    after, own, words = LEFT[name]
    register(own, after=after)
    start = rf"^the pass 'left', {own.change.__name__} \(test_own\.py:\d+\): "
    with pytest.raises(gc.GraphTypeError, match=start + words):
        gc.compile([T], gc.grad(gc.sin(T).sum(), T))
    unregister("left")
    register(own._replace(contract=PLAIN), after="lowered")  # as the cures say
    gc.compile([T], gc.grad(gc.sin(T).sum(), T), native=False)


def test_a_pass_that_the_target_has_no_place_for() -> None:
    target = FewPasses()
    register(doubled(), after="lowered")
    f = gc.compile([T], T + T, target=target)
    assert [stage.name for stage in f.passes][-2:] == ["lowered", "sums doubled"]
    np.testing.assert_array_equal(f(AT), 2 * AT)
    unregister("sums doubled")
    register(doubled(), after="expanded")
    words = "'sums doubled' runs after 'expanded', a pass that the target does not have"
    with pytest.raises(gc.GraphValueError, match=words):
        gc.compile([T], T + T, target=target)
    gc.compile([T], T + T, native=False)
    unregister("sums doubled")  # as the cure says
    gc.compile([T], T + T, target=target)


@pytest.mark.parametrize("name", WRONG_PASSES)
def test_wrong_passes_are_named(name: str) -> None:
    change, words = WRONG_PASSES[name]
    register(doubled("wrong", change), after="contractions ordered")
    with pytest.raises((gc.GraphTypeError, gc.GraphValueError), match=words):
        gc.compile([T], gc.sin(T))


def test_a_pass_of_the_name_of_a_target() -> None:
    register(doubled("scheduled"), after="expanded")
    with pytest.raises(gc.GraphValueError, match="the target has a pass 'scheduled'"):
        gc.compile([T], T, native=False)


def test_files_hold_no_rules(tmp_path: Path) -> None:
    f = gc.compile([T], ROOT, rules=[(P.sqrt(P.square(x)), size_of), exp_of_exp], native=False)
    with pytest.raises(gc.GraphTypeError, match="a file cannot hold rules of your own"):
        gc.save(f, tmp_path / "rules.gc")
    loaded = pickle.loads(pickle.dumps(f))
    records = [record for stage in loaded.passes for record in stage.records]
    assert "sqrt(square(x)) = size_of (test_own.py:" in str(records)
    np.testing.assert_array_equal(loaded(AT), abs(AT))
    f.export(tmp_path / "rules.py")


# ---- what f.check finds


def found(y: Any, rules: Any, at: Any = AT, inputs: Any = T, **options: Any) -> Any:
    return gc.compile([inputs], y, rules=rules, native=False, **options).check(at)


POSITIVE = (P.sqrt(P.square(x)), lambda x: x)
EXACT = (P.sqrt(P.square(x)), lambda x: e.absolute(x))
PLACES = {
    "a result": lambda: ROOT,
    "a derivative": lambda: gc.grad(ROOT.sum(), T),
    "a loop": lambda: gc.scan(lambda c, v: (c + gc.sqrt(gc.square(v)),) * 2, 0.0, T, dim="time")[1],
    "a comparison": lambda: gc.sqrt(gc.square(T)) > 0,
    "a number of steps": lambda: gc.while_loop(
        lambda c: c.sum() < 9, lambda c: c + gc.sqrt(gc.square(T)), T
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_wrong_rule_is_found(place: str) -> None:
    mismatch = found({"y": PLACES[place]()}, [POSITIVE, exp_of_exp])
    assert isinstance(mismatch, Mismatch)
    assert mismatch.name == "result['y']"
    assert mismatch.place == {"time": 1} or place == "a number of steps"
    (part,) = mismatch.parts
    assert repr(part.rule) == "sqrt(square(x)) = x"
    assert found({"y": PLACES[place]()}, [EXACT]) is None


def test_what_a_mismatch_says() -> None:
    value = found(ROOT, [POSITIVE])
    assert (value.value, value.meant, value.count) == (-2.0, 2.0, 1)
    lines = str(value).splitlines()
    assert lines[0] == "result is -2 at [time=1] but 2 without rules of your own"
    assert re.fullmatch(r"  rule: test_own\.py:\d+  sqrt\(square\(x\)\) = x", lines[1])
    assert re.match(r"  applied at test_own\.py:\d+", lines[2])
    every = gc.compile([T], ROOT, rules=[POSITIVE]).check(AT, any=True)
    assert [type(each) for each in every] == [Mismatch]


def test_more_digits_are_no_mistake() -> None:
    """Where the program loses digits or overflows, a rule may give others."""
    half = [(1 - P.cos(x), lambda x: 2 * e.square(e.sin(0.5 * x)))]
    tiny = np.array([1e-9, 1e-3, 1.0])
    values = gc.compile([T], 1 - gc.cos(T), rules=half)(tiny)
    assert values[0] == 5e-19 != 1 - np.cos(tiny[0])
    assert found(1 - gc.cos(T), half, tiny) is None
    wrong = [(1 - P.cos(x), lambda x: e.square(e.sin(0.5 * x)))]
    assert found(1 - gc.cos(T), wrong, tiny).place == {"time": 1}
    large = np.array([800.0, 1.0, 2.0])
    rules = [(P.log(P.cosh(x)), lambda x: e.absolute(x) + e.log1p(e.exp(-2 * e.absolute(x))))]
    assert found(gc.log(gc.cosh(T)), rules, large).place == {"time": 1}
    assert found(gc.exp(T) / gc.exp(T), [(P.exp(x) / P.exp(x), lambda x: x * 0 + 1)], large) is None


def test_a_rule_that_makes_nan() -> None:
    mismatch = found(ROOT, [(P.sqrt(P.square(x)), lambda x: e.sqrt(x))], [1.0, -1.0])
    assert np.isnan(mismatch.value)
    assert (mismatch.meant, mismatch.place) == (1.0, {"time": 1})


def test_the_fewest_rules_that_change_a_result_are_named() -> None:
    odd = (P.sin(-x), lambda x: -e.sin(x))
    assert len(found(gc.sin(-T), [odd, (P.sin(x), lambda x: e.tan(x))]).parts) == 1
    mismatch = found(gc.sin(-T), [odd, (P.negative(P.sin(x)), lambda x: e.cos(x))])
    assert len(mismatch.parts) == 2
    assert "what one of them returns" in str(mismatch)


def test_a_wrong_pass_is_found() -> None:
    register(doubled("more", more), after="expanded")
    (part,) = found(gc.sin(T), [EXACT]).parts
    assert part.rule is more


def test_rounding_decides_a_position_or_a_shape() -> None:
    where = gc.ceil(ROOT).astype("int64")
    assert found(T.isel(time=where), [EXACT], [0.0, 1.0, 2.0]) is None
    assert found(T[ROOT > 1.0], [EXACT], [0.0, 1.0, 2.0]) is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128"])
def test_rounding_is_measured_in_the_dtype_of_a_result(dtype: str) -> None:
    """exp(x) exp(x) = exp(2 x) loses some digits, and exp(2.1 x) is another number."""
    given = gc.tensor("t", {"time": None}, dtype=dtype)
    at = np.linspace(-3, 4, 50).astype(dtype)
    value = gc.exp(given) * gc.exp(given)
    for right, fine in ((lambda x: e.exp(2 * x), True), (lambda x: e.exp(2.1 * x), False)):
        rules = [(P.exp(x) * P.exp(x), right), (P.square(P.exp(x)), right)]
        assert (found(value, rules, at, given) is None) == fine
