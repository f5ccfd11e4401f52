"""Reductions of moving windows (`rolling`), and of blocks that partition dims (`coarsen`)."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import SizeLike
from graphcore.frontend.core.base import Tensor, brief, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.core.public_calls import MAKERS, argument
from graphcore.frontend.core.suggestions import Listing
from graphcore.frontend.core.user_functions import callback
from graphcore.frontend.core.wrong_calls import keyword_cure, worded_methods
from graphcore.frontend.create.inputs import ones
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.index.slices import cut
from graphcore.frontend.order import quantiles
from graphcore.frontend.order.searching import Side
from graphcore.frontend.pointwise.casting import as_float, with_fill, with_nan
from graphcore.frontend.pointwise.formulas import keep_where
from graphcore.frontend.reduce import reductions
from graphcore.frontend.shape.dims import keep_labels, transpose, unstack
from graphcore.ir import Node, Size
from graphcore.ir.help_text import parameters
from graphcore.ir.names import hidden_names
from graphcore.ir.provenance import public_call
from graphcore.ir.sizes import count, minimum, same

from .windows import Steps, each, pad, strides, windows_by

__all__ = [
    "coarsen",
    "rolling",
]

Boundary = Literal["exact", "trim", "pad"]
Reduction = Callable[..., "Tensor"]


@parameters(
    dim="For each dim the size of its windows, as a dict or as keywords.",
    min_periods="The number of elements that a window needs; None means all of them.",
    center="Whether each position is the middle of its window; for all dims, or for each in a "
    "dict.",
)
def rolling(
    x: Operand,
    /,
    dim: Mapping[str, SizeLike] | None = None,
    min_periods: int | None = None,
    center: bool | Mapping[str, bool] = False,
    **window_kwargs: SizeLike,
) -> Rolling:
    """Windows that end at each position along some dims, to be reduced: `x.rolling(time=3).mean()`.

    Its methods are `sum prod mean median var std max min count` and `reduce(function)`. Their
    results have the dims of `x`, and nan where a window has fewer elements than `min_periods`.
    `construct("lag")` gives the windows themselves. As in xarray, nan does not count as an element,
    and integers become floats. Each window is reduced separately: the cost grows with its size.

    >>> x = gc.constant([1.0, 2.0, 4.0, 8.0], "time")
    >>> gc.compile([], [x.rolling(time=3).mean(), x.rolling(time=3, min_periods=1).max()])()
    [array([       nan,        nan, 2.33333333, 4.66666667]), array([1., 2., 4., 8.])]
    """
    value = wrap(single(x))
    sizes = window_sizes(rolling, value, dim, window_kwargs)
    return Rolling(value, sizes, min_periods, center)


@parameters(
    dim="For each dim the size of its blocks, as a dict or as keywords.",
    boundary='How an incomplete block is treated: "exact" refuses it, "trim" drops it, "pad" makes '
    "a smaller block, for which integers become floats. One word, or one for each dim.",
    side='Where complete blocks begin: "left" leaves an incomplete block at the end, "right" at '
    "the start.",
)
def coarsen(
    x: Operand,
    /,
    dim: Mapping[str, SizeLike] | None = None,
    boundary: Boundary | Mapping[str, Boundary] = "exact",
    side: Side | Mapping[str, Side] = "left",
    **window_kwargs: SizeLike,
) -> Coarsen:
    """Blocks that partition some dims, to be reduced: `x.coarsen(time=12).mean()`.

    Its methods are `sum prod mean median var std max min count` and `reduce(function)`. Their
    results have one element for each block. `construct(time=("year", "month"))` gives the blocks
    themselves. Unlike in xarray, a nan makes its block nan; `x.coarsen(time=12).mean(skipna=True)`
    leaves it out.

    GraphError if, with "exact", a size is not a multiple of its block size.

    >>> x = gc.constant([1.0, 2.0, 4.0, 8.0, 16.0], "time")
    >>> gc.compile([], [x.coarsen(time=2, boundary=b).sum() for b in ("trim", "pad")])()
    [array([ 3., 12.]), array([ 3., 12., 16.])]
    """
    value = wrap(single(x))
    sizes = window_sizes(coarsen, value, dim, window_kwargs)
    return Coarsen(value, sizes, boundary, side)


def window_sizes(
    function: Callable[..., Any],
    x: Tensor,
    dim: Mapping[str, SizeLike] | None,
    given: Mapping[str, SizeLike],
) -> dict[str, SizeLike]:
    """The sizes of windows by dim; a keyword that is no dim, but nearly an option, is refused."""
    options = [*inspect.signature(function).parameters][2:-1]
    for name in [name for name in given if name not in x.dims]:
        if cure := keyword_cure(name, given[name], options, []):
            raise type_refusal(f"takes no {name}", x, cure=cure)
    return arguments.mapping(dim, given, "{'dim': 3}", x)


def by_window(function: Reduction, doc: str) -> Callable[..., Tensor]:
    """The method that applies one of our own reductions to each window."""

    def method(self: Windowed, **options: Any) -> Tensor:
        known = dict(inspect.signature(function).parameters)
        del known["x"], known["dim"]
        for name in [name for name in options if name not in known]:
            call = f"{MAKERS[type(self).__name__]}.{function.__name__}"
            cure = keyword_cure(name, options[name], [*known], [])
            cure = cure or f"write {call}({', '.join(map(argument, known.values()))})"
            raise type_refusal(f"takes no {name}", self._x, cure=cure)
        return self._apply(function, options)

    method.__name__, method.__doc__ = function.__name__, doc
    method.__qualname__ = f"Windowed.{function.__name__}"
    method.__code__ = method.__code__.replace(co_qualname=method.__qualname__)  # lines say it
    del method.__annotations__["self"]  # as for methods that are written out
    return method


@worded_methods
class Windowed(Listing):
    """A tensor divided into windows, each of which is reduced."""

    __slots__ = ("_dims", "_places", "_sizes", "_x")

    def __init__(self, x: Operand, sizes: Mapping[str, SizeLike]) -> None:
        node = single(x)
        self._x = wrap(node)
        self._dims = arguments.names(tuple(sizes), node)
        arguments.require_dims(node, self._dims)
        self._sizes = tuple(arguments.size_of(dim, sizes[dim]) for dim in self._dims)
        windows = [f"{dim} window" for dim in self._dims]
        self._places = tuple(hidden_names(windows, node.type.dims).values())
        if not self._dims or 0 in self._sizes:
            dim = next(iter(node.type.dims), "row")
            cure = f"write x.{public_call()}({{{dim!r}: 3}}); a window has at least one element"
            raise refusal(f"windows of sizes {dict(sizes)}", node, cure=cure)

    def __repr__(self) -> str:
        sizes = dict(zip(self._dims, self._sizes, strict=True))
        return f"<{type(self).__name__} {sizes} of {self._x!r}>"

    def reduce(self, function: Reduction, **options: Any) -> Tensor:
        """The result of `function(windows, dims, **options)`, called once for all windows."""
        raise AssertionError("defined by each kind of windows")

    def _apply(self, function: Reduction, options: dict[str, Any]) -> Tensor:
        """`reduce` by one of our own reductions, which leaves out padding."""
        raise AssertionError("defined by each kind of windows")

    sum = by_window(reductions.sum, "Sum of each window.")
    prod = by_window(reductions.prod, "Product of each window.")
    mean = by_window(reductions.mean, "Mean of each window.")
    var = by_window(reductions.var, "Variance of each window, with `ddof` as in `gc.var`.")
    std = by_window(
        reductions.std, "Standard deviation of each window, with `ddof` as in `gc.std`."
    )
    median = by_window(quantiles.median, "Median of each window.")
    max = by_window(reductions.max, "Largest value of each window.")
    min = by_window(reductions.min, "Smallest value of each window.")


@worded_methods
class Rolling(Windowed):
    """The windows that end at each position, or are centred there; made by `gc.rolling`."""

    __slots__ = ("_before", "_enough")

    def __init__(
        self,
        x: Operand,
        sizes: Mapping[str, SizeLike],
        min_periods: int | None,
        center: bool | Mapping[str, bool],
    ) -> None:
        super().__init__(x, sizes)
        centered = each(self._dims, center)
        for middle in centered:
            if not isinstance(middle, bool):
                cure = "write center=True or False, or one for each dim"
                reason = f"center={brief(middle)} is not True or False"
                raise type_refusal(reason, self._x, cure=cure)
        pairs = zip(self._sizes, centered, strict=True)
        self._before = tuple(size // 2 if middle else size - 1 for size, middle in pairs)
        self._enough = count(self._sizes)
        if min_periods is not None:
            self._enough = arguments.whole(min_periods, "min_periods", self._x, least=1)

    def reduce(self, function: Reduction, **options: Any) -> Tensor:
        """The result of `function(windows, dims, **options)`, called once for all windows.

        Elements beyond the ends are nan; so is the result where there are fewer than `min_periods`.
        Results that are integers or bool become floats, which have nan.
        """
        function = callback("function", function, "windows", "dims", "**options")
        x = as_float(self._x).node
        if self._needs_all():
            return self._labelled(self._frame(function(self._windows(x), self._places, **options)))
        seen = self._windows(self._extend(x, math.nan))
        enough = reductions.count(seen, self._places) >= self._enough
        return self._labelled(keep_where(function(seen, self._places, **options), enough))

    def _apply(self, function: Reduction, options: dict[str, Any]) -> Tensor:
        skipping = {} if self._needs_all() else {"skipna": True}
        return self.reduce(function, **skipping | options)

    def _needs_all(self) -> bool:
        """Whether every element of a window is needed, so that windows need no mask."""
        return same(self._enough, count(self._sizes)) is True

    def count(self) -> Tensor:
        """The number of elements of each window that exist and are not nan."""
        seen = self._windows(self._extend(as_float(self._x).node, math.nan))
        counts = reductions.count(seen, self._places)
        return self._labelled(keep_where(counts, counts >= self._enough))

    def construct(
        self,
        window_dim: str | Mapping[str, str] | None = None,
        *,
        stride: Steps = 1,
        fill_value: Operand | None = None,
        **window_dim_kwargs: str,
    ) -> Tensor:
        """The windows themselves, every `stride`-th, with their elements along new last dims.

        Beyond the ends of `x` windows have `fill_value`: by default nan, for which integers become
        floats.
        """
        given = {self._dims[0]: window_dim} if isinstance(window_dim, str) else window_dim
        new = each(self._dims, arguments.mapping(given, window_dim_kwargs, "{'dim': 'lag'}"))
        x, fill = with_fill(self._x.node, fill_value)
        extended, by = self._extend(x, wrap(fill)), strides(self._dims, stride)
        made = tuple([arguments.new_dim(dim, self._x.node) for dim in new])
        return self._labelled(self._windows(extended, made, by), by)

    def _labelled(self, made: Tensor, by: tuple[Size, ...] = ()) -> Tensor:
        """`made` with the labels of `x`, wherever windows end."""
        ends = {dim: slice(None, None, step) for dim, step in zip(self._dims, by)}
        return wrap(keep_labels(made.node, isel(self._x, ends).node, self._dims))

    def _extend(self, x: Node, fill: Operand) -> Node:
        """`x` padded so that there is a window for each position."""
        rows = zip(self._dims, self._sizes, self._before, strict=True)
        return pad(x, {dim: (lo, size - 1 - lo) for dim, size, lo in rows}, fill)

    def _windows(self, x: Node, new: tuple[str, ...] = (), by: tuple[Size, ...] = ()) -> Tensor:
        """The windows of `x`, by default every one, along hidden dims."""
        every = (1,) * len(self._dims)
        attrs = {"names": new or self._places, "strides": by or every, "dilations": every}
        return wrap(windows_by(x, {"dims": self._dims, "sizes": self._sizes} | attrs))

    def _frame(self, made: Tensor) -> Tensor:
        """One element for each complete window, and nan at the other positions."""
        ends: dict[str, tuple[Size, Size]] = {}
        for dim, before in zip(self._dims, self._before, strict=True):
            size = self._x.sizes[dim]
            lead = minimum(before, size)
            ends[dim] = (lead, size - made.sizes[dim] - lead)
        node, nan = with_nan(made.node)
        return wrap(pad(node, ends, nan))


@worded_methods
class Coarsen(Windowed):
    """The blocks that partition dims; made by `gc.coarsen`."""

    __slots__ = ("_boundaries", "_sides")

    def __init__(
        self,
        x: Operand,
        sizes: Mapping[str, SizeLike],
        boundary: Boundary | Mapping[str, Boundary],
        side: Side | Mapping[str, Side],
    ) -> None:
        super().__init__(x, sizes)
        self._boundaries: tuple[Boundary, ...] = each(self._dims, boundary)
        self._sides: tuple[Side, ...] = each(self._dims, side)
        for boundary, side in zip(self._boundaries, self._sides, strict=True):
            arguments.check_word("boundary", boundary, ("exact", "trim", "pad"), self._x)
            arguments.check_word("side", side, ("left", "right"), self._x)

    def reduce(self, function: Reduction, **options: Any) -> Tensor:
        """The result of `function(blocks, dims, **options)`, called once; padding is nan."""
        function = callback("function", function, "blocks", "dims", "**options")
        x = as_float(self._x) if "pad" in self._boundaries else self._x
        made: Tensor = function(self._blocks(x, math.nan, self._pairs()), self._places, **options)
        like = self._complete(x, math.nan).node
        return wrap(keep_labels(made.node, like, self._dims, self._sizes))

    def _apply(self, function: Reduction, options: dict[str, Any]) -> Tensor:
        if "pad" in self._boundaries:
            there = ones({dim: self._x.sizes[dim] for dim in self._dims}, dtype="bool")
            options = {"where": self._blocks(there, False, self._pairs())} | options
        return self.reduce(function, **options)

    def count(self) -> Tensor:
        """The number of elements of each block that exist and are not nan."""
        return self._apply(reductions.count, {})

    def construct(
        self,
        window_dim: Mapping[str, tuple[str, str]] | None = None,
        **window_dim_kwargs: tuple[str, str],
    ) -> Tensor:
        """The blocks themselves: each dim becomes two, of blocks and of elements within a block."""
        given = arguments.mapping(window_dim, window_dim_kwargs, "{'dim': ('year', 'month')}")
        pairs = [arguments.names(pair) for pair in each(self._dims, given)]
        if any(len(pair) != 2 for pair in pairs):
            sizes, pair = dict(zip(self._dims, self._sizes, strict=True)), ("year", "month")
            cure = f"name two for each: x.coarsen({sizes}).construct({ {self._dims[0]: pair} })"
            raise refusal(f"{given} are not pairs of dims", self._x, cure=cure)
        for dim in [dim for pair in pairs for dim in pair]:
            arguments.new_dim(dim, self._x.node, gone=self._dims)
        x = self._x
        if "pad" in self._boundaries:
            x = wrap(with_fill(x.node, None)[0])
        return self._blocks(x, math.nan, pairs)

    def _pairs(self) -> list[tuple[str, ...]]:
        """For each dim the dim of blocks, and the dim within a block."""
        return list(zip(self._dims, self._places, strict=True))

    def _complete(self, x: Tensor, fill: complex) -> Tensor:
        """`x` in complete blocks; padding is `fill`."""
        for dim, size, boundary, side in zip(
            self._dims, self._sizes, self._boundaries, self._sides, strict=True
        ):
            have = x.sizes[dim]
            whole = have // size * size
            left = side == "left"
            if boundary == "trim":
                x = wrap(cut(x.node, dim, 0 if left else have - whole, whole))
            elif boundary == "pad":
                lack = -have % size
                x = wrap(pad(x.node, {dim: (0, lack) if left else (lack, 0)}, fill))
            elif same(have, whole) is False:
                cure = "use boundary='trim' or boundary='pad'"
                reason = f"dim {dim!r} of size {have} is not a multiple of the block size {size}"
                raise refusal(reason, x, cure=cure, name="coarsen")
        return x

    def _blocks(self, x: Tensor, fill: complex, pairs: list[tuple[str, ...]]) -> Tensor:
        """`x` with two dims for each; padding is `fill`."""
        x = self._complete(x, fill)
        for dim, size, pair in zip(self._dims, self._sizes, pairs, strict=True):
            at = x.dims.index(dim)
            order = (*x.dims[:at], *pair, *x.dims[at + 1 :])
            blocks, place = pair
            parts = unstack(x, {dim: {blocks: x.sizes[dim] // size, place: size}})
            x = transpose(parts, *order)
        return x
