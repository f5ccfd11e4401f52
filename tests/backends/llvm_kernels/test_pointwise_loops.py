"""Loops whose steps compute each element from itself: all steps of it are made in registers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends.llvm_kernels.pointwise_loops import CHUNK

from .native import needs_machine_code

pytestmark = needs_machine_code

WORDS = "all steps of an element in registers"
SIZES = (0, 3), (1, 1), (2, 5), (7, 9), (5, 25), (40, 33)
STEPS = 0, 1, 2, 9, CHUNK, CHUNK + 7


def agree(
    inputs: Sequence[gc.Tensor], results: Sequence[gc.Tensor], *calls: Sequence[object]
) -> None:
    """Machine code gives the bits of the NumPy target, on one thread and on several."""
    native, plain = (gc.compile(inputs, results, target=to) for to in ("native", "numpy"))
    for given in calls:
        wanted = plain(*given)
        for threads in (1, 3):
            with gc.threads(threads):
                found = native(*given)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32", "bool"])
def test_any_dtype_size_and_number_of_steps(dtype: str) -> None:
    dims, rng = {"a": None, "b": None}, np.random.default_rng(2)
    x, y = gc.tensor("x", dims, dtype=dtype), gc.tensor("y", dims, dtype=dtype)
    steps, scale = gc.tensor("steps", {}, dtype="int64"), gc.tensor("scale", {})

    def step(k: gc.Tensor, state: tuple[gc.Tensor, ...]) -> tuple[gc.Tensor, ...]:
        z, w, total, count = state
        if dtype == "bool":
            z, w = w ^ y, z
        else:  # the two change places; a number of the loop counts as well
            z, w = w + y, (z * y - z).astype(dtype)
        return z, w, total + k * scale, count + gc.where(w == y, k, 1)

    start = x, y, gc.constant(0.5), gc.zeros_like(x, dtype="int64")
    results = gc.fori_loop(0, steps, step, start)
    calls = []
    for shape in SIZES:
        values = [(rng.standard_normal(shape) * 3).astype(dtype) for _ in range(2)]
        calls += [[*values, many, 0.25] for many in STEPS]
    with np.errstate(all="ignore"):
        agree([x, y, steps, scale], results, *calls)


def test_a_loop_that_ends_by_its_numbers() -> None:
    """The numbers are the same for all elements, and are results as well."""
    x, limit = gc.tensor("x", {"a": None}), gc.tensor("limit", {})

    def step(state: tuple[gc.Tensor, ...]) -> tuple[gc.Tensor, ...]:
        left, y = state
        return left / 2, gc.sqrt(y + left)

    left, y = gc.while_loop(lambda state: state[0] > limit, step, (gc.constant(1.0), x))
    values = np.random.default_rng(0).random(100)
    agree([x, limit], [left, y], *[(values, limit) for limit in (2.0, 0.3, 1e-9)])


@pytest.mark.parametrize("reverse", [False, True])
def test_steps_that_read_their_number(reverse: bool) -> None:
    x = gc.tensor("x", {"a": None})
    places = gc.arange(400, dim="step")
    step = lambda y, k: (gc.sqrt(y + 1) + 0.01 * k, ())
    last, _ = gc.scan(step, x, places, dim="step", reverse=reverse)
    agree([x], [last], *[(np.random.default_rng(n).random(n),) for n in (0, 1, 30, 1000)])


def test_captured_arrays_of_fewer_axes() -> None:
    x, r = gc.tensor("x", {"a": None, "b": None}), gc.tensor("r", {"a": None})
    q, few = gc.tensor("q", {"b": None}), gc.tensor("few", {"a": None, "b": 3})
    rng = np.random.default_rng(4)
    calls = [
        [rng.random((a, b)), rng.random(a) + 1, rng.random(b), rng.random((a, 3))]
        for a, b in ((1, 1), (3, 40), (70, 9), (0, 5), (5, 0))
    ]
    loops = [
        gc.fori_loop(0, 20, lambda k, z: r * z * (1 - z) + q * 1e-3 - k * 1e-4, x),
        gc.fori_loop(0, 20, lambda _, z: (r + 1) * z * (1 - z), few),  # a short axis has no lanes
    ]
    agree([x, r, q, few], loops, *calls)
    said = [WORDS in gc.compile([x, r, q, few], y, target="native").source for y in loops]
    assert said == [True, False]


def test_long_steps() -> None:
    """No value asks for a chain of a thousand others."""
    x = gc.tensor("x", {"a": None})

    def step(_: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
        for k in range(1000):
            y = gc.maximum(y * 0.5, k * 1e-3 - y)
        return y

    agree([x], [gc.fori_loop(0, 3, step, x)], (np.random.default_rng(0).random(50),))


def test_which_loops_are_computed_so() -> None:
    x, y = gc.tensor("x", {"a": None}), gc.tensor("y", {"a": None})
    for step, said in (
        (lambda _, z: z * y + 1, True),
        (lambda _, z: z * y.sum() + 1, True),  # computed before the loop
        (lambda _, z: z - z.mean(), False),
        (lambda _, z: z.shift(a=1, fill_value=0.0) + y, False),
        (lambda k, z: z + y[{"a": k}], False),
    ):
        f = gc.compile([x, y], gc.fori_loop(0, 4, step, x), target="native")
        assert (WORDS in f.source) is said
        given = np.random.default_rng(1).random((2, 37))
        plain = gc.compile([x, y], gc.fori_loop(0, 4, step, x), target="numpy")
        np.testing.assert_allclose(f(*given), plain(*given), rtol=1e-12)


def test_a_profile_measures_what_is_run() -> None:
    """Such a loop is one step, not the steps of its body."""
    x = gc.tensor("x", {"a": None})
    f = gc.compile([x], gc.fori_loop(0, 50, lambda _, y: gc.sin(y) + 1, x), target="native")
    steps = f.profile(np.linspace(0, 1, 1000)).steps
    (loop,) = [step for step in steps if "scan(" in step.says]
    assert loop.calls == 1
    assert not any("sin" in step.says for step in steps)
