"""`Compiled.profile`: measured calls, and what their steps took.

NumPy calls, and the calls of kernels among them, are measured one by one. A program that is one
function of machine code is measured as a whole: its steps are counted as NumPy runs them, and its
time is shared among them by cost.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from functools import cache, partial
from time import perf_counter
from typing import Any

import numpy as np

from graphcore.analysis.cost import Number, representative
from graphcore.inspection.places import Places
from graphcore.inspection.profile import (
    BETWEEN,
    Machine,
    Part,
    Profile,
    Run,
    by_derivative,
    by_line,
    memory,
    slowest,
    step_of,
    work,
)
from graphcore.ir.axes import Reduces
from graphcore.ir.graph import Graph
from graphcore.ir.node import Node
from graphcore.ir.provenance import described_by
from graphcore.ir.sizes import Size, evaluate, unknowns
from graphcore.ops import elementwise

from .boundary import Boundary
from .numpy_backend import Function, build
from .numpy_backend.printing import silence
from .numpy_backend.timed import Inside, Spent, Timed, look_twice
from .tiers import Values, calls

MOST = 30
"""The most calls that are measured, if they take no longer than this many seconds together."""
LONGEST = 0.5
STEP, OPERATION = 1e-9, 0.1e-9
"""The seconds that a step of machine code is estimated to take at least, and that an operation of a
nest takes."""


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
    hosted, whole = None, False
    if kernels is not None:
        from . import llvm_kernels

        whole = llvm_kernels.whole(kernels) is not None
        if not whole:
            graph, hosted = kernels, llvm_kernels.hosted
    function = build(graph, boundary.unknowns, hosted)
    if kernels is None:
        values = calls(function, boundary)

    def call() -> object:
        return values(*given)

    call()  # what it does only once, what it prints, and its errors in the user's words
    with silence():
        timed = function.run_as(Timed)
        running = timed.running
        assert isinstance(running, Timed)
        steps = function.code.steps

        def measured() -> tuple[float, list[Spent], list[Inside]]:
            running.reset()
            return clocked(lambda: timed(*boundary.bind(given))), *running.found()

        before = [*steps]
        best, found, blocks = measured()
        trips = [after - was for after, was in zip(steps, before, strict=True)]
        seconds, repeats, begin = clocked(call), 1, perf_counter()
        while repeats < MOST and perf_counter() - begin < LONGEST:
            seconds, repeats = min(seconds, clocked(call)), repeats + 1
            if not whole and (again := measured())[0] < best:
                best, found, blocks = again
        _, sizes = boundary.bind(given)
        number = numbers(function, sizes, found, trips)
        machine = limits()
        with described_by(graph.trace):
            runs = of_nodes(*without_looks(found, blocks, best - seconds))
            scale = 1.0
            if whole:
                best = seconds
                runs = shared(runs, seconds, number, machine)
            else:
                seconds = min(seconds, best)  # a call that is measured does all that others do
                scale = fitting(runs, seconds)
                runs = [run._replace(seconds=run.seconds * scale) for run in runs]
            places = Places(graph)
            parts = [step_of(run, places, number, machine, whole) for run in runs]
            rest = max(seconds - sum([x.seconds for x in parts]), 0.0)
            if not whole:
                parts.append(Part(BETWEEN, "", None, rest, 0, 0, 0.0, 0.0, False))
            return Profile(
                seconds,
                best,
                scale,
                repeats,
                tier,
                machine,
                slowest(parts),
                by_line(parts, linecache.getline),
                by_derivative(parts, linecache.getline),
                memory(graph, number),
            )


def clocked(call: Callable[[], object]) -> float:
    """The seconds that a call takes."""
    begin = perf_counter()
    call()
    return perf_counter() - begin


def of_nodes(found: Sequence[Spent], blocks: Sequence[Inside]) -> list[Run]:
    """The nodes that ran, those of each loop by themselves.

    The time of a loop or branch that no line takes is its own; that of one within another counts to
    the outermost. Lines of a node in a row belong to one run of it; where they come again, a body
    that holds it runs again.
    """
    groups: dict[Any, Run] = {}
    previous, earlier = None, 0
    for line, count, nanoseconds in found:
        key = line.node, *line.steps
        run = groups.get(key, Run(line.node, 0, 0.0))
        if line.comment:  # others read a number of an array, or make room for a result
            if key != previous:
                previous, earlier = key, run.calls
            run = run._replace(calls=max(run.calls, earlier + count))
        groups[key] = run._replace(seconds=run.seconds + nanoseconds * 1e-9)
    for node, times, nanoseconds, _ in blocks:
        run = groups.get((node,), Run(node, 0, 0.0))
        groups[node,] = Run(node, run.calls + times, run.seconds + nanoseconds * 1e-9)
    return [run for run in groups.values() if run.calls or run.seconds]


def without_looks(
    found: Sequence[Spent], blocks: Sequence[Inside], cost: float
) -> tuple[list[Spent], list[Inside]]:
    """What lines and blocks took, without what looks at the clock added, at most `cost` seconds.

    A part of the time of two looks counts to the line between them, the rest to the code around it.
    """
    within, every = look_twice()
    looks = max(sum([x.calls for x in found]), 1)
    share = min(max(cost, 0.0) * 1e9 / (looks * every), 1.0)
    within, around = share * within, share * (every - within)
    return (
        [x._replace(nanoseconds=max(x.nanoseconds - within * x.calls, 0.0)) for x in found],
        [x._replace(nanoseconds=max(x.nanoseconds - around * x.looks, 0.0)) for x in blocks],
    )


def fitting(runs: Sequence[Run], seconds: float) -> float:
    """The number that makes the times of runs fit into a call, 1 where they do."""
    total = sum([run.seconds for run in runs])
    return min(1.0, seconds / total) if total else 1.0


def shared(runs: Sequence[Run], seconds: float, number: Number, machine: Machine) -> list[Run]:
    """The time of a call, shared among its nodes by what they cost."""
    costs = [estimate(run, number, machine) for run in runs]
    total = sum(costs)
    return [
        run._replace(seconds=seconds * own / total if total else 0.0)
        for run, own in zip(runs, costs, strict=True)
    ]


def estimate(run: Run, number: Number, machine: Machine) -> float:
    """The seconds of a node in machine code, where nests keep what they compute in registers."""
    spent, op = work(run, number), run.node.op
    in_nest = op in elementwise.UFUNC or isinstance(op.axes, Reduces)
    own = spent.flops * OPERATION if in_nest else machine.least(run, spent)
    return own + STEP * run.calls


def numbers(
    function: Function, sizes: Sequence[int], found: Sequence[Spent], trips: Sequence[int]
) -> Number:
    """The function from sizes to their numbers in a call, the steps that loops have found included.

    A loop within another counts as many steps as it has on average.
    """
    known = dict(zip(function.unknowns, sizes, strict=True))
    for loop, steps in zip(function.code.loops, trips, strict=True):
        if (size := loop.attrs["trips"]) is not None:
            (name,) = unknowns(size)
            known[name] = round(steps / max(times(loop, found), 1))

    @cache
    def number(size: Size) -> int:
        try:
            return max(evaluate(size, known), 0)
        except (KeyError, ValueError):  # of a loop that never ran
            return representative(size)

    return number


def times(loop: Node, found: Sequence[Spent]) -> int:
    """How often a loop began: once for each step of the loop around it."""
    for line, _, _ in found:
        around = [*line.steps.values()]  # the innermost first
        if loop in around:
            outer = around[around.index(loop) + 1 :]
            counts = [x.calls for x in found if [*x.line.steps.values()] == outer]
            return max(counts, default=1) if outer else 1
    return 1


@cache
def limits() -> Machine:
    """What this machine can do at most, measured once in a process."""
    flops, copies = [], []
    for side in SIDES:
        a, out = np.ones((side, side)), np.empty((side, side))
        flops.append(2 * side**3 / fastest(partial(np.dot, a, a, out)))
    for bytes in COPIES:
        x, y = np.ones(bytes // 16), np.ones(bytes // 16)
        copies.append((bytes, bytes / fastest(partial(np.copyto, y, x))))
    return Machine(max(flops), tuple(copies))


def fastest(call: Callable[[], object]) -> float:
    """The seconds of the fastest of several calls, after a first one."""
    call()
    best, begin = clocked(call), perf_counter()
    while perf_counter() - begin < PATIENCE:
        best = min(best, clocked(call))
    return best


PATIENCE = 10e-3
"""How many seconds one kind of call is measured."""
SIDES = 64, 128, 256, 512
"""The sides of the matrices that are multiplied: small ones run on one core, as others are busy."""
COPIES = tuple([2**n for n in range(15, 27)])
"""The numbers of bytes of the copies that are measured, those that are read and those written."""
