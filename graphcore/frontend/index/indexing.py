"""Elements selected along dims by name: by integers, slices, masks and tensors of positions."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from graphcore.frontend.core import arguments, lift
from graphcore.frontend.core.arguments import MissingDims
from graphcore.frontend.core.base import Base, Tensor, brief, refusal, type_refusal, wrap
from graphcore.frontend.core.lift import Operand, array, is_labelled, scalar, single
from graphcore.frontend.core.unnamed import keep_dims
from graphcore.frontend.core.values_as_sizes import value_of
from graphcore.frontend.shape.dims import with_size
from graphcore.ir import INT, Expression, Node, Size
from graphcore.ir.errors import GraphIndexError
from graphcore.ir.help_text import parameters
from graphcore.ir.provenance import calling_library
from graphcore.ir.sizes import lower_bound, maximum, minimum, same, upper_bound
from graphcore.ops import elementwise, leaf, named

from .picked_positions import element_positions, true_positions

__all__ = [
    "isel",
    "take",
    "take_along",
]


class Range(NamedTuple):
    """The positions start, start + step, ..., `size` of them."""

    start: Size
    size: Size
    step: Size


@parameters(
    indexers="The positions for each dim, as a dict or as keywords. They are an integer, a slice, "
    "a list or mask, an integer tensor or DataArray, or a pair (dims, array).",
    drop="Accepted as in xarray, but without effect: a result that is a DataArray has the "
    "coordinate of a single position as a scalar.",
    missing_dims='What to do about dims that `x` lacks: "raise" refuses them, "warn" and "ignore" '
    "skip them.",
    size="A name for the number of elements that a mask keeps, which is computed. An integer or a "
    "size fixes it: excess elements are dropped, and lacking ones are the first of the dim. A dict "
    "by dim where there are several masks.",
)
def isel(
    x: Operand,
    indexers: Mapping[str, Any] | None = None,
    /,
    drop: bool = False,
    missing_dims: MissingDims = "raise",
    size: Any = None,
    **indexers_kwargs: Any,
) -> Tensor:
    """`x` at positions along dims.

    An integer drops its dim; a slice keeps it; positions replace it by their own dims. Positions
    that share a dim select pointwise, those with different dims orthogonally. An unnamed list keeps
    the name of the dim it indexes, and so does a mask. Negative positions count from the end.

    GraphError if a position is outside its dim: now where both are known, else at the call.

    >>> x = gc.constant([[1, 2, 3], [4, 5, 6]], ("row", "col"))
    >>> gc.compile([], [gc.isel(x, row=-1), gc.isel(x, row=0, col=[2, 0])])()
    [array([4, 5, 6]), array([3, 1])]
    >>> gc.compile([], gc.isel(x, col=slice(None, None, 2)))()
    array([[1, 3],
           [4, 6]])
    >>> gc.isel(x, row=0, col=("pick", [0, 2, 1, 0]))
    <Tensor: i64[pick=4]>
    """
    node = single(x)
    if size is not None and "size" in node.type.dims and indexers is None:
        indexers_kwargs["size"], size = size, None  # a dim of that name
    wanted = arguments.mapping(indexers, indexers_kwargs, "{'dim': 0}", node)
    dims = arguments.present(node, arguments.names(tuple(wanted), node), missing_dims)
    indexers = {dim: wanted[dim] for dim in node.type.dims if dim in dims}
    return wrap(select_by_name(node, indexers, size))


class Selection(NamedTuple):
    """A tensor and the indexers of its dims: ranges, single positions, and tensors of positions."""

    x: Node
    ranges: dict[str, Range]
    positions: dict[str, Size]
    indices: dict[str, Node]


def select_by_name(x: Node, indexers: dict[str, Any], size: Any = None) -> Node:
    """`x` indexed; the indexers come in the order of its dims."""
    made = pick(selection(x, indexers, size))
    keep_dims(made, [dim for dim, given in indexers.items() if are_unnamed(given)])
    return made


def are_unnamed(indexer: object) -> bool:
    """Whether an indexer is several positions without a name, which keep that of their dim."""
    if not isinstance(indexer, list | np.ndarray):
        return False
    values = np.asarray(indexer)
    return values.ndim == 1 and values.dtype.kind != "b"


def selection(x: Node, indexers: dict[str, Any], size_kept: Any = None) -> Selection:
    """Indexers, in the order of the dims of `x`, by kind; a mask determines an unknown size.

    `size_kept` is what a user says of the size of what masks pick.
    """
    sizes = sizes_kept(x, indexers, size_kept)
    ranges: dict[str, Range] = {}
    positions: dict[str, Size] = {}
    indices: dict[str, Node] = {}
    for dim, indexer in indexers.items():
        size = x.type.size(dim)
        if isinstance(indexer, slice):
            found = slice_range(x, dim, indexer, size)
            if isinstance(found.step, Expression):  # ranges have known steps, positions any
                made = wrap(leaf.iota(size=found.size, dtype=INT, dims=(dim,)))
                indices[dim] = (made * found.step + found.start).node
            elif found != (0, size, 1):
                ranges[dim] = found
        elif is_position(indexer):
            positions[dim] = position(x, dim, indexer, size)
        elif isinstance(indexer, Base) and not is_known_mask(indexer.node):
            if is_mask(indexer.node):
                x, indices[dim] = kept_by_mask(x, dim, indexer.node, sizes.get(dim))
            else:
                indices[dim] = integers(x, dim, indexer.node)
        else:
            dims, values = known_positions(x, dim, indexer)
            if values.dtype.kind == "b":
                x = sized_by_mask(x, dim, dims, values)
                values = np.flatnonzero(values)
            indices[dim] = static(x, dim, dims, values)
    return Selection(x, ranges, positions, indices)


def pick(at: Selection) -> Node:
    """The elements of a selection."""
    x = at.x
    if at.ranges:
        starts, sizes, steps = zip(*at.ranges.values(), strict=True)
        x = named.slice_(x, dims=tuple(at.ranges), starts=starts, sizes=sizes, steps=steps)
    if at.positions:
        x = named.index(x, dims=tuple(at.positions), positions=tuple(at.positions.values()))
    if at.indices:
        x = named.gather(x, *at.indices.values(), dims=tuple(at.indices))
    return x


def is_position(indexer: object) -> bool:
    """Whether an indexer is one integer, or a size."""
    if isinstance(indexer, np.ndarray):
        return indexer.ndim == 0 and indexer.dtype.kind in "iu"
    return isinstance(indexer, (int, np.integer, Expression)) and not isinstance(indexer, bool)


def position(x: Node, dim: str, at: Any, size: Size) -> Size:
    """A position from the start; a negative integer counts from the end."""
    if isinstance(at, Expression):
        return at
    at = int(at)
    if isinstance(size, int) and not -size <= at < size:
        raise outside(x, dim, at, size)
    found: Size = at if at >= 0 else size + at
    return found


def outside(x: Node, dim: str, at: object, size: int) -> GraphIndexError:
    """The error for a position that is outside its dim."""
    cure = f"positions run from {-size} to {size - 1}" if size else "the dim is empty"
    reason = f"position {at} is outside dim {dim!r}, which has size {size}"
    error = refusal(reason, x, cure=cure, kind=GraphIndexError)
    assert isinstance(error, GraphIndexError)
    return error


def slice_range(x: Node, dim: str, given: slice, size: Size) -> Range:
    """The positions that a Python slice selects from a dim of any size."""
    step = 1 if given.step is None else slice_number(x, dim, given.step)
    if step == 0:
        raise refusal(f"the step of dim {dim!r} is 0", x, cure="use a nonzero integer")
    arguments.require_sign(step, x)
    # Only the ends that count are kept inside: where the other two cross, the length is 0.
    if isinstance(step, Expression) or step > 0:
        start = maximum(slice_end(x, dim, given.start, size, 0), 0)
        gap = minimum(slice_end(x, dim, given.stop, size, size), size) - start
    else:
        start = minimum(slice_end(x, dim, given.start, size, size - 1), size - 1)
        gap = start - maximum(slice_end(x, dim, given.stop, size, -1), -1)
    length = maximum((gap + abs(step) - 1) // abs(step), 0)
    if length == 0:
        return Range(0, 0, 1)
    return Range(start, length, 1 if length == 1 else step)


def slice_end(x: Node, dim: str, given: Any, size: Size, default: Size) -> Size:
    """The end of a slice, counted from the start; a negative integer counts from the end.

    A symbolic end always counts from the start: which way it counts must not depend on a size.
    """
    if given is None:
        return default
    found = slice_number(x, dim, given)
    if isinstance(found, int):
        return found if found >= 0 else size + found
    if lower_bound(found) is None and upper_bound(found) is not None:
        cure = f"count from the start: {size} - ..."
        raise refusal(f"the end {found} of a slice of dim {dim!r} is negative", x, cure=cure)
    return found


def slice_number(x: Node, dim: str, given: Any) -> Size:
    """An integer or size in a slice."""
    if isinstance(given, Expression):
        return given
    if isinstance(given, Base):
        return value_of(f"an end or step of a slice of dim {dim!r}", given)
    try:
        return operator.index(given)
    except TypeError:
        cure = "slices take integers and sizes; use positions for anything else"
        raise type_refusal(f"slice of dim {dim!r} with {given!r}", x, cure=cure) from None


def known_positions(
    x: Node, dim: str, indexer: Any
) -> tuple[tuple[str, ...], np.ndarray[Any, Any]]:
    """The dims and values of an indexer of several positions, or a mask, that is known now."""
    if isinstance(indexer, Base):
        return indexer.dims, indexer.node.attrs["value"].array
    if isinstance(indexer, tuple) and len(indexer) == 2 and isinstance(indexer[0], (str, tuple)):
        if isinstance(indexer[1], Base):
            new = dict(zip(indexer[1].dims, arguments.names(indexer[0])))
            cure = f"a tensor has dims of its own: x.isel({dim}=index.rename({new}))"
            reason = f"the index of dim {dim!r} is a pair of names and a tensor"
            raise type_refusal(reason, x, indexer[1], cure=cure)
        return arguments.names(indexer[0]), lift.as_array(indexer[1], x)
    if is_labelled(indexer):
        return tuple(indexer.dims), lift.as_array(indexer.values, x)
    return (dim,), unnamed_positions(x, dim, indexer)


def unnamed_positions(x: Node, dim: str, indexer: Any) -> np.ndarray[Any, Any]:
    """An unnamed list of positions; with more axes than one it would need names."""
    words = [x for x in indexer if isinstance(x, str)] if isinstance(indexer, list) else []
    if words:
        pair = len(indexer) == 2 and not isinstance(indexer[1], str)
        cure = f"a pair is a tuple, ({words[0]!r}, index)" if pair else ""
        cure = cure or f"index by dims with a dict: x[{{{words[0]!r}: position}}]"
        reason = f"dim {dim!r} is indexed by a list with text, {brief(indexer)}"
        raise type_refusal(reason, x, cure=cure)
    listed = isinstance(indexer, (list, tuple, range, np.ndarray))
    values = lift.as_array(indexer, x) if listed else None
    if values is None or values.ndim > 1:
        shown = "an array of several axes" if values is not None else brief(indexer)
        cure = "use an integer, a slice, a list, a tensor, or (dims, array)"
        raise type_refusal(f"dim {dim!r} cannot be indexed by {shown}", x, cure=cure)
    return values


def is_known_mask(index: Node) -> bool:
    """Whether an index is a constant mask, whose number of elements is known."""
    return index.op is leaf.constant and is_mask(index)


def integers(x: Node, dim: str, index: Node) -> Node:
    """A tensor of positions."""
    if index.type.dtype.kind in "iu":
        return index
    cure = "positions are integers, and masks are bool"
    raise type_refusal(f"dim {dim!r} cannot be indexed by {index.type}", x, index, cure=cure)


def sizes_kept(x: Node, indexers: Mapping[str, Any], size: Any) -> Mapping[str, Any]:
    """What a user says of the sizes of what masks pick, by dim."""
    if size is None:
        return {}
    masks = [dim for dim, mask in indexers.items() if isinstance(mask, Base) and is_mask(mask.node)]
    if isinstance(size, Mapping) and masks and size.keys() <= {*masks}:
        return size
    if isinstance(size, Mapping) or len(masks) != 1:
        cure = "give a dict by dim, size={'row': 3}" if masks else "leave it out"
        reason = f"size={brief(size)} is for what one mask keeps, and there are {len(masks)}"
        raise refusal(reason, x, cure=cure)
    return {masks[0]: size}


def is_mask(index: Node) -> bool:
    """Whether an indexer is a mask."""
    kind: str = index.type.dtype.kind
    return kind == "b"


def kept_by_mask(x: Node, dim: str, mask: Node, wanted: Any) -> tuple[Node, Node]:
    """`x` with the requirement that `dim` has the size of a mask, and the positions it picks."""
    size = x.type.size(dim)
    if mask.type.dims != (dim,) or same(size, mask.type.size(dim)) is False:
        reason = f"a mask {mask.type} for dim {dim!r} of size {size}"
        cure = "a mask has the one dim it picks from, and its size; gc.nonzero takes one of several"
        raise refusal(reason, x, mask, cure=cure, kind=GraphIndexError)
    at, exact = true_positions(mask, dim, dim, wanted)
    if not exact:  # as gc.nonzero fills
        at = wrap(elementwise.where((at < size).node, at.node, scalar(0, INT)))
    return with_size(x, dim, mask.type.size(dim)), at.node


def sized_by_mask(x: Node, dim: str, dims: tuple[str, ...], mask: np.ndarray[Any, Any]) -> Node:
    """`x` with the requirement that `dim` has the size of its mask."""
    size = x.type.size(dim)
    if dims != (dim,) or mask.ndim != 1 or same(size, len(mask)) is False:
        shown = ", ".join(f"{name}={n}" for name, n in zip(dims, mask.shape, strict=False))
        reason = f"a mask of [{shown}] for dim {dim!r} of size {size}"
        cure = "a mask has the one dim it picks from, and its size; or choose with gc.where"
        raise refusal(reason, x, cure=cure, kind=GraphIndexError)
    return with_size(x, dim, len(mask))


def static(x: Node, dim: str, dims: tuple[str, ...], values: np.ndarray[Any, Any]) -> Node:
    """Positions known now, from the start where the size is known."""
    size = x.type.size(dim)
    if values.size == 0:
        values = values.astype(INT)
    index = integers(x, dim, array(values, dims))
    if not isinstance(size, int) or values.size == 0:
        return index
    least, most = int(values.min()), int(values.max())
    if least < -size or most >= size:
        raise outside(x, dim, least if least < -size else most, size)
    return index if least >= 0 else array(np.where(values < 0, values + size, values), dims)


@parameters(
    index="Positions, as in `isel`: an integer, a slice, a list or an integer tensor.",
    dim="The dim that they are positions of.",
)
def take(x: Operand, index: Any, dim: str | None = None) -> Tensor:
    """`x` at positions along one dim, which is replaced by the dims of the positions.

    An unnamed list keeps the name of the dim. Negative positions count from the end.

    >>> table = gc.constant([[0.0, 0.1], [1.0, 1.1], [2.0, 2.1]], ("word", "feature"))
    >>> gc.compile([], gc.take(table, gc.constant([2, 0], "time"), dim="word"))()
    array([[2. , 2.1],
           [0. , 0.1]])
    """
    node = single(x)
    return isel(wrap(node), {arguments.dim_of(node, dim): index})


@parameters(
    index="An integer tensor, or an array with dims.",
    dim="The dim that they are positions of.",
)
def take_along(x: Operand, index: Operand, dim: str | None = None) -> Tensor:
    """`x` at one position along `dim` for each element of the dims that `index` and `x` share.

    The dims of `index` replace `dim`; a dim of both stands where it comes first. Negative positions
    count from the end.

    >>> logits = gc.constant([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]], ("batch", "class"))
    >>> gc.compile([], gc.take_along(logits, gc.constant([2, 0], "batch"), dim="class"))()
    array([0.7, 0.5])
    """
    node, at = single(x), single(index)
    if at.type.dtype.kind not in "iu":
        cure = "positions are integers: index.astype('int64')"
        raise type_refusal(f"positions are {at.type.dtype}, not integers", node, at, cure=cure)
    return wrap(named.gather(node, at, dims=(arguments.dim_of(node, dim),)))


def sel(x: Tensor, /, *args: Any, **indexers_kwargs: Any) -> NoReturn:
    """Refused: there are no coordinates to look up; `isel` takes positions."""
    cure = "use x.isel, which takes positions, and gc.searchsorted to find them"
    raise type_refusal("there are no coordinates", x, cure=cure, name="sel")


def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]`: a dict of indexers by name, or indexers in the order of the dims.

    A mask of several dims picks elements in its own row-major order, along the dim `kept`.
    """
    if isinstance(key, Base) and is_mask(key.node) and key.ndim > 1:
        for dim, size in key.sizes.items():
            if dim not in x.dims or same(x.node.type.size(dim), size) is False:
                reason = f"a mask {key.node.type} for {x.node.type}"
                cure = "a mask has dims of the tensor it picks from, and their sizes"
                raise refusal(reason, x, key, cure=cure, kind=GraphIndexError)
            x = wrap(with_size(x.node, dim, size))
        new = arguments.new_dim("kept", x.node, gone=key.dims)
        return isel(x, element_positions(key.node, key.dims, new, None)[0])
    return isel(x, by_name(x, key))


