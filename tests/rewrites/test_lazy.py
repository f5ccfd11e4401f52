"""Lazy derivatives: one node until compile, shielded inner nodes, errors where they are asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.targets import NUMPY
from graphcore.ir.graph import Graph
from graphcore.ir.node import toposort
from graphcore.ops import autodiff, leaf
from graphcore.rewrites import expand, pipeline

X, V = gc.tensor("x", {"row": None}), gc.tensor("v", {"row": None})
AT, ALONG = np.array([0.5, 2.0, 3.0]), np.array([1.0, -0.5, 2.0])
HERE = Path(__file__).name


def value(outputs: Any, **more: Any) -> Any:
    given = {"x": AT, "v": ALONG} | more
    inputs = [n for n in toposort(t.node for t in flat(outputs)) if n.op is leaf.input_]
    tensors = [gc.Tensor(n) for n in inputs]
    return gc.compile(tensors, outputs)(**{t.name: given[t.name] for t in tensors})


def flat(outputs: Any) -> list[gc.Tensor]:
    if isinstance(outputs, gc.Tensor):
        return [outputs]
    return [t for part in outputs for t in flat(part)]


def count_new(y: gc.Tensor, made: list[gc.Tensor]) -> list[str]:
    old = set(toposort([y.node]))
    new = [n for n in toposort([t.node for t in made]) if n not in old]
    return sorted(n.op.name for n in new)


@pytest.mark.parametrize("depth", [1, 100, 5_000])
def test_one_node_whatever_the_graph(depth: int) -> None:
    xs = [gc.tensor(f"x{i}", {"row": None}) for i in range(3)]
    y = xs[0] * xs[1] + xs[2]
    for _ in range(depth):
        y = gc.sin(y) + xs[0]
    loss = y.sum()
    assert count_new(loss, gc.grad(loss, xs)) == [
        "full",
        "project",
        "project",
        "project",
        "pullback",
    ]
    forward = gc.pushforward(loss, xs, xs)
    assert count_new(loss, [forward]) == ["project", "pushforward"]


def test_no_rule_before_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking applies no derivative rule, and neither do the passes before expansion."""
    applied: list[Any] = []

    class Counting(dict[Any, Any]):
        def __getitem__(self, op: Any) -> Any:
            applied.append(op)
            return super().__getitem__(op)

    for name in ("PARTIALS", "TRANSPOSE", "VJP"):
        monkeypatch.setattr(expand, name, Counting(getattr(expand, name)))
    loss = (gc.exp(X) @ gc.special.softmax(X)).sum()
    slope = gc.grad(loss, X)
    curvature = gc.grad((slope * slope).sum(), X)
    graph = Graph((X.node,), (loss.node, slope.node, curvature.node))
    for step in NUMPY.passes:
        if isinstance(step, pipeline.Pass) and step.name == "expanded":
            assert applied == []
        graph = pipeline.run(graph, [step])[-1].graph
    assert len(applied) > 5


H = gc.exp(X)
H2 = H * X
LOSS = (gc.log(H) * H2).sum()  # x * x * exp(x)
INNER: dict[str, tuple[Callable[[], Any], Any]] = {
    "log of exp": (lambda: gc.grad(gc.log(H).sum(), H), 1 / np.exp(AT)),
    "log of exp, forward": (
        lambda: gc.pushforward(gc.log(H).sum(), H, V), (ALONG / np.exp(AT)).sum()
    ),
    "log of exp, twice": (
        lambda: gc.grad(gc.grad(gc.log(H).sum(), H).sum(), H), -1 / np.exp(2 * AT)
    ),
    "log of exp, forward over reverse": (
        lambda: gc.pushforward(gc.grad(gc.log(H).sum(), H), H, V), -ALONG / np.exp(2 * AT)
    ),
    "log of exp, then x": (
        lambda: gc.grad(gc.grad(gc.log(H).sum(), H).sum(), X), -np.exp(-AT)
    ),
    "both, h2 first": (lambda: gc.grad(LOSS, [H2, H])[0], AT),
    "both, h2 first: h": (
        # by h with h2 held: h2/h through the log; h2 itself depends on h: x * log(h)
        lambda: gc.grad(LOSS, [H2, H])[1], AT + AT * AT),
    "both, h first": (lambda: gc.grad(LOSS, [H, H2])[1], AT),
    "with x": (lambda: gc.grad(LOSS, [H2, X, H])[1], (AT * AT + 2 * AT) * np.exp(AT)),
    "itself": (lambda: gc.grad(X.sum(), X), np.ones(3)),
    "a node by itself": (lambda: gc.pullback(H, H, V), ALONG),
    "sum of sums": (lambda: gc.grad((H.sum() * H.sum()), H), np.full(3, 2 * np.exp(AT).sum())),
    "a view": (lambda: gc.grad((X.isel(row=0) * X).sum(), X), None),
    "negative of negative": (lambda: gc.grad((gc.negative(-X) * X).sum(), -X), -AT),
    "stop_gradient": (lambda: gc.grad((gc.stop_gradient(H) * X).sum(), X), np.exp(AT)),
    "through stop_gradient of h": (lambda: gc.grad((gc.stop_gradient(H) * H).sum(), H), np.exp(AT)),
}  # fmt: skip


