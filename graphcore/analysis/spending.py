"""The seconds that a program takes as NumPy calls, and those that making machine code takes.

Machine code pays once NumPy has cost as much as making it. Both costs are estimates, from the ops
of a program and from its sizes, so that no clock decides: equal calls give equal decisions. Their
constants come from measuring the programs of benchmarks/programs, and most of these estimates are
within a factor of two of the measured time.

Only ops that machine code computes in another way are counted. Products of matrices, unless they
are many small ones, sorts, factorisations and Fourier transforms count as their calls alone, since
the routines are the same or as quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from graphcore.ir.axes import Along, Indexes, Matrices, Receives, Reduces
from graphcore.ir.graph import Graph, graphs
from graphcore.ir.node import Node
from graphcore.ir.op import Trait
from graphcore.ir.sizes import Size, count, evaluate, substitute, unknowns
from graphcore.ir.types import TensorType
from graphcore.ops import control, elementwise, leaf, tensor

from .cost import weight

Terms: TypeAlias = dict[Size, float]
"""Seconds for each unit of a size."""

NUMBER = 0.03e-6
"""An operation on single numbers."""
VIEW = 0.35e-6
CALL = 0.7e-6
"""A call of NumPy on arrays, without its time for each value."""
REDUCTION = 1.8e-6
INDEXING = 3e-6
ROUTINE = 4e-6
"""A call of LAPACK, of a sort or of a transform."""
LOOP = 2.0
"""The number of operations that a loop or branch counts as, and an op that gains alone."""
STEP = 0.2e-6
"""A step of a loop without its body; each carry adds to it."""
VALUE = {1: 0.5e-9, 10: 4e-9, 50: 20e-9}
"""An elementwise op for each value, by the weight that `cost` gives it."""
READ = 0.4e-9
"""A reduction for each value."""
MOVED = 0.6e-9
"""An op that moves values, for each value."""
MATRIX = 35e-9
"""A small matrix product of a batch: NumPy calls BLAS for each, or runs along short rows."""
SMALL = 64
"""How many products of numbers such a matrix product has at most."""
SEARCHED = 30e-9
"""A value that is searched for in a row of values, or whose position in order is found."""
PICKED = 4e-9
"""A value that is picked by its position, or written to one."""


class Spending:
    """The costs of one call: of the program, and of a step of each loop that finds its own end.

    `work` are the operations that machine code computes in another way, as many as a call makes if
    all loops have one step.
    """

    def __init__(self, graph: Graph) -> None:
        self.terms: Terms = {}
        self.loops: dict[Node, Terms] = {}
        self.work = 0.0
        self.making = MAKING
        self.found = {
            name: node
            for node in graph.every_node()
            if node.op is control.while_loop and node.attrs["trips"] is not None
            for name in unknowns(node.attrs["trips"])
        }
        self.computed = computed_at_most(graph)
        self._graph(graph, 1, 1.0, self.terms)

    def _graph(self, graph: Graph, times: Size, share: float, into: Terms) -> None:
        for node in graph.nodes():
            self.making += made_in(node)
            if bodies := graphs(node):
                self._count_bodies(node, bodies, times, share, into)
                continue
            own, seconds, values = parts(node)
            self._add(into, times, share * own)
            self._add(into, times * values, share * seconds)
            if gains_alone(node):
                self.work += LOOP
            elif own > VIEW and not is_routine(node):
                self.work += 1.0
            elif own == NUMBER:
                self.work += 0.1

    def _count_bodies(
        self, node: Node, bodies: Sequence[Graph], times: Size, share: float, into: Terms
    ) -> None:
        """Count a loop, a branch, or a body that is computed once."""
        self.work += LOOP
        if node.op is control.while_loop:
            times, into = 1, self.loops.setdefault(node, {})
        elif node.op is control.scan:
            times = times * node.attrs["length"]
        elif node.op is control.switch:
            share /= len(bodies)
        self._add(into, times, share * STEP * (1 + 0.3 * node.attrs.get("carries", 0)))
        for body in bodies:
            self._graph(body, times, share, into)

    def _add(self, into: Terms, times: Size, seconds: float) -> None:
        """Count seconds; those that grow with the steps of a loop are a part of one step."""
        times = substitute(times, self.computed)
        for name in unknowns(times) & self.found.keys():
            into = self.loops.setdefault(self.found[name], {})
            times = substitute(times, {name: 1})
        if seconds and times != 0:
            into[times] = into.get(times, 0.0) + seconds

    def cost(self, loops: Sequence[Node], known: Mapping[str, int]) -> tuple[float, ...]:
        """The seconds of a call of these sizes, and those of a step of each loop."""
        return tuple(
            [total(terms, known) for terms in (self.terms, *[self.loops[x] for x in loops])]
        )


def computed_at_most(graph: Graph) -> dict[str, Size]:
    """For each size that is computed a guess: as many as the values it is computed from."""
    guesses: dict[str, Size] = {}
    for node in graph.nodes():
        if node.op is leaf.as_size:
            x = node
            while x.inputs and not x.type.shape:
                x = x.inputs[0]
            (name,) = node.attrs["size"].unknowns
            guesses[name] = substitute(x.type.count, guesses)
    return guesses


def total(terms: Terms, known: Mapping[str, int]) -> float:
    """The sum of terms at known sizes; a size without a value there, which calls refuse, is 0."""
    found = 0.0
    for size, seconds in terms.items():
        with suppress(ValueError):
            found += seconds * max(evaluate(size, known), 0)
    return found


def is_free(node: Node) -> bool:
    """Whether a node is a value as it is given."""
    leaves = leaf.input_, leaf.project, leaf.constant
    return Trait.FREE in node.op.traits or node.op in leaves


def is_routine(node: Node) -> bool:
    """Whether machine code and NumPy call the same routine for an op, or one as quick."""
    kind = node.op.axes
    moves = isinstance(kind, Along) and kind.moves and node.op is not tensor.argsort
    return moves or isinstance(kind, Matrices)


def gains_alone(node: Node) -> bool:
    """Whether machine code beats NumPy at an op alone, with nothing fused.

    NumPy calls a function for each short row of a reduction and for each small matrix of a batch,
    waits in recurrences for each result, and sorts positions by comparing values.
    """
    kind = node.op.axes
    runs = isinstance(kind, Reduces) or (isinstance(kind, Along) and not kind.moves)
    return runs or node.op in SEARCHES or is_batch_of_small(node)


def is_batch_of_small(node: Node) -> bool:
    """Whether a node is many small products, for which machine code has own loops."""
    if (rank := RANKS.get(node.op)) is None or node.type.ndim <= rank:
        return False
    places = count((*node.type.shape[node.type.ndim - rank :], node.inputs[0].type.shape[-1]))
    return isinstance(places, int) and places <= SMALL


RANKS = {tensor.matmul: 2, tensor.matvec: 1, tensor.vecdot: 0}
"""How many axes of the result of a product are not batch."""
SEARCHES = {tensor.argsort, tensor.searchsorted}


def parts(node: Node) -> tuple[float, float, Size]:
    """The seconds of a call, those for each value, and the number of values."""
    kind, several = node.op.axes, not isinstance(node.type, TensorType)
    if is_free(node):
        return 0.0, 0.0, 0
    made = 0 if several else node.type.count
    if is_batch_of_small(node):
        return CALL, MATRIX, count(node.type.shape[: node.type.ndim - RANKS[node.op]])
    if Trait.PRODUCT in node.op.traits:
        return CALL, 0.0, 0
    if several or is_routine(node):
        return ROUTINE, 0.0, 0
    if node.op in SEARCHES:
        return ROUTINE, SEARCHED, made
    if Trait.VIEW in node.op.traits:
        return VIEW, 0.0, 0
    if not any(x.type.shape for x in (node, *node.inputs)):
        return NUMBER, 0.0, 0
    if node.op in elementwise.UFUNC:
        return CALL, VALUE[weight(node.op)], made
    if isinstance(kind, Reduces):
        return REDUCTION, READ, node.inputs[0].type.count
    if isinstance(kind, Indexes | Receives):
        return INDEXING, PICKED, node.inputs[-1].type.count if isinstance(kind, Receives) else made
    return 2 * CALL, MOVED, made


MAKING = 8e-3
"""Seconds for machine code of the smallest program, which is made quickly first."""
ELEMENTWISE, OTHER, FOLDED, SOLVED = 0.03e-3, 0.55e-3, 2.5e-3, 3.5e-3
"""Seconds for machine code of an elementwise op, of one that moves values, of a reduction or
product, and of a factorisation or solution."""


def made_in(node: Node) -> float:
    """How many seconds machine code of a node takes to make, that of the graphs it holds aside."""
    if is_free(node) or graphs(node):
        return 0.0
    if node.op.dialect == "linalg":
        return SOLVED
    if node.op in elementwise.UFUNC:
        return ELEMENTWISE
    return FOLDED if isinstance(node.op.axes, Reduces | Matrices) else OTHER
