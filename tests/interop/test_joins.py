"""Labels of one dim that differ between arguments and constants: refused, or joined as asked."""

from __future__ import annotations

import gc as memory
import pickle
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray

import graphcore as gc
from graphcore.backends.label_checks import COMPARED
from graphcore.ir.literal import Literal
from graphcore.ops import leaf

DAYS = pd.date_range("2000-01-01", periods=3)


def along(labels: Any, values: Any = (1.0, 2.0, 3.0), **more: Any) -> xarray.DataArray:
    """An array along `t` with these labels."""
    return xarray.DataArray(np.asarray(values), {"t": labels, **more}, ["t"])


def inputs(*names: str) -> list[gc.Tensor]:
    return [gc.tensor(name, {"t": None}) for name in names]


DIFFER = {
    "another order": ([0, 1, 2], [2, 1, 0]),
    "the next year": ([0, 1, 2], [1, 2, 3]),
    "one label": ([0, 1, 2], [0, 1, 5]),
    "strings": (["p", "q", "r"], ["p", "q", "s"]),
    "strings in another order": (["p", "q", "r"], ["q", "p", "r"]),
    "strings of numbers": ([0, 1, 2], ["0", "1", "2"]),
    "dates": (DAYS, DAYS + pd.Timedelta("1D")),
    "half a step": ([0.0, 1.0, 2.0], [0.5, 1.5, 2.5]),
    "rounded": ([0.1, 0.2, 0.3], [0.1, 0.2, 0.1 + 0.2]),
    "nan and a number": ([0.0, np.nan, 2.0], [0.0, 1.0, 2.0]),
    "nan elsewhere": ([np.nan, 1.0, 2.0], [0.0, 1.0, np.nan]),
    "repeated": ([0, 0, 1], [0, 1, 1]),
    "time zones": (DAYS.tz_localize("UTC"), DAYS),
    "levels": (pd.MultiIndex.from_arrays([[0, 0, 1], [0, 1, 0]], names=["a", "b"]),
               pd.MultiIndex.from_arrays([[0, 0, 1], [1, 0, 0]], names=["a", "b"])),
}  # fmt: skip
AGREE = {
    "integers and floats": ([0, 1, 2], [0.0, 1.0, 2.0]),
    "nan": ([0.0, np.nan, 2.0], [0.0, np.nan, 2.0]),
    "dates": (DAYS, pd.date_range("2000-01-01", periods=3)),
    "dates of another resolution": (DAYS, DAYS.as_unit("s")),
    "strings": (["p", "q", "r"], np.array(["p", "q", "r"], object)),
    "dates of a time zone": (DAYS.tz_localize("UTC"), DAYS.tz_localize("UTC")),
    "no labels": ([0, 1, 2], None),
}


def labelled(labels: Any, values: Any) -> Any:
    if labels is None:
        return xarray.DataArray(np.asarray(values), dims=["t"])
    if isinstance(labels, pd.MultiIndex):
        coords = xarray.Coordinates.from_pandas_multiindex(labels, "t")
        return xarray.DataArray(np.asarray(values), coords, ["t"])
    return along(labels, values)


def pair(case: tuple[Any, Any]) -> tuple[Any, Any]:
    left, right = case
    return labelled(left, [1.0, 2.0, 3.0]), labelled(right, [10.0, 20.0, 30.0])


@pytest.mark.parametrize("name", DIFFER)
def test_labels_that_differ_are_refused_or_joined(name: str) -> None:
    a, b = pair(DIFFER[name])
    x, y = inputs("x", "y")
    with pytest.raises(gc.GraphValueError, match=r"labels of dim 't' differ(?s:.)*xr\.align"):
        gc.compile([x, y], x + y)(a, b)
    by_position = gc.compile([x, y], x + y, returns="xarray", join="override")(a, b)
    np.testing.assert_array_equal(by_position, a.values + b.values)
    assert by_position.indexes["t"].equals(a.indexes["t"])
    inner = gc.compile([x, y], x + y, returns="xarray", join="inner")
    if not a.indexes["t"].is_unique:
        with pytest.raises(gc.GraphValueError, match="some are repeated"):
            inner(a, b)
        return
    if name == "time zones":  # which xarray does not align
        assert inner(a, b).size == 0
        return
    left, right = xarray.align(a, b, join="inner")
    found = inner(a, b)
    np.testing.assert_array_equal(found, (left + right).values)
    assert found.indexes["t"].equals(left.indexes["t"])


