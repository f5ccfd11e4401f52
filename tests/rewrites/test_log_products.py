"""Logarithms of sums of exponentials as products, by what no step of a loop changes.

The steps are checked against SciPy, and programs against themselves compiled without the products.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any
from unittest import mock

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp

import graphcore as gc
from graphcore.ir.graph import Graph, bodies_of
from graphcore.rewrites import log_products

STATE = {"state": None}
MOVES = {"state": None, "next": "state"}
RNG = np.random.default_rng(5)


def forward(a: gc.Tensor, moves: gc.Tensor, seen: gc.Tensor) -> gc.Tensor:
    """The steps of a hidden Markov model on the scale of logarithms."""

    def step(a: gc.Tensor, b: gc.Tensor) -> tuple[gc.Tensor, None]:
        return gc.special.logsumexp(a + moves, "state").rename(next="state") + b, None

    return gc.scan(step, a, seen, dim="time")[0]


def model(dtype: str = "float64", target: str = "numpy", more: Any = None) -> gc.Compiled:
    """The last values of the steps, and their gradients."""
    a, moves = gc.tensor("a", STATE, dtype=dtype), gc.tensor("moves", MOVES, dtype=dtype)
    seen = gc.tensor("seen", {"time": None, **STATE}, dtype=dtype)
    last = forward(a, moves, seen)
    weights = gc.tensor("weights", STATE, dtype=dtype)
    value = (last * weights).sum()
    results = {"last": last, "grad": gc.grad(value, [a, moves, seen])}
    if more is not None:
        results |= more(value, a, moves)
    return gc.compile([a, moves, seen, weights], results, target=target)


def without(make: Any, *args: Any) -> gc.Compiled:
    """A program compiled without the products."""
    with mock.patch.object(log_products, "LESS", math.inf):
        return make(*args)


def reference(a: Any, moves: Any, seen: Any) -> Any:
    for b in seen:
        with np.errstate(all="ignore"):
            a = logsumexp(a[:, None] + moves, axis=0) + b
    return a


def inputs(states: int, spread: float, steps: int = 3, dtype: str = "float64") -> list[Any]:
    a, moves, seen = (
        (spread * RNG.standard_normal(shape)).astype(dtype)
        for shape in [(states,), (states, states), (steps, states)]
    )
    return [a, moves, seen, np.ones(states, dtype)]


def cases(dtype: str) -> list[list[Any]]:
    """Values that are alike, apart, far apart, infinite and undefined; of few states and of many"""
    found = [inputs(5, spread, dtype=dtype) for spread in (0, 1, 10, 100, 1000, 1e6)]
    found += [inputs(states, 2, dtype=dtype) for states in (0, 1, 2, 40)]
    found.append(inputs(5, 1, 0, dtype))
    for value in (-math.inf, math.inf, math.nan):
        for at in (0, 1):
            for place in (0, np.s_[0], np.s_[:, 1], np.s_[...]):
                found.append(inputs(5, 1, dtype=dtype))
                if not (at == 0 and isinstance(place, tuple)):
                    found[-1][at][place] = value
    band = inputs(5, 1, dtype=dtype)
    band[1][np.tril_indices(5, -1)] = -math.inf
    return [*found, band]


def same(found: Any, wanted: Any, eps: float) -> None:
    """Whether values agree to some multiples of a rounding of the largest."""
    with np.errstate(all="ignore"):
        size = np.max(np.abs(wanted), initial=0, where=np.isfinite(wanted))
    np.testing.assert_allclose(found, wanted, rtol=40 * eps, atol=40 * eps * max(size, 1))


def agree(f: gc.Compiled, g: gc.Compiled, given: list[Any]) -> None:
    """Whether two programs have the same results."""
    eps = float(np.finfo(given[0].dtype).eps)
    found, wanted = gc.tree.leaves(f(*given)), gc.tree.leaves(g(*given))
    size = max(float(np.max(np.abs(x), initial=0, where=np.isfinite(x))) for x in given)
    for x, y in zip(found, wanted, strict=True):
        same(x, y, eps * max(size, 1) if eps < 1e-10 else 10 * eps * max(size, 1))


def logarithms(f: gc.Compiled) -> int:
    """How many sums of exponentials became products."""
    return sum(x.rule is log_products.log_product for step in f.passes for x in step.records)


@pytest.mark.parametrize(
    ("target", "dtype"),
    [("numpy", "float64"), ("numpy", "float32"), ("native", "float64")],
)
def test_steps(target: str, dtype: str) -> None:
    """Values as SciPy's, gradients as those without products, whatever the values are."""
    f, g = model(dtype, target), without(model, dtype)
    eps = float(np.finfo(dtype).eps)
    for given in cases(dtype):
        wanted = reference(*given[:3])
        same(f(*given)["last"], wanted, eps)
        agree(f, g, given)


