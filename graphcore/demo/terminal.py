"""The output of the demo: headings, programs, graphs, tables; with or without a terminal."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import graphcore as gc

from .listing import Lines
from .timing import Race

WIDEST = 100
"""Lines longer than this are hard to read, however wide the terminal is."""


def console(color: bool, quiet: bool = False) -> Console:
    """Standard output; characters that its encoding lacks are replaced, not an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    made = Console(highlight=False, color_system="auto" if color else None, quiet=quiet)
    made.width = min(made.width, WIDEST)
    return made


def heading(out: Console, title: str, number: int | None = None) -> None:
    """A line across the terminal, which may have a number."""
    text = title if number is None else f"{number}  {title}"
    out.print()
    out.print(Rule(Text(text, "bold"), align="left", style="dim"))


def show_program(out: Console, lines: Lines) -> None:
    """Lines of Python with their numbers, not wrapped."""
    code = Syntax("", "python", theme="ansi_dark", background_color="default")
    numbered = Text()
    for number, line in enumerate(code.highlight(lines.text).split("\n"), lines.first):
        numbered.append(f"{number:3}  " if line.plain else "", "dim").append_text(line).append("\n")
    numbered.rstrip()
    out.print(numbered, soft_wrap=True)


def show_graph(out: Console, graph: object) -> None:
    """A graph as `gc.debug_print` prints it, cut where a terminal would wrap its lines."""
    text = io.StringIO()
    gc.debug_print(graph, width=out.width if out.is_terminal else None, file=text)
    shown = Text(text.getvalue().rstrip("\n"))
    shown.highlight_regex(r"(?m)(?<= = )\w+", "bold")
    shown.highlight_regex(r"(?<= = )pullback", "magenta")
    shown.highlight_regex(r"(?m)  \w+\.py:\d+.*$", "dim")
    out.print(shown, soft_wrap=True)


def show_columns(out: Console, text: str) -> None:
    """Lines whose columns have two spaces between them; the last one goes below if it is long."""
    for line in text.splitlines():
        if len(line) > out.width:
            start, _, last = line.rpartition("  ")
            indent = re.match(r" *\S+ *", line)
            line = f"{start.rstrip()}\n{' ' * indent.end() if indent else ''}{last}"
        out.print(Text(line), soft_wrap=True)


def show_races(out: Console, races: Sequence[Race]) -> None:
    """Time per step of both, their ratio, and how far their results differ."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("one step for")
    for title in ("graphcore", "NumPy by hand", "speed", "largest difference"):
        table.add_column(title, justify="right")
    for digits, ours, theirs, difference in races:
        times = f"{ours * 1e6:,.0f} µs", f"{theirs * 1e6:,.0f} µs", f"{theirs / ours:.2f}x"
        table.add_row(f"{digits:,} digits", *times, f"{difference:.0e}")
    out.print(table)


def show_commands(out: Console, commands: Sequence[tuple[str, str]]) -> None:
    """Commands to type, for options of `python -m graphcore`, and what each does."""
    width = max(len(options) for options, _ in commands)
    for options, effect in commands:
        command = f"python -m graphcore {options:{width}}"
        out.print(Text.assemble((command, "bold"), "  ", effect), soft_wrap=True)


def training_bar(out: Console) -> Progress:
    """A bar for a task with the field `loss`; without a terminal, its last state."""
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs, mean loss {task.fields[loss]:.4f}"),
        TimeElapsedColumn(),
        console=out,
        disable=out.quiet,
    )
