"""Ops, rules and a pass of other packages, through every part; run in a process of its own."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import scipy.special
import xarray

import graphcore as gc
from graphcore.backends import llvm_kernels
from graphcore.backends.target import Target
from graphcore.ops import elementwise as e
from tests.outside.ops import energy, energy_of, transformed
from tests.outside.rules import RULES, log_of_cosh
from tests.outside.steps import Steps

X = np.random.default_rng(0).uniform(0.1, 2.0, size=(3, 4))
TIMES = np.array([0.5, 800.0, -1.0])


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


def check_rules(target: str | Target) -> None:
    """Values and derivatives, in a loop too; stages, records and why; checks and pickles."""
    t = gc.tensor("t", {"time": None})
    y = gc.log(gc.cosh(t))
    wave = gc.scan(lambda c, v: (c + gc.sin(v) * gc.cos(v), None), 0.0, t, dim="time")[0]
    twice = gc.exp(-y) + gc.exp(-y)
    f = gc.compile([t], [y, gc.grad(y.sum(), t), wave, twice], target=target, rules=RULES)
    found = f(TIMES)
    np.testing.assert_allclose(found[0], np.logaddexp(TIMES, -TIMES) - np.log(2), rtol=1e-14)
    np.testing.assert_allclose(found[1], np.tanh(TIMES), rtol=1e-12)
    np.testing.assert_allclose(found[2], (np.sin(TIMES) * np.cos(TIMES)).sum(), rtol=1e-12)
    np.testing.assert_allclose(found[3], 2 * np.exp(-found[0]), rtol=1e-14)
    assert f.check(TIMES) is None

    assert {x.op for x in f.stages["simplified"].every_node()}.isdisjoint({e.cosh, e.cos})
    records = [record for stage in f.passes for record in stage.records]
    assert log_of_cosh in [record.rule for record in records]
    assert "Record of multiply(sin(x), cos(x)) = double_angle (rules.py:" in str(records)
    assert "log_of_cosh: log(cosh(x)) = |x| + log1p(exp(-2 |x|)) - log(2)" in str(f.why(y))
    why = str(f.why(twice))
    assert "sums doubled  add → multiply  rules.py:" in " ".join(why.split("   ")), why
    assert "+ %" in f.diff("expanded", "sums doubled")
    pickle.dump(f, sys.stdout.buffer)


if __name__ == "__main__":
    check()
    for target in ("native" if llvm_kernels.unavailable() is None else "numpy", "numpy", Steps()):
        check_rules(target)
