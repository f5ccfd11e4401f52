"""The coordinates of an array of xarray as an attr of a constant, and back.

They are tuples of plain values, so that equal ones are equal attrs and can be written to files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np

from graphcore.ir import Literal

Labels: TypeAlias = tuple[tuple[str, tuple[str, ...], Literal | tuple[object, ...]], ...]
"""For each coordinate its name, its dims, and its values.

The values are a `Literal` where they are numbers. Otherwise they are `(kind, shape, values)`: dates
are the integers of a dtype "M8[...]" or "m8[...]", strings are of a dtype "U...", other objects of
dtype "O"; and the levels of an index are labels of their own, of the kind "levels".
"""


def labels_of(x: Any) -> Labels:
    """The coordinates of an array of xarray; none of another array."""
    indexes = getattr(x, "xindexes", {})
    several = {dim: index.index for dim, index in indexes.items() if is_levels(index)}
    levels = {name for index in several.values() for name in index.names}
    found: list[tuple[str, tuple[str, ...], Any]] = []
    for name, values in getattr(x, "coords", {}).items():
        if not isinstance(name, str) or name in levels:
            continue
        if name in several:
            index = several[name]
            arrays = [np.asarray(index.get_level_values(level)) for level in index.names]
            of = tuple(
                (level, (name,), packed(array))
                for level, array in zip(index.names, arrays, strict=True)
            )
            found.append((name, (name,), ("levels", (len(index),), of)))
        else:
            known = isinstance(values.dtype, np.dtype)
            array = values.values if known else dates_of_a_zone(values)
            found.append((name, values.dims, packed(array)))
    return tuple(label for label in found if hashable(label))


def dates_of_a_zone(values: Any) -> np.ndarray[Any, Any]:
    """The dates along a dim as objects, which know their time zone."""
    return np.asarray(values.to_index(), object)


def hashable(label: object) -> bool:
    """Whether labels can be an attr: objects of any kind may be among them."""
    try:
        hash(label)
    except TypeError:
        return False
    return True


def is_levels(index: Any) -> bool:
    """Whether an index of xarray has several levels."""
    return getattr(getattr(index, "index", None), "nlevels", 1) > 1


def packed(values: np.ndarray[Any, Any]) -> Literal | tuple[object, ...]:
    """The values of a coordinate as an attr."""
    kind = values.dtype.kind
    if kind in "biufc":
        return Literal(values)
    if kind in "mM":
        unit = values.dtype.newbyteorder("=").str[1:]
        return unit, values.shape, Literal(values.astype(unit).astype(np.int64))
    width = values.dtype.itemsize // 4
    dtype = f"U{width}" if kind == "U" and width <= WIDEST else "O"
    return dtype, values.shape, tuple(values.ravel().tolist())


WIDEST = 1000
"""The most characters of strings that are not held as objects."""


def unpacked(values: Any) -> np.ndarray[Any, Any]:
    """The values of a coordinate as an array."""
    if isinstance(values, Literal):
        return values.array
    kind, shape, some = values
    if isinstance(some, Literal):
        return some.array.astype(kind)
    found = np.empty(len(some), kind)
    found[:] = some
    return found.reshape(shape)


def fit(labels: Labels, sizes: Mapping[str, object]) -> bool:
    """Whether labels are those of an array of these sizes."""
    try:
        return all(fits(values, tuple(sizes[dim] for dim in dims)) for _, dims, values in labels)
    except (KeyError, TypeError, ValueError):  # of attrs that no one has made
        return False


def fits(values: Any, shape: tuple[object, ...]) -> bool:
    """Whether the values of a coordinate have a shape."""
    if isinstance(values, Literal):
        return values.array.shape == shape
    kind, own, some = values
    if kind == "levels":
        return own == shape and all(fits(level, shape) for _, _, level in some)
    if isinstance(some, Literal):
        dates = kind[:2] in ("M8", "m8") and some.array.dtype == np.int64
        return bool(dates and np.dtype(kind) and some.array.shape == own == shape)
    plain = kind[:1] == "U" and int(kind[1:]) <= WIDEST and all(isinstance(x, str) for x in some)
    return bool((plain or kind == "O") and own == shape and len(some) == prod(own))


@lru_cache(64)
def coordinates_of(labels: Labels) -> Any:
    """Labels as a Dataset of xarray that has coordinates and indexes alone."""
    import pandas
    import xarray

    made = xarray.Dataset()
    for name, dims, values in labels:
        if isinstance(values, tuple) and values[0] == "levels":
            levels: Any = values[2]
            arrays = [unpacked(level) for _, _, level in levels]
            index = pandas.MultiIndex.from_arrays(arrays, names=[level for level, *_ in levels])
            made = made.assign_coords(xarray.Coordinates.from_pandas_multiindex(index, name))
        else:
            array: Any = unpacked(values)
            if any(getattr(label, "tzinfo", None) for label in array.flat[:1]):
                array = pandas.DatetimeIndex(array)
            made = made.assign_coords({name: (dims, array)})
    return made


def differing_dim(a: Labels, b: Labels) -> str | None:
    """The first dim along which two arrays have labels that differ."""
    left, right = coordinates_of(a).xindexes, coordinates_of(b).xindexes
    sizes = coordinates_of(b).sizes
    for dim, size in coordinates_of(a).sizes.items():
        both = dim in left and dim in right and sizes[dim] == size
        if both and not left[dim].equals(right[dim]):
            return str(dim)
    return None
