"""Arguments in chunks of Dask: a call with one has lazy results, and does not convert it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphcore.ir import Array

from .argument_checks import Parameter


class InChunks(Exception):
    """An argument of a call is in chunks."""


def is_chunked(x: Any) -> bool:
    """Whether an argument is an array of xarray in chunks of Dask."""
    return hasattr(x, "dims") and isinstance(getattr(x, "chunks", None), tuple)


def require_in_memory(x: Any) -> None:
    """Raise InChunks if an argument is in chunks."""
    if is_chunked(x):
        raise InChunks


def loaded(args: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a call; those in chunks in memory."""
    return tuple([x.compute() if is_chunked(x) else x for x in args])


def convert_in_memory(param: Parameter, x: Any) -> Array:
    """An argument as an array of the declared dtype and dims, if it is in no chunks."""
    require_in_memory(x)
    return param.convert(x)