def test_no_choice_in_steps_where_an_accelerator_would_wait() -> None:
    assert (logarithms(model(target="jax")), logarithms(model(target="native"))) == (0, 1)


def test_direct_where_sums_are_small() -> None:
    """Where a sum is too small the value is that of the direct form, to the bit."""
    f, g = model(), without(model)
    assert (logarithms(f), logarithms(g)) == (1, 0)
    for spread in (1000, 1e6):
        given = inputs(5, spread)
        assert f(*given)["last"].tolist() == g(*given)["last"].tolist()
    far = [np.array([0.0, -800.0]), np.array([[0.0, -900.0], [0.0, 0.0]]), np.zeros((1, 2))]
    np.testing.assert_allclose(f(*far, np.ones(2))["last"], [0.0, -800.0], rtol=1e-15)


def test_derivatives() -> None:
    """Both modes and the second order agree with those without products."""

    def more(value: gc.Tensor, a: gc.Tensor, moves: gc.Tensor) -> dict[str, Any]:
        step = [gc.cos(a), gc.sin(moves)]
        slope = gc.pushforward(value, [a, moves], step)
        return {"slope": slope, "hvp": gc.hvp(value, [a, moves], step)}

    f, g = model(more=more), without(lambda: model(more=more))
    for spread in (1, 30, 1000):
        given = inputs(4, spread)
        agree(f, g, given)
        made = f(*given)
        by_a, by_moves, _ = made["grad"]
        total = (by_a * np.cos(given[0])).sum() + (by_moves * np.sin(given[1])).sum()
        np.testing.assert_allclose(made["slope"], total, rtol=1e-12, atol=1e-12)
    given, h = inputs(4, 1), 1e-6
    up, down = ([given[0] + d * np.cos(given[0]), given[1] + d * np.sin(given[1])] for d in (h, -h))
    high, low = (f(*x, *given[2:])["last"].sum() for x in (up, down))
    np.testing.assert_allclose(f(*given)["slope"], (high - low) / (2 * h), rtol=1e-7)


def test_other_loops() -> None:
    """Transposed and scaled values, loops of both kinds, loops in loops, and batches of states."""
    a = gc.tensor("a", {"batch": None, "row": None})
    costs = gc.tensor("costs", {"row": None, "col": None})
    heat = gc.tensor("heat", {})

    def steps(a: gc.Tensor) -> gc.Tensor:
        b = gc.special.logsumexp(-(costs - a) / heat + 2.0, "row")
        return -0.5 * gc.special.logsumexp((b - costs) / 0.25 - heat, "col")

    def counted(_: gc.Tensor, a: gc.Tensor) -> gc.Tensor:
        return gc.fori_loop(0, 2, lambda _, a: steps(a), a) + a

    def make() -> gc.Compiled:
        found = gc.fori_loop(0, 2, counted, a)
        small, last = gc.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, steps(s[1])), (gc.constant(0), a)
        )
        results = [found, last, *gc.grad((found + last).sum(), [a, costs, heat])]
        return gc.compile([a, costs, heat], [*results, small])

    f, g = make(), without(make)
    assert (logarithms(f), logarithms(g)) == (4, 0)
    for spread in (1, 300):
        given = [RNG.standard_normal((3, 4)), spread * RNG.standard_normal((4, 6)), 0.7]
        for x, y in zip(f(*given), g(*given), strict=True):
            same(x, y, 1e-15 * spread)


def test_matrices() -> None:
    """Outside of loops both parts must lack an axis, as in a product of matrices of logarithms."""
    x, y = gc.tensor("x", {"i": None, "j": None}), gc.tensor("y", {"j": None, "k": None})
    shift = gc.tensor("shift", {"k": None})

    def make() -> gc.Compiled:
        z = gc.special.logsumexp(x + y - shift, "j")
        return gc.compile([x, y, shift], [z, *gc.grad((z * gc.sin(z)).sum(), [x, y, shift])])

    f, g = make(), without(make)
    assert (logarithms(f), logarithms(g)) == (1, 0)
    for spread in (1, 1000):
        given = [spread * RNG.standard_normal(shape) for shape in [(3, 4), (4, 5), (5,)]]
        for a, b in zip(f(*given), g(*given), strict=True):
            same(a, b, 1e-14 * spread)


