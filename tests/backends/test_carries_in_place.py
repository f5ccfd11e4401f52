"""Carries that a loop's steps update in some places: in one array, if nothing reads the old one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from tests.loops.test_loop_programs import close

Step = Callable[[Any, Any, Any], Any]
ZERO: Any = {"disconnected": "zero"}
START = np.array([0.5, -1.0, 2.0, 0.3, -0.7])
AT = [3, 0, 3, 1, 4]


def put(u: Any, i: Any, value: Any) -> Any:
    if isinstance(u, gc.Tensor):
        return u.at[{"row": i}].set(value)
    new = np.array(u)
    new[i] = value
    return new


def added(u: Any, i: Any, value: Any) -> Any:
    if isinstance(u, gc.Tensor):
        return u.at[{"row": i}].add(value)
    new = np.array(u)
    new[i] += value
    return new


def at(u: Any, i: Any) -> Any:
    return u.isel(row=i) if isinstance(u, gc.Tensor) else u[i]


IN_PLACE: dict[str, Step] = {
    "kept": lambda u, v, i: (u, v, at(u, i)),
    "set": lambda u, v, i: (put(u, i, 3.0), v, 0.0),
    "set from itself": lambda u, v, i: (put(u, i, 2 * at(u, 2) * at(u, i)), v, 0.0),
    "added": lambda u, v, i: (added(u, i, at(u, 1) * at(v, i)), v, 0.0),
    "read before": lambda u, v, i: (put(u, i, 1.5 * at(v, i)), v, (u * v).sum()),
    "read after": lambda u, v, i: ((new := put(u, i, at(v, i))), v, (new * v).sum()),
    "again and again": lambda u, v, i: (added(put(u, i, at(v, 0)), i, 1.0), v, u.sum()),
    "each its own": lambda u, v, i: (put(u, i, at(v, 0)), put(v, 1, at(u, i)), at(u, i)),
    "crosswise": lambda u, v, i: (put(u, i, v.sum()), added(v, i, at(u, i)), (u * v).sum()),
}
IN_PAIRS: dict[str, Step] = {
    "the old one is a result": lambda u, v, i: (put(u, i, 3.0), v, u),
    "a part of the old one is a result": lambda u, v, i: (put(u, i, 3.0), v, at(u, i)),
    "swapped": lambda u, v, i: (v, put(u, i, at(v, 2)), 0.0),
    "the old one is carried": lambda u, v, i: (put(u, i, at(v, 2)), u, 0.0),
    "both": lambda u, v, i: ((new := put(u, i, 0.3)), new, 0.0),
    "part of itself": lambda u, v, i: (put(u, slice(1, 4), u[{"row": slice(0, 3)}] if
                                           isinstance(u, gc.Tensor) else u[:3]), v, 0.0),
    "of something else": lambda u, v, i: (put(2 * u, i, 1.0), v, 0.0),
    "read where the new one is": lambda u, v, i: ((new := put(u, i, 1.0)), v, (u * new).sum()),
}  # fmt: skip


def stepped(step: Step) -> Any:
    """The body of a scan."""

    def body(carry: Any, i: Any) -> Any:
        *new, y = step(*carry, i)
        return tuple(new), y

    return body


def by_hand(step: Step, u: Any, v: Any) -> list[np.ndarray]:
    results = []
    for i in AT:
        u, v, y = step(u, v, i)
        results.append(y)
    return [u, v, np.array(results)]


@pytest.mark.parametrize("form", ["scan", "while_loop"])
@pytest.mark.parametrize("name", [*IN_PLACE, *IN_PAIRS])
def test_values_are_those_of_new_arrays(name: str, form: str) -> None:
    """Whether in place or not; the arguments stay as they were; by loops in loops as well."""
    step = (IN_PLACE | IN_PAIRS)[name]
    u, v = gc.tensor("u", {"row": None}), gc.tensor("v", {"row": None})
    places = gc.constant(AT, "time")
    if form == "scan":
        (a, b), ys = gc.scan(stepped(step), (u, v), places)
    else:
        _, a, b = gc.while_loop(
            lambda s: s[0] < len(AT),
            lambda s: (s[0] + 1, *step(s[1], s[2], places.isel(time=s[0]))[:2]),
            (0, u, v),
        )
        ys = gc.zeros({})
    outer = gc.fori_loop(0, 2, lambda _, s: gc.scan(stepped(step), s, places)[0], (u, v))
    f = gc.compile([u, v], [a, b, ys, *outer])
    given = START.copy(), 2 - START
    wanted = by_hand(step, START, 2 - START)
    twice = by_hand(step, *wanted[:2])
    for _ in range(2):
        found = f(*given)
        for got, want in zip(found, wanted if form == "scan" else wanted[:2], strict=False):
            close(got, want)
        for got, want in zip(found[3:], twice[:2], strict=True):
            close(got, want)
    np.testing.assert_array_equal(given, [START, 2 - START])


@pytest.mark.parametrize("name", [*IN_PLACE, *IN_PAIRS])
def test_derivatives_are_those_of_new_arrays(name: str) -> None:
    """Against the same steps written out."""
    step = (IN_PLACE | IN_PAIRS)[name]
    u, v = gc.tensor("u", {"row": 5}), gc.tensor("v", {"row": 5})

    def total(a: Any, b: Any, y: Any) -> Any:
        return (gc.sin(a) * b).sum() + (a * a).sum() + (y * y).sum()

    (a, b), ys = gc.scan(stepped(step), (u, v), gc.constant(AT, "time"))
    p, q, written = u, v, []
    for i in AT:
        p, q, y = step(p, q, i)
        written.append(y + gc.zeros({}))
    looped, plain = (
        total(a, b, ys),
        total(p, q, gc.concat([y.expand_dims("t") for y in written], "t")),
    )
    slopes = [g for y in (looped, plain) for g in gc.grad(y, [u, v], **ZERO)]
    curves = [
        gc.pushforward(gc.grad(y, [u, v], **ZERO), [u, v], [v, u], **ZERO) for y in (looped, plain)
    ]
    found = gc.compile(
        [u, v], [[looped, *slopes[:2], *curves[0]], [plain, *slopes[2:], *curves[1]]]
    )(START, 2 - START)
    for got, want in zip(*found, strict=True):
        close(got, want)


def pairs(source: str) -> int:
    """How often two arrays change places."""
    return len(re.findall(r"^ +s\d+, s\d+.* = s", source, re.MULTILINE))


@pytest.mark.parametrize("name", [*IN_PLACE, "the old one is a result", "swapped"])
def test_one_array_holds_what_is_updated(name: str) -> None:
    u, v = gc.tensor("u", {"row": 5}), gc.tensor("v", {"row": 5})
    last, ys = gc.scan(stepped((IN_PLACE | IN_PAIRS)[name]), (u, v), gc.constant(AT, "time"))
    found = pairs(gc.compile([u, v], [*last, ys]).source)
    assert found == (0 if name in IN_PLACE else 1)


def test_a_pullback_of_updates_updates_in_place() -> None:
    u, v = gc.tensor("u", {"row": 5}), gc.tensor("v", {"row": 5})
    (last, _), _ = gc.scan(stepped(IN_PLACE["set from itself"]), (u, v), gc.constant(AT, "time"))
    assert pairs(gc.compile([u, v], gc.grad(last.sum(), u)).source) == 0
