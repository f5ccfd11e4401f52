"""The dtype rules: NumPy 2 promotion (NEP 50), where Python numbers are weak."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import GraphTypeError
from .types import DType

BOOL, INT, FLOAT = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float64)
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)

Array: TypeAlias = npt.NDArray[Any]

DtypeRule = Callable[[DType], DType]
"""The dtype of a result, given that of the operands."""


@lru_cache(maxsize=1024)
def as_dtype(dtype: npt.DTypeLike) -> DType:
    """A dtype graphcore computes with: bool, an integer, or floats of up to 64 bits a part."""
    try:
        found: DType = np.dtype(np.dtype(dtype).type)
    except TypeError as error:
        raise GraphTypeError(f"{dtype!r} is not a dtype") from error
    if found.kind not in "biufc" or found.itemsize > (16 if found.kind == "c" else 8):
        raise GraphTypeError(f"dtype {found} is not supported")
    return found


@lru_cache(maxsize=4096)
def loop_dtypes(ufunc: np.ufunc, *dtypes: DType) -> tuple[DType, ...]:
    """The dtypes in which `ufunc` computes: those of its operands, then that of its result.

    Raises TypeError where NumPy has no such loop.
    """
    resolved = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout))
    return tuple(np.dtype(dtype) for dtype in resolved)


@lru_cache(maxsize=1024)
def float_for(dtype: DType) -> DType:
    """The dtype of a mean or a special function: floats keep theirs, the rest become float64."""
    return dtype if dtype.kind in "fc" else FLOAT


def real_of(dtype: DType) -> DType:
    """The dtype of the real part."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


@lru_cache(maxsize=1024)
def complex_for(dtype: DType) -> DType:
    """The complex dtype in which values of `dtype` are exact, or the widest one."""
    return np.result_type(float_for(dtype), np.complex64)


def sum_of(dtype: DType) -> DType:
    """The dtype of a sum or product: small integers and bool are widened as NumPy does."""
    return np.add.reduce(np.zeros(1, dtype)).dtype if dtype.kind in "biu" else dtype


def promote(*operands: DType | complex) -> DType:
    """The common dtype of operands; Python numbers are weak."""
    return np.result_type(*operands)


def differentiable(dtype: Any) -> bool:
    """Whether values of this dtype carry derivatives."""
    return bool(dtype.kind in "fc")
