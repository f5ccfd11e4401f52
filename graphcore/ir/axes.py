"""Kinds of axes: how the axes of an op's operands become axes of its results.

Every op says its kind where it is declared. A kind answers, for each result and each operand, where
each axis of the result comes from. So printing, batching, layout and everything else that follows
axes asks the declaration and needs no table of ops of its own.

Kinds serve plain ops, whose axes are positions, and named ops, whose operands align by name: the
attrs that speak of axes hold positions in plain ops and dims in named ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from .node import Node
from .sizes import Size
from .types import TensorType, TupleType, Type


class How(Enum):
    """How the elements along an axis of a result depend on those along an axis of an operand."""

    EACH = "each"
    """A batch axis: element i is computed from element i alone, whatever the op's attrs say."""
    ALONG = "along"
    """The op works along the axis, but element i still stands for element i: a running sum."""
    MOVED = "moved"
    """The op works along the axis, and element i stands for another element: a slice, a sort."""
    WITHIN = "within"
    """The elements stand among others, which are zeros or come from another operand."""
    PART = "part"
    """One of several axes that are merged, or one axis split into several."""


class Source(NamedTuple):
    """Where an axis of a result comes from: axes of one operand, several only if merged."""

    axes: tuple[int, ...]
    how: How


Sources = tuple[Source | None, ...]
"""The source of each axis of a result in one operand; None where this operand has none."""


def values(type: Type) -> Sequence[TensorType]:
    """The types of one value, or of several."""
    return type.items if isinstance(type, TupleType) else (type,)


def operands(node: Node) -> list[TensorType]:
    """The types of a node's operands; an operand of several values counts as that many operands."""
    return [value for x in node.inputs for value in values(x.type)]


class AxisKind:
    """How axes of operands become axes of results; the base class knows no source."""

    def sources(self, node: Node) -> list[list[Sources]]:
        """For each result of `node` the sources of its axes in each of `operands(node)`."""
        xs = operands(node)
        return [
            [self._of(node, i, y, k, x) for k, x in enumerate(xs)]
            for i, y in enumerate(values(node.type))
        ]

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        """The sources of the axes of one result in one operand."""
        return (None,) * y.ndim

    def in_front(self, node: Node, size: Size) -> Mapping[str, Any]:
        """The attrs of a plain `node` whose operands all have a new first axis of `size`."""
        return node.attrs

    def with_dims(self, node: Node, more: Mapping[str, Size]) -> Mapping[str, Any]:
        """The attrs of a named `node` whose operands have more dims, which come first."""
        return node.attrs

    def permute(self, node: Node, perm: tuple[int, ...]) -> Mapping[str, Any] | None:
        """The attrs of a plain `node` whose operands all have their axes in the order `perm`.

        None where the axes of operands and results differ, so that one order cannot apply to all.
        """
        return None

    def without(self, node: Node, axes: Collection[int]) -> Mapping[str, Any]:
        """The attrs of a plain `node` whose operands all lack the batch `axes`."""
        return node.attrs

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, vars(self).values()))})"


def new_place(axis: int, gone: Collection[int]) -> int:
    """The position of an axis that is left where those in `gone` vanish."""
    return axis - sum(other < axis for other in gone)


def at(x: TensorType, attr: Any) -> set[int]:
    """The axes of `x` that the value of an attr names: a position, a dim, or several."""
    several = attr if isinstance(attr, tuple) else (attr,)
    if x.dims is None:
        return set(several)
    return {x.dims.index(dim) for dim in several if dim in x.dims}


def matching_axes(x: TensorType, y: TensorType) -> list[int | None]:
    """For each axis of `y` the axis of `x` with its name or, in plain types, its position."""
    if y.dims is None:
        return list(range(y.ndim))
    own = x.dims or ()
    return [own.index(dim) if dim in own else None for dim in y.dims]


def of_each(
    axes: Iterable[int | None], other: How = How.EACH, among: Collection[int | None] = ()
) -> Sources:
    """Sources with one axis each: batch axes, but `other` for the axes in `among`."""
    return tuple(
        None if axis is None else Source((axis,), other if axis in among else How.EACH)
        for axis in axes
    )


class Opaque(AxisKind):
    """No sources are known: the body of a loop decides, or there are no operands."""


