"""Scans in all their forms, branches, graphs as ops."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor", minversion="3.0")

import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.scan.utils import until

try:
    from pytensor.conditional.op import ifelse
except ImportError:
    from pytensor.ifelse import ifelse

from .compared import MODES, exact_since, same_slopes, same_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

R = np.random.default_rng(4)
V, M, A = R.normal(size=6), R.normal(size=(6, 3)), R.normal(size=(3, 3)) / 3
N = np.int64(4)
ZERO = pt.constant(np.float64(0))


def scan(*args: Any, **options: Any) -> Any:
    return pytensor.scan(*args, return_updates=False, **options)


CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "a map": (lambda x: scan(lambda x: pt.exp(x).sum(), sequences=[x]), [M]),
    "running sums": (
        lambda x: scan(lambda x, s: s + x, sequences=[x], outputs_info=[pt.zeros(3)]),
        [M],
    ),
    "the last value": (
        lambda x: scan(lambda x, s: s * 0.5 + x, sequences=[x], outputs_info=[pt.zeros(3)])[-1],
        [M],
    ),
    "numbers": (
        lambda x: scan(lambda x, s: pt.tanh(s + x), sequences=[x], outputs_info=[ZERO + 0.5]),
        [V],
    ),
    "several results": (
        lambda x: scan(
            lambda x, s, p: [s + x, p * pt.cos(x), (s * p).sum()],
            sequences=[x],
            outputs_info=[pt.zeros(3), pt.ones(3), None],
        ),
        [M],
    ),
    "taps": (
        lambda x: scan(
            lambda a, b, x: 0.5 * a - 0.3 * b + x,
            sequences=[x],
            outputs_info=[{"initial": pt.as_tensor([0.1, 0.2]), "taps": [-1, -2]}],
        ),
        [V],
    ),
    "taps of matrices": (
        lambda x: scan(
            lambda a, b: 0.5 * a - 0.3 * b,
            outputs_info=[{"initial": x[:3], "taps": [-1, -3]}],
            n_steps=5,
        ),
        [M],
    ),
    "taps of sequences": (
        lambda x: scan(lambda a, b, c: a * b + c, sequences=[{"input": x, "taps": [-1, 0, 2]}]),
        [V],
    ),
    "a matrix that all steps use": (
        lambda x, a: scan(
            lambda x, s, a: pt.tanh(a @ s + x),
            sequences=[x],
            outputs_info=[pt.zeros(3)],
            non_sequences=[a],
        ),
        [M, A],
    ),
    "backwards": (
        lambda x: scan(
            lambda x, s: s * 0.5 + x, sequences=[x], outputs_info=[pt.zeros(3)], go_backwards=True
        ),
        [M],
    ),
    "a number of steps": (lambda x: scan(lambda s: s * 1.5 + 1, outputs_info=[x], n_steps=4), [V]),
    "steps that the call gives": (
        lambda x, n: scan(lambda s: s * 1.5 + 1, outputs_info=[x], n_steps=n),
        [V, N],
    ),
    "fewer steps than elements": (
        lambda x: scan(lambda x, s: s + x, sequences=[x], outputs_info=[pt.zeros(3)], n_steps=3),
        [M],
    ),
    "a loop in a loop": (
        lambda x, a: scan(
            lambda row, a: scan(
                lambda x, s, a: s * a.sum() + x,
                sequences=[row],
                outputs_info=[ZERO],
                non_sequences=[a],
            )[-1],
            sequences=[x],
            non_sequences=[a],
        ),
        [M, A],
    ),
    "steps counted": (
        lambda x: scan(
            lambda i, s, x: s + x[i],
            sequences=[pt.arange(3)],
            outputs_info=[pt.zeros(3)],
            non_sequences=[x],
        ),
        [M],
    ),
    "truncated": (
        lambda x: scan(
            lambda x, s: pt.tanh(s + x),
            sequences=[x],
            outputs_info=[pt.zeros(3)],
            truncate_gradient=2,
        )[-1],
        [M],
    ),
}
ENDED: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "until": (
        lambda x: scan(
            lambda x, s: (s + x**2, until(s + x**2 > 2.0)),
            sequences=[x],
            outputs_info=[ZERO],
        ),
        [V],
    ),
    "until the first step": (
        lambda x: scan(lambda x, s: (s + x, until(s < 1)), sequences=[x], outputs_info=[ZERO]),
        [V],
    ),
    "until never": (
        lambda x: scan(lambda x, s: (s + x, until(s > 99)), sequences=[x], outputs_info=[ZERO]),
        [V],
    ),
    "until, the last value": (
        lambda x: scan(
            lambda s: (s * 1.5, until((s > 9).any())), outputs_info=[abs(x)], n_steps=50
        )[-1],
        [V],
    ),
    "until, all results": (
        lambda x: scan(
            lambda x, s: ([s + x, (x * 2).sum()], until(s.sum() > 1)),
            sequences=[x],
            outputs_info=[pt.zeros(3), None],
        ),
        [M],
    ),
}


@pytest.mark.parametrize("static", [False, True], ids=["open", "static"])
@pytest.mark.parametrize("name", CASES | ENDED)
def test_values(name: str, static: bool) -> None:
    same_values(*(CASES | ENDED)[name], static)


@pytest.mark.parametrize("name", [name for name in CASES | ENDED if name != "truncated"])
def test_slopes(name: str) -> None:
    if name in ENDED:
        exact_since(3.3)
    same_slopes(*(CASES | ENDED)[name])


def test_truncated_slopes() -> None:
    """PyTensor's own gradient graph drops what lies far back; ours is exact."""
    build, arrays = CASES["truncated"]
    x = pt.matrix("x")
    slope = pytensor.grad(build(x).sum(), x)
    f, g = (
        pytensor.function([x], slope, mode=MODES["rewritten"] if ours else "FAST_COMPILE")
        for ours in (True, False)
    )
    np.testing.assert_allclose(f(*arrays), g(*arrays), rtol=1e-12)


