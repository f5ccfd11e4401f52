"""Which tier runs a program: NumPy calls, and machine code from the call on where that pays.

It pays once NumPy has cost as much as machine code takes to make. Both are estimates, from the ops
of the program, its sizes and the steps of its loops: the call from which machine code runs depends
on these alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy.typing as npt

from graphcore.analysis.spending import Spending
from graphcore.ir.errors import GraphMemoryError
from graphcore.ir.graph import Graph
from graphcore.ir.locks import new_lock
from graphcore.ir.node import Node
from graphcore.ir.provenance import described_by
from graphcore.ops.schedule import kernel
from graphcore.rewrites.pipeline import without_collection

from .boundary import Boundary
from .numpy_backend import Function, Kernels, build

Array: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = "Callable[..., list[Array]]"
"""From the arguments of a call to the arrays of its results."""

LEAST = 2.0
"""The fewest operations, computed in another way, for which machine code gains something."""
NO_GAIN = "machine code would gain nothing"


def calls(function: Function, boundary: Boundary) -> Values:
    """A program that runs as NumPy calls."""
    bind, run = boundary.bind, function.__call__
    return lambda *args: run(*bind(args))


def native_lines(graph: Graph, unknowns: tuple[str, ...]) -> list[tuple[str, Sequence[Node]]]:
    """A graph with kernels as lines of text, each with the node that it computes.

    They are pseudo-code, below the NumPy calls if there are some.
    """
    from graphcore.backends import llvm_kernels
    from graphcore.backends.llvm_kernels.pseudocode import pseudo_lines

    if llvm_kernels.whole(graph) is not None:
        return pseudo_lines(graph)
    function = build(graph, unknowns, llvm_kernels.hosted)
    with described_by(graph.trace):
        kernels = [
            line
            for name, body in function.kernels.items()
            for line in [("", ()), *pseudo_lines(body, name)]
        ]
    return [*function.source_lines(), *kernels]


class Tier:
    """A way to run a program, which may change from call to call.

    Attributes
    ----------
    native
        Whether calls run as machine code by now.
    kernels
        The last graph, with the kernels that are machine code by then.
    """

    def __init__(self, graph: Graph, boundary: Boundary, native: bool = False) -> None:
        self.graph = self.kernels = graph
        self.boundary, self.native = boundary, native
        self.lock = new_lock()
        self.written: Function | None = None

    @property
    def function(self) -> Function:
        """The program as NumPy calls, and calls of its kernels, written when it is first needed."""
        with self.lock, without_collection():
            if self.written is None:
                self.written = build(self.graph, self.boundary.unknowns, self.kernel_maker())
            return self.written

    def kernel_maker(self) -> Kernels | None:
        """The function that makes machine code of the kernels in the graph, if it has some."""
        if kernel not in self.graph.ops():
            return None
        from graphcore.backends import llvm_kernels

        return llvm_kernels.hosted


class Fixed(Tier):
    """One tier for all calls, as the user asked: the NumPy calls, or machine code without them."""

    def begin(self, replace: Callable[[Values], None]) -> Values:
        """The program for its first call, which gives that for later calls to `replace`."""
        if self.native:
            from graphcore.backends import llvm_kernels  # loaded when machine code is asked for

            return llvm_kernels.build(self.graph, self.boundary.unknowns, self.boundary.bind)

        def first(*args: Any) -> list[Array]:
            values = calls(self.function, self.boundary)
            replace(values)
            return values(*args)

        return first

    def describe(self) -> str:
        """Which tier runs, and why."""
        return f"{'machine code' if self.native else 'NumPy calls'}, as native={self.native}"


class Tiers(Tier):
    """The costs of a program's calls, and its machine code once that pays.

    Machine code is made of `plain`, the graph before the passes that serve NumPy alone.
    """

    def __init__(self, graph: Graph, plain: Graph, boundary: Boundary) -> None:
        super().__init__(graph, boundary)
        self.plain = plain
        self.calls, self.spent, self.making = 0, 0.0, 0.0
        self.why = ""  # machine code is never made
        self.spending: Spending | None = None
        self.costs: dict[tuple[int, ...], tuple[float, ...]] = {}
        self.values: Values | None = None

    def begin(self, replace: Callable[[Values], None]) -> Values:
        """The program for its first call, which gives that for later calls to `replace`."""

        def first(*args: Any) -> list[Array]:
            values = (
                self.count_costs(replace) if self.gains() else calls(self.function, self.boundary)
            )
            replace(values)
            return values(*args)

        return first

    def gains(self) -> bool:
        """Whether machine code may gain something; what calls cost is known then."""
        if self.spending is None:
            self.spending = Spending(self.graph)
            self.making = self.spending.making
            if self.spending.work < LEAST:
                self.why = NO_GAIN
        return not self.why

    def count_costs(self, replace: Callable[[Values], None]) -> Values:
        """The program as NumPy calls whose costs are added up."""
        bind, costs, limit = self.boundary.bind, self.costs, self.making
        run: Callable[..., list[Array]] | None = None
        steps: list[int] = []

        def call(*args: Any) -> list[Array]:
            nonlocal run, steps
            arrays, sizes = bind(args)
            cost = costs.get(sizes) or self.cost(sizes)
            self.spent = spent = self.spent + cost[0]
            if spent >= limit:
                values = self.decide(sizes)
                replace(values)
                return values(*args)
            self.calls += 1
            if run is None:  # the first call may run as machine code
                steps, run = self.function.code.steps, self.function.__call__
            if not steps:
                return run(arrays, sizes)
            before = [*steps]
            results = run(arrays, sizes)
            for n, m, each in zip(before, steps, cost[1:], strict=True):
                self.spent += (m - n) * each
            return results

        return call

    def cost(self, sizes: tuple[int, ...]) -> tuple[float, ...]:
        """What a call of these sizes costs, and a step of each loop that finds its own end."""
        assert self.spending is not None
        known = dict(zip(self.boundary.unknowns, sizes, strict=True))
        loops = self.function.code.loops if self.spending.loops else ()
        found = self.costs[sizes] = self.spending.cost(loops, known)
        return found

    def decide(self, sizes: Sequence[int]) -> Values:
        """The program as machine code, which is made once; as NumPy calls where there is none.

        The code for a call of these sizes is there then.
        """
        with self.lock:
            if self.values is None:
                made = self.machine_code(sizes)
                self.values = made or calls(self.function, self.boundary)
                self.native = made is not None
            return self.values

    def machine_code(self, sizes: Sequence[int]) -> Values | None:
        """The program as machine code, if that can run here and computes some of the ops."""
        from graphcore.backends import llvm_kernels  # loaded by the first program that needs it

        if (why := llvm_kernels.unavailable()) is not None:
            self.why = why
            return None
        try:
            self.kernels = llvm_kernels.in_kernels(self.plain)
            if kernel not in self.kernels.ops():
                self.why = NO_GAIN
                return None
            boundary = self.boundary
            return llvm_kernels.build(self.kernels, boundary.unknowns, boundary.bind, sizes)
        except GraphMemoryError as error:
            self.why, _, _ = str(error).partition("\n")
            return None
        except Exception as error:  # nobody asked for machine code: the call goes on without it
            first, _, _ = str(error).partition("\n")
            self.why = f"machine code could not be made: {type(error).__name__}: {first}"
            said = f"{self.why}; the program stays with NumPy calls. Please report this defect."
            warnings.warn(said, RuntimeWarning, stacklevel=5)
            return None

    def describe(self) -> str:
        """Which tier runs, and why."""
        if self.native:
            return f"machine code since call {self.calls + 1}"
        if not self.gains():
            return f"NumPy calls: {self.why}"
        spent, making = self.spent * 1e3, self.making * 1e3
        return (
            f"NumPy calls; machine code once they cost {making:.3g} ms by estimate "
            f"({spent:.3g} ms in {self.calls:,} calls)"
        )
