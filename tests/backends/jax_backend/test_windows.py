"""Windows of many places: their reductions, what they need of memory, and their digits."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import graphcore as gc
from graphcore.compile.compiled import Compiled
from tests.reference import close

slow = pytest.mark.slow
RANDOM = np.random.default_rng(0)
X = gc.tensor("x", {"row": None, "col": None})
AT_PLACES = {
    "row": gc.windows(X, {"row": 70}, "lag"),
    "gaps": gc.windows(X, {"row": 70}, "lag", stride=3, dilation=2),
    "both": gc.windows(X, {"row": 40, "col": 3}, {"row": "lag", "col": "step"}, stride=2),
}


def both(inputs: Any, outputs: Any) -> tuple[Compiled, Compiled]:
    ours, reference = (gc.compile(inputs, outputs, target=target) for target in ("jax", "numpy"))
    return ours, reference


@pytest.mark.parametrize("name", ["both", *(pytest.param(x, marks=slow) for x in ("row", "gaps"))])
def test_reductions_of_windows_and_their_gradients(name: str) -> None:
    seen = AT_PLACES[name]
    places = [dim for dim in ("lag", "step") if dim in seen.dims]
    outputs = {
        "sum": seen.sum(places),
        "max": seen.max(places),
        "min": seen.min(places, initial=-0.5),
        "std": seen.std(places),
        "some": seen.sum("lag"),
        "rows": (seen**2).sum("row"),
    }
    if len(places) == 1:
        outputs["prod"] = seen.prod("lag")
    outputs |= {f"slope of {how}": gc.grad((y**2).sum(), X) for how, y in outputs.items()}
    ours, reference = both([X], list(outputs.values()))
    x = RANDOM.normal(size=(160, 8)).round(1)  # equal extremes too
    for name, found, wanted in zip(outputs, ours(x), reference(x), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-11, 1e-11, err_msg=name)
    x[50, 3] = np.nan
    for name, found, wanted in zip(outputs, ours(x), reference(x), strict=True):
        if name in ("sum", "max", "some"):
            close(found, wanted)


def needs(f: Compiled, x: np.ndarray) -> tuple[int, int]:
    """The characters of the program that XLA is given, and the bytes that it needs as it runs."""
    f(x)
    traced: Any = f._program.traced
    with jax.enable_x64(True):
        lowered = traced.jitted.lower([x], [], (x.size,), ())
        return len(lowered.as_text()), lowered.compile().memory_analysis().temp_size_in_bytes


def test_means_over_windows_need_no_more_memory_than_the_data() -> None:
    """Of 3,000 places of 17,001 windows an array would have 408 MB, and one of positions too."""
    x = gc.tensor("x", {"row": None})
    y = x.rolling(row=3000)
    given = RANDOM.normal(size=20_000)
    for output in (y.mean(), y.max(), gc.grad((y.mean() ** 2).sum(), x)):
        text, memory = needs(gc.compile([x], output, target="jax"), given)
        assert text < 20_000
        assert memory <= 4 * given.nbytes


def test_positions_of_windows_are_no_constants() -> None:
    """Windows that are made, with gaps and without, and added up."""
    x = gc.tensor("x", {"row": None})
    outputs = [
        gc.exp(gc.windows(x, {"row": 100}, "lag", dilation=gap)).median("lag") for gap in (1, 2)
    ]
    f = gc.compile([x], [*outputs, gc.grad((outputs[1] ** 2).sum(), x)], target="jax")
    assert needs(f, RANDOM.normal(size=2000))[0] < 100_000


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_many_windows_at_one_place_keep_their_digits(dtype: str) -> None:
    """Added one by one, 2,049 ones are 2,048 in float16."""
    x = gc.tensor("x", {"row": None}, dtype=dtype)
    w = gc.tensor("w", {"lag": None}, dtype=dtype)
    seen = gc.windows(x, {"row": 3000}, "lag")
    outputs = [seen.sum("lag"), gc.grad(seen.sum(), x), gc.grad((seen * w).sum(), x)]
    f = gc.compile([x, w], outputs, target="jax")
    given, weights = np.ones(3999, dtype), RANDOM.uniform(0.5, 1.5, 3000).astype(dtype)
    sums, counts, weighed = f(given, weights)
    rounding: Any = {"rtol": 2 * np.finfo(dtype).eps}
    np.testing.assert_allclose(sums, np.full(1000, 3000.0), **rounding)
    np.testing.assert_allclose(counts, np.convolve(np.ones(1000), np.ones(3000)), **rounding)
    wanted = np.convolve(np.ones(1000), weights.astype(float))
    np.testing.assert_allclose(weighed, wanted, **rounding)


@slow
@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "c16", "i8", "i4", "i1", "u1", "?"])
def test_reductions_of_windows_of_every_dtype(dtype: str) -> None:
    x = gc.tensor("x", {"row": None, "col": 2}, dtype=dtype)
    seen = gc.windows(x, {"row": 70}, "lag", stride=2)
    total = seen.sum("lag")
    outputs = [total, (seen != 0).any("lag"), seen.isel(lag=0)]
    if dtype != "?":
        outputs.append(seen.prod("lag"))
    if dtype[0] != "c":
        outputs += [seen.max("lag"), seen.min("lag")]
    if dtype[0] in "fc":
        outputs.append(gc.grad((abs(total) ** 2).sum(), x))
    ours, reference = both([x], outputs)
    given = RANDOM.normal(size=(200, 2)) * 3
    given = (given + 1j * RANDOM.normal(size=given.shape) if dtype[0] == "c" else given) / 2
    digits = {"f2": 1e-2, "f4": 1e-4, "c8": 1e-4}.get(dtype, 1e-10)
    for found, wanted in zip(
        ours(given.astype(dtype)), reference(given.astype(dtype)), strict=True
    ):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, digits, digits * np.abs(wanted).max())
