"""Everyday tasks of newcomers from NumPy, xarray, JAX and PyTensor: each is a few lines."""

from __future__ import annotations

import pickle
import runpy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import pytest
import xarray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, check_grad, least_squares, minimize

import graphcore as gc

# ---- functions, trees and values


def test_the_value_of_an_expression_in_a_repl() -> None:
    x = gc.tensor("x", {"row": None})
    assert (x**2).sum().eval(x=[1.0, 2.0]) == 5.0


def test_a_program_from_its_middle() -> None:
    x = gc.tensor("x", {"row": None})
    hidden = gc.tanh(x)
    f = gc.compile([hidden], (hidden**2).sum())
    assert f([1.0, 2.0]) == 5.0


def test_a_value_and_its_gradient() -> None:
    w = gc.tensor("w", {"row": 2})
    value, slope = gc.compile([w], gc.value_and_grad((w**2).sum(), w))([1.0, 2.0])
    assert value == 5.0
    np.testing.assert_array_equal(slope, [2.0, 4.0])


def test_a_function_is_the_unit() -> None:
    @gc.function(x={"batch": None, "feature": 2}, w=("feature",))
    def loss(x, w, power=2):
        return (gc.dot(x, w, dim="feature") ** power).mean("batch")

    @gc.function(x={"batch": None, "feature": 2}, w=("feature",))
    def slope(x, w):
        return gc.grad(loss(x, w), w)

    assert loss(np.eye(2), np.ones(2), power=3) == 1.0
    np.testing.assert_array_equal(slope(np.eye(2), np.ones(2)), [1.0, 1.0])


def test_parameters_of_a_dataclass() -> None:
    @dataclass
    class Model:
        w: Any
        b: Any

    x, model = gc.tensor("x", {"row": None}), Model(gc.tensor("w", {}), gc.tensor("b", {}))
    loss = ((model.w * x + model.b) ** 2).sum()
    f = gc.compile([x, model], gc.grad(loss, model))
    assert f(np.ones(2), Model(1.0, 2.0)) == Model(12.0, 12.0)


def test_parameters_as_one_vector_for_a_solver() -> None:
    x, y = np.linspace(0, 1, 20), 3 * np.exp(-2 * np.linspace(0, 1, 20))
    vector, unravel = gc.ravel({"height": gc.tensor("h", {}), "rate": gc.tensor("r", {})})
    v, t = gc.tensor("v", vector.sizes), gc.constant(x, "time")
    p = unravel(v)
    left = p["height"] * gc.exp(-p["rate"] * t) - gc.constant(y, "time")
    f, jac = gc.compile([v], left), gc.compile([v], gc.jacobian(left, v))
    found = unravel(least_squares(f, [1.0, 1.0], jac).x)
    np.testing.assert_allclose([found["height"], found["rate"]], [3.0, 2.0])


def test_adam_in_float32_with_a_dict_of_parameters() -> None:
    adam = gc.optimize.adam(0.1)

    @gc.function(x=gc.tensor("x", {"row": 3}, dtype="float32"))
    def train(x, steps=100):
        def step(carry, _):
            params, state = carry
            loss, grads = gc.value_and_grad(((params["w"] - x) ** 2).sum(), params)
            return adam.update(params, grads, state), loss

        start = {"w": gc.zeros_like(x)}
        return gc.scan(step, (start, adam.init(start)), length=steps, dim="step")[0][0]

    x = np.array([0.5, -0.3, 0.1], "float32")
    found = train(x)["w"]
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, x, atol=0.02)


def test_state_between_calls_is_returned() -> None:
    @gc.function(state=(), x=("time",))
    def level(state, x):
        return gc.scan(lambda state, x: (0.5 * state + x, None), state, x, dim="time")[0]

    state = 0.0
    for chunk in ([1.0, 2.0], [3.0]):
        state = level(state, chunk)
    assert state == 4.25


