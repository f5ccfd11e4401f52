"""Facts about matrices, known from the ops that made them: triangular, Hermitian, unitary, ...

A matrix is the last two axes of a node; all axes before them are batch.
"""

from __future__ import annotations

from enum import Enum, auto

import numpy as np

from graphcore.ir.node import Node
from graphcore.ir.sizes import lower_bound
from graphcore.ir.trace import known_facts
from graphcore.ops import elementwise, leaf, linalg, tensor

from .values import is_real, is_zero


class Fact(Enum):
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


def facts(x: Node) -> Facts:
    """Everything known of `x`, from the op that made it and the facts about its operands."""
    stack = [x]
    known = known_facts("facts about matrices")
    while x not in known:
        node = stack[-1]
        waiting = [y for y in node.inputs if y not in known] if node.op in THROUGH else []
        if waiting:
            stack.extend(waiting)
        else:
            known[stack.pop()] = node_facts(node)
    facts: Facts = known[x]
    return facts


THROUGH = frozenset(
    {
        *(linalg.inv, linalg.expm, tensor.transpose, tensor.expand),
        *(elementwise.conjugate, elementwise.real, elementwise.cast),
        *(elementwise.where, elementwise.negative),
        *(elementwise.add, elementwise.subtract, elementwise.multiply, elementwise.divide),
    }
)
"""Ops whose facts follow from those of their operands."""


def node_facts(x: Node) -> Facts:
    """The facts about `x`, once those about its operands are known."""
    match x:
        case Node(linalg.cholesky):
            return frozenset({LOWER})
        case Node(leaf.project, [several], {"index": index}):
            return PARTS.get((several.op, index), NONE) - (NONE if is_square(x) else {UNITARY})
        case Node(linalg.inv, [a]):
            return facts(a)
        case Node(tensor.transpose, [a], {"perm": perm}) if swaps(perm):
            return transposed_facts(facts(a))
        case Node(elementwise.conjugate, [a]):
            return facts(a)
        case Node(tensor.expand, [a], {"axes": axes}) if max(axes) < x.type.ndim - 2:
            return facts(a)
        case Node(elementwise.cast | elementwise.real, [a]):
            return DIAGONAL | POSITIVE if left_by(a) == DIAGONAL else facts(a) - lost_facts(a, x)
        case Node(elementwise.where, [mask, a, zero]) if is_zero(zero):
            return masked_facts(mask, a)
        case Node(elementwise.negative, [a]):
            return facts(a) - {SEMIDEFINITE, DEFINITE}
        case Node(elementwise.add, [a, b]):
            both = facts(a) & facts(b) - {UNITARY, DEFINITE}
            definite = SEMIDEFINITE in both and DEFINITE in facts(a) | facts(b)
            return both | ({DEFINITE} if definite else NONE)
        case Node(elementwise.subtract, [a, b]):
            return facts(a) & facts(b) - {UNITARY, SEMIDEFINITE, DEFINITE}
        case Node(elementwise.multiply, [a, b]):
            return scaled_facts(a, b) or scaled_facts(b, a)
        case Node(elementwise.divide, [a, b]):
            return facts(a) - {UNITARY} if is_positive(one_number(b), zero=True) else NONE
        case Node(tensor.einsum, [a, b]) if conjugates(a, b):
            return gram(x)
        case Node(tensor.matmul, [a, b]):
            (a, left), (b, right) = matrix_of(a), matrix_of(b)
            if left != right and conjugates(a, b):
                return frozenset({HERMITIAN, SEMIDEFINITE})
        case Node(linalg.expm, [a]) if HERMITIAN in facts(a):
            return POSITIVE
    return NONE


PARTS: dict[tuple[object, int], Facts] = {
    (linalg.qr, 0): frozenset({UNITARY}),
    (linalg.qr, 1): frozenset({UPPER}),
    (linalg.qr_complete, 0): frozenset({UNITARY}),
    (linalg.qr_complete, 1): frozenset({UPPER}),
    (linalg.lu, 1): frozenset({LOWER}),
    (linalg.lu, 2): frozenset({UPPER}),
    (linalg.svd, 0): frozenset({UNITARY}),
    (linalg.svd, 2): frozenset({UNITARY}),
    (linalg.svd_full, 0): frozenset({UNITARY}),
    (linalg.svd_full, 2): frozenset({UNITARY}),
    (linalg.eigh, 1): frozenset({UNITARY}),
}
"""Facts about the results of factorisations; a factor is unitary only if it is square."""


def lost_facts(a: Node, x: Node) -> Facts:
    """The facts of `a` that need not hold of its cast or real part `x`."""
    source, target = a.type.dtype, x.type.dtype
    inexact = source.kind in "fc" and target.kind in "fc"
    if not inexact or np.finfo(target).eps < np.finfo(source).eps:
        return SPECTRAL  # of integers, and those that coarser rounding breaks
    return frozenset({UNITARY}) if source.kind == "c" and target.kind == "f" else NONE


def is_square(x: Node) -> bool:
    """Whether `x` is known to have as many rows as columns."""
    return bool(x.type.ndim > 1 and x.type.shape[-1] == x.type.shape[-2])


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


def masked_facts(mask: Node, a: Node) -> Facts:
    """The facts about the matrix that is `a` where a mask of positions holds, and 0 elsewhere."""
    left = left_by(mask)
    if left != DIAGONAL:
        return left | facts(a) & DIAGONAL
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


def scaled_facts(a: Node, factor: Node) -> Facts:
    """The facts about `a` times `factor`; most hold only if it is one number for each matrix."""
    number = one_number(factor)
    if number is None:
        return facts(a) & DIAGONAL
    known = facts(a) - {UNITARY}
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
