"""Looking into programs: printed stages and the changes between them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from graphcore.ir import Graph, Node
from graphcore.ir.errors import GraphTypeError
from graphcore.ir.help_text import parameters

from .shown import Shown as Shown

if TYPE_CHECKING:
    from .printer import Note


class Remarks(NamedTuple):
    """What a program adds to a stage: notes on nodes, places of dims on a mesh, and lines below."""

    note: Note | None = None
    places: Mapping[str, str] = {}
    below: str = ""


@parameters(
    x="A tensor, nested lists, tuples and dicts of tensors, or a compiled program.",
    stage="The stage of a compiled program to print; None prints all, each under its name.",
    limit="The number of lines shown of each graph: the first and the last ones. None shows all, "
    "with every operand of each line.",
    width="Lines longer than this are cut; None means no cut.",
    file="Where to print; standard output by default.",
    color="Whether to use colours; by default on a terminal, unless NO_COLOR is set.",
)
def debug_print(
    x: Any,
    stage: str | None = None,
    *,
    limit: int | None = 200,
    width: int | None = None,
    file: TextIO | None = None,
    color: bool | None = None,
) -> None:
    """Print a graph, a line for each step.

    A line is `name: type = operation(operands; how)  line of the program`. In it

    - `%4` is the line of that number, `outer %4` that of the graph around a loop's body or a branch
    - `over batch`, `along time`, `index 0` say which dims or values it is about
    - `axis 1: class`, `new axes 0, 2: day, site` say so after the stage "named", by position; the
      names after the colon are labels, which are left out where one is unknown
    - `time[2:+5:3]` is five elements from position 2 on, with a step of 3
    - `#0` is a size too long for a line, which is written out in the last lines
    - `model.py:7 ← 11` is line 7, for the derivative that line 11 asked for
    - `model.py:7 (from 31)` is line 7, of a function called by line 31, where others call it too

    GraphError if `x` does not contain a graph, or has no stage of that name.

    >>> x = gc.tensor("x", {"row": 3})
    >>> gc.debug_print((2 * x).sum())  # doctest: +ELLIPSIS
    x : f64[row=3] = input ...
    %0: f64[row=3] = multiply(2, x) ...
    %1: f64[]      = sum(%0; over row) ...
    return %1
    """
    from .printer import format_graph  # here, so that importing the library does not wait for it

    check_bound("debug_print", "limit", limit, "lines")
    check_bound("debug_print", "width", width, "characters")
    out = sys.stdout if file is None else file
    if color is None:
        color = out.isatty() and not os.environ.get("NO_COLOR")
    text = []
    for heading, graph, (note, places, below) in graphs(x, stage):
        shown = format_graph(graph, color=color, limit=limit, width=width, note=note, places=places)
        text.append("\n".join(filter(None, [heading, shown, below])))
    print(encodable("\n\n".join(text), out), file=out)


def check_bound(function: str, name: str, given: Any, what: str) -> None:
    """Refuse a bound that is not a number."""
    if given is not None and not (type(given) is int and given >= 0):
        cure = f"give a number of {what}, or None for all"
        raise GraphTypeError(f"{function}: {name}={given!r:.60} is not a number\n  cure: {cure}")


def at_first_use(module: str, name: str) -> Callable[..., Any]:
    """A function of a module that is loaded when it is called."""
    return lambda *args: getattr(import_module(f"{__name__}.{module}"), name)(*args)


Graph.text = at_first_use("printer", "format_graph")
Graph.written = at_first_use("json_form", "to_json")
Graph.read = at_first_use("json_form", "from_json")
Graph.network = at_first_use("network", "to_networkx")
Graph.folded = at_first_use("page", "fold_html")


def encodable(text: str, file: TextIO) -> str:
    """`text`, with escapes where the encoding of `file` lacks a character."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def graphs(x: Any, stage: str | None) -> Iterator[tuple[str, Graph, Remarks]]:
    """The parts of `x` to print: for each a heading, a graph, and what is said of it."""
    if not hasattr(x, "stages"):
        if stage is not None:
            raise GraphTypeError(
                f"debug_print: only a compiled program has stages, not {x!r:.60}\n"
                "  cure: leave the stage out"
            )
        graph = x if isinstance(x, Graph) else Graph((), tuple(nodes_of(x)))
        yield "", graph, Remarks()
        return
    stages: Mapping[str, Graph] = x.stages  # a name that they lack is refused
    if stage is None:
        for name, graph in stages.items():
            yield f"--- {name}: {len(graph):,} nodes", graph, x._remarks(name)
        return
    yield "", stages[stage], x._remarks(stage)


def nodes_of(x: Any) -> Iterator[Node]:
    """The nodes of a tensor, or of all tensors in nested lists, tuples and dicts."""
    if isinstance(x, Node):
        yield x
    elif isinstance(getattr(x, "node", None), Node):
        yield x.node
    elif isinstance(x, Mapping):
        for part in x.values():
            yield from nodes_of(part)
    elif isinstance(x, list | tuple):
        for part in x:
            yield from nodes_of(part)
    else:
        raise GraphTypeError(
            f"debug_print: {type(x).__name__} {x!r:.60} has no graph\n"
            "  cure: pass a tensor, several in lists, tuples or dicts, or a compiled program"
        )
