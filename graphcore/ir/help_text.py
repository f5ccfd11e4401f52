"""What help() shows: annotations as they are written, and named tuples by their fields alone."""

from __future__ import annotations

from typing import Any, ForwardRef, TypeVar, cast

K = TypeVar("K", bound=type)


class Written(str):
    """An annotation as it is written: signatures show it without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def as_written(annotations: dict[str, Any]) -> dict[str, Any]:
    """Annotations of which those that are text are shown as they are written."""
    texts = {
        name: said.__forward_arg__ if isinstance(said, ForwardRef) else said
        for name, said in annotations.items()
    }
    return {name: Written(x) if isinstance(x, str) else x for name, x in texts.items()}


class Fields(type):
    """The class of a named tuple: its dir() has what it defines by itself, as that of an Enum."""

    def __dir__(cls) -> list[str]:
        return [name for name in vars(cls) if not name.startswith("_")]


def fields(kind: K) -> K:
    """A named tuple made again with a short help().

    >>> from typing import NamedTuple
    >>> from graphcore.ir.help_text import fields
    >>> @fields
    ... class Pair(NamedTuple):
    ...     first: int
    ...     second: int
    >>> dir(Pair), Pair(1, 2)
    (['first', 'second'], Pair(first=1, second=2))
    """
    maker: Any = kind.__new__
    maker.__annotations__ = as_written(maker.__annotations__)
    return cast(K, Fields(kind.__name__, kind.__bases__, dict(vars(kind))))
