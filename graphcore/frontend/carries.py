"""What a loop carries from step to step: it keeps its structure, dims and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphcore.ir.errors import GraphError, GraphTypeError
from graphcore.ir.node import Node
from graphcore.ir.types import DType, TensorType, fits

from .base import refusal, wrap
from .creation import full
from .formulas import where
from .shape import broadcast_to, transpose
from .tracing import placeholder
from .trees import flatten, paths

if TYPE_CHECKING:
    from .tensor import Tensor

Tree = Any
Step = Callable[[Tree], tuple[Tree, Any]]


WEAK: dict[DType, DType] = {
    np.dtype(np.float64): np.dtype(np.float16),
    np.dtype(np.complex128): np.dtype(np.complex64),
}
"""What a Python number starts as, so that the dtype of what it meets is told from its own."""
STRONG = {weak: strong for strong, weak in WEAK.items()}


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
        self.params: list[Node] = []
        for i in self.weak:  # any other float that it meets prevails
            type = self.start[i].type
            self.become(i, TensorType(WEAK.get(type.dtype, type.dtype), (), ()))

    @property
    def start(self) -> list[Node]:
        """The start values."""
        return [x.node for x in self.tensors]

    def state(self) -> Tree:
        """New params for the start values, in the structure of the carry."""
        pairs = zip(self.labels, self.start, strict=True)
        self.params = [placeholder(label, x.type) for label, x in pairs]
        return self.rebuild(map(wrap, self.params))

    def settle(self, step: Step) -> tuple[list[Node], Any]:
        """The carry after one step, and what else `step` returns, once weak types are settled."""
        while True:
            try:
                with np.errstate(over="ignore"):
                    made, extra = step(self.state())
                new = self.matched(made)
            except GraphError:  # the fault may lie in what weak values are tried as
                if self.decide():
                    continue
                raise
            changed = [i for i in self.weak if not self.kept(i, new[i])]
            for i in changed:
                self.become(i, new[i].type)
            if not changed and not self.decide():
                return new, extra

    def decide(self) -> bool:
        """Give weak values that have met no other float the dtype of a Python number."""
        undecided = [i for i in self.weak if self.start[i].type.dtype in STRONG]
        for i in undecided:
            own = self.start[i].type
            self.become(i, TensorType(STRONG[own.dtype], own.shape, own.dims))
        return bool(undecided)

    def kept(self, i: int, new: Node) -> bool:
        """Whether a value has the type of the start value `i`."""
        return fits(self.params[i].type, new.type)

    def become(self, i: int, type: TensorType) -> None:
        """Give a start value another type: more dims, and if it is weak another dtype."""
        if i in self.weak:
            with np.errstate(over="ignore"):
                self.tensors[i] = full(type.sizes, self.weak[i], type.dtype)
        else:
            self.tensors[i] = broadcast_to(self.start[i], type.dims or (), type.shape)

    def lacking(self, going: Tensor) -> dict[str, Any]:
        """The sizes of the dims of a predicate that not every start value has."""
        return {
            dim: size
            for dim, size in going.sizes.items()
            if not all(dim in x.dims for x in self.tensors)
        }

    def widen(self, sizes: dict[str, Any]) -> None:
        """Repeat every start value along the dims it lacks, which come last."""
        for i, x in enumerate(self.tensors):
            own = x.node.type
            both = own.sizes | {dim: size for dim, size in sizes.items() if dim not in own.sizes}
            self.become(i, TensorType(own.dtype, tuple(both.values()), tuple(both)))

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
        if [label for label, _ in paths(made, "carry")] != self.labels:
            raise self.mismatch([label for label, _ in paths(made, "carry")], leaves)
        new = [aligned(x, p.type) for x, p in zip(leaves, self.params, strict=True)]
        if not all(i in self.weak or self.kept(i, x) for i, x in enumerate(new)):
            raise self.mismatch(self.labels, leaves)
        return new

    def mismatch(self, labels: Sequence[str], made: Sequence[Tensor]) -> Exception:
        """The refusal of a carry that changes, old and new side by side."""
        old = {label: p.type for label, p in zip(self.labels, self.params, strict=True)}
        new = {label: x.node.type for label, x in zip(labels, made, strict=True)}
        weak = {self.labels[i] for i in self.weak}
        rows = [("", "before", "after a step")]
        for label in dict.fromkeys((*old, *new)):
            a, b = old.get(label), new.get(label)
            same = a is not None and b is not None and (label in weak or fits(a, b))
            before, after = (f"{label}: {x}" if x is not None else "-" for x in (a, b))
            rows.append((" " if same else "*", before, after))
        width = max(len(before) for _, before, _ in rows)
        table = [f"  {mark:1} {before:{width}}  {after}" for mark, before, after in rows]
        reason = "the body changes what it carries (*)\n" + "\n".join(table)
        cure = "keep structure, dims and dtypes: astype, transpose or broadcast in the body or init"
        return refusal(self.function, reason, cure=cure, kind=GraphTypeError)


def aligned(x: Tensor, type: TensorType) -> Node:
    """`x` with its dims in the order of `type`, if they are the same."""
    dims = type.dims or ()
    ordered = x if x.dims == dims or set(x.dims) != set(dims) else transpose(x, *dims)
    return ordered.node
