"""Programs of ours in graphs of PyTensor: values, and derivatives of two orders, in two modes."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor", minversion="3.0")

import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode

import graphcore as gc
from graphcore.interop.pytensor import to_pytensor

pytestmark = pytest.mark.filterwarnings("ignore")

R = np.random.default_rng(6)
X, W = R.normal(size=(3, 4)), R.normal(size=4)
MODES = ["GRAPHCORE", "FAST_COMPILE"]


def program(**options: Any) -> Any:
    x, w = gc.tensor("x", {"obs": None, "feature": 4}), gc.tensor("w", {"feature": 4})
    y = gc.tanh(gc.dot(x, w, dim="feature"))
    return gc.compile([x, w], {"y": y, "loss": (y**2).sum()}, **options)


@pytest.mark.parametrize("mode", MODES)
def test_values_and_derivatives(mode: str) -> None:
    f = to_pytensor(program())
    x, w, v = pt.matrix("x"), pt.vector("w"), pt.vector("v")
    made = f(2 * x, w)
    assert [*made] == ["y", "loss"]
    plain = pt.tanh((2 * x) @ w)
    values = []
    for y, loss in ((made["y"], made["loss"]), (plain, (plain**2).sum())):
        total = loss + pt.exp(y).sum()
        slope = pytensor.grad(total, w)
        outputs = [y, loss, slope, pytensor.grad(total, x), pytensor.grad((slope * v).sum(), w)]
        values.append(pytensor.function([x, w, v], outputs, mode=mode)(X, W, W[::-1]))
    for ours, theirs in zip(*values, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_forward_mode(mode: str) -> None:
    pushforward = pytest.importorskip("pytensor.gradient").pushforward
    f = to_pytensor(program())
    x, w, v = pt.matrix("x"), pt.vector("w"), pt.vector("v")
    slopes = [pushforward(y, w, v) for y in (f(x=x, w=w)["y"], pt.tanh(x @ w))]
    ours, theirs = pytensor.function([x, w, v], slopes, mode=mode)(X, W, W[::-1])
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_integers_and_unused_inputs(mode: str) -> None:
    x, i = gc.tensor("x", {"row": None}), gc.tensor("i", {"at": None}, dtype="int64")
    z = gc.tensor("z", {})
    f = to_pytensor(gc.compile([x, i, z], [(x.isel(row=i) ** 2).sum(), i + 1]))
    a, k = pt.vector("a"), pt.lvector("k")
    y, more = f(a, k, 0.5)
    outputs = [y, more, pytensor.grad(y, a)]
    found = pytensor.function([a, k], outputs, mode=mode)(W, [0, 0, 2])
    np.testing.assert_allclose(found[0], 2 * W[0] ** 2 + W[2] ** 2)
    np.testing.assert_allclose(found[2], [4 * W[0], 0, 2 * W[2], 0])


def test_a_batch() -> None:
    from pytensor.graph.replace import vectorize_graph

    f = to_pytensor(program())
    x, w = pt.matrix("x"), pt.vector("w")
    many = vectorize_graph(f(x, w)["loss"], {w: pt.matrix("ws")})
    ws = R.normal(size=(5, 4))
    for mode in MODES:
        inputs = [
            x,
            next(v for v in pytensor.graph.traversal.graph_inputs([many]) if v.name == "ws"),
        ]
        found = pytensor.function(inputs, many, mode=mode)(X, ws)
        np.testing.assert_allclose(found, [(np.tanh(X @ w) ** 2).sum() for w in ws])


def test_sizes_and_types_are_checked() -> None:
    f = to_pytensor(program())
    with pytest.raises(gc.GraphError, match=r"(?s)to_pytensor.*axes.*cure"):
        f(pt.vector("x"), pt.vector("w"))
    with pytest.raises(gc.GraphError, match=r"(?s)to_pytensor.*complex.*cure"):
        f(pt.zmatrix("x"), pt.vector("w"))
    with pytest.raises(gc.GraphError, match="not a compiled program"):
        to_pytensor(lambda x: x)  # type: ignore[arg-type]
    x, w = pt.matrix("x"), pt.vector("w")
    g = pytensor.function([x, w], f(x, w)["loss"], mode="GRAPHCORE")
    with pytest.raises(ValueError, match=r"feature|d1"):
        g(X[:, :3], W)


def test_names_in_interop() -> None:
    assert gc.interop.to_pytensor is to_pytensor
    with pytest.raises(AttributeError, match="to_nothing"):
        gc.interop.to_nothing  # noqa: B018


def test_shapes_are_known_without_the_program() -> None:
    x, w = gc.tensor("x", {"row": None, "col": 4}), gc.tensor("w", {"lag": None})
    rows, lags = x.sizes["row"], w.sizes["lag"]
    results = [
        gc.signal.convolve(x, w.rename(lag="row"), "row"),
        x.isel(row=slice(0, rows // 2 + 1)),
        gc.sum(x) * lags,
    ]
    f = to_pytensor(gc.compile([x, w], results))
    a, b = pt.matrix("a"), pt.vector("b")
    sizes = [z.shape for z in f(a, b)]
    rewritten = pytensor.function([a, b], sizes, mode=Mode("py", "fast_run"))
    ops = [type(node.op).__name__ for node in rewritten.maker.fgraph.apply_nodes]
    assert "ProgramOp" not in ops
    for found in (rewritten, *[pytensor.function([a, b], sizes, mode=mode) for mode in MODES]):
        assert [tuple(n) for n in found(X, W)] == [(6, 4), (2, 4), ()]


def test_shapes_that_the_program_finds() -> None:
    w, b = gc.tensor("w", {"lag": None}), pt.vector("b")
    y = to_pytensor(gc.compile([w], gc.unique(w)))(b)
    size = pytensor.function([b], y.shape, mode="FAST_COMPILE")
    assert size(np.array([1.0, 1.0, 2.0])).tolist() == [2]
