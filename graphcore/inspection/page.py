"""One HTML file about a compiled program, without outside references, and short HTML in notebooks.

The page is `page.html`, with `page.css`, the parts of the script and the data written into it.
Strings of users are data: they are JSON in which no character of markup is left, and the script
shows them as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from graphcore.ir import Graph

from .page_data import page_data
from .printer import format_graph
from .text import one_line

LONGEST = 40
"""The most lines of a graph in a notebook."""
WIDEST = 160
"""The most characters of these lines."""
SCRIPT = "page_graph.js", "page_view.js", "page_input.js"
"""The parts of the script, each of which uses those before."""
MARKUP = {ord(x): f"\\u{ord(x):04x}" for x in "<>&'"}
"""Escapes of JSON for characters that HTML could read as markup."""


def page(compiled: Any) -> str:
    """The page of a compiled program; its data are ASCII."""
    parts = {
        "/*STYLE*/": part("page.css"),
        "/*SCRIPT*/": "\n".join(map(part, SCRIPT)),
        "/*DATA*/": embed_json(page_data(compiled)),  # last: it may hold the other marks
    }
    text = part("page.html")
    for mark, content in parts.items():
        before, _, after = text.partition(mark)
        text = f"{before}{content}{after}"
    return text


def part(name: str) -> str:
    """A file of this package."""
    return files(__package__).joinpath(name).read_text("utf-8")


def embed_json(data: Any) -> str:
    """Data as JSON that no markup can end: other characters than ASCII are escaped as well."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).translate(MARKUP)


def fold_html(title: str, graphs: Mapping[str, Graph]) -> str:
    """HTML that shows a title and, when it is opened, the first and last lines of graphs."""
    blocks = []
    for name, graph in graphs.items():
        shown = escape(format_graph(graph, color=False, limit=LONGEST, width=WIDEST))
        text = f"<pre>{shown}</pre>"
        heading = f"<summary>{escape(one_line(name))}: {len(graph):,} nodes</summary>"
        blocks.append(f"<details>{heading}{text}</details>" if len(graphs) > 1 else text)
    summary = f"<summary><code>{escape(one_line(title, WIDEST))}</code></summary>"
    return f"<details>{summary}{''.join(blocks)}</details>"
