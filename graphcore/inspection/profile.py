"""The answer of `Compiled.profile`: what a call spends, where, and which values fill the memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphcore.analysis.cost import Cost, Number, bytes_of, cost, weight
from graphcore.ir.graph import Graph, graphs
from graphcore.ir.node import Node
from graphcore.ir.op import Trait
from graphcore.ir.provenance import Origin, basename
from graphcore.ops import control, elementwise, leaf
from graphcore.ops.schedule import kernel
from graphcore.schedule.buffers import can_overwrite, roots
from graphcore.schedule.order import in_order

from .places import Places
from .text import folded, one_line


class Machine(NamedTuple):
    """What this machine can do at most, as measured with NumPy.

    Attributes
    ----------
    flops
        Floating-point operations in a second, of a product of matrices.
    copies
        Numbers of bytes, in ascending order, and how many are read and written in a second by a
        copy that moves so many: caches hold few of them.
    """

    flops: float
    copies: tuple[tuple[int, float], ...]

    def least(self, run: Run, spent: Cost) -> float:
        """The seconds that a node takes at least in a call.

        An elementwise function counts as one operation here, since machines differ in what it
        takes.
        """
        op = run.node.op
        flops = spent.flops / weight(op) if op in elementwise.UFUNC else spent.flops
        each = spent.bytes / max(run.calls, 1)
        rate = next((rate for bytes, rate in self.copies if bytes >= each), self.copies[-1][1])
        return max(flops / self.flops, spent.bytes / rate)


class Run(NamedTuple):
    """A node that ran in a call: how often, and for how many seconds."""

    node: Node
    calls: int
    seconds: float


@dataclass(frozen=True)
class Part:
    """A part of a call: a step, a line of the user's, or a derivative.

    Attributes
    ----------
    name
        The name of the step in the stage that runs, "%3"; the line, "model.py:9"; for a derivative
        the line that asked for it; "between steps" for all that belongs to no step.
    says
        The step as the stage prints it; the source of the line.
    line
        The user's line.
    seconds
        The time in one call.
    calls
        How often steps of it run in one call.
    bytes, flops
        The bytes read and written, and floating-point operations; an op counts for each value as
        one of them, ten (functions of NumPy, division, roots) or fifty (special functions).
    least
        The seconds that its operations, or a copy of as many bytes, take on this machine.
    estimated
        Whether `seconds` is estimated: a share, by cost, of a time that is measured as a whole. The
        bytes are then those that NumPy calls would move.
    """

    name: str
    says: str
    line: Origin | None
    seconds: float
    calls: int
    bytes: int
    flops: float
    least: float
    estimated: bool

    @property
    def limit(self) -> float | None:
        """The share of the machine's limit that it reaches; None where no time is measured."""
        return self.least / self.seconds if self.seconds and not self.estimated else None


class Held(NamedTuple):
    """A value in memory: its step, its bytes, and the user's line."""

    name: str
    bytes: int
    line: Origin | None


@dataclass(frozen=True)
class Memory:
    """The bytes of the values that a call holds at the same time, arguments and constants aside.

    They follow from the order of the steps and from the sizes of the call, each step as one call
    of NumPy; machine code keeps fewer values.

    Attributes
    ----------
    peak
        The most bytes.
    at
        The step at which they are held.
    holders
        The values that are held there, the largest first.
    timeline
        The bytes held at each step, in order.
    """

    peak: int
    at: str
    holders: tuple[Held, ...]
    timeline: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Profile:
    """Where the time of a call goes; printed, it is tables, the slowest part first.

    Attributes
    ----------
    seconds
        The time of a call; `steps` add up to it.
    measured
        The time of a call with two looks at the clock for each step. What they take is taken off
        the steps again.
    scale
        The number that the times of steps are multiplied by, 1 at most. Steps that are measured one
        by one take longer together than a call, those of loops up to half as long again; what
        remains after the looks at the clock are taken off is scaled so that they fit into the call.
    repeats
        The number of calls of each kind; both times are those of the fastest.
    tier
        Which tier ran.
    machine
        What the machine can do at most.
    steps, lines, derivatives
        The parts of the call in three ways, the slowest first. "between steps" are the checks of
        arguments, loops and branches themselves, and results.
    memory
        The bytes held over time.
    """

    seconds: float
    measured: float
    scale: float
    repeats: int
    tier: str
    machine: Machine
    steps: tuple[Part, ...]
    lines: tuple[Part, ...]
    derivatives: tuple[Part, ...]
    memory: Memory

    def __repr__(self) -> str:
        return self.text()

    def text(self, limit: int | None = 12) -> str:
        """The tables, of `limit` rows each; None shows all."""
        cost, copies = self.measured - self.seconds, self.machine.copies
        taken = f"; measuring took {show_time(cost)} more, taken off here" if cost > 0 else ""
        rates = " to ".join([f"{copies[at][1] / 1e9:.3g}" for at in (-1, 0)])
        head = [
            f"{show_time(self.seconds)} a call, the fastest of {self.repeats:,}{taken}",
            f"runs as {self.tier}",
            f"limits of this machine: {self.machine.flops / 1e9:.3g} GFLOP/s, {rates} GB/s",
        ]
        if self.scale < 0.995:
            head += [f"the times of steps, too long together, are multiplied by {self.scale:.2f}"]
        if any(part.estimated for part in self.steps):
            head += ["~ is estimated by cost, within a time measured as a whole"]
        parts = (("step", self.steps), ("line", self.lines), ("derivative", self.derivatives))
        tables = [table(name, some, self.seconds, limit) for name, some in parts]
        peak = f"memory: at most {show_bytes(self.memory.peak)}"
        if self.memory.holders:
            peak += f", at {self.memory.at}"
        held = [
            f"  {show_bytes(x.bytes):>8}  {x.name}  {place(x.line)}" for x in self.memory.holders
        ]
        rows = [row for rows in tables for row in ("", *rows)]
        return "\n".join([*head, *rows, "", peak, *folded(held, limit)])