def test_a_float64_number_for_a_float32_input_is_refused_with_its_cure() -> None:
    x, rate = (gc.tensor(name, {}, dtype="float32") for name in ("x", "rate"))
    f = gc.compile([x, rate], x * rate)
    scheduled = 0.1 * np.cos(0.5)
    with pytest.raises(gc.GraphTypeError, match=r"pass a Python number.*: float\(value\)"):
        f(np.float32(2), scheduled)
    assert f(np.float32(2), float(scheduled)).dtype == "float32"


def test_new_values_in_the_dtype_of_an_input() -> None:
    x = gc.tensor("x", {"time": None}, dtype="float32")
    t = gc.linspace(0, 1, x.sizes["time"], dim="time", like=x)
    assert (x * t + gc.zeros(x.sizes, like=x)).dtype == "float32"


def test_a_number_of_steps_given_at_the_call() -> None:
    x, steps = gc.tensor("x", {}), gc.tensor("steps", {}, dtype="int64")
    last, path = gc.scan(lambda c, _: (c * x, c), 1.0, length=steps, dim="step")
    f = gc.compile([x, steps], [last, path, gc.grad(last, x)])
    for n in (3, 5):
        got = f(2.0, n)
        assert (got[0], got[1].shape, got[2]) == (2.0**n, (n,), n * 2.0 ** (n - 1))


def test_a_result_of_a_size_given_at_the_call() -> None:
    x, n = gc.tensor("x", {"row": None}), gc.tensor("n", {}, dtype="int64")
    f = gc.compile(
        [x, n], gc.interp(gc.linspace(0, 1, n, dim="t"), [0.0, 1.0], [0.0, 9.0], dim="k")
    )
    np.testing.assert_array_equal(f(np.ones(2), 4), [0.0, 3.0, 6.0, 9.0])


# ---- fits


def test_a_linear_regression_by_scipy() -> None:
    x, w = gc.tensor("x", {"sample": None, "feature": 3}), gc.tensor("w", {"feature": 3})
    y = gc.tensor("y", {"sample": None})
    loss = ((gc.dot(x, w, dim="feature") - y) ** 2).sum()
    f = gc.compile([w, x, y], gc.value_and_grad(loss, w))
    random = np.random.default_rng(0)
    xs, true = random.normal(size=(20, 3)), np.array([1.0, -2.0, 0.5])
    found = minimize(f, np.zeros(3), args=(xs, xs @ true), jac=True)
    np.testing.assert_allclose(found.x, true, atol=1e-5)
    value, slope = (gc.compile([w, x, y], part) for part in (loss, gc.grad(loss, w)))
    assert check_grad(value, slope, true + 1, xs, xs @ true) < 1e-4


def test_an_ordinary_differential_equation_by_scipy() -> None:
    t, state = gc.tensor("t", {}), gc.tensor("state", {"part": 2})
    slope = gc.concat([state.isel(part=1), -state.isel(part=0)], "part")
    f, jac = gc.compile([t, state], slope), gc.compile([t, state], gc.jacobian(slope, state))
    found = solve_ivp(f, (0.0, 1.0), [1.0, 0.0], method="Radau", jac=jac, rtol=1e-8)
    np.testing.assert_allclose(found.y[:, -1], [np.cos(1), -np.sin(1)], atol=1e-6)


def test_a_mixture_likelihood() -> None:
    x, mean = gc.tensor("x", {"sample": None}), gc.tensor("mean", {"part": 2})
    joint = gc.special.log_softmax(gc.zeros({"part": 2}), "part") - (x - mean) ** 2 / 2
    f = gc.compile([mean, x], gc.value_and_grad(gc.special.logsumexp(joint, "part").sum(), mean))
    value, slope = f(np.array([0.0, 3.0]), np.array([0.1, 2.9]))
    near, far = np.exp(-(0.1**2) / 2), np.exp(-(2.9**2) / 2)
    np.testing.assert_allclose(value, 2 * np.log((near + far) / 2))
    np.testing.assert_allclose(slope[0], (0.1 * near + 2.9 * far) / (near + far))


