"""A blurred image made sharp.

Richardson, "Bayesian-based iterative method of image restoration" (1972); Lucy (1974): the
estimate is multiplied by how far its blurred form is from what was seen, blurred back.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import convolve

import graphcore as gc

SIZES = {"tiny": {"row": 7, "col": 8, "blur": 3}, "small": {"row": 96, "col": 96, "blur": 7}}
STEPS = 15


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, cols, blur = SIZES[size].values()
    rng = np.random.default_rng(60)
    across = np.exp(-((np.arange(blur) - blur // 2) ** 2) / blur)
    kernel = np.outer(across, across) * rng.uniform(0.5, 1.5, (blur, blur))
    kernel /= kernel.sum()
    sharp = (rng.uniform(size=(rows, cols)) < 0.05) + 0.05
    return {"seen": convolve(sharp, kernel, "same", "direct"), "kernel": kernel}


def program() -> gc.Compiled:
    seen = gc.tensor("seen", {"row": None, "col": None})
    kernel = gc.tensor("kernel", {"row": "down", "col": "across"})
    mirrored = gc.flip(kernel)

    def step(_: gc.Tensor, image: gc.Tensor) -> gc.Tensor:
        blurred = gc.signal.convolve(image, kernel, mode="same")
        return image * gc.signal.convolve(seen / blurred, mirrored, mode="same")

    image = gc.fori_loop(0, STEPS, step, gc.full_like(seen, 0.5))
    return gc.compile([seen, kernel], {"image": image})


def reference(seen: np.ndarray, kernel: np.ndarray) -> dict[str, np.ndarray]:
    mirrored = kernel[::-1, ::-1]
    image = np.full(seen.shape, 0.5)
    for _ in range(STEPS):
        blurred = convolve(image, kernel, "same", "direct")
        image = image * convolve(seen / blurred, mirrored, "same", "direct")
    return {"image": image}
