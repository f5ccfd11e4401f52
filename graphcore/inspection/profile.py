"""The answer of `Compiled.profile`: what a call spends, where, and which values fill the memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from graphcore.analysis.cost import Cost, Number, bytes_of, cost, weight
from graphcore.ir import Graph, Node, Trait
from graphcore.ir.axes import Indexes
from graphcore.ir.graph import bodies_of
from graphcore.ir.help_text import attributes
from graphcore.ir.provenance import Origin, basename
from graphcore.ops import elementwise

from .memory import Memory
from .printed import PrintedNodes
from .text import align, few, fold, one_line


@attributes(
    flops="Floating-point operations in a second, of a product of matrices.",
    copies="Numbers of bytes, in ascending order, and how many are read and written in a second by "
    "a copy that moves so many: caches hold few of them.",
)
class Machine(NamedTuple):
    """What this machine can do at most, as measured with NumPy."""

    flops: float
    copies: tuple[tuple[int, float], ...]

    def least(self, run: Run, spent: Cost) -> float:
        """The seconds that a node takes at least in a call.

        An elementwise function counts as one operation here, since machines differ in what it
        takes.
        """
        return self.bound(single(run.node, spent.flops), spent.bytes, run.calls)

    def bound(self, flops: float, bytes: float, calls: int) -> float:
        """The seconds that operations, or copies of bytes, take at least, in so many calls."""
        each = bytes / max(calls, 1)
        rate = next((rate for bytes, rate in self.copies if bytes >= each), self.copies[-1][1])
        return max(flops / self.flops, bytes / rate)


class Run(NamedTuple):
    """A node that ran in a call: how often, and for how many seconds, which may be estimated.

    `nests` are the numbers of the nests of machine code that compute it.
    """

    node: Node
    calls: int
    seconds: float
    estimated: bool = False
    nests: frozenset[int] = frozenset()


class Ran(NamedTuple):
    """A nest, loop or routine of machine code that ran in a call: how often, for how many seconds.

    Its `roots` are stored, `inside` are all nodes that it computes, `reads` the values that it
    reads in memory.
    """

    roots: tuple[Node, ...]
    inside: tuple[Node, ...]
    reads: tuple[Node, ...]
    calls: int
    seconds: float


class Found(NamedTuple):
    """What ran in a call: nodes by NumPy calls, nests of machine code; the sizes that loops found.

    `shares` are the nodes that nests compute, each with its share of their time.
    """

    runs: list[Run]
    nests: list[Ran]
    shares: list[Run]
    trips: dict[str, int]


@attributes(
    name='The name of the step in the stage that runs, "%3". For a nest the names of the steps '
    'whose values it stores, "%3, %5". For a line its place, "model.py:9". For a derivative the '
    'line that asked for it. "between steps" for all that does not belong to a step.',
    says="The step as the stage prints it; the ops of a nest; the source of the line.",
    line="The user's line.",
    seconds="The time in one call.",
    calls="How often steps of it run in one call.",
    bytes="The bytes read and written. Those of a nest are what it reads from memory and stores; "
    "those of a step are those of a call of NumPy.",
    flops="The floating-point operations. An op counts for each value as one of them, ten "
    "(functions of NumPy, division, roots) or fifty (special functions).",
    least="The seconds that its operations, or a copy of as many bytes, take on this machine.",
    estimated="Whether `seconds` is estimated: the share, by operations, in the measured time of a "
    "nest that other parts have a share in as well.",
    in_nest="Whether steps of it are computed in nests with other steps, so that fewer bytes are "
    "moved.",
)
@dataclass(frozen=True)
class Part:
    """A part of a call: a step, a nest of machine code, a line of the user's, or a derivative."""

    name: str
    says: str
    line: Origin | None
    seconds: float
    calls: int
    bytes: int
    flops: float
    least: float
    estimated: bool = False
    in_nest: bool = False

    @property
    def limit(self) -> float | None:
        """The share of the machine's limit that it reaches; None in a nest with other steps."""
        return self.least / self.seconds if self.seconds and not self.in_nest else None


