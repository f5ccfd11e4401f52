"""Ops whose axes have names. All of them are lowered before anything is differentiated.

Dims that an op does not mention are batch: it works on each of their positions separately.
"""

from __future__ import annotations

import math

from graphcore.ir import Shape, Size, TensorType, Trait
from graphcore.ir import axes as kinds
from graphcore.ir.dtypes import SINGLE, complex_for, float_for, promote, real_of
from graphcore.ir.errors import Refusal, require
from graphcore.ir.node import agree, natural, need
from graphcore.ir.op import op
from graphcore.ir.sizes import count, same, upper_bound
from graphcore.ops import tensor
from graphcore.ops.tensor import window_count

from . import matrices as matrices
from .derived import FORMS as FORMS
from .derived import by_name
from .dims import Dims as Dims
from .dims import close_match as close_match
from .dims import distinct, drop, has, new_dims
from .dims import union as union
from .order import argsort as argsort
from .order import searchsorted as searchsorted
from .positions import embed as embed
from .positions import gather as gather
from .positions import index as index
from .positions import overwrite as overwrite
from .positions import put as put
from .positions import scatter as scatter
from .positions import scatter_max as scatter_max
from .positions import scatter_min as scatter_min
from .positions import scatter_prod as scatter_prod
from .positions import slice_ as slice_

sum_, prod, any_, all_ = map(by_name, (tensor.sum_, tensor.prod, tensor.any_, tensor.all_))
norm, logsumexp = map(by_name, (tensor.norm, tensor.logsumexp))
max_, min_ = by_name(tensor.max_, some=True), by_name(tensor.min_, some=True)
argmax, argmin = by_name(tensor.argmax, some=True), by_name(tensor.argmin, some=True)
softmax, log_softmax = map(by_name, (tensor.softmax, tensor.log_softmax))
cumsum, cumprod, cummax, cummin, logcumsumexp = map(
    by_name,
    (tensor.cumsum, tensor.cumprod, tensor.cummax, tensor.cummin, tensor.logcumsumexp),
)
sort = by_name(tensor.sort)
fft, irfft = by_name(tensor.fft, complex_for, some=True), by_name(tensor.irfft, complex_for)
rfft = by_name(tensor.rfft, lambda dtype: promote(float_for(dtype), SINGLE), some=True)


@op(axes=kinds.Reduces("dims"))
def mean(x: TensorType, *, dims: Dims) -> TensorType:
    """Mean over `dims`."""
    return drop(float_for(x.dtype), x, dims)


@op(axes=kinds.Reduces("dims"))
def var(x: TensorType, *, dims: Dims, ddof: int) -> TensorType:
    """Variance over `dims`: the sum of |x - mean|^2 over (count - ddof)."""
    return drop(real_of(float_for(x.dtype)), x, dims)


@op(axes=kinds.Reduces("dims"))
def std(x: TensorType, *, dims: Dims, ddof: int) -> TensorType:
    """Standard deviation over `dims`; its derivative at a constant x is 0."""
    return drop(real_of(float_for(x.dtype)), x, dims)


@op(axes=kinds.Reduces("dims"))
def dot(*xs: TensorType, dims: Dims) -> TensorType:
    """Product of all operands, aligned by name, summed over `dims`: one contraction."""
    sizes = union(*xs)
    for dim in dims:
        if dim not in sizes:
            raise Refusal(f"no operand has dim {dim!r}", close_match(dim, tuple(sizes)))
    require(len(set(dims)) == len(dims), f"dims {dims} name a dim twice", "name each dim once")
    kept = {dim: size for dim, size in sizes.items() if dim not in dims}
    return TensorType.of(promote(*[x.dtype for x in xs]), kept)


@op(axes=kinds.Permutes("dims"))
def transpose(x: TensorType, *, dims: Dims) -> TensorType:
    """The same values with dims in this order."""
    has(x, dims)
    require(len(dims) == len(x.shape), f"{dims} leaves out some of {x}", "name all, or use ...")
    return TensorType(x.dtype, tuple(x.size(dim) for dim in dims), dims)


@op(axes=kinds.Renames("names"))
def rename(x: TensorType, *, names: tuple[tuple[str, str], ...]) -> TensorType:
    """The same values with dims renamed by the pairs (old, new), all at once."""
    has(x, tuple(old for old, _ in names))
    new = dict(names)
    dims = tuple(new.get(dim, dim) for dim in x.dims or ())
    for dim in dims:
        require(dims.count(dim) == 1, f"two dims would be named {dim!r}", "choose another name")
    return TensorType(x.dtype, x.shape, dims)


