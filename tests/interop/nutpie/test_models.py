"""PyMC's models for nutpie, beside nutpie's own functions of them, in PyTensor's mode of Python."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("nutpie", minversion="0.16.8")
pytest.importorskip("pytensor", minversion="3.0")
pytest.importorskip("pymc", minversion="6.0")

import nutpie
import pymc as pm
import pytensor
from nutpie import compile_pymc
from pymc.initial_point import make_initial_point_fn

import graphcore as gc
from graphcore.interop import to_nutpie
from tests.backends.llvm_kernels.native import needs_machine_code
from tests.interop.pytensor import models

pytestmark = [needs_machine_code, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

OPTIONS = {"draws": 20, "tune": 40, "chains": 2, "cores": 1, "seed": 5, "progress_bar": False}


def by_nutpie(model: Any) -> Any:
    """nutpie's functions, in a mode that needs no compiler."""
    start = make_initial_point_fn(
        model=model,
        jitter_rvs={*model.free_RVs},
        return_transformed=True,
        default_strategy="support_point",
    )
    options = {"compute_grad": True, "join_expanded": True, "pymc_initial_point_fn": start}
    return compile_pymc._make_functions(model, mode="FAST_COMPILE", **options)


@pytest.mark.parametrize(
    "build",
    [models.eight_schools, models.radon, models.mixture, models.hmm, models.stochvol, models.lkj],
    ids=lambda build: build.__name__,
)
def test_functions_and_names(build: Any) -> None:
    model = build()
    ours = to_nutpie(model)
    n, expanded, logp, expand, start, info, *_ = by_nutpie(model)
    assert (ours.n_dim, ours.n_expanded) == (n, expanded)
    assert [*map(list, ours.shape_info[:2])] == [*map(list, info[:2])]
    assert [*map(tuple, ours.shape_info[2])] == [*map(tuple, info[2])]
    np.testing.assert_array_equal(ours.initial_point_func(3), start(3))
    for seed in range(3):
        x = start(seed)
        value, slope = logp(x)
        found = ours.logp_func(x)
        np.testing.assert_allclose(found["value"], value, rtol=1e-11)
        np.testing.assert_allclose(found["grad"], slope, rtol=1e-9, atol=1e-11 * abs(slope).max())
        np.testing.assert_allclose(ours.expand_func(x), expand(x)[0], rtol=1e-11, atol=1e-13)


def test_the_trace_is_nutpies_own() -> None:
    """Names, dims, labels, and the first draws of equal seeds; later ones part by rounding."""
    pytest.importorskip("numba")
    model = models.eight_schools()
    ours, theirs = to_nutpie(model), nutpie.compile_pymc_model(model)
    assert ours.dims == theirs.dims
    assert ours.shapes == theirs.shapes
    assert {name: [*x] for name, x in ours.coords.items()} == {
        name: [*x] for name, x in theirs.coords.items()
    }
    x, y = (nutpie.sample(made, **OPTIONS) for made in (ours, theirs))
    assert set(x.posterior.data_vars) == set(y.posterior.data_vars)
    for name, values in y.warmup_posterior.data_vars.items():
        found = x.warmup_posterior[name]
        assert found.dims == values.dims
        for dim, labels in values.coords.items():
            np.testing.assert_array_equal(found.coords[dim], labels)
        np.testing.assert_allclose(found[:, :10], values[:, :10], rtol=1e-7, atol=1e-9)


def regression(x: Any, y: Any, **coords: Any) -> pm.Model:
    with pm.Model(coords={"obs": range(len(x)), **coords}) as model:
        given, seen = pm.Data("given", x, dims="obs"), pm.Data("seen", y, dims="obs")
        slope, noise = pm.Normal("slope", 0, 1), pm.HalfNormal("noise", 1)
        pm.Deterministic("half", slope / 2)
        pm.Normal("y", slope * given, noise, observed=seen, dims="obs")
    return model


def draws(model: Any) -> Any:
    return nutpie.sample(model, **OPTIONS).posterior["slope"].values


def test_other_data() -> None:
    """`with_data` gives the draws of a model with these data, also of another size; so does
    `pm.set_data` before."""
    r = np.random.default_rng(0)
    x, y, x2, y2, x3, y3 = (r.normal(size=n) for n in (6, 6, 6, 6, 9, 9))
    model = regression(x, y)
    first = to_nutpie(model)
    for given, seen in ((x2, y2), (x3, y3)):
        wanted = draws(to_nutpie(regression(given, seen)))
        changed = first.with_data(given=given, seen=seen)
        np.testing.assert_array_equal(draws(changed), wanted)
        with model:
            pm.set_data({"given": given, "seen": seen}, coords={"obs": range(len(given))})
        np.testing.assert_array_equal(draws(to_nutpie(model)), wanted)
    again = changed.with_data(given=x, seen=y)
    np.testing.assert_array_equal(draws(again), draws(to_nutpie(regression(x, y))))
    np.testing.assert_array_equal(draws(first), draws(again))
    np.testing.assert_array_equal(first.with_transform_adapt(verbose=False).n_dim, 2)


