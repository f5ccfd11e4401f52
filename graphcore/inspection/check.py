"""`Compiled.check`: where nan and infinite results come from, in the user's words."""

from __future__ import annotations

import cmath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphcore.ir import Array, Graph, Node
from graphcore.ir.axes import Pointwise
from graphcore.ir.help_text import attributes
from graphcore.ir.name_text import show_dim
from graphcore.ir.provenance import NOWHERE, Origin, described_by
from graphcore.ops import leaf
from graphcore.schedule.regions import without_kernels

from .axis_labels import Labels, infer
from .blame import Blame, Onset, Reading, Trouble, first, nonfinite
from .causes import cause
from .interpreter import Interpreter
from .text import few, one_line, show_name, show_number

Place = Mapping[str, int]
"""A position for each dim."""


@dataclass(frozen=True)
class Operand:
    """An operand of a fault: its name or op, the user's line, and its value at that place.

    Where the place is computed from several values, `value` is None, and `least`, `most` and
    `count` describe them.
    """

    name: str
    line: Origin
    value: complex | None
    least: complex | None = None
    most: complex | None = None
    count: int = 1

    def show(self, near: Origin) -> str:
        """The operand as text, with its line where that is not `near`."""
        here = self.line[:2] == near[:2] or self.line == NOWHERE
        name = self.name if here else f"{self.name} at {self.line._replace(via=None)}"
        if self.value is not None:
            return f"{name} = {show_value(self.value)}"
        if self.least is None or self.most is None:
            return f"{name}, {self.count:,} values"
        return f"{name}, {self.count:,} values: {show_value(self.least)} to {show_value(self.most)}"


@dataclass(frozen=True)
class Step:
    """A step of a loop: the position along its dim, or the number of the step, from 0."""

    loop: str
    line: Origin
    step: int


@dataclass(frozen=True)
class Output:
    """An output that is nan or infinite: how it is written in the results, and where it is first.

    >>> Output("[0]", {"row": 2}, float("nan"))
    Output(name='[0]', place={'row': 2}, value=nan)
    """

    name: str
    place: Place
    value: complex


