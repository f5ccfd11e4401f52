"""What targets pay, and the cost of nodes: operations and bytes, at representative sizes.

Passes that choose between two ways of computing the same thing read `TargetCosts`. An unknown size
counts as `TYPICAL`, so each choice is made once, when a program is compiled. The costs of nodes are
estimates, right to a small factor; those at the sizes of a call are for another `number`, the
function that turns sizes into numbers.

>>> from graphcore.ir.sizes import unknown
>>> representative(2 * unknown("batch") + 1)
257
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import log2, prod
from typing import NamedTuple, TypeAlias

from graphcore.ir import Graph, Node, Op, Size, Trait, TupleType, Type, unwrap
from graphcore.ir.axes import Along, Contracts, Indexes, Matrices, Picks, Reduces
from graphcore.ir.remembered import remembered
from graphcore.ir.sizes import evaluate, unknowns
from graphcore.ops import control, elementwise, leaf, linalg, special, tensor

Number: TypeAlias = "Callable[[Size], int]"
"""The number that a size counts as."""

TYPICAL = 128
"""The number used for an unknown size: few elements of a vector, a usual side of a matrix."""


@dataclass(frozen=True)
class TargetCosts:
    """What a target pays, as measured for a processor with BLAS and LAPACK."""

    products_per_value: int = 6
    """As many products of numbers take as long as to read or write a value: BLAS computes about 30
    in the time in which it streams five values."""
    rows_factored_alone: int = 48
    """From so many rows on a batch of matrices is factored one by one in less time than all at once
    twice."""
    memory_of_steps: int = 4
    """Values of all steps of a loop may take at most this multiple of the memory held already."""
    values_held: int = 256
    """So many values are held anyway."""
    exponentials_of_choice: int | None = 16
    """A choice in each step of a loop, and its test, take as long as so many exponentials; None if
    it is not worth any: an accelerator waits for it."""


class Cost(NamedTuple):
    """The estimated cost of computing one or more nodes."""

    flops: float = 0.0
    """Floating-point operations; one value of a special function counts as many of them."""
    bytes: float = 0.0
    """Bytes read and written. A view reads and writes none."""

    def __add__(self, other: object) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        return Cost(self.flops + other.flops, self.bytes + other.bytes)

    def times(self, repetitions: float) -> Cost:
        """The cost of this many repetitions."""
        return Cost(self.flops * repetitions, self.bytes * repetitions)


@remembered
def representative(size: Size) -> int:
    """A size as a number, in which each unknown size is `TYPICAL`; never negative."""
    if isinstance(size, int):
        return size
    try:
        return max(evaluate(size, dict.fromkeys(unknowns(size), TYPICAL)), 0)
    except ValueError:  # it divides by the difference of unknown sizes
        return TYPICAL


def elements(type: Type, number: Number = representative) -> int:
    """How many elements a value has, or several have together."""
    if isinstance(type, TupleType):
        return sum([elements(item, number) for item in type.items])
    return prod(map(number, type.shape))


def bytes_of(type: Type, number: Number = representative) -> int:
    """How many bytes a value takes, or several take together."""
    if isinstance(type, TupleType):
        return sum([bytes_of(item, number) for item in type.items])
    return elements(type, number) * type.dtype.itemsize


def cost(node: Node, number: Number = representative) -> Cost:
    """The cost of computing a node from its inputs.

    A loop costs as much as all its steps; if their number is known only at the call, it counts as
    `TYPICAL`. A choice costs as much as its most expensive branch.
    """
    if node.op is leaf.input_ or node.op.traits & NOTHING or isinstance(node.op.axes, Picks):
        return Cost()
    if bodies := control.computed_bodies(node):
        return cost_of_bodies(node, bodies, number)
    made = bytes_of(node.type, number)
    read = [bytes_read(x, number) for x in node.inputs]
    if isinstance(node.op.axes, Indexes):
        read[0] = min(read[0], made)  # the elements that are picked
    return Cost(flops(node, number), sum(read) + made)


def total(nodes: Iterable[Node], number: Number = representative) -> Cost:
    """The cost of computing several nodes, each of them once."""
    return sum([cost(node, number) for node in nodes], Cost())


NOTHING = frozenset({Trait.VIEW, Trait.FREE})
"""Traits of ops that neither compute nor read anything."""


def bytes_read(x: Node, number: Number) -> int:
    """The bytes in memory that are read for `x`: if `x` repeats a value, those of that value."""
    y = unwrap(x, tensor.expand)
    return y.type.dtype.itemsize if y.op is leaf.full else bytes_of(y.type, number)


def cost_of_bodies(node: Node, bodies: Sequence[Graph], number: Number) -> Cost:
    """The cost of a node with bodies: a loop, a choice, a call or a kernel."""
    costs = [total(body.nodes(), number) for body in bodies]
    if node.op is control.switch:
        return max(costs)
    return sum(costs, Cost()).times(repetitions(node, number))


def repetitions(node: Node, number: Number = representative) -> int:
    """How many times a node computes its bodies."""
    if node.op is control.scan:
        return number(node.attrs["length"])
    return TYPICAL if node.op is control.while_loop else 1


def flops(node: Node, number: Number) -> float:
    """The floating-point operations of a node without bodies."""
    kind = node.op.axes
    if node.op in elementwise.UFUNC:
        return elements(node.type, number) * weight(node.op)
    if isinstance(kind, Contracts):
        return contraction(node, number)
    if isinstance(kind, Matrices):
        return of_matrices(node, number)
    read = max([elements(x.type, number) for x in node.inputs], default=0)
    if isinstance(kind, Reduces):
        return float(read)
    if isinstance(kind, Along) and kind.moves:  # sorts and Fourier transforms
        return read * 5 * log2(max(read, 2))
    return float(elements(node.type, number))


@cache
def weight(op: Op) -> int:
    """The number of operations that one element of an elementwise op counts as.

    Ops that NumPy computes in integers, such as additions, and ops that give bool count as one.
    Other functions of NumPy, divisions and roots among them, count as ten, special functions as
    fifty, but for slopes that are made of the value of their function.
    """
    ufunc = elementwise.UFUNC[op]
    if isinstance(ufunc, str):
        return 10 if op in (special.sigmoid_slope, special.tanh_slope) else 50
    results = {loop[-1] for loop in ufunc.types}
    simple = results & {"l", "?"} and op is not elementwise.power
    return 1 if simple else 10


def contraction(node: Node, number: Number) -> float:
    """An einsum as one sum of products over all its letters."""
    return float(prod(map(number, letter_sizes(node).values())) * len(node.inputs))


def letter_sizes(node: Node) -> dict[int, Size]:
    """The size of each letter of an einsum."""
    sizes: dict[int, Size] = {}
    for x, letters in zip(node.inputs, node.attrs["operands"], strict=True):
        sizes.update(zip(letters, x.type.shape, strict=True))
    return sizes


FACTORED = frozenset(
    {linalg.solve_triangular, linalg.solve_tridiagonal}
    | {linalg.lu_solve, linalg.lu_det, linalg.lu_slogdet}
)
"""Ops whose first operand needs no factorisation."""
ITERATIVE = frozenset(
    {linalg.eigh, linalg.eigvalsh, linalg.eig, linalg.eigvals}
    | {linalg.svd, linalg.svd_full, linalg.svdvals}
)
"""Ops that multiply or rotate whole matrices many times."""


def of_matrices(node: Node, number: Number) -> float:
    """The floating-point operations of a product, a factorisation or a solution of matrices."""
    if Trait.PRODUCT in node.op.traits:  # x (*batch, i, k), y (*batch, k, j) or less
        return 2.0 * elements(node.type, number) * number(node.inputs[0].type.shape[-1])
    a, *rest = (x.type for x in node.inputs)
    side = number(a.shape[-1])
    others = float(sum(elements(x, number) for x in rest)) * side
    if node.op in FACTORED:
        return elements(a, number) + others
    shortest = min(map(number, a.shape[-2:]))
    return elements(a, number) * shortest * (20 if node.op in ITERATIVE else 1) + others
