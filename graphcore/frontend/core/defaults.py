"""The dtype of new tensors for which none is given."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy.typing as npt

from graphcore.ir.help_text import parameters
from graphcore.ir.provenance import setting

from .arguments import dtype_of
from .base import type_refusal
from .preferred_dtype import thread_state

__all__ = ["default_dtype"]


@parameters(dtype='A float, such as "float32".')
def default_dtype(dtype: npt.DTypeLike) -> AbstractContextManager[None]:
    """In the block of `with`, inputs and new tensors for which no dtype is given have this one.

    So do Python's floats and lists of them, as in `full`, `constant` and `linspace`, if no tensor
    or array is among them. Complex numbers have the dtype of this precision. The setting belongs to
    the thread that enters the block. Without it the dtype is float64. Tensors, and arrays and
    numbers of NumPy, keep their dtype, and what integers are divided into is float64, as in NumPy.

    GraphError if it is not the dtype of a float.

    >>> with gc.default_dtype("float32"):
    ...     print(gc.tensor("x", {"row": None}) * gc.linspace(0, 1, 3, dim="row"))
    <Tensor: f32[row=3]>
    """
    wanted = dtype_of(dtype)
    if wanted.kind != "f":
        cure = "give a float, such as 'float32'; other dtypes are given to each tensor"
        raise type_refusal(f"{wanted} is not a float", cure=cure)
    return setting(thread_state, dtype=wanted)