@attributes(
    value="nan, inf or -inf.",
    op="The op that computes it.",
    line="The user's line; `line.via` is the line that asked for the derivative it belongs to.",
    code='The text of that line, "" if it is not known.',
    place="The first such element: its position for each dim. Axes that have no name are numbered.",
    count="The number of such elements, in all steps of loops.",
    operands="The operands, with their values at this place.",
    steps="The step of each loop around it, the outermost first.",
    outputs="The outputs of the call that are nan or infinite; none if no such output depends on "
    "it.",
    cause='Why it is nan or infinite, "" if that is not known.',
    cure='What helps, "" if that is not known.',
)
@dataclass(frozen=True)
class Fault:
    """A value that is nan or infinite though its operands are finite."""

    value: complex
    op: str
    line: Origin
    code: str
    place: Place
    count: int
    operands: tuple[Operand, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    cause: str
    cure: str

    @property
    def derivative(self) -> Origin | None:
        """The line that asked for the derivative that the value belongs to, if there is one."""
        return self.line.via

    def __str__(self) -> str:
        more = f", and at {self.count - 1:,} more" if self.count > 1 else ""
        where = f" at {show_place(self.place)}" if self.place else ""
        lines = [f"{self.op} is {show_value(self.value)}{where}{more}"]
        line, word = self.line, "written at"
        for _ in range(MOST_LINES):
            lines.append(f"  {word} {line._replace(via=None)}{quoted_code(line)}")
            if line.via is None:
                break
            line, word = line.via, "for the derivative at"
        lines += [
            f"  in step {step.step:,} (from 0) of {step.loop} at {step.line}" for step in self.steps
        ]
        lines += [f"  from {operand.show(self.line)}" for operand in self.operands]
        if self.outputs:
            shown = [f"{y.name} = {show_value(y.value)}" for y in self.outputs]
            lines.append(f"  results that are nan or infinite: {few(shown, MOST_LINES)}")
        lines += [f"  cause: {self.cause}"] if self.cause else []
        lines += [f"  cure: {self.cure}"] if self.cure else []
        return "\n".join(lines)

    __repr__ = __str__


MOST_LINES = 8
"""The lines of derivatives of derivatives, outputs, and ops at a kink that are shown."""


def quoted_code(line: Origin) -> str:
    """The text of a line after a colon, if it is known."""
    code = line.code
    return f": {one_line(code, 100)}" if code else ""


def check(
    graph: Graph,
    arrays: Sequence[Array],
    sizes: Mapping[str, int],
    names: Sequence[str],
    results: Sequence[Array],
    every: bool,
) -> list[Fault]:
    """The faults of a call, the earliest first; only that one, unless `every`.

    `graph` runs. `arrays` and `sizes` are the checked arguments of the call and the unknown sizes,
    `names` and `results` those of its outputs. `every` fault is wanted, or those alone that an
    output depends on.
    """
    trace, graph = graph.trace, without_kernels(graph)
    with described_by(trace), np.errstate(all="ignore"):
        interpreter = Interpreter()
        frame = interpreter.frame(graph, arrays, sizes)
        blame = Blame(interpreter, every)
        blame.program(frame)
        outputs = tuple(nonfinite_outputs(graph, names, results))
        onsets = [*blame.onsets.values()][::-1]
        chosen = of_one_kind(onsets)[: None if every else 1]
        if outputs and not onsets:
            return [fault_of_result(graph, outputs[0], names)]
        return [fault(onset, outputs) for onset in chosen]


def of_one_kind(onsets: Sequence[Onset]) -> list[Onset]:
    """The onsets at ops of finite values; if there are none, those of infinities that are given."""
    for kind in Trouble:
        if some := [onset for onset in onsets if onset.kind is kind]:
            return some
    return []


def nonfinite_outputs(
    graph: Graph, names: Sequence[str], results: Sequence[Array]
) -> Iterable[Output]:
    """The outputs that are nan or infinite."""
    for name, y, array in zip(names, graph.outputs, results, strict=True):
        if (bad := nonfinite(array)) is not None:
            at = first(bad)
            yield Output(name, place_of(labels_in(graph, y, 0), at), plain(complex(array[at])))


def plain(value: complex) -> complex:
    """A number that is not complex as a float."""
    return value if value.imag or value.imag != value.imag else value.real


def fault_of_result(graph: Graph, output: Output, names: Sequence[str]) -> Fault:
    """The fault for a result that is finite if it is computed one op at a time."""
    node = graph.outputs[names.index(output.name)]
    line = node.origin
    code = line.code
    text, cure = "rounding: computed one op at a time, the result is finite", ""
    return Fault(
        output.value, node.op.said, line, code, output.place, 1, (), (), (output,), text, cure
    )


def fault(onset: Onset, outputs: tuple[Output, ...]) -> Fault:
    """An onset in the user's words."""
    node, frame = onset.node, onset.frame
    line = node.origin
    pointwise = isinstance(node.op.axes, Pointwise)
    at = [x[onset.at] for x in onset.operands] if pointwise else None
    found = None
    if onset.kind is Trouble.MADE and node.inputs:
        found = cause(node, at, onset.value, frame.graph.trace)
    text, cure = found or WORDS.get((onset.kind, bool(node.inputs)), ("", ""))
    return Fault(
        plain(onset.value),
        f"input {show_name(node.attrs['name'])}" if node.op is leaf.input_ else node.op.said,
        line,
        line.code,
        place_of(labels_in(frame.graph, node, onset.item), onset.at),
        onset.elements,
        tuple(operands_at(onset)),
        tuple(Step(loop.said, loop.origin, step) for loop, step in onset.steps),
        outputs if onset.reached else (),
        text,
        cure,
    )


WORDS = {
    (Trouble.MADE, False): ("the argument holds nan", "leave nan out first: x.where, skipna=True"),
    (Trouble.GIVEN, False): ("the argument holds it", ""),
    (Trouble.GIVEN, True): ("a number in the program is nan or infinite", ""),
    (Trouble.TURNED, True): ("infinite operands give nan", "leave the infinite elements out first"),
}
"""The causes that are no op's own, by kind, and whether the node has operands."""


def operands_at(onset: Onset) -> Iterable[Operand]:
    """The operands at the place of an onset."""
    node, frame = onset.node, onset.frame
    reading = Reading(node, onset.item, frame)
    element = np.zeros(reading.y.shape, bool)
    element[onset.at] = True
    for k, (x, array) in enumerate(zip(reading.owners, reading.arrays, strict=True)):
        values = array[reading.back(k, element)]
        name = show_name(x.attrs["name"]) if x.op is leaf.input_ else x.op.said
        name = "number" if x.op is leaf.full or x.op is leaf.constant else name
        if values.size == 1:
            yield Operand(name, x.origin, values[0].item())
        elif values.size and array.dtype.kind in "fiub":
            yield Operand(
                name, x.origin, None, values.min().item(), values.max().item(), values.size
            )
        else:
            yield Operand(name, x.origin, None, count=values.size)


def labels_in(graph: Graph, node: Node, item: int) -> Labels:
    """The dims of the axes of a result, as far as they are known."""
    return infer(graph.nodes())[node][item]


def place_of(labels: Labels, at: tuple[int, ...]) -> dict[str, int]:
    """A position for each dim."""
    pairs = enumerate(zip(labels, at, strict=True))
    return {label or f"axis {axis}": position for axis, (label, position) in pairs}


def show_place(place: Place) -> str:
    """A place as people read it: `[row=3, col=2]`."""
    return f"[{few([f'{show_dim(dim)}={position}' for dim, position in place.items()])}]"


def show_value(value: complex) -> str:
    """A number in few digits."""
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, complex):
        return f"{value:.6g}"
    return show_number(f"{value:.17g}" if not cmath.isfinite(value) else f"{value:.6g}")
