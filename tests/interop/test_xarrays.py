"""DataArrays back from a compiled function, with the coordinates that come through."""

from __future__ import annotations

import pickle
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray

import graphcore as gc

ROWS, COLS = ["p", "q", "r"], [10.0, 20.0]


def data(dims: str = "row col", **coords: Any) -> xarray.DataArray:
    coords = {"row": ROWS, "col": COLS} | coords
    sizes = {"row": 3, "col": 2, "time": 4}
    values = np.random.default_rng(1).normal(size=[sizes[dim] for dim in dims.split()])
    own = {dim: coords[dim] for dim in dims.split() if coords.get(dim) is not None}
    return xarray.DataArray(values, own, dims.split(), name="measured", attrs={"unit": "m"})


def x(dims: str = "row col", name: str = "x") -> gc.Tensor:
    return gc.tensor(name, dims.split())


def coordinates(result: xarray.DataArray) -> dict[str, list[Any]]:
    return {str(name): coord.values.tolist() for name, coord in result.coords.items()}


def through(function: Any, *arguments: xarray.DataArray) -> dict[str, list[Any]]:
    """The coordinates of what a function makes of arguments."""
    inputs = [gc.tensor(f"x{i}", given.dims) for i, given in enumerate(arguments)]
    result = gc.compile(inputs, function(*inputs), returns="xarray")(*arguments)
    assert isinstance(result, xarray.DataArray)
    return coordinates(result)


BOTH = {"row": ROWS, "col": COLS}
KEEP = {
    "elementwise": (lambda x: gc.exp(x) + 1, BOTH),
    "a reduction": (lambda x: x.mean("row"), {"col": COLS}),
    "the last dim": (lambda x: x.sum(), {}),
    "running": (lambda x: x.cumsum("row"), BOTH),
    "softmax": (lambda x: gc.special.softmax(x, "col"), BOTH),
    "transpose": (lambda x: x.transpose("col", "row"), BOTH),
    "rename": (lambda x: x.rename(row="place"), {"place": ROWS, "col": COLS}),
    "swap": (lambda x: x.rename(row="col", col="row"), {"col": ROWS, "row": COLS}),
    "a new dim": (lambda x: x.expand_dims(copy=2), BOTH),
    "a whole slice": (lambda x: x[{"row": slice(None)}], BOTH),
    "a slice": (lambda x: x[{"row": slice(0, 2)}], {"row": ["p", "q"], "col": COLS}),
    "slices of slices": (lambda x: x[{"row": slice(1, None)}].tail(row=1),
                         {"row": ["r"], "col": COLS}),
    "reversed": (lambda x: x[{"row": slice(None, None, -1)}],
                 {"row": ["r", "q", "p"], "col": COLS}),
    "one place": (lambda x: x.isel(row=0), {"row": "p", "col": COLS}),
    "one place of a slice": (lambda x: x.rename(row="at").tail(at=2).isel(at=0) + 1,
                             {"at": "q", "col": COLS}),
    "the only place": (lambda x: x.isel(row=[1]).squeeze("row"), {"row": "q", "col": COLS}),
    "a place found": (lambda x: x.isel(row=x.isel(col=0).argmax("row")).sum("col"),
                      {"row": "r"}),
    "two places": (lambda x: x.isel(row=0) + x.isel(row=1), {"col": COLS}),
    "less one place": (lambda x: x - x.isel(row=0), BOTH),
    "one place in a branch": (lambda x: gc.cond(x.sum() > 0, lambda: x.isel(row=0),
                                                lambda: x.isel(row=1)), {"col": COLS}),
    "picked": (lambda x: x.isel(row=[2, 0, 2]), {"row": ["r", "p", "r"], "col": COLS}),
    "picked and renamed": (lambda x: x.isel(row=[2, 0]).rename(row="of"),
                           {"of": ["r", "p"], "col": COLS}),
    "picked by order": (lambda x: x.isel(row=x.isel(col=0).argsort("row")),
                        {"row": ["q", "p", "r"], "col": COLS}),
    "sorted": (lambda x: x.sort("row"), {"col": COLS}),
    "ranked": (lambda x: x.argsort("row"), {"col": COLS}),
    "rolled": (lambda x: x.roll(row=1), BOTH),
    "shifted": (lambda x: x.shift(row=1), BOTH),
    "padded": (lambda x: x.pad(col=1).isel(col=slice(1, -1)), BOTH),
    "differences": (lambda x: x.diff("row"), {"row": ["q", "r"], "col": COLS}),
    "differences of slices": (lambda x: x[{"row": slice(1, None)}] - x[{"row": slice(0, -1)}],
                              {"col": COLS}),
    "joined": (lambda x: gc.concat([x, x], "row"), {"row": ROWS + ROWS, "col": COLS}),
    "joined to numbers": (lambda x: gc.concat([gc.zeros({"col": 0}), x.mean("row")], "col"),
                          {"col": COLS}),
    "stacked": (lambda x: x.stack(all=("row", "col")),
                {"all": [(r, c) for r in ROWS for c in COLS],
                 "row": [r for r in ROWS for _ in COLS], "col": COLS * 3}),
    "windows": (lambda x: gc.windows(x, {"row": 2}, "lag").sum("lag"),
                {"row": ["q", "r"], "col": COLS}),
    "split": (lambda x: x.unstack(col={"a": 1, "b": 2}), {"row": ROWS}),
    "with itself reversed": (lambda x: x + x[{"row": slice(None, None, -1)}], {"col": COLS}),
    "places added to": (lambda x: x.at[{"row": [0, 2, 0]}].add(1.0), BOTH),
    "places set": (lambda x: x.at[{"row": 0}].set(0.0), BOTH),
    "several places set": (lambda x: x.at[{"row": slice(0, 2)}].add(x.isel(row=[0, 1])), BOTH),
    "a gradient": (lambda x: gc.grad((x**2).sum(), x), BOTH),
    "a gradient by what is inside": (lambda x: inner(x.rename(row="in")),
                                     {"in": ROWS, "col": COLS}),
    "a tangent": (lambda x: gc.pushforward(x.sum("row"), x, x), {"col": COLS}),
    "stop_gradient": (lambda x: gc.stop_gradient(x), BOTH),
    "searched": (lambda x: gc.searchsorted(x.sort("row"), x.rename(col="of"), "row"),
                 {"col": COLS, "row": ROWS, "of": COLS}),
}  # fmt: skip


