"""Arguments with labels, which are joined; xarray says what the program is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from .drawing import Program


def join_of(program: Program) -> str:
    """How the labels of arguments are joined."""
    return ("inner", "override", "exact", "exact")[program.seed % 4]


def given(program: Program, call: int) -> list[Any]:
    """The arguments of a call, every fourth time without labels."""
    arrays = program.arguments(call)
    if program.seed % 4 == 3:
        return arrays
    rng = np.random.default_rng(program.seed)
    lists = [tuple(one.declared) for one in program.inputs]
    if join_of(program) == "inner":
        fixed = named_elsewhere(program)
        return [
            partly(xr.DataArray(a, dims=dims), int(one.name[1:]), fixed, rng)
            for one, dims, a in zip(program.inputs, lists, arrays, strict=True)
        ]
    apart = join_of(program) == "override"
    return [
        xr.DataArray(a, dims=dims, coords={
            d: np.arange(n) + apart * int(one.name[1:]) for d, n in zip(dims, a.shape, strict=True)
        })
        for one, dims, a in zip(program.inputs, lists, arrays, strict=True)
    ]  # fmt: skip


def named_elsewhere(program: Program) -> set[str]:
    """Dims of which no elements may be left out, as their sizes are said or have other names."""
    pairs = [pair for one in program.inputs for pair in one.declared.items() if pair[1] is not None]
    return {name for pair in pairs for name in pair if isinstance(name, str)}


def partly(x: xr.DataArray, number: int, fixed: set[str], rng: np.random.Generator) -> xr.DataArray:
    """With an element more, whose label no other has, and in any order."""
    for dim, size in x.sizes.items():
        if dim not in fixed:
            own = x.isel({dim: [0] if size else []}).assign_coords({dim: [-number] * bool(size)})
            both = xr.concat([x.assign_coords({dim: np.arange(size)}), own], dim)
            x = both.isel({dim: rng.permutation(both.sizes[dim])})
    return x


def joined(program: Program, arguments: list[Any]) -> list[Any]:
    """The arrays that the program is to be given."""
    if join_of(program) == "inner":
        fixed = named_elsewhere(program)
        arguments = list(xr.align(*arguments, join="inner", exclude=fixed))
    return [np.asarray(a) for a in arguments]
