"""Segments: the places along a dim that bear the same number, brought together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphcore.frontend.core.arguments import Dim, SizeLike, dims_of, names, size_of
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, array, as_array, single
from graphcore.frontend.create.inputs import full, ones
from graphcore.frontend.pointwise.casting import astype
from graphcore.ir.dtypes import float_for, sum_of
from graphcore.ir.errors import GraphIndexError
from graphcore.ir.node import Node
from graphcore.ir.op import Op
from graphcore.ir.sizes import Size
from graphcore.ops import elementwise, leaf, named
from graphcore.ops.named import close_match

from .masking import identity_of_extreme

__all__ = [
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
]


class Segments(NamedTuple):
    """Values, the numbers of their segments, the dims that vanish, and the one that comes."""

    x: Tensor
    ids: Node
    over: tuple[str, ...]
    name: str
    size: Size

    def total(self, op: Op, x: Tensor) -> Tensor:
        """Values brought together by an op."""
        given = {"over": self.over, "dims": (self.name,), "sizes": (self.size,)}
        return wrap(op(x.node, self.ids, **given))

    def extreme(self, op: Op, sign: int) -> Tensor:
        """The largest (sign 1) or smallest (-1) values; of nothing, what none falls below."""
        start = full(
            {self.name: self.size}, identity_of_extreme(self.x.dtype, sign), self.x.dtype
        ).node
        found = op(start, self.x.node, self.ids, over=self.over, dims=(self.name,))
        return self.ordered(wrap(found))

    def ordered(self, found: Tensor) -> Tensor:
        """The new dim in the place of the first that vanished."""
        dims = (*self.x.dims, *self.ids.type.dims)
        placed = dict.fromkeys(self.name if dim in self.over else dim for dim in dims)
        return found.transpose(*placed)


def segments_of(
    function: str, x: Operand, segment_ids: Any, size: SizeLike, dim: Dim, name: str | None
) -> Segments:
    """The arguments, understood."""
    node = single(function, x)
    if isinstance(segment_ids, (list, tuple, range, np.ndarray)) and isinstance(dim, str):
        ids = array(function, as_array(function, segment_ids, node), (dim,))
    else:
        ids = single(function, segment_ids)
    over = dims_of(function, ids, dim, ordered=True)
    for missing in (d for d in over if d not in (*node.type.dims, *ids.type.dims)):
        cure = close_match(missing, tuple(dict.fromkeys((*node.type.dims, *ids.type.dims))))
        raise refusal(function, f"neither operand has a dim {missing!r}", node, ids, cure=cure)
    if name is None and len(over) != 1:
        cure = "say what the dim of segments is called: name='segment'"
        raise refusal(function, f"segments run over dims {over}", node, ids, cure=cure)
    (new,) = over if name is None else names(function, name)
    many = size_of(function, new, size)
    return Segments(wrap(node), checked_ids(function, ids, many), over, new, many)


def checked_ids(function: str, ids: Node, size: Size) -> Node:
    """Numbers from 0 on, unsigned: a negative one is then as wrong as one too large."""
    if ids.op is not leaf.constant:
        signed = ids.type.dtype.kind == "i"
        return elementwise.cast(ids, dtype=np.dtype(np.uint64)) if signed else ids
    values = ids.attrs["value"].array
    wrong = values[(values < 0) | (isinstance(size, int) and values >= size)]
    if wrong.size:
        cure = "numbers of segments start at 0 and stay below their size"
        reason = f"number {wrong[0]} is outside {size} segments"
        raise refusal(function, reason, ids, cure=cure, kind=GraphIndexError)
    return ids


def segment_sum(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Sum of the values of each segment; 0 where there are none.

    Small integers and bool are widened, as in NumPy.

    Parameters
    ----------
    x
        A tensor.
    segment_ids
        The number of the segment each place belongs to: an integer tensor, in any order, or a list
        along `dim`. Numbers that are negative or too large are refused, now or at the call.
    size
        How many segments there are: an integer, or what else sizes may be.
    dim
        The dims that vanish; None stands for those of `segment_ids`. All other dims are batch.
    name
        The dim of the segments, which stands where the first of `dim` stood; by default the same.

    Examples
    --------
    >>> import graphcore as gc
    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_sum(x, [0, 2, 0], 3, dim="row", name="group"))()
    array([4., 0., 2.])
    """
    s = segments_of("segment_sum", x, segment_ids, size, dim, name)
    return s.ordered(s.total(named.scatter, astype(s.x, sum_of(s.x.dtype))))


def segment_prod(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Product of the values of each segment; 1 where there are none. As `segment_sum`.

    >>> import graphcore as gc
    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_prod(x, [0, 2, 0], 3, dim="row"))()
    array([3., 1., 2.])
    """
    s = segments_of("segment_prod", x, segment_ids, size, dim, name)
    return s.ordered(s.total(named.scatter_prod, astype(s.x, sum_of(s.x.dtype))))


def segment_mean(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Mean of the values of each segment; nan where there are none. As `segment_sum`.

    >>> import graphcore as gc
    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_mean(x, [0, 2, 0], 3, dim="row"))()
    array([ 2., nan,  2.])
    """
    s = segments_of("segment_mean", x, segment_ids, size, dim, name)
    dtype = float_for(s.x.dtype)
    places = {dim: (s.x.sizes | s.ids.type.sizes)[dim] for dim in s.over}
    counts = s.total(named.scatter, ones(places, dtype))
    return s.ordered(s.total(named.scatter, astype(s.x, dtype)) / counts)


def segment_max(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Largest value of each segment, or nan if any is; -inf where there are none. As `segment_sum`.

    Of integers it is the lowest of their dtype where there are none. Tied values share the
    derivative evenly.

    >>> import graphcore as gc
    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_max(x, [0, 2, 0], 3, dim="row"))()
    array([  3., -inf,   2.])
    """
    return segments_of("segment_max", x, segment_ids, size, dim, name).extreme(named.scatter_max, 1)


def segment_min(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Smallest value of each segment, or nan if any is; inf where there are none. As `segment_sum`.

    Of integers it is the highest of their dtype where there are none. Tied values share the
    derivative evenly.

    >>> import graphcore as gc
    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_min(x, [0, 2, 0], 3, dim="row"))()
    array([ 1., inf,  2.])
    """
    return segments_of("segment_min", x, segment_ids, size, dim, name).extreme(
        named.scatter_min, -1
    )