def by_name(x: Tensor, key: Any) -> Mapping[str, Any]:
    """The indexers in brackets, by name."""
    if isinstance(key, Mapping):
        return key
    if isinstance(key, str):
        cure = f"index by name with x[{{{key!r}: position}}] or x.isel"
        raise type_refusal(f"[{key!r}] gives no position", x, cure=cure)
    keys = key if isinstance(key, tuple) else (key,)
    missing = len(x.dims) - len(keys) + 1
    spread = [at for at, indexer in enumerate(keys) if indexer is ...]
    if any(indexer is None for indexer in keys):
        if calling_library() == "matplotlib":
            raise x._no_value("an array to draw", x._way_to_evaluate())
        raise type_refusal("None does not add a dim", x, cure="add a dim with x.expand_dims('new')")
    if len(spread) > 1 or missing < (0 if spread else 1):
        cure = f"the dims are {x.dims}"
        reason = f"{len(keys)} indexers for {len(x.dims)} dims"
        if len(spread) > 1:
            reason = f"{len(keys)} indexers, {len(spread)} of them ..."
        raise refusal(reason, x, cure=cure, kind=GraphIndexError)
    if spread:
        at = spread[0]
        keys = (*keys[:at], *(slice(None),) * missing, *keys[at + 1 :])
    return dict(zip(x.dims, keys, strict=False))
