"""Ops of another package, through every part of the library; run in a process of its own."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import scipy.special
import xarray

import graphcore as gc
from tests.outside.ops import energy, energy_of, transformed

X = np.random.default_rng(0).uniform(0.1, 2.0, size=(3, 4))


def check() -> None:
    """Values, derivatives, printing, loops, more dims, coordinates."""
    x = gc.tensor("x", {"row": None, "col": 4})
    y = energy_of(transformed(x, 0.5), "col")
    f = gc.compile([x], {"y": y, "dx": gc.grad(y.sum(), x), "each": gc.grad(y, x, per="row")})
    found = f(X)
    z = scipy.special.boxcox1p(X, 0.5)
    slope = 2 * z * (1 + X) ** -0.5
    np.testing.assert_allclose(found["y"], (z**2).sum(1))
    np.testing.assert_allclose(found["dx"], slope)
    np.testing.assert_allclose(found["each"], slope)
    twice = gc.compile([x], gc.hvp(y.sum(), x, gc.ones_like(x)))(X)
    np.testing.assert_allclose(twice, 2 / (1 + X) - z * (1 + X) ** -1.5)

    squares = gc.Tensor(energy(x.node, dims=()))
    np.testing.assert_allclose(gc.compile([x], squares)(X), X**2)

    printed = str(f.stages["named"]) + str(f.stages["lowered"])
    for line in ("boxcox1p(x, 0.5)", "energy(%0; over col)", "f64[row]"):
        assert line in printed, printed

    _, ys = gc.scan(lambda s, v: (s, energy_of(transformed(v, 0.5), "col")), 0.0, x, "row")
    g = gc.compile([x], ys)
    np.testing.assert_allclose(g(X), (z**2).sum(1))
    assert "for " not in g.source, "all steps at once"

    many = gc.tensor("x", {"batch": 2, "row": None, "col": 4})
    h = gc.compile([many], gc.vectorize(gc.grad(y.sum(), x), {x: many}))
    np.testing.assert_allclose(h(np.stack([X, X])), [slope, slope])

    given = xarray.DataArray(X, {"row": list("pqr")}, ["row", "col"])
    assert list(gc.compile([x], y, returns="xarray")(given).coords) == ["row"]
    pickle.dump(f, sys.stdout.buffer)


if __name__ == "__main__":
    check()
