"""Fourier transforms: the ufuncs of NumPy, and its functions where there are no such ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphcore.backends.numpy_backend import fourier


@pytest.fixture(params=[True, False], ids=["ufuncs", "functions"])
def _with_and_without_ufuncs(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.delattr(np.fft, "_pocketfft_umath")


def values(dtype: str, *shape: int) -> Any:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


@pytest.mark.usefixtures("_with_and_without_ufuncs")
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("size", [1, 2, 7, 16])
@pytest.mark.parametrize("precision", ["single", "double"])
def test_all_axes_and_sizes(axis: int, size: int, precision: str) -> None:
    real, complexes = ("f4", "c8") if precision == "single" else ("f8", "c16")
    shape = [3, 0 if size == 7 and axis == 2 else 4, 5]
    shape[axis] = size
    x, z = values(real, *shape), values(complexes, *shape)
    shape[axis] = size // 2 + 1
    half = values(complexes, *shape)
    pairs = [
        (fourier.fft(z, axis), np.fft.fft(z, axis=axis)),
        (fourier.ifft(z, axis), np.fft.ifft(z, axis=axis, norm="forward")),
        (fourier.rfft(x, axis), np.fft.rfft(x, axis=axis)),
        (fourier.irfft(half, axis, size), np.fft.irfft(half, size, axis, "forward")),
        (fourier.fft(z[::-1].T, 2 - axis), np.fft.fft(z[::-1].T, axis=2 - axis)),
    ]
    for found, wanted in pairs:
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        tol = 1e-5 if precision == "single" else 1e-13
        np.testing.assert_allclose(found, wanted, rtol=tol, atol=tol * size)


@pytest.mark.usefixtures("_with_and_without_ufuncs")
def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="data points"):
        fourier.rfft(np.ones((2, 0)), 1)
    with pytest.raises(ValueError, match="data points"):
        fourier.fft(np.ones((0, 2), complex), 0)


def test_this_version_of_numpy_has_the_ufuncs() -> None:
    """Otherwise the calls work, but are slower: where NumPy has moved them, follow it."""
    for name in ("fft", "ifft", "irfft", "rfft_n_even", "rfft_n_odd"):
        assert fourier.beneath(name, 1) is not None