def table(name: str, parts: Sequence[Part], whole: float, limit: int | None) -> list[str]:
    """Parts as the rows of a table below its head."""
    head = (name, "time", "share", "calls", "bytes", "flops", "limit", "")
    rows = [head, *[row(part, whole, name == "step") for part in parts]]
    widths = [max(len(line[i]) for line in rows) for i in range(len(head))]
    lines = []
    for line in rows:
        cells = zip(line, widths, strict=True)
        shown = [f"{x:>{n}}" if 0 < i < 7 else f"{x:<{n}}" for i, (x, n) in enumerate(cells)]
        lines.append("  ".join(shown).rstrip())
    return [lines[0], *folded(lines[1:], limit)]


def row(part: Part, whole: float, is_step: bool) -> tuple[str, ...]:
    """The columns of one part."""
    mark = "~" if part.estimated else ""
    says = f"{part.says}  {place(part.line)}" if is_step and part.line else part.says
    counted = bool(part.bytes or part.flops)
    return (
        part.name,
        f"{mark}{show_time(part.seconds)}",
        f"{part.seconds / whole:.1%}" if whole else "",
        f"{part.calls:,}" if part.calls else "",
        show_bytes(part.bytes) if counted else "",
        f"{part.flops:,.0f}" if counted else "",
        f"{part.limit:.0%}" if counted and part.limit is not None else "",
        says,
    )


def place(line: Origin | None) -> str:
    """A line of the user's, and those that asked for derivatives."""
    return "" if line is None else line.shown(False, 2, lambda name: one_line(name, 24))


def show_time(seconds: float) -> str:
    """A time to three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def show_bytes(count: float) -> str:
    """A number of bytes to three digits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            break
        count /= 1000
    return f"{count:.3g} {unit}"


# ---- the parts of a call


def work(run: Run, number: Number) -> Cost:
    """The cost of the calls of a node; the bodies of loops and branches are steps by themselves."""
    if graphs(run.node) and run.node.op is not kernel:
        return Cost()
    return cost(run.node, number).times(run.calls)


def step_of(run: Run, places: Places, number: Number, machine: Machine, estimated: bool) -> Part:
    """A node as a part of the call."""
    node, spent = run.node, work(run, number)
    least = machine.least(run, spent)
    found = places.of.get(node)
    name, says = (node.said, "") if found is None else (found.name, one_line(found.line, 70))
    says = says.removeprefix(f"{name}: ")
    sizes = int(spent.bytes), float(spent.flops), least
    return Part(name, says, node.origin, run.seconds, run.calls, *sizes, estimated)


BETWEEN = "between steps"


