"""Dims, sizes, numbers and words as users write them, checked and in the form that ops take."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from types import EllipsisType
from typing import Any, Literal, TypeAlias, get_args, overload

import numpy as np
import numpy.typing as npt

from graphcore.ir import DType, Expression, Node, Shape, Size
from graphcore.ir.errors import GraphError, GraphValueError, GraphWarning
from graphcore.ir.provenance import public_call, user_line
from graphcore.ir.size_reader import read_size
from graphcore.ir.sizes import lower_bound, unknown, upper_bound
from graphcore.ops.named import close_match

from .base import Base, Tensor, brief, refusal, type_refusal
from .lift import Operand, check_dims, single
from .lift import dtype_of as dtype_of
from .public_calls import call_with
from .values_as_sizes import value_of

Dim: TypeAlias = str | Iterable[str] | EllipsisType | None
"""One dim, several, or all of them (None or ...)."""

SizeLike: TypeAlias = "int | str | Expression | Tensor | None"
"""A size: an integer, an expression, also as text ("n + 1"), None: unknown, named by its dim; or
the value of an integer input without dims, or of arithmetic of some."""

Whole: TypeAlias = "Size | Tensor"
"""An integer, a size, or the value of an integer input."""

MissingDims = Literal["raise", "warn", "ignore"]


def dims_of(x: Node, dim: Dim, ordered: bool = False) -> tuple[str, ...]:
    """The dims meant; in the order of `x`, so that equal programs are equal, unless `ordered`."""
    known: tuple[str, ...] = x.type.dims
    if dim is None or dim is ...:
        return known
    if isinstance(dim, str):
        return (dim,)
    dims = names(dim if ordered else order_set(dim), x)
    twice = next((dim for at, dim in enumerate(dims) if dim in dims[:at]), None)
    if ordered and twice is not None:
        raise refusal(f"dim {twice!r} is repeated", x, cure="name each dim once")
    if not ordered and len(set(dims)) == len(dims) and set(dims) <= set(known):
        return tuple(sorted(dims, key=known.index))
    return dims


def order_set(dim: Any) -> Any:
    """Dims whose order has no meaning: those of a set, sorted by name."""
    return sorted(dim, key=str) if isinstance(dim, (set, frozenset)) else dim


def names(dim: object, x: Node | None = None, *, new: bool = False) -> tuple[str, ...]:
    """One or several names as a tuple; the error for a position suggests the dim at that position.

    Names of `new` dims have no position in `x`.
    """
    known = x.type.dims if x is not None else ()
    found: list[str] = []
    for name in items(dim):  # one at a time, as they may be endless
        if not isinstance(name, str):
            cure = "dims are named by strings"
            if isinstance(name, int) and not new and -len(known) <= name < len(known):
                cure = f"axes have names here: dim={known[name]!r}"
            reason = f"{brief(name)} is not the name of a dim"
            raise type_refusal(reason, *([x] if x else []), cure=cure)
        found.append(str(name) if isinstance(name, np.str_) else name)
    return tuple(found)


def items(given: Any) -> Iterable[object]:
    """The items of a sequence or other iterable; anything else is a single item.

    Dicts, whose values would be lost, and sets, which have no order, are single items as well.
    """
    if isinstance(given, (str, Base, Mapping, set, frozenset)):
        return (given,)
    try:
        parts: Iterable[object] = iter(given)
    except TypeError:
        return (given,)
    return parts


def as_list(what: str, given: object, *operands: Base | Node) -> list[Any]:
    """The items of a list, tuple or iterator, refused if there are too many."""
    strange = isinstance(given, (str, bytes, Base, Mapping, set, frozenset))
    if not strange and isinstance(given, Iterable) and not hasattr(given, "__array__"):
        found = list(islice(given, MOST_ITEMS + 1))
        if len(found) <= MOST_ITEMS:
            return found
    reason = f"{what}={brief(given)} is not a list"
    cure = f"give a list or a tuple: [{what}]" if isinstance(given, Base) else "give a list"
    raise type_refusal(reason, *operands, cure=cure)


MOST_ITEMS = 100_000
"""How many items a list of operands may have: an iterator may be endless."""


def dim_of(x: Node, dim: object) -> str:
    """The single dim meant, which `x` must have; None is that of a vector."""
    if dim is None:
        if len(x.type.dims) == 1:
            own: str = x.type.dims[0]
            return own
        several = f"has the dims {', '.join(map(repr, x.type.dims))}" if x.type.dims else "has none"
        cure = f"name one: dim={x.type.dims[-1]!r}" if x.type.dims else "give a tensor with dims"
        raise type_refusal(f"dim is missing, and {x.type} {several}", x, cure=cure)
    (name,) = names((dim,), x)
    require_dims(x, (name,))
    return name


def require_dims(x: Node, dims: tuple[str, ...]) -> None:
    """Refuses dims that `x` lacks."""
    known = x.type.dims
    for dim in dims:
        if dim not in known:
            raise refusal(f"there is no dim {dim!r} in {x.type}", x, cure=close_match(dim, known))


def new_dim(dim: object, *xs: Node, gone: Collection[str] = ()) -> str:
    """The name of a new dim, which no operand may have, except among those that are `gone`."""
    (name,) = names((dim,), new=True)
    for x in xs:
        if name in x.type.dims and name not in gone:
            raise refusal(f"there is a dim {name!r} already", x, cure="choose a new name")
    return name


def present(x: Node, dims: tuple[str, ...], missing_dims: MissingDims) -> tuple[str, ...]:
    """`dims` without those that `x` lacks, if `missing_dims` says to skip them."""
    check_word("missing_dims", missing_dims, get_args(MissingDims), x)
    if missing_dims == "raise":
        require_dims(x, dims)
    missing = [dim for dim in dims if dim not in x.type.dims]
    if missing and missing_dims == "warn":
        line = user_line()
        said = f"{public_call()}: there is no dim {', '.join(map(repr, missing))} in {x.type}"
        warnings.warn_explicit(said, GraphWarning, line.file, line.line)
    return tuple(dim for dim in dims if dim not in missing)


def dims_sizes(dims: object, shape: object = None) -> tuple[tuple[str, ...], Shape]:
    """Dims and their sizes, from a mapping, or from names and as many sizes."""
    if isinstance(dims, Mapping):
        if shape is not None:
            raise refusal("dims map to sizes, and there is a shape as well", cure="give sizes once")
        pairs = list(dims.items())
    else:
        if (given := as_tuple(dims)) and all(isinstance(size, int) for size in given):
            cure = f"map names to sizes: {dict(zip(('row', 'col'), given))}"
            raise type_refusal(f"{dims} has sizes, but no names of dims", cure=cure)
        found = names(dims)
        sizes = (None,) * len(found) if shape is None else as_tuple(shape)
        if len(sizes) != len(found):
            listed = ", ".join(f"{name!r}: size" for name in found)
            cure = f"map dims to sizes: {{{listed}}}" if found else "leave it out"
            reason = f"shape {shape} does not have one size for each of the dims {found}"
            raise refusal(reason, cure=cure)
        pairs = list(zip(found, sizes, strict=True))
    result = tuple(name for name, _ in pairs)
    check_dims(result)
    return result, tuple(size_of(name, size) for name, size in pairs)


def require_order(x: Base | Node) -> None:
    """Refuse complex numbers, which have no order."""
    node = x.node if isinstance(x, Base) else x
    if node.type.dtype.kind == "c":
        cure = "use gc.real, gc.imag or gc.absolute"
        raise type_refusal("complex numbers have no order", x, cure=cure)


DimPair: TypeAlias = tuple[str, str]


def two_dims(dims: object, *operands: Node, new: bool = False) -> DimPair:
    """The names of two dims; the first operand, if there is one, has them, unless they are new."""
    found = names(dims, *operands[:1])
    own = operands[0].type.dims if operands and not new else ()
    if found == ("row", "col") and len(own) > 1 and not {"row", "col"} & set(own):
        cure = f"name its rows and columns: dims={own[-2:]}"
        raise refusal("there are no dims 'row' and 'col'", *operands, cure=cure)
    if len(found) != 2 or found[0] == found[1]:
        cure = 'name two dims, rows first: dims=("row", "col")'
        raise refusal(f"dims={brief(dims)} are not two dims", *operands, cure=cure)
    if operands and not new:
        require_dims(operands[0], found)
    return found[0], found[1]


def as_tuple(value: object) -> tuple[Any, ...]:
    """A list or tuple as a tuple; anything else as its only item."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def size_of(dim: str, size: object) -> Size:
    """The size that a user gave for `dim`."""
    if size is None:
        return unknown(dim)
    if isinstance(size, Base):
        return value_of(f"the size of dim {dim!r}", size)
    if isinstance(size, str):
        try:
            size = read_size(size)
        except ValueError as error:
            cure = "name an unknown size, such as 'n', or write an expression, such as 'n + 4'"
            raise refusal(f"dim {dim!r}: {error}", cure=cure) from None
    if not isinstance(size, Expression):
        try:
            size = index_of(size)  # not True, a slip: None is an unknown size, 1 is a size
        except TypeError:
            reason = f"{brief(size)} is not a size for dim {dim!r}"
            cure = "sizes are integers, None (unknown), a name for an unknown, or an expression"
            if isinstance(size, dict) and len(size) == 1:
                cure = f"give the size alone, {brief(next(iter(size.values())))}, and name its dim"
            raise type_refusal(reason, cure=cure) from None
    if (upper_bound(size) or 0) < 0:
        raise refusal(f"dim {dim!r} has size {size}", cure="sizes are 0 or more")
    if isinstance(size, int) and size > LARGEST_SIZE:
        raise refusal(f"dim {dim!r} has size {size}", cure="no array has so many elements")
    return size


