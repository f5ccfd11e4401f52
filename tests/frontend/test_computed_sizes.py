"""Sizes that a program computes: masks, distinct values, repeats, and integers as sizes."""

from __future__ import annotations

import gc as memory
import pickle
import runpy
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphcore as gc
from graphcore.ir.graph import Graph
from graphcore.ir.names import Computed

X, T = gc.tensor("x", {"row": None}), gc.tensor("t", {"row": None, "col": None})
M, K = (gc.tensor(name, {"row": None}, dtype="bool") for name in "mk")
C = gc.tensor("c", {"row": None}, dtype="int64")
INPUTS = [X, T, M, K, C]
RANDOM = np.random.default_rng(0)
ROW, TABLE = np.array([3.0, np.nan, 1.0, 3.0, 2.0, np.nan]), RANDOM.normal(size=(6, 3))
TABLE[1, 1], TABLE[4] = np.nan, np.nan
MASK = np.array([True, False, True, True, False, True])
OTHER = np.array([False, True, True, True, False, True])
COUNTS = np.array([1, 0, 2, 0, 3, 1])
VALUES = {"x": ROW, "t": TABLE, "m": MASK, "k": OTHER, "c": COUNTS}
EMPTY = {name: value[:0] for name, value in VALUES.items()}
NONE = VALUES | {
    "x": ROW * 0,
    "t": TABLE * np.nan,
    "m": MASK & False,
    "k": MASK & False,
    "c": COUNTS * 0,
}
EVERY = VALUES | {"m": MASK | True, "k": MASK | True}
CASES = {"some": VALUES, "empty": EMPTY, "none": NONE, "every": EVERY}


def kept_rows(t: Any, k: Any) -> Any:
    return t[~np.isnan(t).any(axis=1)] if k == "any" else t[~np.isnan(t).all(axis=1)]


def dropped(t: Any) -> Any:
    rows, cols = (t > 0.2).any(axis=1), (t > 0.2).any(axis=0)
    return np.where(t > 0.2, t, np.nan)[rows][:, cols]


def updated(x: Any, m: Any, how: Callable[[Any, Any], Any]) -> Any:
    new = x.copy()
    new[m] = how(new[m], np.arange(m.sum()))
    return new


