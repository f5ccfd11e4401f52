"""Plans loop nests that share their leading loops: each row goes through all of them in turn.

A softmax finds the largest value of a row, its exponentials and their sum: done row by row, the
exponentials stay in the cache, and only one row of them is stored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from graphcore.ir import Node, Shape, Size
from graphcore.ir.help_text import attributes
from graphcore.ops import leaf
from graphcore.ops import tensor as t

from .arithmetic import SCALAR
from .builder import WIDTH
from .lapack import is_matrix_transpose

LONG_ROW = 4 * WIDTH
"""From which size on a row is worth loops of its own."""


def keeps_rows(node: Node, operand: int, k: int) -> bool:
    """Whether each place needs an operand only at places with the same first k indices."""
    if node.op in SCALAR:
        return True
    attrs, x = node.attrs, node.inputs[operand]
    if min(x.type.ndim, node.type.ndim) < k or x.type.shape[:k] != node.type.shape[:k]:
        return False
    match node.op:
        case t.expand | t.sum_ | t.max_ | t.min_ | t.any_ | t.all_ | t.norm:
            return all(axis >= k for axis in attrs["axes"])
        case t.prod | t.argmax | t.argmin | t.concat:
            axis: int = attrs["axis"]
            return axis >= k
        case t.transpose:
            perm: tuple[int, ...] = attrs["perm"]
            return perm[:k] == tuple(range(k))
        case t.slice_ | t.embed | t.overwrite:
            ranges = zip(attrs["starts"][:k], attrs["steps"][:k], strict=True)
            return all(start == 0 and step == 1 for start, step in ranges)
        case t.reshape | t.pack | t.vecdot:
            return True
        case t.matvec | t.matmul:
            batch: int = x.type.ndim - 2 + (operand == 0)
            return k <= batch
    return False


def reads_own_row(root: Node, k: int, made: Collection[Node]) -> bool:
    """Whether a root reads values that are made in rows only at places of its own row."""
    waiting, seen = [(root, True)], set[tuple[Node, bool]]()
    while waiting:
        node, same = waiting.pop()
        for i, x in enumerate(node.inputs):
            item = (x, same and keeps_rows(node, i, k))
            if x in made and not item[1]:
                return False
            if item not in seen and x not in made and x.op is not leaf.project:
                waiting.append(item)
            seen.add(item)
    return True


def is_long(size: Size) -> bool:
    """Whether a size is unknown, or large."""
    return not isinstance(size, int) or size >= LONG_ROW


def runs_inside(root: Node) -> bool:
    """Whether a reduction runs over the last axes of its operand, which are long."""
    shape = root.inputs[0].type.shape
    return bool(shape) and shape[: root.type.ndim] == root.type.shape and is_long(shape[-1])


class Pair:
    """A product with a matrix, x v, and that of the transpose with it, xᵀ (x v)."""

    def __init__(self, *nests: Sequence[Node]) -> None:
        self.nests = nests
        self.made = tuple([root for roots in nests for root in roots])


def pair_of(nests: Sequence[Sequence[Node]], roots: Sequence[Node]) -> Pair | None:
    """The step of some nests and another one, if it is such a pair."""
    if [*map(len, (*nests, roots))] != [1, 1]:
        return None
    (first,), (second,) = nests[0], roots
    if not first.op is second.op is t.matvec or second.inputs[1] is not first:
        return None
    x, y = first.inputs[0], second.inputs[0]
    return Pair(nests[0], roots) if is_matrix_transpose(y) and y.inputs[0] is x else None


class Rows:
    """Nests whose roots are computed row by row; `axes` are the sizes of the loops over rows.

    `own` are the roots that no other step reads, so that one row of them is stored.
    """

    def __init__(self, axes: Shape) -> None:
        self.axes = axes
        self.nests: list[list[Node]] = []
        self.made: dict[Node, None] = {}
        self.own: frozenset[Node] = frozenset()
        self.works = bool(self.axes) and all(map(is_long, self.axes[-1:]))

    @property
    def gain(self) -> bool:
        """Whether nests read whole rows that others read or store, which are in the cache then."""
        if self.stores_whole:
            return len(self.nests) > 1
        read = [self.whole_rows(nest) for nest in self.nests]
        return sum(map(len, read)) > len(set[Node]().union(*read))

    @property
    def stores_whole(self) -> bool:
        """Whether some nest stores whole rows."""
        return any(x.type.ndim > len(self.axes) for x in self.made)

    def whole_rows(self, roots: Sequence[Node]) -> set[Node]:
        """The inputs of the graph, and values of loops and routines, whose rows a nest reads."""
        waiting, seen = [*roots], set(roots)
        while waiting:
            below = [x for x in waiting.pop().inputs if x not in seen and x not in self.made]
            waiting += [x for x in below if x.op is not leaf.project]
            seen.update(below)
        leaves = [x for x in seen if not x.inputs or x.op is leaf.project]
        return {x for x in leaves if x.type.shape[: len(self.axes)] == self.axes != x.type.shape}

    def takes(self, roots: Sequence[Node]) -> bool:
        """Whether a nest is computed in these rows; it is added then."""
        k = len(self.axes)
        for root in roots:
            rest = self.rest(root)
            if root.type.shape[:k] != self.axes or (rest and not is_long(rest[-1])):
                return False
            if not rest and root.op in SCALAR and not self.nests:
                return False
            if not reads_own_row(root, k, self.made):
                return False
        self.nests.append([*roots])
        self.made |= dict.fromkeys(roots)
        return True

    def leave_last(self) -> list[list[Node]]:
        """Leave the last nests that compute one value a row, where lanes compute several."""
        left: list[list[Node]] = []
        while all(not self.rest(root) and root.op in SCALAR for root in self.nests[-1]):
            left.insert(0, self.nests.pop())
            for root in left[0]:
                del self.made[root]
        return left

    def rest(self, root: Node) -> Shape:
        """The sizes of a row of a root."""
        shape: Shape = root.type.shape
        return shape[len(self.axes) :]


@attributes(
    axes="The sizes of the loops over rows.",
    steps="Products, and nests in rows, in order.",
    made="The values that the steps compute.",
    own="Those that no other step reads, so that only some rows of them are stored.",
)
class Chain:
    """Products of matrices, and nests between them, computed for some rows at a time."""

    def __init__(self, axes: Shape) -> None:
        self.axes = axes
        self.steps: list[Node | Rows] = []
        self.made: dict[Node, None] = {}
        self.own: frozenset[Node] = frozenset()
