"""The bundled handwritten digits. `DIGITS.md` in this folder says where they are from."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

TRAINING = 1297
INK = 16


class Digits(NamedTuple):
    """Images, from 0 for paper to 1 for ink, and the digit that each shows."""

    image: npt.NDArray[np.float64]
    label: npt.NDArray[np.int64]


def load() -> Digits:
    """All 1,797 digits in the order of the original."""
    with files(__package__).joinpath("digits.npz").open("rb") as file, np.load(file) as data:
        return Digits(data["image"] / INK, data["label"].astype(np.int64))


def split(digits: Digits) -> tuple[Digits, Digits]:
    """1,297 digits to train on and 500 to test on: always the same, shuffled."""
    order = np.random.default_rng(0).permutation(len(digits.label))
    training, test = order[:TRAINING], order[TRAINING:]
    return (
        Digits(digits.image[training], digits.label[training]),
        Digits(digits.image[test], digits.label[test]),
    )