@attributes(
    seconds="The time of a call; `steps` add up to it.",
    measured="The time of a call in which the clock is read before and after each NumPy call, and "
    "after each step of machine code. The time that this takes is subtracted from the steps.",
    scale="The number that the times of steps are multiplied by, 1 at most. Steps that are "
    "measured one by one take longer together than a call, those of loops up to half as long "
    "again. Their times are scaled so that they add up to the call.",
    repeats="The number of calls of each kind; both times are those of the fastest.",
    target="What ran the calls, NumPy calls or machine code, and why.",
    machine="What the machine can do at most.",
    steps='The parts of the call by step, the slowest first. "between steps" is the time for '
    "checks of arguments, for loops and branches themselves, and for results.",
    lines="The parts by the user's line.",
    derivatives="The parts by the line that asked for a derivative.",
    nests="The loops and routines of machine code, each of which is measured, the slowest first. A "
    "program of NumPy calls has none.",
    memory="The bytes held over time.",
)
@dataclass(frozen=True)
class Profile:
    """Where the time of a call goes; printed, it is tables, the slowest part first."""

    seconds: float
    measured: float
    scale: float
    repeats: int
    target: str
    machine: Machine
    steps: tuple[Part, ...]
    lines: tuple[Part, ...]
    derivatives: tuple[Part, ...]
    nests: tuple[Part, ...]
    memory: Memory

    def __repr__(self) -> str:
        return self.text()

    def text(self, limit: int | None = 12) -> str:
        """The tables, of `limit` rows each; None shows all."""
        cost, copies = self.measured - self.seconds, self.machine.copies
        note = f"; measuring took {show_time(cost)} more, taken off here" if cost > 0 else ""
        rates = " to ".join([f"{copies[at][1] / 1e9:.3g}" for at in (-1, 0)])
        head = [
            f"{show_time(self.seconds)} a call, the fastest of {self.repeats:,}{note}",
            f"runs as {self.target}",
            f"limits of this machine: {self.machine.flops / 1e9:.3g} GFLOP/s, {rates} GB/s",
        ]
        if self.scale < 0.995:
            head += [
                "the times of the steps add up to more than the call: "
                f"they are multiplied by {self.scale:.2f}"
            ]
        if any(part.estimated for part in self.steps):
            head += ["~ marks an estimate: a loop measured as a whole, divided by operations"]
        parts = (
            *(("nest", self.nests), ("step", self.steps), ("line", self.lines)),
            ("derivative", self.derivatives),
        )
        tables = [table(name, some, self.seconds, limit) for name, some in parts if some]
        peak = f"memory: at most {show_bytes(self.memory.peak)}"
        if self.memory.holders:
            peak += f", at {self.memory.at}"
        held = [
            f"  {show_bytes(x.bytes):>8}  {x.name}  {place(x.line)}" for x in self.memory.holders
        ]
        rows = [row for rows in tables for row in ("", *rows)]
        return "\n".join([*head, *rows, "", peak, *fold(held, limit)])


def table(name: str, parts: Sequence[Part], whole: float, limit: int | None) -> list[str]:
    """Parts as the rows of a table below its head."""
    head = (name, "time", "share", "calls", "bytes", "flops", "limit", "")
    rows = [row(part, whole, name in ("step", "nest")) for part in parts]
    first, *lines = align([head, *rows], range(1, 7))
    return [first, *fold(lines, limit)]


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
    """The cost of the calls of a node; what is in bodies and kernels are steps by themselves."""
    if bodies_of(run.node):
        return Cost()
    return cost(run.node, number).times(run.calls)


class Names:
    """Names and lines of the nodes of a stage, and lines of nodes that it became for a backend."""

    def __init__(self, stage: Graph, final: Graph) -> None:
        self.own, self.final = PrintedNodes(stage).of, PrintedNodes(final).of

    def name(self, node: Node) -> str:
        """The name by which the stage prints a node; else that of the op."""
        return self.own[node].name if node in self.own else node.op.said

    def line(self, node: Node) -> str:
        """The printed line of a node after its name."""
        found = self.own.get(node) or self.final.get(node)
        return "" if found is None else one_line(found.line, 70).removeprefix(f"{found.name}: ")


def step_of(run: Run, names: Names, number: Number, machine: Machine, scale: float) -> Part:
    """A node as a part of the call, in which its time counts for so much."""
    node, spent = run.node, work(run, number)
    sizes = int(spent.bytes), float(spent.flops), machine.least(run, spent)
    known = names.name(node), names.line(node), node.origin, run.seconds * scale, run.calls
    return Part(*known, *sizes, run.estimated, run.estimated)


