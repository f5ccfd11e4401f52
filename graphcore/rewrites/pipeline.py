"""The passes, in order, each followed by the contract its result obeys."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from graphcore.ir.contracts import Contract
from graphcore.ir.graph import Graph

from .accumulate import accumulate
from .algebra import algebra
from .contraction import contraction
from .decompose import decompose
from .engine import Firing, RuleSet, simplify, unsettled
from .expand import expand_derivatives, is_lazy
from .factors import share_factors
from .functions import functions_of_matrices
from .layout import short_axes_first
from .loops import hoist, prune_loops, tidy_loops
from .lower import lower_names
from .motion import motion
from .stabilise import stabilise
from .structure import structure


class Stage(NamedTuple):
    """What a pass made: its graph, the rules that fired, and the seconds it took."""

    name: str
    graph: Graph
    firings: tuple[Firing, ...]
    seconds: float

    def __repr__(self) -> str:
        made = f"{len(self.graph):,} nodes, {len(self.firings):,} rules fired"
        return f"<Stage {self.name!r}: {made}, {1000 * self.seconds:.2f} ms>"


Pass = Callable[[Graph, list[Firing]], Graph]


def rewriting(*sets: RuleSet) -> Pass:
    """The pass that applies these rules, the first sets first, until none fires."""
    rules = RuleSet()
    for some in sets:
        rules |= some
    return lambda graph, firings: simplify(graph, rules, firings)


ROUNDS = 100
"""Rounds in which contractions may still come to light; programs need up to 4."""


def finish(graph: Graph, firings: list[Firing]) -> Graph:
    """Contractions take in their views, then become matrix products; views meet views again.

    What that brings to light may be a contraction in its turn, so all of it goes to a fixed point.
    """
    for _ in range(ROUNDS):
        start = len(firings)
        gathered = gather_products(graph, firings)
        decomposed = decompose(gathered)
        if decomposed == gathered:
            return gathered
        tidied = tidy(decomposed, firings)
        if tidied == graph:
            return tidied
        graph = tidied
    changed = next(y for y in graph.outputs if y not in gathered.outputs)
    raise unsettled(changed, firings[start:])


def optimize(graph: Graph, firings: list[Firing]) -> Graph:
    """Loops share their work and give up what need not be done at each step; then all is finished.

    Matrix products bring views of what loops capture to light, so these are moved out again. At
    last ops on one matrix share its factors, and sums are added up in place.
    """
    graph = finish(prune_loops(hoist(tidy_loops(graph))), firings)
    if (moved := hoist(graph)) != graph:
        graph = finish(prune_loops(moved), firings)
    return tidy(accumulate(share_factors(graph)), firings)


def expanded(graph: Graph, firings: list[Firing]) -> Graph:
    """Derivatives as plain ops; that of a function of a matrix is not that of its eigenvectors."""
    if is_lazy(graph):
        graph = functions_of_matrices(graph, firings)
    return expand_derivatives(graph)


gather_products = rewriting(algebra, motion, contraction)
tidy = rewriting(algebra, motion)

NAMED = Contract("leaf", "elementwise", "named", "autodiff", "control", named=True)
PLAIN = Contract("leaf", "elementwise", "tensor", "linalg", "autodiff", "control")
EXPANDED = Contract("leaf", "elementwise", "tensor", "linalg", "control")

PASSES: list[tuple[str, Pass, Contract]] = [
    ("named", lambda graph, _: graph, NAMED),
    ("lowered", lambda graph, _: lower_names(graph), PLAIN),
    ("simplified", rewriting(stabilise, structure, algebra, motion), PLAIN),
    ("expanded", expanded, EXPANDED),
    ("optimized", optimize, EXPANDED),
    ("scheduled", lambda graph, _: short_axes_first(graph), EXPANDED),
]


def run(graph: Graph) -> list[Stage]:
    """Every stage of compilation, from what the user said to what a backend takes."""
    stages = []
    for name, work, contract in PASSES:
        start = time.perf_counter()
        firings: list[Firing] = []
        graph = work(graph, firings)
        contract.check(graph, name)
        stages.append(Stage(name, graph, tuple(firings), time.perf_counter() - start))
    return stages