@pytest.mark.parametrize("name", AGREE)
def test_labels_that_are_equal_agree(name: str) -> None:
    a, b = pair(AGREE[name])
    x, y = inputs("x", "y")
    for program, given in (((x, y), (a, b)), ((x,), (a,))):
        other = y if len(given) == 2 else gc.constant(b)
        found = gc.compile([*program], x + other, returns="xarray")(*given)
        np.testing.assert_array_equal(found, a.values + b.values)
        assert found.indexes["t"].equals(a.indexes["t"])


A, B = along([0, 1, 2]), along([2, 1, 0], [10.0, 20.0, 30.0])


def twice(x: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
    return 2 * x + y


def calls(path: Path) -> dict[str, Callable[..., Any]]:
    """All ways to call a program of two arrays."""
    x, y = inputs("x", "y")
    f = gc.compile([x, y], twice(x, y))
    gc.save(f, path / "f.gc")
    tree = gc.compile([{"x": x, "y": [y]}], twice(x, y))
    return {
        "a call": f,
        "by name": lambda a, b: f(y=b, x=a),
        "NumPy calls": gc.compile([x, y], twice(x, y), native=False),
        "DataArrays": gc.compile([x, y], twice(x, y), returns="xarray"),
        "a tree": lambda a, b: tree({"x": a, "y": [b]}),
        "a Dataset": lambda a, b: f(**{"x": a, "y": b}),
        "check": f.check,
        "trace": f.trace,
        "pickled": pickle.loads(pickle.dumps(f)),
        "saved": gc.load(path / "f.gc"),
        "a function": gc.function(x=("t",), y=("t",))(twice),
        "evaluate": lambda a, b: gc.evaluate(twice(x, y), {x: a, y: b}),
        "eval": lambda a, b: twice(x, y).eval(x=a, y=b),
        "an inner tensor": lambda a, b: gc.compile([h := 2 * x, y], h + y)(a, b),
        "a constant": lambda a, b: gc.compile([x], twice(x, gc.constant(b)))(a),
        "a DataArray": lambda a, b: gc.compile([x], twice(x, b))(a),
        "two constants": lambda a, b: gc.constant(a) + gc.constant(b),
        "constants that meet later": lambda a, b: gc.compile([], 2 * gc.constant(a) + b),
        "a constant in a loop": lambda a, b: gc.compile([x], gc.fori_loop(
            0, 2, lambda i, c: c + gc.constant(b), x))(a),
        "a gradient": lambda a, b: gc.compile([x, y], gc.grad((x * y).sum(), x))(a, b),
    }  # fmt: skip


def test_every_way_to_call_compares_labels(tmp_path: Path) -> None:
    for call in calls(tmp_path).values():
        call(A, A)
        call(A, B.drop_vars("t"))
        with pytest.raises(gc.GraphValueError, match="labels of dim 't' differ"):
            call(A, B)


@pytest.mark.slow
def test_machine_code_and_profiles_compare_labels() -> None:
    x, y = inputs("x", "y")
    f = gc.compile([x, y], twice(x, y), native=True)
    for call in (f, f.profile):
        call(A, A)
        with pytest.raises(gc.GraphValueError, match="labels of dim 't' differ"):
            call(A, B)


def test_exported_programs_compare_labels(tmp_path: Path) -> None:
    x, y = inputs("x", "y")
    for number, output in enumerate((x + y, x + y + gc.constant(A))):
        gc.compile([x, y], output).export(tmp_path / f"f{number}.py")
        run = runpy.run_path(str(tmp_path / f"f{number}.py"))["program"]
        np.testing.assert_array_equal(run(A, A), (2 + number) * A.values)
        for wrong in ((A, B), (B, A), *[(B, B)] * number):
            with pytest.raises(ValueError, match="labels of dim 't' differ"):
                run(*wrong)


def test_the_refusal_names_who_has_which_labels() -> None:
    x, y = inputs("x", "y")
    with pytest.raises(gc.GraphValueError) as error:
        gc.compile([x, y], x + y)(along(range(3)), along([0, 1, 7]))
    assert "input 'x' has ... 1, 2 (3 labels)" in str(error.value)
    assert "input 'y' has ... 1, 7 (3 labels)" in str(error.value)


def test_a_dim_with_a_size_of_another_name_is_another_dim() -> None:
    x, more = gc.tensor("x", {"t": None}), gc.tensor("more", {"t": "t_more"})
    f = gc.compile([x, more], gc.concat([x, more], "t"), returns="xarray")
    xarray.testing.assert_identical(f(A, B), xarray.concat([A, B], "t"))


def test_labels_of_sizes_that_differ_are_not_compared() -> None:
    x, y = gc.tensor("x", {"t": 3}), gc.tensor("y", {"t": 2})
    gc.compile([x, y], [x + 1, y + 1])(A, B[:2])


def test_inner_takes_what_all_have_in_the_order_of_the_first() -> None:
    x, y = inputs("x", "y")
    f = gc.compile([x, y], x + y, join="inner", returns="xarray")
    xarray.testing.assert_identical(f(A, B[:2]), (A + B[:2]).drop_attrs())
    assert f(A, along([7, 8, 9])).size == 0
    np.testing.assert_array_equal(f(A, A), 2 * A)
    with pytest.raises(gc.GraphValueError, match="dim 't' of input"):
        f(A, B[:2].drop_vars("t"))  # without labels it must have the size that is left
    np.testing.assert_array_equal(gc.compile([x], x + A, join="inner")(B), B.values[::-1] + A)


def test_inner_is_refused_where_elements_of_a_declared_size_would_be_left_out() -> None:
    x, y = gc.tensor("x", {"t": 3}), gc.tensor("y", {"t": None})
    f = gc.compile([x, y], x + y, join="inner")
    np.testing.assert_array_equal(f(A, B), A.values + B.values[::-1])
    for given in (B[:2], along([1, 2, 3])):
        with pytest.raises(gc.GraphValueError, match="its size is declared"):
            f(A, given)
    with pytest.raises(gc.GraphValueError, match="its size is declared"):
        gc.compile([y], y + A, join="inner")(along([1, 2, 3]))


def test_override_gives_the_labels_of_the_first() -> None:
    x, y = inputs("x", "y")
    f = gc.compile([x, y], {"both": x + y, "second": 2 * y}, join="override", returns="xarray")
    found = f(A, B)
    assert all(found[name].coords["t"].equals(A.coords["t"]) for name in found)
    assert list(f(A.values, B)["both"].coords["t"]) == [2, 1, 0]
    late = gc.compile([x], 2 * gc.constant(A) + x, join="override", returns="xarray")
    assert late(B).coords["t"].values.tolist() == [2, 1, 0]


def test_the_option_is_kept(tmp_path: Path) -> None:
    x, y = inputs("x", "y")
    f = gc.compile([x, y], x + y, join="override")
    gc.save(f, tmp_path / "f.gc")
    for again in (pickle.loads(pickle.dumps(f)), gc.load(tmp_path / "f.gc")):
        np.testing.assert_array_equal(again(A, B), [11.0, 22.0, 33.0])


def test_labels_are_compared_once_and_forgotten_with_their_index() -> None:
    x, y = inputs("x", "y")
    f = gc.compile([x, y], x + y)
    before = len(COMPARED.tokens)
    a, b = along([4, 5, 6]), along([4, 5, 6])
    f(a, b)
    assert len(COMPARED.tokens) == before + 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f._boundary.labels, "compare", None)  # not called again
        f(a, b)
        f(b, 2 * a)
        f(a.values, b)
    del a, b
    memory.collect()
    assert len(COMPARED.tokens) == before


