"""What is known of matrices by construction, and what follows for solves and determinants.

Facts are few and come from one place, `facts`. They are used before differentiation, so that a
derivative is that of the simpler form.
"""

from __future__ import annotations

from enum import Enum, auto
from weakref import WeakKeyDictionary

import numpy as np

from graphcore.analysis.values import is_zero
from graphcore.ir.node import Node
from graphcore.ir.sizes import count, lower_bound
from graphcore.ops import elementwise, leaf, linalg, tensor
from graphcore.ops.elementwise import absolute, log, sign

from .contraction import letter_sizes, single
from .engine import RuleSet
from .matrices import at, diagonal, h, on_diagonal, t
from .plain import cast, expand, pick, reshape, sum_over, transpose, where

structure = RuleSet()


class Fact(Enum):
    """What may be known of the last two axes of a node."""

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

_known: WeakKeyDictionary[Node, Facts] = WeakKeyDictionary()


def facts(x: Node) -> Facts:
    """All that is known of `x`, by the op that made it and what is known of its operands."""
    stack = [x]
    while x not in _known:
        node = stack[-1]
        waiting = [y for y in node.inputs if y not in _known] if node.op in THROUGH else []
        if waiting:
            stack.extend(waiting)
        else:
            _known[stack.pop()] = found(node)
    return _known[x]


THROUGH = frozenset(
    {
        *(linalg.inv, linalg.expm, tensor.transpose, tensor.expand),
        *(elementwise.conjugate, elementwise.real, elementwise.cast),
        *(elementwise.where, elementwise.negative),
        *(elementwise.add, elementwise.subtract, elementwise.multiply, elementwise.divide),
    }
)
"""Ops of which more is known if more is known of their operands."""


def found(x: Node) -> Facts:
    """What is known of `x`, once that of its operands is."""
    match x:
        case Node(linalg.cholesky):
            return frozenset({LOWER})
        case Node(leaf.project, [several], {"index": index}):
            return PARTS.get((several.op, index), NONE) - (NONE if is_square(x) else {UNITARY})
        case Node(linalg.inv, [a]):
            return facts(a)
        case Node(tensor.transpose, [a], {"perm": perm}) if swaps(perm):
            return flipped(facts(a))
        case Node(elementwise.conjugate, [a]):
            return facts(a)
        case Node(tensor.expand, [a], {"axes": axes}) if max(axes) < x.type.ndim - 2:
            return facts(a)
        case Node(elementwise.cast | elementwise.real, [a]):
            return DIAGONAL | POSITIVE if left_by(a) == DIAGONAL else facts(a) - lost(a, x)
        case Node(elementwise.where, [mask, a, zero]) if is_zero(zero):
            return masked(mask, a)
        case Node(elementwise.negative, [a]):
            return facts(a) - {SEMIDEFINITE, DEFINITE}
        case Node(elementwise.add, [a, b]):
            both = facts(a) & facts(b) - {UNITARY, DEFINITE}
            definite = SEMIDEFINITE in both and DEFINITE in facts(a) | facts(b)
            return both | ({DEFINITE} if definite else NONE)
        case Node(elementwise.subtract, [a, b]):
            return facts(a) & facts(b) - {UNITARY, SEMIDEFINITE, DEFINITE}
        case Node(elementwise.multiply, [a, b]):
            return scaled(a, b) or scaled(b, a)
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
"""Of the results of factorisations; a factor is unitary only if it is square."""


def lost(a: Node, x: Node) -> Facts:
    """The facts of `a` that need not hold of its cast or real part `x`."""
    source, target = a.type.dtype, x.type.dtype
    inexact = source.kind in "fc" and target.kind in "fc"
    if not inexact or np.finfo(target).eps < np.finfo(source).eps:
        return SPECTRAL  # of integers, and of what held but for coarser rounding
    return frozenset({UNITARY}) if source.kind == "c" and target.kind == "f" else NONE


def is_square(x: Node) -> bool:
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


def flipped(known: Facts) -> Facts:
    """What is known of the transpose."""
    other = {LOWER: UPPER, UPPER: LOWER}
    return frozenset(other.get(fact, fact) for fact in known)


def masked(mask: Node, a: Node) -> Facts:
    """What is known of `a` where a mask of positions holds, and 0 elsewhere."""
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


def is_real(x: Node) -> bool:
    return bool(x.type.dtype.kind == "f")


def walks(x: Node) -> int | None:
    """The axis, from the end, along which `x` counts 0, 1, 2, ..."""
    if x.op is tensor.expand and x.inputs[0].op is leaf.iota:
        (axis,) = set(range(x.type.ndim)) - set(x.attrs["axes"])
        return int(axis - x.type.ndim)
    return None


def scaled(a: Node, factor: Node) -> Facts:
    """What is known of `a` times `factor`, which counts if it is one number for each matrix."""
    number = one_number(factor)
    if number is None:
        return facts(a) & DIAGONAL
    known = facts(a) - {UNITARY}
    if is_positive(number):
        return known
    real = is_real(number) or (number.op is leaf.full and np.imag(number.attrs["value"].array) == 0)
    return known - {SEMIDEFINITE, DEFINITE} if real else known & DIAGONAL


def one_number(x: Node) -> Node | None:
    """The number that `x` is in all places of a matrix, if it is one."""
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
    """What is known of an einsum of a matrix with its conjugate: of a aᴴ, and of a ∘ aᴴ."""
    left, right = x.attrs["operands"]
    i, j = x.attrs["result"][-2:] if x.type.ndim > 1 else (None, None)
    swap = {i: j, j: i}
    if i == j or tuple(swap.get(letter, letter) for letter in left) != tuple(right):
        return NONE
    return frozenset({HERMITIAN} if i in left and j in left else {HERMITIAN, SEMIDEFINITE})


