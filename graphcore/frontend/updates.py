"""Functional updates: `x.at[positions].add(y)` is `x` with `y` added there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphcore.ir.errors import GraphTypeError
from graphcore.ir.node import Node
from graphcore.ops import named

from .arguments import names, present
from .base import refusal, wrap
from .elementwise import add, astype
from .indexing import Selection, by_name, pick, selection
from .lift import Operand, common

if TYPE_CHECKING:
    from .tensor import Tensor


class At:
    """Where `x` is indexed by `x.at[...]`, which takes what `x[...]` takes."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Region:
        return Region(self._x, key)


class Region:
    """The places `x.at[...]` of a tensor, to be changed in a new one.

    Values broadcast by name to the dims of `x[...]`; one that has others, or other sizes, is
    refused. They are taken in the dtype of `x`, as NumPy's in-place arithmetic has it: complex to
    real and floats to integers are refused.

    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"batch": None, "class": 3})
    >>> x.at[{"class": 0}].add(1.0)
    <Tensor: f64[batch, class=3]>
    """

    __slots__ = ("_at", "_x")

    def __init__(self, x: Tensor, key: Any) -> None:
        node = x.node
        wanted = by_name("at", x, key)
        dims = present("at", node, names("at", tuple(wanted), node), "raise")
        self._x = x
        self._at = selection(node, {dim: wanted[dim] for dim in node.type.dims if dim in dims})

    def get(self) -> Tensor:
        """The values there: `x[...]`."""
        return wrap(pick(self._x.node, self._at))

    def add(self, y: Operand) -> Tensor:
        """`x` with `y` added there; a place that is named several times gets every one."""
        return add(self._x, wrap(spread(self._values("at.add", y), self._x.node, self._at)))

    def _values(self, function: str, y: Operand) -> Node:
        """`y` in the dtype of `x`, with the dims of the region."""
        region, dtype = self.get(), self._x.dtype
        _, values = common(function, region, y)
        if not np.can_cast(values.type.dtype, dtype, "same_kind"):
            cure = f"cast it with astype({str(dtype)!r}), or cast what is updated"
            reason = f"values of {values.type.dtype} do not fit into {dtype}"
            raise refusal(function, reason, self._x, values, cure=cure, kind=GraphTypeError)
        for dim in values.type.dims:
            if dim not in region.dims:
                cure = f"the places have the dims {region.dims}; sum or index it away"
                reason = f"the values have a dim {dim!r} that the places lack"
                raise refusal(function, reason, region, values, cure=cure)
        values = astype(wrap(values), dtype).node
        return named.broadcast(values, dims=region.dims, sizes=region.shape)


def spread(y: Node, x: Node, at: Selection) -> Node:
    """Zeros like `x` but for the values `y` at a selection, added up: `pick` transposed."""
    if at.indices:
        left = pick(x, at._replace(indices={})).type
        kept = [dim for dim in left.dims if dim not in at.indices]
        over = tuple(dim for dim in y.type.dims if dim not in kept)
        dims = tuple(at.indices)
        sizes = tuple(left.size(dim) for dim in dims)
        y = named.scatter(y, *at.indices.values(), over=over, dims=dims, sizes=sizes)
    ranges = {dim: (start, step) for dim, (start, _, step) in at.ranges.items()}
    ranges |= {dim: (start, 1) for dim, start in at.positions.items()}
    if at.positions:
        dims = (*at.positions, *y.type.dims)
        y = named.broadcast(y, dims=dims, sizes=(*(1,) * len(at.positions), *y.type.shape))
    if ranges:
        starts, steps = zip(*ranges.values(), strict=True)
        sizes = tuple(x.type.size(dim) for dim in ranges)
        y = named.embed(y, dims=tuple(ranges), starts=starts, sizes=sizes, steps=steps)
    return y
