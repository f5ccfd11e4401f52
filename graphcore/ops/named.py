"""Ops that speak of axes by name. All are lowered away before anything is differentiated.

Dims an op does not mention are batch: it works on each of their places alone.
"""

from __future__ import annotations

from graphcore.ir.dtypes import BOOL, INT, float_for, promote, real_of, sum_of
from graphcore.ir.errors import GraphIndexError, GraphTypeError, require
from graphcore.ir.node import agree, need
from graphcore.ir.op import op
from graphcore.ir.sizes import Shape, Size, count, lower_bound, same, upper_bound
from graphcore.ir.types import DType, TensorType

from .tensor import window_count

Dims = tuple[str, ...]


def has(x: TensorType, dims: Dims) -> None:
    """Refuse dims that `x` lacks, or that are named twice."""
    known = x.dims or ()
    for dim in dims:
        require(dim in known, f"there is no dim {dim!r} in {x}", close_match(dim, known))
    require(len(set(dims)) == len(dims), f"dims {dims} name one twice", "name each dim once")


def close_match(dim: str, known: Dims) -> str:
    """The cure for a misspelt dim."""
    from difflib import get_close_matches

    if match := get_close_matches(str(dim), known, 1):
        return f"did you mean {match[0]!r}?"
    return f"the dims are {', '.join(map(repr, known))}" if known else "it has no dims"


def drop(dtype: DType, x: TensorType, dims: Dims) -> TensorType:
    """`x` without `dims`."""
    has(x, dims)
    kept = {dim: size for dim, size in x.sizes.items() if dim not in dims}
    return TensorType(dtype, tuple(kept.values()), tuple(kept))


def not_empty(x: TensorType, dims: Dims) -> None:
    """Refuse, or have the call refuse, dims without places: there is no value to choose."""
    for dim in dims:
        size = x.size(dim) if dim in (x.dims or ()) else 1
        require(size != 0, f"dim {dim!r} of {x} is empty", "an empty dim has no extreme value")
        if not isinstance(size, int):
            need(dim, 0, "<", size)


def new_dims(x: TensorType, names: Dims) -> None:
    """Refuse names that `x` has already."""
    for name in names:
        require(name not in (x.dims or ()), f"{x} has a dim {name!r} already", "choose a new name")


def distinct(names: Dims) -> None:
    """Refuse new dims of which two would have one name."""
    require(len(set(names)) == len(names), f"names {names} repeat one", "name each dim once")


@op
def sum_(x: TensorType, *, dims: Dims) -> TensorType:
    """Sum over `dims`."""
    return drop(sum_of(x.dtype), x, dims)


@op
def prod(x: TensorType, *, dims: Dims) -> TensorType:
    """Product over `dims`."""
    return drop(sum_of(x.dtype), x, dims)


@op
def mean(x: TensorType, *, dims: Dims) -> TensorType:
    """Mean over `dims`."""
    return drop(float_for(x.dtype), x, dims)


@op
def var(x: TensorType, *, dims: Dims, ddof: int) -> TensorType:
    """Variance over `dims`: the sum of |x - mean|^2 over (count - ddof)."""
    return drop(real_of(float_for(x.dtype)), x, dims)


@op
def std(x: TensorType, *, dims: Dims, ddof: int) -> TensorType:
    """Standard deviation over `dims`; its derivative at a constant x is 0."""
    return drop(real_of(float_for(x.dtype)), x, dims)


@op
def max_(x: TensorType, *, dims: Dims) -> TensorType:
    """Largest value over `dims`; tied values share its derivative evenly."""
    not_empty(x, dims)
    return drop(x.dtype, x, dims)


@op
def min_(x: TensorType, *, dims: Dims) -> TensorType:
    """Smallest value over `dims`; tied values share its derivative evenly."""
    not_empty(x, dims)
    return drop(x.dtype, x, dims)


@op
def any_(x: TensorType, *, dims: Dims) -> TensorType:
    """Whether any value over `dims` is true, that is, not 0."""
    return drop(BOOL, x, dims)


@op
def all_(x: TensorType, *, dims: Dims) -> TensorType:
    """Whether all values over `dims` are true, that is, not 0."""
    return drop(BOOL, x, dims)


@op
def argmax(x: TensorType, *, dims: Dims) -> TensorType:
    """Position of the first largest value, counted row-major over `dims`."""
    not_empty(x, dims)
    return drop(INT, x, dims)


@op
def argmin(x: TensorType, *, dims: Dims) -> TensorType:
    """Position of the first smallest value, counted row-major over `dims`."""
    not_empty(x, dims)
    return drop(INT, x, dims)


