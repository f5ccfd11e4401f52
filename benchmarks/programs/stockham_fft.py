"""The Fourier transform of radix-R digits: one small transform for each digit of the time.

npbench's stockham_fft, for five digits. There digits are split off, moved and merged at each step;
here time has its digits as dims t0 ... t4 (the first counts most) and frequency as f0 ... f4 (the
first counts least), and no digit is ever moved.
"""

from __future__ import annotations

import math

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"radix": 2}, "small": {"radix": 8}}
DIGITS = 5


def inputs(size: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(42)
    shape = (SIZES[size]["radix"],) * DIGITS
    return {"x": rng.random(shape) + 1j * rng.random(shape)}


def turns(phase: gc.Tensor) -> gc.Tensor:
    return gc.exp(-2j * math.pi * phase)


def program() -> gc.Compiled:
    x = gc.tensor("x", {f"t{i}": "radix" for i in range(DIGITS)}, dtype="complex128")
    radix = x.sizes["t0"]
    y, below = x, 0.0  # the transform by the digits so far, and what part of a turn these are
    for i in range(DIGITS):
        time, frequency = f"t{i}", f"f{i}"
        digit = gc.arange(radix, dim=time)
        dft = turns(digit * gc.arange(radix, dim=frequency) / radix)
        y = gc.dot(y * turns(digit * below / radix), dft, dim=time)
        below = (below + gc.arange(radix, dim=frequency)) / radix
    return gc.compile([x], {"y": y.transpose(*reversed(y.dims))})


def reference(x: np.ndarray) -> dict[str, np.ndarray]:
    radix, n = len(x), x.size
    shape, x = x.shape, x.reshape(-1)
    rows, cols = np.mgrid[:radix, :radix]
    dft = np.exp(-2j * np.pi * rows * cols / radix)
    for i in range(DIGITS):
        done, left = radix**i, radix ** (DIGITS - i - 1)
        moved = x.reshape(done, radix, left).transpose(1, 0, 2)
        rows, cols = np.mgrid[:radix, :done]
        twiddle = np.exp(-2j * np.pi * rows * cols / radix ** (i + 1))
        x = (dft @ (moved * twiddle[:, :, None]).reshape(radix, n // radix)).reshape(-1)
    return {"y": x.reshape(shape)}
