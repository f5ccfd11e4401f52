"""Pairs of views told apart from all other pairs: a contrastive loss and its gradient.

The loss of Radford et al., "Learning transferable visual models from natural language supervision"
(2021), figure 3: linear encoders to points on a sphere, cross-entropy by rows and by columns.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {
    "tiny": {"pair": 4, "pixel": 5, "word": 3, "feature": 2},
    "small": {"pair": 128, "pixel": 192, "word": 96, "feature": 64},
}


def inputs(size: str) -> dict[str, np.ndarray]:
    pairs, pixels, words, features = SIZES[size].values()
    rng = np.random.default_rng(58)
    return {
        "image": rng.standard_normal((pairs, pixels)),
        "text": rng.standard_normal((pairs, words)),
        "by_pixel": rng.standard_normal((pixels, features)) / np.sqrt(pixels),
        "by_word": rng.standard_normal((words, features)) / np.sqrt(words),
        "scale": np.array(2.0),
    }


def program() -> gc.Compiled:
    image = gc.tensor("image", {"pair": None, "pixel": None})
    text = gc.tensor("text", {"pair": None, "word": None})
    by_pixel = gc.tensor("by_pixel", {"pixel": None, "feature": None})
    by_word = gc.tensor("by_word", {"word": None, "feature": "feature"})
    scale = gc.tensor("scale", {})

    def embedded(x: gc.Tensor, weights: gc.Tensor, dim: str) -> gc.Tensor:
        h = gc.dot(x, weights, dim=dim)
        return h / gc.sqrt((h**2).sum("feature"))

    left = embedded(image, by_pixel, "pixel")
    right = embedded(text, by_word, "word").rename(pair="other")
    alike = gc.exp(scale) * gc.dot(left, right, dim="feature")

    def loss(dim: str) -> gc.Tensor:
        chances = gc.special.log_softmax(alike, dim)
        return -gc.diagonal(chances, ("pair", "other"), "pair").mean()

    value = (loss("other") + loss("pair")) / 2
    slopes = gc.grad(value, {"grad_pixel": by_pixel, "grad_word": by_word, "grad_scale": scale})
    return gc.compile([image, text, by_pixel, by_word, scale], {"value": value, **slopes})


def reference(
    image: np.ndarray,
    text: np.ndarray,
    by_pixel: np.ndarray,
    by_word: np.ndarray,
    scale: np.ndarray,
) -> dict[str, np.ndarray]:
    def embedded(h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        length = np.sqrt((h * h).sum(1, keepdims=True))
        return h / length, length

    def chances(z: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
        z = z - z.max(axis, keepdims=True)
        e = np.exp(z)
        total = e.sum(axis, keepdims=True)
        return e / total, np.log(total.ravel()) - np.diag(z)

    left, left_length = embedded(image @ by_pixel)
    right, right_length = embedded(text @ by_word)
    factor = np.exp(scale)
    cosines = left @ right.T
    by_rows, lost_rows = chances(factor * cosines, 1)
    by_cols, lost_cols = chances(factor * cosines, 0)
    by_alike = (by_rows + by_cols) / 2
    by_alike[np.diag_indices(len(by_alike))] -= 1
    by_alike /= len(by_alike)

    def back(by_unit: np.ndarray, unit: np.ndarray, length: np.ndarray) -> np.ndarray:
        return (by_unit - unit * (by_unit * unit).sum(1, keepdims=True)) / length

    by_left = back(factor * by_alike @ right, left, left_length)
    by_right = back(factor * by_alike.T @ left, right, right_length)
    return {
        "value": (lost_rows.mean() + lost_cols.mean()) / 2,
        "grad_pixel": image.T @ by_left,
        "grad_word": text.T @ by_right,
        "grad_scale": factor * (by_alike * cosines).sum(),
    }
