"""The passes of a compilation as one list: their order, and the contracts of their results."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from inspect import unwrap
from itertools import count
from typing import NamedTuple

from graphcore.ir.contracts import Contract
from graphcore.ir.graph import Graph
from graphcore.ir.help_text import fields
from graphcore.ir.op import Op
from graphcore.ir.trace import Record, Trace, rule_name, tracing
from graphcore.ir.transform import unsettled_error
from graphcore.ops import autodiff
from graphcore.ops.control import LOOPS

from .accumulate import add_scattered
from .commuted import share_commuted
from .contraction import contraction
from .decompose import decomposition
from .engine import RuleSet, simplify
from .expand import expand_derivatives, mark_sources
from .functions import functions_of_matrices
from .logarithms import logarithms
from .loops import hoist, merge_loops, prune_loops, save_for_pullbacks, tidy_bodies
from .lower import lower_names
from .orders import join_contractions
from .scales import scale_less
from .shared_factors import share_factors
from .shields import drop_shields
from .stabilise import stabilise
from .structure import structure
from .tidy import tidy

Change = Callable[[Graph], Graph]


@fields
class Pass(NamedTuple):
    """One step of a compilation, named by what it has done, and the contract of its result."""

    name: str
    change: Change
    contract: Contract

    def __repr__(self) -> str:
        change = unwrap(self.change)
        rules = change.keywords["rules"] if isinstance(change, partial) else None
        return f"<Pass {self.name!r}: {rule_name(change) if rules is None else rules}>"


@fields
class Repeat(NamedTuple):
    """Passes run in turn until a round changes nothing; `at_most` so many rounds."""

    passes: Sequence[Pass]
    at_most: int

    def __repr__(self) -> str:
        return f"<Repeat {', '.join(step.name for step in self.passes)}: until nothing changes>"


@fields
class Stage(NamedTuple):
    """The result of a pass: its graph, its rewrites, the seconds it took, and what it does."""

    name: str
    graph: Graph
    records: Sequence[Record]
    seconds: float
    change: Change

    def __repr__(self) -> str:
        made = f"{len(self.graph):,} nodes, {len(self.records):,} rewrites"
        return f"<Stage {self.name!r}: {made}, {1000 * self.seconds:.2f} ms>"


def rewrite_by(*sets: RuleSet) -> Change:
    """The change that applies these rules, the first sets first, until none applies."""
    rules, *more = sets
    for some in more:
        rules |= some
    return partial(simplify, rules=rules)


def in_turn(first: Change, second: Change) -> Change:
    """Both changes, one after the other."""

    @wraps(second)
    def change_twice(graph: Graph) -> Graph:
        return second(first(graph))

    return change_twice


def where(ops: Collection[Op], change: Change) -> Change:
    """The change, made only to graphs in which one of these ops stands."""

    @wraps(change)
    def change_some(graph: Graph) -> Graph:
        return graph if graph.ops().isdisjoint(ops) else change(graph)

    return change_some


NAMED = Contract("leaf", "elementwise", "named", "autodiff", "control", named=True)
PLAIN = Contract("leaf", "elementwise", "tensor", "linalg", "autodiff", "control")
EXPANDED = Contract("leaf", "elementwise", "tensor", "linalg", "control")

tidied = Pass("tidied", rewrite_by(tidy), EXPANDED)
loops_pruned = Pass("loops pruned", prune_loops, EXPANDED)
moved_out = Pass("moved out of loops", hoist, EXPANDED)

products = Repeat(
    [
        Pass("contractions gathered", rewrite_by(tidy, contraction), EXPANDED),
        Pass("scaled less", scale_less, EXPANDED),
        Pass("contractions ordered", join_contractions, EXPANDED),
        Pass("decomposed", rewrite_by(decomposition, tidy), EXPANDED),
    ],
    at_most=100,
)
"""Contractions take in their views, then become matrix products; views meet views again.

That may show further contractions; programs need up to 4 rounds.
"""

Passes = list[Pass | Repeat]

COMMON: Passes = [
    Pass("named", lambda graph: graph, NAMED),
    Pass("sources marked", where({autodiff.barrier}, mark_sources), NAMED),
    Pass("lowered", lower_names, PLAIN),
    Pass(
        "simplified",
        in_turn(share_commuted, rewrite_by(stabilise, logarithms, structure, tidy)),
        PLAIN,
    ),
    # The derivative of a function of a matrix is not that of its eigenvectors.
    Pass("functions of matrices found", functions_of_matrices, PLAIN),
    Pass("expanded", expand_derivatives, EXPANDED),
    Pass("shields dropped", drop_shields, EXPANDED),
    loops_pruned,
    Pass("loops merged", where(LOOPS, merge_loops), EXPANDED),
    Pass("steps recorded", where(LOOPS, save_for_pullbacks), EXPANDED),
    Pass("bodies tidied", where(LOOPS, tidy_bodies), EXPANDED),
    moved_out,
    products,
    # Matrix products make views of captured values, which are moved out of loops again.
    moved_out,
    loops_pruned,
    products,
    Pass("factors shared", share_factors, EXPANDED),
    # An element is added at its place: a loop whose carry is updated walks no zeros.
    Pass("scattered added", add_scattered, EXPANDED),
    Pass("optimized", in_turn(share_commuted, tidied.change), EXPANDED),
]
"""The passes that our targets share, before those that serve the costs of one."""


def run(graph: Graph, passes: Passes) -> list[Stage]:
    """Every stage of a compilation, from the user's graph to the one that a backend takes."""
    found: list[Stage] = []
    trace = graph.trace or Trace(graph.lines())
    with tracing(trace):
        follow(graph, passes, trace, found)
    trace.known.clear()
    return found


def follow(
    graph: Graph, passes: Iterable[Pass | Repeat], trace: Trace, found: list[Stage]
) -> Graph:
    """The graph after passes in turn; each adds its stage to `found`."""
    for step in passes:
        if isinstance(step, Repeat):
            graph = repeat_passes(graph, step, trace, found)
            continue
        start, records, before = time.perf_counter(), len(trace.records), graph
        trace.moves.append([])
        graph = step.change(graph)
        if graph is not before:
            graph.trace = trace
        if graph is not before or not found:
            step.contract.check(graph, step.name)
        seconds = time.perf_counter() - start
        name = stage_name(step.name, found)
        found.append(Stage(name, graph, trace.records[records:], seconds, step.change))
    return graph


def stage_name(name: str, found: Iterable[Stage]) -> str:
    """The name of a stage: that of its pass, numbered from the second time on."""
    names = [stage.name for stage in found]
    numbers = (f"{name} {i}" for i in count(2))
    return name if name not in names else next(new for new in numbers if new not in names)


def repeat_passes(graph: Graph, repeat: Repeat, trace: Trace, found: list[Stage]) -> Graph:
    """The graph after the passes, which are repeated until it stays the same."""
    for _ in range(repeat.at_most):
        before, records = graph, len(trace.records)
        graph = follow(graph, repeat.passes, trace, found)
        if graph == before:
            return graph
    restless = next(y for y in graph.outputs if y not in before.outputs)
    raise unsettled_error(restless, trace.records[records:])


@contextmanager
def without_collection() -> Iterator[None]:
    """No cyclic garbage collection in this block: graphs have no cycles, but it would walk them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
