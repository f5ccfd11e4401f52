"""Buffers share memory where they are not in use at the same time, and nowhere else."""

from __future__ import annotations

import numpy as np

import graphcore as gc
from graphcore.backends.llvm_kernels import entrance
from graphcore.backends.llvm_kernels.arena import LINE, Need, packed

from .native import Both, needs_machine_code


def test_buffers_in_use_together_lie_apart() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        needs = []
        for _ in range(rng.integers(1, 30)):
            begin, length = rng.integers(0, 40), rng.integers(1, 12)
            times = ((1 << int(length)) - 1) << int(begin)
            needs.append(Need(int(rng.integers(0, 700)), times))
        starts, bytes = packed(needs)
        ends = [at + need.bytes for at, need in zip(starts, needs, strict=True)]
        assert all(at % LINE == 0 for at in starts)
        assert max(ends) <= bytes
        for i, x in enumerate(needs):
            for j, y in enumerate(needs[:i]):
                if x.times & y.times:
                    assert ends[i] <= starts[j] or ends[j] <= starts[i]


def test_the_largest_share_memory() -> None:
    needs = [Need(64, 0b001), Need(640, 0b010), Need(128, 0b110), Need(640, 0b100)]
    assert packed(needs) == ([0, 0, 640, 0], 768)


@needs_machine_code
def test_a_chain_of_different_sizes() -> None:
    """Rows that are stored one after the other, each a little shorter, need memory for two."""
    x = gc.tensor("x", {"n": None})
    y = x
    for _ in range(8):
        y = gc.sort(y, "n").isel(n=slice(1, None))
    both = Both.of(gc.compile([x], y))
    needs = [s for s in both.kernel.slots if isinstance(s, entrance.Scratch)]
    known = {both.kernel.unknowns[0]: 1000} if both.kernel.unknowns else {}
    sizes = [entrance.evaluate(s.bytes, known) for s in needs]
    _, bytes = packed([Need(n, s.times) for n, s in zip(sizes, needs, strict=True)])
    assert bytes < sum(sizes) / 2
    both.agree_when_called([np.random.default_rng(0).random(1000)], 0.0)


def test_of_equal_buffers_those_in_use_for_longest_come_first() -> None:
    needs = [Need(64, 0b001), Need(64, 0b100), Need(64, 0b011), Need(64, 0b110)]
    assert packed(needs)[1] == 128