class Pointwise(AxisKind):
    """All operands and results have the same axes, and elements are computed one by one."""

    def permute(self, node: Node, perm: tuple[int, ...]) -> Mapping[str, Any] | None:
        """The attrs as they are: none is about axes."""
        return node.attrs

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        return of_each(matching_axes(x, y))


class Same(Pointwise):
    """The operand itself; rules for pointwise ops do not look through it."""


class Seen(AxisKind):
    """The operand itself, whose axes stay in this order for those who look at it from outside."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        return of_each(matching_axes(x, y))


class ByAttr(AxisKind):
    """A kind with one attr that names the axes along which the op works.

    `word` is how people read it: `over row`, `along row`.
    """

    word = "along"

    def __init__(self, attr: str) -> None:
        self.attr = attr

    def move_axes(self, node: Node, place: Callable[[int], int]) -> Mapping[str, Any]:
        """The attrs, with other positions in place of those of the axes."""
        value = node.attrs[self.attr]
        new = tuple(sorted(map(place, value))) if isinstance(value, tuple) else place(value)
        return {**node.attrs, self.attr: new}

    def in_front(self, node: Node, size: Size) -> Mapping[str, Any]:
        """Every position is one higher."""
        return self.move_axes(node, lambda axis: axis + 1)


class Alike(ByAttr):
    """A kind whose operands all have the same axes."""

    def permute(self, node: Node, perm: tuple[int, ...]) -> Mapping[str, Any] | None:
        """The axes are where the order puts them."""
        return self.move_axes(node, perm.index)

    def without(self, node: Node, axes: Collection[int]) -> Mapping[str, Any]:
        """Every position is as much lower as axes before it are gone."""
        return self.move_axes(node, lambda axis: new_place(axis, axes))


class Reduces(Alike):
    """The axes vanish."""

    word = "over"

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        if y.dims is not None:
            return of_each(matching_axes(x, y))
        gone = at(x, node.attrs[self.attr])
        return of_each(axis for axis in range(x.ndim) if axis not in gone)


class Along(Alike):
    """The axes stay; along them elements are computed from several, or, if `moves`, moved."""

    def __init__(self, attr: str, moves: bool, word: str = "along") -> None:
        super().__init__(attr)
        self.moves, self.word = moves, word

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        how = How.MOVED if self.moves else How.ALONG
        return of_each(matching_axes(x, y), how, at(x, node.attrs[self.attr]))


class Inserts(ByAttr):
    """Operands are repeated along new axes; a named op lists all dims of its result."""

    def with_dims(self, node: Node, more: Mapping[str, Size]) -> Mapping[str, Any]:
        """The attrs list the new dims and their sizes first."""
        whole = {**more, **dict(zip(node.attrs["dims"], node.attrs["sizes"], strict=True))}
        return {"dims": tuple(whole), "sizes": tuple(whole.values())}

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        if y.dims is not None:
            return of_each(matching_axes(x, y))
        old, new = iter(range(x.ndim)), node.attrs[self.attr]
        return of_each(None if axis in new else next(old) for axis in range(y.ndim))


class Permutes(ByAttr):
    """The same axes in another order."""

    def with_dims(self, node: Node, more: Mapping[str, Size]) -> Mapping[str, Any]:
        """The attr lists the new dims first."""
        return {self.attr: (*more, *node.attrs[self.attr])}

    def in_front(self, node: Node, size: Size) -> Mapping[str, Any]:
        """The new axis stays the first."""
        return {self.attr: (0, *[axis + 1 for axis in node.attrs[self.attr]])}

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        return of_each(matching_axes(x, y) if y.dims is not None else node.attrs[self.attr])


class Renames(ByAttr):
    """The same axes under other names."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        return of_each(range(x.ndim))


