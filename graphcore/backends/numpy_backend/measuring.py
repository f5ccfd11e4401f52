"""Times of NumPy calls, measured one by one, as times of the nodes that they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from graphcore.backends.limits import time_of_call
from graphcore.inspection.profile import Found, Machine, Run
from graphcore.ir import Node
from graphcore.ir.sizes import unknowns

from .function import Function
from .timed import Inside, Spent, Timed, look_twice


class Lines:
    """NumPy calls, each of which is measured."""

    def __init__(self, function: Function, bound: tuple[list[Any], tuple[int, ...]]) -> None:
        self.function, self.bound = function, bound
        self.timed = function.run_as(Timed)
        assert isinstance(self.timed.running, Timed)
        self.running = self.timed.running
        self.seconds = inf
        self.spent: list[Spent] = []
        self.blocks: list[Inside] = []
        self.steps: list[int] = []

    def measure(self) -> float:
        """Measure a call once more; the seconds of the fastest so far."""
        self.running.reset()
        before = [*self.function.code.steps]
        seconds = time_of_call(lambda: self.timed(*self.bound))
        if seconds < self.seconds:
            self.seconds = seconds
            self.spent, self.blocks = self.running.collect()
            after = self.function.code.steps
            self.steps = [n - m for n, m in zip(after, before, strict=True)]
            self.keep()
        return self.seconds

    def keep(self) -> None:
        """Keep what else was found in the last call."""

    def collect(self, cost: float, machine: Machine, sizes: Mapping[str, int]) -> Found:
        """What ran in the fastest call, which took `cost` seconds longer than usual."""
        runs = of_nodes(*without_looks(self.spent, self.blocks, cost))
        return Found(runs, [], [], trips(self.function, self.spent, self.steps))


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
    """The times of lines and blocks, less those of looks at the clock, at most `cost` seconds.

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


def trips(function: Function, found: Sequence[Spent], steps: Sequence[int]) -> dict[str, int]:
    """The steps that loops have found, by the names of these sizes.

    A loop within another counts as many steps as it has on average.
    """
    sizes = {}
    for loop, count in zip(function.code.loops, steps, strict=True):
        if (size := loop.attrs["trips"]) is not None:
            (name,) = unknowns(size)
            sizes[name] = round(count / max(times(loop, found), 1))
    return sizes


def times(loop: Node, found: Sequence[Spent]) -> int:
    """How often a loop began: once for each step of the loop around it."""
    for line, _, _ in found:
        around = [*line.steps.values()]  # the innermost first
        if loop in around:
            outer = around[around.index(loop) + 1 :]
            counts = [x.calls for x in found if [*x.line.steps.values()] == outer]
            return max(counts, default=1) if outer else 1
    return 1
