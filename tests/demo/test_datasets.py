"""The data that the package brings: their numbers, and where each set says that it is from."""

from importlib.resources import files

import numpy as np
import pytest

from graphcore.demo import datasets


def test_the_digits_are_those_of_the_original() -> None:
    image, label = datasets.digits()
    assert image.shape == (1797, 8, 8)
    assert label.dtype == np.int64
    counts = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.bincount(label).tolist() == counts
    ink = image * datasets.INK
    assert set(np.unique(ink)) == set(range(17))
    assert ink.sum() == 561718
    assert label[:10].tolist() == list(range(10))
    assert ink[0, 0].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]


def test_no_digit_is_in_both_parts() -> None:
    label = datasets.digits().label
    trained, tested = datasets.Digits(np.arange(1797.0), label).split()
    assert (len(trained.image), len(tested.image)) == (1297, 500)
    assert sorted([*trained.image, *tested.image]) == list(range(1797))
    assert np.array_equal(label[tested.image.astype(int)], tested.label)
    assert np.bincount(tested.label, minlength=10).min() >= 35


def test_the_sea_temperatures_are_those_of_the_original() -> None:
    times, values = datasets.sea_temperature()
    assert times.shape == values.shape == (61 * 12,)
    assert (times[0], times[-1]) == (np.datetime64("1950-01"), np.datetime64("2010-12"))
    assert values.sum() == pytest.approx(16903.80)
    assert (values.min(), values.max()) == (18.95, 29.24)
    assert values[times == np.datetime64("1997-12")] == 27.08


def test_the_co2_is_that_of_the_original() -> None:
    times, values = datasets.co2()
    assert times.shape == values.shape == (2284,)
    assert (times[0], times[-1]) == (np.datetime64("1958-03-29"), np.datetime64("2001-12-29"))
    assert np.unique(np.diff(times)) == np.timedelta64(7, "D")
    assert np.isnan(values).sum() == 59
    assert np.nansum(values) == pytest.approx(756816.5)
    assert values[-1] == 371.5


@pytest.mark.parametrize("name", ["digits.npz", "sea_temperature.csv", "co2.csv"])
def test_the_source_and_the_licence_are_told_beside_the_data(name: str) -> None:
    folder = files(datasets.__package__)
    _, section = folder.joinpath("DATA.md").read_text("utf-8").split(f"## `{name}`")
    section, *_ = section.split("\n## ")
    assert folder.joinpath(name).is_file()
    assert "CC BY 4.0" in section or "public\ndomain" in section or "public domain" in section
    assert "Changed from the original" in section
