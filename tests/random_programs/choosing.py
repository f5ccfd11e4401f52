"""Elements that values choose: how many there are depends on them. Reductions within groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arranging import (
    concat,
    expand_dims,
    isel,
    rename,
    several,
    stack,
    take_along,
    total,
    transpose,
    unstack,
)
from .control import stacked
from .values import CLEAR, Array, Hidden, Refused, Unclear, Value, axis, where, whole

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


def dropna(x: Value, dim: str, *, how: str = "any", thresh: int | None = None) -> Value:
    others = tuple(i for i, d in enumerate(x.dims) if d != dim)
    there = (~np.isnan(x.base.data)).sum(others)
    lacking = np.prod([n for d, n in x.sizes.items() if d != dim]) - there
    least = {"any": lacking == 0, "all": there > 0}[how] if thresh is None else there >= thresh
    return isel(x, {dim: Array((dim,), least)})


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

Function = Callable[..., Any]


class Groups:
    """`x.groupby(ids, size, dim, name)`, of which each method is called for one group alone."""

    def __init__(self, reductions: dict[str, Function], x: Value, ids: Any, size: Any, dim: Any,
                 name: str | None) -> None:  # fmt: skip
        if not isinstance(ids, Value):
            labels, numbers = np.unique(ids, return_inverse=True)
            ids, size = Array((dim,), numbers), len(labels) if size is None else size
        self.reductions, self.x, self.at, self.size = reductions, x, ids.base, whole(size)
        over = self.at.names
        if any(isinstance(d, Hidden) for d in over) or (name is None and len(over) != 1):
            raise Unclear  # sizes that a derivative or a loop repeats it along
        if any(x.sizes.get(d) != n for d, n in self.at.sizes.items()):
            raise Refused("groups")
        if self.at.data.size and not (self.at.data.min() >= 0 and self.at.data.max() < self.size):
            raise Unclear
        self.name, self.row = name or over[0], over[0] if len(over) == 1 else Hidden()
        if self.name in x.dims and self.name not in over:
            raise Refused("groups")
        self.order = list(dict.fromkeys(self.name if d in over else d for d in x.dims))
        self.line = x if len(over) == 1 else stack(x, {self.row: over})

    def __getattr__(self, kind: str) -> Function:
        function, empty = self.reductions[kind]
        return lambda *args, skipna=False, **more: self.reduced(
            skipping(function) if skipna else function, empty, *args, **more
        )

    def parts(self) -> list[Array]:
        """The places of each group."""
        return [np.flatnonzero(self.at.data == group) for group in range(self.size)]

    def reduced(self, function: Function, empty: float | None, *args: Any, **more: Any) -> Value:
        rest = {d: n for d, n in self.line.sizes.items() if d is not self.row and d != self.row}
        made = []
        for places in self.parts():
            if not len(places) and empty is None:
                raise Unclear
            one = isel(self.line, {self.row: (self.row, places)})
            made.append(function(one, *args, self.row, **more) if len(places) else Array(
                tuple(rest), np.full(list(rest.values()), empty)))  # fmt: skip
        if not made:
            if args:
                raise Unclear
            return Array(self.order, np.zeros([rest.get(d, 0) for d in self.order]))
        joined = concat([expand_dims(one, {self.name: 1}) for one in made], self.name)
        return transpose(joined, *[d for d in joined.dims if d not in self.order], *self.order)

    def cumsum(self) -> Value:
        ids = self.at.data.ravel()
        inner, n = Hidden(), len(ids)
        same = (ids[:, None] == ids) & (np.arange(n)[:, None] >= np.arange(n))
        terms = rename(self.line, {self.row: inner}) * Array((self.row, inner), same * 1.0)
        found = total(terms, [inner])
        if self.row not in self.at.names:
            found = unstack(found, {self.row: self.at.sizes})
        return transpose(found, *self.x.dims)

    def argmax(self) -> Value:
        """The first place of the largest in the order of the elements."""
        found = []
        for places in self.parts():
            part = np.moveaxis(self.line.base.data, axis(self.line.base, self.row), -1)[..., places]
            if not len(places) or (np.diff(np.sort(part)) < CLEAR).any():
                raise Unclear
            found.append(places[part.argmax(-1)])
        rest = [d for d in self.line.dims if d != self.row]
        sizes = [self.line.sizes[d] for d in rest]
        data = np.array(found, int).reshape((self.size, *sizes))
        return transpose(Array([self.name, *rest], data), *self.order)

    def map(self, function: Function, most: Any) -> Value:
        dim = self.row
        if dim == self.name or dim not in self.at.names:
            raise Refused("groups are not along one dim of another name")
        made, most = [], whole(most)
        for places in self.parts():
            if len(places) > most:
                raise Unclear  # it is refused, but not where its derivative alone is asked for
            lacking = Array((dim,), np.full(most - len(places), np.nan))
            members = concat([isel(self.x, {dim: (dim, places)}), lacking], dim)
            made.append(function(transpose(members, *self.x.dims),
                                 Array((dim,), np.arange(most) < len(places))))  # fmt: skip
        if not made:
            raise Unclear
        if dim not in made[0].dims:
            return transpose(concat([expand_dims(y, {self.name: 1}) for y in made], self.name),
                             *self.order)  # fmt: skip
        order = np.argsort(np.concatenate(self.parts()), kind="stable")
        kept = [isel(y, {dim: slice(0, len(p))}) for y, p in zip(made, self.parts(), strict=True)]
        return transpose(isel(concat(kept, dim), {dim: (dim, order)}), *self.x.dims)

    def expand(self, values: Value) -> Value:
        return isel(values, {self.name: self.at})

    def __sub__(self, values: Value) -> Value:
        return self.x - self.expand(values)

    def __mul__(self, values: Value) -> Value:
        return self.x * self.expand(values)


def groups(reductions: dict[str, tuple[Function, float | None]]) -> Function:
    """`groupby` with these reductions, and their values where a group has no elements."""

    def groupby(x: Value, ids: Any, size: Any = None, dim: Any = None, name: Any = None) -> Groups:
        return Groups(reductions, x, ids, size, dim, name)

    return groupby


# ---- missing values


def skipping(reduced: Function) -> Function:
    """A reduction of what is not missing, for each row alone."""

    def reduction(x: Value, *args: Any) -> Value:
        line = Hidden()
        dims = several(args[-1], x)
        merged = stack(x, {line: dims})
        rest = [d for d in merged.dims if d is not line]

        def row(at: dict[Any, int], left: list[Any]) -> Value:
            if left:
                dim, *others = left
                count = merged.sizes[dim]
                return stacked([row({**at, dim: i}, others) for i in range(count)], dim)
            one = isel(merged, at)
            there = np.flatnonzero(~np.isnan(one.base.data))
            if not len(there):
                raise Unclear
            return reduced(isel(one, {line: (line, there)}), *args[:-1], line)

        if 0 in [merged.sizes[d] for d in rest]:
            raise Unclear
        return row({}, rest)

    return reduction