LARGEST_SIZE = 2**63 - 1
"""The largest size, that of the integers with which NumPy counts."""


def integer(number: Any, what: str, *operands: Base | Node) -> Size:
    """An integer or a size that a user gave for `what`; it may be negative."""
    if isinstance(number, Expression):
        return number
    if isinstance(number, Base):
        return value_of(what, number)
    try:
        found = index_of(number)
    except TypeError:
        reason = f"{brief(number)} for {what} is not an integer or a size"
        cure = "use an integer, a size of a tensor, or an integer input"
        raise type_refusal(reason, *operands, cure=cure) from None
    return within_any_size(found, what, *operands)


def within_any_size(number: int, what: str, *operands: Base | Node) -> int:
    """An integer, refused if no size is as large."""
    if abs(number) > LARGEST_SIZE:
        reason = f"{number} for {what} exceeds any size"
        raise refusal(reason, *operands, cure="use an integer of 64 bits")
    return number


def require_sign(step: Size, *operands: Node) -> None:
    """Refuse a step that may be negative or not, at the call."""
    if isinstance(step, Expression) and (lower_bound(step) or -1) < 0 and lower_bound(step) != 0:
        reason = f"the step {step} may be negative"
        cure = "use a step of 1 or more, such as gc.maximum(step, 1), and gc.flip to reverse"
        raise refusal(reason, *operands, cure=cure)