def test_a_call_of_arrays_looks_at_no_labels() -> None:
    x, y = inputs("x", "y")
    f = gc.compile([x, y], x + y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphcore.backends.label_checks.LabelChecks.agree", None)
        f(np.ones(3), np.ones(3))
    alone = gc.compile([x], x + 1)
    assert "labelled" in f._boundary.source
    assert "labelled" not in alone._boundary.source


@pytest.mark.parametrize(
    "labels",
    [
        (("t", ("t",), Literal([1, 2])),),
        (("t", ("row",), Literal([1, 2, 3])),),
        (("t", ("t",), ("U1", (3,), ("p", "q"))),),
        (("t", ("t",), ("U1", (3,), ("p", "q", 1))),),
        (("t", ("t",), ("U9999999999", (3,), ("p", "q", "r"))),),
        (("t", ("t",), ("M8[x]", (3,), Literal([1, 2, 3]))),),
        (("t", ("t",), ("f8", (3,), Literal([1, 2, 3]))),),
        (("t", ("t",), ("levels", (3,), (("a", ("t",), Literal([1])),))),),
        (("t", ("t",), 3),),
        ((1, 2),),
        ("t",),
    ],
)
def test_labels_that_are_none_of_an_array_are_refused(labels: Any) -> None:
    """As attrs in a file that no one wrote may be."""
    with pytest.raises(gc.GraphError, match="labels of other dims"):
        leaf.constant(value=Literal(np.ones(3)), dims=("t",), labels=labels)
