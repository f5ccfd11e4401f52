"""The names of the language for inputs with dims."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphcore as gc

from .matrices import MATRICES, SYSTEMS, norm
from .words import ELEMENTWISE, REDUCTIONS, gradient, spelled_alike, stepping


def const(data: Any, *dims: str) -> gc.Tensor:
    return gc.constant(np.asarray(data, float), dims)


def isel(x: gc.Tensor, /, **indexers: Any) -> gc.Tensor:
    """gc.isel, where a pair may also hold a tensor of positions."""
    for dim, indexer in indexers.items():
        if isinstance(indexer, tuple) and isinstance(indexer[1], gc.Tensor):
            assert indexer[1].dims == (indexer[0],)
            indexers[dim] = indexer[1]
    return gc.isel(x, indexers)


def set_at(x: gc.Tensor, value: Any, /, add: bool = False, **indexers: Any) -> gc.Tensor:
    region = x.at[indexers]
    return region.add(value) if add else region.set(value)


def unstack_dim(x: gc.Tensor, dim: str, sizes: dict[str, int]) -> gc.Tensor:
    """The new dims stand where the old one stood."""
    at = x.dims.index(dim)
    return gc.unstack(x, {dim: sizes}).transpose(*x.dims[:at], *sizes, *x.dims[at + 1 :])


def stack_new(xs: list[gc.Tensor], dim: str) -> gc.Tensor:
    """The new dim comes last."""
    return gc.concat([gc.expand_dims(x, dim) for x in xs], dim).transpose(..., dim)


def broadcast_dims(x: gc.Tensor, sizes: dict[str, int]) -> gc.Tensor:
    new = {dim: size for dim, size in sizes.items() if dim not in x.dims}
    return gc.expand_dims(x, new).transpose(*sizes, ...)


def window_sum(x: gc.Tensor, dim: str, size: int) -> gc.Tensor:
    return gc.windows(x, {dim: size}, "place").sum("place")


def conv1d(x: gc.Tensor, k: gc.Tensor, dim: str) -> gc.Tensor:
    """Cross-correlation over the places where `k` fits."""
    return gc.conv(x, k, dim, contract=())


def same(x: Any) -> Any:
    return x


NAMED: dict[str, Any] = {
    **ELEMENTWISE,
    **REDUCTIONS,
    **spelled_alike("max min cumsum cumprod cummax cummin rename concat squeeze"),
    "softmax": gc.special.softmax,
    "transpose": gc.transpose,
    "stack_dims": gc.stack,
    "unstack_dim": unstack_dim,
    "stack_new": stack_new,
    "expand_dims": lambda x, dim, size=1: gc.expand_dims(x, {dim: size}),
    "broadcast_dims": broadcast_dims,
    "dot": lambda x, y, dim=None: gc.dot(x, y, dim=dim),
    "isel": isel,
    "set_at": set_at,
    "flip": lambda x, dim: gc.isel(x, {dim: slice(None, None, -1)}),
    "const": const,
    "window_sum": window_sum,
    "conv1d": conv1d,
    "grad": gradient(same, same),
    "slice": slice,
    "np": np,
    **stepping(same, same),
    **MATRICES,
    **SYSTEMS,
    "norm": norm,
}