def test_cross_entropy_with_one_hot_classes() -> None:
    logits = gc.tensor("logits", {"sample": None, "class": 3})
    classes = gc.tensor("classes", {"sample": None}, dtype="int64")
    hot = gc.one_hot(classes, 3, like=logits)
    loss = -(hot * gc.special.log_softmax(logits, "class")).sum("class").mean()
    f = gc.compile([logits, classes], [loss, gc.grad(loss, logits)])
    value, slope = f(np.zeros((2, 3)), np.array([0, 2]))
    np.testing.assert_allclose(value, np.log(3))
    np.testing.assert_allclose(slope, (np.full((2, 3), 1 / 3) - np.eye(3)[[0, 2]]) / 2)


def test_an_implicit_root() -> None:
    a = gc.tensor("a", {})
    root = gc.while_loop(lambda r: abs(r * r - a) > 1e-12, lambda r: (r + a / r) / 2, a)
    np.testing.assert_allclose(gc.compile([a], [root, gc.grad(root, a)])(4.0), [2.0, 0.25])


# ---- programs


def test_inputs_by_keyword_and_partial_calls() -> None:
    x, w = gc.tensor("x", {"row": None}), gc.tensor("w", {})
    f = gc.compile([x, w], x * w)
    np.testing.assert_array_equal(f(w=2.0, x=[1.0, 2.0]), [2.0, 4.0])
    np.testing.assert_array_equal(partial(f, w=2.0)([1.0, 2.0]), [2.0, 4.0])


def test_parameters_of_a_named_tuple() -> None:
    class Params(NamedTuple):
        w: Any
        b: Any

    x, params = gc.tensor("x", {}), Params(gc.tensor("w", {}), gc.tensor("b", {}))
    f = gc.compile([x, params], gc.grad(params.w * x + params.b, params))
    assert f(3.0, Params(1.0, 2.0)) == Params(3.0, 1.0)


def test_a_function_of_one_is_one_of_many() -> None:
    def distance(a: gc.Tensor, b: gc.Tensor) -> gc.Tensor:
        return gc.sqrt(((a - b) ** 2).sum("space"))

    a, b = (gc.tensor(name, {name: None, "space": 2}) for name in ("one", "other"))
    pairs = gc.compile([a, b], distance(a, b))(np.zeros((3, 2)), np.ones((4, 2)))
    np.testing.assert_allclose(pairs, np.full((3, 4), np.sqrt(2)))


def test_sums_of_lists_and_arithmetic_of_sizes() -> None:
    x = gc.tensor("x", {"row": None})
    n = x.sizes["row"]
    f = gc.compile([x], [sum([x, x]) / n, gc.zeros({"twice": 2 * n + 1})])
    mean, zeros = f([1.0, 2.0])
    np.testing.assert_array_equal(mean, [1.0, 2.0])
    assert zeros.shape == (5,)


def test_many_steps_written_out() -> None:
    x = y = gc.tensor("x", {})
    for _ in range(100):
        y = y + 0.001 * gc.sin(y)
    assert gc.compile([x], gc.grad(y, x))(0.1) > 1.1


def test_calls_of_many_sizes_from_several_threads() -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], (x**2).sum())
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: f(np.ones(n)), range(85)))
    assert found == list(range(85))


def test_names_that_are_elsewhere_are_found() -> None:
    for name, there in (("logsumexp", "gc.special.logsumexp"), ("svd", "gc.linalg.svd")):
        with pytest.raises(AttributeError, match=there):
            getattr(gc, name)


# ---- values


def test_a_program_is_kept_and_looked_into() -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], gc.log(1 + gc.exp(x)).sum())
    assert pickle.loads(pickle.dumps(f))([0.0]) == f([0.0])
    assert [*f.stages][:2] == ["named", "lowered"]
    assert "softplus" in f.diff("lowered", "simplified")
    assert "log1p → softplus" in str(f.why("%0", stage="named"))


