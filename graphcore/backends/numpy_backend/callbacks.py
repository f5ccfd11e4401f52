"""Functions that users give, called for each element of a batch, their results checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from graphcore.backends.argument_checks import RANK
from graphcore.ir import Array
from graphcore.ir.interrupts import is_interrupt
from graphcore.ir.types import TensorType, show_tensor
from graphcore.ops.outside import Function


class CallbackError(Exception):
    """A user's function has failed, or its result is not as declared; `element` says for which."""

    def __init__(self, reason: str, cure: str, element: tuple[int, ...]) -> None:
        super().__init__(reason)
        self.cure, self.element = cure, element


class Caller:
    """Calls a user's function once for each element of the batch; `attrs` are those of the op."""

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        self.function: Function = attrs["function"]
        self.batch, self.masked = len(attrs["batch"]), attrs["masked"]
        self.dims, self.dtypes = attrs["made"], attrs["dtypes"]

    def __call__(self, shapes: Sequence[tuple[int, ...]], *operands: Array) -> list[Array]:
        """The results, whose shapes include the batch."""
        found = [np.zeros(*of) for of in zip(shapes, self.dtypes, strict=True)]
        lead = operands[0].shape[: self.batch] if operands else ()
        wanted = operands[-1] if self.masked else np.ones(lead, np.bool_)
        given = operands[:-1] if self.masked else operands
        for at in np.ndindex(lead):
            if wanted[at]:
                arrays = [np.array(x[at], order="C") for x in given]
                values = self.results(arrays, at)
                for y, dims, value in zip(found, self.dims, values, strict=True):
                    y[at] = self.check_value(value, dims, y[at], at)
        return found

    def results(self, arrays: list[Array], at: tuple[int, ...]) -> list[tuple[str, Any]]:
        """The values that the function returns, and their paths."""
        name = repr(self.function)
        try:
            result = self.function(arrays)
        except Exception as error:
            if is_interrupt(error):
                raise
            reason = f"{name} raised {type(error).__name__}: {' '.join(str(error).split())[:500]}"
            cure = "look at the values that reach it, and at the error above"
            raise CallbackError(reason, cure, at) from error
        try:
            values = self.function.parts(result)
        except Exception as error:
            raise CallbackError(f"{name}: {error}", "return arrays", at) from error
        if (given := tuple(path for path, _ in values)) != self.function.paths:
            wanted = join_paths(self.function.paths)
            reason = f"{name} returned {join_paths(given)}, declared are {wanted}"
            raise CallbackError(reason, "return the structure of result=", at)
        return values

    def check_value(
        self, named: tuple[str, Any], dims: tuple[str, ...], like: Array, at: tuple[int, ...]
    ) -> Array:
        """One value as an array of its declared dims, sizes and dtype."""
        path, value = named
        said = f"{self.function!r} returned {path}"
        declared = show_tensor(TensorType(like.dtype, like.shape), dims)
        if np.ma.is_masked(value):
            raise CallbackError(f"{said} with masked values", "fill them, value.filled(0)", at)
        try:
            if hasattr(value, "dims") and sorted(value.dims, key=str) == sorted(dims):
                value = value.transpose(*dims)  # a DataArray, whose dims have any order
            array = np.asarray(value)
        except Exception as error:
            if is_interrupt(error):
                raise
            raise CallbackError(
                f"{said}, which is not an array", f"return {declared}", at
            ) from error
        have = array.dtype
        if have.kind not in RANK:
            reason = f"{said}: {type(value).__name__} of dtype {have}, declared is {declared}"
            raise CallbackError(reason, "return an array of numbers", at)
        if array.shape != like.shape:
            reason = f"{said} of shape {array.shape}, declared is {declared}"
            raise CallbackError(reason, "declare the dims and sizes of the result by result=", at)
        fits = np.can_cast(have, like.dtype)
        if not hasattr(value, "dtype") and RANK[have.kind] <= RANK[like.dtype.kind]:
            with suppress(OverflowError):  # of Python's integers
                array, fits = np.asarray(value, like.dtype), True
        if not fits:
            reason = f"{said} of dtype {have}, declared is {declared}"
            cure = f"return result.astype({str(like.dtype)!r}), or declare its dtype by result="
            raise CallbackError(reason, cure, at)
        return array


def join_paths(paths: Sequence[str]) -> str:
    """Paths of values, the first of many."""
    shown = ", ".join(paths[:10]) or "nothing"
    return f"{shown}, …" if len(paths) > 10 else shown
