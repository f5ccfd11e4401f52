"""The dtype of floats for which none is given, in this thread."""

from __future__ import annotations

import threading

from graphcore.ir import DType
from graphcore.ir.dtypes import FLOAT, complex_for


class State(threading.local):
    """The default of this thread."""

    dtype: DType = FLOAT


thread_state = State()


def default() -> DType:
    """The dtype of new tensors now."""
    return thread_state.dtype


def preferred_dtype(dtype: DType) -> DType:
    """The dtype that numbers of Python have now, where NumPy gives them this one."""
    if thread_state.dtype == FLOAT or dtype.kind not in "fc":
        return dtype
    return thread_state.dtype if dtype.kind == "f" else complex_for(thread_state.dtype)


def of_numbers(values: object, dtype: DType) -> DType:
    """The dtype now of an array of some numbers, where NumPy gives it this one."""
    return preferred_dtype(dtype) if thread_state.dtype != FLOAT and are_plain(values) else dtype


def are_plain(values: object) -> bool:
    """Whether all numbers, in nested lists or alone, are Python's own."""
    if isinstance(values, list | tuple):
        return all(map(are_plain, values))
    return type(values) in (bool, int, float, complex)