def inner(x: gc.Tensor) -> gc.Tensor:
    y = gc.sin(x)
    return gc.grad((y * y).sum(), y)


@pytest.mark.parametrize("name", KEEP)
def test_a_dim_keeps_its_coordinate_where_its_places_stay(name: str) -> None:
    function, wanted = KEEP[name]
    assert through(function, data()) == wanted


def test_loops_and_branches_are_followed_inside() -> None:
    """What a body turns round is turned round; the dim of its steps stays that of its sequences."""
    flip = {"row": slice(None, None, -1)}
    turned = lambda x: gc.scan(lambda s, v: (s + v[flip], v), gc.zeros({"row": 3}), x, "col")
    back = {"row": ROWS[::-1]}
    assert through(lambda x: turned(x)[0], data()) == back
    assert through(lambda x: turned(x)[1], data()) == BOTH
    assert through(lambda x: gc.checkpoint(lambda v: v[flip])(x), data()) == BOTH | back
    at = lambda x: gc.checkpoint(lambda v: v.isel(row=v.isel(col=0).argsort("row")))(x)
    assert through(at, data()) == {"col": COLS}  # positions that the inputs alone do not tell
    assert through(lambda x: gc.cond(x.sum() > 0, gc.exp, lambda v: v[flip], x), data()) == {
        "col": COLS
    }
    assert through(lambda x: gc.cond(x.sum() > 0, gc.exp, gc.sin, x), data()) == BOTH


def test_operands_that_agree_share_their_coordinate() -> None:
    assert through(lambda x, y: x * y, data(), data("row")) == BOTH


def test_an_operand_without_coordinates_takes_those_of_others() -> None:
    assert through(lambda x, y: x * y, data("row", row=None), data()) == BOTH
    assert through(lambda x: x * gc.constant(np.ones(3), "row"), data()) == BOTH


def test_positions_bring_their_coordinates() -> None:
    at = xarray.DataArray([0, 2], {"pick": ["one", "two"]})
    i, table = gc.tensor("i", {"pick": 2}, dtype="int64"), x()
    f = gc.compile([table, i], table.isel(row=i), returns="xarray")
    assert coordinates(f(data(), at)) == {"pick": ["one", "two"], "row": ["p", "r"], "col": COLS}


def test_positions_along_the_dim_they_pick_from_lose_theirs() -> None:
    at = xarray.DataArray([0, 2, 1], {"row": ROWS})
    i, table = gc.tensor("i", {"row": 3}, dtype="int64"), x()
    f = gc.compile([table, i], table.isel(row=i), returns="xarray")
    assert coordinates(f(data(), at)) == {"col": COLS}


