"""`gc.function`: inlined for tensors, compiled at the first call for arrays."""

from __future__ import annotations

import gc as memory
import pickle
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import xarray

import graphcore as gc

X, W = np.arange(6.0).reshape(2, 3), np.array([1.0, -1.0, 2.0])
T, V = gc.tensor("t", {"batch": None, "feature": 3}), gc.tensor("v", {"feature": 3})


@gc.function(x={"batch": None, "feature": 3}, w=("feature",), native=False)
def loss(x: gc.Tensor, w: gc.Tensor, power: int = 2, *, scale: float = 1.0) -> gc.Tensor:
    """The mean of a power."""
    return scale * (gc.dot(x, w, dim="feature") ** power).mean("batch")


@gc.function(x={"batch": None, "feature": 3}, w=("feature",), native=False)
def slope(x: gc.Tensor, w: gc.Tensor) -> Any:
    return gc.value_and_grad(loss(x, w), w)


def programs(f: Any) -> int:
    return int(repr(f).rsplit(": ", 1)[1].split()[0])


def test_arrays_are_computed_with_and_tensors_are_inlined() -> None:
    np.testing.assert_allclose(loss(X, W), ((X @ W) ** 2).mean())
    np.testing.assert_allclose(loss(X[:1], w=W, power=3, scale=2), 2 * (X[0] @ W) ** 3)
    value, grad = slope(X, W)
    np.testing.assert_allclose(grad, 2 * ((X @ W)[:, None] * X).mean(0))
    inlined = loss(T, V)
    assert isinstance(inlined, gc.Tensor)
    assert inlined is loss.__wrapped__(T, V)
    np.testing.assert_allclose(value, loss(X, W))


def test_the_python_function_stays_reachable() -> None:
    assert loss.__name__ == "loss"
    assert loss.__doc__ == "The mean of a power."
    assert loss.__module__ == __name__
    assert pickle.loads(pickle.dumps(loss)) is loss
    assert repr(slope).startswith("<Function slope(x: f64[batch, feature=3], w: f64[feature]): ")


def test_one_program_serves_all_sizes_and_static_values_have_their_own() -> None:
    calls: list[Any] = []

    @gc.function(x=("row",), native=False)
    def f(x: gc.Tensor, mode: Any = None) -> gc.Tensor:
        calls.append(mode)
        return x + 1

    for n in range(5):
        f(np.ones(n))
    assert f.compiled(np.ones(3)) is f.compiled([1.0])
    for mode in (0, 0.0, -0.0, False, 1, 1.0, True, (1,), (1.0,), np.float32(1), float("nan")):
        f(np.ones(1), mode)
        f(np.ones(1), mode=mode)
    assert len(calls) == programs(f) == 12
    f(np.ones(1), float("nan"))
    assert len(calls) == 12


def test_trees_dtypes_and_labelled_results() -> None:
    @dataclass
    class Model:
        w: Any
        b: Any

    i = gc.tensor("any", {"row": None}, dtype="int32")

    @gc.function(
        model=Model(("feature",), ()), ids=i, extra=[{"a": ("feature",)}], returns="xarray"
    )
    def f(model: Any, ids: Any, extra: Any) -> Any:
        return {"y": gc.take(model.w, ids, "feature") * model.b, "z": extra[0]["a"]}

    got = f(Model([1.0, 2.0], 3), np.array([1, 0, 1], "int32"), [{"a": np.ones(2)}])
    assert got["y"].dims == ("row",)
    np.testing.assert_array_equal(got["y"].values, [6.0, 3.0, 6.0])
    with pytest.raises(gc.GraphTypeError, match=r"'ids' is int32, but got float64"):
        f(Model([1.0, 2.0], 3), np.ones(3), [{"a": np.ones(2)}])
    da = xarray.DataArray(np.ones(2), {"feature": ["p", "q"]}, dims="feature")
    labels = f(Model(da, 3), [0], [{"a": da}])["z"].coords["feature"].values
    assert list(labels) == ["p", "q"]


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @gc.function(x=("row",), native=False)
    def apply(self, x: gc.Tensor, shift: int = 0) -> gc.Tensor:
        return self.factor * x + shift

    @staticmethod
    @gc.function(x=("row",), native=False)
    def twice(x: gc.Tensor) -> gc.Tensor:
        return 2 * x


def test_methods() -> None:
    two, three = Scaled(2.0), Scaled(3.0)
    np.testing.assert_array_equal(two.apply([1.0]), [2.0])
    np.testing.assert_array_equal(three.apply(x=[1.0], shift=1), [4.0])
    np.testing.assert_array_equal(Scaled.apply(two, [1.0]), [2.0])
    np.testing.assert_array_equal(Scaled.twice([1.0]), [2.0])
    assert two.apply.compiled([1.0]) is two.apply.compiled([5.0])
    assert isinstance(two.apply(V), gc.Tensor)
    before = programs(Scaled.apply)
    del three
    memory.collect()
    assert programs(Scaled.apply) == before - 1  # of an object that is no more there is none


@dataclass(eq=False)
class Layer:
    w: Any
    act: Any = gc.tanh


class Net:
    def __init__(self) -> None:
        self.layers, self.scale, self.calls = [Layer(np.ones(2))], {"out": 1.0}, 0
        self.whole = self

    @gc.function(x=("row",), native=False)
    def apply(self, x: gc.Tensor) -> gc.Tensor:
        self.calls += 1  # what the method itself changes makes no new program at each call
        for layer in self.layers:
            x = layer.act(x * gc.constant(layer.w, "row"))
        return x.sum() * self.scale["out"]


