"""What the variables of PyTensor are here: tensors whose axis i is the dim "d<i>", or known arrays.

An axis whose type says size 1 has no dim, so what PyTensor broadcasts is aligned by name. A value
that is known now is an array, of numbers or of sizes (which are objects): shapes are such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np

import graphcore as gc
from graphcore.frontend.core.base import Tensor
from graphcore.frontend.core.values_as_sizes import ARITHMETIC, value_of
from graphcore.frontend.shape.dims import with_size
from graphcore.ir.names import Hidden, apart
from graphcore.ir.node import Node
from graphcore.ir.sizes import Expression, Size, lower_bound, same
from graphcore.ops import elementwise, leaf, named

from .refused import Unsaid

Array: TypeAlias = np.ndarray[Any, Any]
Value: TypeAlias = Tensor | Array | slice | None
Type: TypeAlias = Any
"""A type of PyTensor: its `shape` has None where a size is open."""


def axis(i: int) -> str:
    """The dim of axis i."""
    return f"d{i}"


def axes(n: int, start: int = 0) -> list[str]:
    """The dims of n axes in a row."""
    return [axis(i) for i in range(start, start + n)]


def is_known(x: object) -> TypeGuard[Array]:
    """Whether a value is an array, known now."""
    return isinstance(x, np.ndarray)


def known(x: object) -> Array:
    """Numbers and sizes as an array: of objects if one is a size."""
    found = np.asarray(x)
    if found.dtype == object and not any(isinstance(y, Expression) for y in found.flat):
        return found.astype("int64")
    return found


def is_sizes(x: object) -> TypeGuard[Array]:
    """Whether a value holds sizes of which the call gives some."""
    return isinstance(x, np.ndarray) and x.dtype == object


def dims_of(type: Type) -> dict[str, int | None]:
    """The dims of a type of PyTensor: the axes whose size is not always 1, or names of its own."""
    if hasattr(type, "dims"):
        return dict(zip(type.dims, type.shape, strict=True))
    return {axis(i): n for i, n in enumerate(getattr(type, "shape", ())) if n != 1}


def lift(x: Value, type: Type) -> Tensor:
    """A value of this type as a tensor."""
    if isinstance(x, Tensor):
        return x
    assert x is not None
    dtype, dims = np.dtype(type.dtype), dims_of(type)
    if is_sizes(x):
        numbers = [gc.astype(gc.constant(y), dtype) for y in x.flat]
        if not x.ndim:
            return numbers[0]
        flat = gc.concat([y.expand_dims({"flat": 1}) for y in numbers], "flat")
        sizes = {axis(i): n for i, n in enumerate(x.shape)}
        return fit(flat.unstack({"flat": sizes}), type)
    values = np.asarray(x, dtype)
    shape: Any = getattr(type, "shape", ())
    if not hasattr(type, "dims"):
        values = values.reshape([n for n, wanted in zip(values.shape, shape) if wanted != 1])
    first = values.flat[:1]
    if values.size > 1 and values.tobytes() == first.tobytes() * values.size:
        return gc.full(dict(zip(dims, values.shape, strict=True)), gc.constant(first[0]))
    return gc.constant(values, tuple(dims))


def fit(x: Tensor, type: Type) -> Tensor:
    """A tensor with just the dims and the dtype of its type; dims that are batch stay."""
    if not hasattr(type, "dims"):
        for i, n in enumerate(getattr(type, "shape", ())):
            if n == 1 and axis(i) in x.dims:
                x = single(x, axis(i))
            elif n != 1 and axis(i) not in x.dims:
                x = x.expand_dims({axis(i): 1 if n is None else n})
    if x.dtype.kind == "c" and np.dtype(type.dtype).kind != "c":
        raise Unsaid("its values are complex, and its type is real", "use PyTensor's own modes")
    return gc.astype(x, type.dtype)


def single(x: Tensor, dim: str) -> Tensor:
    """`x` without a dim that must have size 1."""
    return Tensor(with_size(x.node, dim, 1)).isel({dim: 0})


def full(x: Value, type: Type, only: Iterable[int] | None = None) -> Tensor:
    """`x` with a dim for each axis, or for each of some: where the type says 1, of size 1."""
    made = lift(x, type)
    wanted = [axis(i) for i in (range(type.ndim) if only is None else only)]
    missing = {dim: 1 for dim in wanted if dim not in made.dims}
    return made.expand_dims(missing) if missing else made


def renamed(x: Tensor, names: Mapping[str, str]) -> Tensor:
    """`x` with other names for those of some dims that it has."""
    new = {old: name for old, name in names.items() if old in x.dims and old != name}
    return x.rename(new) if new else x


def aligned(x: Value, type: Type, n: int) -> Tensor:
    """A value of this type whose axes are the last of n, as NumPy broadcasts."""
    return renamed(lift(x, type), {axis(i): axis(i + n - type.ndim) for i in range(type.ndim)})


def moved(x: Tensor, order: Sequence[str | int]) -> Tensor:
    """`x` with the axes that stood at these places, or had these dims, as axes 0, 1, ..."""
    places = [axis(old) if isinstance(old, int) else old for old in order]
    return renamed(x, {old: axis(new) for new, old in enumerate(places)})


def without(x: Tensor, gone: Iterable[int], n: int) -> Tensor:
    """`x` of n axes, some of which are gone, with the rest as axes 0, 1, ..."""
    left = set(gone)
    return moved(x, [i for i in range(n) if i not in left])


def new_names(texts: Iterable[str], *xs: Value) -> list[str]:
    """Hidden names that none of these values has as a dim."""
    taken: list[str] = [dim for x in xs if isinstance(x, Tensor) for dim in x.dims]
    found: list[str] = []
    for text in texts:
        found.append(apart(Hidden(text), [*taken, *found]))
    return found


def number(x: Value, what: str) -> Size:
    """An integer or size; one that is an input is given by the call, others the program finds."""
    if isinstance(x, Tensor):
        one = Tensor(repeated(x.node))
        if one.node.op is leaf.full and not one.dims:
            return int(one.node.attrs["value"].array.item())
        return value_of(what, shared(gc.astype(one, "int64"), what))
    item = np.asarray(x)[()]
    return item if isinstance(item, Expression) else int(item)


def shared(x: Tensor, what: str) -> Tensor:
    """The number that all of a batch have: they share the shapes of what is computed."""
    x = x.isel({dim: 0 for dim, n in x.sizes.items() if same(n, 1)})
    if not x.dims:
        return x

    def check(numbers: Array) -> Any:
        if numbers.size and numbers.min() != numbers.max():
            raise ValueError(f"{what} differs in a batch: {numbers.min()} and {numbers.max()}")
        return numbers.ravel()[0] if numbers.size else np.int64(0)

    one: Tensor = gc.callback(check, gc.zeros({}, dtype="int64"))(x)
    return one


def repeated(node: Node) -> Node:
    """The one number that a node repeats along its dims, where it is seen to; else the node."""
    if not node.type.dims:
        return node
    if node.op is leaf.full:
        return leaf.full(value=node.attrs["value"], shape=(), dims=())
    if node.op in (named.broadcast, named.rename, named.transpose):
        return repeated(node.inputs[0])
    if node.op in ARITHMETIC or node.op is elementwise.cast:
        operands = [repeated(x) for x in node.inputs]
        if not any(x.type.dims for x in operands):
            return node.with_inputs(*operands)
    return node


def numbers(x: Value, n: int, what: str) -> list[Size]:
    """The n integers or sizes of a vector."""
    if isinstance(x, Tensor):
        each = [Tensor(y) for y in x.node.inputs] if x.node.op is named.concat else []
        if len(each) != n or any(same(size_along(y, 0), 1) is not True for y in each):
            each = [x.isel({axis(0): k}) for k in range(n)] if axis(0) in x.dims else [x] * n
        return [number(y, what) for y in each]
    return [number(y, what) for y in np.atleast_1d(np.asarray(x))]


def size_along(x: Tensor, i: int) -> Size:
    """The size of axis i."""
    size: Size = x.sizes[axis(i)] if axis(i) in x.dims else 1
    return size


def have_size(x: Tensor, dim: str, size: Size) -> Tensor:
    """`x` with the requirement that a dim has this size."""
    return x if same(x.sizes[dim], size) is True else Tensor(with_size(x.node, dim, size))


def is_natural(size: Size) -> bool:
    """Whether a size is never negative."""
    low = lower_bound(size)
    return low is not None and low >= 0