def gathered(
    parts: Iterable[Part],
    key: Callable[[Origin], Hashable],
    named: Callable[[Origin], tuple[str, str, Origin]],
) -> tuple[Part, ...]:
    """Steps with equal keys as one part each, the slowest first."""
    groups: dict[Hashable, list[Part]] = {}
    for step in parts:
        groups.setdefault(None if step.line is None else (key(step.line),), []).append(step)
    made = []
    for some in groups.values():
        line = some[0].line
        if line is None:
            made += some
            continue
        name, says, origin = named(line)
        whole = Part(
            name,
            says,
            origin,
            sum([x.seconds for x in some]),
            sum([x.calls for x in some]),
            sum([x.bytes for x in some]),
            sum([x.flops for x in some]),
            sum([x.least for x in some]),
            any(x.estimated for x in some),
        )
        made.append(whole)
    return slowest(made)


def slowest(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Parts, the slowest first."""
    return tuple(sorted(parts, key=lambda part: -part.seconds))


def by_line(parts: Iterable[Part], source: Callable[[str, int], str]) -> tuple[Part, ...]:
    """The parts of a call by the user's lines, derivatives of a line included."""

    def named(line: Origin) -> tuple[str, str, Origin]:
        name = f"{one_line(basename(line.file), 24)}:{line.line}"
        return name, one_line(source(line.file, line.line).strip(), 100), line._replace(via=None)

    return gathered(parts, lambda line: line[:2], named)


def by_derivative(parts: Iterable[Part], source: Callable[[str, int], str]) -> tuple[Part, ...]:
    """The parts of a call by the line that asked for a derivative; "no derivative" is one part."""

    def asked(line: Origin) -> Origin | None:
        by = line.via
        while by is not None and by.via is not None and by[:2] == line[:2]:
            by = by.via  # the derivative of a loop's body, which the loop asked for
        return by

    def named(line: Origin) -> tuple[str, str, Origin]:
        if (by := asked(line)) is None:
            return "no derivative", "", line
        return place(by), one_line(source(by.file, by.line).strip(), 100), by

    return gathered(parts, lambda line: (by := asked(line)) and place(by), named)


# ---- memory


def memory(graph: Graph, number: Number) -> Memory:
    """The values that a call holds over time."""
    places = Places(graph)

    def held(node: Node) -> Held:
        found = places.of.get(node)
        name = node.said if found is None else found.name
        return Held(name, bytes_of(node.type, number), node.origin)

    timeline: list[tuple[str, int]] = []
    most, at, holders = 0, "", [*()]
    for node, nodes in moments(graph, number):
        total = bytes_held(nodes, number)
        timeline.append((held(node).name, total))
        if total > most:
            most, at, holders = total, timeline[-1][0], nodes
    ordered = sorted([x for x in map(held, holders) if x.bytes], key=lambda x: -x.bytes)
    return Memory(most, at, tuple(ordered), tuple(timeline))


def moments(graph: Graph, number: Number) -> Iterator[tuple[Node, list[Node]]]:
    """Each step of a graph, and the nodes whose values are in memory while it runs.

    While a loop runs, these are its results, and what its body holds at most.
    """
    nodes = in_order(graph.nodes())
    root = roots(nodes)
    last = {root[x]: step for step, node in enumerate(nodes) for x in node.inputs}
    last |= {root[x]: len(nodes) for x in graph.outputs}
    alive: dict[Node, None] = {}
    for step, node in enumerate(nodes):
        dying = [x for x in dict.fromkeys([root[x] for x in node.inputs]) if last[x] == step]
        if root[node] is node and takes_memory(node, graph):
            over = next((x for x in dying if x in alive and can_overwrite(node, x, root)), None)
            if over is not None:
                del alive[over]
            alive[node] = None
            held = [most_held(body, number) for body in graphs(node)]
            if node.op is control.switch:
                held = [max(held, key=lambda nodes: bytes_held(nodes, number))]
            inner = [x for nodes in held for x in nodes]
            yield node, [*alive, *inner]
        for x in dying:
            alive.pop(x, None)
        if node not in last:
            alive.pop(node, None)


def takes_memory(node: Node, graph: Graph) -> bool:
    """Whether the result of a node is new memory: no argument, no constant, no view."""
    given = node.op in (leaf.input_, leaf.constant) or node in graph.params
    return not given and not node.op.traits & {Trait.FREE, Trait.VIEW}


def most_held(body: Graph, number: Number) -> list[Node]:
    """The nodes of a body whose values are in memory when they are most."""
    return max(
        [nodes for _, nodes in moments(body, number)],
        key=lambda nodes: bytes_held(nodes, number),
        default=[],
    )


def bytes_held(nodes: Iterable[Node], number: Number) -> int:
    """The bytes of the values of some nodes together."""
    return sum([bytes_of(x.type, number) for x in nodes])
