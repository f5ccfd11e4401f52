"""What a loop carries from step to step: it keeps its structure, dims and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np

from graphcore.frontend.core.base import Tensor, refusal, wrap
from graphcore.frontend.core.tracing import placeholder
from graphcore.frontend.core.trees import flatten, paths
from graphcore.frontend.create.inputs import full
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.shape.dims import broadcast_to, transpose
from graphcore.ir.dtypes import BOOL, FLOAT, INT
from graphcore.ir.errors import GraphError, GraphTypeError
from graphcore.ir.node import Node, toposort
from graphcore.ir.types import DType, TensorType, fits

Tree = Any
Made = TypeVar("Made")
HALF = np.dtype(np.float16)
LEAST = (BOOL, HALF)
"""What Python's integers and its other numbers are tried as, so that any number prevails."""
TRIES = 4
"""How often a start value that is a number may take another type before the body is refused."""


def is_weak(leaf: object) -> bool:
    """Whether a leaf is a Python number."""
    return isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic)


class Carry:
    """The start values of a loop, and the params that stand for them inside.

    Python numbers are weak: they take the dtype and dims of what the body makes of them.
    """

    def __init__(self, function: str, init: Tree) -> None:
        self.function = function
        self.tensors, self.rebuild = flatten(init, "init")
        leaves = paths(init, "carry")
        self.labels = [label for label, _ in leaves]
        self.weak = {i: leaf for i, (_, leaf) in enumerate(leaves) if is_weak(leaf)}
        self.types: list[TensorType] = [x.node.type for x in self.tensors]
        self.params: list[Node] = []
        for i, leaf in self.weak.items():
            self.types[i] = TensorType(LEAST[not isinstance(leaf, int)], (), ())

    @property
    def start(self) -> list[Node]:
        """The start values."""
        return [
            full(type.sizes, self.weak[i], type.dtype).node
            if i in self.weak
            else broadcast_to(x.node, type.dims or (), type.shape).node
            for i, (x, type) in enumerate(zip(self.tensors, self.types, strict=True))
        ]

    def state(self) -> Tree:
        """New params for the start values, in the structure of the carry."""
        self.params = list(map(placeholder, self.labels, self.types))
        return self.rebuild(map(wrap, self.params))

    def settle(self, step: Callable[[Tree], tuple[Tree, Made]]) -> tuple[list[Node], Made]:
        """The carry after one step, and what else `step` returns, once weak types are settled."""
        for _ in range(TRIES * (1 + len(self.types))):
            try:
                made, extra = step(self.state())
                new = self.matched(made)
            except GraphError:  # the fault may lie in what weak values are tried as
                if self.decide():
                    continue
                raise
            before = list(self.types)
            self.types = [self.joined(i, x.type) for i, x in enumerate(new)]
            if all(map(fits, before, self.types)) and not self.decide():
                return new, extra
        columns = [dict(zip(self.labels, types, strict=True)) for types in (before, self.types)]
        same = {x for x in self.labels if columns[0][x] == columns[1][x]}
        table = side_by_side(dict(zip(("before", "after a step"), columns, strict=True)), same)
        reason = f"the body makes another type of what it carries in each step (*)\n{table}"
        cure = "start with a tensor of the dims and the dtype that the carry keeps"
        raise refusal(self.function, reason, cure=cure, kind=GraphTypeError)

    def joined(self, i: int, new: TensorType) -> TensorType:
        """The type of a start value that a step makes a value of type `new` of."""
        if i not in self.weak or fits(self.types[i], new):
            return self.types[i]
        both = np.result_type(new.dtype, self.types[i].dtype)
        dtype = both if both in LEAST else np.result_type(both, self.weak[i])
        return TensorType(dtype, new.shape, new.dims)

    def decide(self) -> bool:
        """Give weak values that have met no other the dtypes of Python's numbers: some, if any.

        Integers come first: they may be positions, for which no bool can stand.
        """
        own = {i: FLOAT if self.types[i].dtype == HALF else self.types[i].dtype for i in self.weak}
        decided = {i: np.result_type(dtype, self.weak[i]) for i, dtype in own.items()}
        open = {i: dtype for i, dtype in decided.items() if dtype != self.types[i].dtype}
        integers = {i: dtype for i, dtype in open.items() if dtype == INT}
        for i, dtype in (integers or open).items():
            self.types[i] = TensorType(dtype, self.types[i].shape, self.types[i].dims)
        return bool(open)

    def lacking(self, going: Tensor) -> dict[str, Any]:
        """The sizes of the dims of a predicate that not every start value has."""
        return {
            dim: size
            for dim, size in going.sizes.items()
            if not all(dim in type.sizes for type in self.types)
        }

    def widen(self, sizes: dict[str, Any]) -> None:
        """Repeat every start value along the dims it lacks, which come last."""
        for i, own in enumerate(self.types):
            both = own.sizes | {dim: size for dim, size in sizes.items() if dim not in own.sizes}
            self.types[i] = TensorType(own.dtype, tuple(both.values()), tuple(both))

    def select(self, going: Tensor, made: Tree, state: Tree) -> Tree:
        """The new carry where the predicate holds, else the old one."""
        new, rebuild = flatten(made, "carry")
        old, _ = flatten(state, "carry")
        if len(new) != len(old):
            return made  # refused by `matched`
        return rebuild([where(going, x, y) for x, y in zip(new, old, strict=True)])

    def matched(self, made: Tree) -> list[Node]:
        """The leaves of a new carry, dims in the order of the old; refused unless they fit."""
        leaves, _ = flatten(made, "carry")
        labels = [label for label, _ in paths(made, "carry")]
        if labels != self.labels:
            raise self.mismatch(dict(zip(labels, [x.node for x in leaves], strict=True)))
        new = [aligned(x, type) for x, type in zip(leaves, self.types, strict=True)]
        if not all(self.fits(i, x.type) for i, x in enumerate(new)):
            raise self.mismatch(dict(zip(labels, new, strict=True)))
        return new

    def fits(self, i: int, new: TensorType) -> bool:
        """Whether a value can be carried in the place of the start value `i`.

        A weak value may become what a step makes of it, unless it has done so in vain.
        """
        own = self.types[i]
        return fits(own, new) or (i in self.weak and not fits(own, self.joined(i, new)))

    def mismatch(self, new: Mapping[str, Node]) -> Exception:
        """The refusal of a carry that changes, old and new side by side, and where a dtype does."""
        old = dict(zip(self.labels, self.types, strict=True))
        place = {label: i for i, label in enumerate(self.labels)}
        types = {x: node.type for x, node in new.items()}
        same = {x for x, type in types.items() if x in old and self.fits(place[x], type)}
        table = side_by_side({"before": old, "after a step": types}, same)
        reason = f"the body changes what it carries (*)\n{table}"
        for x in [x for x in new if x in old and x not in same]:
            if (cause := turning(new[x], old[x].dtype)) is not None:
                met = ", ".join(str(operand.type) for operand in cause.inputs)
                made = f"{cause.type}, by {cause.op.said} at {cause.origin} of {met}"
                reason += f"\n  {x} becomes {made}"
        cure = "keep structure, dims and dtypes: astype, transpose or broadcast in the body or init"
        return refusal(self.function, reason, cure=cure, kind=GraphTypeError)


