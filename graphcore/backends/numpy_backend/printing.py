"""Values that a program prints as it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphcore.ir.size_text import escaped, show_dim
from graphcore.ir.types import show_dtype

Array = npt.NDArray[Any]


def show(label: str, dims: Sequence[str], x: Array) -> Array:
    """A copy of `x`, which is printed on lines of its own."""
    sizes = [f"{show_dim(dim)}={size}" for dim, size in zip(dims, x.shape, strict=True)]
    values = np.array2string(x, threshold=100, max_line_width=100)
    name = f"{escaped(label)}: " if label else ""
    gap = "\n" if "\n" in values else " "
    sys.stdout.write(f"{name}{show_dtype(x.dtype)}[{', '.join(sizes)}] ={gap}{values}\n")
    return x.copy()
