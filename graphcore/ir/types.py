"""Types of values, known before they are computed: dtype, shape and, for named tensors, dims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .interning import Interned
from .name_text import show_dim
from .remembered import remembered
from .size_text import show_unknown
from .sizes import Shape, Size, count, same, unknowns

DType = np.dtype[Any]


class TensorType:
    """A tensor; `dims` is None where the axes are known by position alone.

    Interned: equal types are one object.
    """

    __slots__ = ("__weakref__", "dims", "dtype", "shape")

    dtype: DType
    shape: Shape
    dims: tuple[str, ...] | None

    def __new__(
        cls, dtype: DType, shape: Shape = (), dims: tuple[str, ...] | None = None
    ) -> TensorType:
        """The one type of this dtype, shape and dims."""
        key = (dtype, shape, dims)
        if (known := _interned.get(key)) is not None:
            return known
        new = object.__new__(cls)
        new.dtype, new.shape, new.dims = key
        return _interned.add(key, new)

    @classmethod
    def of(cls, dtype: DType, sizes: Mapping[str, Size]) -> TensorType:
        """The type with dims of these sizes."""
        return cls(dtype, tuple(sizes.values()), tuple(sizes))

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorType, (self.dtype, self.shape, self.dims)

    @property
    def sizes(self) -> dict[str, Size]:
        """The size of each dim."""
        return dict(zip(self.dims or (), self.shape, strict=True))

    @property
    def unknowns(self) -> frozenset[str]:
        """The names of the unknown sizes."""
        return frozenset[str]().union(*map(unknowns, self.shape))

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self.shape)

    @property
    def count(self) -> Size:
        """How many values there are."""
        return count(self.shape)

    def plain(self) -> TensorType:
        """The same without names."""
        return TensorType(self.dtype, self.shape)

    def size(self, dim: str) -> Size:
        """The size of `dim`."""
        assert self.dims is not None
        return self.shape[self.dims.index(dim)]

    def __str__(self) -> str:
        return show_tensor(self, self.dims)


_interned: Interned[TensorType] = Interned()


class TupleType:
    """Several values at once; `project` picks one. Interned as `TensorType` is."""

    __slots__ = ("__weakref__", "items")
    __match_args__ = ("items",)

    items: tuple[TensorType, ...]
    dims: ClassVar[None] = None  # several values have no dims in common

    def __new__(cls, items: tuple[TensorType, ...]) -> TupleType:
        """The one type of these items."""
        if (known := _interned_tuples.get(items)) is not None:
            return known
        new = object.__new__(cls)
        new.items = items
        return _interned_tuples.add(items, new)

    def __reduce__(self) -> tuple[Any, ...]:
        return TupleType, (self.items,)

    @property
    def unknowns(self) -> frozenset[str]:
        """The names of the unknown sizes in all."""
        return frozenset[str]().union(*[item.unknowns for item in self.items])

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))})"


_interned_tuples: Interned[TupleType] = Interned()

Type = TensorType | TupleType

SHORT = {"b": "bool", "i": "i", "u": "u", "f": "f", "c": "c"}


def show_dtype(dtype: DType) -> str:
    """`f64`, `i32`, `bool`: the kind and its bits."""
    return "bool" if dtype.kind == "b" else f"{SHORT[dtype.kind]}{8 * dtype.itemsize}"


@remembered
def show_tensor(type: TensorType, labels: tuple[str | None, ...] | None) -> str:
    """`f64[batch, class=3]`: the type of a tensor, in words.

    Remembered, as type rules word a refusal before they know whether they refuse.
    """
    return spell_tensor(type, labels, str)


def spell_tensor(
    type: TensorType,
    labels: tuple[str | None, ...] | None,
    spell: Callable[[Size], str],
    places: Sequence[str | None] = (),
) -> str:
    """The same, sizes spelled by `spell`; an unknown named like its dim is not repeated.

    `places` are the axes of a mesh along which the axes lie: `f64[batch@data, class=3]`.
    """
    none = (None,) * len(type.shape)
    axes = zip(labels or none, map(spell, type.shape), places or none, strict=True)
    shown = [size if dim is None else show_axis(dim, size, place) for dim, size, place in axes]
    return f"{show_dtype(type.dtype)}[{', '.join(shown)}]"


def show_axis(dim: str, size: str, place: str | None = None) -> str:
    """`class=3`, or the dim alone where its size bears its name; `class@model=3` on a mesh."""
    shown = show_dim(dim) if place is None else f"{show_dim(dim)}@{show_dim(place)}"
    return shown if size == show_unknown(dim) else f"{shown}={size}"


def fits(a: Type, b: Type) -> bool:
    """Whether values of type `a` may stand for those of `b`: only undecided sizes may differ."""
    if a is b or a == b:
        return True
    if isinstance(a, TupleType) or isinstance(b, TupleType):
        return (
            isinstance(a, TupleType)
            and isinstance(b, TupleType)
            and len(a.items) == len(b.items)
            and all(map(fits, a.items, b.items))
        )
    return (
        a.dtype == b.dtype
        and a.dims == b.dims
        and len(a.shape) == len(b.shape)
        and all(same(m, n) is not False for m, n in zip(a.shape, b.shape, strict=True))
    )