def turning(node: Node, dtype: DType) -> Node | None:
    """The first op below `node` that makes its dtype of values of another."""
    if node.type.dtype == dtype:
        return None
    for x in toposort([node]):
        met = [getattr(operand.type, "dtype", None) for operand in x.inputs]
        if getattr(x.type, "dtype", None) == node.type.dtype and dtype in met:
            return x
    return None


def side_by_side(columns: Mapping[str, Mapping[str, TensorType]], same: Collection[str]) -> str:
    """The types of leaves, a column for each way they were made; all but the `same` are marked."""
    rows = [("", list(columns))]
    for leaf in dict.fromkeys(leaf for own in columns.values() for leaf in own):
        cells = [f"{leaf}: {own[leaf]}" if leaf in own else "-" for own in columns.values()]
        rows.append(("" if leaf in same else "*", cells))
    widths = [max(map(len, column)) for column in zip(*(cells for _, cells in rows), strict=True)]
    lines = [f"  {mark:1} {'  '.join(map(str.ljust, cells, widths))}" for mark, cells in rows]
    return "\n".join(map(str.rstrip, lines))


def aligned(x: Tensor, type: TensorType) -> Node:
    """`x` with its dims in the order of `type`, if they are the same."""
    dims = type.dims or ()
    ordered = x if x.dims == dims or set(x.dims) != set(dims) else transpose(x, *dims)
    return ordered.node