def nest_of(ran: Ran, names: Names, number: Number, machine: Machine, scale: float) -> Part:
    """A nest, loop or routine as a part of the call, in which its time counts for so much."""
    first, calls = ran.roots[0], ran.calls
    bytes, flops, least = 0, 0.0, 0.0
    if not bodies_of(first):
        bytes = calls * (
            sum([bytes_of(x.type, number) for x in ran.roots]) + bytes_read(ran, number)
        )
        costs = {x: work(Run(x, calls, 0.0), number).flops for x in ran.inside}
        flops = sum(costs.values())
        least = machine.bound(sum([single(*cost) for cost in costs.items()]), bytes, calls)
    ops = [x.op.said for x in ran.inside if Trait.VIEW not in x.op.traits]
    says = f"nest of {few(ops)}" if len(ops) > 1 else names.line(first)
    name = few(map(names.name, ran.roots), 3)
    return Part(name, says, first.origin, ran.seconds * scale, calls, bytes, flops, least)


def bytes_read(ran: Ran, number: Number) -> int:
    """The bytes of the stored values that a nest reads in one run, each of them once."""
    reads: dict[Node, int] = dict.fromkeys(ran.reads, 0)
    for node in ran.inside:
        part = Trait.VIEW in node.op.traits or isinstance(node.op.axes, Indexes)
        for x in node.inputs:
            if x in reads:
                whole = bytes_of(x.type, number)
                its = min(whole, bytes_of(node.type, number)) if part else whole
                reads[x] = max(reads[x], its)
    return sum(reads.values())


def single(node: Node, flops: float) -> float:
    """Operations of a node, of which an elementwise function does one for each value."""
    return flops / weight(node.op) if node.op in elementwise.UFUNC else flops


BETWEEN = "between steps"


class Steps(NamedTuple):
    """The steps of a call, each with the numbers of the nests that compute it."""

    parts: Sequence[Part]
    nests: Sequence[frozenset[int]]


def merge_steps(
    steps: Steps,
    key: Callable[[Origin], Hashable],
    named: Callable[[Origin], tuple[str, str, Origin]],
) -> tuple[Part, ...]:
    """Steps with equal keys as one part each, the slowest first.

    Times of steps that share a nest among themselves alone are measured together.
    """
    groups: dict[Hashable, list[int]] = {}
    within: dict[int, set[Hashable]] = {}
    for at, (step, nests) in enumerate(zip(*steps, strict=True)):
        own = None if step.line is None else (key(step.line),)
        groups.setdefault(own, []).append(at)
        for nest in nests:
            within.setdefault(nest, set()).add(own)
    made = []
    for numbers in groups.values():
        some = [steps.parts[at] for at in numbers]
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
            any(len(within[nest]) > 1 for at in numbers for nest in steps.nests[at]),
            any(x.in_nest for x in some),
        )
        made.append(whole)
    return slowest(made)


def slowest(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Parts, the slowest first."""
    return tuple(sorted(parts, key=lambda part: -part.seconds))


def by_line(steps: Steps) -> tuple[Part, ...]:
    """The parts of a call by the user's lines, derivatives of a line included."""

    def describe(line: Origin) -> tuple[str, str, Origin]:
        name = f"{one_line(basename(line.file), 24)}:{line.line}"
        return name, one_line(line.code, 100), line._replace(via=None)

    return merge_steps(steps, lambda line: line[:2], describe)


def by_derivative(steps: Steps) -> tuple[Part, ...]:
    """The parts of a call by the line that asked for a derivative; "no derivative" is one part."""

    def asker(line: Origin) -> Origin | None:
        by = line.via
        while by is not None and by.via is not None and by[:2] == line[:2]:
            by = by.via  # the derivative of a loop's body, which the loop asked for
        return by

    def describe(line: Origin) -> tuple[str, str, Origin]:
        if (by := asker(line)) is None:
            return "no derivative", "", line
        return place(by), one_line(by.code, 100), by

    return merge_steps(steps, lambda line: (by := asker(line)) and place(by), describe)
