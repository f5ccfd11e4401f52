"""Facts about matrices, known from the ops that made them: triangular, Hermitian, unitary, ...

A matrix is the last two axes of a node; all axes before them are batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, auto

import numpy as np

from graphcore.ir import Graph, Node, Op, TensorType
from graphcore.ir.axes import values
from graphcore.ir.node import OPS
from graphcore.ir.sizes import lower_bound
from graphcore.ops import elementwise, leaf, linalg, tensor

from .dataflow import ASKED, STRUCTURE, Forward, Known
from .values import is_real, is_zero


class Fact(IntEnum):
    """A property that the matrices in the last two axes of a node may be known to have."""

    LOWER = auto()
    UPPER = auto()
    HERMITIAN = auto()
    SEMIDEFINITE = auto()
    """Hermitian, without negative eigenvalues."""
    DEFINITE = auto()
    """Hermitian with positive eigenvalues."""
    UNITARY = auto()


LOWER, UPPER, UNITARY = Fact.LOWER, Fact.UPPER, Fact.UNITARY
HERMITIAN, SEMIDEFINITE, DEFINITE = Fact.HERMITIAN, Fact.SEMIDEFINITE, Fact.DEFINITE
DIAGONAL = frozenset({LOWER, UPPER})
POSITIVE = frozenset({HERMITIAN, SEMIDEFINITE, DEFINITE})
SPECTRAL = frozenset({SEMIDEFINITE, DEFINITE, UNITARY})
NONE: frozenset[Fact] = frozenset()
Facts = frozenset[Fact]


THROUGH = frozenset(
    {
        *(linalg.inv, linalg.expm, tensor.transpose, tensor.expand),
        *(elementwise.conjugate, elementwise.real, elementwise.cast),
        *(elementwise.where, elementwise.negative),
        *(elementwise.add, elementwise.subtract, elementwise.multiply, elementwise.divide),
    }
)
"""Ops whose facts follow from those of their operands."""

MAKES = frozenset(
    {leaf.full, linalg.cholesky, linalg.cholesky_cotangent, tensor.einsum, tensor.matmul}
)
"""Ops whose facts do not."""
ASKING = frozenset(op for op in OPS.values() if op.dialect == "linalg")


ORTHOGONAL = frozenset({UNITARY})
PARTS: dict[Op, Sequence[Facts]] = {
    linalg.qr: (ORTHOGONAL, frozenset({UPPER})),
    linalg.qr_complete: (ORTHOGONAL, frozenset({UPPER})),
    linalg.lu: (NONE, frozenset({LOWER}), frozenset({UPPER})),
    linalg.svd: (ORTHOGONAL, NONE, ORTHOGONAL),
    linalg.svd_full: (ORTHOGONAL, NONE, ORTHOGONAL),
    linalg.eigh: (NONE, ORTHOGONAL),
}
"""Facts about the results of factorisations; a factor is unitary only if it is square."""


class MatrixFacts(Forward[Facts]):
    """Which facts hold of matrices, in loops as well; they become fewer where values are joined."""

    subject = "facts about matrices"
    unknown = weakest = NONE

    def join(self, node: Node, several: Sequence[Facts]) -> Facts:
        """What holds of all."""
        return frozenset.intersection(*several)

    def matters(self, graph: Graph) -> bool:
        """Rules ask about operands of matrix ops."""
        return not ASKING.isdisjoint(graph.ops())

    def reads(self, node: Node) -> Sequence[Node]:
        """Of most ops nothing is known, whatever their operands are."""
        return node.inputs if node.op in THROUGH or node.op in STRUCTURE else ()

    def one_step(self, node: Node, x: Node, fact: Facts) -> Facts:
        """An element has the matrices of its sequence, whose first axis must be none of theirs."""
        return fact if x.type.ndim > 2 and node.attrs["dim"] is None else NONE

    def of_node(self, node: Node, given: Sequence[Facts], known: Known[Facts]) -> Sequence[Facts]:
        """The facts about each result, by the op that made it."""
        if (parts := PARTS.get(node.op)) is not None:
            pairs = zip(node.type.items, parts, strict=True)
            return [facts if is_square(type) else facts - ORTHOGONAL for type, facts in pairs]
        if node.op in THROUGH or node.op in MAKES:
            return (node_facts(node, *given),)
        return (NONE,) * len(values(node.type))


def node_facts(x: Node, of: Facts = NONE, other: Facts = NONE, *more: Facts) -> Facts:
    """The facts about `x`, given those about its operands."""
    match x:
        case Node(leaf.full) if is_zero(x) and is_square(x.type):
            return DIAGONAL | {HERMITIAN, SEMIDEFINITE}
        case Node(linalg.cholesky | linalg.cholesky_cotangent):
            return frozenset({LOWER})
        case Node(linalg.inv | elementwise.conjugate):
            return of
        case Node(tensor.transpose, _, {"perm": perm}) if swaps(perm):
            return transposed_facts(of)
        case Node(tensor.expand, _, {"axes": axes}) if max(axes) < x.type.ndim - 2:
            return of
        case Node(elementwise.cast | elementwise.real, [a]):
            return DIAGONAL | POSITIVE if left_by(a) == DIAGONAL else of - lost_facts(a, x)
        case Node(elementwise.where, [mask, a, zero]) if is_zero(zero):
            return masked_facts(mask, a, other)
        case Node(elementwise.negative):
            return of - {SEMIDEFINITE, DEFINITE}
        case Node(elementwise.add):
            both = of & other - {UNITARY, DEFINITE}
            definite = SEMIDEFINITE in both and DEFINITE in of | other
            return both | ({DEFINITE} if definite else NONE)
        case Node(elementwise.subtract):
            return of & other - {UNITARY, SEMIDEFINITE, DEFINITE}
        case Node(elementwise.multiply, [a, b]):
            return scaled_facts(of, b) or scaled_facts(other, a)
        case Node(elementwise.divide, [_, b]):
            return of - {UNITARY} if is_positive(one_number(b), zero=True) else NONE
        case Node(tensor.einsum, [a, b]) if conjugates(a, b):
            return gram(x)
        case Node(tensor.matmul, [a, b]):
            (a, left), (b, right) = matrix_of(a), matrix_of(b)
            if left != right and conjugates(a, b):
                return frozenset({HERMITIAN, SEMIDEFINITE})
        case Node(linalg.expm) if HERMITIAN in of:
            return POSITIVE
    return NONE


def facts(x: Node) -> Facts:
    """Everything known of `x`, from the op that made it and the facts about its operands."""
    return MATRICES.facts(x)[0]


def lost_facts(a: Node, x: Node) -> Facts:
    """The facts of `a` that need not hold of its cast or real part `x`."""
    source, target = a.type.dtype, x.type.dtype
    inexact = source.kind in "fc" and target.kind in "fc"
    if not inexact or np.finfo(target).eps < np.finfo(source).eps:
        return SPECTRAL  # of integers, and those that coarser rounding breaks
    return frozenset({UNITARY}) if source.kind == "c" and target.kind == "f" else NONE


def is_square(type: TensorType) -> bool:
    """Whether a matrix is known to have as many rows as columns."""
    return bool(type.ndim > 1 and type.shape[-1] == type.shape[-2])


def swaps(perm: tuple[int, ...]) -> bool:
    """Whether an order of axes exchanges the last two and nothing else."""
    n = len(perm)
    return n > 1 and perm == (*range(n - 2), n - 1, n - 2)


def matrix_of(x: Node) -> tuple[Node, bool]:
    """A matrix, and whether `x` is its transpose."""
    if x.op is tensor.transpose and swaps(x.attrs["perm"]):
        return x.inputs[0], True
    return x, False


def transposed_facts(known: Facts) -> Facts:
    """The facts about the transpose of a matrix with these facts."""
    other = {LOWER: UPPER, UPPER: LOWER}
    return frozenset(other.get(fact, fact) for fact in known)


def masked_facts(mask: Node, a: Node, known: Facts) -> Facts:
    """The facts about the matrix that is `a` where a mask of positions holds, and 0 elsewhere."""
    left = left_by(mask)
    if left != DIAGONAL:
        return left | known & DIAGONAL
    positive = a.op is leaf.full and is_real(a) and a.attrs["value"].array > 0
    return left | (POSITIVE if positive else {HERMITIAN} if is_real(a) else NONE)


def left_by(mask: Node) -> Facts:
    """The triangle of a matrix that a mask of positions leaves, or its diagonal."""
    mask = mask_of_one(mask)
    match mask.op, *map(walks, mask.inputs):
        case (elementwise.equal, -2, -1) | (elementwise.equal, -1, -2):
            return DIAGONAL
        case (elementwise.greater_equal | elementwise.greater, -2, -1):
            return frozenset({LOWER})
        case (elementwise.less_equal | elementwise.less, -1, -2):
            return frozenset({LOWER})
        case (elementwise.less_equal | elementwise.less, -2, -1):
            return frozenset({UPPER})
        case (elementwise.greater_equal | elementwise.greater, -1, -2):
            return frozenset({UPPER})
    return NONE


def mask_of_one(mask: Node) -> Node:
    """The mask of each matrix of a batch, if it is the same for all."""
    rank = mask.type.ndim
    same = mask.op is tensor.expand and max(mask.attrs["axes"]) < rank - 2
    return mask.inputs[0] if same else mask


def conjugates(a: Node, b: Node) -> bool:
    """Whether each is the complex conjugate of the other."""
    if a.type.dtype.kind == "c":
        return elementwise.conjugate(a) is b or elementwise.conjugate(b) is a
    return a is b and is_real(a)


def walks(x: Node) -> int | None:
    """The axis, from the end, along which `x` counts 0, 1, 2, ..."""
    if x.op is tensor.expand and x.inputs[0].op is leaf.iota:
        (axis,) = set(range(x.type.ndim)) - set(x.attrs["axes"])
        return int(axis - x.type.ndim)
    return None


def scaled_facts(known: Facts, factor: Node) -> Facts:
    """The facts about a matrix times `factor`; most hold only for one number for each matrix."""
    number = one_number(factor)
    if number is None:
        return known & DIAGONAL
    known = known - {UNITARY}
    if is_positive(number):
        return known
    real = is_real(number) or (number.op is leaf.full and np.imag(number.attrs["value"].array) == 0)
    return known - {SEMIDEFINITE, DEFINITE} if real else known & DIAGONAL


def one_number(x: Node) -> Node | None:
    """The number that all elements of a matrix in `x` are equal to, if there is one."""
    if x.op is leaf.full:
        return x
    last = {x.type.ndim - 2, x.type.ndim - 1}
    return x.inputs[0] if x.op is tensor.expand and last <= {*x.attrs["axes"]} else None


def is_positive(x: Node | None, zero: bool = False) -> bool:
    """Whether a number is positive, or with `zero` a size of 0: a known one, a size, a quotient."""
    if x is None:
        return False
    if x.op is elementwise.divide:
        above, below = x.inputs
        return is_size(above, zero) and is_size(below, zero=True)
    return is_size(x, zero)


def is_size(x: Node, zero: bool) -> bool:
    """Whether `x` is a positive number known now, or a size."""
    if x.op is leaf.full:
        value = x.attrs["value"].item()
        return bool(np.imag(value) == 0 and 0 < np.real(value) < np.inf)
    least = lower_bound(x.attrs["size"]) if x.op is leaf.extent else None
    return least is not None and least >= (0 if zero else 1)


def gram(x: Node) -> Facts:
    """The facts about an einsum of a matrix with its conjugate: a aᴴ, or a ∘ aᴴ."""
    left, right = x.attrs["operands"]
    i, j = x.attrs["result"][-2:] if x.type.ndim > 1 else (None, None)
    swap = {i: j, j: i}
    if i == j or tuple(swap.get(letter, letter) for letter in left) != tuple(right):
        return NONE
    return frozenset({HERMITIAN} if i in left and j in left else {HERMITIAN, SEMIDEFINITE})


MATRICES = MatrixFacts()
ASKED.append(MATRICES)
