"""Values that a program prints as it runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from graphcore.ir.name_text import escape, show_dim

Array = npt.NDArray[Any]


def show(label: str, dtype: str, dims: Sequence[str], x: Array) -> Array:
    """A copy of `x`, which is printed on lines of its own."""
    write(lines_to_print(label, dtype, dims, x))
    return x.copy()


def lines_to_print(label: str, dtype: str, dims: Sequence[str], x: Array) -> str:
    """The lines that say what `x` is, its dtype in words."""
    sizes = [f"{show_dim(dim)}={size}" for dim, size in zip(dims, x.shape, strict=True)]
    values = np.array2string(x, threshold=100, max_line_width=100)
    name = f"{escape(label)}: " if label else ""
    gap = "\n" if "\n" in values else " "
    return f"{name}{dtype}[{', '.join(sizes)}] ={gap}{values}\n"


def write(text: str) -> None:
    """Print lines, but not while a thread runs a program once more to measure it."""
    if not silent.on:
        sys.stdout.write(text)


class Silent(threading.local):
    """Whether programs that a thread runs print nothing."""

    on = False


silent = Silent()


@contextmanager
def silence() -> Iterator[None]:
    """A context in which programs print nothing."""
    before, silent.on = silent.on, True
    try:
        yield
    finally:
        silent.on = before
