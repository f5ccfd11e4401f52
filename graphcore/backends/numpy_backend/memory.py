"""The memory that a call computes in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LINE = 64
"""Bytes of a cache line: NumPy's loops take up to a tenth longer where arrays start within one."""


def on_line(count: int, dtype: np.dtype[Any]) -> Array:
    """New memory for so many values, which starts with a cache line."""
    size = count * dtype.itemsize
    try:
        memory = np.empty(size + LINE, np.uint8)
    except (MemoryError, ValueError):
        return np.empty(count, dtype)  # its error speaks of these values
    start = -memory.ctypes.data % LINE
    return memory[start : start + size].view(dtype)