PROGRAMS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "mask": (X[M], lambda x, t, m, k, c: x[m]),
    "rows": (T.isel(row=M), lambda x, t, m, k, c: t[m]),
    "mask of a mask": (X[M][X[M] > 1], lambda x, t, m, k, c: x[m][x[m] > 1]),
    "two masks": (
        T.isel(row=M, col=(T > 0).any("row")),
        lambda x, t, m, k, c: t[m][:, (t > 0).any(0)],
    ),
    "nonzero": (
        gc.concat([*gc.nonzero(T > 0).values()], "axis"),
        lambda x, t, m, k, c: np.array(np.nonzero(t > 0)),
    ),
    "mask of two dims": (T[T > 0], lambda x, t, m, k, c: t[t > 0]),
    "elements": (T.isel(gc.nonzero(T > 0)), lambda x, t, m, k, c: t[t > 0]),
    "unique": (gc.unique(C), lambda x, t, m, k, c: np.unique(c)),
    "inverse": (
        gc.unique_all(X).inverse_indices,
        lambda x, t, m, k, c: np.unique(x, return_inverse=True)[1],
    ),
    "counts": (gc.unique_all(C).counts, lambda x, t, m, k, c: np.unique(c, return_counts=True)[1]),
    "dropna": (T.dropna("row"), lambda x, t, m, k, c: kept_rows(t, "any")),
    "dropna all": (T.dropna("row", how="all"), lambda x, t, m, k, c: kept_rows(t, "all")),
    "dropna thresh": (
        T.dropna("row", thresh=2),
        lambda x, t, m, k, c: t[(~np.isnan(t)).sum(axis=1) >= 2],
    ),
    "where": (T.where(T > 0.2, drop=True), lambda x, t, m, k, c: dropped(t)),
    "where else": (X.where(M, C, drop=True), lambda x, t, m, k, c: x[m]),
    "repeat": (gc.repeat(X, C, "row"), lambda x, t, m, k, c: np.repeat(x, c)),
    "at set": (X.at[M].set(7), lambda x, t, m, k, c: np.where(m, 7, x)),
    "at get": (X.at[M].get(), lambda x, t, m, k, c: x[m]),
    "at add": (
        X.at[M].add(gc.arange(X[M].sizes["row"], dim="row")),
        lambda x, t, m, k, c: updated(x, m, lambda old, new: old + new),
    ),
    "at set each": (
        X.at[M].set(gc.arange(M.sum(), dim="row")),
        lambda x, t, m, k, c: updated(x, m, lambda old, new: new),
    ),
    "zeros": (gc.zeros({"a": 2 * C.sum() + 1}), lambda x, t, m, k, c: np.zeros(2 * c.sum() + 1)),
    "arange": (gc.arange(M.sum(), dim="a"), lambda x, t, m, k, c: np.arange(m.sum())),
    "expand_dims": (
        C.sum().expand_dims(a=C.sum()),
        lambda x, t, m, k, c: np.full(c.sum(), c.sum()),
    ),
    "unstack": (
        gc.ones({"z": 2 * (M.sum() + 1)}).unstack(z={"a": M.sum() + 1, "b": None}),
        lambda x, t, m, k, c: np.ones((m.sum() + 1, 2)),
    ),
    "head": (X.head(row=C.sum() - C.sum()), lambda x, t, m, k, c: x[:0]),
    "scan": (
        gc.scan(lambda s, x: (s + x, s), 0.0, C[M] * 1.0, dim="row")[1],
        lambda x, t, m, k, c: np.cumsum(c[m]) - c[m] * 1.0,
    ),
    "length": (
        gc.scan(lambda s, _: (s + 1, s), 0, length=C.sum())[1],
        lambda x, t, m, k, c: np.arange(c.sum()),
    ),
    "a loop reads it": (
        gc.scan(lambda s, x: (s + C[M].sum() * x, None), 0, C, dim="row")[0],
        lambda x, t, m, k, c: c[m].sum() * c.sum(),
    ),
    "no element is read": (X[M] * 0 + 1, lambda x, t, m, k, c: x[m] * 0 + 1),
    "only the size": (X[M].sizes["row"] * C, lambda x, t, m, k, c: m.sum() * c),
}


@pytest.mark.parametrize("native", [False, True])
def test_values_of_all_programs(native: bool) -> None:
    f = gc.compile(INPUTS, {name: y for name, (y, _) in PROGRAMS.items()}, native=native)
    for case, values in CASES.items():
        found = f(**values)
        for name, (_, reference) in PROGRAMS.items():
            np.testing.assert_allclose(
                found[name], reference(**values), rtol=1e-12, err_msg=f"{name}, {case}"
            )


def test_a_program_that_never_reads_its_mask_has_its_size() -> None:
    for y in (
        gc.zeros({"a": M.sum() + 1}),
        gc.ones_like(X[M]),
        gc.zeros({"a": X[M].sizes["row"] + 1}),
    ):
        assert len(gc.compile([X, M], y, native=False)(ROW, MASK)) in (4, 5)