@pytest.mark.parametrize("name", INNER)
def test_inner_nodes(name: str) -> None:
    ask, wanted = INNER[name]
    if wanted is None:
        wanted = AT[0] + 0 * AT
        wanted[0] += AT.sum()
    np.testing.assert_allclose(value(ask()), wanted, rtol=1e-12)


def test_forms_are_mirrored() -> None:
    y = (X * X).sum()
    assert isinstance(gc.grad(y, (X,)), tuple)
    assert list(gc.grad(y, {"a": X, "b": [X]})) == ["a", "b"]
    assert gc.grad(y, [X, X])[0] is not None
    np.testing.assert_allclose(value(gc.grad(y, [X, X])), [2 * AT, 2 * AT])
    nested = value([[X], [gc.grad(y, X), V], (y,)])
    assert [len(part) for part in nested] == [1, 2, 1]


def test_several_results() -> None:
    ys = [gc.exp(X), (X * X).sum()]
    ct = gc.tensor("ct", {})
    back = gc.pullback(ys, X, [V, ct])
    np.testing.assert_allclose(value(back, ct=2.0), np.exp(AT) * ALONG + 4 * AT)
    forth = gc.pushforward(ys, X, V)
    np.testing.assert_allclose(value(forth)[0], np.exp(AT) * ALONG)
    np.testing.assert_allclose(value(forth)[1], (2 * AT * ALONG).sum())


def test_cotangents_may_have_their_dims_in_any_order() -> None:
    x = gc.tensor("m", {"row": 2, "col": 3})
    ct = gc.tensor("ct", {"col": 3, "row": 2})
    back = gc.pullback(gc.sin(x), x, ct)
    assert back.dims == ("row", "col")
    m, c = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(gc.compile([x, ct], back)(m, c), np.cos(m) * c.T)


def test_disconnected_zero() -> None:
    found = gc.grad(X.sum(), [X, V], disconnected="zero")
    np.testing.assert_array_equal(value(found[1]), np.zeros(3))
    tangent = gc.pushforward(X.sum(), V, V, disconnected="zero")
    assert value(tangent) == 0


