"""Groups of the elements along a dim: reductions of each, and their results at the elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from graphcore.frontend.core.arguments import Dim, SizeLike, require_dims, size_of, whole
from graphcore.frontend.core.base import Base, Tensor, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, as_array, check_dims, is_labelled, single
from graphcore.frontend.core.suggestions import Listing
from graphcore.frontend.core.user_functions import callback
from graphcore.frontend.core.wrong_calls import worded_methods
from graphcore.frontend.create.inputs import ones
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.pointwise.casting import as_float, astype
from graphcore.frontend.pointwise.elementwise import equal, maximum, not_equal
from graphcore.frontend.pointwise.formulas import where as choose
from graphcore.frontend.pointwise.missing import may_be_null, notnull
from graphcore.frontend.reduce import masking
from graphcore.frontend.reduce.segments import SEGMENTED, Segments, segments_of
from graphcore.ir import INT, Literal, Node
from graphcore.ir.dtypes import sum_of
from graphcore.ir.help_text import parameters
from graphcore.ops import leaf, named
from graphcore.ops.labels import labels_of
from graphcore.ops.named import close_match

from . import sorted_groups

__all__ = ["groupby"]


@worded_methods
class GroupBy(Listing):
    """A tensor whose elements along some dims are in groups: the result of `x.groupby(ids, size)`.

    Its reductions have the dim of the groups in place of these dims. A nan makes the result of its
    group nan; `skipna` leaves it out. `expand` puts a value for each group at its elements, and so
    does arithmetic. `groups - groups.mean()` are the deviations of all elements from the means of
    their groups.
    """

    __slots__ = ("_segments",)

    def __init__(self, segments: Segments) -> None:
        self._segments = segments

    def __repr__(self) -> str:
        s = self._segments
        return f"<GroupBy {s.x!r} over {s.over} in {s.name}={s.size}>"

    def count(self) -> Tensor:
        """The number of elements of each group that are not nan, in int64."""
        return self._number(skipna=True)

    def sum(self, *, skipna: bool = False) -> Tensor:
        """Sum of each group; 0 where it has no elements."""
        x = self._fill(0, skipna)
        return self._sum(astype(x, sum_of(x.dtype)))

    def prod(self, *, skipna: bool = False) -> Tensor:
        """Product of each group; 1 where it has no elements."""
        x = self._fill(1, skipna)
        s = self._segments
        return s.order_dims(s.total(named.scatter_prod, astype(x, sum_of(x.dtype))))

    def mean(self, *, skipna: bool = False) -> Tensor:
        """Mean of each group; nan where it has no elements."""

        def mean(x: Tensor) -> Tensor:
            own = GroupBy(self._segments._replace(x=x))
            return own._ratio(own._sum(as_float(own._fill(0, skipna))), skipna)

        return masking.by_single(mean, self._segments.x)

    def var(self, *, ddof: int = 0, skipna: bool = False) -> Tensor:
        """`sum(abs(x - mean) ** 2) / (n - ddof)` for n elements; nan where n is `ddof`."""
        ddof = whole(ddof, "ddof", self._segments.x.node, least=0)

        def var(x: Tensor) -> Tensor:
            own = GroupBy(self._segments._replace(x=x))
            squares = masking.squared_modulus(x - own.expand(own.mean(skipna=skipna)))
            if skipna:
                squares = choose(notnull(x), squares, 0)
            return own._ratio(own._sum(squares), skipna, ddof)

        return masking.by_single(var, self._segments.x)

    def std(self, *, ddof: int = 0, skipna: bool = False) -> Tensor:
        """Square root of `var`; where all elements are equal its derivative is 0."""
        return masking.root(self.var(ddof=ddof, skipna=skipna))

    def max(self, *, skipna: bool = False) -> Tensor:
        """Largest element of each group; nan, or the lowest integer, where it has none.

        Tied elements share the derivative evenly.
        """
        return self._extreme(1, skipna)

    def min(self, *, skipna: bool = False) -> Tensor:
        """Smallest element of each group; nan, or the highest integer, where it has none.

        Tied elements share the derivative evenly.
        """
        return self._extreme(-1, skipna)

    def median(self, *, skipna: bool = False) -> Tensor:
        """Median of each group; nan where it has no elements."""
        return sorted_groups.group_median(self._segments, skipna)

    def quantile(self, q: Any, *, method: str = "linear", skipna: bool = False) -> Tensor:
        """Quantiles of each group, with `q` and `method` as in `gc.quantile`; nan where empty."""
        return sorted_groups.group_quantile(self._segments, q, method, skipna)

    def first(self, *, skipna: bool = False) -> Tensor:
        """First element of each group; nan where it has none, for which integers become floats."""
        return sorted_groups.group_end(self._segments, last=False, skipna=skipna)

    def last(self, *, skipna: bool = False) -> Tensor:
        """Last element of each group; nan where it has none, for which integers become floats."""
        return sorted_groups.group_end(self._segments, last=True, skipna=skipna)

    def argmax(self, *, skipna: bool = False) -> Tensor:
        """Position of the first largest element of each group, as `x` has it; -1 where it has none.

        A nan counts as the largest unless it is left out. Of several dims the position is
        row-major.
        """
        best = self.max(skipna=skipna)
        return sorted_groups.extreme_position(self._segments, best, skipna)

    def argmin(self, *, skipna: bool = False) -> Tensor:
        """Position of the first smallest element of each group, as `argmax` has it."""
        best = self.min(skipna=skipna)
        return sorted_groups.extreme_position(self._segments, best, skipna)

    def cumsum(self, *, skipna: bool = False) -> Tensor:
        """Running sum within each group, at the elements of `x`; elements left out add nothing."""
        return sorted_groups.group_cumsum(self._segments, self._fill(0, skipna))

    def map(self, function: Callable[[Tensor, Tensor], Tensor], most: SizeLike) -> Tensor:
        """`function(members, where)`, called once for all groups.

        `members` are the elements of each group along the dim of `x`, up to `most` of them, and nan
        beyond; `where` is true for those that there are. A result for each group has their dim; one
        for each element is put at the elements. A larger group is refused at the call.
        """
        s = self._segments
        called = callback("function", function, "members", "where")
        return sorted_groups.group_map(s, called, size_of(s.over[0], most))

    def any(self) -> Tensor:
        """Whether any element of each group is not 0; false where it has none."""
        return not_equal(self._sum(astype(not_equal(self._segments.x, 0), "int64")), 0)

    def all(self) -> Tensor:
        """Whether no element of each group is 0; true where it has none."""
        return equal(self._sum(astype(equal(self._segments.x, 0), "int64")), 0)

    def expand(self, values: Operand) -> Tensor:
        """`values`, which have one element for each group, at the elements of the groups."""
        s = self._segments
        y = wrap(single(values))
        if s.name not in y.dims:
            cure = close_match(s.name, y.dims)
            raise refusal(f"the values have no dim {s.name!r} of groups", y, cure=cure)
        return isel(y, {s.name: wrap(s.ids)})

    def __add__(self, values: Operand) -> Tensor:
        return self._segments.x + self.expand(values)

    def __sub__(self, values: Operand) -> Tensor:
        return self._segments.x - self.expand(values)

    def __mul__(self, values: Operand) -> Tensor:
        return self._segments.x * self.expand(values)

    def __truediv__(self, values: Operand) -> Tensor:
        return self._segments.x / self.expand(values)

    def _fill(self, neutral: complex, skipna: bool) -> Tensor:
        x = self._segments.x
        return choose(notnull(x), x, neutral) if skipna and may_be_null(x) else x

    def _sum(self, x: Tensor) -> Tensor:
        return self._segments.order_dims(self._segments.total(named.scatter, x))

    def _number(self, skipna: bool) -> Tensor:
        """The number of elements of each group that are counted, in int64."""
        s = self._segments
        if skipna:
            return self._sum(astype(notnull(s.x), "int64"))
        return s.total(named.scatter, ones({dim: s.x.sizes[dim] for dim in s.over}, "int64"))

    def _ratio(self, total: Tensor, skipna: bool, ddof: int = 0) -> Tensor:
        divisor = maximum(self._number(skipna) - ddof, 0)
        return self._segments.order_dims(masking.ratio(total, astype(divisor, total.dtype)))

    def _extreme(self, sign: int, skipna: bool) -> Tensor:
        x = self._fill(masking.identity_of_extreme(self._segments.x.dtype, sign), skipna)
        op = named.scatter_max if sign > 0 else named.scatter_min
        found = self._segments._replace(x=x).extreme(op, sign)
        if may_be_null(x):
            found = choose(equal(self._number(skipna), 0), math.nan, found)
        return self._segments.order_dims(found)


@parameters(
    ids="The number of the group of each element: an integer tensor, in any order, or a list "
    "along `dim`. Numbers that are negative or too large are refused, now or at the call.",
    size="The number of groups: an integer or any other size. Without it `ids` are labels, such "
    "as strings or months, that are known now: each is a group, in their order.",
    dim=SEGMENTED["dim"].replace("segment_ids", "ids"),
    name="The dim of the groups, which replaces the first of `dim`; by default the name of a "
    "DataArray of numbers, else the same name.",
)
def groupby(
    x: Operand, ids: Any, size: SizeLike = None, dim: Dim = None, name: str | None = None
) -> GroupBy:
    """`x` with its elements in groups by label or number; its methods are reductions of each group.

    These are `sum mean var std median quantile max min argmax argmin first last prod any all
    count`, as in xarray, except that nan is left out only with `skipna=True`. `cumsum` and `map`
    give a result for each element. A coordinate of a DataArray gives labels, as in
    `x.groupby(da.time.dt.month).mean()`; results that are DataArrays have them.

    GraphError if there is no such dim, if a label is missing, or if the number of a group is
    negative or too large.

    >>> x = gc.constant([1.0, 2.0, 5.0], "day")
    >>> months = x.groupby([0, 1, 0], 2, "day", name="month")
    >>> gc.compile([], [months.mean(), months - months.mean()])()
    [array([3., 2.]), array([-2.,  0.,  2.])]
    """
    if isinstance(ids, str):
        cure = "give the labels themselves, of a DataArray da: x.groupby(da.time.dt.month), "
        cure += "x.groupby(da.time.dt.season)"
        raise type_refusal(f"ids={ids!r} is text", single(x), cure=cure)
    if size is None:
        return GroupBy(by_labels(single(x), ids, dim, name))
    s = segments_of(x, ids, size, dim, name or name_of(ids, single(x)))
    require_dims(s.x.node, s.over)
    if s.ids.type.dtype.kind not in "iu":
        cure = "number the labels: np.unique(labels, return_inverse=True)"
        reason = f"numbers of groups are integers, not {s.ids.type.dtype}"
        raise type_refusal(reason, s.x, wrap(s.ids), cure=cure)
    return GroupBy(s)


def by_labels(x: Node, ids: Any, dim: Dim, name: str | None) -> Segments:
    """The elements of `x` in a group for each label, in their order."""
    if isinstance(ids, Base):
        cure = "give how many groups there are: x.groupby(ids, size)"
        raise refusal("the number of groups is not known", x, ids, cure=cure)
    values = as_array(ids.values if is_labelled(ids) else ids, x)
    missing = sum(label is None or label != label for label in values.ravel().tolist())
    if missing:
        cure = "leave these elements out before the call, or give them a label, ids.fillna(label)"
        raise refusal(f"{missing} labels of groups are missing", x, cure=cure)
    try:
        labels, found = np.unique(values, return_inverse=True)
    except TypeError as error:  # of objects
        raise refusal(f"labels have no order: {error}", x, cure="give labels of one kind") from None
    numbers: Any = found.reshape(values.shape)
    if is_labelled(ids):
        literal, dims = Literal(numbers, INT), tuple(ids.dims)
        check_dims(dims)
        numbers = wrap(leaf.constant(value=literal, dims=dims, labels=labels_of(ids)))
    named = name or name_of(ids, x)
    s = segments_of(wrap(x), numbers, len(labels), dim, named)
    require_dims(s.x.node, s.over)
    as_xarray = labels.astype(object) if labels.dtype.kind == "U" else labels
    return s._replace(labels=as_xarray)


def name_of(ids: Any, x: Node) -> str | None:
    """The name of a DataArray of numbers, such as "month", if it is not a dim of `x`."""
    name = None if isinstance(ids, Base) or not is_labelled(ids) else getattr(ids, "name", None)
    return name if isinstance(name, str) and name not in x.type.dims else None
