"""The generated function: its arrays, buffers, errors, threads and copies."""

from __future__ import annotations

import copy
import gc as collector
import linecache
import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import xarray as xr

import graphcore as gc
from graphcore.backends.numpy_backend import emit, routines
from graphcore.backends.python_code import python_code
from graphcore.ir.node import OPS
from graphcore.ir.op import Trait
from graphcore.rewrites.decompose import DECOMPOSE

x = gc.tensor("x", {"row": None, "col": 3})
w = gc.tensor("w", {"col": 3})
X = np.arange(12.0).reshape(4, 3)
W = np.array([1.0, -1.0, 2.0])


def test_every_plain_op_is_emitted_or_taken_apart() -> None:
    dialects = ("leaf", "elementwise", "tensor", "linalg")
    plain = {op for op in OPS.values() if op.dialect in dialects}
    lazy = {op for op in plain if op.name == "tuple"}
    assert plain - lazy == set(emit.EMIT) | set(DECOMPOSE)
    assert not set(emit.EMIT) & set(DECOMPOSE)
    written = {op for op in plain if op.traits & {Trait.IN_PLACE, Trait.UPDATES}}
    assert set(emit.INTO) >= written - set(DECOMPOSE)


@pytest.mark.parametrize(
    "array",
    [
        X[::-1],
        np.asfortranarray(X),
        X.astype(">f8"),
        np.repeat(X, 2, axis=0)[::2],
        X.astype(np.int32),
        X.astype(np.float32),
        xr.DataArray(X.T, dims=("col", "row")),
        X.tolist(),
    ],
    ids=["reversed", "fortran", "big-endian", "strided", "int32", "float32", "dims", "list"],
)
def test_any_array_that_loses_nothing_is_taken(array: Any) -> None:
    plain = array.transpose("row", "col").values if hasattr(array, "dims") else np.asarray(array)
    value, twice = gc.compile([x, w], [gc.dot(x, w, dim="col"), x + x])(array, W)
    np.testing.assert_allclose(value, plain @ W)
    np.testing.assert_allclose(twice, 2 * plain)
    assert value.dtype == np.float64


def test_read_only_arrays_are_taken_and_left_alone() -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    gc.compile([x], [gc.exp(x), x])(frozen)
    np.testing.assert_array_equal(frozen, X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: ((X, W, W), {}), "3 arguments for 2 inputs"),
        (lambda: ((X,), {}), "no argument for input 'w'"),
        (lambda: (({"x": X, "w": W},), {}), r"f\(\*\*arrays\)"),
        (lambda: (({"x": X}, W), {}), r"f\(\*\*arrays\)"),
        (lambda: ((X, W), {"w": W}), "given twice"),
        (lambda: ((X,), {"v": W}), "no input 'v'"),
        (lambda: ((X, W[:2]), {}), "has size 2, but must have 3"),
        (lambda: ((X[0], W), {}), "but got an array of shape"),
        (lambda: ((X + 1j, W), {}), "would lose values"),
        (lambda: ((X, np.array(["a"] * 3)), {}), "takes numbers"),
        (lambda: ((xr.DataArray(X, dims=("row", "other")), W), {}), "but got dims"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, message: str) -> None:
    f = gc.compile([x, w], gc.dot(x, w, dim="col"))
    args, kwargs = arguments()
    with pytest.raises(gc.GraphError, match=message) as caught:
        f(*args, **kwargs)
    assert isinstance(caught.value, (TypeError, ValueError))


def test_sizes_that_disagree_name_both_inputs() -> None:
    y = gc.tensor("y", {"row": None})
    with pytest.raises(gc.GraphValueError) as caught:
        gc.compile([x, y], x * y)(X, np.ones(3))
    for part in ("'row'", "'x'", "'y'", "3", "4", "test_numpy_backend.py"):
        assert part in str(caught.value)


def test_needs_of_the_user_graph_are_checked_at_the_entrance() -> None:
    y = gc.tensor("y", {"row": 5})
    f = gc.compile([x, y], x * y)
    with pytest.raises(gc.GraphValueError, match=r"needs row == 5.*\n.*from dim 'row' of input"):
        f(X, np.ones(5))
    g = gc.compile([x], x.isel(row=3))
    np.testing.assert_array_equal(g(X), X[3])
    with pytest.raises(gc.GraphError, match="needs 3 < row"):
        g(X[:3])


