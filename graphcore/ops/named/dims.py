"""Checks of dims that the type rules of named ops share."""

from __future__ import annotations

from graphcore.ir import DType, TensorType
from graphcore.ir.errors import Refusal, require
from graphcore.ir.node import need
from graphcore.ir.node import union as union

Dims = tuple[str, ...]


def has(x: TensorType, dims: Dims) -> None:
    """Refuse dims that `x` lacks, or that are named twice."""
    known = x.dims or ()
    for dim in dims:
        if dim not in known:  # only then is a close match looked for, which takes long
            raise Refusal(f"there is no dim {dim!r} in {x}", close_match(dim, known))
    require(len(set(dims)) == len(dims), f"dims {dims} name a dim twice", "name each dim once")


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
    return TensorType.of(dtype, kept)


def not_empty(x: TensorType, dims: Dims) -> None:
    """Refuse, or have the call refuse, dims without places: there is no value to choose."""
    for dim in dims:
        size = x.size(dim) if dim in (x.dims or ()) else 1
        require(size != 0, f"dim {dim!r} of {x} is empty", "it needs at least one element")
        if not isinstance(size, int):
            need(dim, 0, "<", size)


def new_dims(x: TensorType, names: Dims) -> None:
    """Refuse names that `x` has already."""
    for name in names:
        require(name not in (x.dims or ()), f"{x} has a dim {name!r} already", "choose a new name")


def distinct(names: Dims) -> None:
    """Refuse new dims if two have the same name."""
    require(len(set(names)) == len(names), f"names {names} repeat one", "name each dim once")
