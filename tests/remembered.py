"""The tables in which the package remembers results that sizes and types decide."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType

from graphcore.ir.remembered import Remembered


def tables() -> Iterator[Remembered]:
    """Every table, those of functions as well."""
    for name, module in list(sys.modules.items()):
        for value in vars(module).values() if name.startswith("graphcore") else ():
            cells = isinstance(value, FunctionType) and value.__closure__
            for held in (value, *(cell.cell_contents for cell in cells or ())):
                if isinstance(held, Remembered):
                    yield held
