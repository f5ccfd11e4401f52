"""Padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from graphcore.frontend.arrange.copies import tile_dim
from graphcore.frontend.core.arguments import check_word, integer, mapping, names, require_dims
from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, single
from graphcore.frontend.create.inputs import full
from graphcore.frontend.create.ranges import iota, linspace
from graphcore.frontend.index.indexing import isel
from graphcore.frontend.index.slices import cut, flip, tail
from graphcore.frontend.order import quantiles
from graphcore.frontend.pointwise.casting import astype, fill_in_dtype, to_hold, with_fill
from graphcore.frontend.pointwise.elementwise import rint
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.reduce import reductions
from graphcore.frontend.shape.dims import constant_end, in_order, join, keep_labels, with_size
from graphcore.ir import INT, Node, Size
from graphcore.ir.help_text import parameters
from graphcore.ir.sizes import maximum, minimum, upper_bound
from graphcore.ops.named import close_match

__all__ = [
    "pad",
]


@parameters(
    pad_width="The number of new elements at each end of each dim, as a dict or as keywords: "
    "integers or sizes.",
    mode='How new elements are computed. With "constant" they have one value, with "edge" that of '
    'the element at the edge. With "linear_ramp" they are a ramp from the edge to an end value. '
    'With "maximum", "mean", "median" or "minimum" they are this statistic of the elements next to '
    'the edge, rounded for integers. With "reflect" `x` is mirrored at its edge, without the '
    'element at the edge; "symmetric" includes it. With "wrap" `x` is repeated. Where a width is '
    'larger than `x` these three repeat. All modes but "constant" refuse to pad an empty dim.',
    stat_length="How many elements next to the edge a statistic uses; by default all.",
    constant_values="Numbers or tensors, cast to the dtype of `x`, and 0 for dims left out of a "
    "dict. The default is nan. With nan integers become floats: float32 for up to 16 bits, else "
    "float64. With a float of NumPy they take the common dtype.",
    end_values="The values at which ramps end; by default 0.",
    reflect_type='"even", the default, or "odd": the element at the edge times two, minus the '
    "mirrored one.",
    pad_width_kwargs="The widths, as keywords.",
)
def pad(
    x: Operand,
    /,
    pad_width: Mapping[str, Any] | None = None,
    mode: str = "constant",
    stat_length: Any = None,
    constant_values: Any = None,
    end_values: Any = None,
    reflect_type: str | None = None,
    **pad_width_kwargs: Any,
) -> Tensor:
    """`x` with new elements before and after those along some dims, as `xarray.DataArray.pad`.

    New elements are nan unless `constant_values` or another mode says otherwise. Options are given
    for all dims or, in a dict, by dim. They are one value for both ends, or a pair (before, after).

    GraphError if a width is negative, if a mode but "constant" pads an empty dim, or if an option
    does not belong to the mode.

    >>> x = gc.constant([1, 2, 3], "t")
    >>> gc.compile([], gc.pad(x, t=(2, 1), mode="reflect"))()
    array([3, 2, 1, 2, 3, 2])
    >>> gc.compile([], gc.pad(x, t=1, constant_values=0))()
    array([0, 1, 2, 3, 0])
    """
    node = single(x)
    widths = mapping(pad_width, pad_width_kwargs, "{'dim': (1, 1)}, constant_values=0", node)
    require_dims(node, names(tuple(widths), node))
    check_word("mode", mode, MODES, node)
    beyond, option, default = MODES[mode]
    options = {
        "stat_length": stat_length,
        "constant_values": constant_values,
        "end_values": end_values,
        "reflect_type": reflect_type,
    }
    for name, given in options.items():
        if given is not None and name != option:
            raise refusal(f"mode {mode!r} takes no {name}", node, cure="leave it out")
    value = options.get(option)
    if mode == "constant" and value is None and widths:
        node, fill = with_fill(node, None)
        value = wrap(fill)
    for fill_value in parts(value) if mode == "constant" else ():
        node = to_hold(node, fill_value)
    if isinstance(value, Mapping) and (
        idle := [d for d in value if d in node.type.dims and d not in widths]
    ):
        reason = f"{option} are given for {idle[0]!r}, which is not padded"
        raise refusal(reason, node, cure=close_match(str(idle[0]), tuple(widths)))
    for dim in node.type.dims:
        if dim in widths:
            width = [width_of(node, dim, given) for given in ends(node, dim, widths[dim])]
            node = extend_odd(node, dim, width, beyond, ends(node, dim, value, default))
    return wrap(node)


def parts(given: Any) -> Iterator[Any]:
    """The values of an option: one, a pair for two ends, or those of each dim."""
    if isinstance(given, Mapping | tuple | list):
        for part in given.values() if isinstance(given, Mapping) else given:
            yield from parts(part)
    else:
        yield given


def ends(x: Node, dim: str, given: Any, default: Any = None) -> tuple[Any, Any]:
    """The values of an option for the two ends of a dim."""
    if isinstance(given, Mapping):
        require_dims(x, names(tuple(given), x))
        given = given.get(dim)
    if given is None:
        given = default
    if not isinstance(given, (tuple, list)):
        return given, given
    if len(given) != 2:
        cure = "give one for both ends, or (before, after)"
        raise refusal(f"{given!r} for dim {dim!r} is not a pair", x, cure=cure)
    before, after = given
    return before, after


def width_of(x: Node, dim: str, given: Any) -> Size:
    """A number of new elements."""
    width = integer(given, f"dim {dim!r}", x)
    if (upper_bound(width) or 0) < 0:
        cure = "use isel to shorten the dim"
        raise refusal(f"{width} new elements for dim {dim!r}", x, cure=cure)
    return width


Beyond = Callable[["Tensor", str, Size, Any], "Tensor"]
"""(x, dim, width, option) -> `width` new elements after the last one of `x`."""


def extend_odd(
    x: Node, dim: str, width: list[Size], beyond: Beyond, options: tuple[Any, Any]
) -> Node:
    """`x` padded at both ends of `dim`; the part before is the part after of `x` reversed."""
    if all(size == 0 for size in width):
        return x
    before, after = width
    there = wrap(x if beyond is by_constant else nonempty(x, dim))
    parts = [x]
    if after != 0:
        last = beyond(there, dim, maximum(after, 0), options[1])
        parts.append(
            with_size(last.node, dim, after)
        )  # refuses a width that is negative at the call
    if before != 0:
        first = flip(beyond(flip(there, dim), dim, maximum(before, 0), options[0]), dim)
        parts.insert(0, with_size(first.node, dim, before))
    return join([dims_first(part, x.type.dims) for part in parts], dim)


def nonempty(x: Node, dim: str) -> Node:
    """`x`, with the requirement that `dim` is not empty."""
    size = x.type.size(dim)
    if size == 0:
        raise refusal(f"dim {dim!r} is empty", x, cure="only mode='constant' pads an empty dim")
    return with_size(x, dim, maximum(size, 1))


def dims_first(x: Node, dims: tuple[str, ...]) -> Node:
    """`x` with `dims` first."""
    return in_order(x, dict.fromkeys((*dims, *x.type.dims)))


def by_constant(x: Tensor, dim: str, width: Size, value: Any) -> Tensor:
    """x[n-1+i] = value"""
    return wrap(constant_end(x.node, dim, width, fill_in_dtype(value, x.node)))


def by_edge(x: Tensor, dim: str, width: Size, option: None) -> Tensor:
    """x[n-1+i] = x[n-1]"""
    made = constant_end(x.node, dim, width, isel(x, {dim: -1}).node)
    last = isel(x, {dim: full({dim: width}, x.sizes[dim] - 1, INT)})  # for its labels alone
    return wrap(keep_labels(made, last.node, (dim,)))


def by_ramp(x: Tensor, dim: str, width: Size, end: Any) -> Tensor:
    """x[n-1+i] = x[n-1] + (end - x[n-1]) i / width"""
    last = isel(x, {dim: -1})
    return flip(linspace(end, last, width, dim=dim, endpoint=False, dtype=x.dtype), dim)


def by_statistic(reduce: Callable[..., Tensor]) -> Beyond:
    """The mode that repeats a statistic of the elements next to the edge."""

    def beyond(x: Tensor, dim: str, width: Size, length: Any) -> Tensor:
        length = x.sizes[dim] if length is None else integer(length, "stat_length", x)
        if (most := upper_bound(length)) is not None and most < 1:
            raise refusal(f"stat_length {length} leaves no value", x, cure="use 1 or more")
        value = reduce(tail(x, {dim: length}), dim)
        if x.dtype.kind in "iu":
            value = rint(value)
        return wrap(constant_end(x.node, dim, width, astype(value, x.dtype).node))

    return beyond


def by_mirror(skipped: int) -> Beyond:
    """The mode that runs back and forth, skipping `skipped` elements at each turn.

    Even: the elements come backwards, then forwards, and again. Odd: x[n-1+i] = 2 x[n-1] - x[n-1-i]
    about each edge in turn, so each period is 2 (x[n-1] - x[0]) higher than the one before.
    """

    def beyond(x: Tensor, dim: str, width: Size, kind: str) -> Tensor:
        first = minimum(skipped, x.sizes[dim] - 1)
        back = isel(flip(x, dim), {dim: slice(first, None)})
        forth = isel(x, {dim: slice(skipped, None)})
        if kind == "even":
            return again([back, forth], dim, width)
        if kind != "odd" or x.dtype.kind == "b":
            reason = f"reflect_type {kind!r} is not defined for {x.dtype}"
            raise refusal(reason, x, cure="use 'even', or 'odd' for numbers")
        low, high = (2 * isel(x, {dim: place}) for place in (0, -1))
        return again([high - back, forth + (high - low)], dim, width, rise=high - low)

    return beyond


def by_wrapping(x: Tensor, dim: str, width: Size, option: None) -> Tensor:
    """x[n-1+i] = x[i-1]"""
    return again([x], dim, width)


def again(pieces: Iterable[Tensor], dim: str, width: Size, rise: Tensor | None = None) -> Tensor:
    """The first elements of the periodic continuation of `pieces`.

    Each period is higher than the last by `rise`. Pieces beyond `width` are not computed.
    """
    parts: list[Node] = []
    total: Size = 0
    for piece in pieces:
        parts.append(cut(piece.node, dim, 0, minimum(piece.sizes[dim], width)))
        total = total + parts[-1].type.size(dim)
        if minimum(total, width) == width:
            break
    total = maximum(total, 1)
    copies = (width + total - 1) // total
    made = wrap(cut(tile_dim(join(parts, dim), dim, copies), dim, 0, width))
    if rise is None or copies == 1:
        return made
    period = iota(dim, width) // total
    return where(period > 0, made + rise * astype(period, rise.dtype), made)


class PadMode(NamedTuple):
    """The function of a mode, the option that it takes, and the default of that option."""

    beyond: Beyond
    option: str = ""
    default: Any = None


MODES = {
    "constant": PadMode(by_constant, "constant_values", 0),
    "edge": PadMode(by_edge),
    "linear_ramp": PadMode(by_ramp, "end_values", 0),
    "maximum": PadMode(by_statistic(reductions.max), "stat_length"),
    "mean": PadMode(by_statistic(reductions.mean), "stat_length"),
    "median": PadMode(by_statistic(quantiles.median), "stat_length"),
    "minimum": PadMode(by_statistic(reductions.min), "stat_length"),
    "reflect": PadMode(by_mirror(1), "reflect_type", "even"),
    "symmetric": PadMode(by_mirror(0), "reflect_type", "even"),
    "wrap": PadMode(by_wrapping),
}