def test_where_a_nan_comes_from() -> None:
    x = gc.tensor("x", {"row": None})
    fault = gc.compile([x], gc.log(x).sum()).check(np.array([1.0, 0.0]))
    assert fault is not None
    assert (fault.op, dict(fault.place)) == ("log", {"row": 1})


def test_a_value_is_printed_while_a_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    x = gc.tensor("x", {"row": None})
    gc.compile([x], gc.print(2 * x, "twice").sum())([1.0, 2.0])
    assert "twice" in capsys.readouterr().out


def test_a_program_says_why_and_what_it_costs(tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], gc.grad(gc.special.logsumexp(x, "row"), x))
    assert Path(__file__).name in str(f.why(x))
    assert "flops" in str(f.profile(np.ones(1000)))
    f.to_html(tmp_path / "page.html")
    assert Path(__file__).name in (tmp_path / "page.html").read_text("utf-8")
    assert "logsumexp" in f._repr_html_()


def test_a_masked_array_is_refused_with_a_cure() -> None:
    x = gc.tensor("x", {"row": None})
    with pytest.raises(gc.GraphError, match=r"fill them, value.filled\(np.nan\)"):
        gc.compile([x], x)(np.ma.masked_less([0.0, 1.0], 0.5))


# ---- data and names


def test_monthly_anomalies_of_a_series_with_dates() -> None:
    days = pandas.date_range("2020-01-01", periods=60)
    given = xarray.DataArray(np.arange(60.0), {"day": days})
    x = gc.tensor("x", {"day": None})
    months = x.groupby(days.month - 1, 2, "day", name="month")
    f = gc.compile([x], [months.mean(), months - months.mean()], returns="xarray")
    means, anomalies = f(given)
    theirs = given.groupby("day.month")
    np.testing.assert_allclose(means, theirs.mean())
    np.testing.assert_allclose(anomalies, theirs - theirs.mean())
    assert anomalies.indexes["day"].equals(days)
    by_name = x.groupby(given.day.dt.month - 1, 2).mean()
    assert by_name.dims == theirs.mean().dims == ("month",)
    assert x.groupby((given.day.dt.month - 1).rename("day"), 2).mean().dims == ("day",)


def test_a_dataset_goes_in_and_comes_out() -> None:
    wind, rain = (gc.tensor(name, {"station": None}) for name in ("wind", "rain"))
    given = xarray.Dataset(
        {"wind": ("station", [1.0, 2.0]), "rain": ("station", [3.0, 4.0])},
        {"station": ["a", "b"], "height": ("station", [10.0, 20.0])},
    )
    f = gc.compile([wind, rain], {"both": wind * rain}, returns="xarray")
    xarray.testing.assert_equal(
        xarray.Dataset(f(**given)), xarray.Dataset({"both": given.wind * given.rain})
    )


def test_a_dataset_given_whole_is_refused_with_its_cure() -> None:
    wind, rain = (gc.tensor(name, {"station": None}) for name in ("wind", "rain"))
    given = xarray.Dataset({"wind": ("station", [1.0]), "rain": ("station", [3.0])})
    for f in (gc.compile([wind], wind), gc.compile([wind, rain], wind + rain)):
        with pytest.raises(gc.GraphTypeError, match=r"by name: f\(\*\*arrays\)"):
            f(given)


def test_groups_by_labels_are_groups_of_their_numbers() -> None:
    x, cities = gc.tensor("x", {"day": 3}), np.array(["p", "q", "p"])
    with pytest.raises(gc.GraphTypeError, match=r"np.unique\(labels, return_inverse=True\)"):
        x.groupby([0.5, 1.5, 0.5], 2, "day")
    names, ids = np.unique(cities, return_inverse=True)
    means = x.groupby(ids, len(names), "day", name="city").mean()
    np.testing.assert_array_equal(means.eval(x=[1.0, 2.0, 5.0]), [3.0, 2.0])


