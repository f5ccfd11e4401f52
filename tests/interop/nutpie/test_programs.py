"""Programs for nutpie: names and labels of the trace, the same draws by Python calls, refusals."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("nutpie", minversion="0.16.8")

import nutpie

import graphcore as gc
from graphcore.interop import to_nutpie
from graphcore.ops import elementwise
from graphcore.rewrites.pattern import P, variables
from tests.backends.llvm_kernels.native import needs_machine_code

pytestmark = [needs_machine_code, pytest.mark.filterwarnings("ignore")]

mu, log_tau = gc.tensor("mu", {}), gc.tensor("log_tau", {})
eta = gc.tensor("eta", {"school": 8})
effect = gc.constant([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], "school")
error = gc.constant([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0], "school")
OPTIONS = {"draws": 40, "tune": 60, "chains": 2, "cores": 2, "seed": 3, "progress_bar": False}


def density(p: dict[str, Any]) -> gc.Tensor:
    tau = gc.exp(p["log_tau"])
    prior = -((p["mu"] / 5) ** 2) / 2 - gc.log1p((tau / 5) ** 2) + p["log_tau"]
    likelihood = -(((effect - p["mu"] - tau * p["eta"]) / error) ** 2).sum("school") / 2
    return prior - (p["eta"] ** 2).sum("school") / 2 + likelihood


def sampled(model: Any, **more: Any) -> Any:
    return nutpie.sample(model, **OPTIONS | more).posterior


vector, unravel = gc.ravel({"mu": mu, "log_tau": log_tau, "eta": eta})
theta = gc.tensor("theta", vector.sizes)
of_vector = gc.compile([theta], gc.value_and_grad(density(unravel(theta)), theta))


def test_a_vector_with_names() -> None:
    """As the tutorial has it; tensors that are computed have names and dims too."""
    p = unravel(theta)
    kept = {**p, "tau": gc.exp(p["log_tau"]), "effect": p["mu"] + gc.exp(p["log_tau"]) * p["eta"]}
    model = to_nutpie(of_vector, kept, coords={"school": list("ABCDEFGH")})
    draws = sampled(model)
    assert {name: x.dims[2:] for name, x in draws.items()} == {
        **{"mu": (), "log_tau": (), "eta": ("school",), "tau": (), "effect": ("school",)}
    }
    assert list(draws.school.values) == list("ABCDEFGH")
    np.testing.assert_allclose(draws.tau, np.exp(draws.log_tau), rtol=1e-14)
    wanted = draws.mu + draws.tau * draws.eta
    np.testing.assert_allclose(draws.effect.transpose(*wanted.dims), wanted, rtol=1e-12)


def test_the_draws_of_python_calls() -> None:
    """With equal seeds and starts, bit by bit: the C function gives the bits of a call."""
    start = lambda seed: np.random.default_rng(seed).normal(size=10)
    by_calls = nutpie.compiled_pyfunc.from_pyfunc(
        ndim=10,
        make_logp_fn=lambda: of_vector,
        make_expand_fn=lambda *seeds: lambda x: {"theta": x},
        expanded_names=["theta"],
        expanded_shapes=[(10,)],
        expanded_dtypes=[np.dtype(float)],
        make_initial_point_fn=start,
    )
    ours, theirs = (
        sampled(model)["theta"].values for model in (to_nutpie(of_vector, start=start), by_calls)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_named_inputs() -> None:
    """They are one vector in their order; gradients may have their dims in another."""
    w = gc.tensor("w", {"row": 2, "parameter": 3})
    value = density({"mu": mu, "log_tau": log_tau, "eta": eta}) - (w**4).sum()
    slopes = gc.grad(value, [mu, w, log_tau, eta])
    slopes[1] = slopes[1].transpose("parameter", "row")
    f = gc.compile([mu, w, log_tau, eta], {"value": value, "slopes": slopes})
    model = to_nutpie(f)
    assert model.n_dim == 16
    assert model.shapes == {"mu": (), "w": (2, 3), "log_tau": (), "eta": (8,)}
    assert list(model.coords["unconstrained_parameter"][:4]) == ["mu", "w_0.0", "w_0.1", "w_0.2"]
    draws = sampled(model, chains=1)
    assert draws.w.dims == ("chain", "draw", "row", "parameter")
    x = np.random.default_rng(0).normal(size=16)
    value, slope = model.logp_func(x)["value"], model.logp_func(x)["grad"]
    parts = x[0], x[1:7].reshape(2, 3), x[7], x[8:]
    expected = f(*parts)
    np.testing.assert_array_equal(value, expected["value"])
    by_input = [expected["slopes"][0], expected["slopes"][1].T, *expected["slopes"][2:]]
    np.testing.assert_array_equal(slope, np.concatenate([np.ravel(y) for y in by_input]))


@pytest.mark.parametrize("start", [np.full(10, 0.25), lambda seed: [0.25] * 10])
def test_starts(start: Any) -> None:
    model = to_nutpie(of_vector, start=start)
    np.testing.assert_array_equal(model.initial_point_func(7), np.full(10, 0.25))
    drawn = to_nutpie(of_vector).initial_point_func
    np.testing.assert_array_equal(drawn(7), drawn(7))
    assert (drawn(7) != drawn(8)).all()
    assert (abs(drawn(7)) < 2).all()


def test_where_there_is_no_density() -> None:
    """Steps to nan, to -inf and to what fails diverge, and no draw is there; other results may."""
    x = gc.tensor("x", {})
    one = gc.stack([x * 0 + 1, x], "col")
    matrix = gc.stack([one, gc.stack([x, x * 0 + 1], "col")], "row")
    low = gc.linalg.cholesky(matrix, dims=("row", "col"))
    for value in (
        gc.log(1 - x**2),  # nan where |x| > 1
        gc.where(abs(x) < 1, -(x**2) * 0.1 + x * 1e-3, -np.inf),
        gc.log(low[{"row": 1, "col": 1}]),
    ):
        f = gc.compile([x], gc.value_and_grad(value, x))
        kept = {"x": x, "square_root": gc.sqrt(x)}
        trace = nutpie.sample(to_nutpie(f, kept, start=[0.3]), **OPTIONS)
        assert (abs(trace.posterior.x) <= 1).all()
        assert trace.sample_stats.diverging.any()
        assert (np.isnan(trace.posterior.square_root) == (trace.posterior.x < 0)).all()


def test_rules_of_the_program_hold() -> None:
    (y,) = variables("y")
    wrong = P.sin(y), lambda y: elementwise.cos(y)
    angle = gc.tensor("angle", {})
    f = gc.compile([angle], gc.value_and_grad(gc.sin(angle), angle), rules=[wrong])
    found = to_nutpie(f).logp_func(np.zeros(1))
    assert (found["value"], *found["grad"]) == (1.0, 0.0)


def test_a_failure_says_which_result() -> None:
    x = gc.tensor("x", {})
    model = to_nutpie(gc.compile([x], gc.value_and_grad(gc.log(x), x)), start=[-1.0])
    with pytest.raises(RuntimeError, match="All initialization points failed"):
        nutpie.sample(model, **OPTIONS)
    assert "the result 'value' is nan" in str(model.compiled_logp_func.failure())


n, open_ = gc.tensor("n", {}, dtype="int64"), gc.tensor("v", {"row": None})
single = gc.tensor("s", {}, dtype="float32")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: to_nutpie("model"), "'model' is neither a model of PyMC nor a compiled program"),
        (lambda: to_nutpie(gc.compile([mu], mu**2)), "the 0 results behind the log density"),
        (
            lambda: to_nutpie(gc.compile([mu, eta], [mu, eta, mu])),
            "are not its gradient for each input",
        ),
        (lambda: to_nutpie(gc.compile([eta], [eta, eta])), "the first result is f64"),
        (
            lambda: to_nutpie(gc.compile([], [gc.constant(1.0)])),
            "the program has no inputs to sample",
        ),
        (lambda: to_nutpie(gc.compile([n], [n * 1.0, n])), "the input 'n' is int64"),
        (lambda: to_nutpie(gc.compile([single], [single, single])), "the input 's' is float32"),
        (
            lambda: to_nutpie(gc.compile([open_], gc.value_and_grad(open_.sum(), open_))),
            "the sizes of the input 'v' are open",
        ),
        (lambda: to_nutpie(of_vector, ["theta"]), "names no tensors"),
        (lambda: to_nutpie(of_vector, {"a": 1.0}), "which is no tensor by name"),
        (lambda: to_nutpie(of_vector, {"a": mu}), "mu"),
        (lambda: to_nutpie(of_vector, coords={"school": [1]}), "dim 'school', which has no part"),
        (lambda: to_nutpie(of_vector, coords={"parameter": [1]}), "which has size 10"),
        (
            lambda: to_nutpie(of_vector, start=[1.0]),
            "the start has shape (1,), but the vector (10,)",
        ),
        (lambda: to_nutpie(of_vector).with_data(y=1), "a program has no data named ['y']"),
        (
            lambda: to_nutpie(gc.compile([mu], gc.value_and_grad(gc.print(mu, "mu") ** 2, mu))),
            "prints, which needs Python",
        ),
    ],
)
def test_refused(make: Any, said: str) -> None:
    with pytest.raises(gc.GraphError) as found:
        make()
    assert said in str(found.value)
    assert "\n  cure: " in str(found.value)


def test_the_example() -> None:
    import doctest

    from graphcore.interop.nutpie import entrance

    assert doctest.testmod(entrance).failed == 0
