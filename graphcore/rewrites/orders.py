"""Contractions that others sum on: one contraction of all operands, where another order costs less.

Products of matrices are associative, so that (a b) x may be a (b x), the sum of a product over its
columns is a product with a sum, and a diagonal of a product needs no other entry. All is equal in
real arithmetic; in floating point terms are added in another order, and a value between may
overflow in one of them alone.

A contraction is taken into another one only if nothing else needs it. Sizes that are known only at
the call decide nothing: the order must not cost more for small ones, nor for large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, product
from math import prod

from graphcore.analysis.cost import TYPICAL, letter_sizes
from graphcore.ir import Graph, Node, Rule, Size
from graphcore.ir.graph import WITH_BODIES
from graphcore.ir.sizes import evaluate, same, unknowns
from graphcore.ir.transform import transform
from graphcore.ops import leaf
from graphcore.ops.tensor import einsum, gather, sum_

from .contraction import cheapest_order
from .einsums import unfold
from .plain import Axes, other_axes

Number = Callable[[Size], int]

MOVED = 6
"""As many products of numbers as reading or writing a value costs: BLAS computes about 30 products
in the time in which it streams five values."""
SMALL, LARGE = 4, 20_000
"""Numbers that an unknown size is tried with, besides `TYPICAL`."""
MOST = 3
"""The most unknown sizes that are tried."""
LESS, MORE = 0.8, 1.25
"""The share of the cost that another order must take where sizes are typical, and the most that it
may take anywhere."""
OPERANDS = 5
"""The most operands of a contraction whose order is searched for."""


def join_contractions(graph: Graph) -> Graph:
    """The graph whose contractions take in others, again and again, where that costs less."""
    while (new := join_one_level(graph)) is not graph:
        graph = new
    return graph


def join_one_level(graph: Graph) -> Graph:
    """The graph in which each contraction has taken in at most one other."""
    nodes = graph.nodes()
    found = [x for x in nodes if x.op in RULES and any(y.op is einsum for y in x.inputs)]
    if not found and not any(x.op.dialect in WITH_BODIES for x in nodes):
        return graph
    uses = graph.uses()

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        rule = RULES[node.op]
        alone = [uses[x] == 1 and y.op is einsum for x, y in zip(node.inputs, inputs, strict=True)]
        new = rule(node.with_inputs(*inputs), alone) if any(alone) else None
        return None if new is None else (rule, new)

    return transform(graph, visit, at=RULES, bodies=join_contractions)


def taken_in(node: Node, alone: Sequence[bool]) -> Node | None:
    """einsum(einsum(x, y), z) = einsum(x, y, z)"""
    for i, x in enumerate(node.inputs):
        if alone[i] and len(node.inputs) + len(x.inputs) - 1 <= OPERANDS:
            letters = node.attrs["operands"]
            terms = unfold(x, letters[i], count(1 + max(letter_sizes(node))))
            given = [*zip(node.inputs, letters, strict=True)]
            given[i : i + 1] = terms
            new = contraction_of(given, node.attrs["result"])
            if new.type == node.type and is_cheaper(new, node, x):
                return new
    return None


def sum_of_contraction(node: Node, alone: Sequence[bool]) -> Node | None:
    """The sum of an einsum over axes = the einsum without their letters in the result"""
    (x,) = node.inputs
    if x.type.dtype.kind not in "fc":  # a sum of integers has more bits
        return None
    kept = other_axes(node.attrs["axes"], x.type.ndim)
    return smaller(node, x, tuple(x.attrs["result"][axis] for axis in kept))


def diagonal_of_contraction(node: Node, alone: Sequence[bool]) -> Node | None:
    """The diagonal of an einsum = the einsum with one letter for both of its axes"""
    x, *places = node.inputs
    axes = node.attrs["axes"]
    if not alone[0] or len(places) != 2 or places[0] is not places[1]:
        return None
    if places[0].op is not leaf.iota or x.type.dtype.kind not in "fc":
        return None
    size = places[0].type.shape[0]
    if not all(same(size, x.type.shape[axis]) for axis in axes):
        return None
    result: Axes = x.attrs["result"]
    one, other = (result[axis] for axis in axes)
    if any({one, other} <= {*letters} for letters in x.attrs["operands"]):
        return None
    rest = [letter for axis, letter in enumerate(result) if axis not in axes]
    terms = [
        (y, tuple(one if letter == other else letter for letter in letters))
        for y, letters in zip(x.inputs, x.attrs["operands"], strict=True)
    ]
    new = contraction_of(terms, (one, *rest))
    return new if new.type == node.type and is_cheaper(new, node, x) else None


def smaller(node: Node, x: Node, result: Axes) -> Node | None:
    """The einsum `x` with fewer letters in its result, in place of `node`, if that costs less."""
    new = x.op(*x.inputs, operands=x.attrs["operands"], result=result)
    return new if new.type == node.type and is_cheaper(new, node, x) else None


def contraction_of(terms: Sequence[tuple[Node, Axes]], result: Axes) -> Node:
    """The einsum of operands with their letters."""
    return einsum(*[x for x, _ in terms], operands=tuple(own for _, own in terms), result=result)


RULES = {einsum: taken_in, sum_: sum_of_contraction, gather: diagonal_of_contraction}


# ---- costs


def is_cheaper(new: Node, node: Node, x: Node) -> bool:
    """Whether a contraction costs less than `node` and `x`, which it replaces."""
    sizes = [size for y in (new, node, x) for z in y.inputs for size in z.type.shape]
    names = sorted(set[str]().union(*map(unknowns, sizes)))
    if len(names) > MOST:
        return False
    steps = [cheapest_order(new)], [cheapest_order(y) for y in (node, x) if y.op is einsum]

    def share(numbers: Sequence[int]) -> float:
        known = dict(zip(names, numbers, strict=True))
        number: Number = lambda size: max(evaluate(size, known), 0)
        before = path_cost(x, steps[1][-1], number)
        if node.op is einsum:
            before += path_cost(node, steps[1][0], number)
        else:
            before += read_cost(node, number)
        return path_cost(new, steps[0][0], number) / max(before, 1.0)

    try:
        if share([TYPICAL] * len(names)) > LESS:
            return False
        return all(share(some) <= MORE for some in product((SMALL, LARGE), repeat=len(names)))
    except ValueError:  # sizes that these numbers do not fit
        return False


def read_cost(node: Node, number: Number) -> float:
    """The cost of a sum or diagonal, which reads its operand or writes its result."""
    places = [number(size) for size in node.inputs[0].type.shape]
    return float(MOVED * prod(places)) if node.op is sum_ else 0.0


def path_cost(node: Node, steps: Sequence[tuple[int, ...]], number: Number) -> float:
    """The cost of an einsum in the order of a path: its products, and the values that move."""
    sizes = {letter: number(size) for letter, size in letter_sizes(node).items()}
    terms = [frozenset(letters) for letters in node.attrs["operands"]]
    result, total = frozenset(node.attrs["result"]), 0.0
    for pair in steps:
        chosen = [terms[i] for i in pair]
        terms = [term for i, term in enumerate(terms) if i not in pair]
        wanted = result.union(*terms)
        moved = [*chosen]
        for i, term in enumerate(chosen):  # a letter that one alone has is summed first
            others = wanted.union(*chosen[:i], *chosen[i + 1 :])
            if term - others:
                chosen[i] = term & others
                moved.append(chosen[i])
        inside = frozenset[int]().union(*chosen)
        terms.append(inside & wanted)
        total += prod([sizes[letter] for letter in inside])
        for term in (*moved, terms[-1]):
            total += MOVED * prod([sizes[letter] for letter in term])
    return total
