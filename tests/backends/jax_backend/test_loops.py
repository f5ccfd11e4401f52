"""Loops on JAX: trips that are counted, derivatives through them, and failures in their steps."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable

import jax
import numpy as np
import pytest

import graphcore as gc

a = gc.tensor("a", {})
x = gc.tensor("x", {"time": None})
at = gc.tensor("at", {"step": None}, dtype="int64")


def root(of: gc.Tensor, start: gc.Tensor) -> gc.Tensor:
    """The square root by Newton's method: the more steps, the further away the start."""
    found: gc.Tensor = gc.while_loop(
        lambda r: abs(r * r - of) > 1e-12 * of, lambda r: (r + of / r) / 2, start
    )
    return found


def without_call(call: Callable[[], object]) -> str:
    """The words of a refusal, but for the line of the call."""
    with pytest.raises(gc.GraphError) as refused:
        call()
    return re.sub(r"called at .*", "", str(refused.value))


def test_a_pullback_of_a_while_loop() -> None:
    """Room for steps grows by powers of two: few programs serve any number of them."""
    y = root(a, a)
    slope = gc.grad(y, a)
    f = gc.compile([a], [y, slope], target="jax")
    for value in (2.0, 1.0, 1e40):  # no step is made for 1
        found, wanted = f(value)
        assert math.isclose(found, value**0.5)
        assert math.isclose(wanted, 0.5 / value**0.5) or value == 1.0
    (loop,) = f.compilations[0].capacities
    assert loop.startswith("while_loop at test_loops.py:")
    assert [made.capacities[loop] for made in f.compilations] == [64, 128]
    assert f(1.0)[1] == gc.compile([a], slope, target="numpy")(1.0)


@pytest.mark.slow
def test_loops_in_loops() -> None:
    """A while_loop in each step of a scan has room of its own, and second derivatives."""
    total, each = gc.scan(lambda s, e: (s + root(e, e), root(e + s, e)), 0.0, x, dim="time")
    loss = (each**2).sum() * total
    slope = gc.grad(loss, x)
    outputs = [loss, slope, gc.grad((slope * slope).sum(), x)]
    f, g = (gc.compile([x], outputs, target=target) for target in ("jax", "numpy"))
    for size in (3, 0):
        given = np.linspace(0.5, 9.0, size)
        for found, wanted in zip(f(given), g(given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    far = np.array([2.0, 1e50, 1e-30])
    for found, wanted in zip(f(far)[:2], g(far)[:2], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert len(f.compilations) <= 4


def test_refusals_in_the_words_of_numpy() -> None:
    """Two loops deep, with the steps; the setting for 64 bits stays, in other threads too."""
    rows = gc.tensor("rows", {"row": None, "step": None}, dtype="int64")
    inner = lambda s, k: (s + x.isel(time=k), s)
    outer = lambda s, row: (gc.scan(inner, s, row, dim="step")[0], s)
    total, _ = gc.scan(outer, 0.0, rows, dim="row")
    f, g = (gc.compile([x, rows], total, target=target) for target in ("jax", "numpy"))
    given = np.arange(4.0)
    wrong = np.array([[0, 1, 2], [3, -4, -5], [9, 9, 9]])
    said = without_call(lambda: f(given, wrong))
    assert said == without_call(lambda: g(given, wrong))
    assert "in step 1 (from 0)" in said
    assert "in step 2 (from 0)" in said
    assert "position -5 is outside dim 'time'" in said
    seen: list[object] = []

    def run() -> None:
        seen.append(f(given, wrong % 4))
        seen.append(jax.numpy.ones(2).dtype)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [g(given, wrong % 4), np.float32]
    assert jax.numpy.ones(2).dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "given"),
    [
        (lambda v, k: v.isel(n=k), 7),
        (lambda v, k: gc.switch(k, [lambda: v.sum(), lambda: v.max()]), 2),
        (lambda v, k: v.sum() + (k - 3) ** (k - 9), 4),
        (lambda v, k: v.at[{"n": k}].set(1.0).sum(), -6),
        (
            lambda v, k: gc.while_loop(lambda c: c < 9, lambda c: c + 1 + v.isel(n=k) * 0, v.sum()),
            5,
        ),
    ],
)
def test_refusals_of_ops(make: Callable[..., gc.Tensor], given: int) -> None:
    v, k = gc.tensor("v", {"n": None}), gc.tensor("k", {}, dtype="int64")
    y = make(v, k)
    f, g = (gc.compile([v, k], y, target=target) for target in ("jax", "numpy"))
    assert without_call(lambda: f(np.zeros(4), given)) == without_call(
        lambda: g(np.zeros(4), given)
    )


@pytest.mark.slow
def test_refusals_of_matrices() -> None:
    m = gc.tensor("m", {"batch": None, "row": 2, "col": 2})
    given = np.broadcast_to(np.eye(2), (3, 2, 2)).copy()
    given[1] = 0
    made = [gc.linalg.inv(m).sum(), gc.linalg.cholesky(m).sum(), gc.linalg.solve(m, m[{"col": 0}])]
    for y in made:
        f, g = (gc.compile([m], y, target=target) for target in ("jax", "numpy"))
        said = without_call(lambda f=f: f(given))
        assert said == without_call(lambda g=g: g(given))
        assert "batch=1" in said


def test_sizes_that_a_program_computes() -> None:
    """They are found first; then XLA compiles for them."""
    y = x.isel(time=gc.nonzero(x > 0, name="kept")["time"])
    f = gc.compile([x], y, target="jax")
    assert f(np.array([1.0, -1.0, 2.0])).tolist() == [1.0, 2.0]
    assert f.compilations[-1].sizes["kept"] == 2