def test_no_steps() -> None:
    x, n = pt.vector("x"), pt.lscalar("n")
    last = scan(lambda s: s * 1.5 + 1, outputs_info=[x], n_steps=n)
    f = pytensor.function([x, n], [last, last.shape[0]], mode="GRAPHCORE")
    assert f(V, 0)[1] == 0
    assert f(V, 3)[1] == 3


def test_branches() -> None:
    build = lambda c, x, y: [
        ifelse(c, pt.exp(x), y * 2),
        ifelse(c > 0, x.sum(), y.sum()),
        *ifelse(c, [x, y], [y, x]),
    ]
    for c in (0, 1):
        same_values(build, [np.int8(c), V, V[::-1]])
        same_slopes(build, [np.int8(c), V, V[::-1]])


def test_graphs_as_ops() -> None:
    x, y = pt.vector(), pt.vector()
    op = OpFromGraph([x, y], [pt.exp(x) * y, x.sum()])
    same_values(lambda x, y: [*op(x, y), op(y, x)[0]], [V, V[::-1]])
    same_slopes(lambda x, y: op(x, y), [V, V[::-1]])


def test_vectorized_graphs() -> None:
    from pytensor.graph.replace import vectorize_graph

    x = pt.vector("x")
    y = scan(lambda x, s: s * 0.5 + x, sequences=[x], outputs_info=[ZERO])
    graphs = [pt.exp(x).sum(), pt.cumsum(x), x[::-1] * x[0], pt.sort(x), y]
    same_values(lambda xs: vectorize_graph(graphs, {x: xs}), [M])


def test_an_untraced_carry() -> None:
    """A shared variable that each step updates."""
    x = pt.vector("x")
    total = pytensor.shared(0.0, "total")
    y, updates = pytensor.scan(lambda x: (x * total, {total: total + x}), sequences=[x])
    values = []
    for mode in ("GRAPHCORE", "FAST_COMPILE"):
        total.set_value(0.0)
        f = pytensor.function([x], y, updates=updates, mode=mode)
        values.append([f(V), f(V), total.get_value()])
    for ours, theirs in zip(*values, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
