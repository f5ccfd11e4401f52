"""Arrays by positions: tensors whose dims are called d0, d1, ... in order."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

import graphcore as gc

from .words import Function


def elementwise(function: Function) -> Function:
    """`function` with NumPy's broadcasting of axes, the last ones aligned."""

    def broadcasting(*operands: Any) -> Positional:
        xs = [x if np.isscalar(x) else positional(x) for x in operands]
        arrays = [x for x in xs if isinstance(x, Positional)]
        rank = max((len(x.shape) for x in arrays), default=0)
        stretched = np.broadcast_shapes(*[x.shape for x in arrays])

        def aligned(x: Positional) -> gc.Tensor:
            names = axes(rank)[rank - len(x.shape) :]
            tensor = gc.rename(x.tensor, dict(zip(x.tensor.dims, names)))
            sizes = zip(names, x.shape, stretched[rank - len(names) :])
            return gc.squeeze(tensor, [dim for dim, own, wanted in sizes if own != wanted])

        found = function(*[aligned(x) if isinstance(x, Positional) else x for x in xs])
        return Positional(found, axes(rank))

    return broadcasting


def sides(function: Function) -> tuple[Function, Function]:
    """An operator of Python with the operands as they come, and the other way round."""
    return elementwise(function), elementwise(lambda x, y: function(y, x))


class Positional:
    """An array by positions: a tensor with the dims d0, d1, ... in order."""

    __array_ufunc__ = None  # so that NumPy arrays leave their operators to it

    def __init__(self, tensor: gc.Tensor, dims: Iterable[str] | None = None) -> None:
        """`tensor` with its dims in the order `dims`."""
        order = tensor.dims if dims is None else tuple(dims)
        self.tensor = gc.transpose(tensor, *order).rename(dict(zip(order, axes(len(order)))))

    __add__, __radd__ = sides(operator.add)
    __sub__, __rsub__ = sides(operator.sub)
    __mul__, __rmul__ = sides(operator.mul)
    __truediv__, __rtruediv__ = sides(operator.truediv)
    __floordiv__, __rfloordiv__ = sides(operator.floordiv)
    __mod__, __rmod__ = sides(operator.mod)
    __pow__, __rpow__ = sides(operator.pow)
    __lt__, __gt__ = elementwise(operator.lt), elementwise(operator.gt)
    __le__, __ge__ = elementwise(operator.le), elementwise(operator.ge)
    __eq__, __ne__ = elementwise(operator.eq), elementwise(operator.ne)
    __neg__, __abs__ = elementwise(operator.neg), elementwise(operator.abs)
    __hash__ = object.__hash__

    def __matmul__(self, other: Any) -> Positional:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Positional:
        return matmul(other, self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    def dims(self, at: int | Iterable[int] | None) -> list[str]:
        """The names of some axes, or of all."""
        own = self.tensor.dims
        if at is None:
            return list(own)
        return [own[i] for i in ([at] if isinstance(at, int) else at)]

    def __getitem__(self, key: Any) -> Positional:
        """As in NumPy: integers, slices, `...`, None, and arrays of positions side by side."""
        parts = list(key) if isinstance(key, tuple) else [key]
        if not any(part is Ellipsis for part in parts):
            parts.append(Ellipsis)
        at = next(i for i, part in enumerate(parts) if part is Ellipsis)
        named = [part for part in parts if part is not None and part is not Ellipsis]
        rest = [slice(None)] * (len(self.shape) - len(named))
        own = iter(self.tensor.dims)
        indexers, dims, new = {}, [], []
        for i, part in enumerate(parts[:at] + rest + parts[at + 1 :]):
            if part is None:
                new.append(f"new{i}")
                dims.append(f"new{i}")
                continue
            dim = next(own)
            indexers[dim] = part if isinstance(part, (int, slice)) else places(part)
            if isinstance(part, slice):
                dims.append(dim)
            elif not isinstance(part, int):
                dims += [place for place in indexers[dim].dims if place not in dims]
        return Positional(gc.expand_dims(gc.isel(self.tensor, indexers), new), dims)


def axes(count: int) -> list[str]:
    return [f"d{i}" for i in range(count)]


def positional(x: Any) -> Positional:
    if isinstance(x, Positional):
        return x
    array = np.asarray(x)
    return Positional(gc.constant(array, axes(array.ndim)))


def broadcast(x: Any, shape: Iterable[int]) -> Positional:
    return elementwise(gc.where)(np.ones(tuple(shape), bool), x, x)


def places(index: Any) -> gc.Tensor:
    """Positions as integers, along dims p0, p1, ..."""
    known = index if isinstance(index, Positional) else positional(np.asarray(index, int))
    return gc.rename(known.tensor, {dim: f"p{i}" for i, dim in enumerate(known.dims(None))})


def dot(x: Any, y: Any) -> Positional:
    """numpy.dot: the last axis of x, and the last but one of y or its only one."""
    x, y = positional(x), positional(y)
    if not x.shape or not y.shape:
        return elementwise(operator.mul)(x, y)
    left = [f"x{i}" for i in range(len(x.shape))]
    right = [f"y{i}" for i in range(len(y.shape))]
    right[max(len(right) - 2, 0)] = left[-1]
    named = [gc.rename(z.tensor, dict(zip(z.dims(None), d))) for z, d in ((x, left), (y, right))]
    return Positional(gc.dot(*named, dim=left[-1]))


def matmul(x: Any, y: Any) -> Positional:
    """numpy.matmul, where what comes before the two matrix axes is equal or broadcast."""
    x, y = positional(x), positional(y)
    if len(x.shape) == 1 or len(y.shape) <= 1:
        return dot(x, y)
    product = x[..., None] * y[..., None, :, :]
    return Positional(gc.sum(product.tensor, product.dims(-2)))