def index_of(number: Any) -> int:
    """An integer of Python or NumPy; a TypeError for anything else, True and False included."""
    if isinstance(number, (bool, np.bool_)):
        raise TypeError
    return operator.index(number)


def whole(number: Any, what: str, *operands: Base | Node, least: int | None = 0) -> int:
    """An integer that a user gave for `what`, not below `least`; None means no bound."""
    try:
        found = index_of(number)
    except TypeError:
        reason = f"{what}={brief(number)} is not an integer"
        late = isinstance(number, (Base, Expression))
        cure = "use an integer that is known when the graph is built" if late else "use an integer"
        raise type_refusal(reason, *operands, cure=cure) from None
    if least is not None and found < least:
        raise refusal(f"{what}={found} is too small", *operands, cure=f"use {least} or more")
    return found


@overload
def made_dtype(dtype: npt.DTypeLike | None, like: Operand | None, default: DType) -> DType: ...
@overload
def made_dtype(
    dtype: npt.DTypeLike | None, like: Operand | None, default: None = None
) -> DType | None: ...
def made_dtype(
    dtype: npt.DTypeLike | None, like: Operand | None, default: DType | None = None
) -> DType | None:
    """The dtype of new values: the one given, or that of `like`, or the default."""
    if like is None:
        dtype = default if dtype is None else dtype
        return None if dtype is None else dtype_of(dtype)
    x = single(like)
    if dtype is not None:
        reason = f"takes a dtype, {brief(dtype)}, or a tensor whose dtype it takes, not both"
        raise type_refusal(reason, x, cure="leave dtype= or like= out")
    found: DType = x.type.dtype
    return found


def check_word(
    what: str,
    given: object,
    known: Iterable[str],
    *operands: Base | Node,
    kind: type[GraphError] = GraphValueError,
) -> None:
    """Refuses a word that is not one of `known`, suggesting a similar one."""
    words = tuple(known)
    if not isinstance(given, str) or given not in words:
        near = get_close_matches(str(given), words, 1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        cure = f"{meant}{what} is {', '.join(map(repr, words[:-1]))} or {words[-1]!r}"
        raise refusal(f"{what}={brief(given)} is not known", *operands, cure=cure, kind=kind)


def mapping(
    given: object, more: Mapping[str, Any] | None, what: str, *operands: Base | Node
) -> dict[Any, Any]:
    """The pairs of a dict or of keywords; of a dict alone if `more` is None.

    Errors show `what` to write, where 'dim' stands for a dim of the first operand.
    """
    if given is None and more is not None:
        given = {}
    if isinstance(given, Mapping) and not (given and more):
        return dict(given) or dict(more or {})
    dims = [
        repr(dim) for x in operands[:1] for dim in (x.node if isinstance(x, Base) else x).type.dims
    ]
    arguments = what.replace("'dim'", dims[0] if dims else "'row'")
    cure = f"write {call_with(public_call(), arguments)}{'' if more is None else ', or keywords'}"
    reason = f"{brief(given)} is not a dict"
    if isinstance(given, Mapping):
        reason = f"takes a dict or keywords, not both: {brief(given)} and {', '.join(more or ())}"
    raise type_refusal(reason, *operands, cure=cure)
