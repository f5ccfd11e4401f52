"""Compilation comes to rest: every fixed point has a bound, and programs stay far below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphcore as gc
from graphcore.compile import compiled
from graphcore.ir import transform
from graphcore.ir.errors import UnsettledError
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ops import autodiff, leaf, tensor
from graphcore.ops import elementwise as e
from graphcore.rewrites import expand, pipeline
from graphcore.rewrites.engine import RuleSet, simplify
from graphcore.rewrites.pattern import P, variables
from graphcore.rewrites.pipeline import COMMON, EXPANDED, Pass, Repeat, tidied
from tests.reference import close

x, y = variables("x y")
X = leaf.input_(name="x", dtype=np.dtype("f8"), shape=(2, 3), dims=None)


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds a few times what the programs of the tests need."""
    monkeypatch.setattr(transform, "STEPS", 60)
    passes = [step._replace(at_most=8) if isinstance(step, Repeat) else step for step in COMMON]
    monkeypatch.setattr(compiled, "COMMON", passes)
    monkeypatch.setattr(expand, "ROUNDS", 20)


def simplified(node: Node, rules: RuleSet) -> Node:
    return simplify(Graph((), (node,)), rules).outputs[0]


UNDOING = {
    "each other": (
        [(P.exp(x), lambda x: e.sin(x)), (P.sin(x), lambda x: e.exp(x))], {"exp", "sin"},
    ),
    "growing inside": ([(P.exp(x), lambda x: e.exp(e.sin(x)))], {"exp"}),
    "growing outside": ([(P.exp(x), lambda x: e.sin(e.exp(e.sin(x))))], {"exp"}),
    "around itself": ([(P.exp(x), lambda x: e.cos(e.exp(x)))], {"exp"}),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDOING)
def test_rules_that_do_not_settle_are_named(name: str) -> None:
    equations, heads = UNDOING[name]
    innocent = (P.negative(P.negative(x)), lambda x: x)
    with pytest.raises(gc.GraphValueError, match="does not settle") as caught:
        simplified(e.exp(e.negative(e.negative(X))), RuleSet([innocent, *equations]))
    message = str(caught.value)
    assert all(f" {head}(x) = " in message for head in heads)
    assert "test_settling.py" in message
    assert "negative" not in message


def test_bodies_do_not_settle_either() -> None:
    wrong = RuleSet([(P.exp(x), lambda x: e.sin(x)), (P.sin(x), lambda x: e.exp(x))])
    scan = gc.scan(lambda c, _: (gc.exp(c), None), gc.tensor("c", {"a": 2}), length=3)[0]
    graph = pipeline.lower_names(Graph((), (scan.node,)))
    with pytest.raises(gc.GraphValueError, match=r"test_settling\.py"):
        simplify(graph, wrong)


def test_passes_that_never_settle_are_named() -> None:
    def grow(graph: Graph) -> Graph:
        (out,) = graph.outputs
        return Graph(graph.params, (tensor.sum_(e.square(e.cos(out)), axes=()),))

    growing = Repeat([Pass("grown", grow, EXPANDED), tidied], at_most=9)
    with pytest.raises(UnsettledError, match=r"sum_of_view \(motion\.py"):
        pipeline.run(Graph((X,), (e.sin(X),)), [growing])


def test_derivatives_that_ask_for_each_other(
    monkeypatch: pytest.MonkeyPatch, small_bounds: None
) -> None:
    again: Callable[..., Node] = lambda node, *xs: leaf.tuple_(
        e.sin(autodiff.pullback(*xs, ys=1, wrt=1)[0])
    )
    monkeypatch.setitem(expand.EXPAND, autodiff.pullback, again)
    asked = autodiff.pullback(e.exp(X), X, X, ys=1, wrt=1)[0]
    with pytest.raises(UnsettledError, match="never expanded"):
        expand.expand_derivatives(Graph((X,), (asked,)))


def test_a_contraction_over_nothing() -> None:
    """Taken in and decomposed again in turns, it was guarded once more each time."""
    x, z = (gc.tensor(name, {"a": 3, "m": 3}) for name in "xz")
    y = gc.tensor("y", {"a": 3, "q": 0})
    slope = gc.grad(gc.sin(gc.dot(y, x, z, z * z, dim="a")).sum(), x)
    found = gc.compile([x, y, z], slope)(np.ones((3, 3)), np.ones((3, 0)), np.ones((3, 3)))
    np.testing.assert_array_equal(found, np.zeros((3, 3)))


