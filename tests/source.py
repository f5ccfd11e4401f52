"""Graphs as Python that rebuilds the very same nodes, for bug reports and tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.names import spell_name
from graphcore.ir.node import Node
from graphcore.ir.provenance import inheriting, user_line
from graphcore.ir.sizes import Expression, code, unknowns

IMPORTS = """\
import numpy as np
from graphcore.ir.graph import Graph
from graphcore.ir.literal import Literal
from graphcore.ir.names import Computed, Hidden, ValueOf
from graphcore.ir.node import OPS
from graphcore.ir.sizes import maximum as max, minimum as min, unknown
"""


def as_source(graph: Graph) -> str:
    """Python source, a line for each node, whose `graph` is this one.

    >>> import graphcore as gc
    >>> x = gc.tensor("x", {"row": 3})
    >>> print(as_source(Graph((), (x.sum().node,))).splitlines()[-2])
    n1 = OPS['named.sum'](n0, dims=('row', ))
    """
    lines = [IMPORTS]
    made = graph_expression(graph, {}, lines)
    return "\n".join([*lines, f"graph = {made}", ""])


def graph_expression(graph: Graph, names: dict[Node, str], lines: list[str]) -> str:
    """The expression that makes a graph, once the lines that make its nodes are written."""
    for node in graph.nodes():
        if node in names:
            continue
        attrs = [f"{key}={spell(value, names, lines)}" for key, value in node.attrs.items()]
        names[node] = f"n{len(names)}"
        operands = [names[x] for x in node.inputs]
        lines.append(f"{names[node]} = OPS[{repr(node.op)!r}]({', '.join(operands + attrs)})")
    params, outputs = (
        "".join(f"{names[node]}, " for node in side) for side in (graph.params, graph.outputs)
    )
    return f"Graph(({params}), ({outputs}))"


def rebuild(source: str) -> Graph:
    """The graph that `as_source` wrote down."""
    scope: dict[str, Any] = {}
    with inheriting(user_line()):  # lines of the source are nobody's, and many
        exec(source, scope)
    graph: Graph = scope["graph"]
    return graph


def spell(value: object, names: dict[Node, str], lines: list[str]) -> str:
    """An attribute as an expression; a graph's nodes are written first."""
    match value:
        case Literal():
            array = value.array
            buffer = f"np.frombuffer({array.tobytes()!r}, {array.dtype.str!r})"
            return f"Literal({buffer}.reshape({array.shape}))"
        case np.dtype():
            return f"np.dtype({value.str!r})"
        case str():
            return spell_name(value)
        case Expression():
            spelled = {name: f"unknown({spell_name(name)})" for name in unknowns(value)}
            return f"({code(value, spelled)})"
        case tuple():
            return f"({''.join(f'{spell(item, names, lines)}, ' for item in value)})"
        case Graph():
            return graph_expression(value, names, lines)
    return repr(value)
