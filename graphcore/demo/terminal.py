"""The output of the demo: headings, graphs, tables, a progress bar; with or without a terminal."""

from __future__ import annotations

import io
import sys
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

import graphcore as gc
from graphcore.compiled import Compiled

from .training import Race


class Row(NamedTuple):
    """A race and its heading."""

    title: str
    race: Race


def console(color: bool, quiet: bool = False) -> Console:
    """Standard output; characters that its encoding lacks are replaced, not an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False, color_system="auto" if color else None, quiet=quiet)


def heading(out: Console, number: int, title: str) -> None:
    """A numbered line across the terminal."""
    out.print()
    out.print(Rule(Text(f"{number}  {title}", "bold"), align="left", style="dim"))


def show_graph(out: Console, graph: object, stage: str | None = None) -> None:
    """A graph as `gc.debug_print` prints it. Its lines are not wrapped."""
    text = io.StringIO()
    gc.debug_print(graph, stage, file=text)
    shown = Text(text.getvalue().rstrip("\n"))
    shown.highlight_regex(r"(?m)(?<= = )\w+", "bold")
    shown.highlight_regex(r"(?<= = )pullback", "magenta")
    shown.highlight_regex(r"(?m)  \w+\.py:\d+.*$", "dim")
    out.print(shown, soft_wrap=True)


def show_stages(out: Console, compiled: Compiled, seconds: float) -> None:
    """The stages of a compilation that took `seconds` in all."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("stage")
    for title in ("nodes", "rewrites", "milliseconds"):
        table.add_column(title, justify="right")
    for name, graph, records, taken, _ in compiled.passes:
        nodes = sum(1 for _ in graph.nodes())
        rewrites = str(len(records)) if records else ""
        table.add_row(name, str(nodes), rewrites, f"{taken * 1e3:.1f}")
    passes = sum(stage.seconds for stage in compiled.passes)
    lines = len(compiled.source.splitlines())
    table.add_row(f"NumPy, {lines} lines", "", "", f"{(seconds - passes) * 1e3:.1f}")
    rewrites = str(sum(len(stage.records) for stage in compiled.passes))
    table.add_row("in all", "", rewrites, f"{seconds * 1e3:.1f}", style="bold")
    out.print(table)


def show_races(out: Console, rows: list[Row]) -> None:
    """Time per step of both, their ratio, and how far their results differ."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("time per step")
    for title in ("graphcore", "NumPy by hand", "speed", "largest difference"):
        table.add_column(title, justify="right")
    for title, (ours, theirs, difference) in rows:
        times = f"{ours * 1e6:,.0f} µs", f"{theirs * 1e6:,.0f} µs", f"{theirs / ours:.2f}x"
        table.add_row(title, *times, f"{difference:.0e}")
    out.print(table)


def training_bar(out: Console) -> Progress:
    """A bar for a task with the fields `epoch` and `loss`; without a terminal, its last state."""
    return Progress(
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps, loss {task.fields[loss]:.4f}"),
        TimeElapsedColumn(),
        console=out,
        disable=out.quiet,
    )
