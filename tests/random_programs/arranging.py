"""Where values stand: shapes and places, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .values import (
    Array,
    Hidden,
    Refused,
    Unclear,
    Value,
    axis,
    compared,
    lifted,
    linear,
    spread,
    union,
    where,
    whole,
)


def several(dim: Any, x: Value) -> tuple[Any, ...]:
    dims = x.dims if dim is None else (dim,) if isinstance(dim, (str, Hidden)) else tuple(dim)
    for name in dims:
        axis(x.base, name)
    return dims


def total(x: Value, dims: Sequence[Any]) -> Value:
    """The sum over some dims, of floats in more digits."""

    def added(x: Array) -> Array:
        axes = tuple(axis(x, d) for d in dims)
        names, data = [n for n in x.names if n not in dims], x.data
        if data.dtype.kind != "f":
            return Array(names, data.sum(axes))
        return Array(names, data.sum(axes, np.longdouble).astype(data.dtype))

    return linear(added, x)


# ---- shape


def transpose(x: Value, *dims: Any) -> Value:
    order = dims or x.dims[::-1]
    if ... in order:
        at = order.index(...)
        order = (*order[:at], *[d for d in x.dims if d not in order], *order[at + 1 :])
    if set(order) != set(x.dims):
        raise Refused("transpose")

    def turned(x: Array) -> Array:
        names = [n for n in x.names if n not in order] + list(order)
        return Array(names, x.data.transpose([x.names.index(n) for n in names]))

    return linear(turned, x)


def rename(x: Value, names: Mapping[Any, Any]) -> Value:
    for name in names:
        axis(x.base, name)
    return linear(lambda x: Array([names.get(n, n) for n in x.names], x.data), x)


def expand_dims(x: Value, sizes: Mapping[str, Any]) -> Value:
    if set(sizes) & set(x.dims):
        raise Refused("a dim that is there")
    sizes = {d: whole(n) for d, n in sizes.items()}

    def repeated(x: Array) -> Array:
        both = {**sizes, **dict(zip(x.names, x.data.shape, strict=True))}
        return Array(both, spread(x, both))

    return linear(repeated, x)


def broadcast_like(x: Value, like: Value) -> Value:
    sizes = union(like.base, x.base)
    if tuple(sizes) != like.dims:
        raise Refused("broadcast_like")
    missing = {d: n for d, n in sizes.items() if d not in x.dims}
    return transpose(expand_dims(x, missing), *sizes)


def stack(x: Value, dims: Mapping[str, Sequence[str]]) -> Value:
    ((new, parts),) = dims.items()
    for d in parts:
        axis(x.base, d)

    def merged(x: Array) -> Array:
        rest = [n for n in x.names if n not in parts]
        data = x.data.transpose([x.names.index(n) for n in (*rest, *parts)])
        size = int(np.prod(data.shape[len(rest) :]))
        return Array([*rest, new], data.reshape((*data.shape[: len(rest)], size)))

    return linear(merged, x)


def unstack(x: Value, dims: Mapping[str, Mapping[str, int]]) -> Value:
    ((old, parts),) = dims.items()
    axis(x.base, old)
    if np.prod(list(parts.values())) != x.sizes[old]:
        raise Refused("unstack")

    def divided(x: Array) -> Array:
        data = np.moveaxis(x.data, axis(x, old), -1)
        names = [n for n in x.names if n != old]
        return Array([*names, *parts], data.reshape((*data.shape[:-1], *parts.values())))

    return linear(divided, x)


def concat(xs: Sequence[Value], dim: Any) -> Value:
    xs = [lifted(x) for x in xs]
    new = all(dim not in x.dims for x in xs)
    order = list(dict.fromkeys([*([dim] if new else []), *[d for x in xs for d in x.dims]]))
    others = [Array(*without(x, dim)) for x in xs]
    union(*others)

    def joined(*parts: Array) -> Array:
        sizes = union(*[Array(*without(x, dim)) for x in parts])
        names = [*[n for n in sizes if n not in order], *order]
        pieces = []
        for x in parts:
            length = x.data.shape[axis(x, dim)] if dim in x.names else 1
            pieces.append(spread(x, {n: length if n == dim else sizes[n] for n in names}))
        return Array(names, np.concatenate(pieces, names.index(dim)))

    return linear(joined, *xs)


def without(x: Value, dim: Any) -> tuple[Any, Any]:
    """Dims and data of one place of `dim`, of which nothing but the sizes matters."""
    x = x.base
    if dim not in x.names:
        return x.names, x.data
    sizes = {n: s for n, s in zip(x.names, x.data.shape, strict=True) if n != dim}
    return tuple(sizes), np.zeros(tuple(sizes.values()))


# ---- places


def isel(x: Value, indexers: Mapping[str, Any], *, size: Any = None) -> Value:
    for dim, at in indexers.items():
        if isinstance(at, Array) and at.data.dtype.kind == "b":
            if at.names != (dim,) or at.sizes[dim] != x.sizes.get(dim):
                raise Refused("mask")
            at = (dim, true_places(at, size))
        x = placed(x, dim, at)
    return x


def true_places(mask: Array, size: Any = None) -> np.ndarray:
    """Where a mask of one dim holds: as many places as there are, or `size`, filled with 0."""
    at = np.flatnonzero(mask.data)
    return np.pad(at[:size], (0, max(size - len(at), 0))) if isinstance(size, int) else at


def placed(x: Value, dim: str, at: Any) -> Value:
    size = x.sizes.get(dim)
    if size is None:
        raise Refused(f"no dim {dim!r}")
    if isinstance(at, (slice, int)):
        if isinstance(at, int) and not -size <= at < size:
            raise Unclear
        gone = [dim] if isinstance(at, int) else []

        def seen(x: Array) -> Array:
            names = [n for n in x.names if n not in gone]
            return Array(names, x.data[(slice(None),) * axis(x, dim) + (at,)])

        return linear(seen, x)
    if isinstance(at, tuple):
        at = Array((at[0],), np.asarray(at[1], int))
    index = lifted(at).base
    if index.data.size and not (-size <= index.data.min() and index.data.max() < size):
        raise Unclear
    if set(index.names) & (set(x.dims) - {dim}):
        raise Refused("clash")

    def picked(x: Array) -> Array:
        place = axis(x, dim)
        data = np.take(x.data, np.where(index.data < 0, index.data + size, index.data), place)
        return Array((*x.names[:place], *index.names, *x.names[place + 1 :]), data)

    return linear(picked, x)


def take_along(x: Value, index: Value, dim: str) -> Value:
    at, size = index.base, x.sizes.get(dim, 0)
    axis(x.base, dim)
    if at.data.size and not (-size <= at.data.min() and at.data.max() < size):
        raise Unclear
    union(Array(*without(x, dim)), Array(*without(at, dim)))

    def picked(x: Array) -> Array:
        inner = object()
        renamed = Array([inner if n == dim else n for n in x.names], x.data)
        sizes = union(renamed, at)
        sizes = {**{n: s for n, s in sizes.items() if n is not inner}, inner: sizes[inner]}
        data = spread(renamed, sizes)
        where = spread(at, {n: s for n, s in sizes.items() if n is not inner})[..., None]
        return Array(tuple(sizes)[:-1], np.take_along_axis(data, where, -1)[..., 0])

    made = linear(picked, x)
    return transpose(
        made, *dict.fromkeys(n for d in x.dims for n in (at.names if d == dim else [d]))
    )


def windows(
    x: Value, sizes: Mapping[str, int], name: str, stride: int = 1, dilation: int = 1
) -> Value:
    ((dim, width),) = sizes.items()
    starts = np.arange(0, max(x.sizes[dim] - (width - 1) * dilation, 0), stride)
    at = starts[:, None] + np.arange(width) * dilation
    return transpose(isel(x, {dim: Array((dim, name), at)}), *x.dims, name)


def flip(x: Value, dim: str) -> Value:
    return isel(x, {dim: slice(None, None, -1)})


def roll(x: Value, shifts: Mapping[str, int]) -> Value:
    ((dim, shift),) = shifts.items()
    return linear(lambda x: Array(x.names, np.roll(x.data, shift, axis(x, dim))), x)


def tile(x: Value, copies: Mapping[str, int]) -> Value:
    ((dim, number),) = copies.items()
    return isel(x, {dim: (dim, list(range(x.sizes[dim])) * number)})


def repeat(x: Value, times: Any, dim: str) -> Value:
    times, n = lifted(times).base, x.sizes[dim]
    if times.names not in ((), (dim,)) or times.sizes.get(dim, n) != n or (times.data < 0).any():
        raise Refused("repeats")
    return isel(x, {dim: (dim, np.repeat(np.arange(n), times.data))})


class Places:
    def __init__(self, x: Value) -> None:
        self.x = x

    def __getitem__(self, indexers: Mapping[str, Any]) -> At:
        return At(self.x, indexers)


class At:
    def __init__(self, x: Value, indexers: Mapping[str, Any]) -> None:
        self.x, self.indexers = x, indexers

    def _masked(self) -> tuple[Array, Any]:
        ((dim, at),) = self.indexers.items()
        size = self.x.sizes[dim]
        if not isinstance(at, slice) and not -size <= at < size:
            raise Unclear
        chosen = np.zeros(size, bool)
        chosen[at] = True
        return Array((dim,), chosen), dim

    def set(self, y: Any) -> Value:
        mask, _ = self._masked()
        return transpose(where(mask, y, self.x), *self.x.dims)

    def add(self, y: Any) -> Value:
        return self.set(self.x + y)

    def multiply(self, y: Any) -> Value:
        return self.set(self.x * y)

    def max(self, y: Any) -> Value:
        return self.set(where(compared(np.greater, self.x, y), self.x, y))
