"""Wrong values: what stands in the place of each argument in turn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import xarray

import graphcore as gc

UNKNOWN = gc.tensor("of unknown size", {"unknown": None})

VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "2**40": lambda: 2**40,
    "10**30": lambda: 10**30,
    "-(2**63)": lambda: -(2**63),
    "1.5": lambda: 1.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "1j": lambda: 1j,
    "Decimal": lambda: Decimal("1.5"),
    "Fraction": lambda: Fraction(1, 2),
    "a word": lambda: "nope",
    "no word": lambda: "",
    "a dim": lambda: "row",
    "bytes": lambda: b"row",
    "...": lambda: ...,
    "object": object,
    "NotImplemented": lambda: NotImplemented,
    "slice": lambda: slice(None),
    "()": lambda: (),
    "[]": list,
    "{}": dict,
    "set()": set,
    "a set of dims": lambda: {"row"},
    "a tuple of numbers": lambda: (1, 2),
    "a list of words": lambda: ["nope", "nada"],
    "a dim twice": lambda: ["row", "row"],
    "a dim and a number": lambda: ("row", 1),
    "nested lists": lambda: [[1, 2], [3]],
    "a dict of numbers": lambda: {"row": 1, "nope": -1},
    "a dict of None": lambda: {"row": None},
    "a dict of words": lambda: {"row": "nope"},
    "a dict by numbers": lambda: {0: 1},
    "range": lambda: range(2),
    "an endless iterator": itertools.count,
    "a generator": lambda: (x for x in ()),
    "a function": lambda: lambda: 0,
    "a builtin": lambda: len,
    "a class": lambda: int,
    "a module": lambda: math,
    "an error": lambda: ValueError("nope"),
    "np.float32": lambda: np.float32(1.5),
    "np.int64": lambda: np.int64(-1),
    "np.datetime64": lambda: np.datetime64("2020-01-01"),
    "np.dtype": lambda: np.dtype("float64"),
    "an array": lambda: np.ones(2),
    "an array of no dims": lambda: np.array(2.5),
    "an array of objects": lambda: np.array([object(), None]),
    "an array of words": lambda: np.array(["row", "nope"]),
    "an empty array": lambda: np.empty((0, 3)),
    "a masked array": lambda: np.ma.masked_less(np.arange(3), 1),
    "a DataArray": lambda: xarray.DataArray(np.ones(3), dims="row"),
    "a DataArray without names": lambda: xarray.DataArray(np.ones((2, 2)), dims=(0, None)),
    "a DataArray of words": lambda: xarray.DataArray(["a", "b"], dims="row"),
    "a Dataset": lambda: xarray.Dataset({"a": ("row", [1.0])}),
    "a float tensor": lambda: gc.tensor("floats", {"row": 3}),
    "an int tensor": lambda: gc.tensor("ints", {"row": 3}, dtype="int64"),
    "a bool tensor": lambda: gc.tensor("bools", {"row": 3}, dtype="bool"),
    "a complex tensor": lambda: gc.tensor("complexes", {"row": 3}, dtype="complex128"),
    "a half tensor": lambda: gc.tensor("halves", {"row": 3}, dtype="float16"),
    "a tensor of no dims": lambda: gc.tensor("scalar", {}),
    "a tensor of other dims": lambda: gc.tensor("others", {"other": 2, "more": 1}),
    "a tensor of many dims": lambda: gc.tensor("many", {f"dim {i}": 1 for i in range(20)}),
    "an empty tensor": lambda: gc.tensor("empty", {"row": 0}),
    "a list of tensors": lambda: [gc.tensor("floats", {"row": 3}), gc.tensor("scalar", {})],
    "a size": lambda: UNKNOWN.sizes["unknown"],
    "a size made of sizes": lambda: UNKNOWN.sizes["unknown"] * 2 - 7,
    "a formula of a size": lambda: UNKNOWN.sizes["unknown"] / 2,
    "a compiled function": lambda: COMPILED,
}  # fmt: skip
COMPILED = gc.compile([UNKNOWN], UNKNOWN)