def test_a_self_that_changed_is_seen() -> None:
    net: Any = Net()
    y = np.array([0.5, -0.25])
    memory.collect()
    before = programs(Net.apply)

    def expected() -> Any:
        x = y
        for layer in net.layers:
            x = np.asarray(gc.evaluate(layer.act(gc.constant(x * layer.w, "row"))))
        return x.sum() * net.scale["out"]

    changes = [
        lambda: None,
        lambda: net.layers[0].w.__setitem__(0, 3.0),  # in place
        lambda: setattr(net.layers[0], "w", np.array([3.0, 7.0])),
        lambda: net.scale.update(out=2.5),
        lambda: net.layers.append(Layer(np.array([1.0, 2.0]))),
        lambda: setattr(net.layers[1], "act", lambda x: 2 * x),
        lambda: setattr(net.layers[1], "act", lambda x: 3 * x),
        lambda: setattr(net, "scale", {"out": -0.0}),
    ]
    for number, change in enumerate(changes, 1):
        change()
        for _ in range(3):
            np.testing.assert_allclose(net.apply(y), expected())
        assert net.calls == number
    assert programs(Net.apply) == before + 1
    net = change = changes = expected = None
    memory.collect()
    assert programs(Net.apply) == before


def test_names_that_mean_something_else_are_seen() -> None:
    space: dict[str, Any] = {"gc": gc}
    exec("rate = 2.0\ndef link(x): return rate * x\ndef f(x): return link(x).sum()", space)
    f = gc.function(x=("row",), native=False)(space["f"])
    shift, made = 0.0, []

    @gc.function(x=("row",), native=False)
    def inner(x: gc.Tensor) -> gc.Tensor:
        made.append(1)
        return f(x) + shift

    assert (f([1.0]), inner([1.0])) == (2.0, 2.0)
    space["rate"] = 3.0
    shift = 1.0
    assert (f([1.0]), inner([1.0])) == (3.0, 4.0)
    exec("def link(x): return -x", space)
    assert (f([1.0]), f([1.0])) == (-1.0, -1.0)
    assert inner([1.0]) == inner([1.0])
    assert len(made) == 2  # names of another module are not looked at


def test_calls_in_loops_and_under_vectorize_are_inlined() -> None:
    last, _ = gc.scan(lambda c, x: (c + loss(T, x), None), 0.0, T.rename(batch="time"), dim="time")
    carry = sum(((X @ x) ** 2).mean() for x in X)
    f = gc.compile([T], last, native=False)
    np.testing.assert_allclose(f(X) if X.shape[0] else 0, carry)
    many = gc.tensor("many", {"run": None, "feature": 3})
    wide = gc.vectorize(gc.grad(loss(T, V), V), {V: many})
    got = gc.compile([T, many], wide, native=False)(X, [W, 2 * W])
    np.testing.assert_allclose(got, [slope(X, W)[1], slope(X, 2 * W)[1]])
    tangent = gc.pushforward(loss(T, V), V, V)
    np.testing.assert_allclose(tangent.eval(t=X, v=W), slope(X, W)[1] @ W)


def test_a_function_computes_nothing_but_once() -> None:
    @gc.function()
    def table(n: int) -> gc.Tensor:
        return gc.arange(n, dim="row") ** 2

    np.testing.assert_array_equal(table(3), [0, 1, 4])
    np.testing.assert_array_equal(table(2), [0, 1])


def test_threads_make_one_program() -> None:
    made: list[int] = []

    @gc.function(x=("row",), native=False)
    def f(x: gc.Tensor) -> gc.Tensor:
        made.append(1)
        return gc.exp(x)

    threads = [threading.Thread(target=f, args=(np.ones(3),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_numbers_and_arrays_with_dims_go_with_tensors() -> None:
    da = xarray.DataArray(W, dims="feature")
    assert loss(T, da).dims == ()
    assert loss(T, V, power=np.float64(2)).dtype == "float64"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"returns": "torch"}, "returns is 'numpy', 'xarray' or 'jax'"),
        ({"sizes": ("row",)}, "sizes is 'exact' or 'buckets'"),
        ({"sizes": "buckets"}, "sizes='buckets' is an option of target='jax'"),
        ({"shard": {"row": "data"}, "target": "numpy"}, "is an option of target='jax'"),
        ({"mesh": gc.Mesh({"data": 2}), "target": "jax"}, "does not say which dims"),
    ],
)
def test_options_are_checked_where_a_function_is_declared(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(gc.GraphError, match=words) as refused:
        gc.function(x=("row",), **options)
    assert str(refused.value).startswith("function: ")


ASKED = [name for name in dir(gc.Compiled) if not name.startswith("_")]


@pytest.mark.parametrize("name", [*ASKED, "stages", "passes"])
def test_what_a_program_is_asked_a_function_refers_to_its_programs(name: str) -> None:
    class Model:
        @gc.function(x=("row",))
        def __call__(self, x: gc.Tensor) -> gc.Tensor:
            return 2 * x

    for f in (Model().__call__, Model.__dict__["__call__"]):
        with pytest.raises(AttributeError, match=rf"f.compiled\(\*arguments\).{name}"):
            getattr(f, name)
    assert hasattr(Model().__call__.compiled([1.0]), name)
