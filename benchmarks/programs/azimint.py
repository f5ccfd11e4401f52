"""Azimuthal integration: the mean of an image over rings of equal radius.

npbench's azimint_hist (from pyFAI): values of pixels at random radii, averaged in bins.
"""

from __future__ import annotations

import numpy as np

import graphcore as gc

SIZES = {"tiny": {"pixel": 300}, "small": {"pixel": 40_000}}
RINGS = 100


def inputs(size: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(42)
    radius = rng.random(SIZES[size]["pixel"])
    radius[:RINGS] = np.linspace(0, 1, RINGS)  # no ring is empty
    return {"data": rng.random(len(radius)), "radius": radius}


def program() -> gc.Compiled:
    data, radius = (gc.tensor(name, {"pixel": None}) for name in ("data", "radius"))
    pixels = gc.histogram(radius, RINGS, name="ring").counts
    light = gc.histogram(radius, RINGS, name="ring", weights=data).counts
    return gc.compile([data, radius], {"mean": light / pixels})


def reference(data: np.ndarray, radius: np.ndarray) -> dict[str, np.ndarray]:
    pixels, _ = np.histogram(radius, RINGS)
    light, _ = np.histogram(radius, RINGS, weights=data)
    return {"mean": light / pixels}