def test_one_place_keeps_its_label() -> None:
    days = pandas.date_range("2020-01-01", periods=3)
    given = xarray.DataArray([1.0, 2.0, 4.0], {"day": days})
    x = gc.tensor("x", {"day": None})
    last = gc.compile([x], x.isel(day=-1), returns="xarray")(given)
    xarray.testing.assert_identical(last, given.isel(day=-1))


def test_a_float32_program_by_its_default() -> None:
    with gc.default_dtype("float32"):
        x = gc.tensor("x", {"row": None})
        table = gc.constant([0.5, 1.5], "k") * gc.linspace(0, 1, 3, dim="t") + gc.full({}, 0.1)
        assert (x * table * gc.exp(0.5)).dtype == "float32"


def test_a_failure_of_an_exported_program_is_worded(tmp_path: Path) -> None:
    @dataclass
    class System:
        matrix: Any
        right: Any

    a, b = gc.tensor("a", {"i": 2, "j": 2}), gc.tensor("b", {"i": 2})
    f = gc.compile([System(a, b)], System(a, gc.linalg.solve(a, b, ("i", "j"))))
    f.export(tmp_path / "program.py")
    program = runpy.run_path(str(tmp_path / "program.py"))["program"]
    np.testing.assert_array_equal(program(System(np.eye(2), [1.0, 2.0])).right, [1.0, 2.0])
    with pytest.raises(ValueError, match=r"solve at test_tasks.py:\d+.*: the matrix is singular"):
        program(System(np.zeros((2, 2)), [1.0, 2.0]))


def test_the_labels_of_the_largest_elements() -> None:
    x = gc.tensor("x", {"city": None})
    f = gc.compile([x], x.isel(city=(-x).argsort("city")).head(city=2), returns="xarray")
    found = f(xarray.DataArray([1.0, 3.0, 2.0], {"city": ["p", "q", "r"]}))
    assert found.city.values.tolist() == ["q", "r"]


def test_patches_of_an_image() -> None:
    image = gc.tensor("image", {"batch": None, "y": 4, "x": 4, "channel": 3})
    pattern = "batch (h dh) (w dw) channel -> batch h w (dh dw channel)=patch"
    patches = gc.rearrange(pattern, image, dh=2, dw=2)
    assert str(patches) == "<Tensor: f64[batch, h=2, w=2, patch=12]>"


def test_a_matrix_of_arrays() -> None:
    angle = gc.tensor("angle", {"time": None})
    c, s = gc.cos(angle), gc.sin(angle)
    turned = gc.linalg.apply(
        gc.array([[c, -s], [s, c]], ("i", "j")), gc.constant([1.0, 0], "j"), ("i", "j")
    )
    np.testing.assert_allclose(turned.eval(angle=[0, np.pi / 2]), [[1, 0], [0, 1]], atol=1e-15)


def test_a_step_of_a_filter_without_renaming() -> None:
    move, state, cov = ("new", "state"), gc.tensor("m", {"state": 2}), ("state", "other")
    F = gc.constant([[1.0, 0.1], [0.0, 1.0]], move)
    P = gc.tensor("P", {"state": 2, "other": 2})
    mean, spread = gc.linalg.apply(F, state, move), gc.linalg.congruence(F, P, move, cov)
    f = gc.compile([state, P], [mean, spread])
    found = f([1.0, 2.0], np.eye(2))
    np.testing.assert_allclose(found[0], [1.2, 2.0])
    np.testing.assert_allclose(found[1], [[1.01, 0.1], [0.1, 1.0]])


def test_a_start_without_the_dims_of_the_loop() -> None:
    x = gc.tensor("x", {"time": None, "member": 3})
    last, _ = gc.scan(lambda level, v: (0.9 * level + v, None), gc.zeros({}), x, dim="time")
    assert last.dims == ("member",)