@op
def logsumexp(x: TensorType, *, dims: Dims) -> TensorType:
    """log sum exp over `dims`, without overflow; -inf, with derivative 0, where all are -inf."""
    return drop(float_for(x.dtype), x, dims)


@op
def softmax(x: TensorType, *, dims: Dims) -> TensorType:
    """exp(x) / sum exp(x) over `dims`; 0 where all are -inf."""
    has(x, dims)
    return TensorType(float_for(x.dtype), x.shape, x.dims)


@op
def log_softmax(x: TensorType, *, dims: Dims) -> TensorType:
    """log softmax(x) over `dims`, without overflow."""
    has(x, dims)
    return TensorType(float_for(x.dtype), x.shape, x.dims)


@op
def cumsum(x: TensorType, *, dims: Dims) -> TensorType:
    """Running sum along each of `dims`."""
    has(x, dims)
    return TensorType(sum_of(x.dtype), x.shape, x.dims)


@op
def cumprod(x: TensorType, *, dims: Dims) -> TensorType:
    """Running product along each of `dims`."""
    has(x, dims)
    return TensorType(sum_of(x.dtype), x.shape, x.dims)


@op
def cummax(x: TensorType, *, dims: Dims) -> TensorType:
    """Largest value so far along each of `dims`; tied values share its derivative evenly."""
    has(x, dims)
    return x


@op
def cummin(x: TensorType, *, dims: Dims) -> TensorType:
    """Smallest value so far along each of `dims`; tied values share its derivative evenly."""
    has(x, dims)
    return x


@op
def logcumsumexp(x: TensorType, *, dims: Dims) -> TensorType:
    """log of the running sum of exp along each of `dims`, without overflow."""
    has(x, dims)
    require(x.dtype.kind != "c", f"is not defined for {x}", "", GraphTypeError)
    return TensorType(float_for(x.dtype), x.shape, x.dims)


@op
def dot(*xs: TensorType, dims: Dims) -> TensorType:
    """Product of all operands, aligned by name, summed over `dims`: one contraction."""
    sizes = union(*xs)
    for dim in dims:
        known = tuple(sizes)
        require(dim in sizes, f"no operand has dim {dim!r}", close_match(dim, known))
    require(len(set(dims)) == len(dims), f"dims {dims} name one twice", "name each dim once")
    kept = {dim: size for dim, size in sizes.items() if dim not in dims}
    return TensorType(promote(*[x.dtype for x in xs]), tuple(kept.values()), tuple(kept))


def union(*xs: TensorType) -> dict[str, Size]:
    """Every dim with its size, in order of first appearance."""
    sizes: dict[str, Size] = {}
    for x in xs:
        for dim, size in x.sizes.items():
            sizes[dim] = agree(dim, sizes[dim], size) if dim in sizes else size
    return sizes


@op
def transpose(x: TensorType, *, dims: Dims) -> TensorType:
    """The same values with dims in this order."""
    has(x, dims)
    require(len(dims) == len(x.shape), f"{dims} leaves out some of {x}", "name all, or use ...")
    return TensorType(x.dtype, tuple(x.size(dim) for dim in dims), dims)


@op
def rename(x: TensorType, *, names: tuple[tuple[str, str], ...]) -> TensorType:
    """The same values with dims renamed by the pairs (old, new), all at once."""
    has(x, tuple(old for old, _ in names))
    new = dict(names)
    dims = tuple(new.get(dim, dim) for dim in x.dims or ())
    for dim in dims:
        require(dims.count(dim) == 1, f"two dims would be named {dim!r}", "choose another name")
    return TensorType(x.dtype, x.shape, dims)


@op
def broadcast(x: TensorType, *, dims: Dims, sizes: Shape) -> TensorType:
    """`x` repeated along the new ones of `dims`, all in this order."""
    has(TensorType(x.dtype, sizes, dims), x.dims or ())
    shape = tuple(
        agree(dim, x.size(dim), size) if dim in (x.dims or ()) else size
        for dim, size in zip(dims, sizes, strict=True)
    )
    return TensorType(x.dtype, shape, dims)


@op
def squeeze(x: TensorType, *, dims: Dims) -> TensorType:
    """`x` without `dims`, whose size is 1."""
    has(x, dims)
    for dim in dims:
        size = x.size(dim)
        cure = "only a dim of size 1 can be squeezed; index it with isel instead"
        require(same(size, 1) is not False, f"dim {dim!r} has size {size}", cure)
        if size != 1:
            need(dim, size, "==", 1)
    return drop(x.dtype, x, dims)


