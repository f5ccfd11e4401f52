"""`Compiled.profile`: measured calls, and what their steps took.

NumPy calls are measured one by one, and machine code by the meters of its nests. The time of a nest
is shared among its steps by their operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from time import perf_counter
from typing import Any

from graphcore.analysis.cost import Number, representative
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
from graphcore.ir import Graph, Size
from graphcore.ir.help_text import parameters
from graphcore.ir.provenance import described_by
from graphcore.ir.sizes import evaluate
from graphcore.schedule.regions import without_kernels

from .limits import limits, time_of_call
from .printing import silence
from .target import Program, Values

MOST_CALLS = 30
"""The most calls that are measured, if they take no longer than this many seconds together."""
MOST_SECONDS = 0.5


@parameters(
    program="What is measured.",
    shown="The graph of the stage whose names the steps have.",
    values="The program as it is called.",
    given="The arguments of a call.",
    target="What runs calls, and why.",
)
def profile(
    program: Program, shown: Graph, values: Values, given: Sequence[Any], target: str
) -> Profile:
    """Where the time of a call goes."""

    def call() -> object:
        return values(*given)

    call()  # the first call does some work only once, prints, and words errors
    _, sizes = program.boundary.bind_named(given)
    with silence():
        way = program.measure(given)
        measured, seconds, repeats, begin = way.measure(), time_of_call(call), 1, perf_counter()
        while repeats < MOST_CALLS and perf_counter() - begin < MOST_SECONDS:
            seconds, repeats = min(seconds, time_of_call(call)), repeats + 1
            measured = way.measure()
    seconds = min(seconds, measured)  # a call that is measured does all that others do
    machine = limits()
    with described_by(shown.trace):
        found = way.collect(measured - seconds, machine, sizes)
        number = numbers({**sizes, **found.trips})
        total = sum([x.seconds for x in found.runs]) + sum([x.seconds for x in found.nests])
        scale = min(1.0, seconds / total) if total else 1.0
        names = Names(shown, without_kernels(program.graph))
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
            target,
            machine,
            slowest(parts),
            by_line(steps),
            by_derivative(steps),
            slowest(nests),
            memory(shown, number),
        )


def numbers(known: Mapping[str, int]) -> Number:
    """The function from sizes to their numbers in a call."""

    @cache
    def number(size: Size) -> int:
        try:
            return max(evaluate(size, known), 0)
        except (KeyError, ValueError):  # of a loop that never ran
            return representative(size)

    return number
