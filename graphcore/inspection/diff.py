"""The changes between two stages. Nodes are interned, so the same node was kept."""

from __future__ import annotations

from collections.abc import Iterator

from graphcore.ir import Graph, Node, toposort
from graphcore.ir.provenance import described_by

from .printer import Look, align_columns, below, describe, legend, return_line
from .text import DIM, GREEN, RED, fold, in_full, paint
from .view import View, input_names

STYLE = {" ": DIM, "-": RED, "+": GREEN}
CONTEXT = 3


def diff(
    before: Graph,
    after: Graph,
    color: bool = False,
    limit: int | None = None,
    width: int | None = None,
) -> str:
    """Lines of nodes removed (-), added (+) and, near those, kept; a kept node has one name."""
    with described_by(after.trace or before.trace), in_full(limit is None):
        *lines, counts = diff_lines(before, after, color)
    return "\n".join([*fold(lines, limit, width), counts])


def diff_lines(before: Graph, after: Graph, color: bool) -> list[str]:
    """The lines of a diff."""
    old, new = list(before.nodes()), list(after.nodes())
    order, signs = merge(old, new)
    inputs = input_names(old) | input_names(new)
    view = View(order, inputs, {*before.outputs, *after.outputs}, {})
    shown = list(around_changes([signs[node] for node in view.lines]))
    lines = describe([view.lines[at] for group in shown for at in group], view)
    text = iter(zip(lines, align_columns(lines), strict=True))
    result = []
    end = 0
    for group in shown:
        result += gap_line(group.start - end, color)
        for _ in group:
            line, first = next(text)
            sign = signs[line.node]
            changed = sign != " "
            rest = below(line.node, view, Look(view.sizes)) if changed else []
            result += [paint(f"{sign} {part}", STYLE[sign], color) for part in [first, *rest]]
        end = group.stop
    result += gap_line(len(view.lines) - end, color)
    result += returns(return_line(before, view), return_line(after, view), color)
    counts = [sum(signs[node] == sign for node in view.lines) for sign in " -+"]
    result += [f"  {line}" for line in legend(view.sizes)]
    return [*result, "{:,} kept, {:,} removed, {:,} added".format(*counts)]


def merge(old: list[Node], new: list[Node]) -> tuple[list[Node], dict[Node, str]]:
    """All nodes: the new in order, each removed one where it stood, but none above its inputs."""
    signs = dict.fromkeys(old, "-")
    for node in new:
        signs[node] = " " if node in signs else "+"
    position = {node: at for at, node in enumerate(old)}
    order: list[Node] = []
    done = 0
    for node in new:
        reached = position.get(node, 0)
        order += (x for x in old[done:reached] if signs[x] == "-")
        done = max(done, reached)
        order.append(node)
    order += (x for x in old[done:] if signs[x] == "-")
    return list(toposort(order)), signs


def around_changes(signs: list[str]) -> Iterator[range]:
    """Ranges of lines that are changed or near a change."""
    start = end = 0
    for at, sign in enumerate(signs):
        if sign == " ":
            continue
        if at - CONTEXT > end:
            if end > start:
                yield range(start, end)
            start = at - CONTEXT
        end = min(at + CONTEXT + 1, len(signs))
    if end > start:
        yield range(start, end)


def gap_line(count: int, color: bool) -> list[str]:
    return [paint(f"  ... {count:,} kept ...", DIM, color)] if count else []


def returns(before: str, after: str, color: bool) -> list[str]:
    """The return lines: one if they agree."""
    pairs = [(" ", before)] if before == after else [("-", before), ("+", after)]
    return [paint(f"{sign} {text}", STYLE[sign], color) for sign, text in pairs]
