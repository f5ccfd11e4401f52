"""A loop counts its steps in constant memory, whatever it computes of the counter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphcore as gc

Z = gc.tensor("z", {})
X = gc.tensor("x", {"time": None})
N = X.sizes["time"]
FORMS: dict[str, Any] = {
    "a sum": lambda i, s: gc.sin(s) + i,
    "functions of it": lambda i, s: s * 0.5 + i * gc.cos(0.1 * i),
    "a test": lambda i, s: gc.where(i % 2 == 0, s, gc.cos(s)),
    "the number itself": lambda i, s: i + 0.0 * s,
    "in another loop": lambda i, s: gc.fori_loop(0, i % 3, lambda j, t: gc.sin(t + j) + i, s),
}


def written_out(form: Any, lower: int, upper: int) -> gc.Tensor:
    s = gc.constant(0.3)
    for i in range(lower, upper):
        s = form(gc.constant(i), s)
    return s


OTHERS = [name for name in FORMS if name != "functions of it"]


@pytest.mark.parametrize(
    "name", ["functions of it", *[pytest.param(x, marks=pytest.mark.slow) for x in OTHERS]]
)
def test_as_written_out(name: str) -> None:
    form = FORMS[name]
    bounds = [(0, 0), (0, 5), (-2, 2), (5, 2)]
    wanted = gc.evaluate([written_out(form, a, b) for a, b in bounds], {})
    known = [gc.fori_loop(a, b, form, Z) for a, b in bounds]
    unknown = [gc.fori_loop(a, b - 3 + N, form, Z) for a, b in bounds]
    slopes = gc.grad(sum(known), Z)
    for native in (False, True):
        f = gc.compile([Z, X], [*known, *unknown, slopes, gc.grad(sum(unknown), Z)], native=native)
        *found, slope, other = f(0.3, np.zeros(3))
        for one, two, value in zip(found[: len(bounds)], found[len(bounds) :], wanted, strict=True):
            np.testing.assert_allclose([one, two], [value, value], rtol=1e-12)
        np.testing.assert_allclose(slope, other, rtol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_counter_that_is_read_otherwise_too(reverse: bool) -> None:
    """As a sequence, as a captured value, as a start and as a result."""
    count = gc.arange(N, dim="time")
    last, ys = gc.scan(lambda c, i: (c * 0.5 + i, (i, c)), gc.sin(0.1 * count).rename(time="k"),
                       count, "time",
                       reverse=reverse)  # fmt: skip
    for native in (False, True):
        f = gc.compile([X], [last, *ys, count], native=native)
        for n in (0, 1, 4):
            c, rows, at = np.sin(0.1 * np.arange(n)), [], range(n)[:: -1 if reverse else 1]
            for i in at:
                rows.append(c)
                c = c * 0.5 + i
            found = f(np.zeros(n))
            np.testing.assert_allclose(found[0], c, rtol=1e-12)
            np.testing.assert_array_equal(found[1], np.arange(n))
            np.testing.assert_allclose(
                found[2], np.reshape(rows[:: -1 if reverse else 1], (n, n)), rtol=1e-12
            )
            np.testing.assert_array_equal(found[3], np.arange(n))


@pytest.mark.parametrize("name", [name for name in FORMS if name != "in another loop"])
def test_no_array_is_as_long_as_the_loop(name: str) -> None:
    """Of a known number of steps, which no memory could hold, and of an unknown one."""
    for steps in (10**13, N):
        f = gc.compile([Z, X], gc.fori_loop(0, steps, FORMS[name], Z))
        made = [x.type for x in f.stages["optimized"].every_node() if x.inputs]
        assert not any(steps in getattr(type, "shape", ()) for type in made)
        assert "arange" not in f.source
        native = gc.compile([Z, X], gc.fori_loop(0, steps, FORMS[name], Z), native=True)
        assert "step] = " not in native.source
