"""Values as short text that stays on its line, and colours."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

import numpy as np

from graphcore.ir import Literal, Op
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import setting
from graphcore.ir.types import show_dtype

DIM, BOLD, RED, GREEN = "\x1b[2m", "\x1b[1m", "\x1b[31m", "\x1b[32m"
RESET = "\x1b[0m"
COLOUR = re.compile(r"(\x1b\[\d+m)")
MOST_ITEMS = 12
LITERALS = frozenset({"True", "False", "nan", "inf"})


def paint(text: str, style: str, color: bool) -> str:
    """`text` in this style, if there is colour and anything to be seen."""
    return f"{style}{text}{RESET}" if color and text else text


def one_line(text: str, most: int = 60) -> str:
    """`text` on one line: cut, and with escapes for line breaks and invisible characters."""
    text = text[: most + 1]
    shown = text if text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


class Bounds(threading.local):
    """Whether this thread writes everything in full, as asked for."""

    whole = False


bounds = Bounds()


def in_full(whole: bool = True) -> AbstractContextManager[None]:
    """In this block nothing is left out of lists."""
    return setting(bounds, whole=whole)


def fold(
    lines: Sequence[str], limit: int | None, width: int | None = None, what: str = "lines"
) -> list[str]:
    """The first and last of more than `limit` lines, each cut at `width`; None cuts nothing."""
    if limit is not None and len(lines) > limit:
        first, last = limit - limit // 2, len(lines) - limit // 2
        more = f"... {last - first:,} {what} more ..."
        lines = [*lines[:first], more, *lines[last:]]
    return [line if width is None else clip(line, width) for line in lines]


def clip(line: str, width: int) -> str:
    """A line cut after so many characters; colours count as none, and end with it."""
    parts = COLOUR.split(line)  # text and colours in turn
    if sum(map(len, parts[::2])) <= width:
        return line
    left, kept = max(width - 1, 0), ""
    for at, part in enumerate(parts):
        kept += part if at % 2 else part[:left]
        left -= 0 if at % 2 else min(len(part), left)
    return f"{kept}…"


def align(rows: Sequence[Sequence[str]], numbers: range) -> list[str]:
    """Rows as lines, their columns side by side; the columns of `numbers` are aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{text:>{width}}" if at in numbers else f"{text:<{width}}"
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def few(items: Iterable[str], most: int = MOST_ITEMS) -> str:
    """The items between commas; of too many, the first and how many more."""
    every = list(items)
    if len(every) > most and not bounds.whole:
        every[most - 1 :] = [f"… {len(every) - most + 1:,} more"]
    return ", ".join(every)


def show_name(name: str) -> str:
    """An input's name, in quotes where it could be taken for something else."""
    shown = show_dim(name)
    return shown if name.isidentifier() and name not in LITERALS else f"'{shown}'"


def show_number(number: object) -> str:
    """A number as Python writes it, `1.0` as `1`: the dtype stands elsewhere."""
    return str(number).removesuffix(".0")


def show_literal(literal: Literal) -> str:
    """The value of a scalar; the first few values of an array in row-major order."""
    array = literal.array
    if array.ndim == 0:
        return show_number(array)
    exact = array.dtype.kind in "biu"
    values = [str(x) if exact else f"{x:.4g}" for x in array.reshape(-1)[:5]]
    return f"[{', '.join(values[:4])}{', …' if array.size > 4 else ''}]"


def show(value: object) -> str:
    """Any attribute as text, for ops that are in no table."""
    match value:
        case Literal():
            return show_literal(value)
        case np.dtype():
            return show_dtype(value)
        case tuple():
            return f"({few(map(show, value))})"
        case Op():
            return value.name
    return one_line(str(value))
