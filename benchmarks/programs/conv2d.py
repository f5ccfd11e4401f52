"""A convolution of images with a bias, and its pullback to image, kernel and bias.

npbench's conv2d_bias: no padding, channels last.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"batch": 2, "row": 6, "col": 7, "in": 2, "out": 3, "kernel": 3},
    "small": {"batch": 8, "row": 32, "col": 32, "in": 3, "out": 16, "kernel": 2},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    batch, rows, cols, ins, outs, kernel = SIZES[size].values()
    rng = np.random.default_rng(25)
    return {
        "x": rng.standard_normal((batch, rows, cols, ins)),
        "w": rng.standard_normal((kernel, kernel, ins, outs)),
        "b": rng.standard_normal(outs),
        "ct": rng.standard_normal((batch, rows - kernel + 1, cols - kernel + 1, outs)),
    }


def program(dtype: str = "float64") -> gc.Compiled:
    x = gc.tensor("x", {"batch": None, "row": None, "col": None, "in": None}, dtype=dtype)
    w = gc.tensor("w", {"krow": None, "kcol": None, "in": None, "out": None}, dtype=dtype)
    b = gc.tensor("b", {"out": None}, dtype=dtype)
    rest = {"batch": None, "row": "rows left", "col": "cols left", "out": None}
    ct = gc.tensor("ct", rest, dtype=dtype)

    y = gc.conv(x, w, {"row": "krow", "col": "kcol"}, contract="in") + b
    grads = gc.pullback(y, {"grad_x": x, "grad_w": w, "grad_b": b}, ct)
    return gc.compile([x, w, b, ct], {"y": y, **grads})


def reference(x: np.ndarray, w: np.ndarray, b: np.ndarray, ct: np.ndarray) -> dict[str, np.ndarray]:
    size = len(w)

    def windows(a: np.ndarray) -> np.ndarray:
        return np.lib.stride_tricks.sliding_window_view(a, (size, size), (1, 2))

    images = (0, 1, 2)
    seen = windows(x)
    edges = (0, 0), (size - 1, size - 1), (size - 1, size - 1), (0, 0)
    back = windows(np.pad(ct, edges))
    return {
        "y": np.tensordot(seen, w, ((4, 5, 3), (0, 1, 2))) + b,
        "grad_x": np.tensordot(back, w[::-1, ::-1], ((4, 5, 3), (0, 1, 3))),
        "grad_w": np.tensordot(seen, ct, (images, images)).transpose(1, 2, 0, 3),
        "grad_b": ct.sum(images),
    }
