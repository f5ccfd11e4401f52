"""Reductions by group: elements along a dim that have the same segment number are combined."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphcore.frontend.core.arguments import Dim, SizeLike, dims_of, names, size_of
from graphcore.frontend.core.base import Base, Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, array, as_array, is_labelled, single
from graphcore.frontend.create.inputs import full, ones
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.shape.dims import label
from graphcore.ir import Node, Op, Size
from graphcore.ir.dtypes import float_for, sum_of
from graphcore.ir.errors import GraphIndexError
from graphcore.ir.help_text import parameters
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


SEGMENTED = {
    "segment_ids": "The segment number of each element: an integer tensor, in any order, or a list "
    "along `dim`. Numbers that are negative or too large are refused, now or at the call.",
    "size": "The number of segments: an integer or any other size.",
    "dim": "The dims to reduce; None means those of `segment_ids`, or of a vector for a list. All "
    "other dims are batch.",
    "name": "The dim of the segments, which replaces the first of `dim`; by default the same name.",
}


class Segments(NamedTuple):
    """Values, segment numbers, the dims that vanish, and the dim of segments with its size.

    Results have these labels along it.
    """

    x: Tensor
    ids: Node
    over: tuple[str, ...]
    name: str
    size: Size
    labels: np.ndarray[Any, Any] | None = None

    def total(self, op: Op, x: Tensor) -> Tensor:
        """The values of each segment combined by `op`."""
        given = {"over": self.over, "dims": (self.name,), "sizes": (self.size,)}
        return wrap(op(x.node, self.ids, **given))

    def extreme(self, op: Op, sign: int) -> Tensor:
        """The largest (sign 1) or smallest (-1) value of each segment; the identity if empty."""
        start = full(
            {self.name: self.size}, identity_of_extreme(self.x.dtype, sign), self.x.dtype
        ).node
        found = op(start, self.x.node, self.ids, over=self.over, dims=(self.name,))
        return self._replace(labels=None).order_dims(wrap(found))

    def order_dims(self, found: Tensor) -> Tensor:
        """`found` with the new dim where the first dim that vanished was."""
        dims = (*self.x.dims, *self.ids.type.dims)
        placed = dict.fromkeys(self.name if dim in self.over else dim for dim in dims)
        return self.labelled(found.transpose(*placed))

    def labelled(self, found: Tensor) -> Tensor:
        """`found` with the labels of the segments, if they have some."""
        return found if self.labels is None else label(found, self.name, self.labels)


def segments_of(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim, name: str | None
) -> Segments:
    """The arguments of a segment function, checked."""
    node = single(x)
    listed = isinstance(segment_ids, (list, tuple, range)) or hasattr(segment_ids, "__array__")
    labelled = isinstance(segment_ids, Base) or is_labelled(segment_ids)
    along = node.type.dims[0] if dim is None and len(node.type.dims) == 1 else dim
    if listed and not labelled and isinstance(along, str):
        ids = array(as_array(segment_ids, node), (along,))
    else:
        ids = single(segment_ids)
    over = dims_of(ids, dim, ordered=True)
    for missing in (d for d in over if d not in (*node.type.dims, *ids.type.dims)):
        cure = close_match(missing, tuple(dict.fromkeys((*node.type.dims, *ids.type.dims))))
        raise refusal(f"neither operand has a dim {missing!r}", node, ids, cure=cure)
    if name is None and len(over) != 1:
        cure = "name the dim of segments: name='segment'"
        raise refusal(f"the segments replace dims {over}", node, ids, cure=cure)
    (new,) = over if name is None else names(name)
    many = size_of(new, size)
    numbers = checked_numbers("segments", ids, many)
    return Segments(wrap(node), numbers, over, new, many)


def checked_numbers(what: str, ids: Node, size: Size) -> Node:
    """Numbers of segments or classes, unsigned, so that a negative one is refused as too large."""
    if ids.op is not leaf.constant:
        signed = ids.type.dtype.kind == "i"
        return elementwise.cast(ids, dtype=np.dtype(np.uint64)) if signed else ids
    values = ids.attrs["value"].array
    wrong = values[(values < 0) | (isinstance(size, int) and values >= size)]
    if wrong.size:
        cure = "numbers are 0 or more and less than the size"
        if values.min() > 0 and values.max() == size:
            cure = f"{cure}: subtract 1, as yours start at 1"
        reason = f"number {wrong[0]} is outside of {size} {what}"
        raise refusal(reason, ids, cure=cure, kind=GraphIndexError)
    return ids


@parameters(**SEGMENTED)
def segment_sum(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Sum of each segment; 0 for an empty one.

    Small integers and bool are widened, as in NumPy.

    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_sum(x, [0, 2, 0], 3, dim="row", name="group"))()
    array([4., 0., 2.])
    """
    s = segments_of(x, segment_ids, size, dim, name)
    return s.order_dims(s.total(named.scatter, astype(s.x, sum_of(s.x.dtype))))


@parameters(**SEGMENTED)
def segment_prod(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Product of each segment; 1 for an empty one.

    Small integers and bool are widened, as in NumPy. The derivative is exact where elements are 0.

    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_prod(x, [0, 2, 0], 3, dim="row"))()
    array([3., 1., 2.])
    """
    s = segments_of(x, segment_ids, size, dim, name)
    return s.order_dims(s.total(named.scatter_prod, astype(s.x, sum_of(s.x.dtype))))


@parameters(**SEGMENTED)
def segment_mean(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Mean of each segment; nan for an empty one.

    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_mean(x, [0, 2, 0], 3, dim="row"))()
    array([ 2., nan,  2.])
    """
    s = segments_of(x, segment_ids, size, dim, name)
    dtype = float_for(s.x.dtype)
    lengths = {dim: (s.x.sizes | s.ids.type.sizes)[dim] for dim in s.over}
    counts = s.total(named.scatter, ones(lengths, dtype))
    return s.order_dims(s.total(named.scatter, astype(s.x, dtype)) / counts)


@parameters(**SEGMENTED)
def segment_max(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Largest element of each segment, nan if any is nan; -inf for an empty one.

    For integers an empty segment gives the lowest value of their dtype. Tied elements share the
    derivative evenly.

    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_max(x, [0, 2, 0], 3, dim="row"))()
    array([  3., -inf,   2.])
    """
    return segments_of(x, segment_ids, size, dim, name).extreme(named.scatter_max, 1)


@parameters(**SEGMENTED)
def segment_min(
    x: Operand, segment_ids: Any, size: SizeLike, dim: Dim = None, name: str | None = None
) -> Tensor:
    """Smallest element of each segment, nan if any is nan; inf for an empty one.

    For integers an empty segment gives the highest value of their dtype. Tied elements share the
    derivative evenly.

    >>> x = gc.constant([1.0, 2.0, 3.0], "row")
    >>> gc.compile([], gc.segment_min(x, [0, 2, 0], 3, dim="row"))()
    array([ 1., inf,  2.])
    """
    return segments_of(x, segment_ids, size, dim, name).extreme(named.scatter_min, -1)