class Relabels(ByAttr):
    """The first operand, whose axes that the attr names are labelled as those of the second."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        whole = of_each(matching_axes(x, y))
        named = at(y, node.attrs[self.attr]) if operand else ()
        return tuple(None if axis in named else source for axis, source in enumerate(whole))


class Reshapes(AxisKind):
    """Row-major, leading and trailing axes of equal sizes are the same axes; the rest is split."""

    def in_front(self, node: Node, size: Size) -> Mapping[str, Any]:
        """The new axis stays the first."""
        return {"shape": (size, *node.attrs["shape"])}

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        head = common(x.shape, y.shape)
        tail = common(x.shape[head:][::-1], y.shape[head:][::-1])
        middle = Source(tuple(range(head, x.ndim - tail)), How.PART)
        return (
            *of_each(range(head)),
            *(middle if middle.axes else None for _ in range(y.ndim - head - tail)),
            *of_each(range(x.ndim - tail, x.ndim)),
        )


def common(a: Sequence[object], b: Sequence[object]) -> int:
    """How many leading elements are equal."""
    differs = (i for i, (left, right) in enumerate(zip(a, b, strict=False)) if left != right)
    return next(differs, min(len(a), len(b)))


class Splits(AxisKind):
    """The dims of the attr `old` are merged or split into those of the attr `new`, row-major."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        made, names = at(y, node.attrs[self.new]), node.attrs[self.old]
        several = names if isinstance(names, tuple) else (names,)
        parts = Source(tuple((x.dims or ()).index(dim) for dim in several), How.PART)
        whole = of_each(matching_axes(x, y))
        return tuple(parts if axis in made else whole[axis] for axis in range(y.ndim))


class Ranges(AxisKind):
    """On each axis a range start, start + step, ...: of the operand, or of the result.

    The first operand gives the result's values (`slice`), or is put among them (`embed`), or has
    elements replaced by the second (`overwrite`). Named ops have ranges on some `dims` only.
    """

    def __init__(self, *hows: How) -> None:
        self.hows = hows

    def in_front(self, node: Node, size: Size) -> Mapping[str, Any]:
        """The range is the whole of the new axis."""
        first = {"starts": 0, "steps": 1, "sizes": size, "shape": size}
        return {name: (first[name], *value) for name, value in node.attrs.items()}

    def permute(self, node: Node, perm: tuple[int, ...]) -> Mapping[str, Any] | None:
        """Ranges in the order of their axes."""
        return {name: tuple(value[axis] for axis in perm) for name, value in node.attrs.items()}

    def without(self, node: Node, axes: Collection[int]) -> Mapping[str, Any]:
        """The ranges of the other axes."""
        rest = [axis for axis in range(node.type.ndim) if axis not in axes]
        return {name: tuple(value[axis] for axis in rest) for name, value in node.attrs.items()}

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        ranges = list(self.ranges(node))
        return of_each(matching_axes(x, y), self.hows[operand], at(x, tuple(ranges)))

    def ranges(self, node: Node) -> Iterator[Any]:
        """The axes, positions or dims, on which the range is not the whole axis."""
        part = node.inputs[-1].type
        axes = node.attrs.get("dims", range(part.ndim))
        for axis, start, step in zip(axes, node.attrs["starts"], node.attrs["steps"], strict=True):
            place = axis if part.dims is None else part.dims.index(axis)
            other = node.type.shape[axis if node.type.dims is None else node.type.dims.index(axis)]
            if start != 0 or step != 1 or part.shape[place] != other:
                yield axis


class Joins(Alike):
    """Operands one after the other along an axis."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        return of_each(matching_axes(x, y), How.MOVED, at(x, node.attrs[self.attr]))


class Contracts(AxisKind):
    """Letters identify axes; those that the result lacks are summed over."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        letters = node.attrs["operands"][operand]
        return of_each(
            letters.index(letter) if letter in letters else None for letter in node.attrs["result"]
        )


class Matrices(AxisKind):
    """The last axes by letters, `"r c, c k -> r k"`; all axes before them are batch.

    `batch` are letters whose elements are computed one by one as well. Letters that only results
    have are new axes. The first operand of a `transposed` op is read with its axes exchanged.
    """

    def __init__(self, letters: str, batch: str = "") -> None:
        given, made = (
            [tuple(part.split()) for part in side.split(",")] for side in letters.split("->")
        )
        self.given, self.made, self.batch = given, made, frozenset(batch.split())

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        own, made = self.given[operand], self.made[result]
        if operand == 0 and node.attrs.get("transposed"):
            own = own[::-1]
        before = x.ndim - len(own)
        last = [
            Source((before + own.index(i),), How.EACH if i in self.batch else How.MOVED)
            if i in own
            else None
            for i in made
        ]
        return (*of_each(range(before)), *last)