@pytest.mark.parametrize("native", [False, True])
def test_derivatives_of_both_modes_and_orders(native: bool) -> None:
    y = X[M]
    z = (gc.sin(y) * y).sum() ** 2 + (gc.repeat(X, C, "row") ** 3).sum()
    z = z + (X.at[K].set(gc.tanh(X[K])) ** 2).sum()
    g = gc.grad(z, X)
    twice = gc.grad((g * gc.arange(X.sizes["row"], dim="row")).sum(), X)
    forward = gc.pushforward(g, X, gc.arange(X.sizes["row"], dim="row") * 1.0)
    f = gc.compile([X, M, K, C], [z, g, twice, forward], native=native)
    for values in CASES.values():
        x = np.linspace(0.5, 1.5, len(values["x"]))
        args = values["m"], values["k"], values["c"]
        _, slope, second, pushed = f(x, *args)
        np.testing.assert_allclose(second, pushed, rtol=1e-11)
        for i in range(len(x)):
            step = 1e-6 * np.eye(len(x))[i]
            up, down = f(x + step, *args), f(x - step, *args)
            np.testing.assert_allclose(slope[i], (up[0] - down[0]) / 2e-6, rtol=1e-6, atol=1e-6)
            difference = (up[1] - down[1]) / 2e-6 @ np.arange(len(x))
            np.testing.assert_allclose(second[i], difference, rtol=1e-5, atol=1e-5)
    assert gc.check_grads((gc.sin(y) ** 2).sum(), X, {X: x, M: MASK}).error < 1e-6


def test_other_derivatives() -> None:
    many = gc.tensor("many", {"batch": None, "row": None})
    f = gc.compile([many, M], gc.vectorize((X[M] ** 2).sum(), {X: many}), native=False)
    np.testing.assert_allclose(f(TABLE[2:4].T, MASK[:2]), TABLE[2] ** 2)
    j, h = gc.jacobian(gc.sin(X[M]), X), gc.hessian((X[M] ** 3).sum(), X)
    x = np.arange(6.0)
    j, h = gc.compile([X, M], [j, h], native=False)(x, MASK)
    np.testing.assert_allclose(j, np.diag(np.cos(x))[MASK])
    np.testing.assert_allclose(h, np.diag(np.where(MASK, 6 * x, 0)))


def test_sizes_are_equal_for_equal_masks_and_named() -> None:
    assert str(X[M]) == "<Tensor: f64[row=kept]>"
    assert X[M].sizes["row"] is X.isel(row=M).sizes["row"] is C[M].sizes["row"]
    assert X[M].sizes["row"] is not X[K].sizes["row"]
    assert (X[M] + C[M]).node.needs == ()
    assert gc.zeros({"a": M.sum() + 1}).sizes["a"] is X[M].sizes["row"] + 1
    named = X.isel(row=M, size="kept rows")
    assert str(named) == "<Tensor: f64[row=kept rows]>"
    assert named.sizes["row"] is C.isel({"row": M}, size="kept rows").sizes["row"]
    for y in (
        X.where(M, drop=True, size="some"),
        gc.nonzero(M, size="some")["row"],
        gc.unique(C, size="some"),
        gc.repeat(X, C, "row", size="some"),
        X.dropna("row", size="some"),
    ):
        assert str(y.shape) == "(some,)"
    assert "kept rows" in str(gc.compile([X, M], named).stages["optimized"])
    held = gc.tensor("held", {"size": None})
    assert held.isel(size=0).dims == ()
    assert str(held.isel({"size": held > 0}, size="some").shape) == "(some,)"