def test_vectorized() -> None:
    """A batch of programs is one product, also where each has values of its own."""
    a, moves, seen = (
        gc.tensor(name, dims)
        for name, dims in [("a", STATE), ("moves", MOVES), ("seen", {"time": None, **STATE})]
    )
    last = forward(a, moves, seen)
    grads = gc.grad(last.sum(), [a, moves])
    batch = {"batch": None}
    many, own = gc.tensor("many", batch | STATE), gc.tensor("own", batch | MOVES)

    def make() -> gc.Compiled:
        one = gc.vectorize([last, *grads], {a: many})
        both = gc.vectorize([last, *grads], {a: many, moves: own})
        return gc.compile([many, own, moves, seen], [one, both])

    f, g = make(), without(make)
    assert (logarithms(f), logarithms(g)) == (4, 0)
    _, matrix, values, _ = inputs(4, 1)
    given = [RNG.standard_normal((3, 4)), RNG.standard_normal((3, 4, 4)), matrix, values]
    agree(f, g, given)
    inside = Counter(x.op.name for body in bodies(f.stages["optimized"]) for x in body.nodes())
    assert inside["matmul"]
    assert inside["switch"]


def bodies(graph: Graph) -> list[Graph]:
    return [body for node in graph.nodes() for body in bodies_of(node)]


def test_steps_have_few_exponentials() -> None:
    """The exponentials of what is fixed are outside, their cotangent is one product after it."""
    f = model()
    graph = f.stages["optimized"]
    for body in bodies(graph):
        shapes = [len(x.type.shape) for x in body.nodes() if x.op.name in ("exp", "matmul")]
        assert set(shapes) <= {1}
    assert sum(x.op.name == "matmul" for x in graph.nodes()) == 1


def test_what_is_left_alone() -> None:
    """Where no exponential is saved, where all steps are one, and in dtypes that are too coarse."""
    x, moves = gc.tensor("x", {"time": None, **STATE}), gc.tensor("moves", MOVES)
    each = gc.tensor("each", {"time": None, **MOVES})
    a = gc.tensor("a", STATE)

    def total(x: gc.Tensor) -> gc.Tensor:
        return gc.special.logsumexp(x, "state").rename(next="state")

    def changing(a: gc.Tensor, moves: gc.Tensor) -> tuple[gc.Tensor, None]:
        return total(a + moves), None

    def known(a: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        return a + 1, total(x + moves)

    half = gc.tensor("half", STATE, dtype="float16")
    wide = gc.tensor("wide", MOVES, dtype="float16")
    results = [
        gc.scan(changing, a, each, dim="time")[0],
        gc.scan(known, a, x, dim="time")[1],
        gc.fori_loop(0, 3, lambda _, y: total(y + wide), half),
        total(a + moves),
    ]
    assert logarithms(gc.compile([a, x, moves, each, half, wide], results)) == 0
    small = gc.tensor("small", {"state": 3}), gc.tensor("few", {"state": 3, "next": 3})
    last = gc.fori_loop(0, 3, lambda _, y: total(y + small[1]), small[0])
    assert logarithms(gc.compile([*small], last)) == 0


def test_digits() -> None:
    """Products are as far from the truth as the direct form, to a few roundings of the operands."""
    f, g = model(), without(model)
    for spread in (0.1, 3, 50):
        given = inputs(12, spread, 1)
        a, moves, seen, _ = given
        with mpmath.workdps(40):
            terms = [[mpmath.mpf(x) + mpmath.mpf(y) for x, y in zip(a, c)] for c in moves.T]
            truth = [mpmath.log(mpmath.fsum(map(mpmath.exp, column))) for column in terms]
            errors = [
                max(abs(float(x - t - b)) for x, t, b in zip(h(*given)["last"], truth, seen[0]))
                for h in (f, g)
            ]
        largest = max(np.abs(a).max(), np.abs(moves).max(), np.abs(seen).max(), 1)
        assert errors[0] <= errors[1] + 4 * np.spacing(largest)


def test_any_names() -> None:
    """Names that the library gives to what it computes may be those of the user."""
    a, b = gc.tensor("power", {"ct": None}), gc.tensor("fixed 0", {"ct": None, "given 0": "ct"})

    def step(_: gc.Tensor, x: gc.Tensor) -> gc.Tensor:
        return gc.special.logsumexp(x + b, "ct").rename({"given 0": "ct"})

    last = gc.fori_loop(0, 2, step, a)
    f = gc.compile([a, b], [last, *gc.grad(last.sum(), [a, b])])
    x, y = RNG.standard_normal(4), RNG.standard_normal((4, 4))
    np.testing.assert_allclose(f(x, y)[0], reference(x, y, np.zeros((2, 4))), rtol=1e-14)
    assert logarithms(f) == 1
