"""What a line of the table of public functions is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray

DEFAULT = {"row": 3, "col": 4, "batch": 2, "one": 1, "six": 6, "i": 2}
PAIRED = (-2.0, 2.0)


class Input(NamedTuple):
    """An input: its dims, and the range its values are drawn from."""

    dims: str = "row col"
    low: float = -2.0
    high: float = 2.0
    dtype: str = "float64"

    def draw(self, random: np.random.Generator, sizes: dict[str, int], dtype: str = "") -> Any:
        shape = [sizes[dim] for dim in self.dims.split()]
        dtype = self.dtype if self.dtype != "float64" else dtype or self.dtype
        if np.dtype(dtype).kind in "iu":
            return random.integers(int(self.low), int(self.high), size=shape).astype(dtype)
        values = random.uniform(self.low, self.high, size=shape)
        return np.asarray(values, dtype)


class Case(NamedTuple):
    """`ours` on tensors means what `theirs` means on DataArrays."""

    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    inputs: tuple[Input, ...] = (Input(),)
    fixed: tuple[str, ...] = ()  # dims that keep their size
    batch: bool = True  # an input may have more dims


def alike(function: Callable[..., Any], *inputs: Input, **options: Any) -> Case:
    """The same notation does for tensors and DataArrays."""
    return Case(function, function, inputs or (Input(),), **options)


def ufunc(function: Any) -> Callable[..., Any]:
    return lambda *xs: xarray.apply_ufunc(function, *xs)


def real(low: float = -2.0, high: float = 2.0) -> tuple[Input, ...]:
    return (Input("row col", low, high),)


def two(
    first: tuple[float, float] = PAIRED, second: tuple[float, float] = PAIRED
) -> tuple[Input, ...]:
    return Input("row batch", *first), Input("col row", *second)


def bare(x: Any) -> Any:
    """Without coordinates, which we do not have."""
    return x.drop_vars(list(x.coords)) if isinstance(x, xarray.DataArray) else x


X, Y, V = Input("row col"), Input("col batch"), Input("row")
INDEX = Input("batch", 0, 3, "int64")
TABLE = Input("batch i", 0, 3, "int64")
ROWS = {"fixed": ("row",)}
