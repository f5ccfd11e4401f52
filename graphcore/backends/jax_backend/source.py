"""A program as the ops that JAX traces, one in a line."""

from __future__ import annotations

from collections.abc import Iterator

from graphcore.inspection.printer import describe, return_line
from graphcore.inspection.view import Body, bodies
from graphcore.ir import Graph, Node, Size

Line = tuple[str, tuple[Node, ...]]
"""A line, and the nodes that it computes."""


def source_lines(graph: Graph) -> list[Line]:
    """The lines of a graph, bodies indented."""
    body = Body("", graph)
    names = ", ".join(body.view({}).name(param) for param in graph.params)
    return [(f"program({names}):", ()), *lines_of(body, {}, "    ")]


def lines_of(body: Body, sizes: dict[Size, str], indent: str) -> Iterator[Line]:
    """The lines of a graph or a body; `sizes` are the names of those too long for a line."""
    view = body.view(sizes)
    for line in describe(view.lines, view):
        if line.node not in body.graph.params:
            yield f"{indent}{line.name}: {line.type} = {line.call}", (line.node,)
        for inner in bodies(line.node, view):
            yield f"{indent}    {inner.heading}:", ()
            yield from lines_of(inner, sizes, f"{indent}        ")
    yield f"{indent}{return_line(body.graph, view)}", ()