def test_what_is_kept_and_where_chains_start() -> None:
    model = regression(np.arange(4.0), np.ones(4))
    made = to_nutpie(model, ["slope", "half"], start={"slope": 3.0, "noise": 2.0})
    assert [*made.shapes] == ["slope", "noise_log__", "half"]
    assert abs(made.initial_point_func(1) - [3.0, np.log(2.0)]).max() <= 1
    posterior = nutpie.sample(made, **OPTIONS).posterior
    assert {"slope", "half"} <= {*posterior.data_vars}
    assert "noise" not in posterior
    np.testing.assert_allclose(posterior.half, posterior.slope / 2, rtol=1e-15)


def test_a_model_whose_bounds_are_not_checked() -> None:
    with pm.Model(check_bounds=False) as model:
        a = pm.Normal("a", 0, 1, shape=(2, 1))
        pm.Normal("b", a.sum(), pm.HalfNormal("s", 1), observed=0.5)
    made, (_, _, logp, *_) = to_nutpie(model), by_nutpie(model)
    x = made.initial_point_func(2)
    np.testing.assert_allclose(made.logp_func(x)["value"], logp(x)[0], rtol=1e-13)


def test_dims_of_lengths_alone_missing_values_and_named_tensors() -> None:
    """What else PyMC's models may have; dims without labels have positions."""
    with pm.Model() as model:
        model.add_coord("row", length=4)
        a = pm.Normal("a", 0, 1, dims="row")
        pm.Normal("y", a.sum(), 1, observed=np.ma.masked_invalid([1.0, np.nan, 2.0]))
    made = to_nutpie(model)
    assert made.shapes == {"a": (4,), "y_unobserved": (1,), "y": (3,)}
    posterior = nutpie.sample(made, **OPTIONS).posterior
    assert [*posterior["row"].values] == [0, 1, 2, 3]
    np.testing.assert_array_equal(posterior["y"].values[..., ::2], np.full((2, 20, 2), [1.0, 2.0]))
    dims = pytest.importorskip("pymc.dims")
    with pm.Model(coords={"group": ["a", "b", "c"]}) as model:
        z = dims.Normal("z", 0, 1, dims="group")
        seen = dims.as_xtensor(np.ones(3), dims=("group",))
        dims.Normal("y", dims.Deterministic("twice", 2 * z), dims.HalfNormal("s", 1), observed=seen)
    posterior = nutpie.sample(to_nutpie(model), **OPTIONS).posterior
    assert posterior["twice"].dims == posterior["z"].dims == ("chain", "draw", "group")
    np.testing.assert_allclose(posterior["twice"], 2 * posterior["z"], rtol=1e-15)


def refused(make: Any) -> str:
    with pytest.raises(gc.GraphError) as found:
        make()
    assert "\n  cure: " in str(found.value)
    return str(found.value)


def test_refused() -> None:
    with pm.Model() as discrete:
        k = pm.Poisson("k", 3)
        pm.Normal("y", k, 1, observed=1.0)
    assert "the variable 'k' is int64, and nutpie" in refused(lambda: to_nutpie(discrete))
    with pm.Model() as fixed:
        pm.Normal("y", 0, 1, observed=1.0)
    assert "the model has no free variables" in refused(lambda: to_nutpie(fixed))
    model = regression(np.arange(3.0), np.ones(3))
    assert "keep has 'other'" in refused(lambda: to_nutpie(model, ["slope", "other"]))
    assert "keep has 'slope'" in refused(lambda: to_nutpie(model, "slope"))
    assert "has coords of its own" in refused(lambda: to_nutpie(model, coords={"obs": [1]}))
    made = to_nutpie(model)
    said = refused(lambda: made.with_data(slope=1.0))
    assert "no shared variable is named 'slope'" in said
    assert "'given', 'obs', 'seen'" in said
    assert "has 2 axes, but the variable 1" in refused(
        lambda: made.with_data(given=np.ones((3, 1)))
    )
    with pm.Model() as grouped:
        group = pm.Data("group", np.array([0, 1, 1]))
        pm.Normal("y", pm.Normal("a", 0, 1, shape=2)[group], 1, observed=np.zeros(3))
    said = refused(lambda: to_nutpie(grouped).with_data(group=[0.0, 0.5, 1.0]))
    assert "the values for 'group' are no int" in said
    with pytest.raises(KeyError):
        made.with_data(slope=1.0)
    with model:
        pm.Deterministic("line", model["slope"] * model["given"], dims="obs")
    longer = {"given": np.ones(5), "seen": np.ones(5)}
    said = refused(lambda: to_nutpie(model).with_data(**longer))
    assert "'line' has size 5 along 'obs', which has 3 labels" in said
    with model:
        pm.set_data(longer, coords={"obs": range(5)})
    assert to_nutpie(model).shapes["line"] == (5,)


def test_what_is_no_c_function() -> None:
    class Own(pytensor.graph.op.Op):  # type: ignore[misc, name-defined]
        itypes = otypes = (pytensor.tensor.dscalar,)

        def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
            outputs[0][0] = inputs[0]

    with pm.Model() as model:
        pm.Potential("p", Own()(pm.Normal("a", 0, 1)))
    assert "Own" in refused(lambda: to_nutpie(model))
