"""Programs that a user compiles to machine code."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphcore as gc
from graphcore.backends import llvm_kernels

pytestmark = pytest.mark.skipif(
    llvm_kernels.unavailable() is not None, reason=str(llvm_kernels.unavailable())
)


def both(inputs: list[gc.Tensor], outputs: object) -> tuple[gc.Compiled, gc.Compiled]:
    """The program as machine code, and as NumPy calls."""
    return gc.compile(inputs, outputs, native=True), gc.compile(inputs, outputs, native=False)


def test_a_loop_and_its_gradient() -> None:
    x = gc.tensor("x", {"time": None, "unit": 5})
    last, each = gc.scan(
        lambda s, x: (gc.tanh(0.5 * s + x), s * s), gc.zeros({"unit": 5}), x, dim="time"
    )
    y = last.sum() + each.mean()
    native, calls = both([x], {"y": y, "grad": gc.grad(y, x)})
    for steps in (0, 1, 7, 100):
        values = np.random.default_rng(steps).standard_normal((steps, 5))
        with np.errstate(all="ignore"):
            found, expected = native(values), calls(values)
        np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-13)
        np.testing.assert_allclose(found["grad"], expected["grad"], rtol=1e-12, atol=1e-15)


def test_it_says_which_target_runs() -> None:
    x = gc.tensor("x", {"row": None})
    native, calls = both([x], 2 * x)
    assert native.native
    assert not calls.native
    said = "<Compiled (x: f64[row]) -> (f64[row]): "
    assert repr(native) == f"{said}machine code, as native=True>"
    assert repr(calls) == f"{said}NumPy calls, as native=False>"
    assert "define i64 @kernel" in native.llvm
    assert "def run" in calls.source
    assert "for row: t0[row] = 2 * x[row]" in native.source


def test_both_targets_have_the_stages_of_the_interface() -> None:
    x = gc.tensor("x", {"row": None})
    names = ["named", "lowered", "simplified", "expanded", "optimized", "scheduled"]
    native, calls = both([x], gc.sin(x).sum())
    assert [*calls.stages] == names
    assert [*native.stages] == [*names, "kernels"]


def test_pickled_it_is_compiled_to_machine_code_again() -> None:
    x = gc.tensor("x", {"row": None})
    f = pickle.loads(pickle.dumps(gc.compile([x], gc.exp(x), native=True)))
    assert f.native
    np.testing.assert_allclose(f(np.arange(3.0)), np.exp(np.arange(3.0)), rtol=1e-15)


def test_arguments_and_results_of_any_form() -> None:
    xarray = pytest.importorskip("xarray")
    x, y = gc.tensor("x", {"row": None, "col": 2}), gc.tensor("y", {"col": 2})
    f = gc.compile([{"x": x, "y": y}], [x * y], returns="xarray", native=True)
    given = xarray.DataArray(np.arange(6.0).reshape(2, 3), {"row": ["a", "b", "c"]}, ("col", "row"))
    [found] = f({"x": given, "y": [1, 2]})
    assert found.dims == ("row", "col")
    assert found.coords["row"].values.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(found.values, given.values.T * [1, 2])


def test_where_no_machine_code_runs_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_kernels, "unavailable", lambda: "this CPU has no AVX2")
    x = gc.tensor("x", {"row": None})
    with pytest.raises(gc.GraphError, match="native=True, but this CPU has no AVX2"):
        gc.compile([x], 2 * x, native=True)


def test_positions_outside_are_refused_in_the_same_words() -> None:
    x, i = gc.tensor("x", {"row": None}), gc.tensor("i", {"pick": None}, dtype="int64")
    messages = []
    for f in both([x, i], gc.take(x, i, dim="row")):
        with pytest.raises(gc.GraphError) as caught:
            f(np.arange(3.0), np.array([0, 5]))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_threads_share_a_program() -> None:
    x = gc.tensor("x", {"row": None})
    f = gc.compile([x], gc.exp(x).sum(), native=True)
    given = [np.full(size, 1 / size) for size in range(1, 40)] * 5
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(f, given))
    np.testing.assert_allclose(found, [np.exp(x).sum() for x in given], rtol=1e-14)
