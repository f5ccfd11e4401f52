"""Times of machine code: of its nests, as measured, and of the nodes within them, as estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from graphcore.analysis.cost import Number
from graphcore.backends.boundary import Boundary
from graphcore.backends.limits import time_of_call
from graphcore.backends.measuring import numbers
from graphcore.backends.numpy_backend import CompiledKernel, build
from graphcore.backends.numpy_backend.measuring import Lines
from graphcore.inspection.profile import Found, Machine, Ran, Run, work
from graphcore.ir import Graph, Node
from graphcore.ir.axes import Reduces
from graphcore.ir.sizes import unknowns
from graphcore.ops import elementwise
from graphcore.ops.schedule import kernel
from graphcore.schedule.buffers import is_result
from graphcore.schedule.regions import inline, sizes_needed

from . import single_kernel
from .meters import Measured, Spent, metered

STEP, OPERATION = 1e-9, 0.1e-9
"""The seconds that a node is estimated to take at least, and that an operation in a nest takes."""


def measured(graph: Graph, boundary: Boundary, given: Sequence[Any]) -> Whole | Mixed:
    """A graph with kernels as it is measured in calls with these arguments."""
    _, sizes = boundary.bind_named(given)
    if (called := single_kernel(graph)) is None:
        return Mixed(graph, boundary, given, sizes)
    body = called.attrs["body"]
    return Whole(Measured(metered(body, boundary.unknowns, sizes), boundary.convert), given)


class Whole:
    """A program that is one kernel."""

    def __init__(self, measured: Measured, given: Sequence[Any]) -> None:
        self.measured, self.given, self.seconds = measured, given, inf
        self.spent: list[Spent] = []
        measured.call(*given)  # makes memory for others

    def measure(self) -> float:
        """Measure a call once more; the seconds of the fastest so far."""
        self.measured.reset()
        if (seconds := time_of_call(lambda: self.measured.call(*self.given))) < self.seconds:
            self.seconds, self.spent = seconds, self.measured.found()
        return self.seconds

    def collect(self, cost: float, machine: Machine, sizes: Mapping[str, int]) -> Found:
        """What ran in the fastest call, which took `cost` seconds longer than usual."""
        ran, steps = nests(without_looks(self.spent, cost)), trips(self.spent)
        return Found([], ran, shares(ran, numbers({**sizes, **steps}), machine), steps)


class Mixed(Lines):
    """NumPy calls with kernels among them, which measure themselves."""

    def __init__(
        self, graph: Graph, boundary: Boundary, given: Sequence[Any], sizes: Mapping[str, int]
    ) -> None:
        self.graph = graph
        self.kernels: dict[Graph, Measured] = {}
        self.inside: dict[Graph, list[Spent]] = {}

        def make_kernel(body: Graph) -> CompiledKernel:
            names = sizes_needed(body)
            if body not in self.kernels:
                self.kernels[body] = Measured(metered(body, names, sizes))
            return CompiledKernel(names, self.kernels[body].call)

        bound = boundary.convert(given)
        function = build(graph, boundary.unknowns, make_kernel)
        function(*bound)  # makes memory for others
        super().__init__(function, bound)

    def measure(self) -> float:
        """Measure a call once more; the seconds of the fastest so far."""
        for measured in self.kernels.values():
            measured.reset()
        return super().measure()

    def keep(self) -> None:
        """Keep what kernels have found."""
        self.inside = {body: measured.found() for body, measured in self.kernels.items()}

    def collect(self, cost: float, machine: Machine, sizes: Mapping[str, int]) -> Found:
        """What ran in the fastest call; the call of a kernel itself is no step."""
        every, _, _, steps = super().collect(cost, machine, sizes)
        plain: dict[Node, Node] = {}
        inline(self.graph, plain)
        runs = [x._replace(node=plain.get(x.node, x.node)) for x in every if not is_call(x.node)]
        ran = []
        for spent in self.inside.values():
            steps |= trips(spent)
        called = [x for x in every if x.node.op is kernel]
        for run in called:
            body = run.node.attrs["body"]
            alike = sum([x.calls for x in called if x.node.attrs["body"] is body])
            within = nests(self.inside[body], [run.node])
            share = run.calls / max(alike, 1)
            total = sum([x.seconds for x in within]) * share
            fit = share * (min(1.0, run.seconds / total) if total else 1.0)
            ran += [
                x._replace(calls=round(x.calls * share), seconds=x.seconds * fit) for x in within
            ]
        return Found(runs, ran, shares(ran, numbers({**sizes, **steps}), machine), steps)


def is_call(node: Node) -> bool:
    """Whether a node is the call of a kernel, or one of its values."""
    return node.op is kernel or is_result(node)


def nests(spent: Sequence[Spent], called: Sequence[Node] = ()) -> list[Ran]:
    """The nests, loops and routines that ran in a kernel, or in the one that is `called`.

    A loop has the time of its turns that no step in it takes.
    """
    found: dict[tuple[Node, ...], Ran] = {}
    for timing, calls, seconds in spent:
        if not calls:
            continue
        timing = timing._replace(calls=(*called, *timing.calls))
        roots, inside, reads = [
            tuple(map(timing.outside, some)) for some in (timing.roots, timing.inside, timing.reads)
        ]
        ran = found.get(roots, Ran(roots, (), (), 0, 0.0))
        if inside and timing.turn is None:
            ran = ran._replace(inside=inside, reads=reads, calls=ran.calls + calls)
        found[roots] = ran._replace(seconds=ran.seconds + seconds)
    return [*found.values()]


def trips(spent: Sequence[Spent]) -> dict[str, int]:
    """The steps of the loops that find their own ends, by the names of these sizes, on average."""
    begun: dict[Node, int] = {}
    turns: dict[Node, int] = {}
    for timing, calls, _ in spent:
        (node, *_) = timing.roots
        if timing.turn is None:
            begun[node] = begun.get(node, 0) + calls
        elif timing.turn is node.attrs.get("body"):
            turns[node] = turns.get(node, 0) + calls
    found = {}
    for node, count in turns.items():
        if (size := node.attrs.get("trips")) is not None:
            (name,) = unknowns(size)
            found[name] = round(count / max(begun.get(node, 0), 1))
    return found


def without_looks(spent: Sequence[Spent], cost: float) -> list[Spent]:
    """The times of steps without those of reading the clock, which take at most `cost` together.

    No step is shorter than one reading.
    """
    ran = [x for x in spent if x.calls]
    shortest = min([x.seconds / x.calls for x in ran], default=0.0)
    each = min(max(cost, 0.0) / max(sum([x.calls for x in ran]), 1), shortest)
    return [x._replace(seconds=max(x.seconds - each * x.calls, 0.0)) for x in spent]


def shares(ran: Sequence[Ran], number: Number, machine: Machine) -> list[Run]:
    """The nodes that nests compute; they share the time of their nest in proportion to their costs.

    A node that several nests compute is counted once.
    """
    found: dict[Node, Run] = {}
    for at, nest in enumerate(ran):
        costs = {
            x: estimate(run, number, machine)
            for x in nest.inside
            if work(run := Run(x, nest.calls, 0.0), number) != (0.0, 0.0)
        }
        costs = costs or dict.fromkeys(nest.roots, 1.0)
        total = sum(costs.values())
        for x, cost in costs.items():
            run = found.get(x, Run(x, 0, 0.0))
            found[x] = Run(
                x,
                max(run.calls, nest.calls),
                run.seconds + nest.seconds * cost / total,
                run.estimated or len(costs) > 1,
                run.nests | {at},
            )
    return [*found.values()]


def estimate(run: Run, number: Number, machine: Machine) -> float:
    """The estimated seconds of a node in machine code, where a nest keeps values in registers."""
    spent, op = work(run, number), run.node.op
    in_nest = op in elementwise.UFUNC or isinstance(op.axes, Reduces)
    own = spent.flops * OPERATION if in_nest else machine.least(run, spent)
    return own + STEP * run.calls
