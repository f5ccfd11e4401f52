"""Loops and branches in machine code beside NumPy calls, derivatives included."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels import entrance

from .native import Both, needs_machine_code

pytestmark = needs_machine_code

Tensor = gc.Tensor
SIZES = [(0, 3), (1, 1), (5, 8), (4, 17)]
"""Steps, and elements of what is carried."""


def x_and_ys() -> tuple[Tensor, Tensor]:
    return gc.tensor("x", {"i": None}), gc.tensor("y", {"time": None, "i": None})


def running(x: Tensor, y: Tensor) -> Any:
    def step(c: Tensor, row: Tensor) -> Any:
        new = gc.tanh(c * 0.9 + row)
        return new, (new.sum(), new * 2)

    return gc.scan(step, x, y, dim="time")


def backwards(x: Tensor, y: Tensor) -> Any:
    return gc.scan(lambda c, row: (c * row + c.sum(), c), x, y, dim="time", reverse=True)


def swapped(x: Tensor, y: Tensor) -> Any:
    def step(c: Any, row: Tensor) -> Any:
        a, b, n = c
        return (b, a + row * n, n + 1.0), a.sum() + b.sum()

    return gc.scan(step, (x, x * 2, x.sum()), y, dim="time")


def within(x: Tensor, y: Tensor) -> Any:
    """A loop in a loop, and what is known outside of both."""

    def step(c: Tensor, row: Tensor) -> Any:
        inner = gc.fori_loop(0, 3, lambda k, d: gc.sin(d) * x + row * k, c)
        return inner, inner.sum()

    return gc.scan(step, x, y, dim="time")


def until(x: Tensor, y: Tensor) -> Any:
    def step(c: Any) -> Any:
        value, n = c
        return value * 0.7, n + 1

    value, n = gc.while_loop(lambda c: (c[0] ** 2).sum() > 0.5, step, (x * 3, gc.constant(0)))
    return value, n


def chosen(x: Tensor, y: Tensor) -> Any:
    first = gc.sum(x) > 0
    a = gc.cond(first, lambda v: gc.exp(v * 0.1), lambda v: v * 2, x)
    number = (gc.sum(gc.floor(gc.absolute(x)))).astype("int64") % 3
    b = gc.switch(number, [lambda v: v, lambda v: v * v, lambda v: gc.cos(v)], x)
    return a, b


def updated(x: Tensor, y: Tensor) -> Any:
    """One element of the carry is written in each step, from those around it."""

    def step(k: Tensor, c: Tensor) -> Tensor:
        at = k % c.sizes["i"]
        left = c.isel(i=at - 1)
        return c.at[{"i": at}].set(left * 0.5 + gc.exp(c.isel(i=at)) * 0.1)

    return gc.fori_loop(0, 12, step, x)


def updated_twice(x: Tensor, y: Tensor) -> Any:
    def step(c: Tensor, row: Tensor) -> Any:
        total = (c * row).sum()
        new = c.at[{"i": 0}].set(total).at[{"i": -1}].add(row.isel(i=0))
        return new, total

    return gc.scan(step, x, y, dim="time")


def part_updated(x: Tensor, y: Tensor) -> Any:
    def step(c: Tensor, row: Tensor) -> Any:
        half = (c + row).isel(i=slice(0, 1))
        return c.at[{"i": slice(0, 1)}].set(half * 2), c.sum()

    return gc.scan(step, x, y, dim="time")


PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    f.__name__: f
    for f in (
        running,
        backwards,
        swapped,
        within,
        until,
        chosen,
        updated,
        updated_twice,
        part_updated,
    )
}


def flat(tree: Any) -> list[Tensor]:
    if isinstance(tree, tuple | list):
        return [y for part in tree for y in flat(part)]
    return [tree]


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops(name: str) -> None:
    x, y = x_and_ys()
    ys = flat(PROGRAMS[name](x, y))
    total = sum((gc.sum(z * 1.0) for z in ys), gc.constant(0.0))
    slopes = gc.grad(total, [x, y], disconnected="zero")
    rng = np.random.default_rng(9)
    for outputs in (ys, [total, *slopes]):
        compiled = gc.compile([x, y], outputs)
        both = Both.of(compiled)
        for steps, n in SIZES:
            values = [rng.standard_normal(n), rng.standard_normal((steps, n))]
            both.agree_when_called(values, 1e4)


def test_records_grow_with_the_steps() -> None:
    """A loop whose number of steps only it finds is differentiated; the next call may need more."""
    x = gc.tensor("x", {"i": None})
    value, n = until(x, x)
    compiled = gc.compile([x], [value, n, gc.grad((value**2).sum(), x)])
    both = Both.of(compiled)
    call = both.program(compiled._boundary.bind)
    for scale in (1.0, 1e30, 1e3, 1e300, 0.0):
        found, wanted = call(np.full(5, scale)), compiled(np.full(5, scale))
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, 1e-11)


@pytest.mark.parametrize("length", [0, 1, 5, 8, 9])
def test_short_sequences_and_carries(length: int) -> None:
    """Sizes that are known and small live in registers."""
    x = gc.tensor("x", {"i": 3})
    y = gc.tensor("y", {"time": length, "i": 3})
    z = gc.tensor("z", {"time": length})

    def step(c: Any, row: Any) -> Any:
        a, b = row
        return c * b + a, (c.sum(), gc.flip(c, "i"))

    last, (sums, rows) = gc.scan(step, x, (y, z), dim="time")
    slope = gc.grad((last**2).sum() + sums.sum() + rows.sum(), [x, y, z], disconnected="zero")
    both = Both.of(gc.compile([x, y, z], [last, sums, rows, *slope]))
    rng = np.random.default_rng(10)
    shapes = [(3,), (length, 3), (length,)]
    both.agree_when_called([rng.standard_normal(shape) for shape in shapes], 1e3)


def test_a_carry_that_is_updated_lies_where_the_result_goes() -> None:
    """No step copies it, and nothing else is as large."""
    x, k = gc.tensor("x", {"i": None}), gc.tensor("k", {"time": None}, dtype="int64")
    last = gc.scan(lambda c, at: (c.at[{"i": at}].add(gc.sin(c.sum())), None), x, k, dim="time")[0]
    both = Both.of(gc.compile([x, k], last))
    assert not any(isinstance(slot, entrance.Scratch) for slot in both.kernel.slots)
    both.agree_when_called([np.arange(40.0), np.array([3, 39, 3, 0])], 1e2)


INNER = {"i": slice(1, -1)}


def around(x: Tensor) -> Tensor:
    return x[{"i": slice(-2)}] - 2 * x[INNER] + gc.sin(x[{"i": slice(2, None)}])


def in_turn(a: Tensor, b: Tensor) -> Any:
    new = b.at[INNER].set(around(a))
    return a.at[INNER].set(around(new)), new


def of_itself(a: Tensor, b: Tensor) -> Any:
    return a.at[INNER].set(around(a)), b


def exchanged(a: Tensor, b: Tensor) -> Any:
    return a.at[INNER].set(around(b)), b.at[INNER].set(around(a))


def read_later(a: Tensor, b: Tensor) -> Any:
    new = a.at[INNER].set(0.5 * b[INNER])
    return new, b + gc.flip(a, "i") * gc.cos(a) + new.sum()


def twice(a: Tensor, b: Tensor) -> Any:
    new = a.at[INNER].set(around(b))
    return new.at[{"i": slice(2)}].set(around(b)[{"i": slice(2)}] * new[{"i": -1}]), b + new


@pytest.mark.parametrize("step", [in_turn, of_itself, exchanged, read_later, twice])
def test_parts_are_written_over_what_nothing_reads_any_more(step: Any) -> None:
    a, b = (gc.tensor(name, {"i": "n"}) for name in "ab")
    both = Both.of(gc.compile([a, b], gc.fori_loop(0, 3, lambda _, now: step(*now), (a, b))))
    rng = np.random.default_rng(11)
    for n in (4, 9, 25):
        both.agree_when_called(list(rng.standard_normal((2, n))), 1e3)


def test_fields_in_turn_need_no_memory() -> None:
    def relaxed(x: Tensor, into: Tensor) -> Tensor:
        return into.at[INNER].set(x[{"i": slice(-2)}] + gc.sin(x[{"i": slice(2, None)}]))

    def step(_: Tensor, now: tuple[Tensor, Tensor]) -> Any:
        new = relaxed(now[0], now[1])
        return relaxed(new, now[0]), new

    a, b = (gc.tensor(name, {"i": "n"}) for name in "ab")
    both = Both.of(gc.compile([a, b], gc.fori_loop(0, 3, step, (a, b))))
    assert not any(isinstance(slot, entrance.Scratch) for slot in both.kernel.slots)


def test_chunks_that_no_step_fills_take_no_memory() -> None:
    """The longest chunks of checkpoint="log" have 32,768 steps; most calls have fewer in all."""
    x, w = gc.tensor("x", {"time": None, "k": None}), gc.tensor("w", {"k": None})

    def slope(checkpoint: Any) -> gc.Compiled:
        def step(h: gc.Tensor, x: gc.Tensor) -> tuple[gc.Tensor, None]:
            return gc.tanh(h * w + x), None

        h, _ = gc.scan(step, gc.zeros_like(w), x, checkpoint=checkpoint)
        return gc.compile([x, w], gc.grad(h.sum(), [x, w]), native=True)

    rng = np.random.default_rng(5)
    log, all_kept = slope("log"), slope(None)
    log._program.prepare()  # so that writing the machine code is not measured
    for length in (0, 31, 40):
        given = rng.standard_normal((length, 40)), rng.standard_normal(40)
        tracemalloc.start()
        found = log(*given)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()
        for a, b in zip(found, all_kept(*given), strict=True):
            np.testing.assert_allclose(a, b, 1e-12)
    assert log.profile(*given).memory.peak < 1_000_000
