"""`Compiled.profile`: measured calls, and what their steps took.

NumPy calls are measured one by one, and machine code by the meters of its nests. The time of a nest
is shared among its steps by their operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from graphcore.inspection.memory import memory
from graphcore.inspection.profile import (
    BETWEEN,
    Names,
    Part,
    Profile,
    Steps,
    by_derivative,
    by_line,
    nest_of,
    slowest,
    step_of,
)
from graphcore.ir.graph import Graph
from graphcore.ir.provenance import described_by
from graphcore.schedule.regions import without_kernels

from .boundary import Boundary
from .limits import limits, time_of_call
from .numpy_backend import build
from .numpy_backend.measuring import Lines, Way, numbers
from .printing import silence
from .tiers import Values, calls

MOST = 30
"""The most calls that are measured, if they take no longer than this many seconds together."""
LONGEST = 0.5


def profile(
    graph: Graph,
    kernels: Graph | None,
    boundary: Boundary,
    values: Values,
    given: Sequence[Any],
    tier: str,
) -> Profile:
    """Where the time of a call goes.

    Parameters
    ----------
    graph, kernels
        The scheduled graph, and the same graph with kernels if calls run as machine code.
    boundary
        Checks and binds the arguments of a call.
    values
        The program as it is called.
    given
        The arguments of a call.
    tier
        The tier that runs calls, and why.
    """
    function = None
    if kernels is None:
        function = build(graph, boundary.unknowns)
        values = calls(function, boundary)

    def call() -> object:
        return values(*given)

    call()  # the first call does some work only once, prints, and words errors
    bound = boundary.bind(given)
    sizes = dict(zip(boundary.unknowns, bound[1], strict=True))
    with silence():
        way: Way
        if function is not None:
            way = Lines(function, bound)
        elif kernels is not None:
            from .llvm_kernels.measuring import way_for  # loaded where there is machine code

            way = way_for(kernels, boundary, given, sizes)
        measured, seconds, repeats, begin = way.measure(), time_of_call(call), 1, perf_counter()
        while repeats < MOST and perf_counter() - begin < LONGEST:
            seconds, repeats = min(seconds, time_of_call(call)), repeats + 1
            measured = way.measure()
    seconds = min(seconds, measured)  # a call that is measured does all that others do
    machine = limits()
    with described_by(graph.trace):
        found = way.collect(measured - seconds, machine, sizes)
        number = numbers({**sizes, **found.trips})
        total = sum([x.seconds for x in found.runs]) + sum([x.seconds for x in found.nests])
        scale = min(1.0, seconds / total) if total else 1.0
        names = Names(graph, graph if kernels is None else without_kernels(kernels))
        runs = [*found.runs, *found.shares]
        parts = [step_of(run, names, number, machine, scale) for run in runs]
        rest = max(seconds - sum([x.seconds for x in parts]), 0.0)
        parts.append(Part(BETWEEN, "", None, rest, 0, 0, 0.0, 0.0))
        steps = Steps(parts, [*[run.nests for run in runs], frozenset()])
        nests = [nest_of(ran, names, number, machine, scale) for ran in found.nests]
        return Profile(
            seconds,
            measured,
            scale,
            repeats,
            tier,
            machine,
            slowest(parts),
            by_line(steps),
            by_derivative(steps),
            slowest(nests),
            memory(graph, number),
        )
