"""Corners of an image: Sobel's derivatives, their products in a window, and a response.

Harris and Stephens, "A combined corner and edge detector" (1988); Halide's harris benchmark.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"row": 9, "col": 8}, "small": {"row": 256, "col": 320}}
K = 0.04


def inputs(size: str) -> dict[str, np.ndarray]:
    rows, cols = SIZES[size].values()
    return {"image": np.random.default_rng(47).uniform(size=(rows, cols))}


def shifts(x: gc.Tensor, dim: str) -> tuple[gc.Tensor, gc.Tensor, gc.Tensor]:
    """Elements before, at and after each inner position of a dim."""
    return x[{dim: slice(-2)}], x[{dim: slice(1, -1)}], x[{dim: slice(2, None)}]


def smoothed(x: gc.Tensor, dim: str) -> gc.Tensor:
    before, at, after = shifts(x, dim)
    return before + 2 * at + after


def slope(x: gc.Tensor, dim: str) -> gc.Tensor:
    before, _, after = shifts(x, dim)
    return (after - before) / 8


def window(x: gc.Tensor) -> gc.Tensor:
    return sum(shifts(sum(shifts(x, "row")), "col"))


def program() -> gc.Compiled:
    image = gc.tensor("image", {"row": None, "col": None})

    down, right = slope(smoothed(image, "col"), "row"), slope(smoothed(image, "row"), "col")
    dd, rr, dr = window(down**2), window(right**2), window(down * right)
    response = dd * rr - dr**2 - K * (dd + rr) ** 2
    return gc.compile([image], {"response": response, "strongest": response.max()})


def reference(image: np.ndarray) -> dict[str, np.ndarray]:
    rows = image[:-2] + 2 * image[1:-1] + image[2:]
    cols = image[:, :-2] + 2 * image[:, 1:-1] + image[:, 2:]
    down, right = (cols[2:] - cols[:-2]) / 8, (rows[:, 2:] - rows[:, :-2]) / 8

    def window(x: np.ndarray) -> np.ndarray:
        x = x[:-2] + x[1:-1] + x[2:]
        return x[:, :-2] + x[:, 1:-1] + x[:, 2:]

    dd, rr, dr = window(down * down), window(right * right), window(down * right)
    response = dd * rr - dr * dr - K * (dd + rr) ** 2
    return {"response": response, "strongest": response.max()}
