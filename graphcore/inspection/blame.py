"""Which values nan and infinite results come from, element by element.

An element is blamed if a nan or infinite output depends on it by value. From the blamed elements of
a result we go back to the elements of its operands that they are computed from. Those that are nan
or infinite themselves are blamed too. Where several could be the cause, the op computes again with
finite numbers in place of all but one group of them. A group is all nan of one operand, or all its
infinities of one sign. It is blamed only if the result is still nan or infinite. So `where` blames
the operand that it chooses, and a maximum does not blame the -inf of a mask. If `where` chooses a
nan of the program itself, the nan and infinities of its condition are blamed too, as in
where(isnan(x), nan, y).

A blamed element whose operands are all finite is where the trouble begins: an `Onset`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from graphcore.ir import Array, Node, Op, Trait
from graphcore.ir.axes import How, Sources
from graphcore.ops import control, leaf, meaning, tensor
from graphcore.ops.control import LOOPS

from .interpreter import Frame, Interpreter, Run

Mask: TypeAlias = "npt.NDArray[np.bool_]"
Masks: TypeAlias = "dict[tuple[Node, int], Mask]"
Steps: TypeAlias = "tuple[tuple[Node, int], ...]"
"""The loops around a value, the outermost first, each with the position of its step."""


class Trouble(Enum):
    """How trouble begins."""

    MADE = "made"
    """All operands are finite, or it is an input that is nan."""
    TURNED = "turned"
    """An infinity becomes nan."""
    GIVEN = "given"
    """An infinite input, or a number of the program that is nan or infinite, as it was written."""


class Onset(NamedTuple):
    """The first element of a result at which trouble begins, and how many there are.

    `operands` are the values that the node had there, `reached` says whether an output that is nan
    or infinite depends on any of the elements.
    """

    kind: Trouble
    node: Node
    item: int
    at: tuple[int, ...]
    value: complex
    elements: int
    operands: tuple[Array, ...]
    steps: Steps
    frame: Frame
    reached: bool


class Blame:
    """The walk from nan and infinite outputs back to where they begin.

    The interpreter computes steps of loops again. `every` onset is found, or those alone that an
    output depends on.
    """

    def __init__(self, interpreter: Interpreter, every: bool) -> None:
        self._interpreter, self._every = interpreter, every
        self.onsets: dict[tuple[Trouble, Node, tuple[Node, ...]], Onset] = {}

    def program(self, frame: Frame) -> None:
        """Blame what the nan and infinite outputs of a program depend on."""
        masks: Masks = {}
        for node in frame.graph.outputs:
            (y,) = frame.of(node)
            if (bad := nonfinite(y)) is not None:
                add(masks, node, 0, bad)
        self._walk(frame, masks, ())
        for param in reversed(frame.graph.params):
            (x,) = frame.of(param)
            if (bad := nonfinite(x)) is not None:
                blamed = masks.get((param, 0), np.zeros(x.shape, bool))
                self._enter(Trouble.GIVEN, param, 0, bad & ~np.isnan(x), blamed, frame, ())
                self._enter(Trouble.MADE, param, 0, np.isnan(x), blamed, frame, ())

    def _walk(self, frame: Frame, masks: Masks, steps: Steps) -> None:
        """Blame back to the params of a graph, the last node first."""
        for node in reversed(self._interpreter.order(frame.graph)):
            found = frame.results[node]
            if isinstance(found, Run):
                self._through(node, found, frame, masks, steps)
                continue
            blamed = [masks.pop((node, i), None) for i in range(len(found))]
            if node.op is leaf.input_:
                if blamed[0] is not None:
                    masks[node, 0] = blamed[0]
            elif node.op is leaf.project:
                add(masks, node.inputs[0], node.attrs["index"], blamed[0])
            elif not node.inputs:
                if blamed[0] is not None:
                    self._enter(Trouble.GIVEN, node, 0, blamed[0], blamed[0], frame, steps)
            elif self._every or any(mask is not None for mask in blamed):
                for item, mask in enumerate(blamed):
                    self._result(node, item, mask, frame, masks, steps)

    def _through(self, node: Node, run: Run, frame: Frame, masks: Masks, steps: Steps) -> None:
        """Blame back through the steps of a loop, the last one first, or through a branch."""
        blamed = [masks.pop((node, i), None) for i in range(len(run.results))]
        if not self._every and all(mask is None for mask in blamed):
            return
        inputs = control.given_to_bodies(node, node.inputs)
        n = node.attrs.get("carries", len(blamed))
        m = node.attrs.get("sequences", 0)
        carried = blamed[:n]
        for number in reversed(range(len(run.given))):
            position = run.positions[number]
            results = [None if mask is None else mask[position] for mask in blamed[n:]]
            wanted = [*carried, *results]
            if not self._every and not any(mask is not None and mask.any() for mask in wanted):
                carried = [None] * n
                continue
            inner = self._interpreter.step(run, number)
            inside: Masks = {}
            for y, mask in zip(run.body.outputs, wanted, strict=True):
                add(inside, y, 0, mask)
            self._walk(inner, inside, (*steps, (node, position)) if node.op in LOOPS else steps)
            of_params = [inside.get((param, 0)) for param in run.body.params]
            if node.op in LOOPS:
                carried = of_params[:n]
                for k, mask in enumerate(of_params[n : n + m], n):
                    if mask is not None:
                        self._at_position(node, k, mask, position, frame, masks)
                rest = n + m
            else:
                rest = 0
            for x, mask in zip(inputs[rest:], of_params[rest:], strict=True):
                add(masks, x, 0, mask)
        if node.op in LOOPS:
            for x, mask in zip(inputs[:n], carried, strict=True):
                add(masks, x, 0, mask)

    def _at_position(
        self, node: Node, k: int, mask: Mask, position: int, frame: Frame, masks: Masks
    ) -> None:
        """Blame one element of a sequence, which lies along the first axis."""
        x = node.inputs[k]
        if (x, 0) not in masks:
            masks[x, 0] = np.zeros(frame.of(x)[0].shape, bool)
        masks[x, 0][position] |= mask

    def _result(
        self, node: Node, item: int, mask: Mask | None, frame: Frame, masks: Masks, steps: Steps
    ) -> None:
        """Blame the operands of one result of a node."""
        y = frame.of(node)[item]
        if y.dtype.kind == "b" and mask is not None:
            self._chosen_by(node, item, mask, frame, masks)
        bad = nonfinite(y)
        if bad is None:
            return
        blamed = np.zeros(y.shape, bool) if mask is None else mask & bad
        reading = Reading(node, item, frame)
        arrays, sources = reading.arrays, reading.owners
        wrong = [nonfinite(x) for x in arrays]
        if all(x is None for x in wrong):
            self._enter(Trouble.MADE, node, item, bad, blamed, frame, steps)
            return
        reads = reading.any(wrong)
        self._enter(Trouble.MADE, node, item, bad & ~reads, blamed, frame, steps)
        both = zip(wrong, arrays, strict=True)
        nans = reading.any([x if x is None else x & np.isnan(v) for x, v in both])
        self._enter(Trouble.TURNED, node, item, reads & np.isnan(y) & ~nans, blamed, frame, steps)
        causes = reading.causes(bad & reads, wrong)
        for k, (x, guilty) in enumerate(zip(sources, causes, strict=True)):
            if guilty is None:
                continue
            if is_literal(x):
                through = bad & reading.forward(k, guilty)
                self._enter(Trouble.GIVEN, node, item, through, blamed, frame, steps)
                for j, (other, array) in enumerate(zip(sources, arrays, strict=True)):
                    if array.dtype.kind == "b":
                        add(masks, other, 0, reading.back(j, through & blamed))
            elif blamed.any():
                add(masks, x, 0, guilty & reading.back(k, blamed))

    def _chosen_by(self, node: Node, item: int, mask: Mask, frame: Frame, masks: Masks) -> None:
        """Blame what a condition is computed from that chose a nan of the program, as isnan(x)."""
        reading = Reading(node, item, frame)
        for k, (x, array) in enumerate(zip(reading.owners, reading.arrays, strict=True)):
            bad = nonfinite(array)
            if bad is not None or array.dtype.kind == "b":
                read = reading.back(k, mask)
                add(masks, x, 0, read if bad is None else read & bad)

    def _enter(
        self,
        kind: Trouble,
        node: Node,
        item: int,
        begins: Mask,
        blamed: Mask,
        frame: Frame,
        steps: Steps,
    ) -> None:
        """Enter an onset: the steps of loops come last first, so that earlier ones replace it."""
        reached = begins & blamed
        shown = reached if reached.any() else begins if self._every else None
        if shown is None or not shown.any():
            return
        key = (kind, node, tuple(loop for loop, _ in steps))
        before = self.onsets.pop(key, None)
        count = int(shown.sum()) + (before.elements if before else 0)
        if before is not None and before.reached and not reached.any():
            self.onsets[key] = before._replace(elements=count)
            return
        at = first(shown)
        value = complex(frame.of(node)[item][at])
        given = tuple(array for x in node.inputs for array in frame.of(x))
        self.onsets[key] = Onset(
            kind, node, item, at, value, count, given, steps, frame, bool(reached.any())
        )


class Reading:
    """Which elements of the operands of a node each element of a result is computed from."""

    def __init__(self, node: Node, item: int, frame: Frame) -> None:
        self.node, self.item, self.sizes = node, item, frame.sizes
        self.y = frame.of(node)[item]
        values = [(x, array) for x in node.inputs for array in frame.of(x)]
        self.owners = [x for x, _ in values]
        """The operand that each of `arrays` is a value of."""
        self.arrays = [array for _, array in values]
        self.sources = node.op.axes.sources(node)[item]
        self._tags: list[Any] | None = None

    def any(self, wrong: Sequence[Mask | None]) -> Mask:
        """The elements that read at least one of these elements of operands."""
        found = np.zeros(self.y.shape, bool)
        for k, mask in enumerate(wrong):
            if mask is not None and mask.any():
                found |= self.forward(k, mask)
        return found

    def forward(self, k: int, mask: Mask) -> Mask:
        """The elements of the result that read any of these elements of operand `k`."""
        op = self.node.op
        if op in MOVED:
            tags, first = self.tags()
            flat = np.zeros(first[-1], bool)
            flat[first[k] : first[k + 1]] = mask.reshape(-1)
            return flat[tags]
        if op in RUNNING:
            return np.logical_or.accumulate(mask, self.node.attrs["axis"])
        if op in RECEIVING and k == RECEIVING[op]:
            found = np.zeros(self.y.shape, bool)
            np.logical_or.at(self.in_front(found), self.positions(), mask)
            return found
        return forward(mask, self.sources[k], self.y.shape)

    def back(self, k: int, mask: Mask) -> Mask:
        """The elements of operand `k` that any of these elements of the result read."""
        op, x = self.node.op, self.arrays[k]
        if op in MOVED:
            tags, first = self.tags()
            flat = np.zeros(first[-1], bool)
            flat[tags[mask]] = True
            return flat[first[k] : first[k + 1]].reshape(x.shape)
        if op in RUNNING:
            axis = self.node.attrs["axis"]
            return np.flip(np.logical_or.accumulate(np.flip(mask, axis), axis), axis)
        if op in RECEIVING and k == RECEIVING[op]:
            return self.in_front(mask)[self.positions()]
        return back(mask, self.sources[k], x.shape)

    def tags(self) -> tuple[npt.NDArray[np.int64], list[int]]:
        """Which element of the operands each element of the result is; element 0 is none.

        The op computes with the numbers of elements in place of their values.
        """
        if self._tags is None:
            count = MOVED[self.node.op] or len(self.arrays)
            first, numbers = [1], []
            for x in self.arrays:
                first.append(first[-1] + x.size)
            for k, x in enumerate(self.arrays):
                moved = k < count
                numbers.append(np.arange(first[k], first[k + 1]).reshape(x.shape) if moved else x)
            (tags,) = meaning.compute(self.node, numbers, self.sizes)
            self._tags = [tags, first]
        tags, first = self._tags
        return tags, first

    def positions(self) -> tuple[Array, ...]:
        """The positions at which a result receives updates."""
        return tuple(self.arrays[RECEIVING[self.node.op] + 1 :])

    def in_front(self, mask: Mask) -> Mask:
        """A view of a mask of the result, the axes of the positions first."""
        axes = self.node.attrs["axes"]
        return np.moveaxis(mask, axes, range(len(axes)))

    def causes(self, bad: Mask, wrong: Sequence[Mask | None]) -> list[Mask | None]:
        """For each operand the elements that make elements of the result nan or infinite."""
        groups = [
            (k, group)
            for k, mask in enumerate(wrong)
            if mask is not None
            for group in kinds(self.arrays[k])
            if (group & self.back(k, bad)).any()
        ]
        found: list[Mask | None] = [None] * len(wrong)
        certain = len(groups) == 1 or self.node.op in MOVED or self.node.op.dialect == "linalg"
        explained = np.zeros(bad.shape, bool)
        for k, group in groups:
            result = bad if certain else bad & self.alone(k, group, wrong)
            explained |= result & self.forward(k, group)
            guilty = group & self.back(k, result)
            found[k] = guilty if (before := found[k]) is None else before | guilty
        if (rest := bad & ~explained).any():  # it takes several of them together
            for k, group in groups:
                before = found[k]
                assert before is not None
                found[k] = before | (group & self.back(k, rest))
        return found

    def alone(self, k: int, group: Mask, wrong: Sequence[Mask | None]) -> Mask:
        """Where the result is nan or infinite if a plain number replaces all but one group."""
        changed = []
        for other, (x, mask) in enumerate(zip(self.arrays, wrong, strict=True)):
            lost = mask if other != k or mask is None else mask & ~group
            if lost is not None and lost.any():
                x = x.copy()
                x[lost] = 0.5
            changed.append(x)
        bad = nonfinite(meaning.compute(self.node, changed, self.sizes)[self.item])
        return np.zeros(self.y.shape, bool) if bad is None else bad


def forward(mask: Mask, sources: Sources, shape: Sequence[int]) -> Mask:
    """A mask of an operand as one of the result, by the sources of the axes of the result."""
    return spread(mask, {axis: own for own, axis in pairs(sources).items()}, shape)


def back(mask: Mask, sources: Sources, shape: Sequence[int]) -> Mask:
    """A mask of the result as one of an operand."""
    return spread(mask, pairs(sources), shape)


def pairs(sources: Sources) -> dict[int, int]:
    """For axes of an operand the axis of the result that has the same elements, one by one."""
    return {
        source.axes[0]: axis
        for axis, source in enumerate(sources)
        if source is not None and source.how is How.EACH
    }


def spread(mask: Mask, axis_of: Mapping[int, int], shape: Sequence[int]) -> Mask:
    """A mask in another shape, whose axes are those of the mask, or have all or no elements."""
    gone = tuple(axis for axis in range(mask.ndim) if axis not in axis_of.values())
    reduced = np.asarray(mask.any(gone), bool)
    order = sorted(axis_of.values())
    transposed = reduced.transpose([order.index(axis_of[axis]) for axis in sorted(axis_of)])
    index = tuple(slice(None) if axis in axis_of else None for axis in range(len(shape)))
    return np.broadcast_to(transposed[index], shape)


def kinds(x: Array) -> list[Mask]:
    """The elements that are nan, those that are infinite, and, of real numbers, by sign."""
    nan = np.isnan(x)
    if x.dtype.kind == "c":
        return [nan, np.isinf(x) & ~nan]
    return [nan, np.isposinf(x), np.isneginf(x)]


def nonfinite(x: Array) -> Mask | None:
    """Where an array is nan or infinite; None where it nowhere is."""
    if x.dtype.kind not in "fc":
        return None
    finite = np.isfinite(x)
    return None if finite.all() else ~finite


def first(mask: Mask) -> tuple[int, ...]:
    """The first place of a mask."""
    return tuple(int(i) for i in np.unravel_index(np.argmax(mask), mask.shape))


def add(masks: Masks, node: Node, item: int, mask: Mask | None) -> None:
    """Blame more elements of a result."""
    if mask is not None and mask.any():
        before = masks.get((node, item))
        masks[node, item] = mask.copy() if before is None else before | mask


def is_literal(node: Node) -> bool:
    """Whether a value is written in the program."""
    while node.op is tensor.expand or node.op is tensor.reshape:
        (node,) = node.inputs
    return Trait.KNOWN in node.op.traits


MOVED: dict[Op, int] = {
    tensor.transpose: 1,
    tensor.reshape: 1,
    tensor.pack: 1,
    tensor.slice_: 1,
    tensor.embed: 1,
    tensor.windows: 1,
    tensor.expand: 1,
    tensor.gather: 1,
    tensor.concat: 0,
    tensor.overwrite: 2,
    tensor.put: 2,
}
"""Ops each of whose elements is one of an operand, and how many operands it may be of; 0 is all."""

RUNNING = frozenset(
    {
        *(tensor.cumsum, tensor.cumprod, tensor.cummax, tensor.cummin),
        *(tensor.logcumsumexp, tensor.recurrence),
    }
)
"""Ops each of whose elements is computed from the elements before it."""

RECEIVING: dict[Op, int] = {
    tensor.scatter: 0,
    tensor.scatter_prod: 0,
    tensor.scatter_add: 1,
    tensor.scatter_max: 1,
    tensor.scatter_min: 1,
}
"""Ops that receive updates at positions, and the place of the updates among their operands."""