# ---- what follows


@structure.on(leaf.project, under=[leaf.tuple_])
def chosen(node: Node) -> Node:
    """project(tuple(x, y, ...), i) = the i-th"""
    return pick(node, node.inputs[0])


@structure.on(linalg.solve)
def solve_by_structure(node: Node) -> Node | None:
    """a⁻¹ b of a unitary matrix is aᴴ b; a triangular one is solved as what it is"""
    (a, b), check = node.inputs, node.attrs["check"]
    known = facts(a)
    if UNITARY in known:
        return at(h(a), b)
    if known & DIAGONAL:
        return linalg.solve_triangular(a, b, lower=LOWER in known, unit=False, check=check)
    return None


@structure.on(tensor.einsum, under=[linalg.inv])
def product_with_inverse(node: Node) -> Node | None:
    """a⁻¹ b = solve(a, b), and a⁻ᵀ b = solve(aᵀ, b)"""
    operands, result = node.attrs["operands"], node.attrs["result"]
    if len(operands) != 2:
        return None
    (inverse, letters), (b, own) = sorted(
        zip(node.inputs, operands, strict=True), key=lambda pair: pair[0].op is not linalg.inv
    )
    *batch, i, j = letters
    (a,) = inverse.inputs
    ways = [
        (summed, kept, matrix)
        for summed, kept, matrix in ((j, i, a), (i, j, t(a)))
        if summed in own and summed not in result and kept not in own
    ]
    if not ways:
        return None
    summed, kept, matrix = ways[0]
    sizes = letter_sizes(node)
    columns = [letter for letter in own if letter not in (*batch, summed)]
    order = (*batch, summed, *columns)
    present = [letter for letter in order if letter in own]
    b = transpose(b, [own.index(letter) for letter in present])
    shape = tuple(sizes[letter] for letter in order)
    b = expand(b, [at for at, letter in enumerate(order) if letter not in own], shape)
    start = (*shape[: len(batch)], sizes[summed])
    wide = reshape(b, (*start, count(sizes[letter] for letter in columns)))
    found = linalg.solve(matrix, wide, check=inverse.attrs["check"])
    found = reshape(found, (*start, *(sizes[letter] for letter in columns)))
    return single(found, (*batch, kept, *columns), result)


@structure.on(linalg.inv)
def inverse_by_structure(node: Node) -> Node | None:
    """The inverse of a unitary matrix is aᴴ; that of a diagonal one is 1 / a on the diagonal"""
    (a,) = node.inputs
    known = facts(a)
    if UNITARY in known:
        return h(a)
    if node.attrs["check"] or not known >= DIAGONAL:
        return None
    on = on_diagonal(a)
    return where(on, 1 / where(on, a, 1), 0)


@structure.on(linalg.det)
def det_by_structure(node: Node) -> Node | None:
    """The determinant of a triangular matrix is the product of its diagonal"""
    (a,) = node.inputs
    if not facts(a) & DIAGONAL:
        return None
    values = diagonal(a)
    return tensor.prod(values, axis=values.type.ndim - 1)


@structure.on(linalg.slogdet)
def slogdet_by_structure(node: Node) -> Node | None:
    """log|det a| = Σ log|a[i,i]| of a triangular matrix"""
    (a,) = node.inputs
    if not facts(a) & DIAGONAL:
        return None
    values = diagonal(a)
    axis = values.type.ndim - 1
    logs = sum_over(log(absolute(values)), (axis,))
    return leaf.tuple_(tensor.prod(sign(values), axis=axis), logs)


@structure.on(log, under=[linalg.det])
def log_of_det(node: Node) -> Node:
    """log(det(a)) = log(sign) + log|det a|, without overflow"""
    both = linalg.slogdet(node.inputs[0].inputs[0])
    return log(both[0]) + cast(both[1], node.type.dtype)


@structure.on(log, under=[absolute])
def log_of_size(node: Node) -> Node | None:
    """log(|det(a)|) = log|det a|, without overflow"""
    (inner,) = node.inputs[0].inputs
    if inner.op is not linalg.det:
        return None
    found: Node = linalg.slogdet(inner.inputs[0])[1]
    return found


@structure.on(linalg.solve_triangular, under=[elementwise.where])
def solve_of_triangle(node: Node) -> Node | None:
    """The other triangle is not read, so that it need not be 0"""
    (a, b), attrs = node.inputs, node.attrs
    if a.op is not elementwise.where:
        return None
    mask, inner, zero = a.inputs
    if not is_zero(zero) or left_by(mask) != {LOWER if attrs["lower"] else UPPER}:
        return None
    with_diagonal = mask_of_one(mask).op in (elementwise.greater_equal, elementwise.less_equal)
    if not with_diagonal and not attrs["unit"]:
        return None
    return linalg.solve_triangular(inner, b, **attrs)


@structure.on(linalg.solve_triangular)
def solve_of_factor(node: Node) -> Node | None:
    """A Cholesky factor has no 0 on its diagonal: there is nothing to check"""
    (a, b), attrs = node.inputs, node.attrs
    factor, _ = matrix_of(a.inputs[0] if a.op is elementwise.conjugate else a)
    if not attrs["check"] or factor.op is not linalg.cholesky:
        return None
    return linalg.solve_triangular(a, b, **attrs | {"check": False})
