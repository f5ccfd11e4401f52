"""What was measured of the programs: a table, JSON, a plot."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.measure import seconds
from benchmarks.programs import PEERS
from benchmarks.race import Result

TITLES = {
    "graphcore": "graphcore",
    "numpy": "NumPy",
    "jax": "JAX",
    "torch": "PyTorch",
    "pytensor": "PyTensor",
}
SLOW = 1 / 1.3


def table(results: Sequence[Result]) -> Table:
    """A row a program: our time, how many times as long the peers take, first calls, memory."""
    peers = present(results)
    compilers = ["graphcore", *(who for who in peers if who != "numpy")]
    shown = Table(box=None, pad_edge=False, header_style="dim")
    shown.add_column("program")
    titles = [
        "a call",
        *(TITLES[who] for who in peers),
        "best peer",
        *(f"first: {TITLES[who]}" for who in compilers),
        *(f"MB: {TITLES[who]}" for who in compilers),
    ]
    for title in titles:
        shown.add_column(title, justify="right", no_wrap=True)
    for result in results:
        ratios = [result.over_graphcore.get(who) for who in peers]
        alone = [result.alone.get(who) for who in compilers]
        shown.add_row(
            result.name,
            seconds(result.medians["graphcore"]),
            *("-" if ratio is None else f"{ratio.median:.2f}x" for ratio in ratios),
            in_color(result.best_peer),
            *("-" if one is None else seconds(one.seconds) for one in alone),
            *("-" if one is None else f"{one.bytes / 2**20:.1f}" for one in alone),
        )
    return shown


def in_color(ratio: float) -> str:
    color = "green" if ratio >= 1 else "red" if ratio < SLOW else "yellow"
    return f"[{color}]{ratio:.2f}x[/]"


def present(results: Sequence[Result]) -> list[str]:
    """The peers that any program has been run by."""
    return [who for who in PEERS if any(who in result.medians for result in results)]


def as_json(results: Sequence[Result], threads: str) -> dict[str, Any]:
    """Everything, with what it was measured on; times in seconds, memory in bytes."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "threads": threads,
        "versions": versions(),
        "programs": [
            {
                "name": result.name,
                "size": result.size,
                "medians": result.medians,
                "over graphcore": {w: r._asdict() for w, r in result.over_graphcore.items()},
                "first call": {who: one.seconds for who, one in result.alone.items()},
                "peak": {who: one.bytes for who, one in result.alone.items()},
            }
            for result in results
        ],
    }


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"


def versions() -> dict[str, str]:
    libraries = ["numpy", "scipy", "jax", "torch", "pytensor"]
    installed = [name for name in libraries if importlib.util.find_spec(name) is not None]
    found = {name: importlib.metadata.version(name) for name in installed}
    return {"python": platform.python_version(), **found}


def plot(results: Sequence[Result], path: Path) -> None:
    """Times of the peers over ours, a line a program."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ordered = sorted(results, key=lambda result: result.best_peer)
    figure, axes = pyplot.subplots(figsize=(7, 1.2 + 0.25 * len(ordered)), layout="constrained")
    for who in present(results):
        shown = [(r.over_graphcore[who], y) for y, r in enumerate(ordered) if who in r.medians]
        axes.plot(
            [ratio.median for ratio, _ in shown], [y for _, y in shown], "o", label=TITLES[who]
        )
    axes.axvline(1, color="0.5", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(ordered)), [result.name for result in ordered])
    axes.set_xlabel("time of the peer / time of graphcore (right of 1: graphcore is faster)")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
