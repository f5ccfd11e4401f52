"""Gradient methods against NumPy written by hand, in loops, in both modes of derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphcore as gc

W, B = gc.tensor("w", {"row": 3}), gc.tensor("b", {})
PARAMS = {"w": W, "b": B}
START = {"w": np.array([1.0, -2.0, 0.5]), "b": np.float64(0.3)}
TARGET = np.array([0.5, 1.0, -1.0])
STEPS = 5


def loss(p: Any) -> Any:
    return ((p["w"] - gc.constant(TARGET, "row")) ** 2).sum() * (1 + p["b"] ** 2)


def slopes(w: Any, b: Any) -> tuple[Any, Any]:
    return 2 * (w - TARGET) * (1 + b**2), ((w - TARGET) ** 2).sum() * 2 * b


def trained(optimizer: gc.optimize.Optimizer, params: Any = None) -> tuple[Any, Any]:
    """The params after some steps, and the state."""
    params = PARAMS if params is None else params

    def step(carry: Any, _: Any) -> Any:
        params, state = carry
        return optimizer.update(params, gc.grad(loss(params), params), state), None

    return gc.scan(step, (params, optimizer.init(params)), length=STEPS, dim="step")[0]


def sgd(rate: Callable[[int], float], momentum: float, nesterov: bool) -> Any:
    def steps(p: Any, g: Any, state: Any, t: int) -> Any:
        v = momentum * state.get("v", 0) + g
        state["v"] = v
        return p - rate(t) * (g + momentum * v if nesterov else v)

    return steps


def adam(rate: Callable[[int], float], b1: float, b2: float, eps: float, decay: float) -> Any:
    def steps(p: Any, g: Any, state: Any, t: int) -> Any:
        m = state["m"] = b1 * state.get("m", 0) + (1 - b1) * g
        s = state["s"] = b2 * state.get("s", 0) + (1 - b2) * g * g
        first, second = (v / -np.expm1((t + 1) * np.log(b)) for v, b in ((m, b1), (s, b2)))
        return p - rate(t) * (first / (np.sqrt(second) + eps) + decay * p)

    return steps


def rmsprop(rate: float, kept: float, eps: float) -> Any:
    def steps(p: Any, g: Any, state: Any, t: int) -> Any:
        s = state["s"] = kept * state.get("s", 0) + (1 - kept) * g * g
        return p - rate * g / (np.sqrt(s) + eps)

    return steps


def lion(rate: float, b1: float, b2: float, decay: float) -> Any:
    def steps(p: Any, g: Any, state: Any, t: int) -> Any:
        m = state.get("m", 0)
        state["m"] = b2 * m + (1 - b2) * g
        return p - rate * (np.sign(b1 * m + (1 - b1) * g) + decay * p)

    return steps


def cosine(t: int) -> float:
    return float(0.01 + 0.09 * (1 + np.cos(np.pi * min(t / 3, 1))) / 2)


def warm(t: int) -> float:
    return min((t + 1) / 3, 1) * 0.1 * 0.5 ** (t / 2)


o = gc.optimize
METHODS = {
    "sgd": (o.sgd(0.1), sgd(lambda t: 0.1, 0.0, False)),
    "momentum": (o.sgd(0.1, 0.9), sgd(lambda t: 0.1, 0.9, False)),
    "nesterov": (o.sgd(0.1, 0.9, nesterov=True), sgd(lambda t: 0.1, 0.9, True)),
    "cosine": (o.sgd(o.cosine_decay(0.1, 3, 0.01)), sgd(cosine, 0.0, False)),
    "warmup": (
        o.sgd(o.linear_warmup(3, o.exponential_decay(0.1, 2, 0.5)), 0.5),
        sgd(warm, 0.5, False),
    ),
    "adam": (o.adam(0.1), adam(lambda t: 0.1, 0.9, 0.999, 1e-8, 0.0)),
    "adam cosine": (
        o.adam(o.cosine_decay(0.1, 3, 0.01), 0.8, 0.9, 0.1),
        adam(cosine, 0.8, 0.9, 0.1, 0.0),
    ),
    "rmsprop": (o.rmsprop(0.1, 0.8, 0.1), rmsprop(0.1, 0.8, 0.1)),
    "lion": (o.lion(0.1, 0.8, 0.7, 0.2), lion(0.1, 0.8, 0.7, 0.2)),
    "adamw": (o.adamw(0.1, weight_decay=0.2), adam(lambda t: 0.1, 0.9, 0.999, 1e-8, 0.2)),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_those_by_hand(name: str) -> None:
    ours, theirs = METHODS[name]
    params, state = gc.compile(PARAMS, trained(ours), native=False)(START)
    w, b = START["w"], START["b"]
    states: tuple[dict[str, Any], ...] = ({}, {})
    for t in range(STEPS):
        dw, db = slopes(w, b)
        w, b = theirs(w, dw, states[0], t), theirs(b, db, states[1], t)
    np.testing.assert_allclose(params["w"], w, rtol=1e-13)
    np.testing.assert_allclose(params["b"], b, rtol=1e-13)
    assert state.step == STEPS


def test_clipping_by_the_norm_of_the_whole_tree() -> None:
    grads = {"w": gc.constant([3.0, 0.0], "row"), "b": [gc.constant(np.float32(4.0))]}
    assert gc.evaluate(o.global_norm(grads)) == 5.0
    got = gc.evaluate(o.clip_by_global_norm(grads, 2.5))
    np.testing.assert_array_equal(got["w"], [1.5, 0.0])
    assert (got["b"][0], got["b"][0].dtype) == (2.0, "float32")
    same = gc.evaluate(o.clip_by_global_norm(grads, 5.0))
    np.testing.assert_array_equal(same["w"], [3.0, 0.0])
    zero = gc.zeros({"row": 2})
    np.testing.assert_array_equal(gc.evaluate(o.clip_by_global_norm(zero, 1.0)), [0.0, 0.0])
    x = gc.tensor("x", {"row": 2})
    np.testing.assert_array_equal(gc.grad(o.global_norm([x]), x).eval(x=[0.0, 0.0]), [0.0, 0.0])
    assert np.isnan(o.global_norm([x]).eval(x=[np.nan, 1.0]))
    assert o.global_norm([x]).eval(x=[np.inf, 1.0]) == np.inf
    assert np.isnan(o.clip_by_global_norm([x], 1.0)[0].eval(x=[np.nan, 1.0])).all()


@pytest.mark.parametrize("method", [o.sgd(0.1, 0.9), o.adamw(o.cosine_decay(0.1, 9))])
def test_params_and_state_keep_their_dtypes(method: gc.optimize.Optimizer) -> None:
    p = {
        "w": gc.tensor("w", {"row": 3}, dtype="float32"),
        "z": gc.tensor("z", {}, dtype="complex64"),
    }
    grads = {"w": p["w"] * 2, "z": p["z"] * 2}
    new, state = method.update(p, grads, method.init(p))
    assert [x.dtype for x in gc.tree.leaves(new)] == ["float32", "complex64"]
    kinds = [x.dtype.itemsize for x in gc.tree.leaves(state)[1:]]
    assert max(kinds) <= 8
    again, _ = method.update(new, grads, state)
    assert gc.tree.flatten(again)[1] == gc.tree.flatten(p)[1]


def test_complex_params_go_downhill() -> None:
    z = gc.tensor("z", {}, dtype="complex128")
    height = abs(z - (1 + 2j)) ** 2
    new, _ = o.sgd(0.25).update(z, gc.grad(height, z), o.sgd(0.25).init(z))
    np.testing.assert_allclose(new.eval(z=0j), 0.5 + 1j)


@pytest.mark.slow
def test_a_training_has_derivatives_and_is_vectorized() -> None:
    rate = gc.tensor("rate", {})
    final = loss(trained(o.adam(rate))[0])
    slope = gc.grad(final, rate)
    tangent = gc.pushforward(final, rate, gc.constant(1.0))
    f = gc.compile([PARAMS, rate], [final, slope, tangent], native=False)
    got = f(START, 0.1)
    h = 1e-6
    difference = (f(START, 0.1 + h)[0] - f(START, 0.1 - h)[0]) / (2 * h)
    np.testing.assert_allclose(got[1], difference, rtol=1e-7)
    np.testing.assert_allclose(got[2], got[1], rtol=1e-12)
    rates = gc.tensor("rates", {"trial": None})
    many = gc.compile([PARAMS, rates], gc.vectorize(final, {rate: rates}), native=False)
    both = many(START, np.array([0.1, 0.2]))
    np.testing.assert_allclose(both, [f(START, 0.1)[0], f(START, 0.2)[0]])


def test_a_gradient_of_zero_has_a_derivative() -> None:
    method = o.adam(0.1)
    x = gc.tensor("x", {"row": 2})
    new, _ = method.update(x, x * 0, method.init(x))
    np.testing.assert_array_equal(gc.grad(new.sum(), x).eval(x=[1.0, 2.0]), [1.0, 1.0])


@pytest.mark.slow
def test_a_model_is_trained() -> None:
    """A small network learns the exclusive or, all steps in one program."""
    x = gc.constant([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ("sample", "in"))
    y = gc.constant([0.0, 1.0, 1.0, 0.0], "sample")
    params = {
        "w": gc.tensor("w", {"in": 2, "hidden": 8}),
        "b": gc.zeros({"hidden": 8}),
        "out": gc.tensor("out", {"hidden": 8}),
    }
    method = o.adam(0.05)

    def error(p: Any) -> Any:
        hidden = gc.tanh(gc.dot(x, p["w"], dim="in") + p["b"])
        return ((gc.dot(hidden, p["out"], dim="hidden") - y) ** 2).mean()

    def step(carry: Any, _: Any) -> Any:
        params, state = carry
        value, grads = gc.value_and_grad(error(params), params)
        return method.update(params, o.clip_by_global_norm(grads, 1.0), state), value

    _, errors = gc.scan(step, (params, method.init(params)), length=200, dim="step")
    random = np.random.default_rng(0)
    f = gc.compile([params["w"], params["out"]], errors, native=False)
    found = f(random.normal(size=(2, 8)), random.normal(size=8))
    assert found[-1] < 1e-3 * found[0]


ALL = {
    "sgd": o.sgd(0.1, 0.9),
    "adam": o.adam(o.cosine_decay(0.1, 9)),
    "adamw": o.adamw(
        o.linear_warmup(3, o.exponential_decay(0.1, 2, 0.5)), mask={"w": True, "b": False}
    ),
    "rmsprop": o.rmsprop(0.1),
    "lion": o.lion({"w": 0.1, "b": o.cosine_decay(0.1, 9)}, weight_decay=0.1),
}


@pytest.mark.parametrize("name", ALL)
def test_of_arrays_it_gives_arrays(name: str) -> None:
    """The same as in a program."""
    method = ALL[name]
    params, state = START, method.init(START)
    inner = gc.compile(PARAMS, method.init(PARAMS), native=False)(START)
    for _ in range(3):
        grads = dict(zip("wb", slopes(params["w"], params["b"]), strict=True))
        params, state = method.update(params, grads, state)
    wanted, _ = gc.compile(PARAMS, trained(method), native=False)(START)
    assert isinstance(params["w"], np.ndarray)
    assert gc.tree.flatten(state)[1] == gc.tree.flatten(inner)[1]
    grads = dict(zip("wb", slopes(params["w"], params["b"]), strict=True))
    for _ in range(STEPS - 3):
        grads = dict(zip("wb", slopes(params["w"], params["b"]), strict=True))
        params, state = method.update(params, grads, state)
    for key in "wb":
        np.testing.assert_allclose(params[key], wanted[key], rtol=1e-12)


@pytest.mark.parametrize("name", [*ALL, "plain"])
def test_its_state_is_declared_by_its_start(name: str) -> None:
    """A state that holds nothing beside the number of the step, too."""
    method = ALL.get(name) or o.sgd(0.1)
    step = gc.function(params=PARAMS, state=method.init(PARAMS))(
        lambda params, state: method.update(params, params, state)
    )
    found, state = step(START, method.init(START))
    wanted, _ = method.update(START, START, method.init(START))
    for key in "wb":
        np.testing.assert_allclose(found[key], wanted[key], rtol=1e-12)
    assert int(state.step) == 1


@pytest.mark.parametrize("name", ALL)
def test_a_float32_program_has_no_float64(name: str) -> None:
    params = {"w": gc.tensor("w", {"row": 3}, dtype="float32"),
              "b": gc.tensor("b", {}, dtype="float32")}  # fmt: skip
    method = ALL[name]
    state = gc.inputs_like(method.init(params), "state")
    new = method.update(params, params, state)
    f = gc.compile([params, state], new, native=False)
    assert not [x for x in gc.tree.leaves(new) if x.dtype == np.float64]
    types = [node.type for node in f.stages["lowered"].nodes()]
    assert np.float64 not in {t.dtype for type in types for t in getattr(type, "items", (type,))}


def test_rates_and_decay_of_groups() -> None:
    """A tree with the keys of params, or of groups of them, says which rate and decay they have."""
    params = {"body": {"w": W, "b": B}, "head": [W * 2, B]}
    method = o.adamw({"body": 0.1, "head": [0.2, 0.3]}, weight_decay=0.5,
                     mask=lambda p: gc.tree.map(lambda x: x.ndim > 0, p))  # fmt: skip
    new, _ = method.update(params, params, method.init(params))
    values = gc.evaluate(new, {W: [1.0, 2.0, 4.0], B: 3.0})
    w = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(values["body"]["w"], w - 0.1 * (1 + 0.5 * w))
    np.testing.assert_allclose(values["body"]["b"], 3 - 0.1)
    np.testing.assert_allclose(values["head"][0], 2 * w - 0.2 * (1 + w))
    np.testing.assert_allclose(values["head"][1], 3 - 0.3)


def test_inputs_like_a_tree() -> None:
    params = {"w": gc.tensor("w", {"row": None}, dtype="float32"), "b": 0.5}
    inputs = gc.inputs_like(o.adam(0.1).init(params), "state")
    assert type(inputs).__name__ == "Moments"
    names = ["state[0]", "state[1]['w']", "state[1]['b']", "state[2]['w']", "state[2]['b']"]
    assert [x.name for x in gc.tree.leaves(inputs)] == names
    assert inputs.mean["w"].sizes == params["w"].sizes
    assert inputs.step.dtype == np.int64
    assert gc.inputs_like(W, "v").name == "v"
    with pytest.raises(gc.GraphTypeError, match="name its axes"):
        gc.inputs_like([np.ones(2)], "state")