class NamedMatrices(AxisKind):
    """Dims of matrices are those that the attrs `dims` and `new` list; all others are batch."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        return of_each(matching_axes(x, y), How.MOVED, at(x, node.attrs["dims"]))


class Windows(ByAttr):
    """Windows along axes, with new axes for the elements of a window.

    The new axes come before the first of `axes` in plain ops, and last, by `names`, in named ones.
    """

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        if y.dims is not None:
            dims, names = node.attrs[self.attr], node.attrs["names"]
            whole = list(of_each(matching_axes(x, y), How.MOVED, at(x, dims)))
            for dim, name in zip(dims, names, strict=True):
                whole[y.dims.index(name)] = Source(tuple(at(x, dim)), How.PART)
            return tuple(whole)
        axes = node.attrs[self.attr]
        whole = list(of_each(range(x.ndim), How.MOVED, axes))
        return (
            *whole[: axes[0]],
            *(Source((axis,), How.PART) for axis in axes),
            *whole[axes[0] :],
        )


class Overlaps(ByAttr):
    """`Windows` undone: the axes of the windows' elements vanish."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        if y.dims is not None:
            return of_each(matching_axes(x, y), How.MOVED, at(x, node.attrs[self.attr]))
        axes = node.attrs[self.attr]
        first, wide = axes[0], len(axes)
        moved = {axis + wide for axis in axes}
        return of_each((*range(first), *range(first + wide, x.ndim)), How.MOVED, moved)


class Indexes(ByAttr):
    """Elements at positions: the axes of the positions replace those that are indexed.

    The first operand is indexed, the others are positions. In plain ops their axes come first.
    """

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        axes = node.attrs[self.attr]
        if y.dims is not None:  # positions may bear the name of the dim that they index
            return of_each(matching_axes(x, y), How.MOVED, at(x, axes))
        first = node.inputs[1].type.ndim
        if operand:
            return of_each((*range(first), *(None,) * (y.ndim - first)))
        rest = [axis for axis in range(x.ndim) if axis not in axes]
        return of_each((*(None,) * first, *rest))


class Receives(ByAttr):
    """Updates are placed at positions along axes of the first operand, or of an array of zeros.

    `base` is the number of operands before the updates: 1 or 0. Those after the updates are
    positions. In plain ops the axes of positions come first in the updates; in named ops the
    dims in the attr `over` vanish.
    """

    def __init__(self, attr: str, base: int) -> None:
        super().__init__(attr)
        self.base = base

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        axes = node.attrs[self.attr]
        if operand < self.base:
            return of_each(matching_axes(x, y), How.ALONG, at(x, axes))
        if y.dims is not None:
            over = at(x, node.attrs["over"])
            return of_each(None if axis in over else axis for axis in matching_axes(x, y))
        if operand > self.base:
            return (None,) * y.ndim
        rest = iter(range(node.inputs[-1].type.ndim, x.ndim))
        return of_each(None if axis in axes else next(rest) for axis in range(y.ndim))


class Searches(AxisKind):
    """Values looked for in rows, which are the last axis of the first operand, or its `dim`."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        if y.dims is None:
            rows = x.ndim if operand else x.ndim - 1
            return of_each((*range(rows), *(None,) * (y.ndim - rows)))
        gone = set() if operand else at(x, node.attrs["dim"])
        return of_each(None if axis in gone else axis for axis in matching_axes(x, y))


class Picks(AxisKind):
    """One of several values, or several as one."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        same = operand == node.attrs.get("index", result)
        return of_each(range(y.ndim)) if same else (None,) * y.ndim


class First(AxisKind):
    """The result is the first operand; the others are only needed before it."""

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        return of_each(range(y.ndim)) if operand == 0 else (None,) * y.ndim


class Derives(AxisKind):
    """Result i of a derivative has the axes of operand `first` + i.

    `first` is the name of the attr that counts the operands before these; without one it is 0.
    """

    def __init__(self, first: str = "") -> None:
        self.first = first

    def _of(self, node: Node, result: int, y: TensorType, operand: int, x: TensorType) -> Sources:
        before = node.attrs[self.first] if self.first else 0
        same = operand == before + result
        return of_each(range(y.ndim), How.ALONG, range(y.ndim)) if same else (None,) * y.ndim
