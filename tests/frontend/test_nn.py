"""Activations at their kinks, infinities and in integers, and labels that are no classes."""

from __future__ import annotations

import numpy as np
import pytest

import graphcore as gc


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_limits_and_slopes(native: bool, dtype: str) -> None:
    x = gc.tensor("x", {"t": None}, dtype=dtype)
    values = np.array([-np.inf, -40, -1, 0, 1, 40, np.inf, np.nan], dtype)
    functions = (gc.nn.relu, gc.nn.silu, gc.nn.gelu)
    ys = [f(x) for f in functions] + [gc.nn.gelu(x, approximate=True)]
    slopes = [gc.grad(y.sum(), x) for y in ys]
    for y, slope in zip(*gc.compile([x], [ys, slopes], native=native)(values), strict=True):
        assert y.dtype == slope.dtype == dtype
        np.testing.assert_allclose(y[[0, 1, 3, 5, 6, 7]], [0, 0, 0, 40, np.inf, np.nan], atol=1e-15)
        np.testing.assert_allclose(slope[[1, 5]], [0, 1], atol=1e-14)
    np.testing.assert_array_equal(gc.compile([x], slopes[0])(values[2:5]), [0, 0, 1])
    assert gc.nn.relu(gc.constant([1, -1], "t")).dtype == np.int64
    assert gc.nn.silu(gc.constant([1, -1], "t")).dtype == np.float64


def test_cross_entropy_of_impossible_classes() -> None:
    """A chance of 0 adds nothing, whatever its logit."""
    logits = gc.constant([[0.0, -np.inf], [-np.inf, 0.0]], ("batch", "class"))
    labels = gc.tensor("labels", {"batch": 2}, dtype="int32")
    f = gc.compile([labels], gc.nn.cross_entropy(logits, labels, dim="class"))
    np.testing.assert_array_equal(f([0, 0]), [0, np.inf])
    both = gc.nn.cross_entropy(logits, gc.one_hot(labels, 2), dim="class")
    np.testing.assert_array_equal(gc.compile([labels], both)([0, 0]), [0, np.inf])
    for outside in (2, -1, -2):  # PyTorch refuses these as well
        with pytest.raises(gc.GraphIndexError, match="positions run from 0 to 1"):
            f([0, outside])
    for wrong in (gc.one_hot(labels, 2, dtype="int64"), labels > 0, labels * 1.0):
        with pytest.raises(gc.GraphError, match="give integers without dim 'class'"):
            gc.nn.cross_entropy(logits, wrong, dim="class")


def test_frequencies_have_the_default_dtype() -> None:
    with gc.default_dtype("float32"):
        made = [f(8, dim="t") for f in (gc.fft.fftfreq, gc.fft.rfftfreq)]
        made += [f(8, 0.5, dim="t") for f in (gc.fft.fftfreq, gc.fft.rfftfreq)]
    assert {y.dtype for y in made} == {np.dtype("float32")}
    np.testing.assert_array_equal(made[0].eval(), np.fft.fftfreq(8))
    np.testing.assert_array_equal(made[3].eval(), np.fft.rfftfreq(8, 0.5))
