"""Programs of the docs, written by names: against NumPy and SciPy, which count axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.special

import graphcore as gc
from tests.docs.pages import BLOCK, ROOT

Array = np.ndarray[Any, Any]
PAGE = ROOT / "docs" / "howto" / "programs_by_name.md"
(_, SOURCE, _), *_ = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
PROGRAMS: dict[str, Any] = {}
exec(SOURCE.partition("\nimage = ")[0], PROGRAMS)


def convolution(image: Array, kernel: Array, bias: Array) -> Array:
    def one(channels: Array, out: int) -> Array:
        pairs = zip(np.moveaxis(channels, -1, 0), np.moveaxis(kernel[..., out], -1, 0))
        return sum(scipy.signal.correlate(x, k, mode="valid") for x, k in pairs) + bias[out]

    outs = range(kernel.shape[-1])
    return np.stack([np.stack([one(x, out) for out in outs], -1) for x in image])


def max_pooling(image: Array) -> Array:
    rows, cols = image.shape[1] // 2, image.shape[2] // 2
    cut = image[:, : 2 * rows, : 2 * cols]
    return cut.reshape(len(image), rows, 2, cols, 2, -1).max((2, 4))


def layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * scale + shift


def attention(x: Array, wq: Array, wk: Array, wv: Array, wo: Array) -> Array:
    total = 0
    for head in range(wq.shape[1]):
        q, k, v = x @ wq[:, head], x @ wk[:, head], x @ wv[:, head]
        scores = q @ k.swapaxes(1, 2) / np.sqrt(wq.shape[2])
        scores[:, ~np.tri(x.shape[1], dtype=bool)] = -np.inf
        total = total + scipy.special.softmax(scores, -1) @ v @ wo[head]
    return total


def embedding(table: Array, text: Array) -> Array:
    return table[text]


def scatter_add(values: Array, bins: Array) -> Array:
    result = np.zeros(5)
    np.add.at(result, bins, values)
    return result


Inputs = dict[str, dict[str, int]]
"""The dims of each input, and their sizes; integers are below 5."""

CASES: dict[str, tuple[Callable[..., Array], Inputs, dict[str, Any]]] = {
    "convolution": (
        convolution,
        {
            "image": {"batch": 2, "y": 6, "x": 5, "channel": 2},
            "kernel": {"ky": 3, "kx": 3, "channel": 2, "out": 2},
            "bias": {"out": 2},
        },
        {},
    ),
    "max_pooling": (max_pooling, {"image": {"batch": 2, "y": 5, "x": 6, "channel": 2}}, {}),
    "layer_norm": (
        layer_norm,
        {"x": {"batch": 3, "feature": 4}, "scale": {"feature": 4}, "shift": {"feature": 4}},
        {"dim": "feature"},
    ),
    "attention": (
        attention,
        {
            "x": {"batch": 2, "time": 4, "model": 3},
            "wq": {"model": 3, "head": 2, "key": 2},
            "wk": {"model": 3, "head": 2, "key": 2},
            "wv": {"model": 3, "head": 2, "value": 3},
            "wo": {"head": 2, "value": 3, "out": 3},
        },
        {},
    ),
    "embedding": (
        embedding, {"table": {"word": 5, "feature": 3}, "text int": {"batch": 2, "time": 4}}, {}
    ),
    "scatter_add": (
        scatter_add, {"values": {"place": 9}, "bins int": {"place": 9}}, {"size": 5}
    ),
}  # fmt: skip
UNKNOWN = ("batch", "time", "y", "x", "place")


def differences(f: Callable[[], float], x: Array) -> Array:
    """df/dx by central differences."""
    slope = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        value, ends = x[place], []
        for step in (1e-5, -1e-5):
            x[place] = value + step
            ends.append(f())
        x[place] = value
        slope[place] = (ends[0] - ends[1]) / 2e-5
    return slope


def test_every_program_is_tested() -> None:
    assert {name for name, value in PROGRAMS.items() if callable(value)} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_program(name: str) -> None:
    theirs, inputs, options = CASES[name]
    random = np.random.default_rng(0)
    tensors, arrays = [], []
    for spec, sizes in inputs.items():
        integers = spec.endswith(" int")
        known = {dim: None if dim in UNKNOWN else size for dim, size in sizes.items()}
        tensors.append(gc.tensor(spec, known, dtype="int64" if integers else "float64"))
        shape = tuple(sizes.values())
        arrays.append(random.integers(0, 5, shape) if integers else random.normal(size=shape))
    y = PROGRAMS[name](*tensors, **options)
    wanted = theirs(*arrays)
    weights = random.normal(size=wanted.shape)
    floats = [x for x in tensors if x.dtype.kind == "f"]
    ct = gc.tensor("ct", y.sizes)
    f = gc.compile([*tensors, ct], [y, *gc.pullback(y, floats, ct)])
    found, *slopes = f(*arrays, weights)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    varied = [array for array in arrays if array.dtype.kind == "f"]
    for slope, array in zip(slopes, varied, strict=True):
        numeric = differences(lambda: float(np.sum(theirs(*arrays) * weights)), array)
        np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_program_is_short(name: str) -> None:
    body = SOURCE.partition(f"def {name}(")[2].partition("\n\n\n")[0]
    assert len(body.splitlines()) - 1 <= 5
