"""Places picked along dims, and values that come to places."""

from __future__ import annotations

from graphcore.ir import Op, Shape, Size, TensorType, Trait
from graphcore.ir.axes import How, Indexes, Ranges, Receives, Reduces
from graphcore.ir.errors import GraphIndexError, GraphTypeError, require
from graphcore.ir.node import agree, need
from graphcore.ir.op import declare, op
from graphcore.ir.sizes import lower_bound, upper_bound
from graphcore.ops import tensor

from .dims import Dims, drop, has, new_dims, union

CURE = "cast them: x.astype('int64')"


@op(axes=Ranges(How.MOVED), said="isel")
def slice_(
    x: TensorType, *, dims: Dims, starts: Shape, sizes: Shape, steps: tuple[int, ...]
) -> TensorType:
    """Of each of `dims` the places start, start + step, ..., as many as its size says."""
    has(x, dims)
    new = x.sizes | dict(zip(dims, sizes, strict=True))
    return TensorType(x.dtype, tuple(new.values()), x.dims)


@op(axes=Reduces("dims"), said="isel")
def index(x: TensorType, *, dims: Dims, positions: Shape) -> TensorType:
    """One position of each of `dims`, which vanish."""
    has(x, dims)
    for dim, position in zip(dims, positions, strict=True):
        size = x.size(dim)
        require_less(
            dim, -1, position, f"position {position} of dim {dim!r}, which has size {size}"
        )
        require_less(
            dim, position, size, f"position {position} of dim {dim!r}, which has size {size}"
        )
    return drop(x.dtype, x, dims)


def require_less(dim: str, low: Size, high: Size, reason: str) -> None:
    """Refuse, or have the call refuse, unless low < high."""
    gap = high - low
    if (least := lower_bound(gap)) is not None and least >= 1:
        return
    most = upper_bound(gap)
    require(most is None or most >= 1, reason, "positions start at 0", GraphIndexError)
    need(dim, low, "<", high, GraphIndexError)


@op(axes=Indexes("dims"), traits=[Trait.MAY_RAISE], said="isel")
def gather(x: TensorType, *indices: TensorType, dims: Dims) -> TensorType:
    """Values of `x` at the positions `indices[i]` along `dims[i]`.

    Indices broadcast by name against each other, so those that share a dim go pointwise and the
    rest orthogonally; a dim an index shares with the rest of `x` is followed pointwise as well.
    Each indexed dim is replaced, in place, by its index's dims.
    """
    has(x, dims)
    together: dict[str, Size] = {}
    for i in indices:
        for name, size in i.sizes.items():
            together[name] = agree(name, together.get(name, size), size, GraphIndexError)
    by_dim = dict(zip(dims, indices, strict=True))
    sizes: dict[str, Size] = {}
    for dim, size in x.sizes.items():
        here = (
            {name: together[name] for name in by_dim[dim].sizes} if dim in by_dim else {dim: size}
        )
        for name, length in here.items():
            sizes[name] = agree(name, sizes.get(name, length), length)
    for i in indices:
        require(i.dtype.kind in "iu", f"positions must be integers, not {i}", CURE, GraphTypeError)
    return TensorType.of(x.dtype, sizes)


def scattering(plain: Op) -> Op:
    """Declare the named form of an op that combines the `updates` that go to each place.

    They go to position `indices[i]` of a new `dims[i]`. Operands align by name. Of their dims those
    in `over` vanish and the rest are batch; the new dims come last.
    """

    def rule(
        updates: TensorType, *indices: TensorType, over: Dims, dims: Dims, sizes: Shape
    ) -> TensorType:
        return updates_type(updates, indices, over, dims, sizes)

    kind = Receives("dims", base=0)
    return declare(
        Op(plain.name, "named", rule, plain.doc, axes=kind, traits=plain.traits, said=plain.said)
    )


def updates_type(
    updates: TensorType, indices: tuple[TensorType, ...], over: Dims, dims: Dims, sizes: Shape
) -> TensorType:
    """The type of updates at their places."""
    whole = union(updates, *indices)
    rest = drop(updates.dtype, TensorType.of(updates.dtype, whole), over)
    new_dims(rest, dims)
    for i in indices:
        require(i.dtype.kind in "iu", f"positions must be integers, not {i}", CURE, GraphTypeError)
    return TensorType(updates.dtype, (*rest.shape, *sizes), (*(rest.dims or ()), *dims))


def receiving(plain: Op) -> Op:
    """Declare the named form of an op that gives its first operand when updates have come to it.

    Their batch dims are its own.
    """

    def rule(
        x: TensorType, updates: TensorType, *indices: TensorType, over: Dims, dims: Dims
    ) -> TensorType:
        has(x, dims)
        sizes = tuple(x.size(dim) for dim in dims)
        whole = union(x, updates_type(updates, indices, over, dims, sizes))
        return TensorType.of(x.dtype, whole)

    kind, traits = Receives("dims", base=1), plain.traits - {Trait.UPDATES}
    return declare(
        Op(plain.name, "named", rule, plain.doc, axes=kind, traits=traits, said=plain.said)
    )


scatter, scatter_prod = map(scattering, (tensor.scatter, tensor.scatter_prod))
put, scatter_max, scatter_min = map(receiving, (tensor.put, tensor.scatter_max, tensor.scatter_min))


@op(axes=Ranges(How.WITHIN), said="pad")
def embed(
    x: TensorType, *, dims: Dims, starts: Shape, sizes: Shape, steps: tuple[int, ...]
) -> TensorType:
    """Zeros with `x` at the places start, start + step, ... of each of `dims`, now of these sizes.

    The transpose of `slice`.
    """
    has(x, dims)
    for dim, start, step, size in zip(dims, starts, steps, sizes, strict=True):
        reaches(dim, start, step, x.size(dim), size)
    new = x.sizes | dict(zip(dims, sizes, strict=True))
    return TensorType(x.dtype, tuple(new.values()), x.dims)


@op(axes=Ranges(How.ALONG, How.WITHIN), said="at")
def overwrite(
    x: TensorType, part: TensorType, *, dims: Dims, starts: Shape, steps: tuple[int, ...]
) -> TensorType:
    """`x` with `part` at the places start, start + step, ... of each of `dims`."""
    has(x, dims)
    has(part, dims)
    for dim, start, step in zip(dims, starts, steps, strict=True):
        reaches(dim, start, step, part.size(dim), x.size(dim))
    whole = x.sizes | union(drop(x.dtype, x, dims), drop(x.dtype, part, dims))
    return TensorType.of(x.dtype, whole)


def reaches(dim: str, start: Size, step: int, many: Size, size: Size) -> None:
    """Refuse, or have the call refuse, places outside a dim of `size`."""
    if isinstance(many, int) and many > 0:  # symbolic counts are those of slices: inside
        last = start + (many - 1) * step
        reason = f"places {start}, ..., {last} of dim {dim!r}, which has size {size}"
        for at in dict.fromkeys((start, last)):
            require_less(dim, -1, at, reason)
            require_less(dim, at, size, reason)