N = gc.tensor("n", {"row": None}, dtype="int64")
REFUSED: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "not a scalar": (lambda: gc.grad(gc.sin(X), X), ["grad", "row", "sin", "sum it first"]),
    "disconnected": (lambda: gc.grad(X.sum(), V), ["grad", "v: f64[row]", "does not depend"]),
    "disconnected by stop": (
        lambda: gc.grad(gc.stop_gradient(X).sum(), X),
        ["grad", "x: f64[row]", "only through stop_gradient"],
    ),
    "disconnected by argmax": (
        lambda: gc.grad(X.argmax() * 1.0, X), ["grad", "x: f64[row]", "only through integers"]
    ),
    "disconnected forward": (
        lambda: gc.pushforward(X.sum(), V, V), ["pushforward", "v: f64[row]", "does not depend"]
    ),
    "integer wrt": (lambda: gc.grad((N * 1.0).sum(), N), ["grad", "n: i64[row]", "int64"]),
    "integer result": (lambda: gc.grad(N.sum(), X), ["grad", "sum", "int64"]),
    "bool wrt": (lambda: gc.pullback(X, X > 0, X), ["pullback", "greater", "bool"]),
    "ct dims": (lambda: gc.pullback(X, X, X.sum()), ["pullback", "cotangent", "row"]),
    "tangent dims": (lambda: gc.pushforward(X.sum(), X, X.sum()), ["pushforward", "tangent"]),
    "tangent count": (lambda: gc.pushforward(X.sum(), [X], [X, X]), ["pushforward", "tangents"]),
    "a word": (lambda: gc.grad(X.sum(), X, disconnected="maybe"), ["'error' or 'zero'"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_when_asked(name: str) -> None:
    """At once, not at compile: with the op, the dims, the line and the cure."""
    ask, parts = REFUSED[name]
    with pytest.raises(gc.GraphError) as caught:
        ask()
    message = str(caught.value)
    assert [part for part in parts if part not in message] == []
    if name not in ("tangent count", "a word"):
        assert f"{HERE}:" in message
        assert "cure" in message


def test_barriers_are_gone_after_expansion() -> None:
    slope = gc.grad(LOSS, [H2, H, X])
    stages = pipeline.run(Graph((X.node,), tuple(t.node for t in slope)), NUMPY.passes)
    barriers = {
        stage.name: sum(n.op is autodiff.barrier for n in stage.graph.nodes()) for stage in stages
    }
    assert barriers["lowered"] == 2
    assert barriers["expanded"] == barriers["optimized"] == 0


def test_forward_and_backward_share_nodes() -> None:
    """tanh is computed once for the value and the gradient."""
    y = gc.tanh(X).sum()
    graph = Graph((X.node,), (y.node, gc.grad(y, X).node))
    last = pipeline.run(graph, NUMPY.passes)[-1].graph
    assert sum(n.op.name == "tanh" for n in last.nodes()) == 1


def test_origins_say_who_asked() -> None:
    y = gc.exp(gc.sin(X)).sum()
    slope = gc.grad(y, X)
    expanded = gc.compile([X], slope).stages["expanded"]
    cosine = next(n for n in expanded.nodes() if n.op.name == "cos")
    assert expanded.trace is not None
    origin = expanded.trace.origin(cosine)
    assert origin.via is not None
    assert Path(origin.file).name == Path(origin.via.file).name == HERE
    assert origin.via.line == origin.line + 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (gc.log(1 + gc.exp(X)), gc.special.softplus(X)),
        (gc.exp(X), gc.exp(X * 1)),
    ],
    ids=["softplus", "exp"],
)
def test_a_derivative_by_one_of_two_equal_tensors_does_not_count_the_other(
    one: gc.Tensor, other: gc.Tensor
) -> None:
    """Two nodes that become one before they are differentiated; one is a source inside a slope."""
    slope = gc.grad((one * one).sum(), one)
    by_other = gc.grad((slope * other).sum(), other)
    np.testing.assert_allclose(value(by_other), value(2 * one))


def test_a_derivative_does_not_count_another_lazy_one_of_equal_value() -> None:
    """Both are zero, which only their expansion shows."""
    first = gc.grad(gc.zeros({"a": 2}).sum(), X, disconnected="zero")
    second = gc.grad(gc.grad((X * V).sum(), V).sum() * 0, X)
    slope = gc.grad((first * first).sum(), first)
    assert first.node is not second.node
    by_second = gc.grad(slope.sum(), second, disconnected="zero")
    np.testing.assert_array_equal(value(by_second), [0, 0, 0])


def test_what_something_differentiates_by_stays_one_node() -> None:
    """Derivatives below it are expanded, and cotangents tidied, without making another of it."""
    x, t, rate = gc.tensor("x", {"row": 3}), gc.tensor("t", {"row": 3}), gc.tensor("rate", {})
    tangent = gc.pushforward(x, x, t)
    nothing = gc.pushforward(tangent, x, x, disconnected="zero").sum()
    slope = gc.pushforward(gc.special.expit(nothing), nothing, rate)
    third = gc.hessian(slope, nothing)  # sigmoid'''(0) = -1/8
    f = gc.compile([x, t, rate], third)
    assert f(np.ones(3), np.ones(3), 2.0) == -0.25