def test_sizes_that_are_fixed() -> None:
    f = gc.compile(
        [X, M, C],
        [
            X.isel(row=M, size=5),
            X.isel(row=M, size=3),
            gc.repeat(X, C, "row", size=9),
            X.dropna("row", size=2),
            X.where(M, drop=True, size={"row": 2}),
        ],
        native=False,
    )
    a, b, c, d, e = f(ROW, MASK, COUNTS)
    np.testing.assert_array_equal(a, ROW[[0, 2, 3, 5, 0]])
    np.testing.assert_array_equal(b, ROW[[0, 2, 3]])
    np.testing.assert_array_equal(c, [3, 1, 1, 2, 2, 2, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(d, [3, 1])
    np.testing.assert_array_equal(e, [3, 1])
    loop = gc.scan(lambda s, x: (s + C.isel(row=x < C, size=2)[0], None), 0, C, dim="row")[0]
    assert gc.compile([C], loop, native=False)(COUNTS) == 10


@pytest.mark.parametrize("native", [False, True])
def test_positions_in_a_batch_come_last(native: bool) -> None:
    at = gc.nonzero(T > 0, 2, dim="row", fill_value=-1, name="k")["row"]
    assert at.dims == ("col", "k")
    table = np.array([[1.0, -1.0, 0.0], [2.0, 0.0, 3.0], [4.0, -1.0, 0.0]])
    found = gc.compile([T], at, native=native)(table)
    np.testing.assert_array_equal(found, [[0, 1], [-1, -1], [1, -1]])


@pytest.mark.parametrize("native", [False, True])
def test_positions_of_all_masks(native: bool) -> None:
    many = gc.tensor("many", {"batch": None, "row": None}, dtype="bool")
    fixed = [gc.nonzero(M, size=size)["row"] for size in (0, 2, 4)]
    batched = gc.vectorize(fixed[1], {M: many})
    f = gc.compile([M, many], [gc.nonzero(M)["row"], *fixed, batched], native=native)
    for n in range(5):
        masks = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
        for i, mask in enumerate(masks):
            every = np.flatnonzero(mask)
            found, *others, rows = f(mask, masks)
            np.testing.assert_array_equal(found, every)
            for size, other in zip((0, 2, 4), others, strict=True):
                lacking = max(size - len(every), 0)
                np.testing.assert_array_equal(other, [*every[:size], *[0] * lacking])
            np.testing.assert_array_equal(rows[i], others[1])


@pytest.mark.parametrize("native", [False, True])
def test_sizes_that_must_agree_are_compared(native: bool) -> None:
    kept = gc.tensor("kept", {"row": "n"})
    f = gc.compile([X, M, K, kept], [X[M] + X[K], kept * X[M]], native=native)
    np.testing.assert_array_equal(f(ROW, MASK, OTHER, np.ones(4))[0], ROW[MASK] + ROW[OTHER])
    said = "needs kept == kept for dim 'row' .computed at test.*, but they are 4 and 2"
    with pytest.raises(gc.GraphValueError, match=said):
        f(ROW, MASK, ~OTHER, np.ones(4))
    with pytest.raises(gc.GraphValueError, match="they are 3 and 4"):
        f(ROW, MASK, OTHER, np.ones(3))
    total = gc.compile([X, M, K], (X[M] + X[K]).sum(), native=native)
    with pytest.raises(gc.GraphValueError, match="but they are 4 and 2"):
        total(ROW, MASK, ~OTHER)


@pytest.mark.parametrize("native", [False, True])
def test_a_mask_of_several_dims_has_their_sizes(native: bool) -> None:
    """Of another size, its positions would be those of other elements."""
    f = gc.compile([T], T[gc.diff(T, "col") > 0], native=native)
    np.testing.assert_array_equal(f(np.zeros((2, 0))), [])
    with pytest.raises(gc.GraphValueError, match="for dim 'col', but they are 3 and 2"):
        f(np.array([[1.0, 2.0, 1.0]]))


def test_what_stands_elsewhere_may_be_a_number_or_have_fewer_dims() -> None:
    kept, row = T.where(T > 0, 0.5, drop=True), T.where(T > 0, X, drop=True)
    table = np.array([[1.0, -1.0], [-2.0, -3.0], [-4.0, 5.0]])
    found = gc.compile([T, X], [kept, row])(table, [7.0, 8.0, 9.0])
    np.testing.assert_array_equal(found[0], [[1.0, 0.5], [0.5, 5.0]])
    np.testing.assert_array_equal(found[1], [[1.0, 7.0], [9.0, 5.0]])


def test_views_files_and_labels(tmp_path: Path) -> None:
    y = X.isel(row=M, size="kept rows") + X[K]
    outputs = [y, gc.grad((X[M] ** 2).sum(), X), gc.zeros({"a": C.sum() + X[M].sizes["row"]})]
    for native in (False, True, None):
        f = gc.compile([X, M, K, C], outputs, native=native)
        expected = f(ROW, MASK, OTHER, COUNTS)
        stages = [f.stages[name] for name in ("named", "lowered", "optimized", "scheduled")]
        assert [Graph.from_json(graph.to_json()) for graph in stages] == stages
        assert pickle.loads(pickle.dumps(stages)) == stages
        assert "where kept rows == kept" in str(f.stages["optimized"])
        f.profile(ROW, MASK, OTHER, COUNTS)
        f.trace(ROW, MASK, OTHER, COUNTS)
        f.check(ROW, MASK, OTHER, COUNTS)
        f.to_html(tmp_path / "page.html")
        gc.save(f, tmp_path / "saved.gc")
        f.export(tmp_path / "exported.py")
        program = runpy.run_path(str(tmp_path / "exported.py"))["program"]
        for again in (pickle.loads(pickle.dumps(f)), gc.load(tmp_path / "saved.gc"), program):
            for one, other in zip(again(ROW, MASK, OTHER, COUNTS), expected, strict=True):
                np.testing.assert_array_equal(one, other)
            with pytest.raises(ValueError, match="needs kept rows == kept for dim 'row'"):
                again(ROW, MASK, ~OTHER, COUNTS)
    xarray = pytest.importorskip("xarray")
    labelled = xarray.DataArray(ROW, {"row": list("abcdef")})
    g = gc.compile([X, M], X[M], returns="xarray")
    for h in (g, pickle.loads(pickle.dumps(g))):
        xarray.testing.assert_identical(h(labelled, MASK), labelled[MASK])


def of_own_values() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
    """A size that is computed from a constant, and a function that uses it in many ways."""
    x, kept = gc.tensor("x", {"row": None}), np.arange(9.0)
    y = x[gc.constant(kept, "row") < x.sum()]
    made = [y, gc.unique(y), gc.concat([y, y], "row").rolling(row=2).max(), y.pad(row=2)]
    made += [
        gc.repeat(x, (x > 1).astype(int), "row"),
        gc.scan(lambda s, v: (s + v, s), 0.0, y, dim="row")[1],
    ]
    z = sum((v**2).sum() for v in made)
    f = gc.compile([x], [z, gc.grad(z, x), *made])
    f(np.arange(9.0))
    f.check(np.arange(9.0))
    assert str(f.stages["optimized"])
    (size,) = y.sizes["row"].unknowns
    assert isinstance(size, Computed)
    return weakref.ref(size.node), weakref.ref(f)


def test_nothing_keeps_a_size_that_no_program_has() -> None:
    """Tables of results held sizes, and these the nodes and arrays they were computed from."""
    alive = [*of_own_values(), *of_own_values()]
    memory.collect()
    assert [there() for there in alive] == [None] * 4


def test_a_tensor_keeps_its_size_in_another_process() -> None:
    code = "import pickle, sys, numpy; y = pickle.load(sys.stdin.buffer); "
    code += "print(y, y.eval(x=[1.0, 2.0, 3.0], m=[True, False, True]))"
    y = gc.zeros({"a": X[M].sizes["row"]}) + X[M].sum()
    run = [sys.executable, "-c", code]
    found = subprocess.run(run, input=pickle.dumps(y), capture_output=True, check=True).stdout
    assert found.decode().strip() == "<Tensor: f64[a=kept]> [4. 4.]"


def test_inputs_that_have_a_computed_size() -> None:
    weight = gc.tensor("weight", {"row": X[M].sizes["row"]})
    assert gc.compile([X, M, weight], (X[M] * weight).sum())(COUNTS, MASK, np.ones(4)) == 4


def test_inner_inputs_and_functions() -> None:
    shifted = X + 1
    y = shifted[shifted > 2.5]
    np.testing.assert_array_equal(gc.evaluate(y, {shifted: [1.0, 3.0]}), [3.0])
    np.testing.assert_array_equal(y.eval(x=[1.0, 3.0, 5.0]), [4.0, 6.0])
    np.testing.assert_array_equal(gc.zeros({"a": M.sum()}).eval(m=MASK), np.zeros(4))

    @gc.function(x={"row": None})
    def positive(x: gc.Tensor) -> gc.Tensor:
        return x[x > 0]

    np.testing.assert_array_equal(positive(np.array([1.0, -1.0, 2.0])), [1.0, 2.0])
