"""Groups whose elements are put in order: medians, quantiles, first ones, and running sums.

The elements along the dims that are grouped become one line, sorted by group. The time grows with
the number of elements, whatever the number of groups.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from graphcore.frontend.control.loops import while_loop
from graphcore.frontend.core.arguments import require_order
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.create.ranges import arange
from graphcore.frontend.index.indexing import isel, take_along
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.elementwise import equal, less, maximum
from graphcore.frontend.pointwise.formulas import keep_where, where
from graphcore.frontend.pointwise.missing import isnull, may_be_null, notnull
from graphcore.frontend.reduce.masking import Masked
from graphcore.frontend.reduce.running import cumulative_sum
from graphcore.frontend.reduce.segments import Segments
from graphcore.frontend.shape.dims import (
    broadcast_to,
    concat,
    keep_labels,
    stack,
    transpose,
    unstack,
)
from graphcore.ir.dtypes import INT, sum_of
from graphcore.ir.names import Hidden, apart
from graphcore.ir.sizes import Size, count
from graphcore.ops import named

from .quantiles import Order, first_by_fraction, median_of, quantile_of, share_of
from .sorting import argsort

LAST = np.iinfo(INT).max
"""A position behind all others."""


class Line(NamedTuple):
    """The elements of groups along one dim, and the numbers of their groups."""

    x: Tensor
    ids: Tensor
    dim: str

    @property
    def size(self) -> Size:
        """The number of elements."""
        return self.x.sizes[self.dim]

    def sorted(self, by: Tensor | None = None) -> tuple[Line, Tensor]:
        """The line in order of groups, of `by` within a group; and where each element was."""
        order = argsort(self.ids, self.dim)
        if by is not None:
            within = argsort(by, self.dim)
            order = take_along(within, argsort(self.take(self.ids, within), self.dim), self.dim)
        x, ids = (self.take(v, order) for v in (self.x, self.ids))
        return Line(x, ids, self.dim), order

    def take(self, x: Tensor, places: Tensor) -> Tensor:
        """The elements at some places along the line."""
        return take_along(x, places, self.dim)


def sizes_over(s: Segments) -> dict[str, Size]:
    """The sizes of the dims that are grouped."""
    known = s.x.sizes | s.ids.type.sizes
    return {dim: known[dim] for dim in s.over}


def line_of(s: Segments, x: Tensor) -> Line:
    """`x`, which has dims of the elements, as a line."""
    over, ids = sizes_over(s), wrap(s.ids)
    name = apart(Hidden("element"), (*x.dims, *ids.dims, s.name))
    both = [stack(broadcast_to(v.node, {**v.sizes, **over}), {name: s.over}) for v in (x, ids)]
    return Line(both[0], astype(both[1], INT), name)


def in_place(s: Segments, line: Line, found: Tensor, order: Tensor) -> Tensor:
    """Values of the sorted elements, at the elements."""
    back = named.scatter(
        found.node, order.node, over=(line.dim,), dims=(line.dim,), sizes=(line.size,)
    )
    dims = dict.fromkeys((*s.x.dims, *s.ids.type.dims))
    made = transpose(unstack(wrap(back), {line.dim: sizes_over(s)}), *dims)
    return wrap(keep_labels(made.node, s.x.node, [dim for dim in s.over if dim in s.x.dims]))


def count_in_groups(s: Segments, mask: Tensor) -> Tensor:
    """How many elements of each group a mask counts."""
    return s.total(named.scatter, astype(mask, INT))


def order_of(s: Segments, skipna: bool) -> Order:
    """The elements of each group in order; a last nan stands for those of an empty line."""
    require_order(s.x)
    there = broadcast_to(notnull(s.x).node, s.x.sizes | sizes_over(s))
    missing = count_in_groups(s, ~there)
    counted = count_in_groups(s, there) + (0 if skipna else missing)
    every = count_in_groups(s, there) + missing
    line, _ = line_of(s, as_float(s.x)).sorted(by=line_of(s, as_float(s.x)).x)
    values = concat([line.x, math.nan], line.dim)
    nan_rows = equal(counted, 0)
    if not skipna:
        nan_rows = nan_rows | (missing > 0)
    return Order(values, line.dim, counted, nan_rows, starts(s, every))


def starts(s: Segments, every: Tensor) -> Tensor:
    """Where each group begins among the sorted elements."""
    return cumulative_sum(every, s.name) - every


def group_median(s: Segments, skipna: bool) -> Tensor:
    """The median of each group."""
    return s.order_dims(median_of(order_of(s, skipna)))


def group_quantile(s: Segments, q: Any, method: str, skipna: bool) -> Tensor:
    """Quantiles of each group."""
    share, valid = share_of(Masked(s.x, s.over), q, s.name)
    found = quantile_of(order_of(s, skipna), share, valid, method)
    batch = [
        dim for dim in s.order_dims(count_in_groups(s, notnull(s.x))).dims if dim not in share.dims
    ]
    return s.labelled(first_by_fraction(transpose(found, *share.dims, *batch), share, q))


def end_position(s: Segments, mask: Tensor | None, last: bool) -> Tensor:
    """The position of the first or last element that a mask counts; -1 where there is none."""
    over = sizes_over(s)
    name = apart(Hidden("element"), tuple(over))
    place = unstack(arange(count(over.values()), dim=name), {name: over})
    none = -1 if last else LAST
    if mask is not None:
        place = where(mask, place, none)
    op = named.scatter_max if last else named.scatter_min
    found = s._replace(x=place).extreme(op, 1 if last else -1)
    return maximum(found, -1) if last else where(equal(found, LAST), -1, found)


def group_end(s: Segments, last: bool, skipna: bool) -> Tensor:
    """The first or last element of each group; nan where it has none."""
    at = end_position(s, notnull(s.x) if skipna and may_be_null(s.x) else None, last)
    line = line_of(s, s.x)
    x = concat([keep_where(line.x, line.x == line.x), math.nan], line.dim)
    return s.order_dims(isel(x, {line.dim: where(at < 0, line.size, at)}))


def extreme_position(s: Segments, best: Tensor, skipna: bool) -> Tensor:
    """The first position of the extreme of each group; a nan is it, unless left out."""
    chosen = equal(s.x, isel(best, {s.name: wrap(s.ids)}))
    if may_be_null(s.x) and not skipna:
        chosen = chosen | isnull(s.x)
    return s.order_dims(end_position(s, chosen, last=False))


def group_cumsum(s: Segments, x: Tensor) -> Tensor:
    """The running sum within each group: in turn the sums of the last 2, 4, 8, ... elements.

    Elements of other groups take no part, nor does their rounding, or an infinity among them.
    """
    line, order = line_of(s, astype(x, sum_of(x.dtype))).sorted()
    place = arange(line.size, dim=line.dim)

    def double(carry: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        back, total = carry
        before = maximum(place - back, 0)
        same = (place >= back) & equal(line.take(line.ids, before), line.ids)
        return 2 * back, total + where(same, line.take(total, before), 0)

    _, total = while_loop(lambda carry: less(carry[0], line.size), double, (1, line.x))
    return in_place(s, line, total, order)


def group_map(s: Segments, function: Any, most: Size) -> Tensor:
    """`function(members, where)` of all groups at once; results for elements go back to these."""
    (dim,) = s.over if len(s.over) == 1 else (None,)
    if dim is None or dim == s.name:
        cure = "name the dim of groups, and map along one dim: x.groupby(ids, size, dim, name='g')"
        raise refusal(f"the groups {s.name!r} are along {s.over}", s.x, cure=cure)
    line, order = line_of(s, s.x).sorted()
    every = count_in_groups(s, broadcast_to(notnull(s.x).node, s.x.sizes | sizes_over(s)) | True)
    begin = starts(s, every)
    rank = arange(line.size, dim=line.dim) - take_along(begin, line.ids, s.name)
    places = {"over": (line.dim,), "dims": (s.name, dim), "sizes": (s.size, most)}
    members = wrap(named.scatter(line.x.node, line.ids.node, rank.node, **places))
    order_of_dims = [
        (s.name, dim) if own == dim else (own,) for own in (*s.x.dims, *s.ids.type.dims)
    ]
    members = s.labelled(transpose(members, *dict.fromkeys(chain.from_iterable(order_of_dims))))
    there = arange(most, dim=dim) < every
    made: Tensor = function(keep_where(members, there), there)
    if dim not in made.dims:
        return made
    found = take_along(take_along(made, line.ids, s.name), rank, dim)
    return in_place(s, line, found, order)