def test_coordinates_follow_what_they_stand_beside() -> None:
    """An argument with its dims in another order is the same argument."""
    f = gc.compile([x()], x() - 1, returns="xarray")
    xarray.testing.assert_identical(
        f(data().transpose()), (data() - 1).rename(None).drop_attrs(deep=False)
    )


def test_coordinates_that_label_no_dim_come_with_all_their_dims() -> None:
    given = data().assign_coords(
        scalar=1, month=("row", [1, 2, 3]), area=(("row", "col"), np.ones((3, 2)))
    )
    rest = {"scalar": 1, "month": [1, 2, 3], "area": np.ones((3, 2)).tolist()}
    assert through(lambda x: 2 * x, given) == BOTH | rest
    assert through(lambda x: x.sum("col"), given) == {"row": ROWS, "scalar": 1, "month": [1, 2, 3]}
    assert through(lambda x: x.rename(row="at").tail(at=1), given) == {
        "at": ["r"], "col": COLS, "scalar": 1, "month": [3], "area": [[1.0, 1.0]]
    }  # fmt: skip
    other = given.assign_coords(scalar=2, month=("row", [1, 2, 4]))
    assert through(lambda x, y: x - y, given, other) == BOTH | {"area": rest["area"]}
    assert through(lambda x, y: x, given, other) == BOTH | rest
    stacked = data().stack(both=("row", "col"))
    assert through(lambda x: 2 * x, stacked) == coordinates(stacked)


def test_coordinates_of_several_dims_at_positions_are_those_of_xarray() -> None:
    given = data().assign_coords(
        month=("row", [1, 2, 3]), area=(("row", "col"), np.arange(6.0).reshape(3, 2))
    )
    rows, cols = (xarray.DataArray(at, dims="pick") for at in ([2, 0, 1], [0, 1, 1]))
    for function in (
        lambda x: x.isel(row=rows, col=cols),
        lambda x: x.isel(row=rows, col=0),
        lambda x: x.isel(row=rows).isel(pick=slice(1, None), col=-1),
        lambda x: x.isel(row=rows, col=cols).isel(pick=1),
        lambda x: x.isel(row=slice(None, None, -1)).mean("row") + x.isel(row=0),
    ):
        assert through(function, given) == coordinates(function(given))


def test_attrs_of_a_coordinate_stay_with_it() -> None:
    given = data("row", row=("row", ROWS, {"unit": "s"}))
    result = gc.compile(x("row"), x("row").rename(row="at"), returns="xarray")(given)
    assert result.coords["at"].attrs == {"unit": "s"}
    assert given.coords["row"].dims == ("row",)


def test_dates_stay_dates() -> None:
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-04"], "M8[ns]")
    result = gc.compile(x("row"), -x("row"), returns="xarray")(data("row", row=days))
    np.testing.assert_array_equal(result.indexes["row"], days)


def test_names_and_attrs_are_dropped_and_numbers_are_arrays_too() -> None:
    f = gc.compile(
        x(), {"whole": x() + 1, "parts": (x().sum(), [x().mean("row")])}, returns="xarray"
    )
    result = f(data())
    assert list(result) == ["whole", "parts"]
    assert isinstance(result["parts"], tuple)
    assert result["whole"].name is None
    assert result["whole"].attrs == {}
    np.testing.assert_allclose(result["parts"][0], data().sum())
    xarray.testing.assert_allclose(result["parts"][1][0], data().mean("row"))


def test_numpy_arguments_give_no_coordinates() -> None:
    f = gc.compile([x(), x("row", "y")], x() * x("row", "y"), returns="xarray")
    assert coordinates(f(np.ones((3, 2)), np.ones(3))) == {}
    assert coordinates(f(y=data("row"), x=np.ones((3, 2)))) == {"row": ROWS}


class Pair(NamedTuple):
    first: Any
    second: Any


def test_arguments_in_structures() -> None:
    inputs = {"a": x(), "b": [x("row", "y")]}
    f = gc.compile([inputs], Pair(x() + 1, x("row", "y")), returns="xarray")
    result = f({"a": data(), "b": [data("row")]})
    assert coordinates(result.first) == BOTH
    assert coordinates(result.second) == {"row": ROWS}


def test_a_pickled_function_returns_the_same() -> None:
    f = gc.compile([x()], x().rename(row="at"), returns="xarray")
    xarray.testing.assert_identical(pickle.loads(pickle.dumps(f))(data()), f(data()))


def test_arrays_are_the_default() -> None:
    assert type(gc.compile([x()], x() + 1)(data())) is np.ndarray


def test_without_xarray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    gc.compile([x()], x())
    with pytest.raises(gc.GraphError, match="pip install xarray"):
        gc.compile([x()], x(), returns="xarray")
