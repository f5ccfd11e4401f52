"""Elements that values choose: how many there are depends on them. Reductions within groups."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from .arranging import concat, expand_dims, isel, stack, take_along, transpose
from .values import CLEAR, Array, Refused, Unclear, Value, axis, where, whole

# ---- masks


def masked(x: Value, mask: Array) -> Value:
    """`x[mask]`: of the first dim, which stays, or of several, whose elements get one dim."""
    if len(mask.names) == 1:
        return isel(x, {x.dims[0]: mask})
    for dim in mask.names:
        if x.sizes.get(dim) != mask.sizes[dim]:
            raise Refused("mask")
    rest = [d for d in x.dims if d not in mask.names]
    merged = stack(x, {"kept": mask.names})
    chosen = np.flatnonzero(mask.data)
    first = min(x.dims.index(d) for d in mask.names)
    return transpose(isel(merged, {"kept": ("kept", chosen)}), *rest[:first], "kept", *rest[first:])


def dropna(x: Value, dim: str) -> Value:
    base = x.base
    others = tuple(i for i, d in enumerate(base.names) if d != dim)
    return isel(x, {dim: Array((dim,), ~np.isnan(base.data).any(others))})


def where_kept(x: Value, condition: Array, other: Any) -> Value:
    """`x.where(condition, other, drop=True)`."""
    dims = [d for d in condition.names if d in x.dims]
    for dim in dims:
        others = tuple(i for i, d in enumerate(condition.names) if d != dim)
        held = Array((dim,), condition.data.any(others))
        x = isel(x, {dim: held})
        condition = isel(condition, {dim: held}).base
    made = where(condition, x, other)
    return transpose(made, *x.dims, *[d for d in made.dims if d not in x.dims])


def unique(x: Value, *, name: str) -> Value:
    """In order; floats that may be equal are told apart by no reference."""
    merged = transpose(stack(x, {name: x.dims}), name)
    if merged.base.data.dtype.kind != "f":
        return Array((name,), np.unique(merged.base.data))
    if (np.diff(np.sort(merged.base.data)) < CLEAR).any():
        raise Unclear
    return take_along(merged, Array((name,), np.argsort(merged.base.data)), name)


# ---- groups


def grouped(reduced: Callable[[Value, str], Value], empty: float | None) -> Any:
    """A reduction within each group, and its value where a group has no elements, if it has one."""

    def reduction(x: Value, ids: Value, size: Any, dim: Any = None, name: Any = None) -> Value:
        size, at = whole(size), ids.base
        if len(at.names) != 1:  # sizes that a derivative or a loop repeats it along
            raise Unclear
        (row,) = at.names
        axis(x.base, row)
        if x.sizes[row] != at.sizes[row] or (name not in (None, row) and name in x.dims):
            raise Refused("groups")
        if at.data.size and not (at.data.min() >= 0 and at.data.max() < size):
            raise Unclear
        new = name or row
        order = [new if d == row else d for d in x.dims]
        rest = {d: n for d, n in x.sizes.items() if d != row}
        parts = []
        for group in range(size):
            places = np.flatnonzero(at.data == group)
            if not len(places) and empty is None:
                raise Unclear
            one = reduced(isel(x, {row: (row, places)}), row) if len(places) else Array(
                tuple(rest), np.full(list(rest.values()), empty))  # fmt: skip
            parts.append(one)
        if not parts:
            return Array(order, np.zeros([0 if d == new else rest[d] for d in order]))
        return transpose(concat([expand_dims(one, {new: 1}) for one in parts], new), *order)

    return reduction


def groups(reductions: dict[str, Any]) -> Any:
    """`groupby` with these reductions."""

    def groupby(x: Value, ids: Value, size: Any, dim: Any = None, name: Any = None) -> Any:
        return SimpleNamespace(
            **{
                kind: lambda f=f: f(x, ids, size, dim, name)  # type: ignore[misc]
                for kind, f in reductions.items()
            }
        )

    return groupby
