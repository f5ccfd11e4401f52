"""The two drivers and the notation of rules."""

from __future__ import annotations

import gc as garbage
import pickle
import re

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.targets import NUMPY
from graphcore.ir.errors import ContractError
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.provenance import Origin, inheriting
from graphcore.ir.trace import Trace, rule_name, tracing
from graphcore.ir.transform import substitute
from graphcore.ops import autodiff, leaf, linalg, named, special, tensor
from graphcore.ops import elementwise as e
from graphcore.rewrites import pipeline
from graphcore.rewrites.algebra import algebra
from graphcore.rewrites.contraction import contraction
from graphcore.rewrites.engine import RuleSet, convert, simplify
from graphcore.rewrites.motion import motion
from graphcore.rewrites.pattern import P, variables
from graphcore.rewrites.plain import full
from graphcore.rewrites.powers import powers
from graphcore.rewrites.stabilise import stabilise

F8 = np.dtype("f8")
DEEP = 20_000
x, y = variables("x y")


def given(name: str, *shape: int, dtype: str = "f8") -> Node:
    return leaf.input_(name=name, dtype=np.dtype(dtype), shape=shape, dims=None)


X, Y, C = given("x", 2, 3), given("y", 2, 3), given("c", 2, 3, dtype="?")
ZERO, ONE, TWO = (full(v, F8, (2, 3)) for v in (0, 1, 2))
MINUS_ZERO, MINUS_ONE = full(-0.0, F8, (2, 3)), full(-1, F8, (2, 3))


def simplified(node: Node, *sets: RuleSet) -> Node:
    rules = RuleSet()
    for some in sets:
        rules |= some
    return simplify(Graph((), (node,)), rules).outputs[0]


BECOMES: list[tuple[Node, Node]] = [
    (X * ONE, X), (ONE * X, X), (X / ONE, X), (X - ZERO, X), (X + MINUS_ZERO, X),
    (X + ZERO, X + ZERO),  # -0.0 + 0 is 0
    (X * ZERO, X * ZERO),  # nan, and the sign
    (X - X, X - X), (X / X, X / X),
    (X * MINUS_ONE, -X), (X / MINUS_ONE, -X), (e.negative(-X), X), (X + -Y, X - Y), (X - -Y, X + Y),
    (-X + Y, Y - X),
    (-X * Y, -(X * Y)), (X * -Y, -(Y * X)), (-X / Y, -(X / Y)), (X / -Y, -(X / Y)),
    (-X * -Y, Y * X),
    (e.square(-X), e.square(X)), (e.absolute(-X), e.absolute(X)),
    (e.logical_not(e.logical_not(C)), C),
    (e.where(C, X, X), X), (e.where(e.logical_not(C), X, Y), e.where(C, Y, X)),
    (X**TWO, e.square(X)), (X**ONE, X), (X**ZERO, ONE), (X**MINUS_ONE, e.reciprocal(X)),
    (e.cast(X, dtype=F8), X),
    (e.cast(e.cast(C, dtype=np.dtype("i8")), dtype=F8), e.cast(C, dtype=F8)),
    (ONE + ONE, TWO), (e.exp(ZERO), ONE), (e.less(ZERO, ONE), full(True, np.dtype("?"), (2, 3))),
    (e.log(ONE + X), e.log1p(X)), (e.log(X + ONE), e.log1p(X)), (e.log(ONE - X), e.log1p(-X)),
    (e.exp(X) - ONE, e.expm1(X)), (e.log(e.exp(X)), X),
    (e.log(ONE + e.exp(X)), special.softplus(X)), (e.log1p(e.exp(X)), special.softplus(X)),
    (ONE / (ONE + e.exp(-X)), special.sigmoid(X)), (ONE - special.sigmoid(X), special.sigmoid(-X)),
    (e.log(special.sigmoid(X)), -special.softplus(-X)),
    (e.log1p(-special.sigmoid(X)), -special.softplus(X)),
    (e.sqrt(X * X), e.absolute(X)), (e.sqrt(e.square(X)), e.absolute(X)),
    (e.sqrt(X * Y), e.sqrt(X * Y)),
    (e.log(tensor.sum_(e.exp(X), axes=(1,))), tensor.logsumexp(X, axes=(1,))),
    (e.exp(X) / tensor.expand(tensor.sum_(e.exp(X), axes=(1,)), axes=(1,), sizes=(3,)),
     tensor.softmax(X, axes=(1,))),
    (tensor.transpose(tensor.transpose(X, perm=(1, 0)), perm=(1, 0)), X),
    (e.exp(tensor.transpose(X, perm=(1, 0))), tensor.transpose(e.exp(X), perm=(1, 0))),
    (tensor.sum_(tensor.sum_(X, axes=(1,)), axes=(0,)), tensor.sum_(X, axes=(0, 1))),
    (tensor.sum_(-X, axes=(0,)), -tensor.sum_(X, axes=(0,))),
    (tensor.reshape(tensor.reshape(X, shape=(6,)), shape=(2, 3)), X),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), BECOMES, ids=lambda node: repr(node)[1:20])