def test_loops_that_would_wait_for_each_other() -> None:
    """Each map could be one with either scan; one needs one of the scans, one the other."""
    a, b = gc.tensor("a", {"t": None}), gc.tensor("b", {"t": None, "k": 2})
    ups = gc.scan(lambda c, v: (gc.sin(c) + v, c), 0.5, a, dim="t")[1]
    downs = gc.scan(lambda c, v: (gc.cos(c) - v, c), gc.zeros({"k": 2}), b, dim="t")[1]
    mapped = [gc.map(lambda _, y=y: gc.exp(y).sum("t"), a, "t") for y in (downs, ups)]
    found = gc.compile([a, b], [ups, downs, *mapped])(np.ones(3), np.ones((3, 2)))
    for each, y in zip(found[2:], (found[1], found[0]), strict=True):
        np.testing.assert_allclose(each, [np.exp(y).sum(0)] * 3)


def test_reverse_over_reverse_of_a_scan_beside_a_map(small_bounds: None) -> None:
    """The map does not use its elements; its loop and that of the scan were made one in turns."""
    x0, x1 = gc.tensor("x0", {"row": None}), gc.tensor("x1", {"k": None, "c": 3})
    x2 = gc.tensor("x2", {"c": 3, "k": None, "d": 4})

    def body(c: gc.Tensor, _: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        w = x2.rename(c="q13")[{"k": 0}]
        return gc.sin(w.sum(["q13", "d"]) + c), gc.dot(x2, x2, dim=["c", "k"]).rename(d="q")

    last, each = gc.scan(body, gc.exp(x1), x0, dim="row")
    mapped = gc.map(lambda _: gc.var(each, ["q", "row"]), each * each, "q")
    z = gc.tanh((each * each).mean(["row", "q"])) * gc.tanh(gc.var(mapped, "q"))
    loss = gc.sin(last).sum() + gc.sin(z).sum()
    xs = [x0, x1, x2]
    ts = [gc.tensor(f"t{i}", dict.fromkeys(x.dims)) for i, x in enumerate(xs)]
    slopes = gc.grad(loss, xs, disconnected="zero")
    along = sum((a * t).sum() for a, t in zip(slopes, ts, strict=True))
    random = np.random.default_rng(0)
    shapes = [(2,), (2, 3), (3, 2, 4)]
    values = [random.normal(size=shape) for shape in shapes * 2]
    back = gc.compile([*xs, *ts], gc.grad(along, xs, disconnected="zero"))(*values)
    forth = gc.compile([*xs, *ts], gc.hvp(loss, xs, ts))(*values)
    for found, wanted in zip(back, forth, strict=True):
        close(found, wanted, np.abs(wanted).max(initial=0))


UNARY: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "itself": lambda x: x, "square": lambda x: x * x, "negative": lambda x: -x, "sin": gc.sin,
    "twice": lambda x: 2.0 * x, "tanh": gc.tanh,
}  # fmt: skip
BINARY: dict[str, Callable[[gc.Tensor, gc.Tensor], gc.Tensor]] = {
    "add": lambda x, y: x + y, "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / (1 + y * y), "where": lambda x, y: gc.where(x > 0, x, y),
}  # fmt: skip


@st.composite
def contractions(draw: Any) -> tuple[list[gc.Tensor], gc.Tensor]:
    """Inputs whose dims are empty, single, few or unknown, and a number made of their products."""
    size = st.sampled_from([0, 1, 2, 3, 3, None, None])
    sizes = {dim: draw(size) for dim in "abcde"}
    dims = st.lists(st.sampled_from("abcde"), max_size=3, unique=True)
    xs = [
        gc.tensor(f"x{i}", {d: sizes[d] for d in draw(dims)})
        for i in range(draw(st.integers(2, 4)))
    ]
    pool = list(xs)
    for _ in range(draw(st.integers(1, 3))):
        some = draw(
            st.lists(
                st.tuples(st.sampled_from(pool), st.sampled_from([*UNARY])), min_size=1, max_size=5
            )
        )
        factors = [UNARY[name](one) for one, name in some]
        have = list(dict.fromkeys(dim for one in factors for dim in one.dims))
        over = [dim for dim in have if draw(st.booleans())]
        if draw(st.booleans()):
            made = gc.dot(*factors, dim=over)
        else:
            made = factors[0]
            for one in factors[1:]:
                made = BINARY[draw(st.sampled_from([*BINARY]))](made, one)
            made = made.sum(over)
        pool.append(UNARY[draw(st.sampled_from(["itself", "sin", "tanh"]))](made))
    return xs, pool[-1].sum()


