"""PyMC's models as programs: log densities, slopes, sampling, new data, predictions."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pytensor", minversion="3.0")
pytest.importorskip("pymc", minversion="6.0")

import pymc as pm
from pytensor.compile.mode import Mode

import graphcore as gc
from graphcore.interop.pytensor import from_pytensor, to_pytensor

from . import gallery, models

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MODE = "GRAPHCORE"
PYTHON = Mode("py", "fast_compile")
"""Calls of NumPy and SciPy, which take no time to compile."""


def compiled(model: Any, mode: Any) -> Any:
    with model:
        f = model.logp_dlogp_function(ravel_inputs=True, mode=mode)
        f.set_extra_values({})
    return f


@pytest.mark.parametrize("build", [*models.ALL, *gallery.ALL], ids=lambda build: build.__name__)
def test_values_and_slopes(build: Any) -> None:
    model = build()
    inputs, y = from_pytensor(model.value_vars, model.logp())
    slopes = gc.grad(y, inputs)
    programs = [gc.compile(inputs, [y, slopes], target=target) for target in ("numpy", "native")]
    wanted, by_mode = compiled(model, PYTHON), compiled(model, MODE)
    start, draws = model.initial_point(0), np.random.default_rng(1)
    for scale in (0.05, 0.15, 0.5):
        point = {
            name: np.asarray(v) + scale * draws.normal(size=np.shape(v))
            for name, v in start.items()
        }
        values = [point[v.name] for v in model.value_vars]
        flat = np.concatenate([np.ravel(v) for v in values])
        logp, slope = wanted(flat)
        found = [by_mode(flat)]
        for f in programs:
            value, parts = f(*values)
            found.append((value, np.concatenate([np.ravel(part) for part in parts])))
        for value, part in found:
            np.testing.assert_allclose(value, logp, rtol=1e-11)
            np.testing.assert_allclose(part, slope, rtol=1e-9, atol=1e-11 * abs(slope).max())


def sampled(model: Any, mode: str) -> Any:
    options = {
        "compile_kwargs": {"mode": mode},
        "chains": 1,
        "cores": 1,
        "progressbar": False,
        "compute_convergence_checks": False,
    }
    with model:
        return pm.sample(
            draws=20,
            tune=20,
            random_seed=1,
            nuts_sampler="pymc",
            **options,
        )


def test_sampling() -> None:
    """The first draws are those of PyTensor's own mode; later ones part by rounding."""
    ours, theirs = (sampled(models.eight_schools(), mode) for mode in (MODE, "FAST_COMPILE"))
    for name in ("mu", "tau", "z"):
        x, y = (trace.posterior[name].values[0, :5] for trace in (ours, theirs))
        np.testing.assert_allclose(x, y, rtol=1e-5)


def test_predictions() -> None:
    model = models.linear()
    trace = sampled(model, MODE)
    with model:
        ours, theirs = (
            pm.sample_posterior_predictive(
                trace, random_seed=2, progressbar=False, compile_kwargs={"mode": mode}
            )
            for mode in (MODE, "FAST_COMPILE")
        )
    x, y = (draws.posterior_predictive["y"].values for draws in (ours, theirs))
    np.testing.assert_allclose(x, y, rtol=1e-10)


def test_new_data_without_new_compilation() -> None:
    model = models.radon()
    f, g = compiled(model, MODE), compiled(model, "FAST_COMPILE")
    x = np.random.default_rng(0).normal(size=176) * 0.1
    for data in (np.ones(919), np.zeros(919)):
        with model:
            pm.set_data({"floor": data})
        np.testing.assert_allclose(f(x)[0], g(x)[0], rtol=1e-12)


def test_a_program_of_ours_in_a_model() -> None:
    x = gc.tensor("x", {"obs": None})
    a, b = gc.tensor("a", {}), gc.tensor("b", {})
    curve = to_pytensor(gc.compile([x, a, b], a * gc.tanh(b * x)))
    xs, ys = np.linspace(0, 1, 20), np.linspace(0, 2, 20)
    found = []
    for line in (lambda a, b: curve(xs, a, b), lambda a, b: a * pm.math.tanh(b * xs)):
        with pm.Model() as model:
            a_, b_ = pm.Normal("a"), pm.Normal("b")
            pm.Normal("y", line(a_, b_), 0.1, observed=ys)
        found += [compiled(model, mode)(np.array([0.3, 1.2])) for mode in (MODE, "FAST_COMPILE")]
    for value, slope in found[1:]:
        np.testing.assert_allclose(value, found[0][0], rtol=1e-12)
        np.testing.assert_allclose(slope, found[0][1], rtol=1e-12)


def test_logp_of_far_points_is_finite_where_the_truth_is() -> None:
    """Weibull with censoring: PyTensor gives nan."""
    model = models.weibull()
    f = compiled(model, MODE)
    point = model.initial_point(0)
    n = sum(np.size(v) for v in point.values())
    assert np.isfinite(f(np.full(n, 1.5))[0])