@op(axes=kinds.Renames("names"))
def swap_dims(x: TensorType, *, names: tuple[tuple[str, str], ...]) -> TensorType:
    """`rename`, but coordinates keep their names: one of a new name labels the dim."""
    return rename.rule(x, names=names)  # type: ignore[return-value]


@op(axes=kinds.Relabels("dims"))
def labelled(x: TensorType, like: TensorType, *, dims: Dims, blocks: Shape) -> TensorType:
    """`x`, whose elements along `dims` have the labels of those of `like`.

    With `blocks` they have the means of the labels of blocks of these sizes. Values are as in `x`:
    this op says what an op that moves or combines elements means to xarray.
    """
    has(x, dims)
    has(like, dims)
    return x


@op(axes=kinds.Inserts("dims"))
def broadcast(x: TensorType, *, dims: Dims, sizes: Shape) -> TensorType:
    """`x` repeated along the new ones of `dims`, all in this order."""
    has(TensorType(x.dtype, sizes, dims), x.dims or ())
    for dim, size in zip(dims, sizes, strict=True):
        natural(dim, size)
    shape = tuple(
        agree(dim, x.size(dim), size) if dim in (x.dims or ()) else size
        for dim, size in zip(dims, sizes, strict=True)
    )
    return TensorType(x.dtype, shape, dims)


@op(axes=kinds.Reduces("dims"))
def squeeze(x: TensorType, *, dims: Dims) -> TensorType:
    """`x` without `dims`, whose size is 1."""
    has(x, dims)
    for dim in dims:
        size = x.size(dim)
        cure = "only a dim of size 1 can be squeezed; index it with isel instead"
        require(same(size, 1) is not False, f"dim {dim!r} has size {size}", cure)
        if size != 1:
            need(dim, size, "==", 1, cure=cure)
    return drop(x.dtype, x, dims)


@op(axes=kinds.Joins("dim"))
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


@op(axes=kinds.Splits("dims", "name"))
def stack(x: TensorType, *, dims: Dims, name: str) -> TensorType:
    """`dims` merged into one new last dim, the first of them slowest."""
    has(x, dims)
    rest = drop(x.dtype, x, dims)
    new_dims(rest, (name,))
    size = count(x.size(dim) for dim in dims)
    return TensorType(x.dtype, (*rest.shape, size), (*(rest.dims or ()), name))


@op(axes=kinds.Splits("dim", "names"))
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
        known = math.prod(size for size in sizes if isinstance(size, int))
        several = known > 1 and same(parts, whole // known * known) is True
        cure = f"pass a multiple of {known}, or cut the rest off, as "
        cure += "x.coarsen(..., boundary='trim') does"
        need(dim, whole, "==", parts, cure=cure if several else "")
    return TensorType(x.dtype, (*rest.shape, *sizes), (*(rest.dims or ()), *names))


def count_windows(
    dim: str, size: Size, name: str, window: Size, stride: int, dilation: int
) -> Size:
    """How many windows fit `size` places of `dim`; windows without a place are refused."""
    most = upper_bound(window)
    require(
        min(stride, dilation, 1 if most is None else most) > 0,
        f"windows of dim {dim!r} of size {window}, stride {stride}, dilation {dilation}",
        "windows have at least one element; strides and dilations are 1 or more",
    )
    if not isinstance(window, int):
        need(name, 0, "<", window)
    return window_count(size, window, stride, dilation)


@op(axes=kinds.Windows("dims"))
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
        shape[dim] = count_windows(dim, shape[dim], name, size, stride, dilation)
    return TensorType(x.dtype, (*shape.values(), *sizes), (*shape, *names))


@op(axes=kinds.Overlaps("dims"))
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
        have, fits = shape[dim], count_windows(dim, size, name, shape.pop(name), stride, dilation)
        decided = same(have, fits)
        reason = f"dim {dim!r} has {have} windows, but {fits} fit {size} places"
        require(decided is not False, reason, "give the size that the windows were taken from")
        if decided is None:
            need(dim, have, "==", fits)
        shape[dim] = size
    return TensorType.of(x.dtype, shape)


@op(axes=kinds.Seen(), traits=[Trait.EFFECT])
def print_(x: TensorType, *, label: str, number: int) -> TensorType:
    """`x`, printed when it is computed; prints are in the order of their numbers."""
    return x