def test_results_belong_to_the_caller() -> None:
    y = gc.exp(x)
    outputs = [x, x, x.T, y, y, y.T, y[{"row": slice(1, None)}], gc.zeros({"k": 3}) + 0 * w.sum()]
    f = gc.compile([x, w], [*outputs, y.sum(), w.sum()])
    first = f(X, W)
    kept = [array.copy() for array in first]
    for i, a in enumerate(first):
        assert type(a) is np.ndarray
        assert a.flags.writeable
        assert not np.shares_memory(a, X)
        assert not any(np.shares_memory(a, b) for b in first[i + 1 :])
    second = f(X + 1, W + 1)
    for a, b, c in zip(first, kept, second, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.shares_memory(a, c)


def test_one_compilation_serves_every_size() -> None:
    loss = (gc.dot(x, w, dim="col") ** 2).mean("row")
    f = gc.compile([x, w], [loss, gc.grad(loss, w)])
    for rows in (32, 31, 1, 0, 32, 5, 6, 7, 8):
        a = np.random.default_rng(rows).normal(size=(rows, 3))
        value, g = f(a, W)
        expected = np.mean((a @ W) ** 2) if rows else np.nan
        np.testing.assert_allclose(value, expected)
        if rows:
            np.testing.assert_allclose(g, 2 * a.T @ (a @ W) / rows)


@pytest.mark.usefixtures("generated_python")
def test_errors_name_the_op_and_show_both_lines() -> None:
    index = gc.tensor("i", {"pick": None}, dtype="int64")
    f = gc.compile([x, index], gc.take(x, index, "row") * 2)
    with pytest.raises(gc.GraphIndexError, match=r"take at test_numpy_backend.py:") as e:
        f(X, np.array([0, 4]))
    text = "".join(traceback.format_exception(e.value))
    assert "<graphcore" in text
    assert "rows(x0, x1)" in text  # the generated line
    np.testing.assert_array_equal(f(X, np.array([-1])), X[[-1]] * 2)


def test_source_is_forgotten_with_the_function_and_the_texts_kept() -> None:
    f = gc.compile([x], gc.sin(x))
    file = f._program.function.running.python.file
    assert file in linecache.cache
    python_code.cache_clear()
    assert file in linecache.cache
    del f
    collector.collect()
    assert file not in linecache.cache


def test_threads_share_a_function() -> None:
    y = gc.tanh(gc.dot(x, w, dim="col"))
    f = gc.compile([x, w], [y, gc.grad((y * y).sum(), x)])
    inputs = [np.random.default_rng(i).normal(size=(100 + i % 3, 3)) for i in range(8)]
    expected = [f(a, W) for a in inputs]
    wrong = []

    def work(i: int) -> None:
        for _ in range(200):
            found = f(inputs[i], W)
            if not all(map(np.array_equal, found, expected[i])):
                wrong.append(i)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert not wrong


def test_pickled_functions_compile_again() -> None:
    f = gc.compile([[x], {"w": w}], {"a": (gc.dot(x, w, dim="col"), [x])})
    for g in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        value = g([X], {"w": W})
        np.testing.assert_array_equal(value["a"][0], X @ W)
        assert g.source == f.source


def test_no_warning_and_no_state_escapes() -> None:
    state = np.geterr()
    value = gc.compile([x], [gc.log(x - 5), 1 / (x - x), gc.exp(1000 * x)])(X)
    assert np.isnan(value[0]).any()
    assert np.geterr() == state


def test_arguments_by_name_and_nested() -> None:
    f = gc.compile([x, {"deep": [w]}], x * w)
    np.testing.assert_array_equal(f(X, {"deep": [W]}), X * W)
    np.testing.assert_array_equal(f(w=W, x=X), X * W)
    with pytest.raises(gc.GraphTypeError, match="must be a dict"):
        f(X, W)


def test_inputs_are_checked_at_compile() -> None:
    with pytest.raises(gc.GraphValueError, match="not among the inputs"):
        gc.compile([x], x * w)
    with pytest.raises(gc.GraphValueError, match="two inputs are named 'x'"):
        gc.compile([x, gc.tensor("x", {"k": 2})], x)
    with pytest.raises(gc.GraphTypeError, match="is a constant, not an input"):
        gc.compile([x, gc.constant(1.0)], x + 1)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_choice_of_zero_is_exact_to_the_bit(dtype: str) -> None:
    values = np.array([1.0, -0.0, np.nan, np.inf, -3.0, np.nan], dtype)
    mask = np.array([True, False, False, False, False, True])
    x, m = gc.tensor("x", {"row": None}, dtype=dtype), gc.tensor("m", {"row": None}, dtype="bool")
    f = gc.compile([x, m], [gc.where(m, 0.0, x), gc.where(m, x, 0.0), gc.where(m, -0.0, x)])
    zero = np.zeros(6, dtype)
    wanted = [np.where(mask, a, b) for a, b in ((zero, values), (values, zero), (-zero, values))]
    for found, right in zip(f(values, mask), wanted, strict=True):
        assert found.tobytes() == right.tobytes()


def test_an_output_in_another_shape_is_not_copied() -> None:
    y = gc.exp(x)
    flat = y.stack(all=("row", "col"))
    for outputs, copies in (([flat], 0), ([flat, y], 1), ([y, flat, flat], 2), ([flat.T, y.T], 1)):
        f = gc.compile([x], outputs)
        assert f.source.count("array(") == copies, f.source
        results = f(X)
        for i, a in enumerate(results):
            assert a.flags.writeable
            assert not any(np.shares_memory(a, b) for b in [*results[i + 1 :], *f(X)])
        np.testing.assert_allclose(results[0].ravel(), np.exp(X).ravel())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("many", [0, 1, 2, 50])
def test_values_at_repeated_positions_are_added(dtype: str, many: int) -> None:
    """Rows or columns of a matrix, single values, and places of two axes; from the end as well."""
    rng = np.random.default_rng(many)
    sizes = {"row": None, "col": 3}
    start = gc.tensor("start", sizes, dtype=dtype)
    u = gc.tensor("u", {"new": "n", "col": 3}, dtype=dtype)
    v = gc.tensor("v", {"new": "n", "row": "row"}, dtype=dtype)
    i, j = (gc.tensor(name, {"new": "n"}, dtype="int64") for name in "ij")
    s = gc.zeros_like(start)
    of_all = {
        "rows": s.at[{"row": i}].add(u),
        "cols": s.at[{"col": j}].add(v),
        "both": s.at[{"row": i, "col": j}].add(u.sum("col").astype(dtype)),
        "line": s.isel(col=0).at[{"row": i}].add(u.isel(col=1)),
    }
    f = gc.compile([start, u, v, i, j], of_all)
    values = np.round(10 * rng.normal(size=(many, 3))).astype(dtype)
    if many > 2 and dtype != "int64":
        values[0, 1], values[1, 0] = np.inf, np.nan
    wide = rng.integers(-9, 9, (many, 5)).astype(dtype)
    rows, cols = rng.integers(-5, 5, many), rng.integers(-3, 3, many)
    found = f(np.ones((5, 3), dtype), values, wide, rows, cols)
    expected = {name: np.zeros(found[name].shape, dtype) for name in found}
    np.add.at(expected["rows"], rows, values)
    np.add.at(expected["cols"], (slice(None), cols), wide.T)
    np.add.at(expected["both"], (rows, cols), values.sum(1, dtype=dtype))
    np.add.at(expected["line"], rows, values[:, 1])
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], name)
        assert array.dtype == dtype
    if many:
        for wrong in (5, -6, 2**40):
            with pytest.raises(gc.GraphIndexError, match=f"position {wrong} is outside"):
                f(np.ones((5, 3), dtype), values, wide, np.full(many, wrong), cols)


