"""The carry of a loop, which keeps its structure, dims and dtypes from step to step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from graphcore.frontend.core.base import Base, Tensor, type_refusal, wrap
from graphcore.frontend.core.lift import is_weak, promote
from graphcore.frontend.core.tracing import placeholder
from graphcore.frontend.core.trees import Tree, flatten, paths
from graphcore.frontend.core.weak import KINDS, mark, on_other_params, tracing
from graphcore.frontend.create.inputs import full
from graphcore.frontend.pointwise.casting import astype
from graphcore.frontend.pointwise.formulas import where
from graphcore.frontend.shape.dims import broadcast_to, in_order
from graphcore.ir import DType, Node, Size, TensorType, toposort
from graphcore.ir.types import fits

Made = TypeVar("Made")
TRIES = 4
"""How often a start value that is a number may take another type before the body is refused."""


class Carry:
    """The start values of a loop, and the params that represent them inside.

    Start values are repeated along the dims that the body adds to them. Python numbers are weak:
    they take the dtype that the body computes for them as well. Their params are weak too, so that
    one trace of the body determines these. A second trace is needed in two cases only. A number
    becomes one of another kind, such as a float. Or it is the operand of more than elementwise
    functions and gets another dtype or other dims.
    """

    def __init__(self, init: Tree) -> None:
        self.tensors, self.rebuild = flatten(init, "init")
        leaves = paths(init, "carry")
        self.labels = [label for label, _ in leaves]
        self.numbers = {i: leaf for i, (_, leaf) in enumerate(leaves) if is_weak(leaf)}
        self.weak = set(self.numbers)
        self.types: list[TensorType] = [x.node.type for x in self.tensors]
        self.params: list[Node] = []

    @property
    def start(self) -> list[Node]:
        """The start values."""
        return [
            full(type.sizes, self.numbers[i], type.dtype).node
            if i in self.numbers and not isinstance(self.numbers[i], Base)
            else broadcast_to(astype(x, type.dtype).node, type.sizes).node
            for i, (x, type) in enumerate(zip(self.tensors, self.types, strict=True))
        ]

    def state(self) -> Tree:
        """New params for the start values, in the structure of the carry."""
        self.params = [self.new_param(i) for i in range(len(self.types))]
        return self.rebuild(map(wrap, self.params))

    def new_param(self, i: int) -> Node:
        """A param for one start value."""
        param = placeholder(self.labels[i], self.types[i])
        return mark(param) if i in self.weak else param

    def results(self, nodes: Sequence[Node]) -> Tree:
        """The last carry; parts that start as weak tensors of an outer loop may still be weak."""
        outer = {i for i in self.weak if isinstance(self.numbers[i], Base)}
        return self.rebuild(wrap(mark(y) if i in outer else y) for i, y in enumerate(nodes))

    def settle(
        self,
        step: Callable[[Tree], tuple[Tree, Made]],
        alike: Callable[[Made, Made], bool] = lambda old, new: True,
    ) -> tuple[list[Node], Made]:
        """The carry after one step, and the other result of `step`, once weak types are settled.

        If these differ from the types that were traced, `alike` says whether another trace would
        have made the same step.
        """
        with tracing():
            made, extra = step(self.state())
            for _ in range(TRIES * (1 + len(self.types))):
                new = self.match_carry(made)
                leaves = [leaf for _, leaf in paths(made, "carry")]
                before, weak = list(self.types), self.weak
                self.types = [self.joint_type(i, x.type) for i, x in enumerate(new)]
                self.weak = {i for i in weak if is_weak(leaves[i])}
                if all(map(fits, before, self.types)) and weak == self.weak:
                    if not all(map(fits, before, [x.type for x in new])):
                        raise self.mismatch(dict(zip(self.labels, new, strict=True)))
                    return new, extra
                again = self.retype(made, extra, weak)
                if again is None or not alike(extra, again[1]):
                    again = step(self.state())
                made, extra = again
        columns = [dict(zip(self.labels, types, strict=True)) for types in (before, self.types)]
        same = {x for x in self.labels if columns[0][x] == columns[1][x]}
        table = table_of_types(dict(zip(("before", "after a step"), columns, strict=True)), same)
        reason = f"the body changes the type of its carry in each step (*)\n{table}"
        cure = "start with a tensor of the dims and the dtype that the carry keeps"
        raise type_refusal(reason, cure=cure)

    def joint_type(self, i: int, new: TensorType) -> TensorType:
        """The type of start value `i` once a step has computed a value of type `new` from it."""
        own = self.types[i]
        if fits(own, new):
            return own
        number = KINDS[self.tensors[i].dtype.kind] if i in self.numbers else None
        dtype = own.dtype if number is None else promote(new.dtype, number)
        return TensorType.of(dtype, own.sizes | added(own, new.sizes))

    def retype(self, made: Tree, extra: Made, weak: Collection[int]) -> tuple[Tree, Made] | None:
        """The results of a step for params of settled types, or None if it must be traced."""
        old = list(self.params)
        for i, param in enumerate(old):
            if param.type != self.types[i] or (i in weak) != (i in self.weak):
                self.params[i] = self.new_param(i)
        trees = [made] if extra is None else [made, extra]
        leaves = [leaf for _, leaf in paths(trees, "carry")]
        tensors, rebuild = flatten(trees, "carry")
        new = dict(zip(old, self.params, strict=True))
        if (found := on_other_params([x.node for x in tensors], new)) is None:
            return None
        pairs = zip(leaves, found, strict=True)
        both = rebuild(wrap(y) if isinstance(leaf, Base) else leaf for leaf, y in pairs)
        return both[0], (extra if extra is None else both[1])

    def missing_sizes(self, going: Tensor) -> dict[str, Any]:
        """The sizes of the dims of a condition that not every start value has."""
        return {
            dim: size
            for dim, size in going.sizes.items()
            if not all(dim in type.sizes for type in self.types)
        }

    def widen(self, sizes: dict[str, Any]) -> None:
        """Repeat every start value along the dims it lacks, which come last."""
        for i, own in enumerate(self.types):
            self.types[i] = TensorType.of(own.dtype, own.sizes | added(own, sizes))

    def select(self, going: Tensor, made: Tree, state: Tree) -> Tree:
        """The new carry where the condition holds, else the old one."""
        new, rebuild = flatten(made, "carry")
        old, _ = flatten(state, "carry")
        if len(new) != len(old):
            return made  # refused by `match_carry`
        return rebuild([where(going, x, y) for x, y in zip(new, old, strict=True)])

    def match_carry(self, made: Tree) -> list[Node]:
        """The leaves of a new carry, dims of the old first; refused if the structure is another."""
        leaves, rebuild = flatten(made, "carry")
        if rebuild.static != self.rebuild.static:
            reason = f"the body changes {self.rebuild.static} of its carry to {rebuild.static}"
            cure = "carry what changes as tensors, and keep what is static"
            raise type_refusal(reason, cure=cure)
        labels = [label for label, _ in paths(made, "carry")]
        if labels != self.labels:
            raise self.mismatch(dict(zip(labels, [x.node for x in leaves], strict=True)))
        return [
            aligned(x.node, type.dims or ()) for x, type in zip(leaves, self.types, strict=True)
        ]

    def mismatch(self, new: Mapping[str, Node]) -> Exception:
        """The refusal of a carry that changes, old and new side by side, and where a dtype does."""
        old = dict(zip(self.labels, self.types, strict=True))
        types: dict[str, TensorType] = {x: node.type for x, node in new.items()}
        same = {x for x, type in types.items() if x in old and fits(old[x], type)}
        table = table_of_types({"before": old, "after a step": types}, same)
        reason = f"the body changes the type of its carry (*)\n{table}"
        cure = "keep structure, dims and dtypes: astype or broadcast_like in the body or init"
        starts = dict(zip(self.labels, self.tensors, strict=True))
        for x in [x for x in new if x in old and x not in same]:
            if (cause := dtype_change(new[x], old[x].dtype)) is not None:
                met = ", ".join(str(operand.type) for operand in cause.inputs)
                made = f"{cause.type}, by {cause.op.said} at {cause.origin} of {met}"
                reason += f"\n  {x} becomes {made}"
            if more := [*added(starts[x].node.type, old[x].sizes)]:
                reason += f"\n  {x} is repeated along {more}, which the body adds to its start"
            if lost := [*added(types[x], old[x].sizes)]:
                cure = f"the body drops the dims {lost}: return a value that has them, as "
                cure += f"gc.broadcast_like(y, {x}) has"
        return type_refusal(reason, cure=cure)


def dtype_change(node: Node, dtype: DType) -> Node | None:
    """The first op below `node` that computes its dtype from values of another."""
    if node.type.dtype == dtype:
        return None
    for x in toposort([node]):
        met = [getattr(operand.type, "dtype", None) for operand in x.inputs]
        if getattr(x.type, "dtype", None) == node.type.dtype and dtype in met:
            return x
    return None


def table_of_types(columns: Mapping[str, Mapping[str, TensorType]], same: Collection[str]) -> str:
    """The types of leaves as a table with a column for each origin, marked unless the `same`."""
    rows = [("", list(columns))]
    for leaf in dict.fromkeys(leaf for own in columns.values() for leaf in own):
        cells = [f"{leaf}: {own[leaf]}" if leaf in own else "-" for own in columns.values()]
        rows.append(("" if leaf in same else "*", cells))
    widths = [max(map(len, column)) for column in zip(*(cells for _, cells in rows), strict=True)]
    lines = [f"  {mark:1} {'  '.join(map(str.ljust, cells, widths))}" for mark, cells in rows]
    return "\n".join(map(str.rstrip, lines))


def added(own: TensorType, sizes: Mapping[str, Size]) -> dict[str, Size]:
    """Those of `sizes` whose dims a type lacks."""
    return {dim: size for dim, size in sizes.items() if dim not in own.sizes}


def aligned(x: Node, dims: Sequence[str]) -> Node:
    """`x` with those of `dims` that it has in this order, and others after them."""
    own = x.type.dims or ()
    return in_order(x, dict.fromkeys([*[dim for dim in dims if dim in own], *own]))