def test_equations_by_identity(before: Node, after: Node) -> None:
    assert simplified(before, stabilise, algebra, powers, motion) is after


def test_nothing_looks_through_a_barrier() -> None:
    for before in (
        e.log(autodiff.barrier(e.exp(X))),
        -autodiff.barrier(-X),
        e.sqrt(autodiff.barrier(X) * X),
        tensor.transpose(autodiff.barrier(tensor.transpose(X, perm=(1, 0))), perm=(1, 0)),
    ):
        assert simplified(before, stabilise, algebra, powers, motion, contraction) is before


def chain(depth: int, step: object) -> Node:
    node = X
    for _ in range(depth):
        node = step(node)
    return node


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (lambda x: e.log(e.exp(x)), 1),
        *[
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (e.sin, DEEP + 1),
                (lambda x: -x, 1),
                (lambda x: x * ONE, 1),
                (lambda x: tensor.transpose(tensor.transpose(x, perm=(1, 0)), perm=(1, 0)), 1),
            )
        ],
    ],
    ids=["log exp", "kept", "negated", "by one", "transposed"],
)
def test_deep_chains(step: object, left: int) -> None:
    """Neither driver recurses, and neither does printing a graph's repr, pickling or freeing it."""
    depth = DEEP // (len(Graph((), (chain(1, step),))) - len(Graph((), (X,))))
    graph = Graph((X,), (chain(depth, step),))
    with tracing(Trace()) as trace:
        found = simplify(graph, stabilise | algebra | powers | motion)
    assert len(found) == left
    assert bool(trace.records) == (left == 1)
    assert convert(found, {}) is found
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_deep_derivatives() -> None:
    """A pullback through a deep graph, and a pipeline over it."""
    param = leaf.input_(name="x", dtype=F8, shape=(), dims=())
    node = param
    for _ in range(DEEP // 5):
        node = e.sin(node)
    one = leaf.full(value=full(1, F8).attrs["value"], shape=(), dims=())
    slope = autodiff.pullback(node, param, one, ys=1, wrt=1)[0]
    stages = pipeline.run(Graph((param,), (node, slope)), NUMPY.passes)
    assert len(stages[-1].graph) > 2 * DEEP // 5
    del stages, slope, node
    garbage.collect()


def test_derivatives_of_many_choices_in_a_row() -> None:
    """What each leaves out is left out at once."""
    param = leaf.input_(name="x", dtype=F8, shape=(), dims=())
    zero = leaf.full(value=full(0, F8).attrs["value"], shape=(), dims=())
    one = leaf.full(value=full(1, F8).attrs["value"], shape=(), dims=())
    node = param
    for _ in range(1500):
        node = e.where(e.greater(param, zero), e.sin(node), zero)
    slope = autodiff.pullback(node, param, one, ys=1, wrt=1)[0]
    assert len(pipeline.run(Graph((param,), (slope,)), NUMPY.passes)[-1].graph) < 10 * 1500


def test_convert_may_change_types_and_visits_once() -> None:
    visits = []

    def halve(node: Node, x: Node) -> Node:
        visits.append(node)
        return e.cast(x, dtype=np.dtype("f4"))

    shared = e.exp(X)
    graph = Graph((X,), (shared, e.absolute(shared)))
    found = convert(graph, {e.exp: halve})
    assert visits == [shared]
    assert [y.type.dtype for y in found.outputs] == [np.float32, np.float32]


def test_simplify_never_changes_a_type() -> None:
    wrong = RuleSet([(P.exp(x), lambda x: e.cast(x, dtype=np.dtype("f4")))])
    with pytest.raises(gc.GraphTypeError, match=r"rule exp\(x\) = .* changes the type of exp"):
        simplified(e.exp(X), wrong)
    smaller = RuleSet([(P.exp(x), lambda x: tensor.sum_(x, axes=(0,)))])
    with pytest.raises(gc.GraphTypeError, match="changes the type"):
        simplified(e.exp(X), smaller)


def test_rules_are_tried_in_the_order_in_which_they_were_added() -> None:
    """Whether or not they ask for an operand of a certain op, and wherever that operand stands."""
    node = e.add(e.exp(X), e.sin(Y))
    anywhere, below_exp, below_sin = RuleSet(), RuleSet(), RuleSet()
    anywhere.add(lambda node: X, [e.add], [])
    below_exp.add(lambda node: Y, [e.add], [e.exp])
    below_sin.add(lambda node: X * Y, [e.add], [e.sin])
    assert simplified(node, anywhere, below_exp) is X
    assert simplified(node, below_exp, anywhere) is Y
    assert simplified(node, below_sin, below_exp) is X * Y
    assert simplified(node, below_exp, below_sin) is Y
    late = RuleSet()
    assert late.step(node) is None
    late.add(lambda node: X, [e.add], [])
    assert simplified(node, late) is X


def test_rewrites_are_recorded() -> None:
    with tracing(Trace()) as trace:
        simplify(Graph((X,), (e.negative(-X) * ONE,)), algebra)
    found = [(record.before.op.name, record.after) for record in trace.records]
    assert found == [("negative", X), ("multiply", X)]
    for record in trace.records:
        assert re.fullmatch(r".+ = .+ \(algebra\.py:\d+\)", rule_name(record.rule))


def test_a_rule_without_a_name_shows_its_line() -> None:
    rule = lambda node: X
    assert re.fullmatch(r"rule = lambda node: X \(test_engine\.py:\d+\)", rule_name(rule))


def test_every_rule_says_where_it_stands() -> None:
    for rules in (stabilise, algebra, powers, motion, contraction):
        for rule in rules.rules():
            assert "rewrites" in rule.__code__.co_filename


def test_new_nodes_inherit_the_line() -> None:
    with inheriting(Origin("model.py", 7)):
        before = e.log(ONE + e.exp(given("inherits", 2, 3)))
    after = simplified(before, stabilise)
    assert after.op is special.softplus
    assert after.origin == Origin("model.py", 7)


def test_patterns() -> None:
    """A variable that stands twice matches one node; commutative ops match both ways."""
    assert list((x * x).match(X * Y, {})) == []
    assert list((x * x).match(X * X, {}))
    assert {m["x"] for m in (x + y).match(X + Y, {})} == {X, Y}
    assert [m["x"] for m in (x - y).match(X - Y, {})] == [X]
    assert list((x + 0.0).match(X + MINUS_ZERO, {})) == []
    assert list((x + -0.0).match(X + MINUS_ZERO, {}))
    assert list((x * 1).match(C, {})) == []


def test_rules_are_tried_in_order() -> None:
    first = RuleSet([(P.exp(x), lambda x: e.sin(x))])
    second = RuleSet([(P.exp(x), lambda x: e.cos(x))])
    assert simplified(e.exp(X), first, second) is e.sin(X)
    assert simplified(e.exp(X), second, first) is e.cos(X)
    declines = RuleSet([(P.exp(x), lambda x: None)])
    assert simplified(e.exp(X), declines, second) is e.cos(X)


def test_contracts() -> None:
    plain = Graph((X,), (tensor.sum_(X, axes=(0,)),))
    pipeline.EXPANDED.check(plain, "expanded")
    with pytest.raises(ContractError, match="named"):
        pipeline.NAMED.check(plain, "named")
    dims = leaf.input_(name="n", dtype=F8, shape=(2,), dims=("row",))
    for graph in (
        Graph((dims,), (e.exp(dims),)),
        Graph((dims,), (named.sum_(dims, dims=("row",)),)),
    ):
        with pytest.raises(ContractError, match="lowered"):
            pipeline.PLAIN.check(graph, "lowered")
    lazy = Graph((X,), (autodiff.stop_gradient(X),))
    pipeline.PLAIN.check(lazy, "lowered")
    with pytest.raises(ContractError, match="expanded"):
        pipeline.EXPANDED.check(lazy, "expanded")
    whole = Graph((X,), (tensor.softmax(X, axes=(0,)),))
    pipeline.EXPANDED.check(whole, "expanded")
    with pytest.raises(ContractError, match="decomposed"):
        pipeline.DECOMPOSED.check(whole, "decomposed")
    assert pipeline.DECOMPOSED.ops() < pipeline.EXPANDED.ops() < pipeline.PLAIN.ops()
    for contract in (pipeline.EXPANDED, pipeline.DECOMPOSED):  # several values are told apart
        with pytest.raises(ContractError, match="tuple"):
            contract.check(Graph((X,), (leaf.tuple_(X, X),)), "decomposed")


def test_a_stage_simplified_by_hand_keeps_lines_and_dims() -> None:
    x = gc.tensor("x", {"row": 3})
    f = gc.compile([x], gc.exp(gc.log(1 + gc.exp(x)) * 2), native=False)
    text = str(simplify(f.stages["lowered"], stabilise))
    assert "%0: f64[row=3] = softplus(x)" in text
    assert "unknown" not in text
    assert text.count("test_engine.py:") == 4


def test_an_operand_that_is_no_node_is_refused() -> None:
    x = gc.tensor("x", {"row": 3})
    for wrong in (1, x):
        with pytest.raises(gc.GraphTypeError, match=r"minimum: .* is not a node\n  cure: ops take"):
            e.minimum(x.node, wrong)


def test_one_of_several_values_is_that_value_when_it_is_built() -> None:
    both, several = leaf.tuple_(X, Y), linalg.slogdet(given("m", 3, 3))
    signs, logs = given("s"), given("l")
    assert both[1] is Y
    assert several[1].with_inputs(leaf.tuple_(signs, logs)) is logs
    (found,) = substitute([e.exp(several[1])], {several: leaf.tuple_(signs, logs)})
    assert found is e.exp(logs)
    with pytest.raises(IndexError):
        both[2]
