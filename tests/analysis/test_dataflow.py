"""Facts in the bodies of loops, branches and calls: what is claimed holds at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.analysis.dataflow import Forward
from graphcore.analysis.matrices import MATRICES, Fact
from graphcore.analysis.omissions import MOST_PATTERNS, OMISSIONS
from graphcore.analysis.values import BOUNDS, bound_of
from graphcore.interop.coordinates import MOST_POSITIONS, Base, Origins, Source
from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.types import TensorType
from graphcore.ops import leaf
from graphcore.rewrites.derivatives.linearity import Growth, Variation, Varies
from graphcore.rewrites.loops.zeros import Sign, Zeros
from tests.analysis.claims import claims, rises
from tests.random_programs.running import arguments, built
from tests.targets.drawing import KINDS

L = gc.linalg
N = 3
X = gc.tensor("x", {"row": N, "col": N})
B = gc.tensor("b", {"time": 4, "row": N})


def solve(a: gc.Tensor, b: gc.Tensor) -> gc.Tensor:
    return L.solve(a, b, check=False).rename(col="row")


FIRST = B.isel(time=0)
STEPS: dict[str, Callable[[gc.Tensor], gc.Tensor]] = {
    "captured": lambda a: gc.scan(lambda c, b: (gc.tanh(c + solve(a, b)), None), FIRST, B)[0],
    "kept by a carry": lambda a: gc.scan(
        lambda c, b: ((c[0] * 0.5, gc.tanh(c[1] + solve(c[0], b))), None), (a, FIRST), B
    )[0][1],
    "of each step": lambda a: gc.scan(
        lambda c, e: (gc.tanh(c + solve(e[0], e[1])), None),
        FIRST,
        (gc.exp(B.isel(row=0)) * a, B),
    )[0],
    "in a loop in a loop": lambda a: gc.scan(
        lambda c, b: (gc.fori_loop(0, 2, lambda i, d: gc.tanh(d + solve(a, b)), c), None), FIRST, B
    )[0],
    "while": lambda a: gc.while_loop(
        lambda c: c.sum() < 9, lambda c: gc.tanh(solve(a, c)) ** 2 + c + 1, FIRST * 0
    ),
    "in a branch": lambda a: gc.cond(X.sum() > 0, lambda k: solve(k, FIRST), lambda k: FIRST, a),
    "checkpointed": lambda a: gc.checkpoint(lambda k: gc.tanh(solve(k, FIRST)))(a),
    "of a loop": lambda a: solve(gc.fori_loop(0, 3, lambda i, k: k * 0.5, a), FIRST),
    "of all steps": lambda a: solve(gc.scan(lambda k, b: (k, k * gc.exp(b.sum())), a, B)[1], B),
}


def matrix_ops(f: gc.Compiled) -> set[str]:
    return {x.op.name for x in f.stages["optimized"].every_node() if x.op.dialect == "linalg"}


@pytest.mark.parametrize("name", STEPS)
def test_a_triangular_matrix_is_known_inside(name: str) -> None:
    """It is solved by substitution, and so are its derivatives; values are those without facts."""
    lower = gc.tril(X) + 3 * gc.eye(X.sizes)
    unknown = gc.where(gc.isnan(X), 0, lower)  # the same, but nothing is known of it
    found = []
    for a in (lower, unknown):
        y = STEPS[name](a)
        f = gc.compile([X, B], [y, *gc.grad((y**2).sum(), [X, B])], native=False)
        random = np.random.default_rng(0)
        found.append(f(random.normal(size=(N, N)), random.normal(size=(4, N))))
        assert ("solve_triangular" in matrix_ops(f)) == (a is lower)
        assert a is unknown or len(matrix_ops(f)) == 1
    for mine, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-9, atol=1e-12)


def test_a_carry_that_loses_its_form_is_not_known() -> None:
    def step(k: gc.Tensor, b: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        return L.matrix_transpose(k), solve(k, b)

    y = gc.scan(step, gc.tril(X) + 3 * gc.eye(X.sizes), B)[1]
    f = gc.compile([X, B], y, native=False)
    assert matrix_ops(f) == {"solve"}
    x, b = np.random.default_rng(0).normal(size=(N, N)), np.ones((4, N))
    lower = np.tril(x) + 3 * np.eye(N)
    wanted = [np.linalg.solve(lower.T if i % 2 else lower, b[i]) for i in range(4)]
    np.testing.assert_allclose(f(x, b), wanted)


def held(fact: Fact, a: np.ndarray) -> bool:
    near, back = {"rtol": 0, "atol": 1e-6 * np.abs(a).max(initial=1)}, np.swapaxes(a.conj(), -1, -2)
    match fact:
        case Fact.LOWER | Fact.UPPER:
            return np.allclose(a, np.tril(a) if fact is Fact.LOWER else np.triu(a), **near)
        case Fact.UNITARY:
            return np.allclose(a @ back, np.eye(a.shape[-1]), **near)
    return np.allclose(a, back, **near) and (
        fact is Fact.HERMITIAN or bool((np.linalg.eigvalsh(a) >= -near["atol"]).all())
    )


def check(seed: int) -> int:
    """The number of facts that a random program with loops was held against."""
    program, count = KINDS["loops"](seed).in_double(), 0
    try:
        (f,), _ = built(program, [False])
    except gc.GraphError:
        return 0
    given, sizes = arguments(program)
    with suppress(KeyError):  # sizes that are values of inputs are not known here
        for stage in ("expanded", "optimized"):
            for node, facts, a in claims(MATRICES, f.stages[stage], given, sizes):
                if facts and np.isfinite(a).all():
                    assert all(held(fact, a) for fact in facts), (seed, stage, node, facts, a)
                    count += 1
            for node, bound, a in claims(BOUNDS, f.stages[stage], given, sizes):
                if isinstance(node.type, TensorType) and bound < np.inf:
                    assert (np.abs(a) <= bound).all(), (seed, stage, node, bound, a)
                    count += 1
            for node, sign, a in claims(Zeros(), f.stages[stage], given, sizes):
                if sign:
                    assert not a.any(), (seed, stage, node, a)
                    assert sign is Sign.ZERO or not np.signbit(a.real).any(), (seed, stage, node, a)
                    count += 1
    return count


def test_what_is_claimed_of_random_programs_holds() -> None:
    assert sum(map(check, (2, 4, 5, 6))) > 100


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10, 40, 10))
def test_what_is_claimed_of_more_random_programs_holds(first: int) -> None:
    assert sum(map(check, range(first, first + 10))) > 100


POWERS = (Fraction(0), Fraction(1), Fraction(1, 2), *Growth)
AXES = [*map(frozenset, chain(*[combinations(range(4), n) for n in range(5)]))]
PLACES = [leaf.full(value=Literal(i), shape=(), dims=()) for i in range(20)]
FACTS: dict[str, tuple[Forward, Sequence[Any], int]] = {
    "matrices": (
        MATRICES,
        [*map(frozenset, chain(*[combinations(Fact, n) for n in range(len(Fact) + 1)]))],
        len(Fact),
    ),
    "bounds": (BOUNDS, [0.0, 0.5, 1.0, 3.0, 1e300, np.inf], 1),
    "zeros": (Zeros(), [*Sign], len(Sign) - 1),
    "values left out": (
        OMISSIONS,
        [frozenset({a, b}) for a, b in product(AXES, AXES)],
        MOST_PATTERNS,
    ),
    "variation": (
        Variation(),
        [Varies(*parts) for parts in product(POWERS, (False, True), (None, X.node))],
        4,
    ),
    "positions": (
        Origins(Graph((), ()), {}),
        [{"a": None}, *[{"a": frozenset({Source((Base(0, "a", 3),), x)})} for x in PLACES]],
        MOST_POSITIONS + 1,
    ),
}


@pytest.mark.parametrize("name", FACTS)
def test_facts_of_a_loop_come_to_rest(name: str) -> None:
    """Joined with others again and again, each changes a few times at most."""
    analysis, facts, most = FACTS[name]
    assert 1 <= rises(analysis, facts) <= most


def test_a_bounded_carry_is_finite() -> None:
    x = gc.tensor("x", {"time": 3})
    low, rest = gc.scan(lambda c, e: (gc.where(e > 0, c, -1.0), c * e), 0.5, x)
    f = gc.compile([x], [low, rest], native=False)
    stage = f.stages["lowered"]
    assert [bound_of(y) for y in stage.outputs] == [np.inf, np.inf]  # -1 is larger than the start
    low, _ = gc.scan(lambda c, e: (gc.where(e > 0, c, -0.5), c * e), 0.5, x)
    assert bound_of(gc.compile([x], low, native=False).stages["lowered"].outputs[0]) == 0.5
