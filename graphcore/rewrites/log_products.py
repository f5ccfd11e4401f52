"""Logarithms of sums of exponentials as products, where these need fewer exponentials.

    logsumexp_i(a[i] + b[i, j]) = log(sum_i(exp(a[i] - m) exp(b[i, j] - n[j]))) + m + n[j]

with m and n the largest values over i. The sum is a product of a vector and a matrix. Where `b` is
the same at all steps of a loop, as the transitions of a hidden Markov model are, its exponentials
are computed before the loop.

A product of exponentials may be too small for its dtype. Where all sums are at least the root of
the smallest normal number, terms that are lost change them by less than rounding does. Elsewhere,
and where anything is infinite or nan, the program computes the left side. Found before
differentiation, so that derivatives are products as well; the largest values count as constants,
as nothing depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from graphcore.analysis.cost import TargetCosts, representative
from graphcore.ir import INT, Graph, Literal, Node, Rule, Shape, full_like, toposort
from graphcore.ir.transform import substitute, transform
from graphcore.ops import autodiff, control, leaf, tensor
from graphcore.ops import elementwise as e
from graphcore.ops.control import LOOPS, Loop, LoopOperand

from . import plain
from .einsums import single
from .loops.placement import Steps
from .loops.view import new_param, unused_names
from .plain import Axes
from .terms import Fixed, Part, Term, spread, terms_of

LESS = 2
"""As many times fewer exponentials a product must need."""


def two_parts(terms: Sequence[Term], fixed: Fixed) -> tuple[Part, Part] | None:
    """The terms in two parts: the first lacks an axis, and the second too unless it is fixed."""
    still = [term for term in terms if all(map(fixed, term.parts()))]
    moving = [term for term in terms if term not in still]
    if not still:
        most = {*max(terms, key=lambda term: len(term.letters)).letters}
        still = [term for term in terms if most.issuperset(term.letters)]
        moving = [term for term in terms if term not in still]
        if Part.of(still).letters == Part.of(terms).letters:
            return None
    if not still or not moving or Part.of(moving).letters == Part.of(terms).letters:
        return None
    return Part.of(moving), Part.of(still)


class Found(NamedTuple):
    """A logsumexp that is worth to be a product: the parts of its operand."""

    node: Node
    parts: tuple[Part, Part]
    fixed: bool
    """Whether the second part is the same at all steps."""
    rest: Sequence[Term]
    """Terms that are the same along the axes summed over."""


def found_in(node: Node, fixed: Fixed, fewest: int) -> Found | None:
    """The parts of a logsumexp, if a product saves exponentials.

    Half precision is left alone: the root of its smallest normal number is above a rounding.
    """
    (x,), axes = node.inputs, {*node.attrs["axes"]}
    if x.type.dtype.name not in ("float32", "float64") or x.type.dtype != node.type.dtype:
        return None
    terms = terms_of(x, fixed)
    if terms is None or len(terms) < 2:
        return None
    inside = [term for term in terms if not axes.isdisjoint(term.letters)]
    parts = two_parts(inside, fixed) if len(inside) > 1 else None
    if parts is None or not axes <= {*Part.of(inside).letters}:
        return None

    def places(letters: Iterable[int]) -> int:
        return math.prod(representative(x.type.shape[letter]) for letter in letters)

    moving, still = parts
    every = places(Part.of(inside).letters)
    left = places(moving.letters)
    once = all(map(fixed, still.nodes()))
    if not once:
        left += places(still.letters)
    if every < fewest or every < LESS * left:
        return None
    return Found(node, parts, once, [term for term in terms if term not in inside])


class Product(NamedTuple):
    """The logarithm of a sum of exp(a + b), by the `power` exp(b - n) and n, the largest of b."""

    of_a: Axes
    """The letters of the axes of a."""
    of_b: Axes
    axes: set[int]
    """The letters summed over."""
    shape: Shape
    """The sizes of the letters."""

    @property
    def result(self) -> Axes:
        """The letters that are left."""
        return tuple(sorted({*self.of_a, *self.of_b} - self.axes))

    def over(self, letters: Axes) -> Axes:
        """The positions of the letters summed over among some."""
        return tuple(axis for axis, letter in enumerate(letters) if letter in self.axes)

    def left(self, m: Node, letters: Axes) -> Node:
        """What is largest of a value of these letters, in the shape of the result."""
        letters = tuple(letter for letter in letters if letter not in self.axes)
        return spread(m, letters, self.result, self.shape)

    def exponentials(self, x: Node, letters: Axes) -> tuple[Node, Node]:
        """m = max(x) and exp(x - m); m is no -inf, so that nothing is nan where x is -inf."""
        over = self.over(letters)
        lowest = Literal(np.finfo(x.type.dtype).min, x.type.dtype)
        m = autodiff.stop_gradient(tensor.max_(x, axes=over, initial=lowest))
        return m, e.exp(x - plain.unsum(m, over, x))

    def sums(self, a: Node, power: Node) -> tuple[Node, Node, Node, Node]:
        """max(a), exp(a - max(a)), its product with the power, and whether that is large enough."""
        m, top = self.exponentials(a, self.of_a)
        s = tensor.einsum(top, power, operands=(self.of_a, self.of_b), result=self.result)
        large = e.greater_equal(s, full_like(s, math.sqrt(np.finfo(s.type.dtype).tiny)))
        if self.result:
            large = tensor.all_(large, axes=tuple(range(len(self.result))))
        return m, top, s, e.cast(large, dtype=INT)

    def whole(self, a: Node, b: Node) -> tuple[Node, Axes]:
        """a + b, and the letters of its axes."""
        letters = tuple(sorted({*self.of_a, *self.of_b}))
        a, b = spread(a, self.of_a, letters, self.shape), spread(b, self.of_b, letters, self.shape)
        return a + b, letters

    def value(self, a: Node, b: Node, power: Node, n: Node) -> Node:
        """The logarithm, by the product if all sums are large enough."""
        m, _, s, large = self.sums(a, power)

        def direct(a: Node, b: Node, s: Node, highest: Node) -> list[Node]:
            x, letters = self.whole(a, b)
            return [tensor.logsumexp(x, axes=self.over(letters))]

        def product(a: Node, b: Node, s: Node, highest: Node) -> list[Node]:
            return [e.log(s) + highest]

        highest = self.left(m, self.of_a) + self.left(n, self.of_b)
        return choice(large, [direct, product], a, b, s, highest)[0]

    def pullback(self, a: Node, b: Node, power: Node, ct: Node) -> tuple[Node, Node, Node]:
        """The cotangents of a, b and the power: of the last two one is 0, as the other is used.

        All factors of those by the product are finite, and 0 where it is not taken.
        """
        _, top, s, large = self.sums(a, power)

        def direct(a: Node, b: Node, power: Node, top: Node, s: Node, ct: Node) -> list[Node]:
            x, letters = self.whole(a, b)
            axes = self.over(letters)
            part = tensor.multiply_no_nan(plain.unsum(ct, axes, x), tensor.softmax(x, axes=axes))
            shares = [single(part, letters, own) for own in (self.of_a, self.of_b)]
            return [*shares, full_like(top, 0), full_like(s, 0)]

        def product(a: Node, b: Node, power: Node, top: Node, s: Node, ct: Node) -> list[Node]:
            g = ct / s
            back = tensor.einsum(power, g, operands=(self.of_b, self.result), result=self.of_a)
            return [top * back, full_like(b, 0), top, g]

        ct_a, ct_b, top, g = choice(large, [direct, product], a, b, power, top, s, ct)
        operands = self.of_a, self.result
        return ct_a, ct_b, tensor.einsum(top, g, operands=operands, result=self.of_b)


def choice(index: Node, ways: Sequence[Callable[..., list[Node]]], *given: Node) -> list[Node]:
    """The results of one of several functions of some nodes."""
    params = tuple(leaf.param(f"given {i}", x.type) for i, x in enumerate(given))
    branches = tuple(Graph(params, tuple(way(*params))) for way in ways)
    return leaf.values(control.switch(index, *given, branches=branches))


def log_product(found: Found, outside: Callable[[Node], Node]) -> Node:
    """logsumexp(a + b) = log(sum(exp(a - max(a)) exp(b - max(b)))) + max(a) + max(b)

    `outside` gives the value in a body of a node that is computed before the loop.
    """
    node, parts, _, rest = found
    axes, shape = node.attrs["axes"], node.inputs[0].type.shape
    made = Product(parts[0].letters, parts[1].letters, {*axes}, shape)
    a, b = (part.value(shape) for part in parts)
    n, power = made.exponentials(b, made.of_b)
    finite = plain.unsum(e.less(n, full_like(n, math.inf)), made.over(made.of_b), b)
    power = plain.where(finite, power, 0)
    given = a, outside(b), outside(power), outside(n)
    names = "a", "b", "power", "highest"
    params = [leaf.param(name, x.type) for name, x in zip(names, given, strict=True)]
    value = made.value(*params)
    y, ct = leaf.param("result", value.type), leaf.param("ct", value.type)
    back = made.pullback(params[0], params[1], params[2], ct)
    total = control.custom(
        *given,
        body=Graph(tuple(params), (value,)),
        rule=Graph((*params, y, ct), (*back, full_like(params[3], 0))),
        forward=None,
        apart=((),) * 5,
    )[0]
    letters = tuple(plain.other_axes(axes, len(shape)))
    total = spread(total, made.result, letters, shape)
    for term in rest:
        total = total + spread(term.value(), term.letters, letters, shape)
    return total


def same_node(x: Node) -> Node:
    """The node itself."""
    return x


def log_products(graph: Graph, costs: TargetCosts) -> Graph:
    """The graph in which logarithms of sums of exponentials are products, where that is less."""
    fewest = costs.exponentials_of_choice
    return graph if fewest is None else with_products(graph, fewest)


def with_products(graph: Graph, fewest: int) -> Graph:
    """The same, of sums of so many exponentials or more."""
    if tensor.logsumexp not in graph.ops():
        return graph

    def visit(node: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if node.op in LOOPS:
            return log_products, products_of_steps(Node(node.op, inputs, node.attrs), fewest)
        found = found_in(node.with_inputs(*inputs), lambda x: False, fewest)
        return None if found is None else (log_product, log_product(found, same_node))

    inside = partial(with_products, fewest=fewest)
    return transform(graph, visit, at={tensor.logsumexp, *LOOPS}, bodies=inside)


def products_of_steps(node: Node, fewest: int) -> Node:
    """The loop, with products in its steps by exponentials that are computed before it.

    What needs no carry is left alone: it is computed of all steps at once.
    """
    loop, body = Loop.of(node), node.attrs["body"]
    if tensor.logsumexp not in body.ops():
        return node
    steps = Steps(loop, body)
    names = unused_names("fixed", loop)
    carries, captured = {*loop.params.carries}, {*loop.params.captured}
    early: set[Node] = set()
    for x in toposort(loop.roots):
        if x not in carries and early.issuperset(x.inputs):
            early.add(x)
    moved: dict[Node, Node] = {}

    def fixed(x: Node) -> bool:
        return not steps.varies(x)

    def outside(x: Node) -> Node:
        if x in captured:
            return x
        if x not in moved:
            moved[x] = new_param(next(names), x)
        return moved[x]

    def visit(x: Node, inputs: tuple[Node, ...]) -> tuple[Rule, Node] | None:
        if x.op in LOOPS:
            return log_products, products_of_steps(Node(x.op, inputs, x.attrs), fewest)
        found = None if x in early else found_in(x.with_inputs(*inputs), fixed, fewest)
        if found is None or early.issuperset(found.parts[0].nodes()):
            return None
        return log_product, log_product(found, outside if found.fixed else same_node)

    roots = Graph((), loop.roots)
    at = {tensor.logsumexp, *LOOPS}
    made = transform(roots, visit, at=at, bodies=partial(with_products, fewest=fewest)).outputs
    given = dict(loop.captured)
    more = map(LoopOperand, moved.values(), substitute(moved, given))
    return loop._replace(captured=(*loop.captured, *more)).with_roots(made).build()
