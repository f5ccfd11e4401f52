"""Convolution against SciPy and JAX, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import graphcore as gc


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_signals_of_any_two_sizes(mode: Any, dtype: str, random: np.random.Generator) -> None:
    x, y = (gc.tensor(name, {"t": name}, dtype=dtype) for name in "xy")
    functions = [gc.signal.convolve, gc.signal.correlate, gc.signal.fftconvolve]
    f = gc.compile([x, y], [function(x, y, "t", mode) for function in functions])
    for n in range(1, 6):
        for m in range(1, 6):
            given = [random.normal(size=k) * 9 for k in (n, m)]
            if dtype == "complex128":
                given = [value + 1j * random.normal(size=value.shape) for value in given]
            given = [value.astype(dtype) for value in given]
            for found, function in zip(f(*given), functions, strict=True):
                wanted = getattr(scipy.signal, function.__name__)(*given, mode)
                if function is gc.signal.fftconvolve and dtype == "int64":
                    wanted = wanted.astype(float)  # SciPy's is an integer for a single place
                assert found.dtype == wanted.dtype
                rtol = 1e-5 if dtype == "float32" else 1e-12
                np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * 100)


def test_images_in_a_batch(random: np.random.Generator) -> None:
    x = gc.tensor("x", {"batch": 2, "row": 6, "col": 5})
    k = gc.tensor("k", {"col": 2, "row": 3, "out": 2})
    given = random.normal(size=(2, 6, 5)), random.normal(size=(2, 3, 2))
    for mode in ("full", "same", "valid"):
        y = gc.signal.convolve(x, k, ("row", "col"), mode)
        assert y.dims == ("batch", "row", "col", "out")
        found = gc.compile([x, k], y)(*given)
        for i, j in np.ndindex(2, 2):
            wanted = scipy.signal.convolve(given[0][i], given[1][..., j].T, mode)
            np.testing.assert_allclose(found[i, ..., j], wanted)


def convolved_by_jax(
    x: np.ndarray, k: np.ndarray, stride: int, dilation: int, padding: Any
) -> tuple[Any, Any]:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    ends = {
        "valid": "VALID",
        "same": "SAME",
        "full": [(dilation * (n - 1),) * 2 for n in k.shape[:2]],
    }
    return jax.vjp(
        lambda x, k: jax.lax.conv_general_dilated(
            x, k, (stride, stride), ends.get(padding) or [padding] * 2,
            rhs_dilation=(dilation, dilation), dimension_numbers=("NHWC", "HWIO", "NHWC"),
        ),
        x, k,
    )  # fmt: skip


@pytest.mark.parametrize("padding", ["valid", "same", "full", (2, 0)], ids=str)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (3, 2)])
def test_layers_are_those_of_jax(
    stride: int, dilation: int, padding: Any, random: np.random.Generator
) -> None:
    """Values, both gradients, and the transposed layer, which is the gradient by the image."""
    x = gc.tensor("x", {"batch": None, "y": None, "x": None, "channel": 3})
    k = gc.tensor("k", {"y": 3, "kx": 2, "channel": 3, "out": 4})
    moves, steps = {"y": "y", "x": "kx"}, (stride, dilation, padding)
    y = gc.conv(x, k, moves, "channel", *steps)
    ct = gc.tensor("ct", y.sizes)
    sizes = {dim: x.sizes[dim] for dim in moves}
    back = gc.conv_transpose(ct, k, moves, "out", *steps, sizes=sizes)
    f = gc.compile([x, k, ct], [y, *gc.pullback(y, [x, k], ct), back])
    kernel = random.normal(size=(3, 2, 3, 4))
    for rows, cols in ((8, 9), (7, 5)):
        image = random.normal(size=(2, rows, cols, 3))
        value, pullback = convolved_by_jax(image, kernel, *steps)
        weights = random.normal(size=value.shape)
        slopes = pullback(weights)
        for found, wanted in zip(
            f(image, kernel, weights), [value, *slopes, slopes[0]], strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_a_convolution_in_groups_shares_a_dim(random: np.random.Generator) -> None:
    x = gc.tensor("x", {"t": 9, "group": 2, "channel": 3})
    k = gc.tensor("k", {"group": 2, "t": 4, "channel": 3, "out": 5})
    y = gc.conv(x, k, "t", contract="channel")
    assert y.sizes == {"t": 6, "group": 2, "out": 5}
    image, kernel = random.normal(size=(9, 2, 3)), random.normal(size=(2, 4, 3, 5))
    found = gc.compile([x, k], y)(image, kernel)
    for i in range(6):
        wanted = np.einsum("tgc,gtco->go", image[i : i + 4], kernel)
        np.testing.assert_allclose(found[i], wanted)


def test_a_convolution_is_one_copy_and_one_matrix_product() -> None:
    x = gc.tensor("x", {"batch": None, "y": None, "x": None, "channel": 16})
    k = gc.tensor("k", {"ky": 3, "kx": 3, "channel": 16, "out": 32})
    y = gc.conv(x, k, {"y": "ky", "x": "kx"}, "channel")
    f = gc.compile([x, k], [y, gc.grad((y * y).sum(), k)])
    assert f.source.count("matmul_in_blocks(") == 2
    assert f.source.count("windows(") == 1  # which the gradient reads as well


def test_layers_inside_of_loops(random: np.random.Generator) -> None:
    """A loop of layers is the layers written out: value, gradients and second order."""
    u, k = gc.tensor("u", {"step": 3, "x": None}), gc.tensor("k", {"kx": 3})
    start = gc.tensor("start", {"x": None})

    def layer(state: gc.Tensor, u: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
        new = gc.tanh(gc.conv(state, k, {"x": "kx"}, padding="same") + u)
        return new, gc.max_pool(new, {"x": 3}, stride=2)

    last, pooled = gc.scan(layer, start, u, dim="step")
    state, total = start, gc.constant(0.0)
    for t in range(3):
        state, one = layer(state, u.isel(step=t))
        total = total + (one**2).sum()
    inputs = [start, u, k]
    given = [random.normal(size=size) for size in (9, (3, 9), 3)]
    results = []
    for loss in ((pooled**2).sum() + last.sum(), total + state.sum()):
        outputs = [loss, *gc.grad(loss, inputs), gc.hvp(loss, k, gc.ones_like(k))]
        results.append(gc.compile(inputs, outputs)(*given))
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
