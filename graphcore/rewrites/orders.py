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
from functools import partial
from itertools import count, product
from math import prod

from graphcore.analysis.cost import TYPICAL, TargetCosts, letter_sizes
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

SIZES_TRIED = 4, 20_000
"""Numbers that an unknown size is tried with, besides `TYPICAL`."""
MOST_UNKNOWN_SIZES = 3
"""The most unknown sizes that are tried."""
SHARE_WHERE_TYPICAL, SHARE_ANYWHERE = 0.8, 1.25
"""The share of the cost that another order may take where sizes are typical, and anywhere."""
MOST_OPERANDS = 5
"""The most operands of a contraction whose order is searched for."""


def join_contractions(graph: Graph, costs: TargetCosts) -> Graph:
    """The graph whose contractions take in others, again and again, where that costs less."""
    while (new := join_one_level(graph, costs)) is not graph:
        graph = new
    return graph


def join_one_level(graph: Graph, costs: TargetCosts) -> Graph:
    """The graph in which each contraction has taken in at most one other."""
    nodes = graph.nodes()
    found = [x for x in nodes if x.op in RULES and any(y.op is einsum for y in x.inputs)]
    if not found and not any(x.op.dialect in WITH_BODIES for x in nodes):
        return graph
    uses = graph.uses()

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        rule, operands = RULES[node.op], zip(node.inputs, inputs, strict=True)
        alone = [y for x, y in operands if uses[x] == 1 and y.op is einsum]
        node = node.with_inputs(*inputs)
        for x in alone:
            new = rule(node, x)
            if new is not None and new.type == node.type and is_cheaper(new, node, x, costs):
                return rule, new
        return None

    return transform(graph, visit, at=RULES, bodies=partial(join_contractions, costs=costs))


def taken_in(node: Node, x: Node) -> Node | None:
    """einsum(einsum(x, y), z) = einsum(x, y, z)"""
    if len(node.inputs) + len(x.inputs) - 1 > MOST_OPERANDS:
        return None
    given = [*zip(node.inputs, node.attrs["operands"], strict=True)]
    i = node.inputs.index(x)
    given[i : i + 1] = unfold(x, given[i][1], count(1 + max(letter_sizes(node))))
    return contraction_of(given, node.attrs["result"])


def sum_of_contraction(node: Node, x: Node) -> Node | None:
    """The sum of an einsum over axes = the einsum without their letters in the result"""
    if x.type.dtype.kind not in "fc":  # a sum of integers has more bits
        return None
    kept = other_axes(node.attrs["axes"], x.type.ndim)
    result = tuple(x.attrs["result"][axis] for axis in kept)
    return einsum(*x.inputs, operands=x.attrs["operands"], result=result)


def diagonal_of_contraction(node: Node, x: Node) -> Node | None:
    """The diagonal of an einsum = the einsum with one letter for both of its axes"""
    _, *places = node.inputs
    axes = node.attrs["axes"]
    if x is not node.inputs[0] or len(places) != 2 or places[0] is not places[1]:
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
    return contraction_of(terms, (one, *rest))


def contraction_of(terms: Sequence[tuple[Node, Axes]], result: Axes) -> Node:
    """The einsum of operands with their letters."""
    return einsum(*[x for x, _ in terms], operands=tuple(own for _, own in terms), result=result)


RULES = {einsum: taken_in, sum_: sum_of_contraction, gather: diagonal_of_contraction}


# ---- costs


def is_cheaper(new: Node, node: Node, x: Node, costs: TargetCosts) -> bool:
    """Whether a contraction costs less than `node` and `x`, which it replaces."""
    sizes = [size for y in (new, node, x) for z in y.inputs for size in z.type.shape]
    names = sorted(set[str]().union(*map(unknowns, sizes)))
    if len(names) > MOST_UNKNOWN_SIZES:
        return False
    orders = {y: cheapest_order(y) for y in (new, node, x) if y.op is einsum}

    def share(numbers: Sequence[int]) -> float:
        known = dict(zip(names, numbers, strict=True))
        number: Number = lambda size: max(evaluate(size, known), 0)

        def cost(y: Node) -> float:
            products, moved = work(y, orders[y], number) if y in orders else (0, read(y, number))
            return products + float(costs.products_per_value * moved)

        return cost(new) / max(cost(x) + cost(node), 1.0)

    try:
        if share([TYPICAL] * len(names)) > SHARE_WHERE_TYPICAL:
            return False
        tried = product(SIZES_TRIED, repeat=len(names))
        return all(share(some) <= SHARE_ANYWHERE for some in tried)
    except ValueError:  # sizes that these numbers do not fit
        return False


def read(node: Node, number: Number) -> int:
    """The values that a sum or a diagonal moves: a diagonal is read in place."""
    return prod(map(number, node.inputs[0].type.shape)) if node.op is sum_ else 0


def work(node: Node, steps: Sequence[tuple[int, ...]], number: Number) -> tuple[int, int]:
    """The products of an einsum in the order of a path, and the values that it moves."""
    sizes = {letter: number(size) for letter, size in letter_sizes(node).items()}
    terms = [frozenset(letters) for letters in node.attrs["operands"]]
    result, products, values = frozenset(node.attrs["result"]), 0, 0
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
        products += prod([sizes[letter] for letter in inside])
        values += sum([prod([sizes[letter] for letter in term]) for term in (*moved, terms[-1])])
    return products, values