def test_windows_of_a_series() -> None:
    given = xarray.DataArray(np.arange(6.0) ** 2, {"day": np.arange(6)})
    x = gc.tensor("x", {"day": None})
    ours = [x.coarsen(day=2).mean(), x.rolling(day=3).mean(), x.shift(day=1), x.diff("day")]
    theirs = [given.coarsen(day=2).mean(), given.rolling(day=3).mean(), given.shift(day=1)]
    for found, wanted in zip(
        gc.compile([x], ours)(given), [*theirs, given.diff("day")], strict=True
    ):
        np.testing.assert_allclose(found, wanted)


def test_an_exponentially_weighted_mean() -> None:
    x = gc.tensor("x", {"day": None})
    step = lambda level, v: ((mean := 0.7 * level + 0.3 * v), mean)
    found = gc.scan(step, x.isel(day=0), x, dim="day")[1].eval(x=[1.0, 2.0, 4.0])
    wanted = pandas.Series([1.0, 2.0, 4.0]).ewm(alpha=0.3, adjust=False).mean()
    np.testing.assert_allclose(found, wanted)


def test_a_correlation() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 20))
    x, y = gc.tensor("x", {"day": None}), gc.tensor("y", {"day": None})
    assert np.isclose(gc.compile([x, y], gc.corr(x, y, "day"))(a, b), np.corrcoef(a, b)[0, 1])


def test_arguments_of_many_kinds() -> None:
    x = gc.tensor("x", {"row": None, "col": None})
    f, values = gc.compile([x], 2 * x), np.arange(6.0).reshape(2, 3)
    turned = xarray.DataArray(values, dims=("row", "col")).T
    for given in (
        values,
        values.tolist(),
        values.astype("uint8"),
        pandas.DataFrame(values),
        turned,
    ):
        np.testing.assert_array_equal(f(given), 2 * values)


def test_arrays_without_names_are_given_some() -> None:
    x = gc.tensor("x", {"row": 3})
    with pytest.raises(gc.GraphError, match=r"gc.constant"):
        x * np.ones(3)
    np.testing.assert_array_equal((x * gc.constant([1, 2, 3], "row")).eval(x=np.ones(3)), [1, 2, 3])


def test_a_reshape_and_a_stack() -> None:
    x = gc.tensor("x", {"pixel": 6})
    assert x.unstack(pixel={"row": 2, "col": None}).sizes == {"row": 2, "col": 3}
    assert gc.concat([x, x], "copy").sizes == {"copy": 2, "pixel": 6}


# ---- outside code, checks and files


def test_derivatives_are_checked() -> None:
    x = gc.tensor("x", {"row": None})
    found = gc.check_grads(gc.sin(x).sum(), x, {x: [0.5, 1.0]})
    assert (found.wrt, found.error <= found.allowed) == ("x", True)


def test_a_function_of_scipy_inside_a_program() -> None:
    a = gc.tensor("a", {"row": None})
    solve = gc.callback(
        lambda a: brentq(lambda x: x**3 + x - a, 0.0, 10.0),
        gc.zeros({}),
        dims=(),
        pullback=lambda operands, x, ct: (ct / (3 * x**2 + 1),),
    )
    x = solve(a)
    found, slope = gc.compile([a], (x, gc.grad(x.sum(), a)))([2.0, 10.0])
    np.testing.assert_allclose(found, [1, 2])
    np.testing.assert_allclose(slope, [1 / 4, 1 / 13])


def test_a_program_without_the_library(tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": None})
    gc.compile([x], gc.exp(x).sum()).export(tmp_path / "program.py")
    program = runpy.run_path(str(tmp_path / "program.py"))["program"]
    assert program([0.0, 0.0]) == 2.0


def test_a_program_in_a_file_that_is_no_pickle(tmp_path: Path) -> None:
    x = gc.tensor("x", {"row": None})
    gc.save(gc.compile([x], gc.exp(x).sum()), tmp_path / "program.gc")
    assert gc.load(tmp_path / "program.gc")([0.0, 0.0]) == 2.0
