"""Values known now, equal by dtype, shape and bytes: `0.0` is not `-0.0`, `1` is not `True`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import copysign, inf
from typing import Any

import numpy as np
import numpy.typing as npt


class Literal:
    """A read-only array that can be the attribute of an interned node; nan equals itself."""

    __slots__ = ("_array", "_key", "_largest", "dtype", "shape")

    _array: npt.NDArray[Any]

    def __init__(self, value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> None:
        array = np.array(value, dtype=dtype, order="C")
        array.flags.writeable = False
        self._array, self.dtype, self.shape = array, array.dtype, array.shape
        self._key: Any = (array.dtype, array.shape, array.tobytes())
        self._largest: float | None = None

    @property
    def array(self) -> npt.NDArray[Any]:
        """The values."""
        return self._array

    def item(self) -> Any:
        """The one value as a Python number."""
        return self.array.item()

    def is_(self, value: complex) -> bool:
        """Whether this is the scalar `value`, with its sign."""
        if self.shape:
            return False
        item = self.array.item()
        return bool(item == value and copysign(1, item.real) == copysign(1, value.real))

    @property
    def largest(self) -> float:
        """The largest magnitude of its values; infinite if one is infinite or nan."""
        if self._largest is None:
            a = self.array
            self._largest = float(np.abs(a).max(initial=0)) if np.isfinite(a).all() else inf
        return self._largest

    @property
    def distinct(self) -> bool:
        """Whether these are positions from the start, and no two of them the same."""
        a = self.array
        return bool(a.size == 0 or (a.min() >= 0 and len(np.unique(a)) == a.size))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Literal, (self.array,)

    def __repr__(self) -> str:
        if self.array.ndim == 0:
            return str(self.array)
        return np.array2string(self.array, threshold=6, edgeitems=2, precision=4, separator=", ")


class Computed(Literal):
    """An array that is computed when it is first asked for; it equals itself alone."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[], Any], dtype: Any, shape: tuple[int, ...]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self.dtype, self.shape, self._key = dtype, shape, object()

    @property
    def array(self) -> npt.NDArray[Any]:
        """The values; two threads that ask at once may both compute them, to the same bits."""
        if (compute := self._compute) is not None:
            made = Literal(compute(), self.dtype)
            self._array, self._compute = made.array, None
        return self._array

    @property
    def largest(self) -> float:
        """Unknown, as long as no one has asked for the values."""
        return inf

    @property
    def distinct(self) -> bool:
        """Unknown, as long as no one has asked for the values."""
        return False


@lru_cache(maxsize=1024)
def integer_literal(value: int, dtype: np.dtype[Any]) -> Literal:
    """An integer as a literal of a dtype, remembered: rules build the same few over and over."""
    return Literal(value, dtype)
