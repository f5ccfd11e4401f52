"""Graphs as text: one line a node, in evaluation order, each node once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from graphcore.ir import Graph, Node, Size
from graphcore.ir.provenance import described_by, thread_state

from .op_text import call
from .text import BOLD, DIM, fold, in_full, one_line, paint
from .view import Body, View, bodies

WIDEST = (32, 44, 64, 24)
BODIES = 10
"""A graph and its bodies have together at most so many times the lines of one graph."""
LONGEST = 400
"""The longest size that is written out."""
Note = Callable[[Node], str]


class Look(NamedTuple):
    """How graphs are printed: see `format_graph`; `sizes` are the names of sizes too long."""

    sizes: dict[Size, str]
    color: bool = False
    limit: int | None = 200
    note: Note | None = None
    places: Mapping[str, str] = {}


class Line(NamedTuple):
    """The line of one node, column by column, and its bodies."""

    node: Node
    name: str
    type: str
    call: str
    note: str
    origin: str


def format_graph(
    graph: Graph,
    *,
    color: bool = False,
    limit: int | None = 200,
    width: int | None = None,
    note: Note | None = None,
    places: Mapping[str, str] = {},
) -> str:
    """The nodes of a graph as aligned, typed lines.

    With `color` they have ANSI colours. Of a graph with more than `limit` lines, only the first and
    last are shown; None shows all of them, and all operands of each. Lines are cut after `width`
    characters. `note` is the text of a further column for a node. `places` are the axes of a mesh
    along which dims lie.
    """
    look = Look({}, color, limit, note, places)
    with described_by(graph.trace or thread_state.trace), in_full(limit is None):
        blocks = graph_lines(Body("", graph), look)
        lines = [line for block in blocks for line in block.split("\n")]
        most = None if limit is None else BODIES * max(limit, 1)
        return "\n".join([*fold(lines, most, width), *legend(look.sizes, limit, width)])


def graph_lines(body: Body, look: Look) -> list[str]:
    """The lines of a graph or a body."""
    view, limit, color = body.view(look.sizes, look.places), look.limit, look.color
    head, middle, tail = view.lines, [], []
    if limit is not None and len(head) > limit:
        last = len(head) - limit // 2
        first = limit - limit // 2
        head, middle, tail = head[:first], head[first:last], head[last:]
    lines = describe([*head, *tail], view, look.note)
    text = align_columns(lines, color=color)
    for at, line in enumerate(lines):
        held = below(line.node, view, look)
        text[at] = "\n".join([text[at], *held])
    if middle:
        text.insert(len(head), paint(f"... {summary(middle)} ...", DIM, color))
    return [*text, return_line(body.graph, view)]


def legend(
    sizes: Mapping[Size, str], limit: int | None = 200, width: int | None = None
) -> list[str]:
    """The lines that write out long sizes after their names."""
    longest = LONGEST if limit is not None and width is None else width
    return fold([f"{name} = {size}" for size, name in sizes.items()], limit, longest)


def describe(nodes: Iterable[Node], view: View, note: Note | None = None) -> list[Line]:
    """The columns for each node."""
    return [
        Line(
            node,
            view.name(node),
            view.type(node),
            call(node, view),
            note(node) if note else "",
            node.origin.shown(node.origin[:2] in view.shared, 2, file_name),
        )
        for node in nodes
    ]


def file_name(name: str) -> str:
    """The name of a file; a long one is cut."""
    return one_line(name, 24)


def align_columns(lines: Sequence[Line], *, color: bool = False) -> list[str]:
    """The columns of each line side by side."""
    name, type, code, note = (
        column_width([str(line[column]) for line in lines], widest)
        for column, widest in enumerate(WIDEST, 1)
    )
    has_notes = any(line.note for line in lines)
    text = []
    for line in lines:
        op = line.node.op.name
        rest = f"{line.call[len(op) :]:<{max(0, code - len(op))}}"
        note_column = f"  {line.note:<{note}}" if has_notes else ""
        origin = paint(line.origin, DIM, color)
        left = f"{line.name:<{name}}: {line.type:<{type}} = {paint(op, BOLD, color)}{rest}"
        text.append(f"{left}{note_column}  {origin}".rstrip())
    return text


def column_width(column: Iterable[str], widest: int) -> int:
    """The width of the widest text, except for those wider than `widest`, which stick out."""
    return max((len(text) for text in column if len(text) <= widest), default=0)


def below(node: Node, view: View, look: Look) -> list[str]:
    """The bodies of a node, indented."""
    lines = []
    for body in bodies(node, view):
        text = "\n".join(graph_lines(body, look)).split("\n")
        lines += [f"    {body.heading}:", *(f"        {line}" for line in text)]
    return lines


def return_line(graph: Graph, view: View) -> str:
    """The last line, with the results of the graph."""
    return f"return {view.names(graph.outputs)}".rstrip()


def summary(nodes: Sequence[Node]) -> str:
    """How many nodes, and the commonest of their ops."""
    counts = Counter(node.op.name for node in nodes).most_common()
    shown = [f"{name} {count}" for name, count in counts[:5]]
    more = ", ..." if len(counts) > len(shown) else ""
    return f"{len(nodes):,} nodes more: {', '.join(shown)}{more}"