@op
def concat(*xs: TensorType, dim: str) -> TensorType:
    """Tensors one after the other along `dim`; one without it counts as one place of it."""
    sizes = union(*[drop(x.dtype, x, (dim,)) if dim in (x.dims or ()) else x for x in xs])
    total: Size = 0
    for x in xs:
        total = total + x.sizes.get(dim, 1)
    seen = dict.fromkeys(name for x in xs for name in x.dims or ())
    dims = tuple(seen) if dim in seen else (dim, *seen)
    shape = tuple(total if name == dim else sizes[name] for name in dims)
    return TensorType(promote(*[x.dtype for x in xs]), shape, dims)


@op
def stack(x: TensorType, *, dims: Dims, name: str) -> TensorType:
    """`dims` merged into one new last dim, the first of them slowest."""
    has(x, dims)
    rest = drop(x.dtype, x, dims)
    new_dims(rest, (name,))
    size = count(x.size(dim) for dim in dims)
    return TensorType(x.dtype, (*rest.shape, size), (*(rest.dims or ()), name))


@op
def unstack(x: TensorType, *, dim: str, names: Dims, sizes: Shape) -> TensorType:
    """`dim` split into new last dims, row-major."""
    has(x, (dim,))
    rest = drop(x.dtype, x, (dim,))
    distinct(names)
    new_dims(rest, names)
    whole, parts = x.size(dim), count(sizes)
    decided = same(whole, parts)
    shown = " * ".join(map(str, sizes))
    require(
        decided is not False,
        f"dim {dim!r} has size {whole}, not {shown}",
        "sizes must multiply to it",
    )
    if decided is None:
        need(dim, whole, "==", parts)
    return TensorType(x.dtype, (*rest.shape, *sizes), (*(rest.dims or ()), *names))


@op
def slice_(
    x: TensorType, *, dims: Dims, starts: Shape, sizes: Shape, steps: tuple[int, ...]
) -> TensorType:
    """Of each of `dims` the places start, start + step, ..., as many as its size says."""
    has(x, dims)
    new = x.sizes | dict(zip(dims, sizes, strict=True))
    return TensorType(x.dtype, tuple(new.values()), x.dims)


