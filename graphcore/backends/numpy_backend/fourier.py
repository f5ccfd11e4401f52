"""Fourier transforms without a factor, by the ufuncs beneath the functions of `numpy.fft`.

The functions take as long to get there as a transform of 500 values takes, and give the factor as
a float64, so that NumPy computes transforms of float32 in float64, with copies. Versions of NumPy
without these ufuncs have the functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ONE = {np.dtype(kind): np.ones((), kind) for kind in ("f4", "f8")}
"""The factor, by the precision."""


def fft(x: Array, axis: int) -> Array:
    """sum over j of x[j] e^(-2 pi i j k / n) along an axis"""
    ufunc = beneath("fft", x.shape[axis])
    if ufunc is None:
        return np.fft.fft(x, None, axis)
    return through(ufunc, x, axis, np.empty(x.shape, x.dtype))


def ifft(x: Array, axis: int) -> Array:
    """sum over j of x[j] e^(2 pi i j k / n) along an axis"""
    ufunc = beneath("ifft", x.shape[axis])
    if ufunc is None:
        return np.fft.ifft(x, None, axis, "forward")
    return through(ufunc, x, axis, np.empty(x.shape, x.dtype))


def rfft(x: Array, axis: int) -> Array:
    """The first n // 2 + 1 values of `fft` of real values."""
    size = x.shape[axis]
    ufunc = beneath("rfft_n_odd" if size % 2 else "rfft_n_even", size)
    if ufunc is None:
        return np.fft.rfft(x, None, axis)
    shape = (*x.shape[:axis], size // 2 + 1, *x.shape[axis + 1 :])
    return through(ufunc, x, axis, np.empty(shape, np.result_type(x.dtype, np.complex64)))


def irfft(x: Array, axis: int, size: int) -> Array:
    """The real values, `size` of them, whose `rfft` is x, times `size`."""
    ufunc = beneath("irfft", size)
    if ufunc is None:
        return np.fft.irfft(x, size, axis, "forward")
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    return through(ufunc, x, axis, np.empty(shape, x.real.dtype))


def beneath(name: str, size: int) -> Any:
    """A ufunc of `numpy.fft`; None where it has none, or for no values, which it refuses."""
    ufunc = getattr(getattr(np.fft, "_pocketfft_umath", None), name, None)
    return ufunc if size > 0 and getattr(ufunc, "nin", 0) == 2 else None


def through(ufunc: Any, x: Array, axis: int, out: Array) -> Array:
    """What a ufunc puts into `out`."""
    one = ONE[x.real.dtype]
    if axis == x.ndim - 1:
        ufunc(x, one, out)
    else:
        ufunc(x, one, out, axes=[axis, (), axis])
    return out
