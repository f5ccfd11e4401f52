"""Arguments with labels, which are joined; xarray says what the program is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from .drawing import Program


def join_of(program: Program) -> str:
    """How the labels of arguments are joined: not "exact" where all sizes may differ."""
    free = all(size is None for one in program.inputs for size in one.declared.values())
    return ("inner", "override", "exact")[program.seed % 3] if free else "exact"


def given(program: Program, call: int) -> list[Any]:
    """The arguments of a call, every third time without labels."""
    arrays = program.arguments(call)
    if program.seed % 3 == 2:
        return arrays
    rng = np.random.default_rng(program.seed)
    how = join_of(program)
    return [
        labelled(array, tuple(one.declared), one.name, how, rng)
        for one, array in zip(program.inputs, arrays, strict=True)
    ]


def labelled(
    array: Any, dims: tuple[str, ...], name: str, how: str, rng: np.random.Generator
) -> xr.DataArray:
    """With labels that others have; for "inner" also one of its own, in any order."""
    found = xr.DataArray(
        array, dims=dims, coords={d: np.arange(n) for d, n in zip(dims, array.shape, strict=True)}
    )
    for dim, size in found.sizes.items():
        if how == "override":
            found = found.assign_coords({dim: found[dim] + int(name[1:])})
        elif how == "inner" and size:
            more = found.isel({dim: [0]}).assign_coords({dim: [-int(name[1:])]})
            found = xr.concat([found, more], dim).isel({dim: rng.permutation(size + 1)})
    return found


def joined(program: Program, arguments: list[Any]) -> list[Any]:
    """The arrays that the program is to be given."""
    if join_of(program) == "inner":
        arguments = list(xr.align(*arguments, join="inner"))
    return [np.asarray(a) for a in arguments]
