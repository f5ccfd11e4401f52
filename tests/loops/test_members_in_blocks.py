"""Batched loops by blocks of members: the same values for less work, where members do not mix."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.inspection.interpreter import Interpreter
from graphcore.ir import Node
from graphcore.ops import control, elementwise
from tests.backends.llvm_kernels.rules import patched, without
from tests.interpreter import run

T = gc.tensor("t", {"m": None})
A = gc.tensor("a", {"m": None})
W = gc.tensor("w", {})
SIZES = (0, 1, 7, 255, 256, 300)


def recurrence(t: gc.Tensor, a: gc.Tensor, w: gc.Tensor) -> gc.Tensor:
    """y <- w y + a, from y = a, for as many steps as `t` says."""
    body = lambda s: (s[0] + 1, s[1] * w + a)
    return gc.while_loop(lambda s: s[0] < t, body, (0.0, a))[1]


Y = recurrence(T, A, W)


def by_hand(t: np.ndarray, a: np.ndarray, w: float) -> list[np.ndarray]:
    """Values, their derivatives by `a` and by `w`, and the second ones by `w`."""
    found = []
    for steps, start in zip(t, a, strict=True):
        y, da, dw, dww = start, 1.0, 0.0, 0.0
        while steps > 0:
            y, da, dw, dww = w * y + start, w * da + 1, w * dw + y, w * dww + 2 * dw
            steps -= 1
        found.append((y, da, dw, dww))
    return list(np.array(found).reshape(-1, 4).T)


def given(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Members of 0 to 8 steps, and one of 40."""
    rng = np.random.default_rng(n)
    t = rng.integers(0, 9, n).astype(float)
    t[n // 2 : n // 2 + 1] = 40
    return t, rng.normal(size=n), np.array(0.75)


def is_in_blocks(f: Any) -> bool:
    """Whether a program has no batched loop outside of loops."""
    return all(x.op is not control.while_loop for x in f.stages["members in blocks"].nodes())


def test_both_modes_and_second_order_equal_a_loop_over_members() -> None:
    first = gc.grad(Y.sum(), W)
    moving = gc.pushforward(Y, W, gc.constant(1.0))
    outputs = [Y, gc.grad(Y.sum(), A), first, moving, gc.grad(first, W)]
    f = gc.compile([T, A, W], outputs, native=True)
    assert is_in_blocks(f)
    for n in SIZES:
        y, da, dw, dww = by_hand(*given(n))
        expected = [y, da, dw.sum(), dw, dww.sum()]
        for found, wanted in zip(f(*given(n)), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_room_for_more_members_takes_no_steps() -> None:
    """The last block has zeros behind its members, with which a loop would never end."""
    y = gc.while_loop(lambda s: s < 10, lambda s: s + A, 0 * A)
    f = gc.compile([A], y, native=True)
    assert is_in_blocks(f)
    a = np.linspace(1.0, 10.0, 300)
    np.testing.assert_allclose(f(a), np.ceil(10 / a - 1e-12) * a, rtol=1e-12)


class Counting(Interpreter):
    """Counts the elements that steps choose."""

    chosen = 0

    def compute(self, node: Node, arrays: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        found = super().compute(node, arrays, sizes)
        if node.op is elementwise.where:
            self.chosen += found[0].size
        return found


def test_members_that_are_done_cost_nothing() -> None:
    """One of 1,000 members takes 40 steps, all others 4: 1,000 * 4 + 63 * 36 of each carry."""
    t, a, w = given(1000)
    t[:] = 4
    t[137] = 40
    f = gc.compile([T, A, W], [Y, gc.grad((Y * Y).sum(), A)], native=True)
    work, values = {}, {}
    for stage in ("optimized", "members in blocks"):
        counting = Counting()
        values[stage] = run(f.stages[stage], {"t": t, "a": a, "w": w}, {"m": 1000}, counting)
        work[stage] = counting.chosen
    assert work["optimized"] == 4 * 40 * 1000
    assert work["members in blocks"] <= 4 * (4 * 1024 + 36 * 64)
    for x, y in zip(*values.values(), strict=True):
        np.testing.assert_array_equal(x, y)


def test_nan_members_stop_alone() -> None:
    f = gc.compile([T, A, W], [Y, gc.grad(Y.sum(), A)], native=True)
    t, a, w = given(300)
    t[3], a[5], a[299] = np.nan, np.nan, np.inf
    y, da, _, _ = by_hand(t, a, w)
    for found, wanted in zip(f(t, a, w), (y, da), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def total(t: gc.Tensor, a: gc.Tensor) -> gc.Tensor:
    return gc.while_loop(lambda s: s[0] < t, lambda s: (s[0] + 1, s[1] + s[1].mean("m")), (0.0, a))[
        1
    ]


def printing(t: gc.Tensor, a: gc.Tensor) -> gc.Tensor:
    return gc.while_loop(
        lambda s: s[0] < t, lambda s: (s[0] + 1, gc.print(s[1] * 0.5, "y")), (0.0, a)
    )[1]


def picking(t: gc.Tensor, a: gc.Tensor) -> gc.Tensor:
    table = gc.constant(np.arange(9.0), ["i"])
    pick = lambda s: (s[0] + 1, s[1] + table.isel(i=s[0].astype("int64")))
    return gc.while_loop(lambda s: s[0] < t, pick, (0.0, a))[1]


@pytest.mark.parametrize("program", [total, printing, picking])
def test_what_mixes_members_prints_or_may_fail_stays(program: Any) -> None:
    f = gc.compile([T, A], program(T, A), native=True)
    assert not is_in_blocks(f)


def test_a_cotangent_that_mixes_members_leaves_loops_as_they_are() -> None:
    f = gc.compile([T, A, W], gc.grad(gc.special.logsumexp(Y), A), native=True)
    assert not is_in_blocks(f)


def test_memory_for_steps_is_kept_where_the_next_block_needs_less() -> None:
    """It was given back and taken anew: a page fault for each page, in each call."""
    f = gc.compile([T, A, W], gc.grad(Y.sum(), A), native=True)
    t, a, w = given(300)
    t[:] = 4
    t[50] = 4000
    for _ in range(3):
        f(t, a, w)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        f(t, a, w)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 1000


STEPS = (
    lambda p, q, c: gc.sin(p) * c,
    lambda p, q, c: p * 0.5 + q * 0.3,
    lambda p, q, c: gc.where(p > c, p * 0.9, q),
    lambda p, q, c: gc.exp(-gc.abs(p)) * q,
    lambda p, q, c: gc.sqrt(gc.abs(p) + 1) - q * 0.2,
    lambda p, q, c: (p.mean("k") if "k" in p.dims else p) * c,
    lambda p, q, c: gc.maximum(p, q) * 0.7,
)


def random_loop(rng: np.random.Generator) -> tuple[list[gc.Tensor], list[gc.Tensor]]:
    """A loop over members of random steps, and its derivatives."""
    dims = [("m",), ("m", "k"), ("k", "m"), (), ("k",)]
    xs = [gc.tensor(f"x{i}", dict.fromkeys(dims[rng.integers(5)])) for i in range(3)]
    script = [(*rng.integers([len(STEPS), 99, 99]), rng.normal()) for _ in range(5)]

    def body(s: tuple[gc.Tensor, ...]) -> tuple[gc.Tensor, ...]:
        pool = [*s[1:], *xs]
        for op, i, j, c in script:
            pool.append(STEPS[op](pool[i % len(pool)], pool[j % len(pool)], c))
        new = [gc.tanh(y) + x * 0.1 for x, y in zip(s[1:], reversed(pool), strict=False)]
        return (s[0] + 1, *new)

    found = gc.while_loop(lambda s: s[0] < T, body, (0.0, xs[0] * 0.5, xs[1] * 2))[1:]
    loss = sum(((y * y).sum() for y in found), gc.constant(0.0))
    slopes = gc.grad(loss, xs, disconnected="zero")
    second = gc.grad((slopes[0] * xs[0]).sum(), xs[0], disconnected="zero")
    return [T, *xs], [*found, *slopes, second, gc.pushforward(found[0], xs[0], xs[0])]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_loops_have_the_same_values_without_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs, outputs = random_loop(rng)
    f = gc.compile(inputs, outputs, native=True)
    with patched(without("members in blocks")):
        usual = gc.compile(inputs, outputs, native=True)
    for sizes in ({"m": 300, "k": 3}, {"m": 1, "k": 1}, {"m": 0, "k": 2}, {"m": 60, "k": 20}):
        arrays = [rng.normal(size=[sizes[dim] for dim in x.dims]) for x in inputs]
        arrays[0] = rng.integers(0, 7, sizes["m"]).astype(float)
        arrays[0][:1] = 25
        for x, y in zip(f(*arrays), usual(*arrays), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9 * np.abs(y).max(initial=1.0))
