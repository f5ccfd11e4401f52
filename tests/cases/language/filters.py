"""Borders, windows, filters and updates of arrays whose axes are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphcore as gc

from .arrays import Positional, broadcast, places, positional

Ends = Sequence[tuple[int, int]]


def promoted(x: Any, y: Any) -> tuple[gc.Tensor, gc.Tensor]:
    """Two operands in one dtype."""
    pair = positional(x).tensor, positional(y).tensor
    dtype = np.result_type(*[z.dtype for z in pair])
    first, second = (z.astype(dtype) for z in pair)
    return first, second


def pad(x: Any, value: Any, cfg: Sequence[tuple[int, int, int]]) -> Positional:
    """`value` before, after and between the places of each axis; a negative number cuts off."""
    y, value = promoted(x, value)
    for dim, (before, after, inner) in zip(y.dims, cfg, strict=True):
        if inner:
            spread = gc.full({**y.sizes, dim: max((y.sizes[dim] - 1) * (inner + 1) + 1, 0)}, value)
            y = spread.at[{dim: slice(None, None, inner + 1)}].set(y)
        y = gc.pad(y, {dim: (max(before, 0), max(after, 0))}, constant_values=value)
        y = gc.isel(y, {dim: slice(max(-before, 0), max(y.sizes[dim] + min(after, 0), 0))})
    return Positional(y)


def put_slice(x: Any, starts: Sequence[int], u: Any) -> Positional:
    """`x` with the block `u`, which is moved inside where it would stick out."""
    x, u = promoted(x, u)
    block = {}
    for dim, start in zip(x.dims, starts, strict=True):
        first = min(max(int(start), 0), x.sizes[dim] - u.sizes[dim])
        block[dim] = slice(first, first + u.sizes[dim])
    return Positional(x.at[block].set(u))


def coordinates(x: gc.Tensor, index: Any, axes: Sequence[int] | None) -> dict[str, gc.Tensor]:
    """The positions along some axes that the last axis of `index` tells."""
    index = places(index)
    *_, last = index.dims
    parts = gc.unbind(index, last)
    return {x.dims[axis]: part for axis, part in zip(axes or range(len(parts)), parts)}


def order(x: gc.Tensor, at: dict[str, gc.Tensor]) -> list[str]:
    """The dims of what is picked at coordinates: theirs, then those left of `x`."""
    return [*next(iter(at.values())).dims, *[dim for dim in x.dims if dim not in at]]


def gather(x: Any, index: Any, axes: Sequence[int] | None = None) -> Positional:
    x = positional(x).tensor
    at = coordinates(x, index, axes)
    return Positional(gc.isel(x, at), order(x, at))


def indexed(change: Callable[[Any, gc.Tensor], gc.Tensor]) -> Callable[..., Positional]:
    """An update at coordinates by values in the order in which `gather` has them."""

    def update(x: Any, index: Any, u: Any, axes: Sequence[int] | None = None) -> Positional:
        x, u = promoted(x, u)
        at = coordinates(x, index, axes)
        region, dims = gc.isel(x, at), order(x, at)
        values = broadcast(Positional(u), [region.sizes[dim] for dim in dims])
        named = gc.rename(values.tensor, dict(zip(values.dims(None), dims)))
        return Positional(change(x.at[at], named), x.dims)

    return update


def moved(x: gc.Tensor, window: Sequence[int], **steps: Sequence[int] | None) -> gc.Tensor:
    """The windows along all axes, their places in one last dim."""
    names = {dim: f"{dim} place" for dim in x.dims}
    told = {name: dict(zip(x.dims, by)) for name, by in steps.items() if by is not None}
    seen = gc.windows(x, dict(zip(x.dims, window, strict=True)), names, **told)
    return gc.stack(seen, place=tuple(names.values()))


def window(reduce: Callable[[gc.Tensor, str], gc.Tensor], fill: float) -> Callable[..., Positional]:
    """A reduction of windows, where `fill` stands beyond the ends."""

    def windows(
        x: Any,
        window: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Ends | None = None,
        dilation: Sequence[int] | None = None,
    ) -> Positional:
        x = positional(x)
        ends = [(*pair, 0) for pair in padding or [(0, 0)] * len(x.shape)]
        whole = pad(x, fill, ends) if padding else x
        seen = moved(whole.tensor, window, stride=strides, dilation=dilation)
        return Positional(reduce(seen, "place"))

    return windows


def scatter(search: Callable[[gc.Tensor, str], gc.Tensor]) -> Callable[..., Positional]:
    """Values of `source` added to `init` where each window of `x` has its first extreme."""

    def windows(
        x: Any, source: Any, init: Any, window: Sequence[int], strides: Sequence[int]
    ) -> Positional:
        x, source = positional(x).tensor, positional(source).tensor
        names = {dim: f"{dim} place" for dim in x.dims}
        best = search(moved(x, window, stride=strides), "place")
        hit = gc.one_hot(best, int(np.prod(window)), "place") * source
        parts = gc.unstack(hit, place=dict(zip(names.values(), window)))
        found = gc.overlap_add(parts, x.sizes, names, dict(zip(x.dims, strides)))
        return broadcast(init, x.shape) + Positional(found, x.dims)

    return windows


def conv(
    x: Any,
    k: Any,
    strides: Sequence[int] | None = None,
    padding: Ends | None = None,
    input_dilation: Sequence[int] | None = None,
    kernel_dilation: Sequence[int] | None = None,
    feature_groups: int = 1,
    batch_groups: int = 1,
) -> Positional:
    """Cross-correlation of x[batch, channel, ...] with k[out, channel, ...], maybe in groups."""
    count = len(positional(x).shape) - 2
    ends, apart = padding or [(0, 0)] * count, input_dilation or [1] * count
    gaps = [(before, after, n - 1) for (before, after), n in zip(ends, apart, strict=True)]
    image = pad(x, 0.0, [(0, 0, 0), (0, 0, 0), *gaps])
    kernel = positional(k)
    along, own = [f"s{i}" for i in range(count)], [f"k{i}" for i in range(count)]
    image = gc.rename(image.tensor, dict(zip(image.dims(None), ["batch", "channel", *along])))
    kernel = gc.rename(kernel.tensor, dict(zip(kernel.dims(None), ["out", "channel", *own])))
    image = gc.unstack(
        image,
        batch={"part": batch_groups, "batch": None},
        channel={"group": feature_groups, "channel": None},
    )
    kernel = gc.unstack(kernel, out={"part": batch_groups, "group": feature_groups, "out": None})
    steps = {"stride": strides, "dilation": kernel_dilation}
    told = {name: dict(zip(along, by)) for name, by in steps.items() if by is not None}
    found = gc.conv(image, kernel, dict(zip(along, own)), contract="channel", **told)
    return Positional(gc.stack(found, out=("part", "group", "out")), ["batch", "out", *along])
