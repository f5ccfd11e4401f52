"""The dtype of new tensors for which none is given."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import numpy.typing as npt

from graphcore.ir.errors import GraphTypeError
from graphcore.ir.types import DType

from .arguments import dtype_of
from .base import refusal

__all__ = ["default_dtype"]


class State(threading.local):
    """The default of this thread."""

    dtype: DType = np.dtype(np.float64)


state = State()


def default_dtype(dtype: npt.DTypeLike) -> AbstractContextManager[None]:
    """In the block of `with`, inputs and new tensors for which no dtype is given have this one.

    It is that of `tensor`, `zeros`, `ones`, `eye`, `tri`, `one_hot` and of windows such as
    `signal.hann`, in the thread that enters the block; else float64. Values that have a dtype keep
    it, and Python numbers take that of the tensors they meet.

    Parameters
    ----------
    dtype
        A float, such as "float32".

    Raises
    ------
    GraphError
        If it is no dtype, or not that of a float.

    Examples
    --------
    >>> import graphcore as gc
    >>> with gc.default_dtype("float32"):
    ...     print(gc.tensor("x", {"row": None}) + gc.zeros({"row": 3}))
    <Tensor: f32[row=3]>
    """
    wanted = dtype_of("default_dtype", dtype)
    if wanted.kind != "f":
        cure = "give a float, such as 'float32'; other dtypes are given to each tensor"
        raise refusal("default_dtype", f"{wanted} is not a float", cure=cure, kind=GraphTypeError)
    return within(wanted)


@contextmanager
def within(dtype: DType) -> Iterator[None]:
    """A block in which new tensors have this dtype."""
    before, state.dtype = state.dtype, dtype
    try:
        yield
    finally:
        state.dtype = before


def default() -> DType:
    """The dtype of new tensors now."""
    return state.dtype