@st.composite
def side_by_side(draw: Any) -> tuple[list[gc.Tensor], gc.Tensor]:
    """Scans and maps along one dim that capture what earlier ones have made."""
    dims = {"a": ("t",), "b": ("t", "k"), "c": ("m", "t")}
    xs = [
        gc.tensor(name, {d: {"k": 2, "m": 3}.get(d) for d in some}) for name, some in dims.items()
    ]
    pool = list(xs)

    def changed() -> gc.Tensor:
        return UNARY[draw(st.sampled_from([*UNARY]))](draw(st.sampled_from(pool))).mean("t")

    for maps in draw(st.lists(st.booleans(), min_size=2, max_size=6)):
        held = changed()
        if maps:
            pool.append(gc.map(lambda _, held=held: gc.tanh(held), xs[0], "t"))
        else:
            walked = draw(st.sampled_from(pool))
            start = gc.tanh(held + walked.mean("t"))
            body = lambda c, v, held=held: (gc.tanh(c * v + held), c)
            pool.append(gc.scan(body, start, walked, dim="t", reverse=draw(st.booleans()))[1])
    return xs, gc.sin(sum(gc.tanh(one).mean() * (i + 1) for i, one in enumerate(pool)))


def settles(programs: Any, second: bool, count: int) -> None:
    """Random programs compile with their derivatives, to `second` order in reverse over reverse."""

    def check(program: tuple[list[gc.Tensor], gc.Tensor]) -> None:
        xs, loss = program
        asked = [loss, *gc.grad(loss, xs, disconnected="zero")]
        if second:
            bent = sum(gc.sin(y).sum() for y in asked)
            asked += gc.grad(bent, xs, disconnected="zero")
        gc.compile(xs, asked)

    settings(max_examples=count)(given(programs)(check))()


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_contractions_settle_early(count: int, small_bounds: None) -> None:
    settles(contractions(), True, count)


@pytest.mark.parametrize(
    ("second", "count"),
    [(False, 25), *(pytest.param(s, 400, marks=pytest.mark.slow) for s in (False, True))],
)
def test_random_loops_settle_early(second: bool, count: int, small_bounds: None) -> None:
    settles(side_by_side(), second, count)


RESTLESS: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "the body drops the dims ['a']": lambda c: c.sum() if c.dims else c.expand_dims(a=3),
    "start with a tensor": lambda c: c.expand_dims({f"d{len(c.dims)}": 2}),
}


@pytest.mark.parametrize("cure", RESTLESS)
def test_a_number_whose_type_never_settles(cure: str) -> None:
    body = RESTLESS[cure]
    for loop in (
        lambda: gc.scan(lambda c, _: (body(c), None), 0.0, length=3),
        lambda: gc.while_loop(lambda c: c.sum() < 9, body, 0.0),
        lambda: gc.fori_loop(0, 3, lambda _, c: body(c), 0.0),
    ):
        with pytest.raises(gc.GraphTypeError, match="changes the type of its carry") as caught:
            loop()
        assert cure in str(caught.value)


def test_types_that_settle_one_after_the_other() -> None:
    """Each of many numbers takes the type of the one before, the first that of a tensor."""
    x = gc.constant([1.5, 2.5], "a")
    start = [0] * 30
    last, _ = gc.scan(lambda cs, _: ([x, *cs[:-1]], None), start, length=40)
    assert {(c.dims, c.dtype.name) for c in last} == {(("a",), "float64")}
    np.testing.assert_array_equal(gc.compile([], last)(), [[1.5, 2.5]] * 30)
