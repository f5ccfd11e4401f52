"""Linear algebra inside of loops, branches and vectorised programs, with gradients."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

import graphcore as gc
from graphcore import linalg as L

A = np.random.default_rng(0).normal(size=(3, 2, 2)) / 4 + np.diag([1.5, 3.0])
Step = Callable[[gc.Tensor], gc.Tensor]

STEPS: dict[str, Step] = {
    "eigh": lambda x: gc.dot(
        L.eigh(x).vectors * L.eigh(x).values, L.eigh(x).vectors.rename(row="col"), dim="eigen"
    ),
    "slogdet": lambda x: x * L.slogdet(x).sign / (1 + L.slogdet(x).logabsdet ** 2),
    "svd": lambda x: gc.dot(L.svd(x).u, gc.sin(L.svd(x).s), L.svd(x).vh, dim="rank"),
    "lu": lambda x: gc.dot(L.lu(x).lower, gc.sin(L.lu(x).upper), dim="pivot"),
    "qr": lambda x: gc.dot(L.qr(x).q, gc.sin(L.qr(x).r), dim="rank"),
    "solve": lambda x: L.solve(x, gc.sin(x).rename(col="k")).rename(col="row", k="col"),
    "cholesky": lambda x: L.cholesky(gc.dot(x, x.rename(row="k"), dim="col").rename(k="col")),
    "expm": lambda x: L.expm(-x),
}


def turned(x: gc.Tensor, like: gc.Tensor) -> gc.Tensor:
    return x.transpose(*like.dims)


def in_scan(step: Step, a: gc.Tensor) -> gc.Tensor:
    def body(carry: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        new = turned(step(x + 0.1 * carry), carry)
        return new, new.sum()

    last, sums = gc.scan(body, gc.zeros({"row": 2, "col": 2}), a, "time")
    return last.sum() + (sums**2).sum()


def by_hand(step: Step, a: gc.Tensor) -> gc.Tensor:
    carry, total = gc.zeros({"row": 2, "col": 2}), gc.constant(0.0)
    for t in range(3):
        carry = turned(step(a.isel(time=t) + 0.1 * carry), carry)
        total = total + carry.sum() ** 2
    return carry.sum() + total


@pytest.mark.parametrize("name", STEPS)
def test_in_a_scan(name: str) -> None:
    """As written out: value and gradient, also with the body computed again."""
    a = gc.tensor("a", {"time": 3, "row": 2, "col": 2})
    step = STEPS[name]
    outputs = []
    for y in (by_hand(step, a), in_scan(step, a), in_scan(gc.checkpoint(step), a)):
        outputs += [y, gc.grad(y, a)]
    f = gc.compile([a], outputs)
    value, gradient, *others = f(A)
    for found, wanted in zip(others, [value, gradient] * 2, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    for found, wanted in zip(pickle.loads(pickle.dumps(f))(A), f(A), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", STEPS)
def test_in_loops_and_branches(name: str) -> None:
    a = gc.tensor("a", {"row": 2, "col": 2})
    step = STEPS[name]
    twice = turned(step(turned(step(a), a)), a)
    looped = gc.fori_loop(0, 2, lambda i, x: turned(step(x), x), a)
    _, whiled = gc.while_loop(
        lambda state: state[0] < 2, lambda state: (state[0] + 1, turned(step(state[1]), a)), (0, a)
    )
    branched = gc.cond(a.sum() > 0, lambda: turned(step(twice), a), lambda: 0 * a)
    outputs = []
    for y in (twice, looped, whiled, turned(step(twice), a), branched):
        z = gc.sin(y).sum()
        outputs += [z, gc.grad(z, a)]
    found = gc.compile([a], outputs)(A[0])
    for i in (2, 3, 4, 5):
        np.testing.assert_allclose(found[i], found[i % 2], rtol=1e-10, atol=1e-12)
    for i in (8, 9):
        np.testing.assert_allclose(found[i], found[i - 2], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", STEPS)
def test_vectorised_and_per_instance(name: str) -> None:
    a = gc.tensor("a", {"row": 2, "col": 2})
    y = gc.sin(STEPS[name](a)).sum()
    alone = gc.compile([a], [y, gc.grad(y, a)])
    wide = gc.tensor("a", {"batch": None, "row": 2, "col": 2})
    values = gc.vectorize([y, gc.grad(y, a)], {a: wide})
    z = gc.sin(STEPS[name](wide)).sum(["row", "col"])
    per = gc.grad(z, wide, per="batch")
    value, gradient, instances = gc.compile([wide], [*values, per])(A)
    wanted = [alone(a) for a in A]
    np.testing.assert_allclose(value, [v for v, _ in wanted], rtol=1e-10)
    for found in (gradient, instances):
        np.testing.assert_allclose(found, [g for _, g in wanted], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: L.lu(x).lower,
        lambda x: L.qr(x).r,
        lambda x: L.svdvals(x),
        lambda x: L.eigvalsh(x),
    ],
)
def test_by_a_matrix_that_is_known_to_be_zero(f: Step) -> None:
    """It was taken for the tangent of itself, of which no value is read, without end."""
    x, known = gc.tensor("x", {"row": 2, "col": 2}), gc.zeros({"row": 2, "col": 2})
    wanted = gc.compile([x], gc.grad(f(x).sum(), x))(np.zeros((2, 2)))
    found = gc.compile([], gc.grad(f(known).sum(), known))()
    np.testing.assert_array_equal(found, wanted)
