"""Machine code that measures itself: how often each of its steps runs, and for how long.

The clock of the processor is read once where a step ends and the next one begins. The time since
the last reading goes to the step between, so that no time is counted twice: that of a loop is its
own, without the steps of its body. Time in kernels that a kernel calls goes to their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from graphcore.backends.boundary import Bind
from graphcore.ir import Graph, Node
from graphcore.ir.help_text import attributes
from graphcore.ir.sizes import evaluate
from graphcore.ops import leaf
from graphcore.ops.schedule import kernel
from graphcore.schedule.regions import in_place, sizes_needed

from . import counts_of, entrance, machine_of, written
from .codegen import GraphWriter
from .elementary import compiled
from .entrance import CallableKernel, Cell, Hosted, Meter, ticks_per_second
from .failures import Machine
from .kernel_calls import place
from .loops import CONTROL
from .machine import finished
from .nests import Check, Nest, Step
from .rows import Chain, Pair, Rows
from .writer import Homes, Shared, Writer


@attributes(
    roots="The nodes whose values it stores; the loop, branch or routine that it is.",
    inside="All nodes that it computes, the last ones last; none if it checks positions.",
    reads="The stored values that it reads.",
    turn="The loop body, if this is the time that the loop takes around the steps of its body.",
    calls="The kernels called around it, the outermost first.",
)
class Timing(NamedTuple):
    """A step of a kernel whose time is taken."""

    roots: tuple[Node, ...]
    inside: tuple[Node, ...]
    reads: tuple[Node, ...]
    turn: Graph | None = None
    calls: tuple[Node, ...] = ()

    def outside(self, node: Node) -> Node:
        """The node of the program that one in a called kernel stands for."""
        for called in reversed(self.calls):
            node = stand_for(called).get(node, node)
        return node


stand_for = cache(in_place)


class Meters:
    """The meters of a kernel, one for each step, and the loops and branches around what runs."""

    def __init__(self, program: Shared) -> None:
        self.program = program
        self.around: list[Node] = []
        self.at: dict[Timing, int] = {}
        self.last = self.new(Cell())

    def new(self, *slots: entrance.Slot) -> int:
        """The place in the table of new slots."""
        p = self.program
        p.slots += slots
        return len(p.slots) - len(slots) + p.first

    def read(self, w: Writer, timing: Timing | None) -> None:
        """Read the clock, and add the time since the last reading to a step, if there is one."""
        b = w.b
        for name, type in (("@llvm.readcyclecounter", "i64"), ("@llvm.x86.sse2.lfence", "void")):
            b.declared[name] = f"declare {type} {name}()"
        b.do("call void @llvm.x86.sse2.lfence()")  # once all before is computed
        last = place(w, self.last)
        now = b.now("i64", "call i64 @llvm.readcyclecounter()")
        if timing is not None:
            if timing not in self.at:
                self.at[timing] = self.new(Meter(timing), Cell())
            before = b.now("i64", f"load i64, {last.typed}")
            spent = b.now("i64", f"sub i64 {now.text}, {before.text}")
            for n, more in enumerate((spent.text, "1"), self.at[timing]):
                cell = place(w, n)
                sum = b.now("i64", f"load i64, {cell.typed}")
                total = b.now("i64", f"add i64 {sum.text}, {more}")
                b.do(f"store {total.typed}, {cell.typed}")
        b.do(f"store {now.typed}, {last.typed}")


class Metered(GraphWriter):
    """Writes a graph that measures itself."""

    @property
    def meters(self) -> Meters:
        """The meters of the kernel."""
        if self.program.meters is None:
            self.program.meters = Meters(self.program)
        found: Meters = self.program.meters
        return found

    def graph(self, graph: Graph, *given: Any, **options: Any) -> None:
        """All steps of a graph; time before the first one belongs to the loop or branch around."""
        meters, turn = self.meters, None
        if meters.around:
            around = (meters.around[-1],)
            turn = Timing(around, around, (), graph)
        meters.read(self, turn)
        super().graph(graph, *given, **options)

    def step(self, step: Step, homes: Homes) -> None:
        """One step of a graph, between two readings of the clock."""
        timing, meters, slots = self.timing(step), self.meters, self.program.slots
        op, begin = step.op if isinstance(step, Node) else None, len(slots)
        if op in CONTROL and op is not kernel:
            meters.around += timing.roots
            super().step(step, homes)
            meters.around.pop()
        else:
            super().step(step, homes)
        if op is kernel:
            for at, slot in enumerate(slots[begin:], begin):
                if isinstance(slot, Meter):
                    calls = (*timing.roots, *slot.of.calls)
                    slots[at] = Meter(slot.of._replace(calls=calls))
        meters.read(self, None if op is kernel else timing)

    def timing(self, step: Step) -> Timing:
        """What a step computes and reads."""
        if isinstance(step, Check):
            return Timing((step.node,), (), (step.node.inputs[-1],))
        if isinstance(step, Nest):
            roots = step.roots
        else:
            roots = [*step.made] if isinstance(step, Rows | Pair | Chain) else [step]
        known = self.places.buffers.keys() | self.places.numbers.keys()
        inside: dict[Node, None] = {}
        reads: dict[Node, None] = {}
        waiting = [(root, False) for root in roots]
        while waiting:
            node, ready = waiting.pop()
            if ready:
                inside[node] = None
            elif node in known or node.op is leaf.project:
                reads[node] = None
            elif node not in inside:
                waiting += [
                    (node, True),
                    *[(x, False) for x in node.inputs if x.inputs or x in known],
                ]
        return Timing(tuple(roots), tuple(inside), tuple(reads))


class Spent(NamedTuple):
    """How often a step ran in one call, and for how many seconds."""

    timing: Timing
    calls: int
    seconds: float


def metered(graph: Graph, unknowns: tuple[str, ...], known: Mapping[str, int]) -> Machine:
    """The machine code of a graph that measures itself; equal pieces are compiled once.

    It looks for signals in nests if calls with the `known` sizes may take long.
    """
    made: dict[Graph, Machine] = {}
    counts = counts_of(graph, frozenset(known))
    patient = any(evaluate(n, known) >= entrance.HUGE_NEST for n in counts)

    def machine(body: Graph, names: tuple[str, ...]) -> Machine:
        if body not in made:
            ir, program = written(body, names, patient, writer=Metered, piece=piece)
            made[body] = machine_of(body, names, program, finished(compiled(ir, "kernel")))
        return made[body]

    def piece(body: Graph) -> Machine:
        return machine(body, sizes_needed(body))

    return machine(graph, unknowns)


@attributes(
    call="Its function: of the arguments of a program if there is a `bind` for them; else of "
    "sizes, operands and arrays for the results.",
)
class Measured:
    """A kernel that measures itself."""

    def __init__(self, made: Machine, bind: Bind | None = None) -> None:
        kernel = made.kernel
        program = Hosted(kernel, failed) if bind is None else CallableKernel(kernel, bind, failed)
        self._program = program
        self.call: Callable[..., Any] = program.entrance()
        first = program.places.end - len(kernel.slots)
        slots = enumerate(kernel.slots, first)
        self._timings = {at: slot.of for at, slot in slots if isinstance(slot, Meter)}

    def reset(self) -> None:
        """Forget what has been measured."""
        for words in self._program.idle:
            for at in self._timings:
                words[at : at + 2] = 0

    def found(self) -> list[Spent]:
        """What each step has taken since the last reset."""
        rate, idle = ticks_per_second(), self._program.idle
        spent = []
        for at, timing in self._timings.items():
            ticks, calls = [sum([int(words[at + n]) for words in idle]) for n in (0, 1)]
            spent.append(Spent(timing, calls, ticks / rate))
        return spent


def failed(record: list[int], known: dict[str, int]) -> Exception:
    """The error of a kernel that fails though it has run with the same arguments before."""
    return RuntimeError(f"a kernel has failed when it ran once more, at site {record[0]}")
