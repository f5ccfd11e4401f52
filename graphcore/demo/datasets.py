"""Small real data sets. `DATA.md` in this folder says where they are from, and their licences."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

TRAINING = 1297
INK = 16


class Digits(NamedTuple):
    """Images, from 0 for paper to 1 for ink, by sample, row and column; the digit of each."""

    image: npt.NDArray[np.float64]
    label: npt.NDArray[np.int64]

    def split(self) -> tuple[Digits, Digits]:
        """1,297 digits to train on and 500 to test on: shuffled, always the same.

        >>> training, test = digits().split()
        >>> len(training.label), len(test.label)
        (1297, 500)
        """
        order = np.random.default_rng(0).permutation(len(self.label))
        training, test = order[:TRAINING], order[TRAINING:]
        return (
            Digits(self.image[training], self.label[training]),
            Digits(self.image[test], self.label[test]),
        )


class Series(NamedTuple):
    """Times as `datetime64`, and the value at each of them; `nan` where there is none."""

    times: npt.NDArray[np.datetime64]
    values: npt.NDArray[np.float64]


def digits() -> Digits:
    """1,797 handwritten digits as images of 8 x 8 pixels (Alpaydin and Kaynak 1998, CC BY 4.0).

    >>> image, label = digits()
    >>> image.shape, label[:5]
    ((1797, 8, 8), array([0, 1, 2, 3, 4]))
    """
    with files(__package__).joinpath("digits.npz").open("rb") as file, np.load(file) as data:
        return Digits(data["image"] / INK, data["label"].astype(np.int64))


def sea_temperature() -> Series:
    """The monthly temperature of the eastern tropical Pacific in degrees Celsius, 1950 to 2010.

    The means of a region where El Niño is strong (Niño 1+2), by NOAA, in the public domain.

    >>> times, values = sea_temperature()
    >>> times[0], times[-1], len(values)
    (np.datetime64('1950-01'), np.datetime64('2010-12'), 732)
    >>> values[:3]
    array([23.11, 24.2 , 25.37])
    """
    values = _numbers("sea_temperature.csv").ravel()
    return Series(np.datetime64("1950-01") + np.arange(len(values)), values)


def co2() -> Series:
    """The weekly carbon dioxide at Mauna Loa in parts per million, March 1958 to December 2001.

    59 weeks have no measurement: `nan` (Keeling and Whorf 2004, in the public domain).

    >>> times, values = co2()
    >>> times[0], times[-1], len(values), np.isnan(values).sum()
    (np.datetime64('1958-03-29'), np.datetime64('2001-12-29'), 2284, np.int64(59))
    >>> values[:6]
    array([316.1, 317.3, 317.6, 317.5, 316.4, 316.9])
    """
    values = _numbers("co2.csv")
    return Series(np.datetime64("1958-03-29") + 7 * np.arange(len(values)), values)


def _numbers(name: str) -> npt.NDArray[np.float64]:
    """The numbers of a file, by row and column if it has more than one column."""
    with files(__package__).joinpath(name).open(encoding="utf-8") as file:
        return np.loadtxt(file, delimiter=",")
