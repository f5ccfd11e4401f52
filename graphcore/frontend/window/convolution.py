"""Convolution and pooling by dim names: windows along some dims, contracted or reduced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from graphcore.frontend.core import arguments
from graphcore.frontend.core.arguments import SizeLike
from graphcore.frontend.core.base import Base, Tensor, refusal, wrap
from graphcore.frontend.core.lift import Operand, common, single
from graphcore.frontend.core.public_calls import call_with
from graphcore.frontend.core.values_as_sizes import value_of
from graphcore.frontend.create.inputs import ones
from graphcore.frontend.index.slices import cut
from graphcore.frontend.pointwise.casting import as_float
from graphcore.frontend.reduce import reductions
from graphcore.frontend.reduce.masking import identity_of_extreme
from graphcore.ir import Expression, Node, Size
from graphcore.ir.help_text import parameters
from graphcore.ir.names import hidden_names
from graphcore.ir.provenance import public_call
from graphcore.ir.sizes import maximum
from graphcore.ops import named

from .windows import Steps, dilations, each, overlap_add_by, pad, strides, windows_by

__all__ = [
    "conv",
    "conv_transpose",
    "max_pool",
    "mean_pool",
]

Dims: TypeAlias = Mapping[str, str] | str | Iterable[str]
Gaps: TypeAlias = int | Mapping[str, int]
Ends: TypeAlias = Literal["valid", "same", "full"] | Size | tuple[Size, Size]
Padding: TypeAlias = Ends | Mapping[str, Ends]
Contracted: TypeAlias = str | Iterable[str] | None


@parameters(
    kernel="The kernel, a tensor.",
    dims="For each dim of `x` that the kernel moves along, the dim of the kernel; or names alone "
    "where both have the same.",
    contract="The dims to sum over besides those that the kernel moves along; None for all others "
    "that both have.",
    stride="The step between positions of the kernel: one number, or a dict by dim.",
    dilation="The step between elements of the kernel: one number, or a dict by dim.",
    padding='The zeros around `x`: one value for all dims, or a dict by dim. With "valid" there '
    'are none. With "same" there are so many that the size stays, apart from the stride; an odd '
    'one is added at the end. With "full" there are as many as the kernel reaches. A number or a '
    "pair (before, after) gives how many.",
)
def conv(
    x: Operand,
    kernel: Operand,
    dims: Dims,
    contract: Contracted = None,
    stride: Steps = 1,
    dilation: Gaps = 1,
    padding: Padding = "valid",
) -> Tensor:
    """Cross-correlation of `x` with a kernel along some dims: the convolution of neural networks.

    `y[i] = sum over j of x[i * stride + j * dilation - before] * kernel[j]`. Nothing is flipped;
    `gc.signal.convolve` flips the kernel.

    All other dims align by name. By default those that both have are summed over. With `contract`
    only the dims that it names are, and the other dims that both have are batch. The result has
    the remaining dims of `x`, then those that only the kernel has, which are outputs. A grouped
    convolution has a batch dim `group`. In a depthwise one the batch dim is `channel`.

    GraphError if a dim of the kernel, or one to contract, does not exist.

    >>> x, kernel = gc.constant([1, 2, 3, 4], "time"), gc.constant([1, 10], "time")
    >>> gc.compile([], [gc.conv(x, kernel, "time"), gc.conv(x, kernel, "time", padding="full")])()
    [array([21, 32, 43]), array([10, 21, 32, 43,  4])]
    >>> image = gc.tensor("image", {"batch": None, "y": 28, "x": 28, "channel": 4})
    >>> kernel = gc.tensor("kernel", {"ky": 3, "kx": 3, "channel": 4, "out": 8})
    >>> gc.conv(image, kernel, {"y": "ky", "x": "kx"}, contract="channel", padding="same")
    <Tensor: f64[batch, y=28, x=28, out=8]>

    In two groups, each with outputs of its own:

    >>> halves = image.unstack(channel={"group": 2, "channel": 2})
    >>> kernel = gc.tensor("kernel", {"group": 2, "y": 3, "x": 3, "channel": 2, "out": 5})
    >>> gc.conv(halves, kernel, ("y", "x"), contract="channel", stride=2)
    <Tensor: f64[batch, y=13, x=13, group=2, out=5]>
    """
    image, weights, moves = kernel_moves(x, kernel, dims, stride, dilation)
    seen = windows_of(image, moves, padding, 0)
    return wrap(named.dot(seen, weights, dims=dims_to_contract(seen, weights, moves, contract)))


@parameters(
    x="A tensor, as `conv` returns it.",
    kernel="The kernel of `conv`.",
    dims="For each dim of `x` that the kernel moves along, the dim of the kernel; or names alone "
    "where both have the same.",
    contract="The output dims of `conv`, which are summed over; None for all others that both "
    "have.",
    stride="The step between positions of the kernel, as in `conv`.",
    dilation="The step between elements of the kernel, as in `conv`.",
    padding="The padding of `conv`, which is cut off.",
    sizes="The sizes of some of `dims` in the result. By default the smallest for which `conv` "
    'gives those of `x`; for "same", those of `x` times the stride.',
)
def conv_transpose(
    x: Operand,
    kernel: Operand,
    dims: Dims,
    contract: Contracted = None,
    stride: Steps = 1,
    dilation: Gaps = 1,
    padding: Padding = "valid",
    sizes: Mapping[str, SizeLike] | None = None,
) -> Tensor:
    """The transpose of `conv` with the same arguments, from its results back to its input.

    Each element of `x` adds a multiple of the kernel to the result.

    >>> x, kernel = gc.constant([1, 2, 3], "time"), gc.constant([1, 10], "time")
    >>> gc.compile([], gc.conv_transpose(x, kernel, "time"))()
    array([ 1, 12, 23, 30])
    >>> x = gc.tensor("x", {"batch": None, "y": 13, "x": 13, "out": 8})
    >>> kernel = gc.tensor("kernel", {"ky": 3, "kx": 3, "channel": 4, "out": 8})
    >>> gc.conv_transpose(x, kernel, {"y": "ky", "x": "kx"}, contract="out", stride=2)
    <Tensor: f64[batch, y=27, x=27, channel=4]>
    """
    values, weights, moves = kernel_moves(x, kernel, dims, stride, dilation)
    shown = "kernel, 'dim', sizes={'dim': size}"
    given_sizes = arguments.mapping({} if sizes is None else sizes, None, shown, values)
    moved = tuple(move.dim for move in moves)
    for dim in given_sizes:
        if dim not in moved:
            cure = named.close_match(dim, moved)
            raise refusal(f"moves along no dim {dim!r}", values, weights, cure=cure)
    whole: list[Size] = []
    kept: dict[str, tuple[Size, Size]] = {}
    for move, ends in zip(moves, each(moved, padding), strict=True):
        size = move.source(values.type.size(move.dim), ends)
        if given_sizes.get(move.dim) is not None:
            size = arguments.size_of(move.dim, given_sizes[move.dim])
        before, after = move.ends(size, ends)
        whole.append(before + size + after)
        kept[move.dim] = before, size
    over = dims_to_contract(values, weights, moves, contract)
    spread = named.dot(values, weights, dims=over)
    result = overlap_add_by(spread, move_attrs(moves) | {"sizes": tuple(whole)})
    for dim, (start, size) in kept.items():
        result = cut(result, dim, start, size)
    return wrap(result)


@parameters(
    sizes="For each dim the size of its windows.",
    stride="The step from window to window; by default their sizes, so that windows do not "
    "overlap. An incomplete window at the end is left out.",
    dilation="The step from element to element in a window.",
    padding="As in `conv`, but the added elements are lower than all others.",
)
def max_pool(
    x: Operand,
    sizes: Mapping[str, SizeLike],
    stride: Steps | None = None,
    dilation: Gaps = 1,
    padding: Padding = "valid",
) -> Tensor:
    """Maximum of each window along some dims; tied elements share its derivative evenly.

    >>> x = gc.constant([1.0, 5.0, 2.0, 3.0], "time")
    >>> gc.compile([], gc.max_pool(x, {"time": 2}))()
    array([5., 3.])
    >>> gc.max_pool(gc.tensor("x", {"batch": None, "y": 28, "x": 28}), {"y": 2, "x": 2})
    <Tensor: f64[batch, y=14, x=14]>
    """
    node, moves = pool(x, sizes, stride, dilation)
    seen = windows_of(node, moves, padding, identity_of_extreme(node.type.dtype))
    return reductions.max(wrap(seen), window_dims(moves))


@parameters(
    sizes="For each dim the size of its windows.",
    stride="The step from window to window, as in `max_pool`.",
    dilation="The step from element to element in a window.",
    padding="The zeros around `x`, as in `conv`.",
    count_include_pad="Whether these zeros count as elements of their windows.",
)
def mean_pool(
    x: Operand,
    sizes: Mapping[str, SizeLike],
    stride: Steps | None = None,
    dilation: Gaps = 1,
    padding: Padding = "valid",
    count_include_pad: bool = True,
) -> Tensor:
    """Mean of each window along some dims.

    >>> x = gc.constant([1.0, 5.0, 2.0, 3.0], "time")
    >>> gc.compile([], gc.mean_pool(x, {"time": 2}))()
    array([3. , 2.5])
    """
    node, moves = pool(x, sizes, stride, dilation)
    seen = wrap(windows_of(node, moves, padding, 0))
    if count_include_pad:
        return reductions.mean(seen, window_dims(moves))
    total = reductions.sum(as_float(seen), window_dims(moves))
    there = ones({move.dim: node.type.size(move.dim) for move in moves}, total.dtype)
    counted = windows_of(there.node, moves, padding, 0)
    return total / reductions.sum(wrap(counted), window_dims(moves))


class Move(NamedTuple):
    """How a kernel or a window moves along a dim: its own dim, its size, and its steps."""

    dim: str
    place: str
    size: Size
    stride: Size
    dilation: int

    def ends(self, size: Size, given: Any) -> tuple[Size, Size]:
        """The padding before and after `size` elements."""
        beyond = (self.size - 1) * self.dilation
        several = isinstance(given, (tuple, list))
        parts = [
            value_of(f"the padding of dim {self.dim!r}", p) if isinstance(p, Base) else p
            for p in (given if several else (given,))
        ]
        given = tuple(parts) if several else parts[0]
        match given if isinstance(given, (str, int, Expression, tuple, list)) else None:
            case "valid":
                return 0, 0
            case "full":
                return beyond, beyond
            case "same":
                last = (size + self.stride - 1) // self.stride * self.stride - self.stride
                lack = maximum(last + beyond + 1 - size, 0)
                return lack // 2, lack - lack // 2
            case (before, after) if is_size(before) and is_size(after):
                return before, after
            case _ if is_size(given):
                return given, given
        cure = "use 'valid', 'same', 'full', a number or a pair of numbers"
        raise refusal(f"padding {given!r} of dim {self.dim!r}", cure=cure)

    def source(self, count: Size, given: Any) -> Size:
        """The smallest size that gives `count` windows."""
        if isinstance(given, str) and given == "same":
            return count * self.stride
        before, after = self.ends(0, given)
        reach = (count - 1) * self.stride + (self.size - 1) * self.dilation + 1
        return maximum(reach - before - after, 0)


def is_size(given: object) -> bool:
    """Whether a padding is a number of elements."""
    return isinstance(given, Expression) or (type(given) is int and given >= 0)


def window_dims(moves: list[Move]) -> tuple[str, ...]:
    """The dims within windows."""
    return tuple(move.place for move in moves)


def move_attrs(moves: list[Move]) -> dict[str, Any]:
    """The attrs of `named.windows`."""
    keys = ("dims", "names", "sizes", "strides", "dilations")
    return dict(zip(keys, zip(*moves, strict=True), strict=True))


def windows_of(x: Node, moves: list[Move], padding: Any, fill: complex) -> Node:
    """The windows of `x`, padded."""
    given = each(tuple(move.dim for move in moves), padding)
    for some in given:
        if isinstance(some, str):
            arguments.check_word("padding", some, ("valid", "same", "full"), x)
    ends = {
        move.dim: move.ends(x.type.size(move.dim), some)
        for move, some in zip(moves, given, strict=True)
    }
    return windows_by(pad(x, ends, fill), move_attrs(moves))


def kernel_moves(
    x: Operand, kernel: Operand, dims: Dims, stride: Steps, dilation: Gaps
) -> tuple[Node, Node, list[Move]]:
    """`x`, the kernel with hidden names for the dims it moves by, and how it moves."""
    values, weights = common(x, kernel)
    pairs = dims if isinstance(dims, Mapping) else {dim: dim for dim in arguments.names(dims)}
    along, own = arguments.names(tuple(pairs), values), arguments.names(tuple(pairs.values()))
    arguments.require_dims(values, along)
    absent = [dim for dim in own if dim not in weights.type.dims]
    free = [dim for dim in weights.type.dims if dim not in values.type.dims]
    if not isinstance(dims, Mapping) and 0 < len(absent) <= len(free):
        shown = dict(zip(own, own, strict=True)) | dict(zip(absent, free, strict=False))
        cure = (
            f"name the dims of the kernel, such as {call_with(public_call(), f'kernel, {shown}')}"
        )
        raise refusal(f"the kernel has no dim {absent[0]!r}", values, weights, cure=cure)
    arguments.require_dims(weights, own)
    if not along:
        raise refusal("moves along no dim", values, weights, cure="use gc.dot")
    in_use = (*values.type.dims, *weights.type.dims)
    inner = hidden_names([dim for dim in own if dim in values.type.dims], in_use)
    new = [inner.get(dim, dim) for dim in own]
    renamed = tuple((old, name) for old, name in zip(own, new, strict=True) if old != name)
    if renamed:
        weights = named.rename(weights, names=renamed)
    sizes = (weights.type.size(name) for name in new)
    by, gaps = strides(along, stride), dilations(along, dilation)
    return values, weights, list(map(Move, along, new, sizes, by, gaps))


def dims_to_contract(
    x: Node, kernel: Node, moves: list[Move], contract: Contracted
) -> tuple[str, ...]:
    """The dims to sum over, in order of first appearance: by default all that both have."""
    mine, theirs = x.type.dims, kernel.type.dims
    known = tuple(dict.fromkeys((*mine, *theirs)))
    moved = {move.dim for move in moves}
    if contract is None:
        return tuple(dim for dim in mine if dim in theirs and dim not in moved)
    meant = arguments.names(arguments.order_set(contract), x)
    for dim in meant:
        if dim not in known or dim in moved:
            reason = f"moves along dim {dim!r}" if dim in moved else f"no operand has dim {dim!r}"
            own = {*moved, *window_dims(moves)}
            cure = named.close_match(dim, tuple(other for other in known if other not in own))
            raise refusal(reason, x, kernel, cure=cure)
    over = {*meant, *window_dims(moves)} if moves[0].place in mine else {*meant}
    return tuple(dim for dim in known if dim in over)


def pool(
    x: Operand, sizes: Mapping[str, SizeLike], stride: Steps | None, dilation: Gaps
) -> tuple[Node, list[Move]]:
    """`x`, and windows that by default do not overlap."""
    node = single(x)
    dims = arguments.names(tuple(arguments.mapping(sizes, None, "{'dim': size}", node)), node)
    arguments.require_dims(node, dims)
    if not dims:
        cure = (
            f"write {call_with(public_call(), f'{{{node.type.dims[0]!r}: 2}}')}"
            if node.type.dims
            else "name a dim"
        )
        raise refusal("sizes name no dim", node, cure=cure)
    found = [arguments.size_of(dim, sizes[dim]) for dim in dims]
    new = hidden_names([f"{dim} window" for dim in dims], node.type.dims).values()
    own = dict(zip(dims, found, strict=True))
    by = strides(dims, own if stride is None else stride)
    return node, list(map(Move, dims, new, found, by, dilations(dims, dilation)))