@np.errstate(invalid="ignore")
@pytest.mark.parametrize("steps", [1, 2, 64, 65, 100, 257])
@pytest.mark.parametrize("width", [(), (3,), (300,)])
def test_recurrences(steps: int, width: tuple[int, ...]) -> None:
    """Along each axis; a factor of 0 forgets the past, even an infinity."""
    random = np.random.default_rng(steps)
    a, b = random.uniform(-1, 1, (2, steps, *width))
    for infinite in (False, True):
        if infinite:
            b[steps // 3], a[steps // 2] = np.inf, 0
        wanted = np.array(b)
        for t in range(1, steps):
            wanted[t] += np.where(a[t] == 0, 0, a[t] * wanted[t - 1])
        for axis in range(1 + len(width)):
            given = (np.moveaxis(x, 0, axis) for x in (a, b))
            found = routines.recurrence(*given, axis)
            np.testing.assert_allclose(np.moveaxis(found, axis, 0), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "square", "negative"])
def test_single_integers_wrap_as_those_of_arrays(op: str) -> None:
    """They are Python's, which have no bounds."""
    function, several = getattr(gc, op), getattr(np, op)
    values = np.array([2**63 - 1, -(2**63), 2**62, 3 * 2**61, -5, 0, 2**40])
    given = [gc.tensor(name, {}, dtype="int64") for name in "ij"][: several.nin]
    f = gc.compile(given, function(*given) + 0 * given[0])
    for x in values:
        for y in values:
            xs = [x, y][: several.nin]
            assert f(*xs) == several(*map(np.atleast_1d, xs))[0]


@pytest.mark.parametrize("cells", [1, 3])
def test_a_gradient_that_is_one_number_along_a_dim(cells: int) -> None:
    x = gc.tensor("x", {"row": None, "cell": cells})
    y = gc.sin(x.isel(cell=0).sum("row"))
    given = np.arange(2.0 * cells).reshape(2, cells)
    wanted = np.zeros((2, cells))
    wanted[:, 0] = np.cos(given[:, 0].sum())
    np.testing.assert_allclose(gc.compile([x], gc.grad(y, x))(given), wanted)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_determinants_by_shared_factors_keep_their_dtype(dtype: str) -> None:
    a, b = gc.tensor("a", {"n": 3, "m": 3}, dtype=dtype), gc.tensor("b", {"n": 3}, dtype=dtype)
    det, (sign, log) = gc.linalg.det(a, dims=("n", "m")), gc.linalg.slogdet(a, dims=("n", "m"))
    outputs = [det, sign, log, gc.linalg.solve(a, b, dims=("n", "m"))]
    f = gc.compile([a, b], outputs)
    found = f(np.eye(3, dtype=dtype), np.ones(3, dtype))
    assert [y.dtype for y in found] == [y.dtype for y in outputs]