@op
def windows(
    x: TensorType,
    *,
    dims: Dims,
    names: Dims,
    sizes: Shape,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> TensorType:
    """Of each of `dims` the windows that fit, with their places along new last dims.

    Place j of window i is place i * stride + j * dilation.
    """
    has(x, dims)
    distinct(names)
    new_dims(x, names)
    shape = x.sizes
    for dim, name, size, stride, dilation in zip(
        dims, names, sizes, strides, dilations, strict=True
    ):
        most = upper_bound(size)
        require(
            min(stride, dilation, 1 if most is None else most) > 0,
            f"windows of dim {dim!r} of size {size}, stride {stride}, dilation {dilation}",
            "windows have one place at least, and strides and dilations are 1 or more",
        )
        if not isinstance(size, int):
            need(name, 0, "<", size)
        shape[dim] = window_count(shape[dim], size, stride, dilation)
    return TensorType(x.dtype, (*shape.values(), *sizes), (*shape, *names))


@op
def overlap_add(
    x: TensorType,
    *,
    dims: Dims,
    names: Dims,
    sizes: Shape,
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> TensorType:
    """Windows along `dims`, with places along `names`, added up where `windows` takes them from."""
    has(x, (*dims, *names))
    shape = x.sizes
    for dim, name, size, stride, dilation in zip(
        dims, names, sizes, strides, dilations, strict=True
    ):
        have, fits = shape[dim], window_count(size, shape.pop(name), stride, dilation)
        decided = same(have, fits)
        reason = f"dim {dim!r} has {have} windows, but {fits} fit {size} places"
        require(decided is not False, reason, "give the size that the windows were taken from")
        if decided is None:
            need(dim, have, "==", fits)
        shape[dim] = size
    return TensorType(x.dtype, tuple(shape.values()), tuple(shape))


@op
def index(x: TensorType, *, dims: Dims, positions: Shape) -> TensorType:
    """One position of each of `dims`, which vanish."""
    has(x, dims)
    for dim, position in zip(dims, positions, strict=True):
        size = x.size(dim)
        inside(dim, -1, position, f"position {position} of dim {dim!r}, which has size {size}")
        inside(dim, position, size, f"position {position} of dim {dim!r}, which has size {size}")
    return drop(x.dtype, x, dims)


def inside(dim: str, low: Size, high: Size, reason: str) -> None:
    """Refuse, or have the call refuse, unless low < high."""
    gap = high - low
    if (least := lower_bound(gap)) is not None and least >= 1:
        return
    most = upper_bound(gap)
    require(most is None or most >= 1, reason, "positions start at 0", GraphIndexError)
    need(dim, low, "<", high)


@op
def gather(x: TensorType, *indices: TensorType, dims: Dims) -> TensorType:
    """Values of `x` at the positions `indices[i]` along `dims[i]`.

    Indices broadcast by name against each other, so those that share a dim go pointwise and the
    rest orthogonally; a dim an index shares with the rest of `x` is followed pointwise as well.
    Each indexed dim is replaced, in place, by its index's dims.
    """
    has(x, dims)
    by_dim = dict(zip(dims, indices, strict=True))
    sizes: dict[str, Size] = {}
    for dim, size in x.sizes.items():
        here = by_dim[dim].sizes if dim in by_dim else {dim: size}
        for name, length in here.items():
            sizes[name] = agree(name, sizes[name], length) if name in sizes else length
    for i in indices:
        require(i.dtype.kind in "iu", f"positions must be integers, not {i}", "", GraphTypeError)
    return TensorType(x.dtype, tuple(sizes.values()), tuple(sizes))


@op
def scatter(
    updates: TensorType, *indices: TensorType, over: Dims, dims: Dims, sizes: Shape
) -> TensorType:
    """Sum of the `updates` that go to each place: to position `indices[i]` of a new `dims[i]`.

    Operands align by name. Of their dims those in `over` vanish and the rest are batch; the new
    dims come last. The transpose of `gather`.
    """
    return arrived(updates, indices, over, dims, sizes)


def arrived(
    updates: TensorType, indices: tuple[TensorType, ...], over: Dims, dims: Dims, sizes: Shape
) -> TensorType:
    """The type of updates at their places."""
    whole = union(updates, *indices)
    rest = drop(updates.dtype, TensorType(updates.dtype, tuple(whole.values()), tuple(whole)), over)
    new_dims(rest, dims)
    for i in indices:
        require(i.dtype.kind in "iu", f"positions must be integers, not {i}", "", GraphTypeError)
    return TensorType(updates.dtype, (*rest.shape, *sizes), (*(rest.dims or ()), *dims))


def received(
    x: TensorType, updates: TensorType, indices: tuple[TensorType, ...], over: Dims, dims: Dims
) -> TensorType:
    """The type of `x` when updates have come to it: their batch dims are its own."""
    has(x, dims)
    sizes = tuple(x.size(dim) for dim in dims)
    whole = union(x, arrived(updates, indices, over, dims, sizes))
    return TensorType(x.dtype, tuple(whole.values()), tuple(whole))


@op
def put(
    x: TensorType, updates: TensorType, *indices: TensorType, over: Dims, dims: Dims
) -> TensorType:
    """`x` with `updates` at the places they go to, as `scatter` has it; of several the last."""
    return received(x, updates, indices, over, dims)


@op
def scatter_max(
    x: TensorType, updates: TensorType, *indices: TensorType, over: Dims, dims: Dims
) -> TensorType:
    """The largest of `x` and the `updates` that go to each place, as `scatter` has it."""
    return received(x, updates, indices, over, dims)


@op
def scatter_min(
    x: TensorType, updates: TensorType, *indices: TensorType, over: Dims, dims: Dims
) -> TensorType:
    """The smallest of `x` and the `updates` that go to each place, as `scatter` has it."""
    return received(x, updates, indices, over, dims)


@op
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


@op
def overwrite(
    x: TensorType, part: TensorType, *, dims: Dims, starts: Shape, steps: tuple[int, ...]
) -> TensorType:
    """`x` with `part` at the places start, start + step, ... of each of `dims`."""
    has(x, dims)
    has(part, dims)
    for dim, start, step in zip(dims, starts, steps, strict=True):
        reaches(dim, start, step, part.size(dim), x.size(dim))
    whole = x.sizes | union(drop(x.dtype, x, dims), drop(x.dtype, part, dims))
    return TensorType(x.dtype, tuple(whole.values()), tuple(whole))


def reaches(dim: str, start: Size, step: int, many: Size, size: Size) -> None:
    """Refuse, or have the call refuse, places outside a dim of `size`."""
    if isinstance(many, int) and many > 0:  # symbolic counts are those of slices: inside
        last = start + (many - 1) * step
        reason = f"places {start}, ..., {last} of dim {dim!r}, which has size {size}"
        for at in {start, last}:
            inside(dim, -1, at, reason)
            inside(dim, at, size, reason)
